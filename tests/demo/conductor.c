/* The conductor is the parent of the client and grandparent of the server.
 *
 * It hears of both through one pipe per client: the client's standard error, which the
 * servers that it starts inherit. The pipe ends when the last of them is gone, so its end
 * is when the next client may start: two servers at one time would be two owners of a
 * task.
 *
 *   start client --> run, kills as planned --> the pipe ends --> reap
 *       ^                                          |  we killed the client: again
 *       \------------------------------------------/  else: compare, verdict
 *
 * A kill is due when so many segments have arrived and, from then, a random time has
 * passed. A server is killed through a pidfd, opened when it says who it is: a number
 * could have come to mean another process.
 *
 * No process is left behind: the client is the leader of a process group, which is killed
 * as a whole while the client is not reaped yet; orphaned servers become children of the
 * conductor and are reaped too; and a client whose conductor dies is killed by the
 * system. */
#include "conductor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "screen.h"

#define LIMIT_MS 50000 /* of the whole run */
#define LEAVE_MS 5000  /* for a server to go after its client */
#define LARGEST_TEXT ((size_t)16 * 1024 * 1024)
#define MOST_KILLS 4
#define MOST_DELAY_MS 60

extern char **environ;

typedef struct kill_plan {
    size_t at; /* segments */
    int64_t delay_ms;
    bool client;
} kill_plan;

typedef struct conductor {
    const char *program;
    const char *text_path;
    char text_full[4096];
    char server[4096];
    char dir[4096];
    int duration_ms;
    uint64_t random;
    text text;
    screen screen;
    totals counts;
    kill_plan plan[MOST_KILLS];
    size_t plan_len;
    size_t plan_at;
    int64_t fire_ms; /* when the next kill is done, 0 = it is not due */
    int64_t started_ms;
    int64_t leave_ms; /* when the rest of a killed client's family is killed, 0 = never */
    pid_t client;     /* not reaped; 0 = none */
    bool client_killed;
    int events;       /* of the client's family; -1 = none */
    int signals;      /* signalfd */
    int server_pidfd; /* -1 = no server is known to live */
    char heard[4096];
    size_t heard_len;
    size_t segments;
    bool done;     /* a client has said so */
    int interrupt; /* signal */
    char why[256]; /* the first thing that went wrong */
} conductor;

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void note(conductor *c, const char *why)
{
    if (!*c->why)
        snprintf(c->why, sizeof c->why, "%s", why);
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- the plan ---- */

/* splitmix64 */
static uint64_t draw(conductor *c, uint64_t below)
{
    uint64_t x = c->random += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (x ^ (x >> 31)) % below;
}

static int by_place(const void *a, const void *b)
{
    const kill_plan *one = a, *other = b;
    return (one->at > other->at) - (one->at < other->at);
}

/* Two or three kills of the server, one of the client, all before four fifths of the text
 * have come, so that there is always something left to lose. */
static void make_plan(conductor *c)
{
    c->plan_len = 3 + (size_t)draw(c, MOST_KILLS - 2);
    for (size_t i = 0; i < c->plan_len; i++) {
        uint64_t place = 50 + draw(c, 750); /* thousandths */
        c->plan[i].at = (size_t)((uint64_t)c->text.count * place / 1000);
        c->plan[i].delay_ms = (int64_t)draw(c, MOST_DELAY_MS);
    }
    qsort(c->plan, c->plan_len, sizeof *c->plan, by_place);
    c->plan[draw(c, c->plan_len)].client = true;
}

/* ---- the client ---- */

static void path_in_dir(const conductor *c, const char *name, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", c->dir, name);
}

static int spawn_client(conductor *c, int err)
{
    char output[4200], state[4200], store[4200], duration[32], parent[32];
    char mode[] = "--client";
    path_in_dir(c, "output", output, sizeof output);
    path_in_dir(c, "state", state, sizeof state);
    path_in_dir(c, "tasks.db", store, sizeof store);
    snprintf(duration, sizeof duration, "%d", c->duration_ms);
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    char *const argv[] = {(char *)c->program, mode,   parent, c->server, store,
                          c->text_full,       output, state,  duration,  NULL};
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
            fault =
                posix_spawn(&c->client, c->program, &files, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return fault;
}

static bool start_client(conductor *c)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC)) {
        note(c, strerror(errno));
        return false;
    }
    c->client = 0;
    c->client_killed = false;
    c->heard_len = 0;
    int fault = spawn_client(c, ends[1]);
    close(ends[1]);
    c->events = ends[0];
    if (!fault)
        return true;
    c->client = 0;
    close_fd(&c->events);
    note(c, strerror(fault));
    return false;
}

/* The client is not reaped, so its number and that of its group are still its own. */
static void kill_family(const conductor *c)
{
    if (c->client)
        kill(-c->client, SIGKILL);
}

