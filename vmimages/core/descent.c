#include "descent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* opendirat() and diropen() of gnulib. */
#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_DIRECTORY | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW)

static void ring_push(struct descent_ring *ring, int descriptor)
{
    unsigned at = (ring->front + !ring->empty) % DESCENT_RING;
    int displaced = ring->descriptors[at];

    ring->descriptors[at] = descriptor;
    ring->front = at;
    if (at == ring->back)
        ring->back = (ring->back + !ring->empty) % DESCENT_RING;
    ring->empty = false;
    if (displaced >= 0)
        (void)close(displaced);
}

static int ring_pop(struct descent_ring *ring)
{
    int descriptor = ring->descriptors[ring->front];

    ring->descriptors[ring->front] = -1;
    if (ring->front == ring->back)
        ring->empty = true;
    else
        ring->front = (ring->front + DESCENT_RING - 1) % DESCENT_RING;
    return descriptor;
}

static void ring_clear(struct descent_ring *ring)
{
    while (!ring->empty) {
        int descriptor = ring_pop(ring);
        if (descriptor >= 0)
            (void)close(descriptor);
    }
}

static int stat_entry(struct descent *descent)
{
    struct stat about;

    descent->tally->calls[TREE_CALL_STAT]++;
    if (fstatat(descent->directory, descent->name, &about, AT_SYMLINK_NOFOLLOW) != 0)
        return -1;
    descent->type = S_ISDIR(about.st_mode)   ? DT_DIR
                    : S_ISREG(about.st_mode) ? DT_REG
                    : S_ISLNK(about.st_mode) ? DT_LNK
                                             : DT_UNKNOWN;
    descent->device = about.st_dev;
    descent->inode = about.st_ino;
    descent->links = about.st_nlink;
    return 0;
}

/* Open a directory as fdopendir(3) or diropen() then looks at it. */
static int open_directory(struct descent *descent, const char *name, struct stat *about)
{
    int descriptor = openat(descent->directory, name, OPEN_FLAGS);

    descent->tally->calls[TREE_CALL_OPEN]++;
    if (descriptor < 0)
        return -1;
    descent->tally->calls[TREE_CALL_STAT]++;
    if (fstat(descriptor, about) != 0) {
        int error = errno;
        (void)close(descriptor);
        errno = error;
        return -1;
    }
    return descriptor;
}

int descent_begin(struct descent *descent, const struct program_traversal *rules, const char *path,
                  struct tree_tally *tally)
{
    size_t length = strlen(path);

    *descent = (struct descent){ .rules = rules, .tally = tally, .directory = AT_FDCWD,
                                 .top = path, .start = -1, .last = DESCENT_FILE,
                                 .ring = { .descriptors = { -1, -1, -1, -1 }, .empty = true } };
    if (length >= sizeof tally->path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(tally->path, path, length + 1);
    if (rules->changes_directory) {
        tally->calls[TREE_CALL_OPEN]++;
        descent->start = open(".", O_RDONLY | O_CLOEXEC);
        if (descent->start < 0)
            return -1;
    }
    return 0;
}

/* Make the directory of `descriptor`, one level down, the one that names are relative to. */
static int go_down(struct descent *descent, int descriptor)
{
    int copy;

    if (descent->rules->changes_directory)
        return fchdir(descriptor);
    copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    if (copy < 0)
        return -1;
    ring_push(&descent->ring, descent->directory);
    descent->directory = copy;
    return 0;
}

/* Back to where it began. */
static int go_home(struct descent *descent)
{
    if (descent->rules->changes_directory)
        return descent->start < 0 ? 0 : fchdir(descent->start);
    ring_push(&descent->ring, descent->directory);
    descent->directory = AT_FDCWD;
    ring_clear(&descent->ring);
    return 0;
}

/* Leave the directory that is at the top of the levels; `above` is the one it lies in. */
static int go_up(struct descent *descent, const struct descent_level *above)
{
    int descriptor = -1;
    struct stat about;

    if (!descent->ring.empty)
        descriptor = ring_pop(&descent->ring);
    if (descriptor < 0) {
        descriptor = open_directory(descent, "..", &about);
        if (descriptor < 0)
            return -1;
        if (about.st_dev != above->device || about.st_ino != above->inode) {
            (void)close(descriptor);
            errno = ENOENT; /* it was moved meanwhile; fts says the same */
            return -1;
        }
    }
    if (descent->rules->changes_directory) {
        int outcome = fchdir(descriptor);
        (void)close(descriptor);
        return outcome;
    }
    if (descent->directory >= 0)
        (void)close(descent->directory);
    descent->directory = descriptor;
    return 0;
}

static int read_entries(struct descent *descent, struct descent_level *level)
{
    uint64_t before = level->listing.calls;
    int outcome = listing_read(&level->listing, descent->rules->batch);

    descent->tally->calls[TREE_CALL_GETDENTS] += level->listing.calls - before;
    level->next = 0;
    if (outcome == 0 && level->listing.count > descent->rules->sorts_above)
        listing_sort_inodes(&level->listing);
    return outcome;
}

static struct descent_level *new_level(struct descent *descent)
{
    if (descent->depth == descent->capacity) {
        size_t wanted = descent->capacity == 0 ? 16 : descent->capacity * 2;
        struct descent_level *levels = realloc(descent->levels, wanted * sizeof *levels);
        if (levels == NULL)
            return NULL;
        memset(levels + descent->capacity, 0, (wanted - descent->capacity) * sizeof *levels);
        descent->levels = levels;
        descent->capacity = wanted;
    }
    return &descent->levels[descent->depth++];
}

/* Go into the directory that has just been visited, and read it. */
static int enter(struct descent *descent)
{
    struct stat about;
    struct statfs filesystem;
    struct descent_level *level;
    int descriptor = open_directory(descent, descent->name, &about);

    if (descriptor < 0)
        return -1;
    level = new_level(descent);
    if (level == NULL) {
        (void)close(descriptor);
        errno = ENOMEM;
        return -1;
    }
    listing_open(&level->listing, descriptor);
    if (descent->rules->stats_again && stat_entry(descent) != 0)
        return -1;
    level->device = descent->device;
    level->inode = descent->inode;
    level->path_length = strlen(descent->tally->path);
    if (descent->rules->asks_filesystem && !descent->asked_filesystem && descent->links == 2) {
        descent->asked_filesystem = true;
        descent->tally->calls[TREE_CALL_STAT]++;
        (void)fstatfs(descriptor, &filesystem);
    }
    if (go_down(descent, descriptor) != 0)
        return -1;
    return read_entries(descent, level);
}

/* The directory at the top of the levels has nothing more to visit. */
static enum descent_event leave(struct descent *descent)
{
    struct descent_level *level = &descent->levels[--descent->depth];

