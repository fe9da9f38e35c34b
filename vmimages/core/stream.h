/* The ops stream's bytes: the check of the whole, and the reading of one operation.
 *
 * 8 bytes "FSEXPOPS", u32 LE version 2, then ops: an opcode byte and its arguments. An integer is
 * unsigned LEB128; a string is its length as an integer, its bytes and one NUL, so that the pointer
 * into the stream goes to the system call as it is; a list is the number of its strings and
 * these. */
#ifndef CORE_STREAM_H
#define CORE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leb128.h"
#include "op.h"
#include "pattern.h"

#define STREAM_HEADER_BYTES 12
/* Of a list, with lengths and NULs: it has to fit into a record. */
#define STREAM_LIST_BYTES_MAX (64 * 1024)

/* What is wrong with a stream, and where. */
struct stream_complaint {
    const char *text;
    uint64_t index;      /* the op's number, from 0 */
    size_t offset_bytes; /* of the op in the stream */
};

/* What a stream needs to be made ready before it is replayed. */
struct stream_needs {
    bool patterns[PATTERNS];
    bool reads;
    uint64_t commands; /* the most that are kept until a phase has ended; 1 when all are outside */
};

/* Check the whole stream: header, opcodes, lengths, NULs, ranges, phases that begin and end, files
 * that are open when they are used and closed at the end, an `end` where the bytes end. False with
 * the complaint when something is wrong. */
bool stream_check(const uint8_t *bytes, size_t length, struct stream_needs *needs,
                  struct stream_complaint *complaint);

/* Read the string at `*at` of a stream that has been checked, and move `*at` past it. */
static inline const char *stream_text(const uint8_t **at)
{
    uint64_t length = leb128_read_trusted(at);
    const char *text = (const char *)*at;

    *at += length + 1;
    return text;
}

/* Read an op's arguments of a stream that has been checked; nothing is checked again, nothing is
 * copied. Returns where the next op begins. */
static inline const uint8_t *stream_arguments(const char *kinds, const uint8_t *at,
                                              struct arguments *with)
{
    const char **text = with->text;
    uint64_t *number = with->number;
    struct list *list = with->list;

    for (; *kinds != '\0'; kinds++)
        switch (*kinds) {
        case 's':
        case 't':
            *text++ = stream_text(&at);
            break;
        case 'l':
            list->count = leb128_read_trusted(&at);
            list->at = at;
            for (uint64_t left = list->count; left > 0; left--)
                (void)stream_text(&at);
            list++;
            break;
        default:
            *number++ = leb128_read_trusted(&at);
            break;
        }
    return at;
}

#endif
