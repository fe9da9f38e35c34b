/* Listings, the order of visits, what a copy keeps, what goes wrong. */
#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "descent.h"
#include "listing.h"
#include "made.h"
#include "program.h"
#include "tree.h"

static struct tree_tally tally;

static void reset(void)
{
    memset(&tally, 0, sizeof tally);
}

static void put(const char *path, const char *content, mode_t mode)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL, mode);

    CHECK(descriptor >= 0);
    CHECK(write(descriptor, content, strlen(content)) == (ssize_t)strlen(content));
    CHECK(close(descriptor) == 0);
}

/* t/a/{b/x,y}, t/c, t/l -> a, t/z with two names */
static void make_tree(void)
{
    CHECK(mkdir("t", 0755) == 0 && mkdir("t/a", 0750) == 0 && mkdir("t/a/b", 0700) == 0
          && mkdir("t/c", 0755) == 0);
    put("t/a/b/x", "", 0644);
    put("t/a/y", "some text", 0600);
    put("t/z", "twice", 0640);
    CHECK(link("t/z", "t/a/z2") == 0);
    CHECK(symlink("a", "t/l") == 0);
}

static void test_programs(void)
{
    struct program program;

    CHECK(program_find("walk", "findutils-4.4.2", &program) && program.traversal.stats_all
          && program.traversal.sorts_above == PROGRAM_ALL);
    CHECK(program_find("walk", "findutils-4.9", &program) && !program.traversal.stats_all
          && program.traversal.sorts_above == 10000);
    CHECK(program_find("walk", "findutils-4.9+sorted", &program)
          && program.traversal.sorts_above == 0 && program.traversal.batch == PROGRAM_ALL);
    CHECK(program_find("copy", "coreutils-8.12", &program) && !program.copying.sorts);
    CHECK(program_find("copy", "coreutils-8.12+sorted", &program) && program.copying.sorts);
    CHECK(!tree_program_known("walk", "coreutils-9.1"));
    CHECK(!tree_program_known("copy", "findutils-4.9"));
    CHECK(!tree_program_known("remove", "coreutils-9"));
    CHECK(!tree_program_known("remove", "coreutils-9.1+"));
    CHECK(!tree_program_known("remove", "+sorted"));
    CHECK(!tree_program_known("remove", ""));
    errno = 0;
    CHECK(tree_walk("find", "t", 'd', &tally) == -1 && errno == EINVAL);
}

static void open_listing(struct listing *listing, const char *path)
{
    int descriptor = open(path, O_RDONLY | O_DIRECTORY);

    CHECK(descriptor >= 0);
    listing_open(listing, descriptor);
}

static void test_listing(void)
{
    struct listing listing = { .open = false };
    char path[32];
    unsigned char seen[2000] = { 0 };
    size_t total = 0;

    CHECK(mkdir("many", 0755) == 0);
    for (int number = 0; number < 2000; number++) {
        (void)snprintf(path, sizeof path, "many/%d", number);
        put(path, "", 0644);
    }
    open_listing(&listing, "many");
    for (;;) { /* in batches, none lost and none twice */
        CHECK(listing_read(&listing, 300) == 0);
        CHECK(listing.count == (total < 1800 ? 300 : 200) || total == 2000);
        if (listing.count == 0)
            break;
        for (size_t entry = 0; entry < listing.count; entry++)
            seen[atoi(listing_name(&listing, entry))]++;
        total += listing.count;
    }
    CHECK(total == 2000 && !listing.open);
    CHECK(memchr(seen, 0, sizeof seen) == NULL && memchr(seen, 2, sizeof seen) == NULL);
    open_listing(&listing, "many");
    CHECK(listing_read(&listing, PROGRAM_ALL) == 0 && listing.count == 2000);
    listing_sort_inodes(&listing);
    for (size_t entry = 1; entry < listing.count; entry++)
        CHECK(listing.entries[entry - 1].inode < listing.entries[entry].inode);
    listing_sort_names(&listing);
    CHECK_TEXT(listing_name(&listing, 0), "0");
    CHECK_TEXT(listing_name(&listing, 1), "1");
    CHECK_TEXT(listing_name(&listing, 2), "10");
    CHECK_TEXT(listing_name(&listing, 1999), "999");
    listing_free(&listing);
    reset();
    CHECK(tree_remove("coreutils-9.1", "many", &tally) == 0);
    CHECK(tally.files == 2000 && tally.directories == 1 && tally.calls[TREE_CALL_REMOVE] == 2001);
    CHECK(access("many", F_OK) == -1 && errno == ENOENT);
}

/* Every entry once, directories around what is in them, names relative to the directory given. */
static void descend(const struct program_traversal *rules)
{
    struct descent descent;
    enum descent_event event;
    char text[1024] = "";
    struct stat about;
    char before[256];
    char after[256];

    reset();
    CHECK(getcwd(before, sizeof before) != NULL);
    CHECK(descent_begin(&descent, rules, "t", &tally) == 0);
    while ((event = descent_next(&descent)) > DESCENT_END) {
        CHECK(fstatat(descent.directory, descent.name, &about, AT_SYMLINK_NOFOLLOW) == 0);
        CHECK(S_ISDIR(about.st_mode) == (event != DESCENT_FILE));
        strcat(text, event == DESCENT_ENTER ? "+" : event == DESCENT_LEAVE ? "-" : " ");
        strcat(text, tally.path);
    }
    CHECK(event == DESCENT_END);
    CHECK(descent_end(&descent) == 0);
    CHECK(getcwd(after, sizeof after) != NULL);
    CHECK_TEXT(after, before);
    CHECK(tally.files == 5 && tally.directories == 4);
    CHECK(strncmp(text, "+t", 2) == 0 && strcmp(text + strlen(text) - 2, "-t") == 0);
    CHECK(strstr(text, "+t/a/b t/a/b/x-t/a/b") != NULL);
    CHECK(strstr(text, "+t/c-t/c") != NULL);
    CHECK(strstr(text, " t/l") != NULL && strstr(text, " t/l/") == NULL);
    CHECK(strstr(text, "-t/a") > strstr(text, "+t/a/b"));
    CHECK(strstr(text, " t/a/y") > strstr(text, "+t/a") && strstr(text, " t/a/z2") != NULL);
}

