/* What a block device does, measured without a filesystem. */
#ifndef CORE_CALIBRATE_H
#define CORE_CALIBRATE_H

#include "failure.h"
#include "record.h"

/* Measure the block device (or plain file) by direct reads and writes and record it. What is
 * written is what was read: the content stays. 0, or -1 with the failure. */
int calibrate(const char *device, struct recorder *records, struct failure *failure);

#endif
