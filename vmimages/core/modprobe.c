#include "modprobe.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "errname.h"
#include "file.h"
#include "kmsg.h"
#include "module.h"

#define ALIASES "/fsexp/aliases"

static char folded(char letter)
{
    return letter == '-' ? '_' : letter;
}

static bool same_alias(const char *entry, size_t length, const char *alias)
{
    if (strlen(alias) != length)
        return false;
    for (size_t at = 0; at < length; at++)
        if (folded(entry[at]) != folded(alias[at]))
            return false;
    return true;
}

char *modprobe_find(char *table, const char *alias)
{
    char *line = table;

    while (*line != '\0') {
        size_t length = strcspn(line, "\n");
        char *next = line + length + (line[length] == '\n');
        size_t name_length = strcspn(line, "\t\n");
        if (line[name_length] == '\t' && same_alias(line, name_length, alias)) {
            line[length] = '\0';
            return line + name_length + 1;
        }
        line = next;
    }
    return NULL;
}

static char *read_table(void)
{
    struct stat about;
    char *table;

    if (stat(ALIASES, &about) != 0)
        return NULL;
    table = malloc((size_t)about.st_size + 1);
    if (table == NULL || file_read_text(ALIASES, table, (size_t)about.st_size + 1) < 0) {
        free(table);
        return NULL;
    }
    return table;
}

int modprobe_main(int count, char **arguments)
{
    const char *alias = count > 1 ? arguments[count - 1] : "";
    char *table = read_table();
    char *paths = table == NULL ? NULL : modprobe_find(table, alias);

    if (paths == NULL) {
        kmsg_say("modprobe: nothing for %s", alias);
        return 1;
    }
    for (char *path = strtok(paths, "\t"); path != NULL; path = strtok(NULL, "\t")) {
        struct module_request request = { .path = path, .parameters = "" };
        if (module_load(&request) != 0) {
            kmsg_say("modprobe: %s for %s: %s", path, alias, errname(errno));
            return 1;
        }
    }
    return 0;
}
