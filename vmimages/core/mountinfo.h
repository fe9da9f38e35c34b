/* The kernel's own list of mounts. */
#ifndef CORE_MOUNTINFO_H
#define CORE_MOUNTINFO_H

#include <stdbool.h>

struct mountinfo {
    const char *directory;
    const char *filesystem;
    const char *device;
    const char *mount_options; /* of this mount */
    const char *super_options; /* of the filesystem */
};

/* Find the last (uppermost) mount on `directory` in the text of /proc/self/mountinfo, which is cut
 * up in place: the strings point into it. False when there is none. */
bool mountinfo_find(char *text, const char *directory, struct mountinfo *mount);

#endif