/* Waits for the client and for every server that it left behind. */
static int reap_family(conductor *c)
{
    int status = 0, one;
    pid_t pid;
    while ((pid = waitpid(-1, &one, 0)) > 0 || (pid < 0 && errno == EINTR))
        if (pid == c->client)
            status = one;
    c->client = 0;
    close_fd(&c->server_pidfd);
    close_fd(&c->events);
    return status;
}

/* ---- kills ---- */

static bool server_lives(const conductor *c)
{
    struct pollfd end = {.fd = c->server_pidfd, .events = POLLIN};
    return c->server_pidfd >= 0 && poll(&end, 1, 0) == 0;
}

static void kill_server(conductor *c)
{
    if (!server_lives(c))
        return; /* the next one will say that it is there */
    syscall(SYS_pidfd_send_signal, c->server_pidfd, SIGKILL, NULL, 0);
    close_fd(&c->server_pidfd);
    c->counts.server_kills++;
    c->plan_at++;
    screen_tell(&c->screen, now_ms(), MARK_SERVER_KILLED,
                "server killed with -9, %zu segments have arrived", c->segments);
}

static void kill_client(conductor *c)
{
    kill(c->client, SIGKILL);
    c->client_killed = true;
    c->leave_ms = now_ms() + LEAVE_MS;
    c->plan_at++;
    screen_tell(&c->screen, now_ms(), MARK_CLIENT_KILLED,
                "client killed with -9, %zu segments have arrived", c->segments);
}

/* Begins to wait for the moment of the next kill, or does it. */
static void follow_plan(conductor *c)
{
    const kill_plan *next = &c->plan[c->plan_at];
    if (c->plan_at == c->plan_len || c->done || c->client_killed)
        return;
    if (c->segments < next->at || (!next->client && c->server_pidfd < 0))
        return;
    if (!c->fire_ms) {
        c->fire_ms = now_ms() + next->delay_ms;
    } else if (now_ms() >= c->fire_ms) {
        c->fire_ms = 0;
        if (next->client)
            kill_client(c);
        else
            kill_server(c);
    }
}

/* ---- what the family says ---- */

static void server_started(conductor *c, int pid)
{
    close_fd(&c->server_pidfd);
    c->server_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
}

static void take_line(conductor *c, const char *said)
{
    uint64_t n;
    int pid;
    if (sscanf(said, "reader at %" SCNu64, &n) == 1) {
        c->segments = (size_t)n;
    } else if (sscanf(said, "server start %d", &pid) == 1) {
        server_started(c, pid);
    } else if (sscanf(said, "server goes on after %" SCNu64, &n) == 1) {
        screen_tell(&c->screen, now_ms(), MARK_RESUMED,
                    "server back, goes on after segment %" PRIu64, n);
    } else if (sscanf(said, "reader start %" SCNu64, &n) == 1) {
        if (c->counts.client_restarts)
            screen_tell(&c->screen, now_ms(), MARK_RESUMED,
                        "client back, resumes after segment %" PRIu64, n);
    } else if (strcmp(said, "reader done") == 0) {
        c->done = true;
    } else if (strncmp(said, "reader failed ", 14) == 0) {
        note(c, said + 14);
    } else {
        screen_tell(&c->screen, now_ms(), MARK_NONE, "%s", said);
    }
}

/* A line that is longer than the buffer is taken in pieces. */
static void hear(conductor *c, bool *ended)
{
    ssize_t got =
        read(c->events, c->heard + c->heard_len, sizeof c->heard - 1 - c->heard_len);
    if (got < 0 && errno == EINTR)
        return;
    *ended = got <= 0;
    c->heard_len += got > 0 ? (size_t)got : 0;
    c->heard[c->heard_len] = 0;
    char *at = c->heard, *end;
    while ((end = strchr(at, '\n'))) {
        *end = 0;
        take_line(c, at);
        at = end + 1;
    }
    c->heard_len = strlen(at);
    if (c->heard_len == sizeof c->heard - 1) {
        take_line(c, at);
        c->heard_len = 0;
    }
    memmove(c->heard, at, c->heard_len);
}

/* ---- the run ---- */

/* The family is gone. True when there is a new one. */
static bool go_on(conductor *c)
{
    bool killed = c->client_killed;
    int status = reap_family(c);
    c->leave_ms = 0;
    if (killed && WIFSIGNALED(status)) {
        c->counts.client_restarts++;
        return start_client(c);
    }
    if (!c->done || !WIFEXITED(status) || WEXITSTATUS(status))
        note(c, "the client ended too early");
    return false;
}

static int until_next(const conductor *c)
{
    int64_t now = now_ms(), next = now + 100;
    if (c->fire_ms && c->fire_ms < next)
        next = c->fire_ms;
    return next > now ? (int)(next - now) : 0;
}

