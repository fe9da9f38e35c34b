/* The step that replays a workload: the filesystem operations of a stream, in phases. */
#ifndef CORE_OPS_H
#define CORE_OPS_H

#include "failure.h"
#include "record.h"

/* How a stream is replayed outside a guest: faults hit this process alone, caches stay. */
struct ops_native {
    const char *manifests; /* the folder where manifests are, by their names; NULL: at their paths */
};

/* Replay the stream in the file `path` in `directory`, writing records as phases end, and go back
 * to the root directory; in a guest `native` is NULL.
 * 0, or -1 with the failure: of the step "ops", or of those that operations are ("command"). */
int ops_run(const char *path, const char *directory, const struct ops_native *native,
            struct recorder *records, struct failure *failure);

#endif
