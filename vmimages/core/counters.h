/* The kernel's counters of time, of memory and of the disks under test. */
#ifndef CORE_COUNTERS_H
#define CORE_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "json.h"

#define COUNTERS_STAT 7
#define COUNTERS_VMSTAT 6
#define COUNTERS_DISKS 16

/* What a kernel does not have is absent. */
struct counters {
    bool has_stat;
    uint64_t stat[COUNTERS_STAT];
    struct {
        bool present;
        uint64_t value;
    } vmstat[COUNTERS_VMSTAT];
    struct {
        bool present;
        bool has_flushes;
        char name[32];
        uint64_t reads, read_sectors, writes, written_sectors, flushes;
    } disks[COUNTERS_DISKS];
};

/* Count the disk of that name (/dev/...) too. More than COUNTERS_DISKS are not counted. */
void counters_watch(const char *device);

void counters_read(struct counters *counters);

/* Add what changed to a record: the members "stat", "vmstat" and "disks"; and what the memory holds
 * now, "memory". */
void counters_add(struct json *record, const struct counters *before,
                  const struct counters *after);

#endif