static void take_signal(conductor *c)
{
    struct signalfd_siginfo info;
    if (read(c->signals, &info, sizeof info) == (ssize_t)sizeof info)
        c->interrupt = (int)info.ssi_signo;
}

static void run(conductor *c)
{
    bool running = start_client(c);
    while (running && !c->interrupt) {
        struct pollfd fds[] = {{.fd = c->events, .events = POLLIN},
                               {.fd = c->signals, .events = POLLIN}};
        bool ended = false;
        poll(fds, 2, until_next(c));
        if (fds[1].revents)
            take_signal(c);
        if (fds[0].revents)
            hear(c, &ended);
        follow_plan(c);
        screen_progress(&c->screen, now_ms(), c->segments);
        if (ended)
            running = go_on(c);
        if (now_ms() - c->started_ms > LIMIT_MS) {
            note(c, "it takes too long");
            break;
        }
        if (c->leave_ms && now_ms() > c->leave_ms) {
            note(c, "a server stayed when its client was gone");
            kill_family(c);
            c->leave_ms = 0;
        }
    }
    kill_family(c);
    reap_family(c);
    if (c->interrupt)
        note(c, "interrupted");
}

/* ---- before and after ---- */

static bool prepare(conductor *c)
{
    const char *tmp = getenv("TMPDIR");
    const char *slash = strrchr(c->program, '/');
    sigset_t set;
    snprintf(c->server, sizeof c->server, "%.*s/demo_server",
             slash ? (int)(slash - c->program) : 1, slash ? c->program : ".");
    if (!text_load(&c->text, c->text_path) || !realpath(c->text_path, c->text_full)) {
        fprintf(stderr, "demo: %s cannot be read\n", c->text_path);
        return false;
    }
    if (!c->text.count || c->text.len > LARGEST_TEXT) {
        fprintf(stderr, "demo: %s: from 1 byte to 16 MiB are wanted\n", c->text_path);
        return false;
    }
    snprintf(c->dir, sizeof c->dir, "%s/segue-demo-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(c->dir)) {
        fprintf(stderr, "demo: %s: %s\n", c->dir, strerror(errno));
        *c->dir = 0;
        return false;
    }
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    c->signals = signalfd(-1, &set, SFD_CLOEXEC);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    return c->signals >= 0;
}

static void remove_dir(const conductor *c)
{
    DIR *dir = *c->dir ? opendir(c->dir) : NULL;
    struct dirent *entry;
    if (!dir)
        return;
    while ((entry = readdir(dir)))
        unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    rmdir(c->dir);
}

static void look_at_output(conductor *c, comparison *found)
{
    char path[4200];
    text arrived = {0};
    path_in_dir(c, "output", path, sizeof path);
    text_load(&arrived, path); /* not there: nothing has arrived */
    if (!compare_texts(&c->text, &arrived, found))
        note(c, "out of memory");
    text_free(&arrived);
}

int conductor_verdict(const comparison *found, const totals *counts)
{
    bool ok = found->same_bytes && !found->lost && !found->duplicated &&
              !found->altered && counts->server_kills >= 2 &&
              counts->client_restarts >= 1;
    printf("demo %s: %zu segments, 0 cuts, %u server kills, %u client restarts, "
           "%zu lost, %zu duplicated, %zu altered\n",
           ok ? "ok" : "FAILED", found->segments, counts->server_kills,
           counts->client_restarts, found->lost, found->duplicated, found->altered);
    return ok ? 0 : 1;
}

static int judge(conductor *c)
{
    comparison found;
    look_at_output(c, &found);
    screen_close(&c->screen, now_ms());
    printf("compared with %s: %s\n", c->text_path,
           found.same_bytes ? "the same, byte by byte" : "NOT the same");
    if (*c->why) {
        printf("went wrong: %s\n", c->why);
        found.same_bytes = false;
    }
    int status = conductor_verdict(&found, &c->counts);
    fflush(stdout);
    return c->interrupt ? 128 + c->interrupt : status;
}

int conductor_run(const char *program, const char *text_path, uint64_t seed,
                  int duration_ms)
{
    conductor c = {.program = program,
                   .text_path = text_path,
                   .random = seed,
                   .duration_ms = duration_ms,
                   .events = -1,
                   .signals = -1,
                   .server_pidfd = -1};
    int status = 1;
    if (prepare(&c)) {
        make_plan(&c);
        printf("Segue demo: the %zu lines of %s, streamed over stdio as one task\n"
               "seed %" PRIu64
               ", set SEGUE_DEMO_SEED to repeat the moments of the kills\n",
               c.text.count, text_path, seed);
        c.started_ms = now_ms();
        screen_open(&c.screen, c.text.count, c.started_ms);
        run(&c);
        status = judge(&c);
    } else {
        comparison nothing = {0};
        conductor_verdict(&nothing, &c.counts);
    }
    close_fd(&c.signals);
    remove_dir(&c);
    text_free(&c.text);
    return status;
}
