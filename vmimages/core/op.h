/* The operations: for each its number, its name, its arguments and what carries it out. */
#ifndef CORE_OP_H
#define CORE_OP_H

#include <stdint.h>

#include "call.h"

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
    OP_OPEN = 0x16,
    OP_CLOSE = 0x17,
    OP_WRITE = 0x18,
    OP_READ = 0x19,
    OP_FSYNC = 0x1a,
    OP_FDATASYNC = 0x1b,
    OP_SYNC_FILE_RANGE = 0x1c,
    OP_FALLOCATE = 0x1d,
    OP_FTRUNCATE = 0x1e,
    OP_FCHMOD = 0x1f,
    OP_FCHOWN = 0x20,
    OP_FUTIMENS = 0x21,
    OP_RENAME = 0x22,
    OP_LINK = 0x23,
    OP_SYMLINK = 0x24,
    OP_TRUNCATE = 0x25,
    OP_STAT = 0x26,
    OP_CHMOD = 0x27,
    OP_UTIMES = 0x28,
    OP_DROP_CACHES = 0x30,
    OP_REMOUNT = 0x31,
    OP_WALK = 0x40,
    OP_COPY = 0x41,
    OP_REMOVE = 0x42,
    OP_VERIFY = 0x50,
    OP_COMMAND = 0x60,
    OP_FAULT = 0x7f,
    OPCODES = 0x80,
};

/* A row for each opcode; rows without a name are not opcodes.
 *
 * Kinds of arguments: s a string; t the string "d" or "f"; o a slot of an open file; p a pattern's
 * number; m a mode; i a user or group; f flags of a call (31 bits); n an offset, length or time (63
 * bits); w any number (64 bits); l a list of strings. Each goes to the next place of its sort in
 * struct arguments. */
struct op {
    const char *name;
    const char *arguments;
    call_function *run;        /* NULL: steers the replay, and is not counted as an operation */
    enum { ANYWHERE, OUTSIDE } place; /* OUTSIDE: never inside a phase */
};

extern const struct op ops[OPCODES];

#endif
