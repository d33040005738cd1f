/* A server that a load starts. The first line of its output is its port on 127.0.0.1. It
 * is killed with its parent. */
#ifndef BENCH_CHILD_H
#define BENCH_CHILD_H

#include "bench.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct bench_child {
    pid_t pid;
    int port;
    FILE *output;
} bench_child;

static inline void bench_child_start(bench_child *child, char **command)
{
    int from[2];
    if (pipe(from))
        bench_fail("no pipe");
    child->pid = fork();
    if (child->pid < 0)
        bench_fail("no process");
    if (child->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(from[1], STDOUT_FILENO);
        close(from[0]);
        close(from[1]);
        execvp(command[0], command);
        _exit(127);
    }
    close(from[1]);
    child->output = fdopen(from[0], "r");
    if (!child->output || fscanf(child->output, "%d", &child->port) != 1)
        bench_fail("the server does not say its port");
}

/* Starts a server on standard input and output. fds: receives the descriptor to read
 * from, and the one to write to. */
static inline void bench_child_open(bench_child *child, char **command, int fds[2])
{
    int to[2];
    int from[2];
    if (pipe(to) || pipe(from))
        bench_fail("no pipes");
    child->pid = fork();
    if (child->pid < 0)
        bench_fail("no process");
    if (child->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        close(to[1]);
        close(from[0]);
        execvp(command[0], command);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    fds[0] = from[0];
    fds[1] = to[1];
    child->output = NULL;
}

static inline void bench_child_end(const bench_child *child)
{
    kill(child->pid, SIGKILL);
    waitpid(child->pid, NULL, 0);
    if (child->output)
        fclose(child->output);
}

#endif
