#include "clock.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "file.h"

#define CLOCK_SOURCE_PATH "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define SETTLE_NS ((int64_t)5000000000)
#define SETTLE_POLL_NS 50000000

int64_t clock_now_ns(void)
{
    struct timespec now;

    /* CLOCK_MONOTONIC cannot fail on any kernel this runs on; a made-up time must never go out. */
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0)
        abort();
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void clock_sleep_ns(int64_t duration_ns)
{
    struct timespec pause = { .tv_sec = 0, .tv_nsec = (long)duration_ns };

    /* Every caller looks at the clock again, so an early return costs one more look. */
    (void)nanosleep(&pause, NULL);
}

void clock_source(char *name, size_t size)
{
    if (file_read_text(CLOCK_SOURCE_PATH, name, size) < 0)
        name[0] = '\0';
    name[strcspn(name, "\n")] = '\0';
}

/* For the first second or so of a boot the clock is the tick (2.6.39 and 3.2 gave every time in whole milliseconds),
 * or a TSC that is measured again. */
static bool is_passing(const char *name)
{
    static const char *const passing[] = { "jiffies", "refined-jiffies", "tsc-early" };

    for (size_t row = 0; row < sizeof passing / sizeof passing[0]; row++)
        if (strcmp(name, passing[row]) == 0)
            return true;
    return false;
}

void clock_settle(void)
{
    int64_t deadline_ns = clock_now_ns() + SETTLE_NS;
    char name[64];

    for (clock_source(name, sizeof name); is_passing(name) && clock_now_ns() < deadline_ns;
         clock_source(name, sizeof name))
        clock_sleep_ns(SETTLE_POLL_NS);
}
