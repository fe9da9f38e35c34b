/* A timed phase: nothing is written in it, and after it everything that it was measured by. */
#ifndef CORE_PHASE_H
#define CORE_PHASE_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "counters.h"
#include "latency.h"
#include "op.h"

struct phase {
    const char *name; /* "" outside */
    bool running;
    int64_t begin_ns;
    int64_t last_ns; /* when the last operation ended */
    struct counters before;
    struct latency operations[OPCODES];
};

void phase_begin(struct phase *phase, const char *name);

/* An operation has ended. Its time is that since the one before, so that one look at the clock is
 * enough for each, and their times add up to the phase's. */
static inline struct latency *phase_note(struct phase *phase, enum opcode code)
{
    int64_t now_ns = clock_now_ns();
    struct latency *latency = &phase->operations[code];

    latency_add(latency, (uint64_t)(now_ns - phase->last_ns));
    phase->last_ns = now_ns;
    return latency;
}

/* End it and write the records: `phase`, then `operations` for each kind that it had. */
void phase_end(struct phase *phase, struct recorder *records);

#endif
