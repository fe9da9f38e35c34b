/* The arguments of an operation, as they lie in the stream. */
#ifndef CORE_ARGUMENTS_H
#define CORE_ARGUMENTS_H

#include <stdint.h>

/* Strings one after the other, each with its length before it. */
struct list {
    uint64_t count;
    const uint8_t *at;
};

struct arguments {
    const char *text[3];
    uint64_t number[4];
    struct list list[2];
};

#endif
