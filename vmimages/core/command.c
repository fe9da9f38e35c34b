#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "file.h"

#define STEP "command"

/* Why the child did not get as far as the program. */
struct misstart {
    int error;
    enum { AT_CHDIR, AT_ENVIRONMENT, AT_REDIRECT, AT_EXEC } at;
};

static const char *const misstart_names[] = {
    [AT_CHDIR] = "chdir", [AT_ENVIRONMENT] = "putenv", [AT_REDIRECT] = "dup2", [AT_EXEC] = "execve",
};

static volatile sig_atomic_t child_ended;

static void note_child(int signal)
{
    (void)signal;
    child_ended = 1;
}

static bool set_environment(char *const *variables)
{
    /* putenv replaces entries in place. */
    static char *fixed[] = {
        "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "HOME=/", NULL,
    };

    environ = fixed;
    for (; *variables != NULL; variables++)
        if (putenv(*variables) != 0)
            return false;
    return true;
}

/* In the child: become the program, or tell why not. */
static void start(const struct command *command, int output, int misstarts, const sigset_t *mask)
{
    struct misstart why = { .at = AT_CHDIR };
    int input = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (sigprocmask(SIG_SETMASK, mask, NULL) == 0 && chdir(command->directory) == 0) {
        why.at = AT_ENVIRONMENT;
        if (set_environment(command->variables)) {
            why.at = AT_REDIRECT;
            if (input >= 0 && dup2(input, 0) == 0 && dup2(output, 1) == 1
                && dup2(output, 2) == 2) {
                why.at = AT_EXEC;
                (void)execvp(command->arguments[0], command->arguments);
            }
        }
    }
    why.error = errno;
    (void)file_write_all(misstarts, &why, sizeof why);
    _exit(127);
}

/* Read once; what does not fit is read and dropped, so that the program never waits for room. False
 * when nobody holds the writing end any more. */
static bool take(int pipe_end, struct command_result *result)
{
    static char dropped[4096];
    size_t room = sizeof result->output - result->kept_bytes;
    ssize_t got = room > 0 ? read(pipe_end, result->output + result->kept_bytes, room)
                           : read(pipe_end, dropped, sizeof dropped);

    if (got > 0) {
        result->output_bytes += (uint64_t)got;
        if (room > 0)
            result->kept_bytes += (size_t)got;
    }
    return got > 0 || (got < 0 && errno == EINTR);
}

/* Reap what has ended, orphans too, since process 1 inherits them. True once `child` has. */
static bool reap(pid_t child, int options, int *status)
{
    for (;;) {
        int ended_status;
        pid_t ended = waitpid(-1, &ended_status, options);
        if (ended == child) {
            *status = ended_status;
            return true;
        }
        if (ended == 0 || (ended < 0 && errno != EINTR))
            return false;
    }
}

/* Collect output until the child itself has ended: something it left running may hold the pipe
 * open for ever. `mask` lets SIGCHLD through while waiting. Returns whether it was reaped. */
static bool follow(pid_t child, int pipe_end, struct command_result *result, const sigset_t *mask,
                   int *status)
{
    struct pollfd readable = { .fd = pipe_end, .events = POLLIN };
    bool open = true;

    while (open) {
        int ready = ppoll(&readable, 1, NULL, mask);
        if (child_ended != 0) {
            child_ended = 0;
            if (reap(child, WNOHANG, status))
                return true;
        }
        if (ready > 0)
            open = take(pipe_end, result);
    }
    return reap(child, 0, status);
}

static void drain(int pipe_end, struct command_result *result)
{
    if (fcntl(pipe_end, F_SETFL, O_NONBLOCK) != 0)
        return;
    while (take(pipe_end, result))
        continue;
}

struct pipes {
    int output[2];
    int misstart[2];
};

