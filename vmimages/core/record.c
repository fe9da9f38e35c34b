#include "record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <termios.h>

#include "clock.h"
#include "crc32.h"
#include "file.h"
#include "version.h"

#define RECORD_FORMAT 1

static void send(struct recorder *records, const char *bytes, size_t length)
{
    if (file_write_all(records->port, bytes, length) != 0)
        records->lost(errno);
    if (!records->drains)
        return;
    while (tcdrain(records->port) != 0)
        if (errno != EINTR)
            records->lost(errno);
}

struct json *record_begin(struct recorder *records, const char *type)
{
    json_open(&records->line, records->bytes, sizeof records->bytes);
    json_count(&records->line, "seq", records->sequence);
    json_text(&records->line, "type", type);
    return &records->line;
}

void record_end(struct recorder *records)
{
    struct json *line = &records->line;
    char sum[9];

    (void)snprintf(sum, sizeof sum, "%08x",
                   (unsigned)crc32_update(0, line->bytes, line->length));
    json_text(line, "crc32", sum);
    json_close(line);
    if (line->overflowed || line->length == line->capacity)
        records->lost(EOVERFLOW);
    line->bytes[line->length++] = '\n';
    records->sequence++;
    records->written++;
    send(records, line->bytes, line->length);
}

void record_hello(struct recorder *records)
{
    struct json *record = record_begin(records, "hello");
    struct utsname names;
    char clocksource[64];

    if (uname(&names) != 0)
        memset(&names, 0, sizeof names);
    clock_source(clocksource, sizeof clocksource);
    json_integer(record, "format", RECORD_FORMAT);
    json_text(record, "core", CORE_VERSION);
    json_text(record, "kernel", names.release);
    json_text(record, "build", names.version);
    json_text(record, "clocksource", clocksource);
    json_integer(record, "monotonic_ns", clock_now_ns());
    record_end(records);
}

void record_last(struct recorder *records, bool succeeded)
{
    struct json *record = record_begin(records, "end");

    json_text(record, "status", succeeded ? "ok" : "failed");
    json_count(record, "records", records->written + 1);
    record_end(records);
}

void record_repeat(struct recorder *records)
{
    send(records, records->line.bytes, records->line.length);
}

void record_garble(struct recorder *records)
{
    static const char half[] = "{\"seq\":0,\"type\":\"pha";

    send(records, half, sizeof half - 1);
}

void record_skip(struct recorder *records)
{
    records->sequence++;
}
