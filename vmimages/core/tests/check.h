/* Checks: each prints what does not hold, and the program goes on to the next. */
#ifndef CORE_TESTS_CHECK_H
#define CORE_TESTS_CHECK_H

#include <stdio.h>
#include <string.h>

static int checks_failed;
static int checks_made;

#define CHECK(condition)                                                                         \
    do {                                                                                         \
        checks_made++;                                                                           \
        if (!(condition)) {                                                                      \
            checks_failed++;                                                                     \
            printf("%s, line %d: does not hold: %s\n", __func__, __LINE__, #condition);          \
        }                                                                                        \
    } while (0)

#define CHECK_TEXT(got, wanted)                                                                  \
    do {                                                                                         \
        const char *got_ = (got);                                                                \
        const char *wanted_ = (wanted);                                                          \
        checks_made++;                                                                           \
        if (got_ == NULL || strcmp(got_, wanted_) != 0) {                                        \
            checks_failed++;                                                                     \
            printf("%s, line %d: got \"%s\" and not \"%s\"\n", __func__, __LINE__,               \
                   got_ == NULL ? "(null)" : got_, wanted_);                                     \
        }                                                                                        \
    } while (0)

/* The exit status of a test program. */
static inline int checks_outcome(const char *name)
{
    printf("%s: %d checks, %d failed\n", name, checks_made, checks_failed);
    return checks_failed == 0 ? 0 : 1;
}

#endif
