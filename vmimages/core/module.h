/* Kernel modules. */
#ifndef CORE_MODULE_H
#define CORE_MODULE_H

#include <stddef.h>

#include "failure.h"
#include "record.h"

struct module_request {
    const char *path;
    const char *parameters; /* as the kernel takes them, "" for none */
};

/* Load one module into the kernel; one that is there already is fine, and one that another process
 * is just loading is waited for. 0, or -1 with errno. */
int module_load(const struct module_request *request);

/* Load modules in order in a child, so that a module that kills its loader does not kill this
 * process. Writes the `modules` record. 0, or -1 with the failure: of the step "module". */
int module_load_all(const struct module_request *requests, size_t count, struct recorder *records,
                    struct failure *failure);

#endif
