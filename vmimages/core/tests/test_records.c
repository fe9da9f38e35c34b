/* JSON and the records made of it. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "crc32.h"
#include "failure.h"
#include "json.h"
#include "record.h"

/* Escape `length` bytes: what is between the quotes of the member. */
static const char *escaped(const char *bytes, size_t length)
{
    static char text[4096];
    struct json object;

    json_open(&object, text, sizeof text - 1);
    json_bytes(&object, "s", bytes, length);
    if (object.overflowed || object.length < 7)
        return NULL;
    text[object.length - 1] = '\0';
    return text + strlen("{\"s\":\"");
}

static void test_escapes(void)
{
    static const struct {
        const char *bytes;
        size_t length;
        const char *wanted;
    } cases[] = {
        { "plain", 5, "plain" },
        { "", 0, "" },
        { "a\"b\\c/d", 7, "a\\\"b\\\\c/d" },
        { "\b\t\n\f\r", 5, "\\b\\t\\n\\f\\r" },
        { "\0\x01\x1f\x7f", 4, "\\u0000\\u0001\\u001f\x7f" },
        { "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", 11, "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80" },
        /* alone, cut off, overlong, a surrogate, beyond the last, never used */
        { "a\x80z", 3, "a\\ufffdz" },
        { "\xe2\x82", 2, "\\ufffd\\ufffd" },
        { "\xe2\x82z", 3, "\\ufffd\\ufffdz" },
        { "\xc0\xaf", 2, "\\ufffd\\ufffd" },
        { "\xe0\x80\xaf", 3, "\\ufffd\\ufffd\\ufffd" },
        { "\xed\xa0\x80", 3, "\\ufffd\\ufffd\\ufffd" },
        { "\xf4\x90\x80\x80", 4, "\\ufffd\\ufffd\\ufffd\\ufffd" },
        { "\xff\xfe", 2, "\\ufffd\\ufffd" },
        { "\xf0\x9f\x98z", 4, "\\ufffd\\ufffd\\ufffdz" },
    };

    for (size_t row = 0; row < sizeof cases / sizeof cases[0]; row++)
        CHECK_TEXT(escaped(cases[row].bytes, cases[row].length), cases[row].wanted);
}

static void test_object(void)
{
    char text[200];
    struct json object;

    json_open(&object, text, sizeof text - 1);
    json_integer(&object, "low", INT64_MIN);
    json_count(&object, "high", UINT64_MAX);
    json_list_open(&object, "none");
    json_list_close(&object);
    json_list_open(&object, "two");
    json_list_text(&object, "a");
    json_list_text(&object, "b");
    json_list_close(&object);
    json_object_open(&object, "in");
    json_list_open(&object, "pairs");
    for (unsigned number = 1; number < 3; number++) {
        json_list_open(&object, NULL);
        json_count(&object, NULL, number);
        json_integer(&object, NULL, -1);
        json_list_close(&object);
    }
    json_object_open(&object, NULL);
    json_object_close(&object);
    json_list_close(&object);
    json_text(&object, "after", "y");
    json_object_close(&object);
    json_text(&object, "last", "x");
    json_close(&object);
    text[object.length] = '\0';
    CHECK_TEXT(text, "{\"low\":-9223372036854775808,\"high\":18446744073709551615,\"none\":[],"
                     "\"two\":[\"a\",\"b\"],\"in\":{\"pairs\":[[1,-1],[2,-1],{}],\"after\":\"y\"},"
                     "\"last\":\"x\"}");
}

static void test_overflow(void)
{
    char text[32];
    struct json object;

    for (size_t capacity = 0; capacity < sizeof text; capacity++) {
        memset(text, '!', sizeof text);
        json_open(&object, text, capacity);
        json_text(&object, "name", "twelve bytes");
        json_close(&object);
        CHECK(object.length <= capacity);
        CHECK(object.overflowed == (capacity < 23));
        CHECK(text[capacity] == '!');
    }
}

static struct recorder records;
static char sent[8192];

static void lost(int error)
{
    printf("a record was lost: %d\n", error);
    exit(1);
}

static void begin(void)
{
    records.port = memfd_create("records", 0);
    records.lost = lost;
    records.sequence = records.written = 0;
    if (records.port < 0)
        lost(errno);
}

static const char *take(void)
{
    ssize_t length = pread(records.port, sent, sizeof sent - 1, 0);

    (void)close(records.port);
    sent[length < 0 ? 0 : length] = '\0';
    return sent;
}

/* The line's checksum is of all that is before it. */
static void check_sum(const char *line, size_t length)
{
    char wanted[32];
    size_t summed = length - strlen(",\"crc32\":\"00000000\"}");

    (void)snprintf(wanted, sizeof wanted, ",\"crc32\":\"%08x\"}",
                   (unsigned)crc32_update(0, line, summed));
    CHECK(strncmp(line + summed, wanted, strlen(wanted)) == 0);
}

static void test_records(void)
{
    size_t lines = 0;
    struct json *record;

    begin();
    record = record_begin(&records, "phase");
    json_text(record, "name", "cr\xff\n");
    record_end(&records);
    record_skip(&records);
    record_last(&records, true);
    record_repeat(&records);
    (void)take();
    CHECK(strncmp(sent, "{\"seq\":0,\"type\":\"phase\",\"name\":\"cr\\ufffd\\n\",\"crc32\":\"", 52)
          == 0);
    CHECK(strstr(sent, "\n{\"seq\":2,\"type\":\"end\",\"status\":\"ok\",\"records\":2,") != NULL);
    for (const char *line = sent; *line != '\0'; lines++) {
        size_t length = strcspn(line, "\n");
        CHECK(line[length] == '\n');
        check_sum(line, length);
        line += length + 1;
    }
    CHECK(lines == 3);
}

static void test_hello(void)
{
    begin();
    record_hello(&records);
    (void)take();
    CHECK(strncmp(sent, "{\"seq\":0,\"type\":\"hello\",\"format\":1,\"core\":\"", 42) == 0);
    CHECK(strstr(sent, ",\"monotonic_ns\":") != NULL);
}

static void test_failure(void)
{
    struct failure failure;

    begin();
    CHECK(failure_set(&failure, "ops", "create", "a/b", ENOSPC, NULL) == -1);
    failure.in_ops = true;
    failure.index = 7;
    failure.phase = "create";
    failure_record(&failure, &records, false);
    (void)failure_set(&failure, "image", "check", "/i", 0, "%d of %s", 3, "them");
    failure_record(&failure, &records, false);
    (void)take();
    CHECK(strstr(sent, "\"type\":\"fail\",\"step\":\"ops\",\"operation\":\"create\",\"path\":\"a/b\","
                       "\"errno\":28,\"error\":\"ENOSPC\",\"index\":7,\"phase\":\"create\","
                       "\"message\":\"create failed: No space left on device\",\"crc32\"")
          != NULL);
    CHECK(strstr(sent, "\"errno\":0,\"error\":\"\",\"message\":\"3 of them\",\"crc32\"") != NULL);
}

int main(void)
{
    test_escapes();
    test_object();
    test_overflow();
    test_records();
    test_hello();
    test_failure();
    return checks_outcome("records");
}
