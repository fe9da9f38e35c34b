#include "mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "file.h"
#include "mountinfo.h"
#include "space.h"

#define STEP "mount"
#define OPTIONS_BYTES 4096

/* Words that are flags of mount(2) and not for the filesystem. */
static const struct {
    const char *word;
    unsigned long flag;
} flag_words[] = {
    { "noatime", MS_NOATIME }, { "relatime", MS_RELATIME }, { "nodiratime", MS_NODIRATIME },
    { "ro", MS_RDONLY },       { "sync", MS_SYNCHRONOUS },  { "nosuid", MS_NOSUID },
    { "nodev", MS_NODEV },
};

static unsigned long flag_of(const char *word, size_t length)
{
    for (size_t row = 0; row < sizeof flag_words / sizeof flag_words[0]; row++)
        if (strlen(flag_words[row].word) == length
            && memcmp(flag_words[row].word, word, length) == 0)
            return flag_words[row].flag;
    return 0;
}

int mount_split_options(const char *options, unsigned long *flags, char *data, size_t capacity)
{
    size_t used = 0;

    *flags = 0;
    data[0] = '\0';
    while (*options != '\0') {
        size_t length = strcspn(options, ",");
        unsigned long flag = flag_of(options, length);
        *flags |= flag;
        if (flag == 0 && length > 0) {
            if (used + (used > 0) + length + 1 > capacity)
                return -1;
            if (used > 0)
                data[used++] = ',';
            memcpy(data + used, options, length);
            used += length;
            data[used] = '\0';
        }
        options += length + (options[length] == ',');
    }
    return 0;
}

/* The directory is of the type asked for, and on another device than the one it is in. */
static int prove_directory(const struct mount_request *request, struct failure *failure)
{
    struct statfs filesystem;
    struct stat inside;
    struct stat outside;
    char parent[4200];
    int length = snprintf(parent, sizeof parent, "%s/..", request->directory);

    if (length < 0 || (size_t)length >= sizeof parent)
        return failure_set(failure, STEP, "stat", request->directory, ENAMETOOLONG, NULL);
    if (statfs(request->directory, &filesystem) != 0)
        return failure_set(failure, STEP, "statfs", request->directory, errno, NULL);
    if ((uint32_t)filesystem.f_type != request->magic)
        return failure_set(failure, STEP, "prove", request->directory, 0,
                           "statfs gives the type 0x%x and not 0x%x",
                           (unsigned)filesystem.f_type, (unsigned)request->magic);
    if (stat(request->directory, &inside) != 0 || stat(parent, &outside) != 0)
        return failure_set(failure, STEP, "stat", request->directory, errno, NULL);
    if (inside.st_dev == outside.st_dev)
        return failure_set(failure, STEP, "prove", request->directory, 0,
                           "it is on the same device as the directory above it");
    return 0;
}

bool mount_names_device(const char *device, const char *options, const char *other)
{
    static const char word[] = "device=";
    size_t length = strlen(other);

    if (strcmp(device, other) == 0)
        return true;
    while (*options != '\0') {
        size_t word_length = strcspn(options, ",");
        if (word_length == sizeof word - 1 + length
            && memcmp(options, word, sizeof word - 1) == 0
            && memcmp(options + sizeof word - 1, other, length) == 0)
            return true;
        options += word_length + (options[word_length] == ',');
    }
    return false;
}

/* The kernel's list of mounts says the same. Of a filesystem on several devices it names one. */
static int prove_listed(const struct mount_request *request, char *text, size_t capacity,
                        struct mountinfo *listed, struct failure *failure)
{
    if (file_read_text("/proc/self/mountinfo", text, capacity) < 0)
        return failure_set(failure, STEP, "read", "/proc/self/mountinfo", errno, NULL);
    if (!mountinfo_find(text, request->directory, listed))
        return failure_set(failure, STEP, "prove", request->directory, 0,
                           "the kernel lists no mount there");
    if (strcmp(listed->filesystem, request->filesystem) != 0
        || !mount_names_device(request->device, request->options, listed->device))
        return failure_set(failure, STEP, "prove", request->directory, 0,
                           "the kernel lists %.60s on %.60s there and not %.60s on %.60s",
                           listed->filesystem, listed->device, request->filesystem,
                           request->device);
    return 0;
}

static void record_mount(const struct mount_request *request, const struct mountinfo *listed,
                         struct recorder *records)
{
    struct json *record = record_begin(records, "mount");
    char magic[16];
    char options[2 * OPTIONS_BYTES];

    (void)snprintf(magic, sizeof magic, "0x%x", (unsigned)request->magic);
    (void)snprintf(options, sizeof options, "%s,%s", listed->mount_options, listed->super_options);
    json_text(record, "device", request->device);
    json_text(record, "directory", request->directory);
    json_text(record, "filesystem", request->filesystem);
    json_text(record, "magic", magic);
    json_text(record, "options", options);
    record_end(records);
}

static int record_space(const struct mount_request *request, struct recorder *records,
                        struct failure *failure)
{
    int directory = open(request->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int outcome = 0;

    if (directory < 0)
        return failure_set(failure, STEP, "open", request->directory, errno, NULL);
    if (space_record(records, directory, "") != 0)
        outcome = failure_set(failure, STEP, "fstatfs", request->directory, errno, NULL);
    (void)close(directory);
    return outcome;
}

/* Mount and prove. `listed` points into a buffer of this function's. */
static int attach(const struct mount_request *request, struct mountinfo *listed,
                  struct failure *failure)
{
    static char mounts[64 * 1024];
    char data[OPTIONS_BYTES];
    unsigned long flags;

    if (mount_split_options(request->options, &flags, data, sizeof data) != 0)
        return failure_set(failure, STEP, "mount", request->device, 0, "its options are too long");
    if (mkdir(request->directory, 0755) != 0 && errno != EEXIST)
        return failure_set(failure, STEP, "mkdir", request->directory, errno, NULL);
    if (mount(request->device, request->directory, request->filesystem, flags, data) != 0)
        return failure_set(failure, STEP, "mount", request->device, errno, NULL);
    if (prove_directory(request, failure) != 0)
        return -1;
    return prove_listed(request, mounts, sizeof mounts, listed, failure);
}

/* What was mounted last; its strings are the setup's, which live as long as the guest. */
static struct mount_request last;

int mount_filesystem(const struct mount_request *request, struct recorder *records,
                     struct failure *failure)
{
    struct mountinfo listed;

    if (attach(request, &listed, failure) != 0)
        return -1;
    last = *request;
    record_mount(request, &listed, records);
    return record_space(request, records, failure);
}

int mount_again(struct failure *failure)
{
    struct mountinfo listed;

    if (last.directory == NULL)
        return failure_set(failure, STEP, "remount", "", 0, "nothing was mounted");
    if (umount2(last.directory, 0) != 0)
        return failure_set(failure, "umount", "umount", last.directory, errno, NULL);
    return attach(&last, &listed, failure);
}
