/* CRC-32 as zlib computes it: polynomial 0xedb88320, reflected, initial and final complement. */
#ifndef CORE_CRC32_H
#define CORE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of the bytes so far (`crc`, 0 at the start) followed by `length` more. */
uint32_t crc32_update(uint32_t crc, const void *bytes, size_t length);

#endif
