/* What `cp -a` carries over to a copy when its data is there: extended attributes, ACLs, mode. */
#ifndef CORE_ATTRIBUTES_H
#define CORE_ATTRIBUTES_H

#include <stdbool.h>
#include <sys/stat.h>

#include "tree.h"

/* A file and its copy: by descriptors where both are open, else -1 and by paths. */
struct attributes_pair {
    const char *source_path;
    const char *target_path;
    int source;
    int target;
};

/* The extended attributes, as libattr's attr_copy_fd() and attr_copy_file() copy them; a filesystem
 * that has none is passed over. 0, or -1 with errno. */
int attributes_copy_xattrs(const struct attributes_pair *pair, struct tree_tally *tally);

/* The ACLs, as libacl reads and writes them, and the mode; only the mode where the filesystem has no
 * ACLs. Mode bits that ACLs do not hold are set before them, or after. 0, or -1 with errno. */
int attributes_copy_mode(const struct attributes_pair *pair, mode_t mode, bool mode_first,
                         struct tree_tally *tally);

#endif
