#include "native.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failure.h"
#include "ops.h"
#include "record.h"
#include "space.h"

static struct recorder records;

static void records_lost(int error)
{
    (void)fprintf(stderr, "core: the records cannot be written: %s\n", strerror(error));
    exit(2);
}

static int record_first_space(const char *directory)
{
    int top = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int outcome = top < 0 ? -1 : space_record(&records, top, "");

    if (top >= 0)
        (void)close(top);
    return outcome;
}

int native_main(const char *directory, const char *ops, const char *path, const char *manifests)
{
    const struct ops_native native = { .manifests = manifests };
    static struct failure failure;
    int outcome;

    records.lost = records_lost;
    records.port = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (records.port < 0) {
        (void)fprintf(stderr, "core: %s: %s\n", path, strerror(errno));
        return 2;
    }
    (void)umask(0);
    record_hello(&records);
    if (record_first_space(directory) != 0)
        outcome = failure_set(&failure, "ops", "statfs", directory, errno, NULL);
    else
        outcome = ops_run(ops, directory, &native, &records, &failure);
    if (outcome != 0)
        failure_record(&failure, &records, false);
    record_last(&records, outcome == 0);
    if (close(records.port) != 0)
        records_lost(errno);
    return outcome == 0 ? 0 : 1;
}
