/* Faults on purpose: what a broken guest does, to test those who watch it. */
#ifndef CORE_FAULT_H
#define CORE_FAULT_H

#include <stdbool.h>

#include "record.h"

/* Whether there is a fault of this kind. */
bool fault_known(const char *kind);

/* Do it. In a guest a fault hits the machine; `native`, this process alone. 0 when the fault is one
 * that lets the run go on, -1 with errno when it could not be done. */
int fault_inject(const char *kind, struct recorder *records, bool native);

#endif
