/* How long operations of one kind took: their number, their sum, and a histogram. */
#ifndef CORE_LATENCY_H
#define CORE_LATENCY_H

#include <stdint.h>

#include "record.h"

/* Up to 15 ns a bucket is one number; above, a power of two has 8 of them. */
#define LATENCY_BUCKETS 496

struct latency {
    uint64_t count;
    uint64_t bytes;
    uint64_t errors;
    uint64_t total_ns;
    uint64_t max_ns;
    uint32_t buckets[LATENCY_BUCKETS];
};

static inline unsigned latency_bucket(uint64_t ns)
{
    unsigned shift;

    if (ns < 16)
        return (unsigned)ns;
    shift = 60 - (unsigned)__builtin_clzll(ns);
    return shift * 8 + (unsigned)(ns >> shift);
}

/* In the timed loop. */
static inline void latency_add(struct latency *latency, uint64_t ns)
{
    latency->count++;
    latency->total_ns += ns;
    if (ns > latency->max_ns)
        latency->max_ns = ns;
    latency->buckets[latency_bucket(ns)]++;
}

/* The smallest time that goes into a bucket. */
uint64_t latency_lower_ns(unsigned bucket);

/* The time that so many per cent of the operations did not exceed: the largest that goes into the
 * bucket where the nearest rank is, so that it is at most an eighth too large, and never more than
 * the longest. */
uint64_t latency_percentile_ns(const struct latency *latency, unsigned percent);

/* Write the `operations` record of that phase and operation. */
void latency_record(const struct latency *latency, const char *phase, const char *operation,
                    struct recorder *records);

#endif
