/* A tree visited as gnulib's fts_read(3) does it: parents before their entries and after them. */
#ifndef CORE_DESCENT_H
#define CORE_DESCENT_H

#include <stdbool.h>
#include <sys/types.h>

#include "listing.h"
#include "program.h"
#include "tree.h"

enum descent_event {
    DESCENT_FAILED, /* errno says why, the tally's path where */
    DESCENT_END,
    DESCENT_FILE,  /* what is not a directory */
    DESCENT_ENTER, /* a directory, before its entries */
    DESCENT_LEAVE, /* a directory, after them */
};

/* A directory that has been entered. */
struct descent_level {
    dev_t device;
    ino_t inode;
    size_t path_length; /* of its path in the tally */
    struct listing listing;
    size_t next; /* the entry to visit next */
};

/* Descriptors of the directories above, gnulib's i-ring.c: as many as fit, the oldest closed. */
#define DESCENT_RING 4
struct descent_ring {
    int descriptors[DESCENT_RING];
    bool empty;
    unsigned front;
    unsigned back;
};

struct descent {
    const struct program_traversal *rules;
    struct tree_tally *tally;
    /* The entry visited: its name in `directory`, and what is known of it. */
    const char *name;
    unsigned char type; /* DT_* */
    int directory;      /* a descriptor, or AT_FDCWD */
    /* The rest is descent.c's. */
    const char *top;
    int start; /* the working directory at the beginning, when it changes */
    bool asked_filesystem;
    bool begun;
    bool skipped;
    enum descent_event last;
    dev_t device; /* of the entry, if it is a directory, and the next two */
    ino_t inode;
    nlink_t links;
    struct descent_ring ring;
    struct descent_level *levels; /* from the top on; levels above `depth` keep their memory */
    size_t depth;
    size_t capacity;
};

/* Prepare to visit the tree at `path`, which stays where it is. 0, or -1 with errno. */
int descent_begin(struct descent *descent, const struct program_traversal *rules, const char *path,
                  struct tree_tally *tally);

/* Go to the next visit. */
enum descent_event descent_next(struct descent *descent);

/* After DESCENT_ENTER: neither its entries nor DESCENT_LEAVE for it. */
void descent_skip(struct descent *descent);

/* Release everything, back in the directory where it began. 0, or -1 with errno when it cannot go
 * back. */
int descent_end(struct descent *descent);

#endif
