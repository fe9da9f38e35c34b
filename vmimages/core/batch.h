/* Programs that a stream runs: in a phase nothing is written, so their results are kept until it
 * has ended. */
#ifndef CORE_BATCH_H
#define CORE_BATCH_H

#include <stdint.h>

#include "arguments.h"
#include "failure.h"
#include "record.h"

struct batch_entry; /* a program that was run */

struct batch {
    struct batch_entry *entries;
    uint64_t count;
};

/* Make room for so many programs. 0, or -1 with errno. */
int batch_reserve(struct batch *batch, uint64_t capacity);

/* Run a program and keep its result. 0, or -1 with the failure, also of a status other than 0. */
int batch_run(struct batch *batch, const char *directory, const struct list *arguments,
              const struct list *variables, struct failure *failure);

/* Write the records of what was kept, of that phase ("" outside), and keep nothing. */
void batch_record(struct batch *batch, const char *phase, struct recorder *records);

#endif
