/* Programs of the userland, timed around fork, exec and wait. */
#ifndef CORE_COMMAND_H
#define CORE_COMMAND_H

#include "failure.h"
#include "record.h"

/* Run `arguments` (ended by NULL) in `directory`, with a fixed environment, no input, and the first
 * 64 KiB of output and errors captured; writes the `command` record. 0, or -1 with the failure, of
 * the step "command": also, after the record, when the program's status is not 0. */
int command_run(const char *directory, char *const *arguments, struct recorder *records,
                struct failure *failure);

#endif
