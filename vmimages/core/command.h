/* Programs of the userland, timed around fork, exec and wait. */
#ifndef CORE_COMMAND_H
#define CORE_COMMAND_H

#include <stddef.h>
#include <stdint.h>

#include "failure.h"
#include "record.h"

/* Of a program's output and errors, so much is kept. */
#define COMMAND_OUTPUT_BYTES (64 * 1024)

struct command {
    const char *directory;
    char *const *arguments; /* ended by NULL; the first is the program */
    char *const *variables; /* NAME=VALUE, added to a fixed environment; ended by NULL */
};

struct command_result {
    int status; /* exit status, or 128 and the signal */
    int64_t elapsed_ns;
    uint64_t output_bytes; /* all of it */
    size_t kept_bytes;
    char output[COMMAND_OUTPUT_BYTES];
};

/* Run a program, without input, and wait for it. 0 when it ran, whatever its status; or -1 with the
 * failure, of the step "command". Writes no record. */
int command_execute(const struct command *command, struct command_result *result,
                    struct failure *failure);

/* Write the `command` record of a program that ran in that phase ("" outside). */
void command_record(struct recorder *records, const char *phase, char *const *arguments,
                    const struct command_result *result);

/* 0 when its status is 0, or -1 with the failure. */
int command_check(const char *program, const struct command_result *result,
                  struct failure *failure);

/* All three, for a program by itself. */
int command_run(const char *directory, char *const *arguments, struct recorder *records,
                struct failure *failure);

#endif
