/* `cp -a`: src/copy.c of coreutils, for files, directories, symbolic links and several names of one
 * file. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attributes.h"
#include "file.h"
#include "listing.h"
#include "made.h"
#include "program.h"
#include "tree.h"

#define MODE_BITS 07777
#define PERMISSIONS (S_IRWXU | S_IRWXG | S_IRWXO)
/* --preserve=ownership: nobody else is let in before the owner is right. */
#define WITHHELD (S_IRWXG | S_IRWXO)

struct copying {
    const struct program_copying *rules;
    struct tree_tally *tally;
    struct made made;
    uint8_t *buffer;
    bool first; /* the target is to be looked at once more, this being the top of the tree */
    char source[TREE_PATH_BYTES];
    char target[TREE_PATH_BYTES];
};

static int copy_entry(struct copying *copying);

/* Close without losing the error that led here. */
static int close_failed(int descriptor)
{
    int error = errno;

    (void)close(descriptor);
    errno = error;
    return -1;
}

static int copy_times(struct copying *copying, int target, const struct stat *source, int flags)
{
    struct timespec times[2] = { source->st_atim, source->st_mtim };

    copying->tally->calls[TREE_CALL_ATTRIBUTES]++;
    return target >= 0 ? futimens(target, times)
                       : utimensat(AT_FDCWD, copying->target, times, flags);
}

static int copy_owner(struct copying *copying, const struct stat *source)
{
    copying->tally->calls[TREE_CALL_ATTRIBUTES]++;
    return lchown(copying->target, source->st_uid, source->st_gid);
}

static int copy_data(struct copying *copying, int source, int target)
{
    struct tree_tally *tally = copying->tally;

    /* cp does the same when the advice is refused. */
    if (copying->rules->advises)
        (void)posix_fadvise(source, 0, 0, POSIX_FADV_SEQUENTIAL);
    for (;;) {
        ssize_t got = read(source, copying->buffer, copying->rules->buffer_bytes);
        tally->calls[TREE_CALL_READ]++;
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return (int)got;
        tally->calls[TREE_CALL_WRITE]++;
        if (file_write_all(target, copying->buffer, (size_t)got) != 0)
            return -1;
        tally->bytes += (uint64_t)got;
    }
}

/* From the open source into the open target, and all that belongs to the file besides its data. */
static int fill_file(struct copying *copying, int source, int target, const struct stat *about)
{
    struct tree_tally *tally = copying->tally;
    struct attributes_pair pair = { copying->source, copying->target, source, target };
    struct stat created;

    tally->calls[TREE_CALL_STAT]++;
    if (fstat(target, &created) != 0 || copy_data(copying, source, target) != 0
        || copy_times(copying, target, about, 0) != 0)
        return -1;
    if (created.st_uid != about->st_uid || created.st_gid != about->st_gid) {
        tally->calls[TREE_CALL_ATTRIBUTES]++;
        if (fchown(target, about->st_uid, about->st_gid) != 0)
            return -1;
    }
    if (attributes_copy_xattrs(&pair, tally) != 0)
        return -1;
    return attributes_copy_mode(&pair, about->st_mode & (S_IFMT | MODE_BITS),
                                copying->rules->reads_acls_first, tally);
}

static int copy_file(struct copying *copying, const struct stat *about)
{
    struct tree_tally *tally = copying->tally;
    struct stat opened;
    int target;
    int source = open(copying->source, O_RDONLY | O_NOFOLLOW);

    tally->calls[TREE_CALL_OPEN]++;
    if (source < 0)
        return -1;
    tally->calls[TREE_CALL_STAT]++;
    if (fstat(source, &opened) != 0)
        return close_failed(source);
    tally->calls[TREE_CALL_OPEN]++;
    target = open(copying->target, O_WRONLY | O_CREAT | O_EXCL,
                  about->st_mode & PERMISSIONS & ~WITHHELD);
    if (target < 0)
        return close_failed(source);
    if (fill_file(copying, source, target, about) != 0) {
        (void)close_failed(target);
        return close_failed(source);
    }
    if (close(target) != 0)
        return close_failed(source);
    return close(source);
}

