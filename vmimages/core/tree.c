#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "descent.h"
#include "program.h"

bool tree_program_known(const char *operation, const char *program)
{
    struct program found;

    return program_find(operation, program, &found);
}

/* End a traversal without losing the error that led here. */
static int end(struct descent *descent, int outcome)
{
    int error = errno;

    if (descent_end(descent) != 0)
        return -1;
    errno = error;
    return outcome;
}

int tree_walk(const char *name, const char *path, char type, struct tree_tally *tally)
{
    unsigned char wanted = type == 'd' ? DT_DIR : DT_REG;
    struct program program;
    struct descent descent;
    enum descent_event event;

    if (!program_find("walk", name, &program)) {
        errno = EINVAL;
        return -1;
    }
    if (descent_begin(&descent, &program.traversal, path, tally) != 0)
        return -1;
    while ((event = descent_next(&descent)) > DESCENT_END)
        if (event != DESCENT_LEAVE && descent.type == wanted)
            tally->matches++;
    return end(&descent, event == DESCENT_END ? 0 : -1);
}

/* Whether the directory has no entry: 1, 0, or -1 with errno. is_empty_dir() of coreutils. */
static int probe_empty(struct descent *descent, struct listing *listing)
{
    struct stat about;
    uint64_t before = listing->calls;
    int outcome;
    int descriptor = openat(descent->directory, descent->name,
                            O_RDONLY | O_DIRECTORY | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK);

    descent->tally->calls[TREE_CALL_OPEN]++;
    if (descriptor < 0)
        return -1;
    listing_open(listing, descriptor);
    descent->tally->calls[TREE_CALL_STAT]++;
    outcome = fstat(descriptor, &about);
    if (outcome == 0)
        outcome = listing_read(listing, 1);
    descent->tally->calls[TREE_CALL_GETDENTS] += listing->calls - before;
    listing_close(listing);
    return outcome != 0 ? -1 : listing->count == 0;
}

static int excise(struct descent *descent, int flag)
{
    descent->tally->calls[TREE_CALL_REMOVE]++;
    return unlinkat(descent->directory, descent->name, flag);
}

/* What rm does at one visit. 0, or -1 with errno. */
static int remove_visited(struct descent *descent, enum descent_event event,
                          const struct program *program, struct listing *probe)
{
    int empty;

    switch (event) {
    case DESCENT_FILE:
        return excise(descent, 0);
    case DESCENT_LEAVE:
        return excise(descent, AT_REMOVEDIR);
    default: /* DESCENT_ENTER */
        if (!program->removal.probes_empty)
            return 0;
        empty = probe_empty(descent, probe);
        if (empty != 1)
            return empty;
        descent_skip(descent);
        return excise(descent, AT_REMOVEDIR);
    }
}

int tree_remove(const char *name, const char *path, struct tree_tally *tally)
{
    struct program program;
    struct descent descent;
    struct listing probe = { .open = false };
    enum descent_event event = DESCENT_FAILED;
    struct stat root;
    int outcome;

    if (!program_find("remove", name, &program)) {
        errno = EINVAL;
        return -1;
    }
    tally->calls[TREE_CALL_STAT]++;
    outcome = lstat("/", &root); /* rm refuses to remove it, and so has to know it */
    if (descent_begin(&descent, &program.traversal, path, tally) != 0)
        outcome = -1;
    while (outcome == 0 && (event = descent_next(&descent)) > DESCENT_END)
        outcome = remove_visited(&descent, event, &program, &probe);
    if (outcome == 0 && event == DESCENT_FAILED)
        outcome = -1;
    outcome = end(&descent, outcome);
    listing_free(&probe);
    return outcome;
}
