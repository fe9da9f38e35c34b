#include "ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fault.h"
#include "file.h"
#include "mount.h"
#include "phase.h"
#include "space.h"
#include "stream.h"
#include "verify.h"

#define STEP "ops"

/* A replay under way. */
struct replay {
    const uint8_t *bytes;
    const char *directory;
    int top; /* the directory, open */
    const struct ops_native *native;
    struct calls calls;
    struct phase phase;
    struct recorder *records;
    struct failure *failure;
};

static int failed(struct replay *replay, const char *operation, const char *path)
{
    return failure_set(replay->failure, STEP, operation, path, errno, NULL);
}

static void record_caches(struct replay *replay, const char *operation, bool dropped)
{
    struct json *record = record_begin(replay->records, "caches");

    json_text(record, "operation", operation);
    json_integer(record, "dropped", dropped);
    record_end(replay->records);
}

/* Of an operation that has ended outside a phase. */
static void note_outside(struct replay *replay, enum opcode code, int outcome)
{
    replay->calls.bytes = 0;
    batch_record(&replay->calls.batch, "", replay->records);
    trees_record(&replay->calls.trees, "", replay->records);
    if (code == OP_DROP_CACHES)
        record_caches(replay, ops[code].name, outcome == 0);
}

static inline void note(struct replay *replay, enum opcode code, int outcome)
{
    struct latency *latency;

    if (!replay->phase.running) {
        note_outside(replay, code, outcome);
        return;
    }
    latency = phase_note(&replay->phase, code);
    latency->bytes += replay->calls.bytes;
    replay->calls.bytes = 0;
    latency->errors += (uint64_t)outcome;
}

