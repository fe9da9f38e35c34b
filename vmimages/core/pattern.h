/* What is written into files: four patterns, the same bytes as of fsexp/pattern.py. */
#ifndef CORE_PATTERN_H
#define CORE_PATTERN_H

#include <stdint.h>

/* A pattern repeats after so many bytes. */
#define PATTERN_BYTES (1024 * 1024)

enum { PATTERN_ZEROS, PATTERN_TEXT, PATTERN_RANDOM, PATTERN_ONES, PATTERNS };

/* Make a pattern, and its pages present. 0, or -1 with errno. */
int pattern_prepare(uint64_t pattern);

/* PATTERN_BYTES of a pattern that has been made, from where `seed` says; then they repeat. */
const uint8_t *pattern_content(uint64_t pattern, uint64_t seed);

#endif
