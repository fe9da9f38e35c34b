/* The histogram of times. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "latency.h"

/* Every bucket begins where the one before ends, and no further than an eighth from its end. */
static void test_buckets(void)
{
    CHECK(latency_bucket(0) == 0);
    CHECK(latency_bucket(15) == 15);
    CHECK(latency_bucket(UINT64_MAX) == LATENCY_BUCKETS - 1);
    for (unsigned bucket = 0; bucket < LATENCY_BUCKETS; bucket++) {
        uint64_t lower_ns = latency_lower_ns(bucket);
        CHECK(latency_bucket(lower_ns) == bucket);
        CHECK(bucket == 0 || latency_bucket(lower_ns - 1) == bucket - 1);
        if (bucket + 1 < LATENCY_BUCKETS)
            CHECK(latency_lower_ns(bucket + 1) - lower_ns <= lower_ns / 8 + 1);
    }
    /* 1000 is 1111101000 in binary: of the eight that begin at 512, the one from 960 to 1023. */
    CHECK(latency_lower_ns(latency_bucket(1000)) == 960);
}

static void test_percentiles(void)
{
    struct latency latency = { .count = 0 };

    for (uint64_t ns = 1; ns <= 10; ns++)
        latency_add(&latency, ns);
    /* Ten exact numbers: the ranks are 5, 9 and 10. */
    CHECK(latency_percentile_ns(&latency, 50) == 5);
    CHECK(latency_percentile_ns(&latency, 90) == 9);
    CHECK(latency_percentile_ns(&latency, 99) == 10);
    latency_add(&latency, 1000);
    CHECK(latency.count == 11 && latency.total_ns == 1055 && latency.max_ns == 1000);
    CHECK(latency_percentile_ns(&latency, 50) == 6);
    CHECK(latency_percentile_ns(&latency, 99) == 1000); /* and not its bucket's end, 1023 */
    latency_add(&latency, UINT64_MAX - 2000);
    CHECK(latency_percentile_ns(&latency, 100) == UINT64_MAX - 2000);
}

static void lost(int error)
{
    printf("a record was lost: %d\n", error);
    exit(1);
}

static void test_record(void)
{
    static struct recorder records;
    static char sent[4096];
    struct latency latency = { .bytes = 30, .errors = 1 };
    ssize_t length;

    latency_add(&latency, 3);
    latency_add(&latency, 3);
    latency_add(&latency, 1000);
    records.port = memfd_create("records", 0);
    records.lost = lost;
    latency_record(&latency, "p", "read", &records);
    length = pread(records.port, sent, sizeof sent - 1, 0);
    sent[length < 0 ? 0 : length] = '\0';
    (void)close(records.port);
    CHECK(strstr(sent, "\"type\":\"operations\",\"phase\":\"p\",\"operation\":\"read\",\"count\":3,"
                       "\"bytes\":30,\"errors\":1,\"total_ns\":1006,\"max_ns\":1000,\"p50_ns\":3,"
                       "\"p90_ns\":1000,\"p99_ns\":1000,\"buckets\":[[3,2],[960,1]],\"crc32\":")
          != NULL);
}

int main(void)
{
    test_buckets();
    test_percentiles();
    test_record();
    return checks_outcome("latency");
}
