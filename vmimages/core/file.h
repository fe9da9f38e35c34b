/* Whole files and whole writes. */
#ifndef CORE_FILE_H
#define CORE_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Read the file `path` into `text` and end it with a NUL. Returns its length in bytes, or -1 with
 * errno; EFBIG when it does not fit in `capacity` with its NUL. */
ssize_t file_read_text(const char *path, char *text, size_t capacity);

/* Write `text` to the existing file `path`. 0, or -1 with errno. */
int file_write_text(const char *path, const char *text);

/* Write all bytes, at the file's position or at `offset_bytes`. 0, or -1 with errno. */
int file_write_all(int descriptor, const void *bytes, size_t length);
int file_write_all_at(int descriptor, const void *bytes, size_t length, uint64_t offset_bytes);

/* Read exactly `length` bytes from `offset_bytes`. 0, or -1 with errno; ENODATA when the file ends
 * before. */
int file_read_all_at(int descriptor, void *bytes, size_t length, uint64_t offset_bytes);

/* A file mapped for reading, private to this process. */
struct file_map {
    const uint8_t *bytes;
    size_t length;
};

/* Map the file `path`, with all its pages present at once when `populate` is not 0. 0, or -1 with
 * errno; an empty file gives length 0. */
int file_map(const char *path, int populate, struct file_map *map);
void file_unmap(struct file_map *map);

#endif
