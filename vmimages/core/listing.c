#include "listing.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* struct linux_dirent64, include/linux/dirent.h. */
struct raw_entry {
    uint64_t inode;
    int64_t next;
    uint16_t length;
    uint8_t type;
    char name[];
};

void listing_open(struct listing *listing, int descriptor)
{
    listing->descriptor = descriptor;
    listing->open = true;
    listing->buffered = 0;
    listing->given = 0;
}

static bool is_dots(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* Room for `length` bytes more in memory of `*capacity` bytes. */
static void *room(void *memory, size_t *capacity, size_t used, size_t length)
{
    size_t wanted = *capacity;
    void *larger;

    if (used + length <= wanted)
        return memory;
    while (wanted < used + length)
        wanted = wanted == 0 ? 4096 : wanted * 2;
    larger = realloc(memory, wanted);
    if (larger != NULL)
        *capacity = wanted;
    return larger;
}

static int add(struct listing *listing, const struct raw_entry *raw)
{
    size_t length = strlen(raw->name) + 1;
    size_t bytes = listing->capacity * sizeof *listing->entries;
    struct listing_entry *entries = room(listing->entries, &bytes,
                                         listing->count * sizeof *listing->entries,
                                         sizeof *listing->entries);
    char *names;

    if (entries == NULL)
        return -1;
    listing->entries = entries;
    listing->capacity = bytes / sizeof *listing->entries;
    names = room(listing->names, &listing->names_capacity, listing->names_length, length);
    if (names == NULL)
        return -1;
    listing->names = names;
    memcpy(names + listing->names_length, raw->name, length);
    entries[listing->count++] = (struct listing_entry){
        .inode = raw->inode, .name = listing->names_length, .type = raw->type };
    listing->names_length += length;
    return 0;
}

int listing_read(struct listing *listing, size_t most)
{
    listing->count = 0;
    listing->names_length = 0;
    if (!listing->open)
        return 0;
    if (listing->buffer == NULL && (listing->buffer = malloc(LISTING_BUFFER_BYTES)) == NULL)
        return -1;
    while (listing->count < most) {
        const struct raw_entry *raw;
        if (listing->given == listing->buffered) {
            long got = syscall(SYS_getdents64, listing->descriptor, listing->buffer,
                               LISTING_BUFFER_BYTES);
            listing->calls++;
            if (got < 0)
                return -1;
            if (got == 0) {
                listing_close(listing);
                return 0;
            }
            listing->buffered = (size_t)got;
            listing->given = 0;
        }
        raw = (const struct raw_entry *)(listing->buffer + listing->given);
        listing->given += raw->length;
        if (!is_dots(raw->name) && add(listing, raw) != 0)
            return -1;
    }
    return 0;
}

static int by_inode(const void *left, const void *right)
{
    const struct listing_entry *a = left;
    const struct listing_entry *b = right;

    if (a->inode != b->inode)
        return a->inode < b->inode ? -1 : 1;
    /* glibc's qsort(3) merges, and so keeps equal ones in their order. */
    return a->name < b->name ? -1 : 1;
}

void listing_sort_inodes(struct listing *listing)
{
    qsort(listing->entries, listing->count, sizeof *listing->entries, by_inode);
}

static int by_name(const void *left, const void *right, void *names)
{
    return strcmp((const char *)names + ((const struct listing_entry *)left)->name,
                  (const char *)names + ((const struct listing_entry *)right)->name);
}

void listing_sort_names(struct listing *listing)
{
    qsort_r(listing->entries, listing->count, sizeof *listing->entries, by_name, listing->names);
}

void listing_close(struct listing *listing)
{
    if (listing->open)
        (void)close(listing->descriptor);
    listing->open = false;
}

void listing_free(struct listing *listing)
{
    listing_close(listing);
    free(listing->entries);
    free(listing->names);
    free(listing->buffer);
    *listing = (struct listing){ .open = false };
}
