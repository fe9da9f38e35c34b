#include "verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crc32.h"
#include "file.h"
#include "listing.h"
#include "manifest.h"

#define STEP "verify"
#define MODE_BITS 07777
#define BUFFER_BYTES (256 * 1024)

struct verification {
    int top;
    const char *manifest_path;
    struct manifest manifest;
    struct verify_tally *tally;
    struct failure *failure;
    char path[MANIFEST_TEXT_BYTES]; /* of the entry, relative to the top; the failure points here */
    uint8_t buffer[BUFFER_BYTES];
};

static int check_directory(struct verification *verification, size_t length);

static int call_failed(struct verification *verification, const char *operation)
{
    return failure_set(verification->failure, STEP, operation, verification->path, errno, NULL);
}

static int manifest_wrong(struct verification *verification)
{
    return failure_set(verification->failure, "manifest", "check", verification->manifest_path, 0,
                       "%s (line %llu)", verification->manifest.wrong,
                       (unsigned long long)verification->manifest.line);
}

static const char *type_name(char type)
{
    return type == 'f'   ? "a file"
           : type == 'd' ? "a directory"
           : type == 'l' ? "a symbolic link"
                         : "neither a file nor a directory nor a link";
}

static char type_of(mode_t mode)
{
    return S_ISREG(mode) ? 'f' : S_ISDIR(mode) ? 'd' : S_ISLNK(mode) ? 'l' : '?';
}

static int missing(struct verification *verification)
{
    const struct manifest_entry *entry = &verification->manifest.entry;

    strcpy(verification->path, entry->path);
    return failure_set(verification->failure, STEP, "missing", verification->path, 0,
                       "missing: %s should be here", type_name(entry->type));
}

/* Add the content to both. */
static int sum_content(struct verification *verification, uint64_t *size, uint32_t *sum)
{
    int descriptor = openat(verification->top, verification->path, O_RDONLY | O_NOFOLLOW);
    ssize_t got;

    if (descriptor < 0)
        return call_failed(verification, "open");
    while ((got = read(descriptor, verification->buffer, BUFFER_BYTES)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            (void)call_failed(verification, "read");
            (void)close(descriptor);
            return -1;
        }
        *sum = crc32_update(*sum, verification->buffer, (size_t)got);
        *size += (uint64_t)got;
    }
    (void)close(descriptor);
    return 0;
}

static int check_file(struct verification *verification)
{
    const struct manifest_entry *entry = &verification->manifest.entry;
    uint64_t size = 0;
    uint32_t sum = 0;

    if (sum_content(verification, &size, &sum) != 0)
        return -1;
    verification->tally->bytes += size;
    if (size != entry->size)
        return failure_set(verification->failure, STEP, "content", verification->path, 0,
                           "content: it ends after %llu bytes and not %llu",
                           (unsigned long long)size, (unsigned long long)entry->size);
    if (sum != entry->crc32)
        return failure_set(verification->failure, STEP, "content", verification->path, 0,
                           "content: its CRC-32 is %08x and not %08x", sum, entry->crc32);
    return 0;
}

static int check_link(struct verification *verification)
{
    const struct manifest_entry *entry = &verification->manifest.entry;
    char target[MANIFEST_TEXT_BYTES];
    ssize_t length = readlinkat(verification->top, verification->path, target, sizeof target - 1);

    if (length < 0)
        return call_failed(verification, "readlink");
    target[length] = '\0';
    if (strcmp(target, entry->target) != 0)
        return failure_set(verification->failure, STEP, "target", verification->path, 0,
                           "target: it is \"%.90s\" and not \"%.90s\"", target, entry->target);
    return 0;
}

