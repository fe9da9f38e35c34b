/* Unsigned LEB128 integers: seven bits a byte, least significant first, top bit set on all but the
 * last byte. */
#ifndef CORE_LEB128_H
#define CORE_LEB128_H

#include <stdbool.h>
#include <stdint.h>

/* Read the integer at `*at`, not reading at or beyond `end`, into `*value`, and move `*at` past it.
 * False when the bytes end inside it or it does not fit in 64 bits. */
bool leb128_read(const uint8_t **at, const uint8_t *end, uint64_t *value);

/* The same for bytes that leb128_read has accepted before: no checks, for the timed loop. */
static inline uint64_t leb128_read_trusted(const uint8_t **at)
{
    const uint8_t *next = *at;
    uint64_t value = *next & 0x7f;

    for (int shift = 7; (*next & 0x80) != 0; shift += 7) {
        next++;
        value |= (uint64_t)(*next & 0x7f) << shift;
    }
    *at = next + 1;
    return value;
}

#endif
