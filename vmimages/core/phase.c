#include "phase.h"

#include <string.h>

void phase_begin(struct phase *phase, const char *name)
{
    phase->name = name;
    phase->running = true;
    memset(phase->operations, 0, sizeof phase->operations);
    counters_read(&phase->before);
    phase->begin_ns = clock_now_ns();
    phase->last_ns = phase->begin_ns;
}

static void record_phase(const struct phase *phase, int64_t elapsed_ns,
                         const struct counters *after, struct recorder *records)
{
    struct json *record = record_begin(records, "phase");
    uint64_t count = 0;
    uint64_t bytes = 0;
    uint64_t errors = 0;

    for (size_t code = 0; code < OPCODES; code++) {
        count += phase->operations[code].count;
        bytes += phase->operations[code].bytes;
        errors += phase->operations[code].errors;
    }
    json_text(record, "name", phase->name);
    json_integer(record, "elapsed_ns", elapsed_ns);
    json_count(record, "operations", count);
    json_count(record, "bytes", bytes);
    /* What was passed over; the first failure ends the run with a `fail` record instead. */
    json_count(record, "errors", errors);
    counters_add(record, &phase->before, after);
    record_end(records);
}

void phase_end(struct phase *phase, struct recorder *records)
{
    static struct counters after;
    int64_t elapsed_ns = clock_now_ns() - phase->begin_ns;

    counters_read(&after);
    record_phase(phase, elapsed_ns, &after, records);
    for (size_t code = 0; code < OPCODES; code++)
        if (phase->operations[code].count > 0)
            latency_record(&phase->operations[code], phase->name, ops[code].name, records);
    phase->running = false;
    phase->name = "";
}
