/* How full a filesystem is. */
#ifndef CORE_SPACE_H
#define CORE_SPACE_H

#include "record.h"

/* Write the `space` record of the filesystem that `directory` (a descriptor) is on, after the phase
 * of that name. 0, or -1 with errno. */
int space_record(struct recorder *records, int directory, const char *phase);

#endif
