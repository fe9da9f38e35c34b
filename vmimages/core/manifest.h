/* A manifest: what a tree must be, an entry a line, in the order of a walk that takes the entries of
 * each directory by the bytes of their names and a directory before what is in it. */
#ifndef CORE_MANIFEST_H
#define CORE_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MANIFEST_TEXT_BYTES 4096

struct manifest_entry {
    char path[MANIFEST_TEXT_BYTES]; /* relative to the top of the tree */
    char type;                      /* f a file, d a directory, l a symbolic link */
    uint32_t mode;                  /* the 12 bits */
    uint64_t size;                  /* in bytes; 0 for a directory */
    uint32_t crc32;                 /* of a file's content */
    char target[MANIFEST_TEXT_BYTES]; /* of a link */
};

struct manifest {
    const char *at;
    const char *end;
    uint64_t line;        /* of the entry, from 1; the header is line 1 */
    uint64_t left;        /* entries after this one */
    const char *wrong;    /* what is wrong with the manifest, if something is */
    bool ended;           /* there was no entry left */
    struct manifest_entry entry;
};

/* Begin to read the bytes, which stay where they are, and read the first entry. False when the manifest
 * is not one: see `wrong`. */
bool manifest_begin(struct manifest *manifest, const void *bytes, size_t length);

/* Read the next entry, or find the end. */
bool manifest_next(struct manifest *manifest);

/* The order of paths: below 0 when `left` comes before `right`, 0 when they are the same. */
int manifest_compare(const char *left, const char *right);

#endif
