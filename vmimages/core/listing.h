/* The entries of a directory, as getdents64(2) gives them. */
#ifndef CORE_LISTING_H
#define CORE_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What glibc's readdir(3) asks for at a time: 32 KiB, and so the programs imitated here do. */
#define LISTING_BUFFER_BYTES 32768

struct listing_entry {
    uint64_t inode;
    size_t name;        /* where the name begins in `names` */
    unsigned char type; /* DT_*, DT_UNKNOWN where the filesystem does not say */
};

/* An open directory and the entries read of it so far. All zero: nothing open, nothing read. */
struct listing {
    int descriptor; /* of the directory while `open` */
    bool open;
    uint64_t calls; /* of getdents64 */
    struct listing_entry *entries;
    size_t count;
    size_t capacity;
    char *names;
    size_t names_length;
    size_t names_capacity;
    uint8_t *buffer;
    size_t buffered; /* bytes in the buffer, and those given out */
    size_t given;
};

/* Begin to read the directory open at `descriptor`, which is the listing's from here on. */
void listing_open(struct listing *listing, int descriptor);

/* Read entries, "." and ".." left out, until there are `most` of them or the directory ends; those
 * read before are forgotten. 0, or -1 with errno. The directory is closed when it has ended. */
int listing_read(struct listing *listing, size_t most);

/* Order by inode number, names of one inode as the directory has them; or by the bytes of names. */
void listing_sort_inodes(struct listing *listing);
void listing_sort_names(struct listing *listing);

static inline const char *listing_name(const struct listing *listing, size_t index)
{
    return listing->names + listing->entries[index].name;
}

/* Close the directory. What memory it has is kept for the next one. */
void listing_close(struct listing *listing);
void listing_free(struct listing *listing);

#endif
