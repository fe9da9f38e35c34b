/* Names of errors: 28 is "ENOSPC". */
#ifndef CORE_ERRNAME_H
#define CORE_ERRNAME_H

/* The name of an errno, "" for 0, "E?" for a number without a name. */
const char *errname(int error);

#endif
