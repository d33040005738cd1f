/* The clients of the kill matrix: many tasks at once, each read segment by segment,
 * whatever happens to the servers.
 *
 *   kill_readers URL PARENT SEED TASKS COUNT SIZE PACE-US ERA
 *   kill_readers --self-test
 *
 * TASKS run at any time, each of COUNT segments of up to SIZE bytes; ERA is modern,
 * legacy, or both. Standard output: "open" when the server was reached; "done ERA TASK
 * COUNT DIGEST" for each task (SHA-256 over its texts, each with a NUL behind it); "seen
 * SEGMENTS BYTES" now and then, where BYTES is the memory that is allocated at that time,
 * or 0 when the C library cannot tell; "refused" when a call got an error instead of a
 * task. On SIGTERM it starts no more tasks, and when the last one has ended its last line
 * is
 *
 *   found TASKS FAILED RESUMED SEGMENTS LOST DUPLICATED ALTERED
 *
 * Its clock runs fast, so that it reconnects at once where a person would wait for a
 * while: pauses between two attempts are not tested here. SEGUE_QUICKER in the
 * environment says how many times as fast, 20 by default. By this clock the times to live
 * of tasks are shorter, too: a client gives up a task that no server reports on for a
 * twentieth of its time to live. */
#include <segue/segue_ext.h>

#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "reader.h"

#define QUICKER 20
#define TURN_MS 5
#define PATIENCE_MS (60000 * quicker)
#define SILENCE_MS (20000 * quicker)

static volatile sig_atomic_t told_to_stop;
static int64_t quicker = QUICKER;

static int64_t real_ms(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t quick_ms(void *user)
{
    (void)user;
    return real_ms(CLOCK_MONOTONIC) * quicker;
}

static int64_t wall_ms(void *user)
{
    (void)user;
    return real_ms(CLOCK_REALTIME);
}

static int32_t random_bytes(void *user, void *bytes, size_t len)
{
    (void)user;
    return getrandom(bytes, len, 0) == (ssize_t)len ? 0 : -1;
}

static void write_log(void *user, int32_t level, const char *text)
{
    (void)user;
    fprintf(stderr, "kill_readers: %d: %s\n", (int)level, text);
}

static segue_status make_runtime(segue_runtime **out)
{
    segue_hooks hooks = SEGUE_HOOKS_INIT;
    segue_runtime_options options = SEGUE_RUNTIME_OPTIONS_INIT;
    hooks.monotonic_ms = quick_ms;
    hooks.wall_ms = wall_ms;
    hooks.random = random_bytes;
    options.hooks = &hooks;
    options.log = write_log;
    options.log_level = SEGUE_LOG_ERROR;
    return segue_runtime_new(&options, out, NULL);
}

static void on_open(void *user, segue_session *session)
{
    bool *told = user;
    (void)session;
    if (!*told)
        printf("open\n");
    *told = true;
    fflush(stdout);
}

static segue_status open_session(crowd *c, segue_runtime *runtime, const char *url,
                                 int32_t era)
{
    static bool told;
    segue_transport *transport;
    segue_http_options http = SEGUE_HTTP_OPTIONS_INIT;
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    segue_session_events events = SEGUE_SESSION_EVENTS_INIT;
    http.proxy = ""; /* the environment's proxy is not for this machine */
    http.connect_timeout_ms = PATIENCE_MS;
    http.silence_timeout_ms = SILENCE_MS;
    options.era = era;
    options.probe_timeout_ms = options.request_timeout_ms = PATIENCE_MS;
    options.reconnect_timeout_ms = PATIENCE_MS;
    options.max_reconnects = options.first_attempts = INT32_MAX - 1;
    events.user = &told;
    events.on_open = on_open;
    segue_status status = segue_transport_http(runtime, url, &http, &transport, NULL);
    if (status != SEGUE_OK)
        return status;
    status = segue_session_open(runtime, transport, &options, &events,
                                &c->sessions[c->session_count], NULL);
    if (status == SEGUE_OK)
        c->session_count++;
    else
        segue_transport_free(transport);
    return status;
}

static segue_status open_sessions(crowd *c, segue_runtime *runtime, const char *url,
                                  const char *era)
{
    segue_status status = SEGUE_OK;
    for (int i = 0; i < 2 && status == SEGUE_OK && strcmp(era, "legacy") != 0; i++)
        status = open_session(c, runtime, url, SEGUE_ERA_MODERN);
    c->modern_count = c->session_count;
    for (int i = 0; i < 2 && status == SEGUE_OK && strcmp(era, "modern") != 0; i++)
        status = open_session(c, runtime, url, SEGUE_ERA_LEGACY);
    return status;
}

/* Returns the number of bytes that are allocated. The memory that the allocator has from
 * the kernel is more: it keeps freed pieces. */
static size_t allocated(void)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
#else
    return 0;
#endif
}

static void tell_progress(const crowd *c)
{
    static uint64_t told;
    static int64_t next_ms;
    int64_t now = real_ms(CLOCK_MONOTONIC);
    if (now < next_ms || c->found.segments == told)
        return;
    told = c->found.segments;
    next_ms = now + 250;
    printf("seen %" PRIu64 " %zu\n", told, allocated());
    fflush(stdout);
}

static segue_status run(crowd *c, segue_runtime *runtime, int tasks)
{
    segue_status status = SEGUE_OK;
    for (int i = 0; i < tasks; i++)
        if (!reader_start(c))
            return SEGUE_E_NOMEM;
    while (status == SEGUE_OK && c->running) {
        c->stopping = c->stopping || told_to_stop;
        status = segue_runtime_dispatch(runtime, TURN_MS, 0, NULL);
        tell_progress(c);
    }
    return status;
}

static void note_stop(int number)
{
    (void)number;
    told_to_stop = 1;
}

int main(int argc, char **argv)
{
    crowd c = {0};
    segue_runtime *runtime = NULL;
    if (argc == 2 && strcmp(argv[1], "--self-test") == 0)
        return record_self_test() ? 0 : 1;
    if (argc != 9) {
        fprintf(stderr, "usage: kill_readers URL PARENT SEED TASKS COUNT SIZE PACE-US "
                        "ERA\n");
        return 2;
    }
    signal(SIGTERM, note_stop);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != atoi(argv[2]))
        return 1;
    if (getenv("SEGUE_QUICKER"))
        quicker = atoll(getenv("SEGUE_QUICKER"));
    c.random = strtoull(argv[3], NULL, 10);
    c.count = atoll(argv[5]);
    c.size = atoll(argv[6]);
    c.pace_us = atoll(argv[7]);
    segue_status status = make_runtime(&runtime);
    if (status == SEGUE_OK)
        status = open_sessions(&c, runtime, argv[1], argv[8]);
    if (status == SEGUE_OK)
        status = run(&c, runtime, atoi(argv[4]));
    if (status != SEGUE_OK)
        fprintf(stderr, "kill_readers: %s\n", segue_status_name(status));
    for (size_t i = 0; i < c.session_count; i++)
        segue_session_free(c.sessions[i]);
    segue_runtime_free(runtime);
    printf("found %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
           " %" PRIu64 "\n",
           c.tasks, c.failed, c.resumed, c.found.segments, c.found.lost,
           c.found.duplicated, c.found.altered);
    return status == SEGUE_OK ? 0 : 1;
}