static int copy_link(struct copying *copying, const struct stat *about)
{
    struct tree_tally *tally = copying->tally;
    struct attributes_pair pair = { copying->source, copying->target, -1, -1 };
    char text[TREE_PATH_BYTES];
    ssize_t length;

    /* The size that it has is read and one byte more, to see that it has not grown. */
    tally->calls[TREE_CALL_READ]++;
    length = readlink(copying->source, text,
                      about->st_size > 0 && (size_t)about->st_size < sizeof text
                          ? (size_t)about->st_size + 1 : sizeof text);
    if (length < 0)
        return -1;
    if ((size_t)length == sizeof text) {
        errno = ENAMETOOLONG;
        return -1;
    }
    text[length] = '\0';
    tally->calls[TREE_CALL_MAKE]++;
    if (symlink(text, copying->target) != 0 || copy_owner(copying, about) != 0
        || copy_times(copying, -1, about, AT_SYMLINK_NOFOLLOW) != 0)
        return -1;
    return copying->rules->links_have_xattrs ? attributes_copy_xattrs(&pair, tally) : 0;
}

/* Append "/name" to a path of `length` bytes. */
static int descend_path(char *path, size_t length, const char *name)
{
    size_t bytes = strlen(name) + 1;

    if (length + 1 + bytes > TREE_PATH_BYTES) {
        errno = ENAMETOOLONG;
        return -1;
    }
    path[length] = '/';
    memcpy(path + length + 1, name, bytes);
    return 0;
}

static int read_directory(struct copying *copying, struct listing *listing)
{
    struct tree_tally *tally = copying->tally;
    struct stat about;
    int outcome;
    int descriptor = open(copying->source, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_DIRECTORY);

    tally->calls[TREE_CALL_OPEN]++;
    if (descriptor < 0)
        return -1;
    listing_open(listing, descriptor);
    tally->calls[TREE_CALL_STAT]++;
    if (fstat(descriptor, &about) != 0)
        return -1;
    outcome = listing_read(listing, PROGRAM_ALL);
    tally->calls[TREE_CALL_GETDENTS] += listing->calls;
    if (outcome == 0 && copying->rules->sorts)
        listing_sort_inodes(listing);
    return outcome;
}

static int copy_entries(struct copying *copying)
{
    size_t source_length = strlen(copying->source);
    size_t target_length = strlen(copying->target);
    struct listing listing = { .open = false };
    int outcome = read_directory(copying, &listing);

    for (size_t index = 0; outcome == 0 && index < listing.count; index++) {
        const char *name = listing_name(&listing, index);
        if (descend_path(copying->source, source_length, name) != 0
            || descend_path(copying->target, target_length, name) != 0)
            outcome = -1;
        else
            outcome = copy_entry(copying);
    }
    if (outcome == 0) { /* after a failure the paths say where */
        copying->source[source_length] = '\0';
        copying->target[target_length] = '\0';
    }
    int error = errno;
    listing_free(&listing);
    errno = error;
    return outcome;
}

static int copy_directory(struct copying *copying, const struct stat *about)
{
    struct tree_tally *tally = copying->tally;
    struct attributes_pair pair = { copying->source, copying->target, -1, -1 };
    struct stat created;

    tally->calls[TREE_CALL_MAKE]++;
    if (mkdir(copying->target, about->st_mode & MODE_BITS & ~WITHHELD) != 0)
        return -1;
    tally->calls[TREE_CALL_STAT]++;
    if (lstat(copying->target, &created) != 0)
        return -1;
    if ((created.st_mode & S_IRWXU) != S_IRWXU) {
        tally->calls[TREE_CALL_ATTRIBUTES]++;
        if (chmod(copying->target, (created.st_mode & MODE_BITS) | S_IRWXU) != 0)
            return -1;
    }
    if (copy_entries(copying) != 0 || copy_times(copying, -1, about, 0) != 0
        || copy_owner(copying, about) != 0 || attributes_copy_xattrs(&pair, tally) != 0)
        return -1;
    return attributes_copy_mode(&pair, about->st_mode & (S_IFMT | MODE_BITS),
                                copying->rules->reads_acls_first, tally);
}

