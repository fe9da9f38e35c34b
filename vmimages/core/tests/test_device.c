/* What makes and measures disks, on plain files and folders. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calibrate.h"
#include "check.h"
#include "file.h"
#include "pseudo.h"

#define SIZE_BYTES (3 * 1024 * 1024)

/* Not below /tmp: where that is a tmpfs of an old kernel, it takes no direct transfers. */
static char folder[] = "build/device-test-XXXXXX";

static const char *in_folder(const char *name)
{
    static char paths[4][64];
    static int next;
    char *path = paths[next++ % 4];

    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void test_pseudo(void)
{
    struct failure failure;
    struct stat about;
    char text[32];

    CHECK(pseudo_mkdir(in_folder("made"), &failure) == 0);
    CHECK(stat(in_folder("made"), &about) == 0 && S_ISDIR(about.st_mode));
    CHECK(pseudo_mkdir(in_folder("made"), &failure) == -1);
    CHECK_TEXT(failure.step, "mkdir");
    CHECK(failure.error == EEXIST);
    CHECK(pseudo_wait(in_folder("made"), &failure) == 0);
    CHECK(pseudo_write(in_folder("value"), "1", &failure) == -1);
    CHECK_TEXT(failure.step, "write");
    CHECK(failure.error == ENOENT);
    (void)close(open(in_folder("value"), O_CREAT | O_WRONLY, 0600));
    CHECK(pseudo_write(in_folder("value"), "8000000", &failure) == 0);
    CHECK(file_read_text(in_folder("value"), text, sizeof text) == 7);
    CHECK_TEXT(text, "8000000");
    CHECK(pseudo_mount("nosuchfs", in_folder("made"), &failure) == -1);
    CHECK_TEXT(failure.step, "filesystem");
}

/* The value of a member, -1 where it is not there. */
static long long member(const char *line, const char *name)
{
    const char *at = strstr(line, name);

    return at == NULL ? -1 : atoll(at + strlen(name));
}

static void test_calibrate(void)
{
    static unsigned char before[SIZE_BYTES];
    static unsigned char after[SIZE_BYTES];
    static char line[4096];
    static struct recorder records;
    struct failure failure;
    int file = open(in_folder("disk"), O_RDWR | O_CREAT, 0600);

    for (size_t at = 0; at < sizeof before; at++)
        before[at] = (unsigned char)(at * 31 >> 7);
    CHECK(file_write_all(file, before, sizeof before) == 0);
    records.port = open(in_folder("records"), O_RDWR | O_CREAT, 0600);
    if (calibrate(in_folder("disk"), &records, &failure) != 0) {
        /* This machine's filesystem has no direct transfers: nothing to measure. */
        CHECK(failure.error == EINVAL);
        return;
    }
    CHECK(file_read_all_at(file, after, sizeof after, 0) == 0);
    CHECK(memcmp(before, after, sizeof before) == 0);
    CHECK(file_read_text(in_folder("records"), line, sizeof line) > 0);
    CHECK(strstr(line, "\"type\":\"calibration\"") != NULL);
    CHECK(member(line, "\"requests\":") == 64);
    CHECK(member(line, "\"request_bytes\":") == 4096);
    CHECK(member(line, "\"sequential_bytes\":") == 268435456);
    CHECK(member(line, "\"read_ns\":") > 0);
    CHECK(member(line, "\"write_ns\":") > 0);
    CHECK(member(line, "\"flush_ns\":") > 0);
    CHECK(member(line, "\"sequential_ns\":") > 0);
    (void)close(file);
    CHECK(truncate(in_folder("disk"), 4096) == 0);
    CHECK(calibrate(in_folder("disk"), &records, &failure) == -1);
    CHECK_TEXT(failure.step, "calibrate");
    CHECK(failure.error == ENOSPC);
}

int main(void)
{
    static const char *const names[] = { "value", "disk", "records" };

    if (mkdtemp(folder) == NULL) {
        perror(folder);
        return 1;
    }
    test_pseudo();
    test_calibrate();
    for (size_t row = 0; row < sizeof names / sizeof names[0]; row++)
        (void)unlink(in_folder(names[row]));
    (void)rmdir(in_folder("made"));
    (void)rmdir(folder);
    return checks_outcome("device");
}
