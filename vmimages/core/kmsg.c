#include "kmsg.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void kmsg_say(const char *format, ...)
{
    /* Level 3 (error), so that it reaches the console under `quiet` too. One write is one line of
     * the log. */
    char line[800] = "<3>fsexp: ";
    size_t prefix = strlen(line);
    va_list arguments;
    int log = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);

    if (log < 0)
        return;
    va_start(arguments, format);
    (void)vsnprintf(line + prefix, sizeof line - prefix - 1, format, arguments);
    va_end(arguments);
    (void)strcat(line, "\n");
    if (write(log, line, strlen(line)) < 0) {
        /* As above. */
    }
    (void)close(log);
}
