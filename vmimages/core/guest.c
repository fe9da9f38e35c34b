#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "clock.h"
#include "errname.h"
#include "failure.h"
#include "file.h"
#include "kmsg.h"
#include "port.h"
#include "power.h"
#include "record.h"
#include "setup.h"
#include "version.h"

#define RECORDS_PORT "/dev/ttyS1"
#define SETUP_PATH "/fsexp/setup"
#define MODPROBE_SETTING "/proc/sys/kernel/modprobe"
#define MODPROBE_PATH "/fsexp/modprobe"

static struct recorder records;

/* Nodes for kernels without devtmpfs; numbers of Documentation/admin-guide/devices.txt. Block
 * devices get theirs when a step waits for them. */
static const struct {
    const char *path;
    mode_t mode;
    unsigned major_number, minor_number;
} nodes[] = {
    { "/dev/console", 0600, 5, 1 }, { "/dev/null", 0666, 1, 3 },  { "/dev/zero", 0666, 1, 5 },
    { "/dev/full", 0666, 1, 7 },    { "/dev/random", 0666, 1, 8 }, { "/dev/urandom", 0666, 1, 9 },
    { "/dev/kmsg", 0644, 1, 11 },   { "/dev/tty", 0666, 5, 0 },   { "/dev/ttyS0", 0600, 4, 64 },
    { RECORDS_PORT, 0600, 4, 65 },
};

/* 0, or an errno. */
static int mount_on(const char *filesystem, const char *directory)
{
    if (mkdir(directory, 0755) != 0 && errno != EEXIST)
        return errno;
    if (mount(filesystem, directory, filesystem, 0, NULL) != 0 && errno != EBUSY)
        return errno;
    return 0;
}

static void make_nodes(void)
{
    for (size_t row = 0; row < sizeof nodes / sizeof nodes[0]; row++)
        /* What is there already stays; what cannot be made fails where it is used. */
        (void)mknod(nodes[row].path, S_IFCHR | nodes[row].mode,
                    makedev(nodes[row].major_number, nodes[row].minor_number));
}

/* The first three descriptors must be taken, or a device would get one of their numbers and with it
 * what somebody writes to "standard error". */
static void take_standard_descriptors(void)
{
    int descriptor;

    do
        descriptor = open("/dev/null", O_RDWR);
    while (descriptor >= 0 && descriptor < 3);
    if (descriptor >= 3)
        (void)close(descriptor);
}

static void records_lost(int error)
{
    kmsg_say("the records cannot be written to " RECORDS_PORT ": %s", errname(error));
    power_off();
}

/* Read and do the setup. 0, or -1 with the failure. */
static int do_setup(struct failure *failure)
{
    static char text[SETUP_BYTES_MAX];
    struct setup setup;
    ssize_t length = file_read_text(SETUP_PATH, text, sizeof text);

    if (length < 0)
        return failure_set(failure, "setup", "read", SETUP_PATH, errno, NULL);
    if (setup_parse(text, (size_t)length, &setup, failure) != 0)
        return -1;
    return setup_run(&setup, &records, failure);
}

noreturn void guest_main(void)
{
    static struct failure failure;
    int dev_error;
    int proc_error;
    int sys_error;
    int outcome;

    (void)umask(0);
    dev_error = mount_on("devtmpfs", "/dev");
    if (dev_error != 0)
        make_nodes();
    proc_error = mount_on("proc", "/proc");
    sys_error = mount_on("sysfs", "/sys");
    take_standard_descriptors();
    kmsg_say("core %s", CORE_VERSION);
    clock_settle();

    records.lost = records_lost;
    records.drains = true;
    records.port = port_open(RECORDS_PORT);
    if (records.port < 0)
        records_lost(errno);
    record_hello(&records);

    /* The setting is missing where the kernel has no modules, and is then not needed. */
    if (proc_error == 0 && access(MODPROBE_SETTING, F_OK) == 0
        && file_write_text(MODPROBE_SETTING, MODPROBE_PATH) != 0)
        outcome = failure_set(&failure, "setup", "write", MODPROBE_SETTING, errno, NULL);
    else if (proc_error != 0)
        outcome = failure_set(&failure, "setup", "mount", "/proc", proc_error, NULL);
    else if (sys_error != 0)
        outcome = failure_set(&failure, "setup", "mount", "/sys", sys_error, NULL);
    else
        outcome = do_setup(&failure);
    if (outcome != 0)
        failure_record(&failure, &records, true);
    record_last(&records, outcome == 0);
    sync();
    power_off();
}
