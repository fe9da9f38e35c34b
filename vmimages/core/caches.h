/* The kernel's caches. */
#ifndef CORE_CACHES_H
#define CORE_CACHES_H

#define CACHES_PATH "/proc/sys/vm/drop_caches"

/* Drop what is clean of the page cache, the dentries and the inodes. 0, or -1 with errno. */
int caches_drop(void);

#endif
