/* The guard of a child process. The proxy starts the program of each upstream through a
 * process of its own, the guard, which waits for the program. The guard becomes the
 * parent of processes that the program leaves behind (PR_SET_CHILD_SUBREAPER). A signal
 * reports to the guard that the proxy has ended (PR_SET_PDEATHSIG). So no process of an
 * upstream outlives the proxy, not even a grandchild that keeps the pipe open. */
#include "guard.h"

#include "limits.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Sends a signal to each child of this process. Returns the number of children. */
static int signal_children(int number)
{
    char path[64];
    int count = 0, pid;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    while (fscanf(file, "%d", &pid) == 1) {
        kill(pid, number);
        count++;
    }
    fclose(file);
    return count;
}

static void wait_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&time, &time) && errno == EINTR)
        ;
}

/* Reaps the children that have ended. If main_child was among them, returns true and sets
 * *status to its wait status. */
static bool reap(pid_t main_child, int *status)
{
    bool found = false;
    int how;
    pid_t pid;
    while ((pid = waitpid(-1, &how, WNOHANG)) > 0) {
        if (pid == main_child) {
            *status = how;
            found = true;
        }
    }
    return found;
}

/* Ends all descendants: sends SIGTERM, waits, and sends SIGKILL. When a process is
 * killed, its children become children of the guard. So SIGKILL is sent again until no
 * process is left. */
static void end_all(pid_t main_child, int *status, long patience_ms)
{
    if (patience_ms && signal_children(SIGTERM)) {
        for (long ms = 0; ms < patience_ms && signal_children(0); ms += GUARD_STEP_MS) {
            reap(main_child, status);
            wait_ms(GUARD_STEP_MS);
        }
    }
    while (signal_children(SIGKILL)) {
        reap(main_child, status);
        wait_ms(1);
    }
}

/* Waits for a signal. Returns its number: SIGCHLD, or a signal that asks the guard to
 * end. */
static int next_signal(const sigset_t *set)
{
    int number;
    while (sigwait(set, &number))
        ;
    return number;
}

static _Noreturn void run_program(char **argv)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execvp(argv[0], argv);
    fprintf(stderr, "segue-proxy: cannot start %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static int exit_status(int how)
{
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

int guard_run(long parent, char **argv)
{
    sigset_t set;
    int how = 0, number = SIGCHLD;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGHUP);
    if (getppid() != parent)
        return 1; /* the proxy ended before the guard could watch the proxy */
    pid_t child = fork();
    if (child < 0)
        return 126;
    if (child == 0)
        run_program(argv);
    /* only the program keeps its pipes open, so that the proxy notices when the program
     * closes them */
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    /* SIGHUP that comes while the proxy lives asks the proxy, not the guard */
    while ((number == SIGCHLD && !reap(child, &how)) ||
           (number == SIGHUP && getppid() == parent))
        number = next_signal(&set);
    end_all(child, &how,
            number == SIGHUP    ? 0
            : number == SIGCHLD ? 0
                                : GUARD_PATIENCE_MS);
    return exit_status(how);
}

int guard_run_arguments(int count, char **arguments)
{
    return count > 1 ? guard_run(strtol(arguments[0], NULL, 10), arguments + 1) : 2;
}
