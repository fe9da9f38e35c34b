#include "call.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "caches.h"
#include "pattern.h"

/* Bytes of one read(2) or write(2). */
#define PIECE_BYTES PATTERN_BYTES

static uint8_t read_buffer[PIECE_BYTES] __attribute__((aligned(4096)));

void call_prepare_reads(void)
{
    memset(read_buffer, 1, sizeof read_buffer);
}

void call_close_all(struct calls *calls)
{
    for (size_t slot = 0; slot < SLOTS; slot++)
        if (calls->slots[slot] >= 0)
            (void)close(calls->slots[slot]);
}

/* The file of an operation whose first number is a slot. */
static int file_of(const struct arguments *with, const struct calls *calls)
{
    return calls->slots[with->number[0]];
}

int call_mkdir(const struct arguments *with, struct calls *calls)
{
    (void)calls;
    return mkdir(with->text[0], (mode_t)with->number[0]);
}

int call_create(const struct arguments *with, struct calls *calls)
{
    int descriptor = creat(with->text[0], (mode_t)with->number[0]);

    (void)calls;
    return descriptor < 0 ? -1 : close(descriptor);
}

int call_unlink(const struct arguments *with, struct calls *calls)
{
    (void)calls;
    return unlink(with->text[0]);
}

int call_rmdir(const struct arguments *with, struct calls *calls)
{
    (void)calls;
    return rmdir(with->text[0]);
}

int call_chdir(const struct arguments *with, struct calls *calls)
{
    (void)calls;
    return chdir(with->text[0]);
}

int call_sync(const struct arguments *with, struct calls *calls)
{
    (void)with;
    (void)calls;
    sync();
    return 0;
}

int call_open(const struct arguments *with, struct calls *calls)
{
    /* A program that the stream runs must not inherit it. */
    int descriptor = open(with->text[0], (int)with->number[1] | O_CLOEXEC,
                          (mode_t)with->number[2]);

    if (descriptor < 0)
        return CALL_FAILED;
    calls->slots[with->number[0]] = descriptor;
    calls->paths[with->number[0]] = with->text[0];
    return 0;
}

int call_close(const struct arguments *with, struct calls *calls)
{
    int descriptor = file_of(with, calls);

    calls->slots[with->number[0]] = -1;
    return close(descriptor);
}

int call_write(const struct arguments *with, struct calls *calls)
{
    int descriptor = file_of(with, calls);
    const uint8_t *content = pattern_content(with->number[1], with->number[2]);
    uint64_t length = with->number[3];

    for (uint64_t done = 0; done < length;) {
        /* Pieces begin where the pattern repeats, also after a write that was cut short. */
        uint64_t at = done % PIECE_BYTES;
        uint64_t piece = length - done < PIECE_BYTES - at ? length - done : PIECE_BYTES - at;
        ssize_t put = write(descriptor, content + at, (size_t)piece);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return CALL_FAILED;
        done += (uint64_t)put;
        calls->bytes += (uint64_t)put;
    }
    return 0;
}

int call_read(const struct arguments *with, struct calls *calls)
{
    int descriptor = file_of(with, calls);
    uint64_t left = with->number[1];

    while (left > 0) {
        size_t piece = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        ssize_t got = read(descriptor, read_buffer, piece);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return CALL_FAILED;
        if (got == 0)
            break;
        left -= (uint64_t)got;
        calls->bytes += (uint64_t)got;
    }
    return 0;
}

int call_fsync(const struct arguments *with, struct calls *calls)
{
    return fsync(file_of(with, calls));
}

int call_fdatasync(const struct arguments *with, struct calls *calls)
{
    return fdatasync(file_of(with, calls));
}

int call_sync_file_range(const struct arguments *with, struct calls *calls)
{
    return sync_file_range(file_of(with, calls), (off_t)with->number[1], (off_t)with->number[2],
                           (unsigned)with->number[3]);
}

int call_fallocate(const struct arguments *with, struct calls *calls)
{
    if (fallocate(file_of(with, calls), (int)with->number[1], (off_t)with->number[2],
                  (off_t)with->number[3]) == 0)
        return 0;
    return errno == EOPNOTSUPP ? CALL_PASSED_OVER : CALL_FAILED;
}

int call_ftruncate(const struct arguments *with, struct calls *calls)
{
    return ftruncate(file_of(with, calls), (off_t)with->number[1]);
}

int call_fchmod(const struct arguments *with, struct calls *calls)
{
    return fchmod(file_of(with, calls), (mode_t)with->number[1]);
}

int call_fchown(const struct arguments *with, struct calls *calls)
{
    return fchown(file_of(with, calls), (uid_t)with->number[1], (gid_t)with->number[2]);
}

int call_futimens(const struct arguments *with, struct calls *calls)
{
    const struct timespec at = { .tv_sec = (time_t)with->number[1] };
    const struct timespec times[2] = { at, at };

    return futimens(file_of(with, calls), times);
}

int call_rename(const struct arguments *with, struct calls *calls)
{
    (void)calls;
    return rename(with->text[0], with->text[1]);
}

int call_link(const struct arguments *with, struct calls *calls)
{
    (void)calls;
    return link(with->text[0], with->text[1]);
}

int call_symlink(const struct arguments *with, struct calls *calls)
{
    (void)calls;
    return symlink(with->text[0], with->text[1]);
}

int call_truncate(const struct arguments *with, struct calls *calls)
{
    (void)calls;
    return truncate(with->text[0], (off_t)with->number[0]);
}

int call_stat(const struct arguments *with, struct calls *calls)
{
    struct stat about;

    (void)calls;
    return lstat(with->text[0], &about);
}

int call_chmod(const struct arguments *with, struct calls *calls)
{
    (void)calls;
    return chmod(with->text[0], (mode_t)with->number[0]);
}

int call_utimes(const struct arguments *with, struct calls *calls)
{
    const struct timespec at = { .tv_sec = (time_t)with->number[0] };
    const struct timespec times[2] = { at, at };

    (void)calls;
    return utimensat(AT_FDCWD, with->text[0], times, AT_SYMLINK_NOFOLLOW);
}

int call_drop_caches(const struct arguments *with, struct calls *calls)
{
    (void)with;
    if (calls->native)
        return CALL_PASSED_OVER;
    if (caches_drop() == 0)
        return 0;
    calls->path = CACHES_PATH;
    return CALL_FAILED;
}

int call_command(const struct arguments *with, struct calls *calls)
{
    return batch_run(&calls->batch, with->text[0], &with->list[0], &with->list[1], calls->failure)
                   == 0
               ? 0
               : CALL_TOLD;
}
