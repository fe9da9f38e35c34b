#include "pattern.h"

#include <stdlib.h>
#include <string.h>

/* Twice, so that PATTERN_BYTES from any place lie in one piece. */
#define TWICE_BYTES (2 * PATTERN_BYTES)
#define PAGE_BYTES 4096
/* Odd, so that seeds that follow each other begin far apart; a whole number of cache lines. */
#define SEED_STRIDE_BYTES (40503 * 64)

static uint8_t *contents[PATTERNS];

static void fill_random(uint8_t *bytes)
{
    /* xorshift64*; fsexp/pattern.py says where it is from. */
    uint64_t state = 88172645463325252;

    for (size_t at = 0; at < PATTERN_BYTES; at += sizeof state) {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        uint64_t word = state * 0x2545f4914f6cdd1d;
        for (size_t byte = 0; byte < sizeof word; byte++)
            bytes[at + byte] = (uint8_t)(word >> (8 * byte));
    }
}

static void fill_text(uint8_t *bytes)
{
    static const char letters[] = "etaoin shrdlu cmfwyp vbgkjqxz etaois\n";

    fill_random(bytes);
    for (size_t at = 0; at < PATTERN_BYTES; at++)
        bytes[at] = (uint8_t)letters[bytes[at] % 32];
}

int pattern_prepare(uint64_t pattern)
{
    uint8_t *bytes;

    if (contents[pattern] != NULL)
        return 0;
    bytes = aligned_alloc(PAGE_BYTES, TWICE_BYTES);
    if (bytes == NULL)
        return -1;
    switch (pattern) {
    case PATTERN_TEXT:
        fill_text(bytes);
        break;
    case PATTERN_RANDOM:
        fill_random(bytes);
        break;
    default:
        memset(bytes, pattern == PATTERN_ONES ? '1' : 0, PATTERN_BYTES);
        break;
    }
    memcpy(bytes + PATTERN_BYTES, bytes, PATTERN_BYTES);
    contents[pattern] = bytes;
    return 0;
}

const uint8_t *pattern_content(uint64_t pattern, uint64_t seed)
{
    return contents[pattern] + seed * SEED_STRIDE_BYTES % PATTERN_BYTES;
}