static int enter(struct replay *replay)
{
    replay->top = open(replay->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (replay->top < 0 || fchdir(replay->top) != 0)
        return failed(replay, "chdir", replay->directory);
    return 0;
}

/* Leave the filesystem, so that it can be unmounted. */
static int leave(struct replay *replay)
{
    (void)close(replay->top);
    replay->top = -1;
    return chdir("/") == 0 ? 0 : failed(replay, "chdir", "/");
}

static int remount(struct replay *replay)
{
    if (replay->calls.native) {
        sync();
        if (fchdir(replay->top) != 0)
            return failed(replay, "chdir", replay->directory);
    } else if (leave(replay) != 0 || mount_again(replay->failure) != 0 || enter(replay) != 0) {
        return -1;
    }
    record_caches(replay, ops[OP_REMOUNT].name, !replay->calls.native);
    return 0;
}

/* Where a manifest is that the stream names by `path`. */
static const char *manifest_at(const struct replay *replay, const char *path)
{
    static char place[2 * 4096];
    const char *slash = strrchr(path, '/');

    if (replay->native == NULL || replay->native->manifests == NULL)
        return path;
    (void)snprintf(place, sizeof place, "%s/%s", replay->native->manifests,
                   slash == NULL ? path : slash + 1);
    return place;
}

static int verify(struct replay *replay, const char *manifest)
{
    struct verify_tally tally;
    struct json *record;

    if (verify_tree(replay->top, manifest_at(replay, manifest), &tally, replay->failure) != 0)
        return -1;
    record = record_begin(replay->records, "verify");
    json_text(record, "manifest", manifest);
    json_count(record, "entries", tally.entries);
    json_count(record, "bytes", tally.bytes);
    record_end(replay->records);
    return 0;
}

static int end_phase(struct replay *replay)
{
    const char *name = replay->phase.name;

    phase_end(&replay->phase, replay->records);
    batch_record(&replay->calls.batch, name, replay->records);
    trees_record(&replay->calls.trees, name, replay->records);
    return space_record(replay->records, replay->top, name) == 0 ? 0
                                                                 : failed(replay, "fstatfs", "");
}

/* An op that is no system call but steers the replay. */
static int steer(struct replay *replay, enum opcode code, const struct arguments *with)
{
    switch (code) {
    case OP_PHASE:
        phase_begin(&replay->phase, with->text[0]);
        return 0;
    case OP_PHASE_END:
        return end_phase(replay);
    case OP_REMOUNT:
        return remount(replay);
    case OP_VERIFY:
        return verify(replay, with->text[0]);
    case OP_FAULT:
        if (fault_inject(with->text[0], replay->records, replay->calls.native) != 0)
            return failed(replay, ops[code].name, with->text[0]);
        return 0;
    default: /* OP_END */
        return 0;
    }
}

/* The failure of a system call that an op has made. */
static int call_failed(struct replay *replay, const struct op *op, const struct arguments *with)
{
    const char *path = replay->calls.path;

    if (path == NULL && strcmp(op->arguments, "ss") == 0)
        return failure_set(replay->failure, STEP, op->name, with->text[0], errno,
                           "%s %.80s to %.80s failed: %s", op->name, with->text[0], with->text[1],
                           strerror(errno));
    if (path == NULL && strchr(op->arguments, 's') != NULL)
        path = with->text[0];
    if (path == NULL && op->arguments[0] == 'o')
        path = replay->calls.paths[with->number[0]];
    return failed(replay, op->name, path == NULL ? "" : path);
}

/* Replay a stream that has been checked: nothing is checked again. */
static int replay_all(struct replay *replay, uint64_t *index)
{
    const uint8_t *at = replay->bytes + STREAM_HEADER_BYTES;
    struct arguments with;

    for (*index = 0;; (*index)++) {
        enum opcode code = *at++;
        const struct op *op = &ops[code];

        at = stream_arguments(op->arguments, at, &with);
        if (op->run != NULL) {
            int outcome = op->run(&with, &replay->calls);
            if (outcome == CALL_FAILED)
                return call_failed(replay, op, &with);
            if (outcome == CALL_TOLD)
                return -1;
            note(replay, code, outcome);
        } else if (steer(replay, code, &with) != 0) {
            return -1;
        } else if (code == OP_END) {
            return 0;
        }
    }
}

static int prepare(const struct stream_needs *needs, struct calls *calls)
{
    for (size_t slot = 0; slot < SLOTS; slot++)
        calls->slots[slot] = -1;
    for (uint64_t pattern = 0; pattern < PATTERNS; pattern++)
        if (needs->patterns[pattern] && pattern_prepare(pattern) != 0)
            return -1;
    if (needs->reads)
        call_prepare_reads();
    return batch_reserve(&calls->batch, needs->commands);
}

int ops_run(const char *path, const char *directory, const struct ops_native *native,
            struct recorder *records, struct failure *failure)
{
    static struct replay replay;
    struct stream_complaint complaint;
    struct stream_needs needs;
    struct file_map stream;
    uint64_t index;

    if (file_map(path, 1, &stream) != 0)
        return failure_set(failure, STEP, "open", path, errno, NULL);
    if (!stream_check(stream.bytes, stream.length, &needs, &complaint)) {
        (void)failure_set(failure, STEP, "check", path, 0, "%s (op %llu, at byte %llu)",
                          complaint.text, (unsigned long long)complaint.index,
                          (unsigned long long)complaint.offset_bytes);
        failure->in_ops = true;
        failure->index = complaint.index;
        return -1;
    }
    replay = (struct replay){
        .bytes = stream.bytes,
        .directory = directory,
        .native = native,
        .calls = { .native = native != NULL, .failure = failure },
        .phase = { .name = "" },
        .records = records,
        .failure = failure,
    };
    if (prepare(&needs, &replay.calls) != 0)
        return failure_set(failure, STEP, "prepare", path, errno, NULL);
    if (enter(&replay) != 0)
        return -1;
    if (replay_all(&replay, &index) != 0) {
        /* After a failure the stream stays mapped: the failure points into it. */
        failure->in_ops = true;
        failure->index = index;
        failure->phase = replay.phase.name;
        batch_record(&replay.calls.batch, replay.phase.name, records);
        trees_record(&replay.calls.trees, replay.phase.name, records);
        call_close_all(&replay.calls);
        return -1;
    }
    if (leave(&replay) != 0)
        return -1;
    file_unmap(&stream);
    return 0;
}
