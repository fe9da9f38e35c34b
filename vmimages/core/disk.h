/* Block devices. */
#ifndef CORE_DISK_H
#define CORE_DISK_H

#include <stdint.h>

#include "failure.h"

/* The size in bytes of an open block device (or plain file). 0, or -1 with errno. */
int disk_size(int descriptor, uint64_t *size_bytes);

/* Wait, at most ten seconds of guest time, until the block device is there with at least
 * `least_bytes`. Makes its node when the kernel does not. 0, or -1 with the failure. */
int disk_wait(const char *device, uint64_t least_bytes, struct failure *failure);

#endif
