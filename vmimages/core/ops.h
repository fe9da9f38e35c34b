/* The ops stream: the filesystem operations of a workload, one after the other, in phases.
 *
 * 8 bytes "FSEXPOPS", u32 LE version 1, then ops: an opcode byte and its arguments. An integer is
 * unsigned LEB128; a string is its length as an integer, its bytes and one NUL, so that the pointer
 * into the stream goes to the system call as it is. */
#ifndef CORE_OPS_H
#define CORE_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "failure.h"
#include "record.h"

/* What is wrong with a stream, and where. */
struct ops_complaint {
    const char *text;
    uint64_t index;      /* the op's number, from 0 */
    size_t offset_bytes; /* of the op in the stream */
};

/* Check the whole stream: header, opcodes, lengths, NULs, ranges, phases that begin and end, an
 * `end` where the bytes end. False with the complaint when something is wrong. */
bool ops_check(const uint8_t *bytes, size_t length, struct ops_complaint *complaint);

/* Replay the stream in the file `path` in `directory`, writing `phase` and `space` records as
 * phases end, and go back to the root directory. In a guest (not `native`) faults hit the machine.
 * 0, or -1 with the failure: of the step "ops". */
int ops_run(const char *path, const char *directory, bool native, struct recorder *records,
            struct failure *failure);

#endif
