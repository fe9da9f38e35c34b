/* Whole trees, walked, copied and removed as named programs of named versions do it: the same files
 * touched in the same order, by the same system calls. */
#ifndef CORE_TREE_H
#define CORE_TREE_H

#include <stdbool.h>
#include <stdint.h>

/* The longest path, with its NUL: PATH_MAX. */
#define TREE_PATH_BYTES 4096

/* Kinds of calls that reach the filesystem. */
enum tree_call {
    TREE_CALL_STAT,     /* lstat, stat, fstat, fstatat, fstatfs */
    TREE_CALL_OPEN,     /* of files and directories */
    TREE_CALL_GETDENTS, /* getdents64 */
    TREE_CALL_READ,     /* read, readlink */
    TREE_CALL_WRITE,
    TREE_CALL_MAKE,       /* mkdir, link, symlink */
    TREE_CALL_REMOVE,     /* unlinkat */
    TREE_CALL_ATTRIBUTES, /* chmod, chown, utimensat, set and remove xattr */
    TREE_CALL_QUERY,      /* list and get xattr */
    TREE_CALL_KINDS,
};

/* What was met, from the beginning of the tally on. */
struct tree_tally {
    uint64_t files;       /* that are not directories */
    uint64_t directories; /* the top of the tree included */
    uint64_t matches;     /* of a walk: of the type asked for */
    uint64_t bytes;       /* of a copy: written */
    uint64_t calls[TREE_CALL_KINDS];
    char path[TREE_PATH_BYTES]; /* where it failed, or was last */
};

/* Whether there is a program of that name for the op "walk", "copy" or "remove". */
bool tree_program_known(const char *operation, const char *program);

/* Each returns 0, or -1 with errno and the tally's path: the first error ends it. The paths are of at
 * most 4095 bytes and do not end in a slash. */

/* `find path -type d` or `-type f`, without the printing. */
int tree_walk(const char *program, const char *path, char type, struct tree_tally *tally);

/* `cp -a source target`, `target` not there before. Data is read and written, never shared; a file
 * with holes is copied as if it had none. Sockets, pipes and devices fail with EOPNOTSUPP. */
int tree_copy(const char *program, const char *source, const char *target,
              struct tree_tally *tally);

/* `rm -rf path`; unlike rm it fails when there is nothing at the path. */
int tree_remove(const char *program, const char *path, struct tree_tally *tally);

#endif
