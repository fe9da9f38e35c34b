/* Images on plain files: out of a disk, onto another, and damaged ones. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "crc32.h"
#include "image.h"

#define BLOCK IMAGE_BLOCK_BYTES
#define DISK_BLOCKS 3000

static uint8_t disk[DISK_BLOCKS * BLOCK];
static uint8_t copy[sizeof disk];
static uint8_t stream[sizeof disk + 65536];
static char folder[] = "/tmp/core-test-XXXXXX";

static const char *in_folder(const char *name)
{
    static char paths[4][64];
    static int next;
    char *path = paths[next++ % 4];

    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void put_file(const char *name, const uint8_t *bytes, size_t length)
{
    int descriptor = open(in_folder(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (descriptor < 0 || write(descriptor, bytes, length) != (ssize_t)length
        || close(descriptor) != 0) {
        perror(name);
        exit(1);
    }
}

static size_t get_file(const char *name, uint8_t *bytes, size_t capacity)
{
    int descriptor = open(in_folder(name), O_RDONLY);
    ssize_t length = descriptor < 0 ? -1 : read(descriptor, bytes, capacity);

    if (length < 0 || close(descriptor) != 0) {
        perror(name);
        exit(1);
    }
    return (size_t)length;
}

/* Zero blocks, single ones, a run longer than an extent may be, the first and the last block. */
static void fill_disk(void)
{
    memset(disk, 0, sizeof disk);
    disk[0] = 1;
    disk[5 * BLOCK + BLOCK - 1] = 2;
    disk[7 * BLOCK + 100] = 3;
    for (size_t block = 500; block < 2000; block++)
        memset(disk + block * BLOCK, (int)(block % 255 + 1), BLOCK);
    disk[sizeof disk - 1] = 4;
}

static size_t test_round_trip(void)
{
    struct image_summary out;
    struct image_summary back;
    struct failure failure;
    size_t length;

    fill_disk();
    put_file("disk", disk, sizeof disk);
    put_file("image", NULL, 0);
    CHECK(image_export(in_folder("disk"), in_folder("image"), 0, &out, &failure) == 0);
    length = get_file("image", stream, sizeof stream);
    CHECK(out.blocks == 1504);
    CHECK(out.device_bytes == sizeof disk);
    CHECK(out.stream_bytes == length);
    CHECK(length == 24 + 6 * 12 + 1504 * BLOCK + 12);
    CHECK(out.stream_crc32 == crc32_update(0, stream, length));
    CHECK(image_check(stream, length, &back) == NULL);
    CHECK(back.blocks == out.blocks && back.device_bytes == out.device_bytes);

    memset(copy, 0, sizeof copy);
    put_file("copy", copy, sizeof copy);
    CHECK(image_write(in_folder("copy"), in_folder("image"), &back, &failure) == 0);
    CHECK(get_file("copy", copy, sizeof copy) == sizeof copy);
    CHECK(memcmp(copy, disk, sizeof disk) == 0);
    return length;
}

/* An empty disk gives an image without extents. */
static void test_empty(void)
{
    struct image_summary out;
    struct failure failure;

    memset(copy, 0, sizeof copy);
    put_file("zero", copy, sizeof copy);
    put_file("empty", NULL, 0);
    CHECK(image_export(in_folder("zero"), in_folder("empty"), 0, &out, &failure) == 0);
    CHECK(out.blocks == 0 && out.stream_bytes == 36);
    CHECK(image_write(in_folder("zero"), in_folder("empty"), &out, &failure) == 0);
}

/* A second image behind the first one, which stays. */
static void test_offset(void)
{
    struct image_summary out;
    struct failure failure;
    uint8_t one[24 + 12];

    put_file("second", NULL, 0);
    CHECK(image_export(in_folder("zero"), in_folder("second"), 0, &out, &failure) == 0);
    CHECK(get_file("second", one, sizeof one) == sizeof one);
    CHECK(image_export(in_folder("zero"), in_folder("second"), 5 * BLOCK, &out, &failure) == 0);
    CHECK(out.stream_bytes == sizeof one);
    CHECK(get_file("second", copy, sizeof copy) == 5 * BLOCK + sizeof one);
    CHECK(memcmp(copy, one, sizeof one) == 0);
    CHECK(memcmp(copy + 5 * BLOCK, one, sizeof one) == 0);
}

