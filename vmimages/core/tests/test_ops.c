/* The check of ops streams: what is sound passes, what is malformed is refused before it runs. */
#include <stdlib.h>

#include "check.h"
#include "ops.h"

#define HEADER "FSEXPOPS\1\0\0\0"
#define STREAM(text) HEADER text, sizeof(HEADER text) - 1

static void test_streams(void)
{
    static const struct {
        const char *bytes;
        size_t length;
        const char *complaint; /* NULL: a sound stream */
        uint64_t index;
    } cases[] = {
        { STREAM("\3"), NULL, 0 },
        { STREAM("\x10\1d\0\xed\3\x14\1d\0\1\1p\0\x11\2ab\0\xa4\3\x12\2ab\0\x15\2\3"), NULL, 0 },
        { STREAM("\x7f\4spin\0\3"), NULL, 0 },
        { "", 0, "this is not an ops stream of version 1", 0 },
        { "FSEXPOPS\1\0\0", 11, "this is not an ops stream of version 1", 0 },
        { "FSEXPOPS\2\0\0\0\3", 13, "this is not an ops stream of version 1", 0 },
        { "FSEXPOPX\1\0\0\0\3", 13, "this is not an ops stream of version 1", 0 },
        { STREAM(""), "the stream has no end", 0 },
        { STREAM("\x15"), "the stream has no end", 1 },
        { STREAM("\3\3"), "something follows the end", 0 },
        { STREAM("\3\0"), "something follows the end", 0 },
        { STREAM("\x15\0"), "there is no such opcode", 1 },
        { STREAM("\xff"), "there is no such opcode", 0 },
        { STREAM("\2\3"), "a phase ends that has not begun", 0 },
        { STREAM("\1\1p\0\1\1q\0\2\2\3"), "a phase begins inside a phase", 1 },
        { STREAM("\1\1p\0\3"), "the stream ends inside a phase", 1 },
        { STREAM("\1\1p\0\2\2\3"), "a phase ends that has not begun", 2 },
        { STREAM("\x12"), "a string's length is cut off or too large", 0 },
        { STREAM("\x12\x80"), "a string's length is cut off or too large", 0 },
        { STREAM("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\2a\0\3"),
          "a string's length is cut off or too large", 0 },
        { STREAM("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\1a\0\3"), "a string is too long", 0 },
        { STREAM("\x12\x80\x20" "a\0\3"), "a string is too long", 0 },
        { STREAM("\x12\xff\x1f" "a\0\3"), "a string reaches beyond the end of the stream", 0 },
        { STREAM("\x12\0\0\3"), "a string is empty", 0 },
        { STREAM("\x12\1a"), "a string reaches beyond the end of the stream", 0 },
        { STREAM("\x12\1aa\3"), "a string has no NUL after it", 0 },
        { STREAM("\x12\3a\0b\0\3"), "a string has a NUL within it", 0 },
        { STREAM("\x11\1a\0"), "a number is cut off or too large", 0 },
        { STREAM("\x11\1a\0\x80"), "a number is cut off or too large", 0 },
        { STREAM("\x11\1a\0\x80\x20\3"), "a number is out of range", 0 },
        { STREAM("\x7f\4spit\0\3"), "there is no such fault", 0 },
    };

    for (size_t row = 0; row < sizeof cases / sizeof cases[0]; row++) {
        /* A copy of exactly its length, so that a tool that watches memory sees reads beyond. */
        uint8_t *bytes = malloc(cases[row].length);
        struct ops_complaint complaint;
        bool sound;
        memcpy(bytes, cases[row].bytes, cases[row].length);
        sound = ops_check(bytes, cases[row].length, &complaint);
        free(bytes);
        CHECK(sound == (cases[row].complaint == NULL));
        if (cases[row].complaint == NULL)
            continue;
        CHECK_TEXT(complaint.text, cases[row].complaint);
        CHECK(complaint.index == cases[row].index);
    }
}

/* Every beginning of a sound stream is refused, and no single changed byte leads astray. */
static void test_damage(void)
{
    static const uint8_t sound[] = HEADER "\x10\1d\0\xed\3\1\1p\0\x11\2ab\0\xa4\3\x7f\4skip\0\2\3";
    size_t length = sizeof sound - 1;
    struct ops_complaint complaint;

    CHECK(ops_check(sound, length, &complaint));
    for (size_t cut = 0; cut < length; cut++) {
        uint8_t *bytes = malloc(cut);
        memcpy(bytes, sound, cut);
        CHECK(!ops_check(bytes, cut, &complaint));
        free(bytes);
    }
    for (size_t at = 0; at < length; at++)
        for (unsigned value = 0; value < 256; value++) {
            uint8_t *bytes = malloc(length);
            memcpy(bytes, sound, length);
            bytes[at] = (uint8_t)value;
            if (!ops_check(bytes, length, &complaint))
                CHECK(complaint.text != NULL && complaint.offset_bytes <= length);
            free(bytes);
        }
}

int main(void)
{
    test_streams();
    test_damage();
    return checks_outcome("ops");
}
