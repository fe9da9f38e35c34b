/* Manifests, sound and not; trees that are what they should be, and each way of not being it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "manifest.h"
#include "tree.h"
#include "verify.h"

/* CRC-32 of "123456789" is cbf43926, the check value of that polynomial; of nothing it is 0. */
#define MANIFEST \
    "fsexp-manifest\t1\t7\n" \
    "a\td\t0755\t0\t-\n" \
    "a/\\x01\\x5c\\xff b\tf\t0600\t9\tcbf43926\n" \
    "a/l\tl\t0777\t5\t../\\x09c\n" \
    "a b\tf\t0644\t0\t00000000\n" \
    "a.c\td\t0700\t0\t-\n" \
    "a.c/lost+found\tf\t0644\t0\t00000000\n" \
    "z\tf\t4711\t9\tcbf43926\n"

static void put(const char *path, const char *content, mode_t mode)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    CHECK(descriptor >= 0);
    CHECK(write(descriptor, content, strlen(content)) == (ssize_t)strlen(content));
    CHECK(fchmod(descriptor, mode) == 0);
    CHECK(close(descriptor) == 0);
}

static void make_tree(void)
{
    CHECK(mkdir("t", 0755) == 0 && mkdir("t/a", 0755) == 0 && mkdir("t/a.c", 0700) == 0
          && mkdir("t/lost+found", 0700) == 0);
    put("t/lost+found/x", "", 0600);
    put("t/a/\1\\\xff b", "123456789", 0600);
    CHECK(symlink("../\tc", "t/a/l") == 0);
    put("t/a b", "", 0644);
    put("t/a.c/lost+found", "", 0644);
    put("t/z", "123456789", 04711);
}

static void remove_tree(void)
{
    static struct tree_tally tally;

    CHECK(tree_remove("coreutils-9.1", "t", &tally) == 0);
}

static struct failure failure;

static int verify(void)
{
    struct verify_tally tally;
    int top = open("t", O_RDONLY | O_DIRECTORY);
    int outcome = verify_tree(top, "manifest", &tally, &failure);

    if (outcome == 0)
        CHECK(tally.entries == 7 && tally.bytes == 18);
    (void)close(top);
    return outcome;
}

/* That the tree, changed by then, differs at the path in that way; and is made anew. */
static void differs(const char *path, const char *operation, const char *message)
{
    CHECK(verify() == -1);
    CHECK_TEXT(failure.step, "verify");
    CHECK_TEXT(failure.path, path);
    CHECK_TEXT(failure.operation, operation);
    CHECK_TEXT(failure.message, message);
    CHECK(failure.error == 0);
    remove_tree();
    make_tree();
}

static void test_differences(void)
{
    put("manifest", MANIFEST, 0644);
    make_tree();
    CHECK(verify() == 0);
    CHECK(unlink("t/a b") == 0);
    differs("a b", "missing", "missing: a file should be here");
    CHECK(unlink("t/z") == 0);
    differs("z", "missing", "missing: a file should be here");
    CHECK(unlink("t/a/l") == 0);
    differs("a/l", "missing", "missing: a symbolic link should be here");
    put("t/0", "", 0644);
    differs("0", "not expected", "not expected: nothing should be here");
    put("t/a/m", "", 0644);
    differs("a/m", "not expected", "not expected: nothing should be here");
    put("t/zz", "", 0644);
    differs("zz", "not expected", "not expected: nothing should be here");
    CHECK(mkdir("t/a.c/d", 0755) == 0);
    differs("a.c/d", "not expected", "not expected: nothing should be here");
    CHECK(unlink("t/z") == 0 && mkdir("t/z", 04711) == 0);
    differs("z", "type", "type: it is a directory and not a file");
    CHECK(unlink("t/a/l") == 0 && mkfifo("t/a/l", 0777) == 0);
    differs("a/l", "type",
            "type: it is neither a file nor a directory nor a link and not a symbolic link");
    CHECK(chmod("t/a.c", 0701) == 0);
    differs("a.c", "mode", "mode: it is 0701 and not 0700");
    CHECK(chmod("t/z", 0711) == 0);
    differs("z", "mode", "mode: it is 0711 and not 4711");
    put("t/z", "1234567890", 04711);
    differs("z", "size", "size: it is 10 and not 9");
    put("t/z", "123456780", 04711);
    differs("z", "content", "content: its CRC-32 is b2288182 and not cbf43926");
    CHECK(unlink("t/a/l") == 0 && symlink("../xc", "t/a/l") == 0);
    differs("a/l", "target", "target: it is \"../xc\" and not \"../\tc\"");
    CHECK(verify() == 0);
    remove_tree();
}

