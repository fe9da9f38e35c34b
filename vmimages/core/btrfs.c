#include "btrfs.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>

/* The kernel's interface, since 2.6.33: include/uapi/linux/btrfs.h and btrfs_tree.h. */
struct space {
    uint64_t flags;
    uint64_t total_bytes;
    uint64_t used_bytes;
};

struct spaces {
    uint64_t capacity;
    uint64_t count;
    struct space entries[];
};

#define SPACE_INFO _IOWR(0x94, 20, struct spaces)

#define KIND_DATA (1ULL << 0)
#define KIND_SYSTEM (1ULL << 1)
#define KIND_METADATA (1ULL << 2)
/* Room that is kept back in the metadata: it is in their figure already. */
#define KIND_RESERVE (1ULL << 49)

/* Of any filesystem: kinds times profiles, for one that is being converted. */
#define SPACES_MAX 64

static const char *kind_of(uint64_t flags)
{
    if ((flags & KIND_DATA) != 0)
        return (flags & KIND_METADATA) != 0 ? "data+metadata" : "data";
    return (flags & KIND_METADATA) != 0 ? "metadata" : "system";
}

static const char *profile_of(uint64_t flags)
{
    static const struct {
        uint64_t flag;
        const char *name;
    } profiles[] = {
        { 1ULL << 3, "RAID0" },  { 1ULL << 4, "RAID1" },   { 1ULL << 5, "DUP" },
        { 1ULL << 6, "RAID10" }, { 1ULL << 7, "RAID5" },   { 1ULL << 8, "RAID6" },
        { 1ULL << 9, "RAID1C3" }, { 1ULL << 10, "RAID1C4" },
    };

    for (size_t row = 0; row < sizeof profiles / sizeof profiles[0]; row++)
        if ((flags & profiles[row].flag) != 0)
            return profiles[row].name;
    return "single";
}

void btrfs_space(struct json *record, int directory)
{
    static union {
        struct spaces list;
        uint64_t room[2 + 3 * SPACES_MAX];
    } about;

    about.list.capacity = SPACES_MAX;
    about.list.count = 0;
    if (ioctl(directory, (int)SPACE_INFO, &about.list) != 0)
        return;
    json_list_open(record, "btrfs");
    for (uint64_t row = 0; row < about.list.count && row < SPACES_MAX; row++) {
        const struct space *space = &about.list.entries[row];
        if ((space->flags & (KIND_DATA | KIND_SYSTEM | KIND_METADATA)) == 0
            || (space->flags & KIND_RESERVE) != 0)
            continue;
        json_object_open(record, NULL);
        json_text(record, "kind", kind_of(space->flags));
        json_text(record, "profile", profile_of(space->flags));
        json_count(record, "total_bytes", space->total_bytes);
        json_count(record, "used_bytes", space->used_bytes);
        json_object_close(record);
    }
    json_list_close(record);
}
