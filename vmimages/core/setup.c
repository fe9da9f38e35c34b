#include "setup.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "calibrate.h"
#include "command.h"
#include "counters.h"
#include "disk.h"
#include "image.h"
#include "module.h"
#include "mount.h"
#include "ops.h"
#include "number.h"
#include "pseudo.h"

#define STEP "setup"
#define PATH "/fsexp/setup"

/* When these run, the fields have been checked against the directive's row: numbers can be read. */

static int run_modules(const struct step *steps, size_t count, struct recorder *records,
                       struct failure *failure)
{
    struct module_request *requests = calloc(count, sizeof *requests);
    int outcome;

    if (requests == NULL)
        return failure_set(failure, "module", "calloc", steps[0].fields[0], errno, NULL);
    for (size_t number = 0; number < count; number++)
        requests[number] = (struct module_request){
            .path = steps[number].fields[0],
            .parameters = steps[number].count > 1 ? steps[number].fields[1] : "",
        };
    outcome = module_load_all(requests, count, records, failure);
    free(requests);
    return outcome;
}

static int run_disk(const struct step *steps, size_t count, struct recorder *records,
                    struct failure *failure)
{
    uint64_t least_bytes = 0;

    (void)count;
    (void)records;
    (void)number_decimal(steps->fields[1], &least_bytes);
    if (disk_wait(steps->fields[0], least_bytes, failure) != 0)
        return -1;
    counters_watch(steps->fields[0]);
    return 0;
}

static int run_image(const struct step *steps, size_t count, struct recorder *records,
                     struct failure *failure)
{
    const char *device = steps->fields[0];
    const char *path = steps->fields[1];
    struct image_summary summary;
    struct json *record;

    (void)count;
    if (image_write(device, path, &summary, failure) != 0)
        return -1;
    /* The initramfs is memory: give back what the image took. */
    if (unlink(path) != 0)
        return failure_set(failure, "image", "unlink", path, errno, NULL);
    record = record_begin(records, "image");
    json_text(record, "device", device);
    json_count(record, "blocks", summary.blocks);
    json_count(record, "bytes", summary.blocks * IMAGE_BLOCK_BYTES);
    record_end(records);
    return 0;
}

static int run_mount(const struct step *steps, size_t count, struct recorder *records,
                     struct failure *failure)
{
    uint64_t magic = 0;

    (void)count;
    (void)number_hexadecimal(steps->fields[4], &magic);
    struct mount_request request = {
        .device = steps->fields[0],
        .filesystem = steps->fields[1],
        .directory = steps->fields[2],
        .options = steps->fields[3],
        .magic = (uint32_t)magic,
    };
    if (mount_filesystem(&request, records, failure) != 0)
        return -1;
    counters_watch(request.device);
    return 0;
}

static int run_ops(const struct step *steps, size_t count, struct recorder *records,
                   struct failure *failure)
{
    (void)count;
    return ops_run(steps->fields[0], steps->fields[1], NULL, records, failure);
}

static int run_command(const struct step *steps, size_t count, struct recorder *records,
                       struct failure *failure)
{
    (void)count;
    return command_run(steps->fields[0], steps->fields + 1, records, failure);
}

static int run_umount(const struct step *steps, size_t count, struct recorder *records,
                      struct failure *failure)
{
    (void)count;
    (void)records;
    if (umount2(steps->fields[0], 0) != 0)
        return failure_set(failure, "umount", "umount", steps->fields[0], errno, NULL);
    return 0;
}

static int run_export(const struct step *steps, size_t count, struct recorder *records,
                      struct failure *failure)
{
    struct image_summary summary;
    struct json *record;
    char digest[9];
    uint64_t offset_bytes = 0;

    (void)count;
    if (steps->count > 2)
        (void)number_decimal(steps->fields[2], &offset_bytes);
    /* The target's driver may have been loaded just before. */
    if (disk_wait(steps->fields[1], 1, failure) != 0) {
        failure->step = "export";
        return -1;
    }
    if (image_export(steps->fields[0], steps->fields[1], offset_bytes, &summary, failure) != 0)
        return -1;
    number_hexadecimal_text(summary.stream_crc32, digest);
    record = record_begin(records, "export");
    json_text(record, "device", steps->fields[0]);
    json_count(record, "bytes", summary.stream_bytes);
    json_count(record, "blocks", summary.blocks);
    json_text(record, "digest_crc32", digest);
    record_end(records);
    return 0;
}

static int run_write(const struct step *steps, size_t count, struct recorder *records,
                     struct failure *failure)
{
    (void)count;
    (void)records;
    return pseudo_write(steps->fields[0], steps->fields[1], failure);
}

static int run_mkdir(const struct step *steps, size_t count, struct recorder *records,
                     struct failure *failure)
{
    (void)count;
    (void)records;
    return pseudo_mkdir(steps->fields[0], failure);
}

static int run_filesystem(const struct step *steps, size_t count, struct recorder *records,
                          struct failure *failure)
{
    (void)count;
    (void)records;
    return pseudo_mount(steps->fields[0], steps->fields[1], failure);
}

static int run_wait(const struct step *steps, size_t count, struct recorder *records,
                    struct failure *failure)
{
    (void)count;
    (void)records;
    return pseudo_wait(steps->fields[0], failure);
}

