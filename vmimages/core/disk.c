#include "disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "clock.h"
#include "file.h"

/* include/uapi/linux/fs.h: _IOR(0x12, 114, size_t), the device's size in bytes, as a u64. */
#define DISK_BLKGETSIZE64 0x80081272ul

#define WAIT_NS INT64_C(10000000000)
#define POLL_NS INT64_C(10000000)

int disk_size(int descriptor, uint64_t *size_bytes)
{
    struct stat about;

    if (fstat(descriptor, &about) != 0)
        return -1;
    if (S_ISREG(about.st_mode)) {
        *size_bytes = (uint64_t)about.st_size;
        return 0;
    }
    return ioctl(descriptor, DISK_BLKGETSIZE64, size_bytes);
}

/* Make the node of a block device that sysfs knows, for kernels without devtmpfs. Failing is no
 * error of its own: the device may just not be there yet. */
static void make_node(const char *device)
{
    /* The second is where kernels with CONFIG_SYSFS_DEPRECATED have it. */
    static const char *const places[] = { "/sys/class/block/%s/dev", "/sys/block/%s/dev" };
    const char *name = strrchr(device, '/');
    char path[256];
    char numbers[32];
    unsigned major_number;
    unsigned minor_number;

    if (name == NULL)
        return;
    for (size_t place = 0; place < sizeof places / sizeof places[0]; place++) {
        int length = snprintf(path, sizeof path, places[place], name + 1);
        if (length < 0 || (size_t)length >= sizeof path)
            return;
        if (file_read_text(path, numbers, sizeof numbers) < 0)
            continue;
        if (sscanf(numbers, "%u:%u", &major_number, &minor_number) != 2)
            return;
        (void)mknod(device, S_IFBLK | 0600, makedev(major_number, minor_number));
        return;
    }
}

/* 0 when the device is there and large enough, else an errno: ENOSPC when it is there but too
 * small. */
static int look(const char *device, uint64_t least_bytes, uint64_t *size_bytes)
{
    int error = 0;
    int descriptor = open(device, O_RDONLY | O_CLOEXEC);

    if (descriptor < 0)
        return errno;
    if (disk_size(descriptor, size_bytes) != 0)
        error = errno;
    else if (*size_bytes < least_bytes)
        error = ENOSPC;
    (void)close(descriptor);
    return error;
}

int disk_wait(const char *device, uint64_t least_bytes, struct failure *failure)
{
    int64_t deadline_ns = clock_now_ns() + WAIT_NS;
    uint64_t size_bytes = 0;

    for (;;) {
        int error = look(device, least_bytes, &size_bytes);
        if (error == 0)
            return 0;
        if (error == ENOENT)
            make_node(device);
        if (clock_now_ns() < deadline_ns) {
            clock_sleep_ns(POLL_NS);
            continue;
        }
        if (error == ENOSPC)
            return failure_set(failure, "disk", "size", device, error,
                               "it has %llu bytes where at least %llu are needed",
                               (unsigned long long)size_bytes, (unsigned long long)least_bytes);
        return failure_set(failure, "disk", "open", device, error, NULL);
    }
}
