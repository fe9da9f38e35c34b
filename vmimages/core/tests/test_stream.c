/* The check of ops streams: what is sound passes, what is malformed is refused before it runs. */
#include <stdlib.h>

#include "check.h"
#include "stream.h"

#define HEADER "FSEXPOPS\2\0\0\0"
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
        { "", 0, "this is not an ops stream of version 2", 0 },
        { "FSEXPOPS\2\0\0", 11, "this is not an ops stream of version 2", 0 },
        { "FSEXPOPS\1\0\0\0\3", 13, "this is not an ops stream of version 2", 0 },
        { "FSEXPOPX\2\0\0\0\3", 13, "this is not an ops stream of version 2", 0 },
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
        /* files: all of them; the last slot; no such slot; used before, after, twice, at the end */
        { STREAM("\x16\0\1a\0\x41\xa4\3\x18\0\1\7\x80\x18\x19\0\5\x1a\0\x1b\0\x1c\0\0\1\2"
                 "\x1d\0\0\0\1\x1e\0\1\x1f\0\1\x20\0\0\0\x21\0\1\x17\0\3"), NULL, 0 },
        { STREAM("\x16\x3f\1a\0\0\0\x17\x3f\3"), NULL, 0 },
        { STREAM("\x16\0\1a\0\0\0\x17\0\x16\0\1a\0\0\0\x17\0\3"), NULL, 0 },
        { STREAM("\x40\x0d" "findutils-4.9\0\1t\0\1d\0\x41\x15" "coreutils-9.1+sorted+\0\1t\0\1u\0\3"),
          "there is no such program for this", 1 },
        { STREAM("\x40\x0d" "findutils-4.9\0\1t\0\1l\0\3"), "a type is not d or f", 0 },
        { STREAM("\x42\x0d" "coreutils-9.1\0\1t\0\x50\2/m\0\3"), NULL, 0 },
        { STREAM("\x42\x0d" "findutils-4.9\0\1t\0\3"), "there is no such program for this", 0 },
        { STREAM("\1\1p\0\x50\2/m\0\2\3"), "something is inside a phase that must not be", 1 },
        { STREAM("\x16\x40\1a\0\0\0\x17\x40\3"), "a number is out of range", 0 },
        { STREAM("\x16\x80\x80\x80\x80\x10\1a\0\0\0\3"), "a number is out of range", 0 },
        { STREAM("\x17\0\3"), "a slot is used that is not open", 0 },
        { STREAM("\x16\0\1a\0\0\0\x1a\1\3"), "a slot is used that is not open", 1 },
        { STREAM("\x16\0\1a\0\0\0\x17\0\x17\0\3"), "a slot is used that is not open", 2 },
        { STREAM("\x16\1\1a\0\0\0\x17\1\x19\1\1\3"), "a slot is used that is not open", 2 },
        { STREAM("\x16\0\1a\0\0\0\x16\0\1b\0\0\0\3"), "a slot is opened that is in use", 1 },
        { STREAM("\x16\x3f\1a\0\0\0\3"), "the stream ends while a file is open", 1 },
        { STREAM("\x16\0\1a\0\0"), "a number is cut off or too large", 0 },
        { STREAM("\x16\0\1a"), "a string reaches beyond the end of the stream", 0 },
        { STREAM("\x16\0\1a\0\0\x80\x20\3"), "a number is out of range", 0 },
        /* flags have 31 bits */
        { STREAM("\x16\0\1a\0\xff\xff\xff\xff\7\0\x17\0\3"), NULL, 0 },
        { STREAM("\x16\0\1a\0\x80\x80\x80\x80\x8\0\x17\0\3"), "a number is out of range", 0 },
        /* a pattern that is none; a seed has 64 bits, a length 63 */
        { STREAM("\x16\0\1a\0\0\0\x18\0\4\0\0\x17\0\3"), "a number is out of range", 1 },
        { STREAM("\x16\0\1a\0\0\0\x18\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\0\x17\0\3"),
          NULL, 0 },
        { STREAM("\x16\0\1a\0\0\0\x18\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x17\0\3"),
          NULL, 0 },
        { STREAM("\x16\0\1a\0\0\0\x18\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\x17\0\3"),
          "a number is out of range", 1 },
        { STREAM("\x16\0\1a\0\0\0\x20\0\xff\xff\xff\xff\xf\0\x17\0\3"), NULL, 0 },
        { STREAM("\x16\0\1a\0\0\0\x20\0\x80\x80\x80\x80\x10\0\x17\0\3"),
          "a number is out of range", 1 },
        /* names */
        { STREAM("\x22\1a\0\1b\0\x23\1a\0\1b\0\x24\1a\0\1b\0\x25\1a\0\1\x26\1a\0\x27\1a\0\1"
                 "\x28\1a\0\1\x30\x31\3"), NULL, 0 },
        { STREAM("\x22\1a\0\3"), "a string reaches beyond the end of the stream", 0 },
        { STREAM("\x22\1a\0\0\0\3"), "a string is empty", 0 },
        { STREAM("\1\1p\0\x30\2\3"), NULL, 0 },
        { STREAM("\1\1p\0\x31\2\3"), "something is inside a phase that must not be", 1 },
        { STREAM("\x16\0\1a\0\0\0\x31\x17\0\3"), "a remount while a file is open", 1 },
        /* programs */
        { STREAM("\x60\1.\0\1\1a\0\0\3"), NULL, 0 },
        { STREAM("\x60\1.\0\2\1a\0\0\0\1\2a=\0\3"), NULL, 0 },
        { STREAM("\x60\1.\0\0\0\3"), "a command has no program", 0 },
        { STREAM("\x60\1.\0\1\0\0\0\3"), "a command has no program", 0 },
        { STREAM("\x60\1.\0\1\1a\0\1\1a\0\3"), "a variable has no name or no value", 0 },
        { STREAM("\x60\1.\0\1\1a\0\1\2=a\0\3"), "a variable has no name or no value", 0 },
        { STREAM("\x60\1.\0\1\1a\0\1\0\0\3"), "a variable has no name or no value", 0 },
        { STREAM("\x60\1.\0\2\1a\0"), "a string's length is cut off or too large", 0 },
        { STREAM("\x60\1.\0\1\1a\0"), "a number is cut off or too large", 0 },
        { STREAM("\x60\1.\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\1a\0\3"),
          "a string reaches beyond the end of the stream", 0 },
    };

    for (size_t row = 0; row < sizeof cases / sizeof cases[0]; row++) {
        /* A copy of exactly its length, so that a tool that watches memory sees reads beyond. */
        uint8_t *bytes = malloc(cases[row].length);
        struct stream_complaint complaint;
        struct stream_needs needs;
        bool sound;
        memcpy(bytes, cases[row].bytes, cases[row].length);
        sound = stream_check(bytes, cases[row].length, &needs, &complaint);
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
    static const uint8_t sound[] = HEADER "\x10\1d\0\xed\3\1\1p\0\x11\2ab\0\xa4\3\x16\5\1a\0\1\0"
                                          "\x18\5\2\x80\1\7\x17\5\x7f\4skip\0\2"
                                          "\x60\1.\0\2\1a\0\0\0\1\2a=\0\3";
    size_t length = sizeof sound - 1;
    struct stream_complaint complaint;
    struct stream_needs needs;

    CHECK(stream_check(sound, length, &needs, &complaint));
    for (size_t cut = 0; cut < length; cut++) {
        uint8_t *bytes = malloc(cut);
        memcpy(bytes, sound, cut);
        CHECK(!stream_check(bytes, cut, &needs, &complaint));
        free(bytes);
    }
    for (size_t at = 0; at < length; at++)
        for (unsigned value = 0; value < 256; value++) {
            uint8_t *bytes = malloc(length);
            memcpy(bytes, sound, length);
            bytes[at] = (uint8_t)value;
            if (!stream_check(bytes, length, &needs, &complaint))
                CHECK(complaint.text != NULL && complaint.offset_bytes <= length);
            free(bytes);
        }
}

