/* The guest's monotonic clock. Under the virtual clock it counts executed instructions. */
#ifndef CORE_CLOCK_H
#define CORE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

/* Nanoseconds since some fixed point, never going back. */
int64_t clock_now_ns(void);

/* Sleep for `duration_ns` of guest time (below one second); an interrupted sleep is not resumed. */
void clock_sleep_ns(int64_t duration_ns);

/* The name of what the kernel keeps time by ("tsc"), or "" where it does not say. */
void clock_source(char *name, size_t size);

/* Wait until the kernel keeps time by what it will keep, at most some seconds. */
void clock_settle(void);

#endif
