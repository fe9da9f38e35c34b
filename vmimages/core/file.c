#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Close without losing the error that led here. */
static int close_failed(int descriptor)
{
    int error = errno;

    (void)close(descriptor);
    errno = error;
    return -1;
}

ssize_t file_read_text(const char *path, char *text, size_t capacity)
{
    size_t length = 0;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);

    if (descriptor < 0)
        return -1;
    for (;;) {
        if (length == capacity) {
            errno = EFBIG;
            return close_failed(descriptor);
        }
        ssize_t got = read(descriptor, text + length, capacity - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return close_failed(descriptor);
        if (got == 0)
            break;
        length += (size_t)got;
    }
    text[length] = '\0';
    (void)close(descriptor);
    return (ssize_t)length;
}

int file_write_text(const char *path, const char *text)
{
    int descriptor = open(path, O_WRONLY | O_CLOEXEC);

    if (descriptor < 0)
        return -1;
    if (file_write_all(descriptor, text, strlen(text)) != 0)
        return close_failed(descriptor);
    return close(descriptor);
}

int file_write_all(int descriptor, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;

    while (length > 0) {
        ssize_t put = write(descriptor, at, length);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -1;
        if (put == 0) {
            errno = EIO;
            return -1;
        }
        at += put;
        length -= (size_t)put;
    }
    return 0;
}

int file_write_all_at(int descriptor, const void *bytes, size_t length, uint64_t offset_bytes)
{
    const uint8_t *at = bytes;

    while (length > 0) {
        ssize_t put = pwrite(descriptor, at, length, (off_t)offset_bytes);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -1;
        if (put == 0) {
            errno = EIO;
            return -1;
        }
        at += put;
        length -= (size_t)put;
        offset_bytes += (uint64_t)put;
    }
    return 0;
}

int file_read_all_at(int descriptor, void *bytes, size_t length, uint64_t offset_bytes)
{
    uint8_t *at = bytes;

    while (length > 0) {
        ssize_t got = pread(descriptor, at, length, (off_t)offset_bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0) {
            errno = ENODATA;
            return -1;
        }
        at += got;
        length -= (size_t)got;
        offset_bytes += (uint64_t)got;
    }
    return 0;
}

int file_map(const char *path, int populate, struct file_map *map)
{
    struct stat about;
    void *bytes;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);

    *map = (struct file_map){ .bytes = NULL, .length = 0 };
    if (descriptor < 0)
        return -1;
    if (fstat(descriptor, &about) != 0)
        return close_failed(descriptor);
    if (about.st_size == 0)
        return close(descriptor);
    bytes = mmap(NULL, (size_t)about.st_size, PROT_READ,
                 MAP_PRIVATE | (populate != 0 ? MAP_POPULATE : 0), descriptor, 0);
    if (bytes == MAP_FAILED)
        return close_failed(descriptor);
    *map = (struct file_map){ .bytes = bytes, .length = (size_t)about.st_size };
    return close(descriptor);
}

void file_unmap(struct file_map *map)
{
    if (map->length > 0)
        (void)munmap((void *)map->bytes, map->length);
    *map = (struct file_map){ .bytes = NULL, .length = 0 };
}
