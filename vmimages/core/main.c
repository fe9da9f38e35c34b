/* One program under three names: /init, process 1 of a guest; /fsexp/modprobe, which the guest's
 * kernel calls; and an ordinary program. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "guest.h"
#include "modprobe.h"
#include "native.h"

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

int main(int count, char **arguments)
{
    const char *name = count > 0 ? arguments[0] : "";

    if (strcmp(base_name(name), "modprobe") == 0)
        return modprobe_main(count, arguments);
    /* Both, since process 1 of a container is not one of a guest. The kernel passes parts of its
     * command line as arguments, so that these decide nothing here. */
    if (getpid() == 1 && strcmp(name, "/init") == 0)
        guest_main();
    if ((count == 5 || count == 6) && strcmp(arguments[1], "native") == 0)
        return native_main(arguments[2], arguments[3], arguments[4],
                           count == 6 ? arguments[5] : NULL);
    (void)fprintf(stderr, "usage: core native DIRECTORY OPS RECORDS [MANIFESTS]\n");
    return 2;
}
