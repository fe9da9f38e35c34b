#include "module.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "file.h"

#define WAIT_NS INT64_C(10000000000)
#define POLL_NS INT64_C(1000000)

/* The base name of a module's file, without `.ko`. */
static const char *base_name(const char *path, size_t *length)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;

    *length = strlen(name);
    if (*length > 3 && strcmp(name + *length - 3, ".ko") == 0)
        *length -= 3;
    return name;
}

/* Whether the kernel has the module and has finished its start. */
static bool is_live(const char *path)
{
    size_t length;
    const char *name = base_name(path, &length);
    char state_path[256];
    char state[16];
    int written = snprintf(state_path, sizeof state_path, "/sys/module/%.*s/initstate",
                           (int)length, name);

    if (written < 0 || (size_t)written >= sizeof state_path)
        return false;
    for (size_t at = strlen("/sys/module/"); at < strlen("/sys/module/") + length; at++)
        if (state_path[at] == '-')
            state_path[at] = '_';
    if (file_read_text(state_path, state, sizeof state) >= 0)
        return strcmp(state, "live\n") == 0;
    /* Code that is built into the kernel has a directory, but no state. */
    *strrchr(state_path, '/') = '\0';
    return access(state_path, F_OK) == 0;
}

/* One attempt; init_module because finit_module is younger than the oldest kernels. */
static int insert(const struct module_request *request)
{
    struct file_map module;
    int outcome;
    int error;

    if (file_map(request->path, 0, &module) != 0)
        return -1;
    outcome = (int)syscall(SYS_init_module, module.bytes, module.length, request->parameters);
    error = errno;
    file_unmap(&module);
    errno = error;
    return outcome;
}

int module_load(const struct module_request *request)
{
    int64_t deadline_ns = clock_now_ns() + WAIT_NS;

    /* Before 3.9 the kernel refuses a module that another process is loading without waiting for
     * it; to go on then would be to go on without the module. */
    for (;;) {
        if (insert(request) == 0)
            return 0;
        /* An accelerated form of an algorithm, on a processor without it; modprobe goes on as well. */
        if (errno == ENODEV)
            return 0;
        if (errno != EEXIST)
            return -1;
        if (is_live(request->path))
            return 0;
        if (clock_now_ns() >= deadline_ns) {
            errno = ETIMEDOUT;
            return -1;
        }
        clock_sleep_ns(POLL_NS);
    }
}

/* What the child tells of its progress. Smaller than PIPE_BUF: never cut. */
struct progress {
    size_t number; /* the module it is at */
    int error;     /* 0, or why it stopped */
};

static void load_in_child(const struct module_request *requests, size_t count, int reports)
{
    for (size_t number = 0; number < count; number++) {
        struct progress progress = { .number = number, .error = 0 };
        if (file_write_all(reports, &progress, sizeof progress) != 0)
            _exit(1);
        if (module_load(&requests[number]) == 0)
            continue;
        progress.error = errno;
        (void)file_write_all(reports, &progress, sizeof progress);
        _exit(1);
    }
    _exit(0);
}

/* Wait for the child. Its exit status, or -1 with errno. */
static int follow(pid_t child, int reports, struct progress *last)
{
    struct progress progress;
    ssize_t got;
    int status;

    for (;;) {
        got = read(reports, &progress, sizeof progress);
        if (got == (ssize_t)sizeof progress)
            *last = progress;
        else if (got >= 0 || errno != EINTR)
            break;
    }
    while (waitpid(child, &status, 0) != child)
        if (errno != EINTR)
            return -1;
    return status;
}

static void record_modules(const struct module_request *requests, size_t count,
                           struct recorder *records)
{
    struct json *record = record_begin(records, "modules");

    json_list_open(record, "loaded");
    for (size_t number = 0; number < count; number++) {
        char name[128];
        size_t length;
        const char *base = base_name(requests[number].path, &length);
        (void)snprintf(name, sizeof name, "%.*s", (int)length, base);
        json_list_text(record, name);
    }
    json_list_close(record);
    record_end(records);
}

int module_load_all(const struct module_request *requests, size_t count, struct recorder *records,
                    struct failure *failure)
{
    struct progress last = { .number = 0, .error = 0 };
    int ends[2];
    pid_t child;
    int status;

    if (pipe(ends) != 0)
        return failure_set(failure, "module", "pipe", requests[0].path, errno, NULL);
    child = fork();
    if (child == 0) {
        (void)close(ends[0]);
        load_in_child(requests, count, ends[1]);
    }
    (void)close(ends[1]);
    if (child < 0) {
        (void)failure_set(failure, "module", "fork", requests[0].path, errno, NULL);
        (void)close(ends[0]);
        return -1;
    }
    status = follow(child, ends[0], &last);
    (void)close(ends[0]);
    if (status == -1)
        return failure_set(failure, "module", "wait", requests[last.number].path, errno, NULL);
    if (WIFSIGNALED(status))
        return failure_set(failure, "module", "init_module", requests[last.number].path, 0,
                           "the process loading it was killed by signal %d", WTERMSIG(status));
    if (last.error != 0)
        return failure_set(failure, "module", "init_module", requests[last.number].path,
                           last.error, NULL);
    if (WEXITSTATUS(status) != 0)
        return failure_set(failure, "module", "init_module", requests[last.number].path, 0,
                           "the process loading it exited with status %d", WEXITSTATUS(status));
    record_modules(requests, count, records);
    return 0;
}
