/* The conductor starts the client, and watches it and its server.
 *
 *   http    client --> cutting proxy (a thread of the conductor) --> server, its child
 *       companions -/
 *   stdio   client --> server, a child of the client
 *
 * Each child reports on its standard error (its "voice"), which servers that a client
 * starts inherit. The next process may start only when a voice ends: two servers at one
 * time would be two owners of a task.
 *
 *   start --> run, kills and cuts as planned --> a voice ends --> reap
 *     ^                                             |  after our kill: again
 *     \---------------------------------------------/  else: compare, verdict
 *
 * Over HTTP the first server chooses the port, and the later ones must take the same one.
 * The proxy, and with it the URL of the client, stays for the whole run.
 *
 * A kill or cut is due when a planned number of segments has arrived and then a random
 * time has passed. For a cut the proxy gets a number of bytes for either direction.
 * Segments only come down; what goes up is the request by which the client then comes
 * back, so that cut hits the reconnect. Both must have hit before the plan goes on. The
 * server sends no more lines than the gate allows, which the plan sets: so the text
 * cannot be over before the plan is.
 *
 * A server is killed through a pidfd, opened when it reports its process id: the id of a
 * process that is no child of the conductor could by then belong to another process.
 *
 * No process is left behind. Each child leads a process group, which is killed as a whole
 * while the child is not reaped yet. Orphaned servers become children of the conductor
 * and are reaped too. The system kills a child whose conductor dies. */
#include "conductor.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../support/cutting_proxy.h"
#include "companion.h"
#include "gate.h"
#include "plan.h"
#include "player.h"
#include "screen.h"
#include "verdict.h"

#define LIMIT_MS 300000 /* limit of the whole run, which may hang */
#define LEAVE_MS 60000  /* time for a server to end after its client, which may hang */
#define LARGEST_TEXT ((size_t)16 * 1024 * 1024)

#define MOST_BYTES_DOWN 4000 /* maximum bytes from the order to cut until the cut */
#define LEAST_BYTES_DOWN 300
#define MOST_BYTES_UP 150 /* less than the smallest request that follows a cut */
#define MOST_PIECE 400    /* maximum bytes that the proxy writes at once */

#define URL_SIZE 64

