#include "mountinfo.h"

#include <stddef.h>
#include <string.h>

/* Undo the kernel's escapes: a backslash and three octal digits for space, tab, newline, '#' and
 * the backslash itself. */
static void unescape(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; to++) {
        if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' && from[2] <= '7'
            && from[3] >= '0' && from[3] <= '7') {
            *to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* A line: id, parent, major:minor, root, directory, mount options, any number of optional fields,
 * "-", type, device, super options. */
static bool parse_line(char *line, struct mountinfo *mount)
{
    char *before[6];
    char *after[3];
    char *rest = line;
    char *field;

    for (size_t number = 0; number < 6; number++)
        if ((before[number] = strsep(&rest, " ")) == NULL)
            return false;
    do {
        field = strsep(&rest, " ");
        if (field == NULL)
            return false;
    } while (strcmp(field, "-") != 0);
    for (size_t number = 0; number < 3; number++) {
        /* The options of the filesystem are the rest: some print spaces in them. */
        after[number] = number < 2 ? strsep(&rest, " ") : rest;
        if (after[number] == NULL)
            return false;
    }
    unescape(before[4]);
    unescape(after[0]);
    unescape(after[1]);
    *mount = (struct mountinfo){ .directory = before[4], .filesystem = after[0],
                                 .device = after[1], .mount_options = before[5],
                                 .super_options = after[2] };
    return true;
}

bool mountinfo_find(char *text, const char *directory, struct mountinfo *mount)
{
    bool found = false;
    char *line;

    while ((line = strsep(&text, "\n")) != NULL) {
        struct mountinfo candidate;
        if (parse_line(line, &candidate) && strcmp(candidate.directory, directory) == 0) {
            *mount = candidate;
            found = true;
        }
    }
    return found;
}