static void test_refusals(void)
{
    struct image_summary out;
    struct failure failure;

    put_file("small", disk, 100 * BLOCK);
    CHECK(image_write(in_folder("small"), in_folder("image"), &out, &failure) == -1);
    CHECK_TEXT(failure.step, "image");
    CHECK(failure.error == ENOSPC);
    put_file("odd", disk, BLOCK + 1);
    CHECK(image_export(in_folder("odd"), in_folder("empty"), 0, &out, &failure) == -1);
    CHECK_TEXT(failure.step, "export");
    CHECK(image_write(in_folder("absent"), in_folder("image"), &out, &failure) == -1);
    CHECK(failure.error == ENOENT);
    CHECK(image_write(in_folder("copy"), in_folder("absent"), &out, &failure) == -1);
    CHECK(failure.error == ENOENT);
    CHECK(image_export(in_folder("disk"), in_folder("absent"), 0, &out, &failure) == -1);
    CHECK(failure.error == ENOENT);
    /* A damaged image leaves the disk as it was. */
    memset(copy, 0, sizeof copy);
    put_file("copy", copy, sizeof copy);
    stream[30] ^= 1;
    put_file("damaged", stream, (size_t)(24 + 6 * 12 + 1504 * BLOCK + 12));
    stream[30] ^= 1;
    CHECK(image_write(in_folder("copy"), in_folder("damaged"), &out, &failure) == -1);
    CHECK(strstr(failure.message, "damaged") != NULL);
    (void)get_file("copy", copy, sizeof copy);
    CHECK(copy[0] == 0 && memcmp(copy, copy + 1, sizeof copy - 1) == 0);
}

static void store(uint8_t *at, int length, uint64_t value)
{
    for (int byte = 0; byte < length; byte++)
        at[byte] = (uint8_t)(value >> 8 * byte);
}

/* A small image with two extents, `changed` in one field, its checksum made right again. */
static const char *check_changed(size_t offset, int width, uint64_t value)
{
    static uint8_t small[24 + 2 * (12 + BLOCK) + 12];
    struct image_summary out;

    memcpy(small, "FSEXPIMG\1\0\0\0\0\x10\0\0", 16);
    store(small + 16, 8, 10 * BLOCK);
    store(small + 24, 8, 3);
    store(small + 32, 4, 1);
    memset(small + 36, 1, BLOCK);
    store(small + 36 + BLOCK, 8, 9);
    store(small + 44 + BLOCK, 4, 1);
    memset(small + 48 + BLOCK, 2, BLOCK);
    store(small + sizeof small - 12, 8, UINT64_MAX);
    store(small + offset, width, value);
    store(small + sizeof small - 4, 4, crc32_update(0, small, sizeof small - 12));
    return image_check(small, sizeof small, &out);
}

static void test_fields(void)
{
    CHECK(check_changed(24, 8, 3) == NULL);
    CHECK(check_changed(24, 8, 8) == NULL);
    CHECK_TEXT(check_changed(0, 1, 'X'), "this is not an image of version 1");
    CHECK_TEXT(check_changed(8, 4, 2), "this is not an image of version 1");
    CHECK_TEXT(check_changed(12, 4, 512), "its blocks are not of 4096 bytes");
    CHECK_TEXT(check_changed(16, 8, 9 * BLOCK), "an extent reaches beyond the disk's end");
    CHECK_TEXT(check_changed(24, 8, 9), "its extents are not in ascending order");
    CHECK_TEXT(check_changed(24, 8, UINT64_MAX - 1), "an extent reaches beyond the disk's end");
    CHECK_TEXT(check_changed(24, 8, UINT64_MAX), "something follows its end");
    CHECK_TEXT(check_changed(32, 4, 0), "an extent has no block or too many");
    CHECK_TEXT(check_changed(32, 4, 1025), "an extent has no block or too many");
    CHECK_TEXT(check_changed(32, 4, 3), "it is cut off");
    CHECK_TEXT(check_changed(36 + BLOCK, 8, 3), "its extents are not in ascending order");
    CHECK_TEXT(check_changed(36 + BLOCK, 8, 10), "an extent reaches beyond the disk's end");
}

static void test_damage(size_t length)
{
    struct image_summary out;
    size_t cuts[] = { 0, 1, 11, 23, 24, 35, 36, 48, 5000, length - 13, length - 12, length - 1 };
    size_t flips[] = { 0, 9, 13, 17, 24, 33, 40, 70000, length - 13, length - 12, length - 1 };

    for (size_t row = 0; row < sizeof cuts / sizeof cuts[0]; row++) {
        uint8_t *part = malloc(cuts[row]);
        memcpy(part, stream, cuts[row]);
        CHECK(image_check(part, cuts[row], &out) != NULL);
        free(part);
    }
    for (size_t row = 0; row < sizeof flips / sizeof flips[0]; row++) {
        stream[flips[row]] ^= 0x40;
        CHECK(image_check(stream, length, &out) != NULL);
        stream[flips[row]] ^= 0x40;
    }
    stream[length] = 0;
    CHECK_TEXT(image_check(stream, length + 1, &out), "something follows its end");
    CHECK(image_check(stream, length, &out) == NULL);
}

int main(void)
{
    static const char *const names[] = { "disk", "image", "copy", "zero", "empty", "small", "odd",
                                         "damaged", "second" };

    if (mkdtemp(folder) == NULL) {
        perror(folder);
        return 1;
    }
    test_damage(test_round_trip());
    test_empty();
    test_offset();
    test_refusals();
    test_fields();
    for (size_t row = 0; row < sizeof names / sizeof names[0]; row++)
        (void)unlink(in_folder(names[row]));
    (void)rmdir(folder);
    return checks_outcome("image");
}
