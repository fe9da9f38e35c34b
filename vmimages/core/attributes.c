#include "attributes.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#define ACCESS "system.posix_acl_access"
#define DEFAULT "system.posix_acl_default"
/* What libacl tries first: 16 entries. */
#define ACL_BYTES 132
#define XATTR_BYTES_MAX 65536
#define SPECIAL_BITS (S_ISUID | S_ISGID | S_ISVTX)

static ssize_t list(const struct attributes_pair *pair, char *names, size_t bytes,
                    struct tree_tally *tally)
{
    tally->calls[TREE_CALL_QUERY]++;
    return pair->source >= 0 ? flistxattr(pair->source, names, bytes)
                             : llistxattr(pair->source_path, names, bytes);
}

static ssize_t get(const struct attributes_pair *pair, const char *name, void *value, size_t bytes,
                   struct tree_tally *tally)
{
    tally->calls[TREE_CALL_QUERY]++;
    return pair->source >= 0 ? fgetxattr(pair->source, name, value, bytes)
                             : lgetxattr(pair->source_path, name, value, bytes);
}

static int set(const struct attributes_pair *pair, const char *name, const void *value,
               size_t bytes, struct tree_tally *tally)
{
    tally->calls[TREE_CALL_ATTRIBUTES]++;
    return pair->target >= 0 ? fsetxattr(pair->target, name, value, bytes, 0)
                             : lsetxattr(pair->target_path, name, value, bytes, 0);
}

static int copy_xattr(const struct attributes_pair *pair, const char *name,
                      struct tree_tally *tally)
{
    static char value[XATTR_BYTES_MAX];
    ssize_t length = get(pair, name, NULL, 0, tally);

    if (length >= 0)
        length = get(pair, name, value, sizeof value, tally);
    return length < 0 ? -1 : set(pair, name, value, (size_t)length, tally);
}

int attributes_copy_xattrs(const struct attributes_pair *pair, struct tree_tally *tally)
{
    static char names[XATTR_BYTES_MAX];
    ssize_t length = list(pair, NULL, 0, tally);

    if (length >= 0)
        length = list(pair, names, sizeof names, tally);
    if (length < 0)
        return errno == ENOTSUP || errno == ENOSYS ? 0 : -1;
    for (const char *name = names; name < names + length; name += strlen(name) + 1) {
        /* ACLs follow on their own: /etc/xattr.conf skips them, as all of "system.". */
        if (strncmp(name, "system.", 7) == 0)
            continue;
        if (copy_xattr(pair, name, tally) != 0)
            return -1;
    }
    return 0;
}

static int set_mode(const struct attributes_pair *pair, mode_t mode, struct tree_tally *tally)
{
    tally->calls[TREE_CALL_ATTRIBUTES]++;
    return pair->target >= 0 ? fchmod(pair->target, mode) : chmod(pair->target_path, mode);
}

static void put_le(uint8_t *at, uint32_t value, int bytes)
{
    for (int byte = 0; byte < bytes; byte++)
        at[byte] = (uint8_t)(value >> (8 * byte));
}

/* The ACL that says what `mode` says: version 2, then owner, group and others, each a tag, its
 * permissions and no id. include/linux/posix_acl_xattr.h. */
static size_t acl_of_mode(mode_t mode, uint8_t acl[ACL_BYTES])
{
    static const uint8_t tags[] = { 0x01, 0x04, 0x20 };

    put_le(acl, 2, 4);
    for (int entry = 0; entry < 3; entry++) {
        uint8_t *at = acl + 4 + 8 * entry;
        put_le(at, tags[entry], 2);
        put_le(at + 2, mode >> (6 - 3 * entry) & 7, 2);
        put_le(at + 4, UINT32_MAX, 4);
    }
    return 28;
}

/* Read an ACL of the source; without one libacl looks at the mode. 0 and the length, -1 with errno. */
static int read_acl(const struct attributes_pair *pair, const char *name, uint8_t *acl,
                    size_t *length, struct tree_tally *tally)
{
    struct stat about;
    ssize_t got;

    /* acl_get_file(), as opposed to lgetxattr() for other attributes, follows links; there are none. */
    tally->calls[TREE_CALL_QUERY]++;
    got = pair->source >= 0 ? fgetxattr(pair->source, name, acl, ACL_BYTES)
                            : getxattr(pair->source_path, name, acl, ACL_BYTES);
    if (got < 0 && errno == ERANGE)
        got = get(pair, name, acl, XATTR_BYTES_MAX, tally);
    if (got >= 0) {
        *length = (size_t)got;
        return 0;
    }
    if (errno != ENODATA)
        return -1;
    tally->calls[TREE_CALL_STAT]++;
    if ((pair->source >= 0 ? fstat(pair->source, &about) : stat(pair->source_path, &about)) != 0)
        return -1;
    *length = strcmp(name, ACCESS) == 0 ? acl_of_mode(about.st_mode, acl) : 0;
    return 0;
}

static int write_acl(const struct attributes_pair *pair, const char *name, const uint8_t *acl,
                     size_t length, struct tree_tally *tally)
{
    tally->calls[TREE_CALL_ATTRIBUTES]++;
    if (length == 0)
        return removexattr(pair->target_path, name) != 0 && errno != ENODATA ? -1 : 0;
    return pair->target >= 0 ? fsetxattr(pair->target, name, acl, length, 0)
                             : setxattr(pair->target_path, name, acl, length, 0);
}

int attributes_copy_mode(const struct attributes_pair *pair, mode_t mode, bool mode_first,
                         struct tree_tally *tally)
{
    static uint8_t access[XATTR_BYTES_MAX];
    static uint8_t inherited[XATTR_BYTES_MAX];
    size_t access_length;
    size_t inherited_length = 0;
    bool special = (mode & SPECIAL_BITS) != 0;

    if (read_acl(pair, ACCESS, access, &access_length, tally) != 0)
        return errno == ENOTSUP || errno == ENOSYS ? set_mode(pair, mode, tally) : -1;
    /* Since gnulib's get_permissions() of 2017 everything is read before anything is set. */
    if (mode_first && S_ISDIR(mode)
        && read_acl(pair, DEFAULT, inherited, &inherited_length, tally) != 0)
        return -1;
    if (mode_first && special && set_mode(pair, mode, tally) != 0)
        return -1;
    if (write_acl(pair, ACCESS, access, access_length, tally) != 0) {
        if (errno != ENOTSUP || set_mode(pair, mode, tally) != 0)
            return -1;
    } else if (!mode_first && special && set_mode(pair, mode, tally) != 0) {
        return -1;
    }
    if (!S_ISDIR(mode))
        return 0;
    if (!mode_first && read_acl(pair, DEFAULT, inherited, &inherited_length, tally) != 0)
        return errno == ENOTSUP ? 0 : -1;
    return write_acl(pair, DEFAULT, inherited, inherited_length, tally) != 0 && errno != ENOTSUP
               ? -1 : 0;
}
