#include "program.h"

#include <string.h>

#define SORTED "+sorted"

static const struct program programs[] = {
    /* find 4.4.2 of May 2009 has gnulib's fts.c of December 2007: it sorts nothing, knows no
     * FTS_CWDFD here (find/ftsfind.c: FTS_NOSTAT | FTS_TIGHT_CYCLE_CHECK), and hands find no type:
     * what fts did not stat, find does (find/util.c, get_statinfo). */
    { .operation = "walk",
      .name = "findutils-4.4.2",
      .traversal = { .changes_directory = true, .stats_all = true, .sorts_above = PROGRAM_ALL,
                     .batch = PROGRAM_ALL } },
    /* find 4.9.0: FTS_CWDFD added, d_type handed over. gnulib's fts.c of 2022: inode order above
     * FTS_INODE_SORT_DIR_ENTRIES_THRESHOLD, at most FTS_MAX_READDIR_ENTRIES at a time (since August
     * 2011), FTS_TIGHT_CYCLE_CHECK stats again. */
    { .operation = "walk",
      .name = "findutils-4.9",
      .traversal = { .stats_again = true, .asks_filesystem = true, .sorts_above = 10000,
                     .batch = 100000 } },
    /* src/remove.c of 8.12, April 2011, with fts.c of gnulib a81348d2e136: no batches yet, and prompt()
     * returns for `rm -f` before it would look whether a directory is empty. */
    { .operation = "remove",
      .name = "coreutils-8.12",
      .traversal = { .sorts_above = 10000, .batch = PROGRAM_ALL } },
    /* 9.1, gnulib 58c597d13bc5. prompt() looks into each directory first (since 8.20). */
    { .operation = "remove",
      .name = "coreutils-9.1",
      .traversal = { .asks_filesystem = true, .sorts_above = 10000, .batch = 100000 },
      .removal = { .probes_empty = true } },
    /* src/copy.c of 8.12: savedir() in readdir order (until 8.22), no fadvise (before 8.17); 32 KiB in
     * src/system.h; copy-acl.c of gnulib a81348d2e136. */
    { .operation = "copy", .name = "coreutils-8.12", .copying = { .buffer_bytes = 32768 } },
    /* 9.1: savedir(SAVEDIR_SORT_FASTREAD), which is inode order (since 8.23); 128 KiB in
     * src/ioblksize.h (8.23 to 9.4). */
    { .operation = "copy",
      .name = "coreutils-9.1",
      .copying = { .buffer_bytes = 131072, .sorts = true, .advises = true,
                   .links_have_xattrs = true, .opens_target = true, .stats_target = true,
                   .reads_acls_first = true } },
};

bool program_find(const char *operation, const char *name, struct program *program)
{
    size_t length = strlen(name);
    size_t suffix = strlen(SORTED);
    bool sorted = length > suffix && strcmp(name + length - suffix, SORTED) == 0;

    if (sorted)
        length -= suffix;
    for (size_t row = 0; row < sizeof programs / sizeof programs[0]; row++) {
        if (strcmp(programs[row].operation, operation) != 0
            || strlen(programs[row].name) != length
            || memcmp(programs[row].name, name, length) != 0)
            continue;
        *program = programs[row];
        if (sorted) {
            program->traversal.sorts_above = 0;
            program->traversal.batch = PROGRAM_ALL;
            program->copying.sorts = true;
        }
        return true;
    }
    return false;
}
