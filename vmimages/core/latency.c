#include "latency.h"

uint64_t latency_lower_ns(unsigned bucket)
{
    if (bucket < 16)
        return bucket;
    return (uint64_t)(bucket % 8 + 8) << (bucket / 8 - 1);
}

uint64_t latency_percentile_ns(const struct latency *latency, unsigned percent)
{
    uint64_t rank = latency->count / 100 * percent + (latency->count % 100 * percent + 99) / 100;
    uint64_t passed = 0;

    for (unsigned bucket = 0; bucket + 1 < LATENCY_BUCKETS; bucket++) {
        passed += latency->buckets[bucket];
        if (passed >= rank && passed > 0) {
            uint64_t upper_ns = latency_lower_ns(bucket + 1) - 1;
            return upper_ns < latency->max_ns ? upper_ns : latency->max_ns;
        }
    }
    return latency->max_ns;
}

void latency_record(const struct latency *latency, const char *phase, const char *operation,
                    struct recorder *records)
{
    struct json *record = record_begin(records, "operations");

    json_text(record, "phase", phase);
    json_text(record, "operation", operation);
    json_count(record, "count", latency->count);
    json_count(record, "bytes", latency->bytes);
    json_count(record, "errors", latency->errors);
    json_count(record, "total_ns", latency->total_ns);
    json_count(record, "max_ns", latency->max_ns);
    json_count(record, "p50_ns", latency_percentile_ns(latency, 50));
    json_count(record, "p90_ns", latency_percentile_ns(latency, 90));
    json_count(record, "p99_ns", latency_percentile_ns(latency, 99));
    json_list_open(record, "buckets");
    for (unsigned bucket = 0; bucket < LATENCY_BUCKETS; bucket++) {
        if (latency->buckets[bucket] == 0)
            continue;
        json_list_open(record, NULL);
        json_count(record, NULL, latency_lower_ns(bucket));
        json_count(record, NULL, latency->buckets[bucket]);
        json_list_close(record);
    }
    json_list_close(record);
    record_end(records);
}
