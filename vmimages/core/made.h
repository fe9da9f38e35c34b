/* Files with several names that have been copied: where the first of their copies is. */
#ifndef CORE_MADE_H
#define CORE_MADE_H

#include <stddef.h>
#include <sys/types.h>

struct made_file;

/* All zero: none yet. */
struct made {
    struct made_file *files; /* a hash table with open addressing */
    size_t count;
    size_t capacity;
};

/* The copy of the file, or NULL when there was none: then it is `copy` from now on. -1 with errno when
 * there is no memory for it, else 0. */
int made_recall(struct made *made, dev_t device, ino_t inode, const char *copy,
                const char **earlier);
void made_free(struct made *made);

#endif
