/* Images: the blocks of a disk that are not all zero.
 *
 * 8 bytes "FSEXPIMG", u32 LE version 1, u32 LE block_bytes (4096), u64 LE device_bytes; extents, in
 * ascending order: u64 LE first block, u32 LE count (1 to 1024), the blocks; u64 LE of all ones;
 * u32 LE CRC-32 of every byte before those eight. */
#ifndef CORE_IMAGE_H
#define CORE_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "failure.h"

#define IMAGE_BLOCK_BYTES 4096

struct image_summary {
    uint64_t device_bytes; /* the size of the disk it was made of */
    uint64_t blocks;       /* blocks it holds */
    uint64_t stream_bytes; /* length of the image itself */
    uint32_t stream_crc32; /* of the whole image, its end included */
};

/* Check a whole image in memory. What is wrong with it, or NULL with the summary (without
 * stream_crc32). */
const char *image_check(const uint8_t *bytes, size_t length, struct image_summary *summary);

/* Write the image in the file `path` to `device`, which must be large enough and otherwise zero;
 * read it back and compare. 0, or -1 with the failure: of the step "image". */
int image_write(const char *device, const char *path, struct image_summary *summary,
                struct failure *failure);

/* Write an image of `device` to `target`, from `offset_bytes` on; what was there before it and
 * beyond its end stays. 0, or -1 with the failure: of the step "export". */
int image_export(const char *device, const char *target, uint64_t offset_bytes,
                 struct image_summary *summary, struct failure *failure);

#endif