typedef struct conductor {
    const char *program;
    const char *text_path;
    char text_full[4096];
    char server_program[4096];
    char dir[4096];
    int duration_ms;
    uint64_t random;
    text text;
    screen screen;
    totals counts;
    plan plan;
    int64_t fire_ms;   /* when the next step is done; 0 = it is not due */
    unsigned cuts_due; /* number of cuts at which the step is done; 0 = no cut is
                        * wanted */
    int64_t started_ms;
    int64_t leave_ms; /* when the rest of a process group is killed; 0 = never */
    player client;
    player server;         /* used over HTTP */
    companions companions; /* used over HTTP */
    int server_pidfd;      /* -1 = no server is known to live */
    cutting_proxy *proxy;  /* NULL = over stdio, or no server has listened yet */
    int port;              /* port of the server; 0 = none has listened yet */
    int signals;           /* the signalfd */
    int gate;              /* descriptor of the gate (gate.h) */
    size_t segments;
    size_t let; /* lines that the gate allows */
    bool http;
    bool done; /* a client has reported its end */
    bool over;
    int interrupt; /* number of the signal */
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

static void stop(conductor *c, const char *why)
{
    note(c, why);
    c->over = true;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- the players ---- */

static void path_in_dir(const conductor *c, const char *name, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", c->dir, name);
}

static void write_url(const conductor *c, char url[URL_SIZE])
{
    snprintf(url, URL_SIZE, "http://127.0.0.1:%u/mcp",
             (unsigned)cutting_proxy_port(c->proxy));
}

static void start_client(conductor *c)
{
    char output[4200], state[4200], store[4200], duration[32], parent[32], url[URL_SIZE];
    char mode[] = "--client";
    path_in_dir(c, "output", output, sizeof output);
    path_in_dir(c, "state", state, sizeof state);
    path_in_dir(c, "tasks.db", store, sizeof store);
    snprintf(duration, sizeof duration, "%d", c->duration_ms);
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    if (c->http)
        write_url(c, url);
    char *const argv[] = {(char *)c->program,
                          mode,
                          parent,
                          c->http ? url : c->server_program,
                          store,
                          c->text_full,
                          output,
                          state,
                          duration,
                          NULL};
    int fault = player_start(&c->client, argv);
    if (fault)
        stop(c, strerror(fault));
}

static void start_server(conductor *c)
{
    char store[4200], port[32], parent[32];
    path_in_dir(c, "tasks.db", store, sizeof store);
    snprintf(port, sizeof port, "%d", c->port);
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    char *const argv[] = {c->server_program, store, port, parent, NULL};
    int fault = player_start(&c->server, argv);
    if (fault)
        stop(c, strerror(fault));
}

static void start_proxy(conductor *c)
{
    const cutting_options options = {.target_port = (uint16_t)c->port,
                                     .seed = plan_draw(&c->random, UINT64_MAX),
                                     .piece_max = MOST_PIECE};
    if (!cutting_proxy_start(&options, &c->proxy))
        stop(c, strerror(errno));
}

static void client_ended(conductor *c)
{
    bool killed = c->client.killed;
    int status = player_reap(&c->client);
    c->leave_ms = 0;
    if (!c->http)
        close_fd(&c->server_pidfd);
    if (killed && WIFSIGNALED(status)) {
        c->counts.client_restarts++;
        start_client(c);
        return;
    }
    if (!c->done || !WIFEXITED(status) || WEXITSTATUS(status))
        stop(c, "the client ended too early");
    if (!c->http)
        c->over = true;
}

/* Ends the server when all readers have everything. */
static void end_server(conductor *c)
{
    if (!c->done || c->client.pid || !companions_are_over(&c->companions) || c->leave_ms)
        return;
    if (c->server.pid) {
        kill(c->server.pid, SIGTERM);
        c->leave_ms = now_ms() + LEAVE_MS;
    } else {
        c->over = true;
    }
}

static void server_ended(conductor *c)
{
    bool killed = c->server.killed;
    int status = player_reap(&c->server);
    close_fd(&c->server_pidfd);
    bool was_told = !c->client.pid && c->leave_ms; /* the server was asked to end */
    if (was_told)
        c->over = true;
    else if (killed)
        start_server(c);
    if (!killed && (!was_told || !WIFEXITED(status) || WEXITSTATUS(status)))
        stop(c, was_told ? "the server ended badly" : "the server ended too early");
}

/* ---- kills and cuts ---- */

static bool server_lives(const conductor *c)
{
    struct pollfd end = {.fd = c->server_pidfd, .events = POLLIN};
    return c->server_pidfd >= 0 && poll(&end, 1, 0) == 0;
}

static void kill_server(conductor *c)
{
    if (!server_lives(c))
        return; /* the next server will report its start */
    syscall(SYS_pidfd_send_signal, c->server_pidfd, SIGKILL, NULL, 0);
    close_fd(&c->server_pidfd);
    c->server.killed = true;
    c->counts.server_kills++;
    c->plan.next++;
    screen_tell(&c->screen, now_ms(), MARK_SERVER_KILLED,
                "server killed with -9, %zu segments have arrived", c->segments);
}

static void kill_client(conductor *c)
{
    kill(c->client.pid, SIGKILL);
    c->client.killed = true;
    c->leave_ms = now_ms() + LEAVE_MS;
    c->plan.next++;
    screen_tell(&c->screen, now_ms(), MARK_CLIENT_KILLED,
                "client killed with -9, %zu segments have arrived", c->segments);
}

/* A short text has few bytes, and must not be over before the cut. */
static size_t most_bytes_down(const conductor *c)
{
    size_t most = (c->text.len + 250 * c->text.count) / 20;
    if (most < LEAST_BYTES_DOWN)
        return LEAST_BYTES_DOWN;
    return most < MOST_BYTES_DOWN ? most : MOST_BYTES_DOWN;
}

static void cut(conductor *c)
{
    static const cutting_how hows[] = {CUTTING_FIN, CUTTING_RST};
    const cutting_plan down = {.direction = CUTTING_DOWN,
                               .min = 1,
                               .max = most_bytes_down(c),
                               .how = hows[plan_draw(&c->random, 2)],
                               .times = 1};
    const cutting_plan up = {.direction = CUTTING_UP,
                             .min = 1,
                             .max = MOST_BYTES_UP,
                             .how = hows[plan_draw(&c->random, 2)],
                             .times = 1};
    cutting_proxy_plan(c->proxy, &up);
    cutting_proxy_plan(c->proxy, &down);
    c->cuts_due = c->counts.cuts + 2;
}

static void watch_cuts(conductor *c)
{
    uint64_t count = c->proxy ? cutting_proxy_get(c->proxy, CUTTING_CUTS) : 0;
    while (c->counts.cuts < count) {
        c->counts.cuts++;
        screen_tell(&c->screen, now_ms(), MARK_CUT,
                    "connection cut, %zu segments have arrived", c->segments);
    }
    if (c->cuts_due && c->counts.cuts >= c->cuts_due) {
        c->cuts_due = 0;
        c->plan.next++;
    }
}

static bool can_do(const conductor *c, const plan_step *step)
{
    if (c->segments < step->at || c->cuts_due)
        return false;
    if (step->what == CUT)
        return c->proxy != NULL;
    return step->what == KILL_SERVER ? c->server_pidfd >= 0 : c->client.pid > 0;
}

/* Sets how many lines the server may send. */
static void move_gate(conductor *c)
{
    size_t let = plan_gate(&c->plan, c->segments, c->text.count);
    if (let <= c->let)
        return;
    c->let = let;
    if (!gate_set(c->gate, let))
        stop(c, strerror(errno));
}

/* The rest of the text is too short for a cut by bytes. */
static void cut_at_the_end(conductor *c)
{
    if (c->cuts_due && c->segments + 1 >= c->text.count)
        cutting_proxy_cut_all(c->proxy, CUTTING_RST);
}

/* Waits for the moment of the next step, or does the step. */
static void follow_plan(conductor *c)
{
    const plan_step *next = &c->plan.steps[c->plan.next];
    if (c->plan.next == c->plan.count || c->done || c->client.killed || !can_do(c, next))
        return;
    if (!c->fire_ms) {
        c->fire_ms = now_ms() + next->delay_ms;
    } else if (now_ms() >= c->fire_ms) {
        c->fire_ms = 0;
        if (next->what == CUT)
            cut(c);
        else if (next->what == KILL_CLIENT)
            kill_client(c);
        else
            kill_server(c);
    }
}

/* ---- reports of the players ---- */

static void server_started(conductor *c, int pid)
{
    close_fd(&c->server_pidfd);
    c->server_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
}

/* The first server reports the port that all later ones use. */
static void server_listens(conductor *c, int port)
{
    if (c->port)
        return;
    c->port = port;
    start_proxy(c);
    if (c->proxy)
        start_client(c);
}

/* Called when there is a task. */
static void start_companions(conductor *c)
{
    char url[URL_SIZE];
    if (!c->http)
        return;
    write_url(c, url);
    companions_start(&c->companions, c->program, url);
}

static void take_line(void *user, const char *said)
{
    conductor *c = user;
    uint64_t n;
    int number;
    if (sscanf(said, "reader at %" SCNu64, &n) == 1) {
        c->segments = (size_t)n;
        start_companions(c);
    } else if (sscanf(said, "server start %d", &number) == 1) {
        server_started(c, number);
    } else if (sscanf(said, "server listens at %d", &number) == 1) {
        server_listens(c, number);
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

/* ---- the run ---- */

static int until_next(const conductor *c)
{
    int64_t now = now_ms(), next = now + (c->cuts_due ? 10 : 100);
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

static void turn(conductor *c)
{
    struct pollfd fds[3 + COMPANIONS] = {{.fd = c->client.voice, .events = POLLIN},
                                         {.fd = c->server.voice, .events = POLLIN},
                                         {.fd = c->signals, .events = POLLIN}};
    bool client_speaks = true, server_speaks = true;
    for (int i = 0; i < COMPANIONS; i++)
        fds[3 + i] =
            (struct pollfd){.fd = c->companions.each[i].player.voice, .events = POLLIN};
    poll(fds, 3 + COMPANIONS, until_next(c));
    if (fds[2].revents)
        take_signal(c);
    if (fds[0].revents)
        client_speaks = player_hear(&c->client, take_line, c);
    if (fds[1].revents)
        server_speaks = player_hear(&c->server, take_line, c);
    for (int i = 0; i < COMPANIONS; i++)
        if (fds[3 + i].revents)
            companion_hear(&c->companions.each[i]);
    watch_cuts(c);
    follow_plan(c);
    cut_at_the_end(c);
    move_gate(c);
    screen_progress(&c->screen, now_ms(), c->segments);
    if (!client_speaks)
        client_ended(c);
    if (!server_speaks)
        server_ended(c);
    end_server(c);
}

static void run(conductor *c)
{
    if (c->http)
        start_server(c);
    else
        start_client(c);
    while (!c->over && !c->interrupt) {
        turn(c);
        if (now_ms() - c->started_ms > LIMIT_MS)
            stop(c, "it takes too long");
        if (c->leave_ms && now_ms() > c->leave_ms)
            stop(c, "a server stayed when its client was gone");
    }
    player_kill_all(&c->client);
    player_kill_all(&c->server);
    player_reap(&c->client);
    player_reap(&c->server);
    companions_end(&c->companions);
    close_fd(&c->server_pidfd);
    cutting_proxy_stop(c->proxy);
    if (c->interrupt)
        note(c, "interrupted");
}

/* ---- before and after ---- */

static bool prepare(conductor *c)
{
    char store[4200];
    const char *tmp = getenv("TMPDIR");
    const char *slash = strrchr(c->program, '/');
    sigset_t set;
    snprintf(c->server_program, sizeof c->server_program, "%.*s/demo_server",
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
    path_in_dir(c, "tasks.db", store, sizeof store);
    if ((c->gate = gate_make(store)) < 0) {
        fprintf(stderr, "demo: %s: %s\n", store, strerror(errno));
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
    text_load(&arrived, path); /* no file: nothing has arrived */
    if (!compare_texts(&c->text, &arrived, found))
        note(c, "out of memory");
    text_free(&arrived);
}

static int judge(conductor *c)
{
    comparison found;
    look_at_output(c, &found);
    screen_close(&c->screen, now_ms());
    printf("compared with %s: %s\n", c->text_path,
           found.same_bytes ? "the same, byte by byte" : "NOT the same");
    if (!companions_judge(&c->companions, &c->text))
        found.same_bytes = false;
    if (*c->why) {
        printf("went wrong: %s\n", c->why);
        found.same_bytes = false;
    }
    int status = verdict(&found, &c->counts);
    fflush(stdout);
    return c->interrupt ? 128 + c->interrupt : status;
}

int conductor_run(const char *program, const char *text_path, bool http, uint64_t seed,
                  int duration_ms)
{
    conductor c = {.program = program,
                   .text_path = text_path,
                   .http = http,
                   .counts = {.http = http},
                   .random = seed,
                   .duration_ms = duration_ms,
                   .client = {.voice = -1},
                   .server = {.voice = -1},
                   .signals = -1,
                   .gate = -1,
                   .server_pidfd = -1};
    int status = 1;
    companions_init(&c.companions, c.dir);
    if (!http)
        companions_dismiss(&c.companions); /* the server belongs to the client alone */
    if (prepare(&c)) {
        plan_make(&c.plan, &c.random, c.text.count, http);
        printf("Segue demo: the %zu lines of %s, streamed over %s as one task\n"
               "seed %" PRIu64
               ", set SEGUE_DEMO_SEED to repeat the moments of kills and cuts\n",
               c.text.count, text_path, http ? "HTTP" : "stdio", seed);
        c.started_ms = now_ms();
        screen_open(&c.screen, c.text.count, c.started_ms);
        run(&c);
        status = judge(&c);
    } else {
        comparison nothing = {0};
        verdict(&nothing, &c.counts);
    }
    close_fd(&c.signals);
    close_fd(&c.gate);
    remove_dir(&c);
    text_free(&c.text);
    return status;
}
