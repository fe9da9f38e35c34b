#include "fault.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "power.h"

static int spin(struct recorder *records)
{
    (void)records;
    for (;;)
        __asm__ volatile("" ::: "memory");
    return 0;
}

static int leave(struct recorder *records)
{
    (void)records;
    _exit(0);
}

static int crash_kernel(struct recorder *records)
{
    (void)records;
    if (file_write_text("/proc/sysrq-trigger", "c") != 0)
        return -1;
    /* Still here: the kernel took the request and did not crash. */
    errno = EOPNOTSUPP;
    return -1;
}

static int crash_process(struct recorder *records)
{
    (void)records;
    abort();
}

static int cut_power(struct recorder *records)
{
    (void)records;
    power_off();
}

static int fall_silent(struct recorder *records)
{
    (void)records;
    for (;;)
        (void)pause();
    return 0;
}

static int garble(struct recorder *records)
{
    record_garble(records);
    return 0;
}

static int repeat(struct recorder *records)
{
    record_repeat(records);
    return 0;
}

static int skip(struct recorder *records)
{
    record_skip(records);
    return 0;
}

static const struct fault {
    const char *kind;
    int (*in_guest)(struct recorder *records);
    int (*native)(struct recorder *records);
} faults[] = {
    { "spin", spin, spin },
    { "exit", leave, leave },
    { "crash", crash_kernel, crash_process },
    { "power-off", cut_power, leave },
    { "silence", fall_silent, fall_silent },
    { "garble", garble, garble },
    { "repeat", repeat, repeat },
    { "skip", skip, skip },
};

static const struct fault *find(const char *kind)
{
    for (size_t row = 0; row < sizeof faults / sizeof faults[0]; row++)
        if (strcmp(faults[row].kind, kind) == 0)
            return &faults[row];
    return NULL;
}

bool fault_known(const char *kind)
{
    return find(kind) != NULL;
}

int fault_inject(const char *kind, struct recorder *records, bool native)
{
    const struct fault *fault = find(kind);

    if (fault == NULL) {
        errno = EINVAL;
        return -1;
    }
    return native ? fault->native(records) : fault->in_guest(records);
}
