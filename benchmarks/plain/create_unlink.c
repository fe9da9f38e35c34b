/* Create and delete N files in one directory, the way a small C program does it: what the core's
 * replay is compared with. Usage: create_unlink N [DIRECTORY]; prints `create NS` and `delete NS`,
 * nanoseconds of each loop. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void give_up(const char *what)
{
    (void)fprintf(stderr, "create_unlink: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec now;

    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0)
        give_up("clock_gettime");
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int main(int count, char **arguments)
{
    const char *directory = count > 2 ? arguments[2] : "d";
    int files = count > 1 ? atoi(arguments[1]) : 0;
    char name[16];
    int64_t begin_ns;
    int64_t create_ns;
    int64_t delete_ns;

    if (files <= 0) {
        (void)fprintf(stderr, "usage: create_unlink N [DIRECTORY]\n");
        return 2;
    }
    (void)umask(0);
    if (mkdir(directory, 0755) != 0 || chdir(directory) != 0)
        give_up(directory);

    begin_ns = now_ns();
    for (int file = 0; file < files; file++) {
        int descriptor;
        (void)sprintf(name, "%d", file);
        descriptor = creat(name, 0644);
        if (descriptor < 0 || close(descriptor) != 0)
            give_up(name);
    }
    create_ns = now_ns() - begin_ns;

    begin_ns = now_ns();
    for (int file = 0; file < files; file++) {
        (void)sprintf(name, "%d", file);
        if (unlink(name) != 0)
            give_up(name);
    }
    delete_ns = now_ns() - begin_ns;

    if (chdir("..") != 0 || rmdir(directory) != 0)
        give_up(directory);
    (void)printf("create %lld\ndelete %lld\n", (long long)create_ns, (long long)delete_ns);
    return fflush(stdout) == 0 ? 0 : 1;
}