    descent->tally->path[level->path_length] = '\0';
    descent->type = DT_DIR;
    if (descent->depth == 0) {
        if (go_home(descent) != 0)
            return DESCENT_FAILED;
        descent->name = descent->top;
        return DESCENT_LEAVE;
    }
    level = &descent->levels[descent->depth - 1];
    if (go_up(descent, level) != 0)
        return DESCENT_FAILED;
    descent->name = listing_name(&level->listing, level->next - 1);
    return DESCENT_LEAVE;
}

static enum descent_event visit(struct descent *descent)
{
    bool must_stat = descent->rules->stats_all || descent->type == DT_DIR
                     || descent->type == DT_UNKNOWN;

    if (must_stat && stat_entry(descent) != 0)
        return DESCENT_FAILED;
    if (descent->type == DT_DIR) {
        descent->tally->directories++;
        return DESCENT_ENTER;
    }
    descent->tally->files++;
    return DESCENT_FILE;
}

static enum descent_event visit_next(struct descent *descent)
{
    struct descent_level *level = &descent->levels[descent->depth - 1];
    size_t length;

    if (level->next == level->listing.count && level->listing.open
        && read_entries(descent, level) != 0)
        return DESCENT_FAILED;
    if (level->next == level->listing.count)
        return leave(descent);
    descent->type = level->listing.entries[level->next].type;
    descent->name = listing_name(&level->listing, level->next);
    level->next++;
    length = strlen(descent->name);
    if (level->path_length + 1 + length >= sizeof descent->tally->path) {
        errno = ENAMETOOLONG;
        return DESCENT_FAILED;
    }
    descent->tally->path[level->path_length] = '/';
    memcpy(descent->tally->path + level->path_length + 1, descent->name, length + 1);
    return visit(descent);
}

enum descent_event descent_next(struct descent *descent)
{
    enum descent_event event;

    if (!descent->begun) {
        descent->begun = true;
        descent->name = descent->top;
        descent->type = DT_UNKNOWN;
        event = visit(descent);
    } else if (descent->last == DESCENT_ENTER && !descent->skipped && enter(descent) != 0) {
        event = DESCENT_FAILED;
    } else if (descent->depth == 0) {
        event = DESCENT_END;
    } else {
        event = visit_next(descent);
    }
    descent->skipped = false;
    descent->last = event;
    return event;
}

void descent_skip(struct descent *descent)
{
    descent->skipped = true;
}

int descent_end(struct descent *descent)
{
    int outcome = 0;

    if (descent->depth > 0)
        outcome = go_home(descent);
    for (size_t level = 0; level < descent->capacity; level++)
        listing_free(&descent->levels[level].listing);
    free(descent->levels);
    if (descent->start >= 0)
        (void)close(descent->start);
    return outcome;
}
