#include "json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void put(struct json *object, const char *bytes, size_t length)
{
    if (object->overflowed || length > object->capacity - object->length) {
        object->overflowed = true;
        return;
    }
    memcpy(object->bytes + object->length, bytes, length);
    object->length += length;
}

static void put_text(struct json *object, const char *text)
{
    put(object, text, strlen(text));
}

/* The length of the well-formed UTF-8 sequence at `at`, or 0: Unicode's table 3-7, so no overlong
 * forms, no surrogates, nothing beyond U+10FFFF. */
static size_t sequence_length(const uint8_t *at, size_t available)
{
    static const struct {
        uint8_t first_low, first_high, second_low, second_high, length;
    } forms[] = {
        { 0x00, 0x7f, 0x00, 0x00, 1 }, { 0xc2, 0xdf, 0x80, 0xbf, 2 },
        { 0xe0, 0xe0, 0xa0, 0xbf, 3 }, { 0xe1, 0xec, 0x80, 0xbf, 3 },
        { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
        { 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 },
        { 0xf4, 0xf4, 0x80, 0x8f, 4 },
    };

    for (size_t form = 0; form < sizeof forms / sizeof forms[0]; form++) {
        if (at[0] < forms[form].first_low || at[0] > forms[form].first_high)
            continue;
        if (forms[form].length > available)
            return 0;
        if (forms[form].length > 1
            && (at[1] < forms[form].second_low || at[1] > forms[form].second_high))
            return 0;
        for (size_t next = 2; next < forms[form].length; next++)
            if ((at[next] & 0xc0) != 0x80)
                return 0;
        return forms[form].length;
    }
    return 0;
}

static void put_string(struct json *object, const char *bytes, size_t length)
{
    static const char short_escapes[0x60] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r',
        ['"'] = '"', ['\\'] = '\\',
    };
    const uint8_t *at = (const uint8_t *)bytes;

    put(object, "\"", 1);
    while (length > 0) {
        size_t whole = sequence_length(at, length);
        if (whole == 0) {
            put_text(object, "\\ufffd");
            whole = 1;
        } else if (*at < sizeof short_escapes && short_escapes[*at] != 0) {
            char escape[2] = { '\\', short_escapes[*at] };
            put(object, escape, sizeof escape);
        } else if (*at < 0x20) {
            char escape[8];
            int written = snprintf(escape, sizeof escape, "\\u%04x", *at);
            put(object, escape, (size_t)written);
        } else {
            put(object, (const char *)at, whole);
        }
        at += whole;
        length -= whole;
    }
    put(object, "\"", 1);
}

static void put_name(struct json *object, const char *name)
{
    if (!object->empty)
        put(object, ",", 1);
    object->empty = false;
    if (name == NULL)
        return;
    put_string(object, name, strlen(name));
    put(object, ":", 1);
}

void json_open(struct json *object, char *bytes, size_t capacity)
{
    *object = (struct json){ .bytes = bytes, .capacity = capacity, .empty = true };
    put(object, "{", 1);
}

void json_bytes(struct json *object, const char *name, const char *bytes, size_t length)
{
    put_name(object, name);
    put_string(object, bytes, length);
}

void json_text(struct json *object, const char *name, const char *text)
{
    json_bytes(object, name, text, strlen(text));
}

void json_integer(struct json *object, const char *name, int64_t value)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRId64, value);

    put_name(object, name);
    put(object, digits, (size_t)length);
}

void json_count(struct json *object, const char *name, uint64_t value)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, value);

    put_name(object, name);
    put(object, digits, (size_t)length);
}

static void open_in(struct json *object, const char *name, const char *bracket)
{
    put_name(object, name);
    put(object, bracket, 1);
    object->empty = true;
}

static void close_in(struct json *object, const char *bracket)
{
    put(object, bracket, 1);
    object->empty = false;
}

void json_list_open(struct json *object, const char *name)
{
    open_in(object, name, "[");
}

void json_list_text(struct json *object, const char *text)
{
    json_text(object, NULL, text);
}

void json_list_close(struct json *object)
{
    close_in(object, "]");
}

void json_object_open(struct json *object, const char *name)
{
    open_in(object, name, "{");
}

void json_object_close(struct json *object)
{
    close_in(object, "}");
}

void json_close(struct json *object)
{
    put(object, "}", 1);
}
