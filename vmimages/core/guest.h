/* Process 1 of a guest. */
#ifndef CORE_GUEST_H
#define CORE_GUEST_H

#include <stdnoreturn.h>

/* Mount what a system needs, open the records' port, do the setup, power off. */
noreturn void guest_main(void);

#endif
