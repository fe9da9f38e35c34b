/* Records: what a run reports, one JSON object a line, numbered and with a checksum each. */
#ifndef CORE_RECORD_H
#define CORE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "json.h"

/* The longest line: a command's output and its arguments (each at most 64 KiB, each byte at most
 * six when escaped) and what surrounds them. Untouched pages of the buffer cost nothing. */
#define RECORD_BYTES (1024 * 1024)

struct recorder {
    int port;                /* where lines are written */
    bool drains;             /* the port is a terminal: wait until a line has left the machine */
    void (*lost)(int error); /* called when a line cannot be written; must not return */
    uint64_t sequence;       /* the next record's number */
    uint64_t written;        /* records written */
    struct json line;        /* the record being made, or the last one */
    char bytes[RECORD_BYTES];
};

/* Begin a record of `type`; its members are then added to the object returned. */
struct json *record_begin(struct recorder *records, const char *type);

/* Seal the record and write it. When it returns, nothing of it is left to send: the next phase is
 * not disturbed. */
void record_end(struct recorder *records);

/* The first record: the format, this program, the kernel, its clock. */
void record_hello(struct recorder *records);

/* The last record. */
void record_last(struct recorder *records, bool succeeded);

/* Faults on purpose, to test the reader: the last record once more; the first half of a record that
 * never ends; a number left out. */
void record_repeat(struct recorder *records);
void record_garble(struct recorder *records);
void record_skip(struct recorder *records);

#endif
