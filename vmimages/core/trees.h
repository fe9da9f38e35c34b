/* Whole trees that a stream handles: what was met is kept until the phase has ended, in which nothing
 * is written. */
#ifndef CORE_TREES_H
#define CORE_TREES_H

#include <stddef.h>
#include <stdint.h>

#include "record.h"
#include "tree.h"

/* More than there are programs, each as it is and sorted. */
#define TREES_ROWS 16

struct trees_row {
    const char *operation;
    const char *program;
    uint64_t count; /* of trees */
    struct tree_tally tally;
};

/* All zero: none yet. */
struct trees {
    struct trees_row rows[TREES_ROWS];
    size_t count;
};

/* The tally of that operation of that program, known to tree_program_known(); it counts one more. */
struct tree_tally *trees_tally(struct trees *trees, const char *operation, const char *program);

/* Write a record for each operation and program, of that phase ("" outside), and keep nothing. */
void trees_record(struct trees *trees, const char *phase, struct recorder *records);

#endif