static void test_descents(void)
{
    struct program program;
    struct program_traversal rules;

    make_tree();
    CHECK(program_find("walk", "findutils-4.4.2", &program));
    descend(&program.traversal);
    CHECK(program_find("walk", "findutils-4.9", &program));
    descend(&program.traversal);
    rules = program.traversal;
    rules.batch = 2; /* each directory is read on after its first two entries were visited */
    descend(&rules);
    rules.sorts_above = 1;
    descend(&rules);
}

/* Deeper than there are descriptors for: directories above are closed and found again. */
static void test_depth(void)
{
    char path[TREE_PATH_BYTES] = "deep";

    CHECK(mkdir(path, 0755) == 0);
    for (int level = 0; level < 1500; level++) {
        strcat(path, "/d");
        CHECK(mkdir(path, 0755) == 0);
    }
    for (int age = 0; age < 2; age++) {
        reset();
        CHECK(tree_walk(age ? "findutils-4.4.2" : "findutils-4.9", "deep", 'd', &tally) == 0);
        CHECK(tally.matches == 1501);
    }
    reset();
    CHECK(tree_copy("coreutils-9.1", "deep", "deep2", &tally) == 0 && tally.directories == 1501);
    for (int age = 0; age < 2; age++) {
        reset();
        CHECK(tree_remove(age ? "coreutils-8.12" : "coreutils-9.1", age ? "deep" : "deep2", &tally)
              == 0);
        CHECK(tally.calls[TREE_CALL_REMOVE] == 1501);
    }
}

static void test_copies(const char *program)
{
    struct stat from;
    struct stat to;
    struct timespec times[2] = { { 1000000000, 1 }, { 1234567890, 123456789 } };
    char target[8] = "";

    CHECK(utimensat(AT_FDCWD, "t/a", times, 0) == 0);
    reset();
    CHECK(tree_copy(program, "t", "u", &tally) == 0);
    CHECK(tally.files == 5 && tally.directories == 4 && tally.bytes == 14);
    CHECK(lstat("u/a", &to) == 0 && to.st_mtim.tv_sec == 1234567890
          && to.st_mtim.tv_nsec == 123456789 && (to.st_mode & 07777) == 0750);
    CHECK(lstat("t/a/y", &from) == 0 && lstat("u/a/y", &to) == 0 && to.st_mode == from.st_mode
          && to.st_size == 9 && to.st_mtim.tv_nsec == from.st_mtim.tv_nsec);
    CHECK(lstat("u/z", &from) == 0 && lstat("u/a/z2", &to) == 0 && from.st_ino == to.st_ino
          && to.st_nlink == 2);
    CHECK(readlink("u/l", target, sizeof target - 1) == 1);
    CHECK_TEXT(target, "a");
    errno = 0;
    CHECK(tree_copy(program, "t", "u", &tally) == -1 && errno == EEXIST);
    CHECK_TEXT(tally.path, "t");
    reset();
    CHECK(tree_remove(program, "u", &tally) == 0 && tally.files == 5 && tally.directories == 4);
    CHECK(access("u", F_OK) == -1 && errno == ENOENT);
}

static void test_failures(void)
{
    reset();
    CHECK(tree_walk("findutils-4.9", "none", 'f', &tally) == -1 && errno == ENOENT);
    CHECK_TEXT(tally.path, "none");
    CHECK(tree_walk("findutils-4.9", "t/l", 'f', &tally) == 0); /* a link is not followed */
    CHECK(tree_remove("coreutils-8.12", "none", &tally) == -1 && errno == ENOENT);
    CHECK(mkfifo("t/a/pipe", 0644) == 0);
    CHECK(tree_copy("coreutils-9.1", "t", "u", &tally) == -1 && errno == EOPNOTSUPP);
    CHECK_TEXT(tally.path, "t/a/pipe");
    CHECK(tree_remove("coreutils-9.1", "u", &tally) == 0);
    CHECK(tree_remove("coreutils-9.1", "t", &tally) == 0);
}

static void test_made(void)
{
    struct made made = { .count = 0 };
    const char *earlier;
    char path[32];

    for (int pass = 0; pass < 2; pass++)
        for (unsigned inode = 0; inode < 1000; inode++) {
            (void)snprintf(path, sizeof path, "%u", inode);
            CHECK(made_recall(&made, 7, inode * 64, pass == 0 ? path : "later", &earlier) == 0);
            CHECK(pass == 0 ? earlier == NULL : earlier != NULL && strcmp(earlier, path) == 0);
        }
    CHECK(made_recall(&made, 8, 64, "elsewhere", &earlier) == 0 && earlier == NULL);
    made_free(&made);
}

int main(void)
{
    char folder[] = "/tmp/core-tree.XXXXXX";

    CHECK(mkdtemp(folder) != NULL && chdir(folder) == 0);
    (void)umask(0);
    test_programs();
    test_listing();
    test_descents();
    test_copies("coreutils-9.1");
    test_copies("coreutils-8.12");
    test_failures();
    test_depth();
    test_made();
    CHECK(chdir("/") == 0 && rmdir(folder) == 0);
    return checks_outcome("tree");
}
