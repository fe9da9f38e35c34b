#include "failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "errname.h"
#include "kmsg.h"

int failure_set(struct failure *failure, const char *step, const char *operation, const char *path,
                int error, const char *format, ...)
{
    *failure = (struct failure){ .step = step, .operation = operation, .path = path,
                                 .error = error, .phase = "" };
    if (format == NULL) {
        (void)snprintf(failure->message, sizeof failure->message, "%s failed: %s", operation,
                       strerror(error));
    } else {
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(failure->message, sizeof failure->message, format, arguments);
        va_end(arguments);
    }
    return -1;
}

void failure_record(const struct failure *failure, struct recorder *records, bool to_log)
{
    struct json *record = record_begin(records, "fail");

    json_text(record, "step", failure->step);
    json_text(record, "operation", failure->operation);
    json_text(record, "path", failure->path);
    json_integer(record, "errno", failure->error);
    json_text(record, "error", errname(failure->error));
    if (failure->in_ops) {
        json_count(record, "index", failure->index);
        json_text(record, "phase", failure->phase);
    }
    json_text(record, "message", failure->message);
    record_end(records);
    if (to_log)
        kmsg_say("%s %s: %s", failure->step, failure->path, failure->message);
}
