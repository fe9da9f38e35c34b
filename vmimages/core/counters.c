#include "counters.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "file.h"

/* Of a host with many processors or disks too. */
#define TEXT_BYTES (256 * 1024)

static char text[TEXT_BYTES];

static const char *const stat_names[COUNTERS_STAT] = {
    "user", "nice", "system", "idle", "iowait", "irq", "softirq",
};

static const char *const vmstat_names[COUNTERS_VMSTAT] = {
    "pgpgin", "pgpgout", "pgfault", "pgmajfault", "nr_dirtied", "nr_written",
};

static const char *const memory_names[] = { "Slab", "Dirty" };

static dev_t watched[COUNTERS_DISKS];
static size_t watched_count;

void counters_watch(const char *device)
{
    struct stat about;

    if (watched_count == COUNTERS_DISKS || stat(device, &about) != 0 || !S_ISBLK(about.st_mode))
        return;
    for (size_t disk = 0; disk < watched_count; disk++)
        if (watched[disk] == about.st_rdev)
            return;
    watched[watched_count++] = about.st_rdev;
}

/* The line of `text` that begins with `name` and one of the signs that may follow it: what comes
 * after these, or NULL. */
static const char *find_line(const char *name, const char *signs)
{
    size_t length = strlen(name);

    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) == 0 && line[length] != '\0'
            && strchr(signs, line[length]) != NULL)
            return line + length + 1;
    }
    return NULL;
}

static void read_stat(struct counters *counters)
{
    const char *at;
    char *end;

    if (file_read_text("/proc/stat", text, sizeof text) < 0)
        return;
    at = find_line("cpu", " ");
    if (at == NULL)
        return;
    for (size_t number = 0; number < COUNTERS_STAT; number++, at = end)
        counters->stat[number] = strtoull(at, &end, 10);
    counters->has_stat = true;
}

static void read_vmstat(struct counters *counters)
{
    if (file_read_text("/proc/vmstat", text, sizeof text) < 0)
        return;
    for (size_t number = 0; number < COUNTERS_VMSTAT; number++) {
        const char *at = find_line(vmstat_names[number], " ");
        counters->vmstat[number].present = at != NULL;
        if (at != NULL)
            counters->vmstat[number].value = strtoull(at, NULL, 10);
    }
}

/* Documentation/admin-guide/iostats.rst: discards came with 4.18, flushes with 5.5. */
static void read_disk(const char *line, struct counters *counters)
{
    enum { READS = 0, READ_SECTORS = 2, WRITES = 4, WRITTEN_SECTORS = 6, FLUSHES = 15, FIELDS };
    uint64_t fields[FIELDS];
    unsigned major_number;
    unsigned minor_number;
    char name[sizeof counters->disks[0].name];
    size_t count = 0;
    int length = 0;

    if (sscanf(line, "%u %u %31s%n", &major_number, &minor_number, name, &length) != 3)
        return;
    for (line += length; count < FIELDS; count++) {
        int field_length = 0;
        if (sscanf(line, "%*[ ]%" SCNu64 "%n", &fields[count], &field_length) != 1)
            break;
        line += field_length;
    }
    if (count <= WRITTEN_SECTORS)
        return;
    for (size_t disk = 0; disk < watched_count; disk++) {
        if (watched[disk] != makedev(major_number, minor_number))
            continue;
        counters->disks[disk].present = true;
        memcpy(counters->disks[disk].name, name, sizeof name);
        counters->disks[disk].reads = fields[READS];
        counters->disks[disk].read_sectors = fields[READ_SECTORS];
        counters->disks[disk].writes = fields[WRITES];
        counters->disks[disk].written_sectors = fields[WRITTEN_SECTORS];
        counters->disks[disk].has_flushes = count > FLUSHES;
        if (count > FLUSHES)
            counters->disks[disk].flushes = fields[FLUSHES];
    }
}

static void read_disks(struct counters *counters)
{
    if (watched_count == 0 || file_read_text("/proc/diskstats", text, sizeof text) < 0)
        return;
    for (const char *line = text; line != NULL && *line != '\0';) {
        read_disk(line, counters);
        line = strchr(line, '\n');
        line += line != NULL;
    }
}

void counters_read(struct counters *counters)
{
    memset(counters, 0, sizeof *counters);
    read_disks(counters);
    read_vmstat(counters);
    read_stat(counters);
}

static void add_disks(struct json *record, const struct counters *before,
                      const struct counters *after)
{
    json_object_open(record, "disks");
    for (size_t disk = 0; disk < watched_count; disk++) {
        if (!before->disks[disk].present || !after->disks[disk].present)
            continue;
        json_list_open(record, after->disks[disk].name);
        json_count(record, NULL, after->disks[disk].reads - before->disks[disk].reads);
        json_count(record, NULL,
                   after->disks[disk].read_sectors - before->disks[disk].read_sectors);
        json_count(record, NULL, after->disks[disk].writes - before->disks[disk].writes);
        json_count(record, NULL,
                   after->disks[disk].written_sectors - before->disks[disk].written_sectors);
        if (after->disks[disk].has_flushes)
            json_count(record, NULL, after->disks[disk].flushes - before->disks[disk].flushes);
        else
            json_integer(record, NULL, -1);
        json_list_close(record);
    }
    json_object_close(record);
}

static void add_memory(struct json *record)
{
    if (file_read_text("/proc/meminfo", text, sizeof text) < 0)
        return;
    json_object_open(record, "memory");
    for (size_t number = 0; number < sizeof memory_names / sizeof memory_names[0]; number++) {
        const char *at = find_line(memory_names[number], ":");
        if (at != NULL)
            json_count(record, memory_names[number], strtoull(at, NULL, 10) * 1024);
    }
    json_object_close(record);
}

void counters_add(struct json *record, const struct counters *before,
                  const struct counters *after)
{
    if (before->has_stat && after->has_stat) {
        json_object_open(record, "stat");
        for (size_t number = 0; number < COUNTERS_STAT; number++)
            /* Idle time and time of waiting may go back a little: the kernel says so. */
            json_integer(record, stat_names[number],
                         (int64_t)(after->stat[number] - before->stat[number]));
        json_object_close(record);
    }
    json_object_open(record, "vmstat");
    for (size_t number = 0; number < COUNTERS_VMSTAT; number++)
        if (before->vmstat[number].present && after->vmstat[number].present)
            json_integer(record, vmstat_names[number],
                         (int64_t)(after->vmstat[number].value - before->vmstat[number].value));
    json_object_close(record);
    add_disks(record, before, after);
    add_memory(record);
}
