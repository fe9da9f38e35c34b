#include "space.h"

#include <sys/vfs.h>

#include "btrfs.h"

int space_record(struct recorder *records, int directory, const char *phase)
{
    struct statfs about;
    struct json *record;

    if (fstatfs(directory, &about) != 0)
        return -1;
    record = record_begin(records, "space");
    json_text(record, "phase", phase);
    /* Block counts are in fragments; a filesystem that gives none counts in its block size. */
    json_count(record, "block_bytes", (uint64_t)(about.f_frsize != 0 ? about.f_frsize
                                                                     : about.f_bsize));
    json_count(record, "blocks", about.f_blocks);
    json_count(record, "free_blocks", about.f_bfree);
    json_count(record, "inodes", about.f_files);
    json_count(record, "free_inodes", about.f_ffree);
    if ((uint32_t)about.f_type == BTRFS_MAGIC)
        btrfs_space(record, directory);
    record_end(records);
    return 0;
}
