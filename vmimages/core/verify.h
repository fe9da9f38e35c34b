/* Whether a tree is what its manifest says. */
#ifndef CORE_VERIFY_H
#define CORE_VERIFY_H

#include <stdint.h>

#include "failure.h"

struct verify_tally {
    uint64_t entries;
    uint64_t bytes; /* of files, read and summed */
};

/* Compare the tree below the open directory `top`, every byte of it, with the file `manifest`; what ext4
 * calls "lost+found" at the top is passed over. 0, or -1 with the failure: of the step "verify" when
 * the tree is not that or cannot be read, of the step "manifest" when the manifest cannot be used. */
int verify_tree(int top, const char *manifest, struct verify_tally *tally,
                struct failure *failure);

#endif
