/* What sets programs apart that walk, copy and remove trees, by their names and versions. */
#ifndef CORE_PROGRAM_H
#define CORE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* No directory has that many entries. */
#define PROGRAM_ALL ((size_t)-1)

/* How a program traverses a tree: gnulib's fts(3) as the program is built with it. */
struct program_traversal {
    bool changes_directory; /* chdir(2) into each directory; else openat(2) from descriptors */
    bool stats_all;         /* every entry; else only directories and what readdir cannot tell */
    bool stats_again;       /* a directory once more after it was opened */
    bool asks_filesystem;   /* statfs at the first directory without subdirectories */
    size_t sorts_above;     /* by inode, directories of more entries than this */
    size_t batch;           /* entries read before the first of them is visited */
};

/* How `rm -rf` removes. */
struct program_removal {
    bool probes_empty; /* opens each directory first to see whether anything is in it */
};

/* How `cp -a` copies. */
struct program_copying {
    size_t buffer_bytes;
    bool sorts;           /* by inode, each directory */
    bool advises;         /* posix_fadvise(SEQUENTIAL) on what it reads */
    bool links_have_xattrs; /* looks for extended attributes of symbolic links */
    bool opens_target;    /* to see whether it is a directory; else stat */
    bool stats_target;    /* once more, without following, when the source is known */
    bool reads_acls_first; /* both ACLs before any is set, special mode bits before ACLs */
};

struct program {
    const char *operation; /* "walk", "copy" or "remove" */
    const char *name;
    struct program_traversal traversal; /* of "walk" and "remove" */
    struct program_removal removal;
    struct program_copying copying;
};

/* The row for the name, with "+sorted" taken into account: entries by inode number whatever their
 * number, what the thread of 2012 proposed. False when there is none. */
bool program_find(const char *operation, const char *name, struct program *program);

#endif
