/* Writes a tree of files below a directory, or checks it: `writer write DIR`, `writer check DIR`. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDERS = 4, FILES = 50, MOST = 20000 };

static unsigned char wanted[MOST], found[MOST];

/* From nothing to several blocks; the content tells each file from every other. */
static size_t content(unsigned number)
{
    unsigned state = number * 2654435761u + 1;
    size_t bytes = number * 97 % MOST;
    for (size_t i = 0; i < bytes; i++) {
        state = state * 1664525u + 1013904223u;
        wanted[i] = state >> 24;
    }
    return bytes;
}

static int failed(const char *what, const char *path)
{
    printf("%s %s: %s\n", what, path, strerror(errno));
    return 1;
}

static int visit(const char *path, unsigned number, int check)
{
    size_t bytes = content(number);
    int file = open(path, check ? O_RDONLY : O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (file < 0)
        return failed("open", path);
    errno = 0;
    if (!check && write(file, wanted, bytes) != (ssize_t)bytes)
        return failed("write", path);
    if (check && (read(file, found, MOST) != (ssize_t)bytes || memcmp(found, wanted, bytes)))
        return failed("content of", path);
    return close(file) ? failed("close", path) : 0;
}

int main(int argc, char **argv)
{
    int check = argc == 3 && !strcmp(argv[1], "check");
    char path[256];
    if (argc != 3)
        return 2;
    for (unsigned number = 0; number < FOLDERS * FILES; number++) {
        snprintf(path, sizeof path, "%s/%u", argv[2], number / FILES);
        if (!check && number % FILES == 0 && mkdir(path, 0755))
            return failed("mkdir", path);
        snprintf(path, sizeof path, "%s/%u/%u", argv[2], number / FILES, number);
        if (visit(path, number, check))
            return 1;
    }
    printf("%d files\n", FOLDERS * FILES);
    return 0;
}
