/* The kernel's own filesystems, sysfs and configfs: what disks are made and set by. */
#ifndef CORE_PSEUDO_H
#define CORE_PSEUDO_H

#include "failure.h"

/* Each returns 0, or -1 with the failure, whose step is the directive's name. */

/* Write `text` to the existing file `path`, in one write(2): such files take a value as a whole. */
int pseudo_write(const char *path, const char *text, struct failure *failure);

/* Make the directory `path`: in configfs that makes an object. */
int pseudo_mkdir(const char *path, struct failure *failure);

/* Mount a filesystem of that type, which needs no device, on the directory, which the kernel has
 * made. One that is there already is as good. */
int pseudo_mount(const char *filesystem, const char *directory, struct failure *failure);

/* Wait, at most ten seconds of guest time, until `path` exists. */
int pseudo_wait(const char *path, struct failure *failure);

#endif
