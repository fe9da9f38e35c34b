/* What btrfs says of its own space. */
#ifndef CORE_BTRFS_H
#define CORE_BTRFS_H

#include "json.h"

#define BTRFS_MAGIC 0x9123683e

/* Add the member "btrfs" to a record: what `btrfs filesystem df` prints of the filesystem that
 * `directory` (a descriptor) is on. Where the kernel does not say, nothing is added. */
void btrfs_space(struct json *record, int directory);

#endif