/* An empty tree, and what is wrong with a manifest whatever the tree. */
static void test_manifests(void)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        { "", "this is not a manifest of version 1 (line 1)" },
        { "fsexp-manifest\t2\t0\n", "this is not a manifest of version 1 (line 1)" },
        { "fsexp-manifest\t1\t", "a line is cut off (line 1)" },
        { "fsexp-manifest\t1\tx\n", "a number is none (line 1)" },
        { "fsexp-manifest\t1\t0\na", "something follows the last entry (line 1)" },
        { "fsexp-manifest\t1\t1\n", "a line is cut off (line 2)" },
        { "fsexp-manifest\t1\t1\na\tf\t0644\t0\t0000", "a line is cut off (line 2)" },
        { "fsexp-manifest\t1\t1\na\tf\t0844\t0\t00000000\n", "a number is none (line 2)" },
        { "fsexp-manifest\t1\t1\na\tf\t10000\t0\t00000000\n", "a number is too large (line 2)" },
        { "fsexp-manifest\t1\t1\na\tf\t0644\t-1\t00000000\n", "a number is none (line 2)" },
        { "fsexp-manifest\t1\t1\na\tf\t0644\t0\t100000000\n", "a number is too large (line 2)" },
        { "fsexp-manifest\t1\t1\na\tx\t0644\t0\t0\n", "a type is not f, d or l (line 2)" },
        { "fsexp-manifest\t1\t1\na\td\t0644\t1\t-\n",
          "a directory has a size or a value (line 2)" },
        { "fsexp-manifest\t1\t1\na\tl\t0777\t2\tb\n",
          "a link's size is not that of its target (line 2)" },
        { "fsexp-manifest\t1\t1\n\xc3\xa4\tf\t0644\t0\t0\n",
          "a byte should have been escaped (line 2)" },
        { "fsexp-manifest\t1\t1\na\\x0\tf\t0644\t0\t0\n",
          "an escape is not \\x and two hexadecimal digits (line 2)" },
        { "fsexp-manifest\t1\t1\na\\x00\tf\t0644\t0\t0\n",
          "an escape is not \\x and two hexadecimal digits (line 2)" },
        { "fsexp-manifest\t1\t1\n\tf\t0644\t0\t0\n", "a path is not after the one before (line 2)" },
    };

    CHECK(mkdir("t", 0755) == 0);
    for (size_t row = 0; row < sizeof cases / sizeof cases[0]; row++) {
        put("manifest", cases[row].text, 0644);
        CHECK(verify() == -1);
        CHECK_TEXT(failure.step, "manifest");
        CHECK_TEXT(failure.operation, "check");
        CHECK_TEXT(failure.path, "manifest");
        CHECK_TEXT(failure.message, cases[row].message);
    }
    CHECK(unlink("manifest") == 0);
    CHECK(verify() == -1 && failure.error == ENOENT);
    CHECK_TEXT(failure.step, "manifest");
    CHECK(rmdir("t") == 0);
}

static void test_order(void)
{
    static const char *const ordered[] = { "a", "a/b", "a/b/c", "a/b.c", "a/\xff", "a\1", "a b",
                                           "a.b", "ab", "\xc3" };
    size_t count = sizeof ordered / sizeof ordered[0];

    for (size_t left = 0; left < count; left++)
        for (size_t right = 0; right < count; right++) {
            int order = manifest_compare(ordered[left], ordered[right]);
            CHECK((order < 0) == (left < right) && (order > 0) == (left > right));
        }
}

int main(void)
{
    char folder[] = "/tmp/core-verify.XXXXXX";

    CHECK(mkdtemp(folder) != NULL && chdir(folder) == 0);
    (void)umask(0);
    test_differences();
    test_manifests();
    test_order();
    CHECK(chdir("/") == 0 && rmdir(folder) == 0);
    return checks_outcome("verify");
}