/* A list of so many strings of one byte: 3 bytes each. */
static bool list_passes(unsigned count, const char **complaint_text)
{
    size_t room = sizeof HEADER + 64 + 3 * (size_t)count;
    uint8_t *bytes = malloc(room);
    uint8_t *at = bytes;
    struct stream_complaint complaint;
    struct stream_needs needs;
    bool sound;

    memcpy(at, HEADER "\x60\1.\0", sizeof HEADER + 3);
    at += sizeof HEADER + 3;
    *at++ = (uint8_t)(count | 0x80);
    *at++ = (uint8_t)(count >> 7 | 0x80);
    *at++ = (uint8_t)(count >> 14);
    for (unsigned number = 0; number < count; number++, at += 3)
        memcpy(at, "\1a", 3);
    *at++ = 0;
    *at++ = 3;
    sound = stream_check(bytes, (size_t)(at - bytes), &needs, &complaint);
    *complaint_text = complaint.text;
    free(bytes);
    return sound;
}

static void test_long_lists(void)
{
    const char *complaint;

    CHECK(list_passes(65536 / 3, &complaint));
    CHECK(!list_passes(65536 / 3 + 1, &complaint));
    CHECK_TEXT(complaint, "a list is too long");
}

static void test_needs(void)
{
    static const uint8_t stream[] = HEADER "\x60\1.\0\1\1a\0\0\x60\1.\0\1\1a\0\0"
                                           "\1\1p\0\x60\1.\0\1\1a\0\0\x60\1.\0\1\1a\0\0\2"
                                           "\1\1q\0\x60\1.\0\1\1a\0\0\2"
                                           "\x16\0\1a\0\0\0\x18\0\2\0\0\x17\0\3";
    struct stream_complaint complaint;
    struct stream_needs needs;

    CHECK(stream_check(stream, sizeof stream - 1, &needs, &complaint));
    CHECK(needs.commands == 2);
    CHECK(!needs.patterns[PATTERN_ZEROS] && !needs.patterns[PATTERN_TEXT]);
    CHECK(needs.patterns[PATTERN_RANDOM] && !needs.patterns[PATTERN_ONES]);
    CHECK(!needs.reads);
}

int main(void)
{
    test_streams();
    test_damage();
    test_long_lists();
    test_needs();
    return checks_outcome("stream");
}
