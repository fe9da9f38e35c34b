/* Programs run as a guest would run them. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "command.h"

static struct recorder records;
static char sent[1024 * 1024];

static void lost(int error)
{
    printf("a record was lost: %d\n", error);
    exit(1);
}

/* Run a shell's script in /; what was recorded is in `sent`. */
static int run(const char *directory, const char *program, const char *script,
               struct failure *failure)
{
    char *const arguments[] = { (char *)program, "-c", (char *)script, NULL };
    ssize_t length;
    int outcome;

    records.port = memfd_create("records", 0);
    records.lost = lost;
    outcome = command_run(directory, arguments, &records, failure);
    length = pread(records.port, sent, sizeof sent - 1, 0);
    sent[length < 0 ? 0 : length] = '\0';
    (void)close(records.port);
    return outcome;
}

static void test_output(void)
{
    struct failure failure;

    CHECK(run("/", "sh", "echo out; echo err >&2; pwd; echo $HOME $LC_ALL $PATH; cat", &failure)
          == 0);
    CHECK(strstr(sent, "\"argv\":[\"sh\",\"-c\",") != NULL);
    CHECK(strstr(sent, "\"status\":0,\"elapsed_ns\":") != NULL);
    CHECK(strstr(sent, "\"output\":\"out\\nerr\\n/\\n/ C /usr/sbin:/usr/bin:/sbin:/bin\\n\"")
          != NULL);
}

static void test_statuses(void)
{
    struct failure failure;

    CHECK(run("/", "sh", "exit 3", &failure) == -1);
    CHECK(strstr(sent, "\"status\":3,") != NULL);
    CHECK_TEXT(failure.operation, "status");
    CHECK_TEXT(failure.message, "it ended with status 3");
    CHECK(run("/", "sh", "kill -9 $$", &failure) == -1);
    CHECK(strstr(sent, "\"status\":137,") != NULL);
    CHECK(run("/", "no-such-program", "", &failure) == -1);
    CHECK_TEXT(sent, "");
    CHECK_TEXT(failure.operation, "execve");
    CHECK_TEXT(failure.path, "no-such-program");
    CHECK(failure.error == ENOENT);
    CHECK(run("/no-such-directory", "sh", "", &failure) == -1);
    CHECK_TEXT(failure.operation, "chdir");
    CHECK_TEXT(failure.path, "/no-such-directory");
}

/* Far more output than is kept, all of it escaped to six bytes a byte; and none that is lost. */
static void test_much_output(void)
{
    struct failure failure;
    size_t escapes = 0;

    CHECK(run("/", "sh", "head -c 300000 /dev/zero", &failure) == 0);
    for (const char *at = sent; (at = strstr(at, "\\u0000")) != NULL; at += 6)
        escapes++;
    CHECK(escapes == 65536);
    CHECK(strstr(sent, "\"output_bytes\":300000,") != NULL);
}

/* What a command leaves running does not keep it from ending. */
static void test_left_running(void)
{
    struct failure failure;

    CHECK(run("/", "sh", "sleep 3 & echo done", &failure) == 0);
    CHECK(strstr(sent, "\"output\":\"done\\n\"") != NULL);
}

/* Variables are added, and replace those of the same name. */
static void test_variables(void)
{
    static struct command_result result;
    char *const arguments[] = { "sh", "-c", "echo $HOME $LC_ALL $ADDED", NULL };
    char *const variables[] = { "HOME=/elsewhere", "ADDED=a=b", NULL };
    const struct command command = { "/", arguments, variables };
    struct failure failure;

    CHECK(command_execute(&command, &result, &failure) == 0);
    CHECK(result.status == 0);
    CHECK(result.output_bytes == 17 && result.kept_bytes == 17);
    CHECK(memcmp(result.output, "/elsewhere C a=b\n", 17) == 0);
}

static void test_closed_output(void)
{
    struct failure failure;

    CHECK(run("/", "sh", "exec >&- 2>&-; sleep 0.1; exit 4", &failure) == -1);
    CHECK(strstr(sent, "\"status\":4,") != NULL);
}

int main(void)
{
    test_output();
    test_statuses();
    test_much_output();
    test_left_running();
    test_closed_output();
    test_variables();
    return checks_outcome("command");
}
