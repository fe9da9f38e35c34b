/* Why a step did not succeed. */
#ifndef CORE_FAILURE_H
#define CORE_FAILURE_H

#include <stdbool.h>
#include <stdint.h>

#include "record.h"

/* The strings are not copied: they stay where they are until the failure has been recorded. */
struct failure {
    const char *step;      /* the kind of step: "mount", "ops", ... */
    const char *operation; /* the system call or the op */
    const char *path;
    int error;         /* errno, or 0 when no system call failed */
    bool in_ops;       /* the two below mean something */
    uint64_t index;    /* the op's number in its stream, from 0 */
    const char *phase; /* the phase it happened in, or "" */
    char message[256];
};

/* Fill in a failure. Without `format` the message says what `error` means. Returns -1, so that a
 * step can return it. */
int failure_set(struct failure *failure, const char *step, const char *operation, const char *path,
                int error, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Write its record, and a line to the kernel's log when `to_log`. */
void failure_record(const struct failure *failure, struct recorder *records, bool to_log);

#endif
