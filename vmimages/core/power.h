/* The end of the machine. */
#ifndef CORE_POWER_H
#define CORE_POWER_H

#include <stdnoreturn.h>

/* Power off at once, without a sync. */
noreturn void power_off(void);

#endif
