#include "calibrate.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "clock.h"
#include "disk.h"
#include "file.h"

#define STEP "calibrate"
#define BLOCK_BYTES 4096
#define PART_BYTES (1024 * 1024)
#define REQUESTS 64
/* A limit of bandwidth works by the 20 ms (null_blk): this is many of them at some hundred MB/s. */
#define SEQUENTIAL_BYTES (UINT64_C(256) * PART_BYTES)

struct calibration {
    int descriptor;
    uint64_t blocks;
    uint64_t state; /* of the offsets */
    int64_t read_ns;
    int64_t write_ns;
    int64_t flush_ns;
    int64_t sequential_ns;
};

/* Direct transfers need aligned memory. */
static _Alignas(BLOCK_BYTES) uint8_t buffer[PART_BYTES];

/* The next of a fixed row of offsets: Knuth's MMIX generator, of which the high bits are good. */
static uint64_t next_offset(struct calibration *measured)
{
    measured->state = measured->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (measured->state >> 33) % measured->blocks * BLOCK_BYTES;
}

/* Each returns NULL, or the name of the system call that failed, with errno. */

/* One random read, timed; the same block written, timed; a flush of it, timed. */
static const char *measure_block(struct calibration *measured)
{
    uint64_t offset_bytes = next_offset(measured);
    int64_t begin_ns = clock_now_ns();
    int64_t read_ns;
    int64_t write_ns;

    if (file_read_all_at(measured->descriptor, buffer, BLOCK_BYTES, offset_bytes) != 0)
        return "pread";
    read_ns = clock_now_ns();
    if (file_write_all_at(measured->descriptor, buffer, BLOCK_BYTES, offset_bytes) != 0)
        return "pwrite";
    write_ns = clock_now_ns();
    if (fsync(measured->descriptor) != 0)
        return "fsync";
    measured->flush_ns += clock_now_ns() - write_ns;
    measured->write_ns += write_ns - read_ns;
    measured->read_ns += read_ns - begin_ns;
    return NULL;
}

static const char *measure_sequence(struct calibration *measured)
{
    uint64_t parts = measured->blocks * BLOCK_BYTES / PART_BYTES;
    int64_t begin_ns = clock_now_ns();

    for (uint64_t part = 0; part < SEQUENTIAL_BYTES / PART_BYTES; part++)
        if (file_read_all_at(measured->descriptor, buffer, PART_BYTES, part % parts * PART_BYTES) != 0)
            return "pread";
    measured->sequential_ns = clock_now_ns() - begin_ns;
    return NULL;
}

static const char *measure(struct calibration *measured)
{
    const char *failed;

    for (int request = 0; request < REQUESTS; request++) {
        failed = measure_block(measured);
        if (failed != NULL)
            return failed;
    }
    return measure_sequence(measured);
}

int calibrate(const char *device, struct recorder *records, struct failure *failure)
{
    struct calibration measured = { .descriptor = open(device, O_RDWR | O_DIRECT | O_CLOEXEC) };
    const char *failed = NULL;
    uint64_t size_bytes = 0;
    struct json *record;
    int error;

    if (measured.descriptor < 0)
        return failure_set(failure, STEP, "open", device, errno, NULL);
    if (disk_size(measured.descriptor, &size_bytes) != 0)
        failed = "size";
    measured.blocks = size_bytes / BLOCK_BYTES;
    if (failed == NULL && size_bytes < PART_BYTES) {
        errno = ENOSPC;
        failed = "size";
    }
    if (failed == NULL)
        failed = measure(&measured);
    error = errno;
    (void)close(measured.descriptor);
    if (failed != NULL)
        return failure_set(failure, STEP, failed, device, error, NULL);
    record = record_begin(records, "calibration");
    json_text(record, "device", device);
    json_count(record, "requests", REQUESTS);
    json_count(record, "request_bytes", BLOCK_BYTES);
    json_integer(record, "read_ns", measured.read_ns);
    json_integer(record, "write_ns", measured.write_ns);
    json_integer(record, "flush_ns", measured.flush_ns);
    json_count(record, "sequential_bytes", SEQUENTIAL_BYTES);
    json_integer(record, "sequential_ns", measured.sequential_ns);
    record_end(records);
    return 0;
}
