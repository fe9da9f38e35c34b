/* What operations do: each one system call or a few. */
#ifndef CORE_CALL_H
#define CORE_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "arguments.h"
#include "batch.h"
#include "failure.h"
#include "trees.h"

#define SLOTS 64

/* What outlives an operation. */
struct calls {
    bool native;
    uint64_t bytes;           /* that the last operation moved; whoever counts them makes it 0 */
    int slots[SLOTS];         /* open files, or -1 */
    const char *paths[SLOTS]; /* what they were opened as */
    const char *path;         /* where the operation failed, when none of its arguments says it */
    struct batch batch;       /* programs that were run, not recorded yet */
    struct trees trees;       /* trees that were handled, not recorded yet */
    struct failure *failure;  /* for CALL_TOLD */
};

/* How an operation ended, beside 0: without success, with errno; the same, with the failure filled
 * in; not done, which is a finding and no failure. */
enum { CALL_FAILED = -1, CALL_TOLD = -2, CALL_PASSED_OVER = 1 };

typedef int call_function(const struct arguments *with, struct calls *calls);

call_function call_mkdir, call_create, call_unlink, call_rmdir, call_chdir, call_sync;
call_function call_open, call_close, call_write, call_read, call_fsync, call_fdatasync;
call_function call_sync_file_range, call_fallocate, call_ftruncate, call_fchmod, call_fchown;
call_function call_futimens, call_rename, call_link, call_symlink, call_truncate, call_stat;
call_function call_chmod, call_utimes, call_drop_caches, call_command;
call_function call_walk, call_copy, call_remove;

/* Make the pages of the buffer present that reads go to, so that no phase pays for that. */
void call_prepare_reads(void);

/* Close what is open, after a failure. */
void call_close_all(struct calls *calls);

#endif