/* Compare what is at the path with the manifest's entry of that path. */
static int check_entry(struct verification *verification)
{
    const struct manifest_entry *entry = &verification->manifest.entry;
    struct stat about;
    char type;

    if (fstatat(verification->top, verification->path, &about, AT_SYMLINK_NOFOLLOW) != 0)
        return call_failed(verification, "stat");
    type = type_of(about.st_mode);
    if (type != entry->type)
        return failure_set(verification->failure, STEP, "type", verification->path, 0,
                           "type: it is %s and not %s", type_name(type), type_name(entry->type));
    if ((about.st_mode & MODE_BITS) != entry->mode)
        return failure_set(verification->failure, STEP, "mode", verification->path, 0,
                           "mode: it is %04o and not %04o", about.st_mode & MODE_BITS, entry->mode);
    if (type != 'd' && (uint64_t)about.st_size != entry->size)
        return failure_set(verification->failure, STEP, "size", verification->path, 0,
                           "size: it is %llu and not %llu", (unsigned long long)about.st_size,
                           (unsigned long long)entry->size);
    verification->tally->entries++;
    if (type == 'f')
        return check_file(verification);
    if (type == 'l')
        return check_link(verification);
    return 0;
}

/* An entry that is there: it must be the manifest's next one. */
static int meet(struct verification *verification, size_t length)
{
    struct manifest *manifest = &verification->manifest;
    int order = manifest->ended ? -1 : manifest_compare(verification->path, manifest->entry.path);
    char type;

    if (order > 0)
        return missing(verification);
    if (order < 0)
        return failure_set(verification->failure, STEP, "not expected", verification->path, 0,
                           "not expected: nothing should be here");
    if (check_entry(verification) != 0)
        return -1;
    type = manifest->entry.type;
    if (!manifest_next(manifest))
        return manifest_wrong(verification);
    return type == 'd' ? check_directory(verification, length) : 0;
}

static int list_directory(struct verification *verification, struct listing *listing)
{
    const char *path = verification->path[0] == '\0' ? "." : verification->path;
    int descriptor = openat(verification->top, path,
                            O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (descriptor < 0)
        return call_failed(verification, "open");
    listing_open(listing, descriptor);
    if (listing_read(listing, SIZE_MAX) != 0)
        return call_failed(verification, "getdents");
    listing_sort_names(listing);
    return 0;
}

/* Every entry of the directory whose path, of `length` bytes, is the verification's. */
static int check_directory(struct verification *verification, size_t length)
{
    struct listing listing = { .open = false };
    size_t begin = length == 0 ? 0 : length + 1;
    int outcome = list_directory(verification, &listing);

    for (size_t index = 0; outcome == 0 && index < listing.count; index++) {
        const char *name = listing_name(&listing, index);
        size_t bytes = strlen(name);
        if (length == 0 && strcmp(name, "lost+found") == 0)
            continue;
        if (begin + bytes >= sizeof verification->path) {
            errno = ENAMETOOLONG;
            outcome = call_failed(verification, "stat");
            break;
        }
        if (length > 0)
            verification->path[length] = '/';
        memcpy(verification->path + begin, name, bytes + 1);
        outcome = meet(verification, begin + bytes);
    }
    if (outcome == 0)
        verification->path[length] = '\0';
    listing_free(&listing);
    return outcome;
}

static int verify_all(struct verification *verification, const struct file_map *map)
{
    if (!manifest_begin(&verification->manifest, map->bytes, map->length))
        return manifest_wrong(verification);
    if (check_directory(verification, 0) != 0)
        return -1;
    return verification->manifest.ended ? 0 : missing(verification);
}

int verify_tree(int top, const char *manifest, struct verify_tally *tally,
                struct failure *failure)
{
    static struct verification verification;
    struct file_map map;
    int outcome;

    *tally = (struct verify_tally){ .entries = 0 };
    verification.top = top;
    verification.manifest_path = manifest;
    verification.tally = tally;
    verification.failure = failure;
    verification.path[0] = '\0';
    if (file_map(manifest, 0, &map) != 0)
        return failure_set(failure, "manifest", "open", manifest, errno, NULL);
    outcome = verify_all(&verification, &map);
    file_unmap(&map);
    return outcome;
}
