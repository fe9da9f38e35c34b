#include "crc32.h"

#include <stdbool.h>

/* Eight tables, one per byte of a 64-bit step: whole disk images are summed on an emulated
 * processor, where a byte at a time would be a visible part of a run. */
static uint32_t tables[8][256];

static void make_tables(void)
{
    static bool made = false;

    if (made)
        return;
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t sum = byte;
        for (int bit = 0; bit < 8; bit++)
            sum = (sum & 1) != 0 ? (sum >> 1) ^ 0xedb88320u : sum >> 1;
        tables[0][byte] = sum;
    }
    for (uint32_t byte = 0; byte < 256; byte++)
        for (int step = 1; step < 8; step++)
            tables[step][byte] =
                (tables[step - 1][byte] >> 8) ^ tables[0][tables[step - 1][byte] & 0xff];
    made = true;
}

static uint32_t load_le32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

uint32_t crc32_update(uint32_t crc, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;

    make_tables();
    crc = ~crc;
    for (; length >= 8; length -= 8, at += 8) {
        uint32_t low = crc ^ load_le32(at);
        uint32_t high = load_le32(at + 4);
        crc = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff]
            ^ tables[4][low >> 24] ^ tables[3][high & 0xff] ^ tables[2][high >> 8 & 0xff]
            ^ tables[1][high >> 16 & 0xff] ^ tables[0][high >> 24];
    }
    for (; length > 0; length--, at++)
        crc = (crc >> 8) ^ tables[0][(crc ^ *at) & 0xff];
    return ~crc;
}
