#include "trees.h"

#include <string.h>

static const char *const call_names[TREE_CALL_KINDS] = {
    [TREE_CALL_STAT] = "stat",
    [TREE_CALL_OPEN] = "open",
    [TREE_CALL_GETDENTS] = "getdents",
    [TREE_CALL_READ] = "read",
    [TREE_CALL_WRITE] = "write",
    [TREE_CALL_MAKE] = "make",
    [TREE_CALL_REMOVE] = "remove",
    [TREE_CALL_ATTRIBUTES] = "attributes",
    [TREE_CALL_QUERY] = "query",
};

struct tree_tally *trees_tally(struct trees *trees, const char *operation, const char *program)
{
    struct trees_row *row = trees->rows;

    while (row < trees->rows + trees->count
           && (strcmp(row->operation, operation) != 0 || strcmp(row->program, program) != 0))
        row++;
    if (row == trees->rows + trees->count) {
        *row = (struct trees_row){ .operation = operation, .program = program };
        trees->count++;
    }
    row->count++;
    return &row->tally;
}

static void record_row(const struct trees_row *row, const char *phase, struct recorder *records)
{
    struct json *record = record_begin(records, "tree");

    json_text(record, "phase", phase);
    json_text(record, "operation", row->operation);
    json_text(record, "program", row->program);
    json_count(record, "count", row->count);
    json_count(record, "files", row->tally.files);
    json_count(record, "directories", row->tally.directories);
    json_count(record, "matches", row->tally.matches);
    json_count(record, "bytes", row->tally.bytes);
    json_object_open(record, "calls");
    for (size_t kind = 0; kind < TREE_CALL_KINDS; kind++)
        json_count(record, call_names[kind], row->tally.calls[kind]);
    json_object_close(record);
    record_end(records);
}

void trees_record(struct trees *trees, const char *phase, struct recorder *records)
{
    for (size_t row = 0; row < trees->count; row++)
        record_row(&trees->rows[row], phase, records);
    trees->count = 0;
}
