#include "stream.h"

#include <string.h>

#include "fault.h"
#include "tree.h"

/* PATH_MAX less the NUL: longer strings can only be a damaged length. */
#define TEXT_BYTES_MAX 4095

static const uint8_t header[STREAM_HEADER_BYTES] = {
    'F', 'S', 'E', 'X', 'P', 'O', 'P', 'S', 2, 0, 0, 0,
};

/* How far the check has come. */
struct check {
    const uint8_t *at;
    const uint8_t *end;
    bool in_phase;
    uint64_t open;     /* a bit for each slot */
    uint64_t commands; /* of the phase */
    struct stream_needs *needs;
};

static const char *check_text(struct check *check, uint64_t least_bytes, const char **text)
{
    uint64_t length;

    if (!leb128_read(&check->at, check->end, &length))
        return "a string's length is cut off or too large";
    if (length < least_bytes)
        return "a string is empty";
    if (length > TEXT_BYTES_MAX)
        return "a string is too long";
    if (length >= (uint64_t)(check->end - check->at))
        return "a string reaches beyond the end of the stream";
    if (check->at[length] != 0)
        return "a string has no NUL after it";
    if (memchr(check->at, 0, (size_t)length) != NULL)
        return "a string has a NUL within it";
    *text = (const char *)check->at;
    check->at += length + 1;
    return NULL;
}

static uint64_t most_of(char kind)
{
    switch (kind) {
    case 'o':
        return SLOTS - 1;
    case 'p':
        return PATTERNS - 1;
    case 'm':
        return 07777;
    case 'i':
        return UINT32_MAX;
    case 'f':
        return INT32_MAX;
    case 'n':
        return INT64_MAX;
    default:
        return UINT64_MAX;
    }
}

static const char *check_number(struct check *check, char kind, uint64_t *number)
{
    if (!leb128_read(&check->at, check->end, number))
        return "a number is cut off or too large";
    if (*number > most_of(kind))
        return "a number is out of range";
    return NULL;
}

static const char *check_list(struct check *check, struct list *list)
{
    const uint8_t *begin;
    const char *text;
    const char *wrong;

    if (!leb128_read(&check->at, check->end, &list->count))
        return "a number is cut off or too large";
    list->at = begin = check->at;
    for (uint64_t left = list->count; left > 0; left--) {
        if ((wrong = check_text(check, 0, &text)) != NULL)
            return wrong;
        if (check->at - begin > STREAM_LIST_BYTES_MAX)
            return "a list is too long";
    }
    return NULL;
}

static const char *check_arguments(struct check *check, const char *kinds, struct arguments *with)
{
    const char **text = with->text;
    uint64_t *number = with->number;
    struct list *list = with->list;

    for (; *kinds != '\0'; kinds++) {
        const char *wrong;
        if (*kinds == 's' || *kinds == 't')
            wrong = check_text(check, 1, text);
        else if (*kinds == 'l')
            wrong = check_list(check, list++);
        else
            wrong = check_number(check, *kinds, number++);
        if (wrong != NULL)
            return wrong;
        if (*kinds == 't' && strcmp(*text, "d") != 0 && strcmp(*text, "f") != 0)
            return "a type is not d or f";
        if (*kinds == 's' || *kinds == 't')
            text++;
    }
    return NULL;
}

/* An op with a slot: is the file open that it uses, is the slot free that it opens into? */
static const char *check_slot(struct check *check, enum opcode code, uint64_t slot)
{
    uint64_t bit = (uint64_t)1 << slot;

    if (code == OP_OPEN) {
        if ((check->open & bit) != 0)
            return "a slot is opened that is in use";
        check->open |= bit;
        return NULL;
    }
    if ((check->open & bit) == 0)
        return "a slot is used that is not open";
    if (code == OP_CLOSE)
        check->open &= ~bit;
    return NULL;
}

static const char *check_command(struct check *check, const struct arguments *with)
{
    const uint8_t *at = with->list[1].at;

    if (with->list[0].count == 0 || *with->list[0].at == 0)
        return "a command has no program";
    for (uint64_t left = with->list[1].count; left > 0; left--) {
        const char *text = stream_text(&at);
        if (text[0] == '=' || strchr(text, '=') == NULL)
            return "a variable has no name or no value";
    }
    check->commands = check->in_phase ? check->commands + 1 : 1;
    if (check->commands > check->needs->commands)
        check->needs->commands = check->commands;
    return NULL;
}

/* Check one op; what is wrong with it, or NULL. */
static const char *check_op(struct check *check)
{
    enum opcode code = *check->at++;
    const struct op *op = code < OPCODES ? &ops[code] : NULL;
    struct arguments with = { .text = { NULL } };
    const char *wrong;

    if (op == NULL || op->name == NULL)
        return "there is no such opcode";
    if ((wrong = check_arguments(check, op->arguments, &with)) != NULL)
        return wrong;
    if (op->arguments[0] == 'o' && (wrong = check_slot(check, code, with.number[0])) != NULL)
        return wrong;
    if (op->place == OUTSIDE && check->in_phase)
        return code == OP_END ? "the stream ends inside a phase"
                              : "something is inside a phase that must not be";
    switch (code) {
    case OP_PHASE:
        if (check->in_phase)
            return "a phase begins inside a phase";
        check->in_phase = true;
        check->commands = 0;
        break;
    case OP_PHASE_END:
        if (!check->in_phase)
            return "a phase ends that has not begun";
        check->in_phase = false;
        break;
    case OP_END:
        if (check->at != check->end)
            return "something follows the end";
        if (check->open != 0)
            return "the stream ends while a file is open";
        break;
    case OP_REMOUNT:
        if (check->open != 0)
            return "a remount while a file is open";
        break;
    case OP_WRITE:
        check->needs->patterns[with.number[1]] = true;
        break;
    case OP_READ:
        check->needs->reads = true;
        break;
    case OP_WALK:
    case OP_COPY:
    case OP_REMOVE:
        if (!tree_program_known(op->name, with.text[0]))
            return "there is no such program for this";
        break;
    case OP_COMMAND:
        return check_command(check, &with);
    case OP_FAULT:
        if (!fault_known(with.text[0]))
            return "there is no such fault";
        break;
    default:
        break;
    }
    return NULL;
}

bool stream_check(const uint8_t *bytes, size_t length, struct stream_needs *needs,
                  struct stream_complaint *complaint)
{
    struct check check = {
        .at = bytes + STREAM_HEADER_BYTES, .end = bytes + length, .needs = needs,
    };

    *needs = (struct stream_needs){ .commands = 0 };
    *complaint = (struct stream_complaint){ .text = NULL };
    if (length < STREAM_HEADER_BYTES || memcmp(bytes, header, STREAM_HEADER_BYTES) != 0) {
        complaint->text = "this is not an ops stream of version 2";
        return false;
    }
    for (;; complaint->index++) {
        complaint->offset_bytes = (size_t)(check.at - bytes);
        if (check.at == check.end) {
            complaint->text = "the stream has no end";
            return false;
        }
        bool last = *check.at == OP_END;
        complaint->text = check_op(&check);
        if (complaint->text != NULL)
            return false;
        if (last)
            return true;
    }
}
