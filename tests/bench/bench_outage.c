/* How soon a client has the next segment of a task when its server was killed and comes
 * back on the same file: a client on the library reads a task's segments over HTTP.
 *
 *   bench_outage [--cpu N] OUTAGES MS COMMAND...
 *
 * The command is bench_http_server with --sqlite FILE, or another server that prints the
 * same and has the same tool; the program adds the port. MS: the time from the kill to
 * the start of the next process. Numbers are checked: a missing or repeated segment ends
 * the program. The tool sends a segment every 2 ms.
 *
 * outage: from the kill until the new process listens. found_ms is the time from there to
 * the first segment of the new process. start_ms is the time that the new process took to
 * listen, and belongs to the outage. */
#include <segue/segue.h>

#include "child.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stddef.h>

#define BETWEEN 50 /* number of segments of a process before it is killed */
#define MAX_OUTAGES 1000
#define MAX_ARGUMENTS 16

typedef struct outage {
    int64_t listens_ns, starts_ns, killed_ns, segment_ns;
} outage;

typedef struct measure {
    bench_child server;
    char *command[MAX_ARGUMENTS + 2];
    char port[16];
    segue_runtime *runtime;
    segue_session *session;
    pthread_t thread;
    int64_t outage_ms;
    size_t wanted;
    size_t count;
    outage outages[MAX_OUTAGES];
    uint64_t segments;
    uint64_t of_process; /* number of segments of the process that runs */
    long process;        /* the number in the text of a segment */
    int64_t first_ns;    /* time at which its first segment was received */
    sem_t works;         /* the client has BETWEEN segments of the process */
    atomic_int over;     /* 1 = the session is being closed */
} measure;

/* ---- the server ---- */

static int64_t start_server(measure *m)
{
    long long listens = 0;
    bench_child_start(&m->server, m->command);
    if (fscanf(m->server.output, "%lld", &listens) != 1)
        bench_fail("the server does not say when it listened");
    snprintf(m->port, sizeof m->port, "%d", m->server.port);
    return listens;
}

static void wait_until(int64_t ns)
{
    struct timespec at = {ns / 1000000000, ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0) {
    }
}

static void wait_until_it_works(measure *m)
{
    while (sem_wait(&m->works) != 0) {
    }
}

/* Kills the server and starts it again. */
static void break_down(measure *m)
{
    outage *o = &m->outages[m->count];
    o->killed_ns = bench_now_ns();
    bench_child_end(&m->server);
    wait_until(o->killed_ns + m->outage_ms * 1000000);
    o->starts_ns = bench_now_ns();
    o->listens_ns = start_server(m);
}

/* ---- the client ---- */

/* Returns the number of the process, which the text of the tool contains. */
static long process_of(const char *block)
{
    const char *tick = strstr(block, "tick ");
    return tick ? strtol(tick + sizeof "tick", NULL, 10) : 0;
}

static void on_segment(void *user, segue_request *request, const segue_segment *segment)
{
    measure *m = user;
    const segue_segment_view *view = segue_segment_read(segment);
    (void)request;
    if (view->number != ++m->segments)
        bench_fail("a segment is missing or repeated");
    long process = process_of(view->data);
    if (process != m->process)
        m->first_ns = bench_now_ns();
    m->of_process = process == m->process ? m->of_process + 1 : 1;
    m->process = process;
    if (m->of_process == BETWEEN)
        sem_post(&m->works);
}

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    const measure *m = user;
    (void)request;
    (void)status;
    (void)json;
    (void)len;
    if (!m->over)
        bench_fail(segue_error_read(error)->message);
}

static void on_open(void *user, segue_session *session)
{
    static const char params[] = "{\"name\":\"tick\",\"arguments\":{\"us\":2000}}";
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    options.discard = 1;
    events.user = user;
    events.on_segment = on_segment;
    events.on_complete = on_complete;
    if (segue_request_start(session, "tools/call", params, sizeof params - 1, &options,
                            &events, NULL, NULL) != SEGUE_OK)
        bench_fail("a request cannot be started");
}

static void *run(void *user)
{
    segue_runtime_run(((measure *)user)->runtime);
    return NULL;
}

/* The client has a thread. The servers end with the thread that starts them, which is
 * therefore the main thread. */
static void open_client(measure *m)
{
    segue_session_events events = SEGUE_SESSION_EVENTS_INIT;
    segue_transport *transport;
    char url[64];
    events.user = m;
    events.on_open = on_open;
    snprintf(url, sizeof url, "http://127.0.0.1:%s/mcp", m->port);
    if (segue_runtime_new(NULL, &m->runtime, NULL) != SEGUE_OK ||
        segue_transport_http(m->runtime, url, NULL, &transport, NULL) != SEGUE_OK ||
        segue_session_open(m->runtime, transport, NULL, &events, &m->session, NULL) !=
            SEGUE_OK ||
        pthread_create(&m->thread, NULL, run, m) != 0)
        bench_fail("the client cannot be made");
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Says the median, the 90th percentile and the largest of one time of all outages. */
static void say(const measure *m, const char *name, size_t from, size_t to)
{
    int64_t spent[MAX_OUTAGES];
    char full[64];
    for (size_t i = 0; i < m->count; i++) {
        const char *o = (const char *)&m->outages[i];
        spent[i] = *(const int64_t *)(o + to) - *(const int64_t *)(o + from);
    }
    qsort(spent, m->count, sizeof *spent, compare_times);
    snprintf(full, sizeof full, "%s_p50_ms", name);
    bench_say(full, (double)spent[m->count / 2] / 1e6);
    snprintf(full, sizeof full, "%s_p90_ms", name);
    bench_say(full, (double)spent[m->count * 9 / 10] / 1e6);
    snprintf(full, sizeof full, "%s_max_ms", name);
    bench_say(full, (double)spent[m->count - 1] / 1e6);
}

int main(int argc, char **argv)
{
    static measure m = {.port = "0"};
    bench_pin(&argc, &argv);
    sem_init(&m.works, 0, 0);
    m.wanted = (size_t)bench_number(argc, argv, 1, 0);
    m.outage_ms = bench_number(argc, argv, 2, 0);
    if (argc < 4 || argc - 3 > MAX_ARGUMENTS || m.wanted < 1 || m.wanted > MAX_OUTAGES)
        bench_fail("OUTAGES (1 to 1000), MS and a command");
    memcpy(m.command, argv + 3, (size_t)(argc - 3) * sizeof *argv);
    m.command[argc - 3] = m.port;
    start_server(&m);
    open_client(&m);
    for (wait_until_it_works(&m); m.count < m.wanted; m.count++) {
        break_down(&m);
        wait_until_it_works(&m);
        m.outages[m.count].segment_ns = m.first_ns;
    }
    m.over = 1;
    say(&m, "outage", offsetof(outage, killed_ns), offsetof(outage, listens_ns));
    say(&m, "start", offsetof(outage, starts_ns), offsetof(outage, listens_ns));
    say(&m, "found", offsetof(outage, listens_ns), offsetof(outage, segment_ns));
    segue_runtime_stop(m.runtime);
    pthread_join(m.thread, NULL);
    segue_session_free(m.session);
    segue_runtime_free(m.runtime);
    bench_child_end(&m.server);
    return 0;
}
