#include "pseudo.h"

#include <errno.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "file.h"

#define WAIT_NS INT64_C(10000000000)
#define POLL_NS INT64_C(10000000)

int pseudo_write(const char *path, const char *text, struct failure *failure)
{
    if (file_write_text(path, text) != 0)
        return failure_set(failure, "write", "write", path, errno, NULL);
    return 0;
}

int pseudo_mkdir(const char *path, struct failure *failure)
{
    if (mkdir(path, 0755) != 0)
        return failure_set(failure, "mkdir", "mkdir", path, errno, NULL);
    return 0;
}

int pseudo_mount(const char *filesystem, const char *directory, struct failure *failure)
{
    if (mount(filesystem, directory, filesystem, 0, NULL) != 0 && errno != EBUSY)
        return failure_set(failure, "filesystem", "mount", directory, errno, NULL);
    return 0;
}

int pseudo_wait(const char *path, struct failure *failure)
{
    int64_t deadline_ns = clock_now_ns() + WAIT_NS;

    while (access(path, F_OK) != 0) {
        if (errno != ENOENT || clock_now_ns() >= deadline_ns)
            return failure_set(failure, "wait", "access", path, errno, NULL);
        clock_sleep_ns(POLL_NS);
    }
    return 0;
}
