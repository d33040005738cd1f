/* The player leads a process group, and is reaped only together with its children. So its
 * number, and that of its group, cannot belong to other processes by then. Orphans of the
 * group become children of the conductor, which is a subreaper. */
#include "player.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int spawn(player *p, char *const argv[], int err)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    int fault = posix_spawn_file_actions_init(&files);
    if (fault)
        return fault;
    fault = posix_spawnattr_init(&attributes);
    if (!fault) {
        fault = posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
        if (!fault)
            fault = posix_spawnattr_setsigmask(&attributes, &none);
        if (!fault)
            fault = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK |
                                                              POSIX_SPAWN_SETPGROUP);
        if (!fault)
            fault = posix_spawn(&p->pid, argv[0], &files, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return fault;
}

static void close_voice(player *p)
{
    if (p->voice >= 0)
        close(p->voice);
    p->voice = -1;
}

int player_start(player *p, char *const argv[])
{
    int ends[2];
    *p = (player){.voice = -1};
    if (pipe2(ends, O_CLOEXEC))
        return errno;
    int fault = spawn(p, argv, ends[1]);
    close(ends[1]);
    p->voice = ends[0];
    if (fault) {
        p->pid = 0;
        close_voice(p);
    }
    return fault;
}

/* A line that is longer than the buffer is taken in pieces. */
bool player_hear(player *p, void (*take)(void *user, const char *said), void *user)
{
    ssize_t got =
        read(p->voice, p->heard + p->heard_len, sizeof p->heard - 1 - p->heard_len);
    if (got < 0 && errno == EINTR)
        return true;
    p->heard_len += got > 0 ? (size_t)got : 0;
    p->heard[p->heard_len] = 0;
    char *at = p->heard, *end;
    while ((end = strchr(at, '\n'))) {
        *end = 0;
        take(user, at);
        at = end + 1;
    }
    p->heard_len = strlen(at);
    if (p->heard_len == sizeof p->heard - 1) {
        take(user, at);
        p->heard_len = 0;
    }
    memmove(p->heard, at, p->heard_len);
    return got > 0;
}

void player_kill_all(const player *p)
{
    if (p->pid)
        kill(-p->pid, SIGKILL);
}

/* Processes that the player left behind become children of the conductor when the player
 * ends. */
int player_reap(player *p)
{
    int status = 0, other;
    pid_t pid = p->pid, got;
    siginfo_t info;
    if (!pid)
        return 0;
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) && errno == EINTR)
        continue;
    while ((got = waitpid(-pid, &other, 0)) > 0 || (got < 0 && errno == EINTR))
        if (got == pid)
            status = other;
    p->pid = 0;
    close_voice(p);
    return status;
}
