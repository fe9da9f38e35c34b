#include "ops.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "fault.h"
#include "file.h"
#include "leb128.h"
#include "space.h"

#define STEP "ops"
#define HEADER_BYTES 12
/* PATH_MAX less the NUL: longer strings can only be a damaged length. */
#define TEXT_BYTES_MAX 4095
#define MODE_MAX 07777

static const uint8_t header[HEADER_BYTES] = { 'F', 'S', 'E', 'X', 'P', 'O', 'P', 'S', 1, 0, 0, 0 };

enum opcode {
    OP_PHASE = 0x01,
    OP_PHASE_END = 0x02,
    OP_END = 0x03,
    OP_MKDIR = 0x10,
    OP_CREATE = 0x11,
    OP_UNLINK = 0x12,
    OP_RMDIR = 0x13,
    OP_CHDIR = 0x14,
    OP_SYNC = 0x15,
    OP_FAULT = 0x7f,
};

struct arguments {
    const char *text;
    uint64_t number;
};

static int run_mkdir(const struct arguments *with)
{
    return mkdir(with->text, (mode_t)with->number);
}

static int run_create(const struct arguments *with)
{
    int descriptor = creat(with->text, (mode_t)with->number);

    return descriptor < 0 ? -1 : close(descriptor);
}

static int run_unlink(const struct arguments *with)
{
    return unlink(with->text);
}

static int run_rmdir(const struct arguments *with)
{
    return rmdir(with->text);
}

static int run_chdir(const struct arguments *with)
{
    return chdir(with->text);
}

static int run_sync(const struct arguments *with)
{
    (void)with;
    sync();
    return 0;
}

/* A row for each opcode; rows without a name are not opcodes. The arguments come in the order text,
 * number. Ops without a handler steer the replay and are not counted as operations. */
static const struct op_kind {
    const char *name;
    bool has_text;
    bool has_number;
    uint64_t number_max;
    int (*run)(const struct arguments *with); /* 0, or -1 with errno */
} kinds[256] = {
    [OP_PHASE] = { "phase", .has_text = true },
    [OP_PHASE_END] = { "phase-end" },
    [OP_END] = { "end" },
    [OP_MKDIR] = { "mkdir", true, true, MODE_MAX, run_mkdir },
    [OP_CREATE] = { "create", true, true, MODE_MAX, run_create },
    [OP_UNLINK] = { "unlink", .has_text = true, .run = run_unlink },
    [OP_RMDIR] = { "rmdir", .has_text = true, .run = run_rmdir },
    [OP_CHDIR] = { "chdir", .has_text = true, .run = run_chdir },
    [OP_SYNC] = { "sync", .run = run_sync },
    [OP_FAULT] = { "fault", .has_text = true },
};

/* Read one op's text; what is wrong with it, or NULL. */
static const char *check_text(const uint8_t **at, const uint8_t *end, const char **text)
{
    uint64_t length;

    if (!leb128_read(at, end, &length))
        return "a string's length is cut off or too large";
    if (length == 0)
        return "a string is empty";
    if (length > TEXT_BYTES_MAX)
        return "a string is too long";
    if (length >= (uint64_t)(end - *at))
        return "a string reaches beyond the end of the stream";
    if ((*at)[length] != 0)
        return "a string has no NUL after it";
    if (memchr(*at, 0, (size_t)length) != NULL)
        return "a string has a NUL within it";
    *text = (const char *)*at;
    *at += length + 1;
    return NULL;
}

/* Check one op; what is wrong with it, or NULL. */
static const char *check_op(const uint8_t **at, const uint8_t *end, bool *in_phase)
{
    enum opcode code = **at;
    const struct op_kind *kind = &kinds[code];
    struct arguments with = { .text = NULL, .number = 0 };
    const char *wrong;

    (*at)++;
    if (kind->name == NULL)
        return "there is no such opcode";
    if (kind->has_text && (wrong = check_text(at, end, &with.text)) != NULL)
        return wrong;
    if (kind->has_number && !leb128_read(at, end, &with.number))
        return "a number is cut off or too large";
    if (with.number > kind->number_max)
        return "a number is out of range";
    switch (code) {
    case OP_PHASE:
        if (*in_phase)
            return "a phase begins inside a phase";
        *in_phase = true;
        break;
    case OP_PHASE_END:
        if (!*in_phase)
            return "a phase ends that has not begun";
        *in_phase = false;
        break;
    case OP_END:
        if (*in_phase)
            return "the stream ends inside a phase";
        if (*at != end)
            return "something follows the end";
        break;
    case OP_FAULT:
        if (!fault_known(with.text))
            return "there is no such fault";
        break;
    default:
        break;
    }
    return NULL;
}

