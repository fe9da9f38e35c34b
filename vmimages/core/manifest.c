#include "manifest.h"

#include <string.h>

#include "number.h"

#define HEADER "fsexp-manifest\t1\t"

int manifest_compare(const char *left, const char *right)
{
    for (;; left++, right++) {
        /* A slash ends a name, as the end does: before every byte that a name can have. */
        int a = *left == '/' ? 1 : *left == '\0' ? 0 : (unsigned char)*left + 1;
        int b = *right == '/' ? 1 : *right == '\0' ? 0 : (unsigned char)*right + 1;
        if (a != b || a == 0)
            return a - b;
    }
}

static bool wrong(struct manifest *manifest, const char *what)
{
    manifest->wrong = what;
    return false;
}

/* A digit of base 8 or 16, or -1. */
static int digit(char byte, int base)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = byte == '\0' ? NULL : memchr(digits, byte, (size_t)base);

    return at == NULL ? -1 : (int)(at - digits);
}

/* Read the field up to `stop` and move past it: its bytes with \xhh undone. */
static bool read_text(struct manifest *manifest, char stop, char *text)
{
    size_t length = 0;

    for (;;) {
        char byte;
        if (manifest->at == manifest->end)
            return wrong(manifest, "a line is cut off");
        byte = *manifest->at++;
        if (byte == stop) {
            text[length] = '\0';
            return true;
        }
        if (byte < ' ' || byte > '~')
            return wrong(manifest, "a byte should have been escaped");
        if (byte == '\\') {
            int high;
            int low;
            if (manifest->end - manifest->at < 3 || manifest->at[0] != 'x'
                || (high = digit(manifest->at[1], 16)) < 0
                || (low = digit(manifest->at[2], 16)) < 0 || (byte = (char)(high << 4 | low)) == 0)
                return wrong(manifest, "an escape is not \\x and two hexadecimal digits");
            manifest->at += 3;
        }
        if (length == MANIFEST_TEXT_BYTES - 1)
            return wrong(manifest, "a text is too long");
        text[length++] = byte;
    }
}

/* Digits of that base alone. */
static bool read_number(struct manifest *manifest, char stop, int base, uint64_t most,
                        uint64_t *value)
{
    char text[MANIFEST_TEXT_BYTES];
    int next;

    if (!read_text(manifest, stop, text))
        return false;
    if (base == 10)
        return (number_decimal(text, value) && *value <= most)
               || wrong(manifest, "a number is none");
    *value = 0;
    for (const char *at = text; *at != '\0'; at++) {
        if ((next = digit(*at, base)) < 0)
            return wrong(manifest, "a number is none");
        *value = *value * (uint64_t)base + (uint64_t)next;
        if (*value > most)
            return wrong(manifest, "a number is too large");
    }
    return text[0] != '\0' || wrong(manifest, "a number is none");
}

static bool read_value(struct manifest *manifest, struct manifest_entry *entry)
{
    uint64_t sum;

    entry->crc32 = 0;
    switch (entry->type) {
    case 'f':
        if (!read_number(manifest, '\n', 16, UINT32_MAX, &sum))
            return false;
        entry->crc32 = (uint32_t)sum;
        return true;
    case 'd':
        if (!read_text(manifest, '\n', entry->target))
            return false;
        return (strcmp(entry->target, "-") == 0 && entry->size == 0)
               || wrong(manifest, "a directory has a size or a value");
    default:
        if (!read_text(manifest, '\n', entry->target))
            return false;
        return strlen(entry->target) == entry->size
               || wrong(manifest, "a link's size is not that of its target");
    }
}

static bool read_entry(struct manifest *manifest)
{
    struct manifest_entry *entry = &manifest->entry;
    char text[MANIFEST_TEXT_BYTES];
    char before[MANIFEST_TEXT_BYTES];
    uint64_t mode;

    strcpy(before, manifest->line == 1 ? "" : entry->path);
    manifest->line++;
    if (!read_text(manifest, '\t', entry->path) || !read_text(manifest, '\t', text))
        return false;
    if (manifest_compare(before, entry->path) >= 0)
        return wrong(manifest, "a path is not after the one before");
    if (strlen(text) != 1 || strchr("fdl", text[0]) == NULL)
        return wrong(manifest, "a type is not f, d or l");
    entry->type = text[0];
    if (!read_number(manifest, '\t', 8, 07777, &mode)
        || !read_number(manifest, '\t', 10, INT64_MAX, &entry->size))
        return false;
    entry->mode = (uint32_t)mode;
    return read_value(manifest, entry);
}

bool manifest_next(struct manifest *manifest)
{
    if (manifest->left == 0) {
        manifest->ended = true;
        return manifest->at == manifest->end || wrong(manifest, "something follows the last entry");
    }
    manifest->left--;
    return read_entry(manifest);
}

bool manifest_begin(struct manifest *manifest, const void *bytes, size_t length)
{
    size_t header = sizeof HEADER - 1;

    manifest->at = bytes;
    manifest->end = manifest->at + length;
    manifest->line = 1;
    manifest->wrong = NULL;
    manifest->ended = false;
    if (length < header || memcmp(bytes, HEADER, header) != 0)
        return wrong(manifest, "this is not a manifest of version 1");
    manifest->at += header;
    return read_number(manifest, '\n', 10, INT64_MAX, &manifest->left) && manifest_next(manifest);
}