/* Parent's side, after the fork. */
static int attend(pid_t child, int64_t begin_ns, struct pipes *pipes,
                  const struct command *command, const sigset_t *mask,
                  struct command_result *result, struct failure *failure)
{
    const char *program = command->arguments[0];
    struct misstart why;
    int status = 0;

    /* The end of this pipe means that exec has closed the child's side. */
    ssize_t told = read(pipes->misstart[0], &why, sizeof why);
    bool reaped = follow(child, pipes->output[0], result, mask, &status);
    result->elapsed_ns = clock_now_ns() - begin_ns;
    if (!reaped)
        return failure_set(failure, STEP, "wait", program, errno, NULL);
    drain(pipes->output[0], result);
    if (told == (ssize_t)sizeof why)
        return failure_set(failure, STEP, misstart_names[why.at],
                           why.at == AT_CHDIR ? command->directory : program, why.error, NULL);
    result->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return 0;
}

int command_execute(const struct command *command, struct command_result *result,
                    struct failure *failure)
{
    /* No SA_RESTART: a child's end has to interrupt the wait for output. */
    struct sigaction noting = { .sa_handler = note_child };
    const char *program = command->arguments[0];
    sigset_t child_signal;
    sigset_t mask;
    struct pipes pipes;
    int64_t begin_ns;
    pid_t child;
    int outcome;

    result->output_bytes = 0;
    result->kept_bytes = 0;
    (void)sigemptyset(&noting.sa_mask);
    (void)sigemptyset(&child_signal);
    (void)sigaddset(&child_signal, SIGCHLD);
    if (sigaction(SIGCHLD, &noting, NULL) != 0
        || sigprocmask(SIG_BLOCK, &child_signal, &mask) != 0)
        return failure_set(failure, STEP, "sigaction", program, errno, NULL);
    if (pipe2(pipes.output, O_CLOEXEC) != 0)
        return failure_set(failure, STEP, "pipe2", program, errno, NULL);
    if (pipe2(pipes.misstart, O_CLOEXEC) != 0) {
        (void)failure_set(failure, STEP, "pipe2", program, errno, NULL);
        (void)close(pipes.output[0]);
        (void)close(pipes.output[1]);
        return -1;
    }
    child_ended = 0;
    begin_ns = clock_now_ns();
    child = fork();
    if (child == 0)
        start(command, pipes.output[1], pipes.misstart[1], &mask);
    if (child < 0)
        outcome = failure_set(failure, STEP, "fork", program, errno, NULL);
    (void)close(pipes.output[1]);
    (void)close(pipes.misstart[1]);
    if (child > 0)
        outcome = attend(child, begin_ns, &pipes, command, &mask, result, failure);
    (void)close(pipes.output[0]);
    (void)close(pipes.misstart[0]);
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
    (void)signal(SIGCHLD, SIG_DFL);
    return outcome;
}

void command_record(struct recorder *records, const char *phase, char *const *arguments,
                    const struct command_result *result)
{
    struct json *record = record_begin(records, "command");

    json_text(record, "phase", phase);
    json_list_open(record, "argv");
    for (; *arguments != NULL; arguments++)
        json_list_text(record, *arguments);
    json_list_close(record);
    json_integer(record, "status", result->status);
    json_integer(record, "elapsed_ns", result->elapsed_ns);
    json_count(record, "output_bytes", result->output_bytes);
    json_bytes(record, "output", result->output, result->kept_bytes);
    record_end(records);
}

int command_check(const char *program, const struct command_result *result,
                  struct failure *failure)
{
    if (result->status == 0)
        return 0;
    return failure_set(failure, STEP, "status", program, 0, "it ended with status %d",
                       result->status);
}

int command_run(const char *directory, char *const *arguments, struct recorder *records,
                struct failure *failure)
{
    static struct command_result result;
    char *const none[] = { NULL };
    const struct command command = { directory, arguments, none };

    if (command_execute(&command, &result, failure) != 0)
        return -1;
    command_record(records, "", arguments, &result);
    return command_check(arguments[0], &result, failure);
}
