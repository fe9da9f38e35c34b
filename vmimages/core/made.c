#include "made.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct made_file {
    dev_t device;
    ino_t inode;
    char *copy; /* NULL: a free place */
};

/* The file's place among `capacity`, a power of two, or the free one where it belongs. */
static struct made_file *place(struct made_file *files, size_t capacity, dev_t device, ino_t inode)
{
    size_t at = (size_t)((inode ^ device) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (capacity - 1);

    while (files[at].copy != NULL && (files[at].device != device || files[at].inode != inode))
        at = (at + 1) & (capacity - 1);
    return &files[at];
}

/* Keep half of the places free. */
static int grow(struct made *made)
{
    size_t capacity = made->capacity == 0 ? 64 : made->capacity * 2;
    struct made_file *files;

    if (made->count < made->capacity / 2)
        return 0;
    files = calloc(capacity, sizeof *files);
    if (files == NULL)
        return -1;
    for (size_t at = 0; at < made->capacity; at++) {
        const struct made_file *file = &made->files[at];
        if (file->copy != NULL)
            *place(files, capacity, file->device, file->inode) = *file;
    }
    free(made->files);
    made->files = files;
    made->capacity = capacity;
    return 0;
}

int made_recall(struct made *made, dev_t device, ino_t inode, const char *copy,
                const char **earlier)
{
    struct made_file *file;

    if (grow(made) != 0)
        return -1;
    file = place(made->files, made->capacity, device, inode);
    *earlier = file->copy;
    if (file->copy != NULL)
        return 0;
    *file = (struct made_file){ .device = device, .inode = inode, .copy = strdup(copy) };
    if (file->copy == NULL)
        return -1;
    made->count++;
    return 0;
}

void made_free(struct made *made)
{
    for (size_t at = 0; at < made->capacity; at++)
        free(made->files[at].copy);
    free(made->files);
    *made = (struct made){ .count = 0 };
}
