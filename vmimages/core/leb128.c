#include "leb128.h"

bool leb128_read(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    uint64_t sum = 0;

    for (int shift = 0; *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        /* The tenth byte holds bit 63 alone, and nothing may follow it. */
        if (shift == 63 && byte > 1)
            return false;
        sum |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            *value = sum;
            return true;
        }
    }
    return false;
}