static int run_calibrate(const struct step *steps, size_t count, struct recorder *records,
                         struct failure *failure)
{
    (void)count;
    return calibrate(steps->fields[0], records, failure);
}

/* Kinds of fields: p an absolute path; d decimal digits; x 0x and hexadecimal digits, at most 32
 * bits; w text that is not empty; t any text; and, as the last, * any number of further fields. */
static const struct directive {
    const char *name;
    const char *kinds;
    size_t least; /* fields that must be there */
    bool grouped; /* a run of consecutive lines is one step */
    int (*run)(const struct step *steps, size_t count, struct recorder *records,
               struct failure *failure);
} directives[] = {
    { "module", "pt", 1, true, run_modules },
    { "disk", "pd", 2, false, run_disk },
    { "image", "pp", 2, false, run_image },
    { "mount", "wwptx", 5, false, run_mount },
    { "ops", "pp", 2, false, run_ops },
    { "command", "pw*", 2, false, run_command },
    { "umount", "p", 1, false, run_umount },
    { "export", "ppd", 2, false, run_export },
    { "write", "pw", 2, false, run_write },
    { "mkdir", "p", 1, false, run_mkdir },
    { "filesystem", "wp", 2, false, run_filesystem },
    { "wait", "p", 1, false, run_wait },
    { "calibrate", "p", 1, false, run_calibrate },
};

static bool field_fits(char kind, const char *field)
{
    uint64_t value;

    switch (kind) {
    case 'p':
        return field[0] == '/';
    case 'd':
        return number_decimal(field, &value);
    case 'x':
        return number_hexadecimal(field, &value) && value <= UINT32_MAX;
    case 'w':
        return field[0] != '\0';
    default:
        return true;
    }
}

/* What is wrong with a step, or NULL. */
static const char *check_fields(const struct step *step)
{
    const char *kind = step->directive->kinds;

    if (step->count < step->directive->least)
        return "it has too few fields";
    for (size_t number = 0; number < step->count; number++) {
        if (*kind == '\0')
            return "it has too many fields";
        if (!field_fits(*kind, step->fields[number]))
            return "one of its fields is not what it has to be";
        if (*kind != '*')
            kind++;
    }
    return NULL;
}

static const struct directive *find_directive(const char *name)
{
    for (size_t row = 0; row < sizeof directives / sizeof directives[0]; row++)
        if (strcmp(directives[row].name, name) == 0)
            return &directives[row];
    return NULL;
}

/* Take one line apart, its fields going to `*fields`. What is wrong with it, or NULL. */
static const char *parse_step(char *line, struct step *step, char ***fields)
{
    char *rest = line;
    const char *name = strsep(&rest, "\t");
    char *field;

    *step = (struct step){ .directive = find_directive(name), .fields = *fields };
    if (step->directive == NULL)
        return "there is no such directive";
    while ((field = strsep(&rest, "\t")) != NULL)
        step->fields[step->count++] = field;
    step->fields[step->count] = NULL;
    *fields += step->count + 1;
    return check_fields(step);
}

int setup_parse(char *text, size_t length, struct setup *setup, struct failure *failure)
{
    size_t lines = 0;
    size_t tabs = 0;
    size_t number = 1;
    char **fields;
    char *line;

    *setup = (struct setup){ .steps = NULL };
    if (length == 0 || text[length - 1] != '\n' || memchr(text, 0, length) != NULL)
        return failure_set(failure, STEP, "parse", PATH, 0, "it is empty, cut off or not text");
    text[length - 1] = '\0';
    for (size_t at = 0; at < length; at++) {
        lines += text[at] == '\n' || text[at] == '\0';
        tabs += text[at] == '\t';
    }
    setup->steps = calloc(lines, sizeof *setup->steps);
    setup->fields = calloc(lines + tabs, sizeof *setup->fields);
    if (setup->steps == NULL || setup->fields == NULL)
        return failure_set(failure, STEP, "calloc", PATH, errno, NULL);
    fields = setup->fields;
    line = strsep(&text, "\n");
    if (strcmp(line, "fsexp-setup\t1") != 0)
        return failure_set(failure, STEP, "parse", PATH, 0, "it is not a setup of version 1");
    while ((line = strsep(&text, "\n")) != NULL) {
        const char *wrong = parse_step(line, &setup->steps[setup->count], &fields);
        number++;
        if (wrong != NULL)
            return failure_set(failure, STEP, "parse", PATH, 0, "line %llu (%.60s): %s",
                               (unsigned long long)number, line, wrong);
        setup->count++;
    }
    return 0;
}

void setup_free(struct setup *setup)
{
    free(setup->steps);
    free(setup->fields);
    *setup = (struct setup){ .steps = NULL };
}

const char *setup_step_name(const struct step *step)
{
    return step->directive->name;
}

int setup_run(const struct setup *setup, struct recorder *records, struct failure *failure)
{
    size_t at = 0;

    while (at < setup->count) {
        const struct directive *directive = setup->steps[at].directive;
        size_t count = 1;
        while (directive->grouped && at + count < setup->count
               && setup->steps[at + count].directive == directive)
            count++;
        if (directive->run(&setup->steps[at], count, records, failure) != 0)
            return -1;
        at += count;
    }
    return 0;
}
