/* One JSON object, written member by member into a fixed buffer. */
#ifndef CORE_JSON_H
#define CORE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json {
    char *bytes;
    size_t length;
    size_t capacity;
    bool overflowed; /* what did not fit was left out: the object must not be used */
    bool empty;      /* no member yet */
};

/* Begin an object in `bytes`. */
void json_open(struct json *object, char *bytes, size_t capacity);

/* Add a member; without a `name`, an element of the list that is open. A string's bytes that are
 * not valid UTF-8 become U+FFFD, one for each byte. */
void json_text(struct json *object, const char *name, const char *text);
void json_bytes(struct json *object, const char *name, const char *bytes, size_t length);
void json_integer(struct json *object, const char *name, int64_t value);
void json_count(struct json *object, const char *name, uint64_t value);

/* A list or an object as a member: open, its elements or members one by one, close. */
void json_list_open(struct json *object, const char *name);
void json_list_text(struct json *object, const char *text);
void json_list_close(struct json *object);
void json_object_open(struct json *object, const char *name);
void json_object_close(struct json *object);

/* End the object. */
void json_close(struct json *object);

#endif