/* A file of several names: a link to its copy, if there is one. 1 when it was made, 0 when the file
 * is still to be copied, -1 with errno. */
static int link_again(struct copying *copying, const struct stat *about)
{
    const char *earlier;

    if (about->st_nlink < 2)
        return 0;
    if (made_recall(&copying->made, about->st_dev, about->st_ino, copying->target, &earlier) != 0)
        return -1;
    if (earlier == NULL)
        return 0;
    copying->tally->calls[TREE_CALL_MAKE]++;
    return link(earlier, copying->target) == 0 ? 1 : -1;
}

static int copy_other(struct copying *copying, const struct stat *about)
{
    int linked;

    copying->tally->files++;
    linked = link_again(copying, about);
    if (linked != 0)
        return linked < 0 ? -1 : 0;
    if (S_ISREG(about->st_mode))
        return copy_file(copying, about);
    if (S_ISLNK(about->st_mode))
        return copy_link(copying, about);
    errno = EOPNOTSUPP;
    return -1;
}

/* Copy what is at the source's path. */
static int copy_entry(struct copying *copying)
{
    struct stat about;

    copying->tally->calls[TREE_CALL_STAT]++;
    if (lstat(copying->source, &about) != 0)
        return -1;
    if (copying->first) {
        struct stat target;
        copying->first = false;
        copying->tally->calls[TREE_CALL_STAT]++;
        (void)lstat(copying->target, &target);
    }
    if (!S_ISDIR(about.st_mode))
        return copy_other(copying, &about);
    copying->tally->directories++;
    return copy_directory(copying, &about);
}

/* The target as it is looked at before all else. */
static int look_at_target(struct copying *copying)
{
    struct stat about;
    int descriptor;

    copying->tally->calls[copying->rules->opens_target ? TREE_CALL_OPEN : TREE_CALL_STAT]++;
    if (copying->rules->opens_target) {
        descriptor = open(copying->target, O_RDONLY | O_PATH | O_DIRECTORY);
        if (descriptor >= 0)
            (void)close(descriptor);
    } else {
        descriptor = stat(copying->target, &about);
    }
    if (descriptor >= 0)
        errno = EEXIST;
    return descriptor < 0 && errno == ENOENT ? 0 : -1;
}

static int start(struct copying *copying, const char *source, const char *target)
{
    if (strlen(source) >= TREE_PATH_BYTES || strlen(target) >= TREE_PATH_BYTES) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(copying->source, source);
    strcpy(copying->target, target);
    copying->buffer = malloc(copying->rules->buffer_bytes);
    if (copying->buffer == NULL || look_at_target(copying) != 0)
        return -1;
    copying->first = copying->rules->stats_target;
    return copy_entry(copying);
}

int tree_copy(const char *name, const char *source, const char *target, struct tree_tally *tally)
{
    struct program program;
    struct copying *copying;
    int outcome;
    int error;

    if (!program_find("copy", name, &program)) {
        errno = EINVAL;
        return -1;
    }
    copying = calloc(1, sizeof *copying);
    if (copying == NULL)
        return -1;
    copying->rules = &program.copying;
    copying->tally = tally;
    outcome = start(copying, source, target);
    error = errno;
    strcpy(tally->path, copying->source);
    made_free(&copying->made);
    free(copying->buffer);
    free(copying);
    errno = error;
    return outcome;
}
