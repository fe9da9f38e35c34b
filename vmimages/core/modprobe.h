/* The answer to the kernel's own requests for modules. */
#ifndef CORE_MODPROBE_H
#define CORE_MODPROBE_H

#include <stdbool.h>

/* Find the line of `alias` in `table`: each line an alias and the paths of the modules to load, in
 * order, separated by TABs. '-' and '_' are the same. Returns the paths, still separated by TABs
 * and ended by a NUL that is written into the table, or NULL. */
char *modprobe_find(char *table, const char *alias);

/* The program: `modprobe [OPTION]... ALIAS`, as the kernel calls it. Returns its exit status. */
int modprobe_main(int count, char **arguments);

#endif
