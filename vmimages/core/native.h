/* The core as an ordinary program: ops in a directory, records to a file. */
#ifndef CORE_NATIVE_H
#define CORE_NATIVE_H

/* Replay the stream in the file `ops` in `directory`, writing records to the file `path`; manifests
 * are taken from the folder `manifests` (an absolute path) when it is not NULL. Returns an exit
 * status: 0, 1 when the workload failed, 2 when it could not be begun. */
int native_main(const char *directory, const char *ops, const char *path, const char *manifests);

#endif
