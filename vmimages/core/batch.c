#include "batch.h"

#include <stdlib.h>

#include "command.h"
#include "stream.h"

struct batch_entry {
    struct list arguments;
    struct command_result result;
};

/* A string has at least two bytes. */
#define STRINGS_MAX (STREAM_LIST_BYTES_MAX / 2)

static char *arguments_now[STRINGS_MAX + 1];
static char *variables_now[STRINGS_MAX + 1];

static void point(const struct list *list, char **texts)
{
    const uint8_t *at = list->at;

    for (uint64_t left = list->count; left > 0; left--)
        *texts++ = (char *)stream_text(&at);
    *texts = NULL;
}

int batch_reserve(struct batch *batch, uint64_t capacity)
{
    *batch = (struct batch){ .entries = NULL };
    if (capacity == 0)
        return 0;
    /* Pages that no output reaches are never there. */
    batch->entries = calloc(capacity, sizeof *batch->entries);
    return batch->entries == NULL ? -1 : 0;
}

int batch_run(struct batch *batch, const char *directory, const struct list *arguments,
              const struct list *variables, struct failure *failure)
{
    struct batch_entry *entry = &batch->entries[batch->count];
    const struct command command = { directory, arguments_now, variables_now };

    point(arguments, arguments_now);
    point(variables, variables_now);
    entry->arguments = *arguments;
    if (command_execute(&command, &entry->result, failure) != 0)
        return -1;
    batch->count++;
    return command_check(arguments_now[0], &entry->result, failure);
}

void batch_record(struct batch *batch, const char *phase, struct recorder *records)
{
    for (uint64_t number = 0; number < batch->count; number++) {
        point(&batch->entries[number].arguments, arguments_now);
        command_record(records, phase, arguments_now, &batch->entries[number].result);
    }
    batch->count = 0;
}