bool ops_check(const uint8_t *bytes, size_t length, struct ops_complaint *complaint)
{
    const uint8_t *at = bytes + HEADER_BYTES;
    const uint8_t *end = bytes + length;
    bool in_phase = false;

    *complaint = (struct ops_complaint){ .text = NULL };
    if (length < HEADER_BYTES || memcmp(bytes, header, HEADER_BYTES) != 0) {
        complaint->text = "this is not an ops stream of version 1";
        return false;
    }
    for (;; complaint->index++) {
        complaint->offset_bytes = (size_t)(at - bytes);
        if (at == end) {
            complaint->text = "the stream has no end";
            return false;
        }
        bool last = *at == OP_END;
        complaint->text = check_op(&at, end, &in_phase);
        if (complaint->text != NULL)
            return false;
        if (last)
            return true;
    }
}

static int op_failed(struct failure *failure, const char *operation, const char *path, int error,
                     uint64_t index, const char *phase)
{
    (void)failure_set(failure, STEP, operation, path, error, NULL);
    failure->in_ops = true;
    failure->index = index;
    failure->phase = phase;
    return -1;
}

static void record_phase(struct recorder *records, const char *name, int64_t elapsed_ns,
                         uint64_t operations)
{
    struct json *record = record_begin(records, "phase");

    json_text(record, "name", name);
    json_integer(record, "elapsed_ns", elapsed_ns);
    json_count(record, "operations", operations);
    /* No op moves data yet, and the first error ends the run with a `fail` record instead. */
    json_integer(record, "bytes", 0);
    json_integer(record, "errors", 0);
    record_end(records);
}

/* Replay a stream that ops_check has accepted: nothing is checked again, nothing is copied. */
static int replay(const uint8_t *bytes, int directory, bool native, struct recorder *records,
                  struct failure *failure)
{
    const uint8_t *at = bytes + HEADER_BYTES;
    const char *phase = "";
    struct arguments with = { .text = "", .number = 0 };
    uint64_t operations = 0;
    int64_t begin_ns = 0;
    int64_t elapsed_ns;

    for (uint64_t index = 0;; index++) {
        enum opcode code = *at++;
        const struct op_kind *kind = &kinds[code];

        if (kind->has_text) {
            uint64_t length = leb128_read_trusted(&at);
            with.text = (const char *)at;
            at += length + 1;
        }
        if (kind->has_number)
            with.number = leb128_read_trusted(&at);
        if (kind->run != NULL) {
            if (kind->run(&with) != 0)
                return op_failed(failure, kind->name, kind->has_text ? with.text : "", errno,
                                 index, phase);
            operations++;
            continue;
        }
        switch (code) {
        case OP_PHASE:
            phase = with.text;
            operations = 0;
            begin_ns = clock_now_ns();
            break;
        case OP_PHASE_END:
            elapsed_ns = clock_now_ns() - begin_ns;
            record_phase(records, phase, elapsed_ns, operations);
            if (space_record(records, directory, phase) != 0)
                return op_failed(failure, "fstatfs", "", errno, index, phase);
            phase = "";
            break;
        case OP_FAULT:
            if (fault_inject(with.text, records, native) != 0)
                return op_failed(failure, kind->name, with.text, errno, index, phase);
            break;
        default: /* OP_END */
            return 0;
        }
    }
}

int ops_run(const char *path, const char *directory, bool native, struct recorder *records,
            struct failure *failure)
{
    struct ops_complaint complaint;
    struct file_map stream;
    int top;
    int outcome;

    if (file_map(path, 1, &stream) != 0)
        return failure_set(failure, STEP, "open", path, errno, NULL);
    if (!ops_check(stream.bytes, stream.length, &complaint)) {
        (void)failure_set(failure, STEP, "check", path, 0, "%s (op %llu, at byte %llu)",
                          complaint.text, (unsigned long long)complaint.index,
                          (unsigned long long)complaint.offset_bytes);
        failure->in_ops = true;
        failure->index = complaint.index;
        return -1;
    }
    top = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0 || fchdir(top) != 0)
        return failure_set(failure, STEP, "chdir", directory, errno, NULL);
    outcome = replay(stream.bytes, top, native, records, failure);
    /* Leave the filesystem, so that it can be unmounted. After a failure the stream stays mapped:
     * the failure points into it. */
    (void)close(top);
    if (outcome == 0 && chdir("/") != 0)
        return failure_set(failure, STEP, "chdir", "/", errno, NULL);
    if (outcome == 0)
        file_unmap(&stream);
    return outcome;
}
