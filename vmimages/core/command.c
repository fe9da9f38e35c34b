#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "file.h"

#define STEP "command"
#define OUTPUT_BYTES (64 * 1024)

struct output {
    char bytes[OUTPUT_BYTES];
    size_t length;
    bool ended; /* nobody holds the writing end any more */
};

/* Why the child did not get as far as the program. */
struct misstart {
    int error;
    enum { AT_CHDIR, AT_REDIRECT, AT_EXEC } at;
};

static const char *const misstart_names[] = {
    [AT_CHDIR] = "chdir", [AT_REDIRECT] = "dup2", [AT_EXEC] = "execve",
};

static volatile sig_atomic_t child_ended;

static void note_child(int signal)
{
    (void)signal;
    child_ended = 1;
}

/* In the child: become the program, or tell why not. */
static void start(const char *directory, char *const *arguments, int output, int misstarts,
                  const sigset_t *mask)
{
    static char *const environment[] = {
        "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "HOME=/", NULL,
    };
    struct misstart why = { .at = AT_CHDIR };
    int input = open("/dev/null", O_RDONLY | O_CLOEXEC);

    environ = (char **)environment;
    if (sigprocmask(SIG_SETMASK, mask, NULL) == 0 && chdir(directory) == 0) {
        why.at = AT_REDIRECT;
        if (input >= 0 && dup2(input, 0) == 0 && dup2(output, 1) == 1 && dup2(output, 2) == 2) {
            why.at = AT_EXEC;
            (void)execvp(arguments[0], arguments);
        }
    }
    why.error = errno;
    (void)file_write_all(misstarts, &why, sizeof why);
    _exit(127);
}

/* Read once; what does not fit is read and dropped, so that the program never waits for room. */
static void take(int pipe_end, struct output *output)
{
    static char dropped[4096];
    size_t room = sizeof output->bytes - output->length;
    ssize_t got = room > 0 ? read(pipe_end, output->bytes + output->length, room)
                           : read(pipe_end, dropped, sizeof dropped);

    if (got > 0 && room > 0)
        output->length += (size_t)got;
    if (got == 0 || (got < 0 && errno != EINTR))
        output->ended = true;
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
static bool follow(pid_t child, int pipe_end, struct output *output, const sigset_t *mask,
                   int *status)
{
    struct pollfd readable = { .fd = pipe_end, .events = POLLIN };

    while (!output->ended) {
        int ready = ppoll(&readable, 1, NULL, mask);
        if (child_ended != 0) {
            child_ended = 0;
            if (reap(child, WNOHANG, status))
                return true;
        }
        if (ready > 0)
            take(pipe_end, output);
    }
    return reap(child, 0, status);
}

static void drain(int pipe_end, struct output *output)
{
    if (fcntl(pipe_end, F_SETFL, O_NONBLOCK) != 0)
        return;
    while (!output->ended)
        take(pipe_end, output);
}

static void record_command(struct recorder *records, char *const *arguments, int status,
                           int64_t elapsed_ns, const struct output *output)
{
    struct json *record = record_begin(records, "command");

    json_list_open(record, "argv");
    for (; *arguments != NULL; arguments++)
        json_list_text(record, *arguments);
    json_list_close(record);
    json_integer(record, "status", status);
    json_integer(record, "elapsed_ns", elapsed_ns);
    json_bytes(record, "output", output->bytes, output->length);
    record_end(records);
}

struct pipes {
    int output[2];
    int misstart[2];
};

/* Parent's side, after the fork. */
static int attend(pid_t child, int64_t begin_ns, struct pipes *pipes, char *const *arguments,
                  const char *directory, const sigset_t *mask, struct recorder *records,
                  struct failure *failure)
{
    static struct output output;
    struct misstart why;
    int64_t elapsed_ns;
    int status = 0;
    int code;

    output.length = 0;
    output.ended = false;
    /* The end of this pipe means that exec has closed the child's side. */
    ssize_t told = read(pipes->misstart[0], &why, sizeof why);
    bool reaped = follow(child, pipes->output[0], &output, mask, &status);
    elapsed_ns = clock_now_ns() - begin_ns;
    if (!reaped)
        return failure_set(failure, STEP, "wait", arguments[0], errno, NULL);
    drain(pipes->output[0], &output);
    if (told == (ssize_t)sizeof why)
        return failure_set(failure, STEP, misstart_names[why.at],
                           why.at == AT_CHDIR ? directory : arguments[0], why.error, NULL);
    code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    record_command(records, arguments, code, elapsed_ns, &output);
    if (code != 0)
        return failure_set(failure, STEP, "status", arguments[0], 0, "it ended with status %d",
                           code);
    return 0;
}

int command_run(const char *directory, char *const *arguments, struct recorder *records,
                struct failure *failure)
{
    /* No SA_RESTART: a child's end has to interrupt the wait for output. */
    struct sigaction noting = { .sa_handler = note_child };
    sigset_t child_signal;
    sigset_t mask;
    struct pipes pipes;
    int64_t begin_ns;
    pid_t child;
    int outcome;

    (void)sigemptyset(&noting.sa_mask);
    (void)sigemptyset(&child_signal);
    (void)sigaddset(&child_signal, SIGCHLD);
    if (sigaction(SIGCHLD, &noting, NULL) != 0
        || sigprocmask(SIG_BLOCK, &child_signal, &mask) != 0)
        return failure_set(failure, STEP, "sigaction", arguments[0], errno, NULL);
    if (pipe2(pipes.output, O_CLOEXEC) != 0)
        return failure_set(failure, STEP, "pipe2", arguments[0], errno, NULL);
    if (pipe2(pipes.misstart, O_CLOEXEC) != 0) {
        (void)failure_set(failure, STEP, "pipe2", arguments[0], errno, NULL);
        (void)close(pipes.output[0]);
        (void)close(pipes.output[1]);
        return -1;
    }
    child_ended = 0;
    begin_ns = clock_now_ns();
    child = fork();
    if (child == 0)
        start(directory, arguments, pipes.output[1], pipes.misstart[1], &mask);
    if (child < 0)
        outcome = failure_set(failure, STEP, "fork", arguments[0], errno, NULL);
    (void)close(pipes.output[1]);
    (void)close(pipes.misstart[1]);
    if (child > 0)
        outcome = attend(child, begin_ns, &pipes, arguments, directory, &mask, records, failure);
    (void)close(pipes.output[0]);
    (void)close(pipes.misstart[0]);
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
    (void)signal(SIGCHLD, SIG_DFL);
    return outcome;
}
