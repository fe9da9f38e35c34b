/* Mounting a filesystem, and proving that it is mounted. */
#ifndef CORE_MOUNT_H
#define CORE_MOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "failure.h"
#include "record.h"

struct mount_request {
    const char *device;
    const char *filesystem;
    const char *directory; /* made when it is not there */
    const char *options;   /* as mount(8) takes them, comma separated, "" for none */
    uint32_t magic;        /* what statfs must give */
};

/* Split `options` into the flags of mount(2) and the data for the filesystem. 0, or -1 when the
 * data does not fit in `capacity`. */
int mount_split_options(const char *options, unsigned long *flags, char *data, size_t capacity);

/* Whether `other` is the device that is mounted or one that an option `device=` names: a filesystem
 * on several goes by any of them. */
bool mount_names_device(const char *device, const char *options, const char *other);

/* Mount, prove, write the `mount` and `space` records. 0, or -1 with the failure: of the step
 * "mount". */
int mount_filesystem(const struct mount_request *request, struct recorder *records,
                     struct failure *failure);

/* Unmount what was mounted last, and mount it again as before, without a record. 0, or -1 with the
 * failure: of the step "umount" or "mount". */
int mount_again(struct failure *failure);

#endif
