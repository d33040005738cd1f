/* How long a cut costs: a client on the library reads a task's segments over HTTP through
 * a proxy, which breaks every connection again and again, alternately with an end and
 * with a reset.
 *
 *   bench_cut [--cpu N] CUTS COMMAND...         the command is bench_http_server
 *   bench_cut [--cpu N] --bare CUTS COMMAND...  the command is bench_raw
 *
 * --bare: the baseline, in blocking calls. It waits for the cut, connects, sends a
 * request and reads the answer of a server that checks nothing.
 * The clock runs from the cut to the first segment over a new connection. Numbers are
 * checked: a missing or repeated one ends the program. The tool sends a segment every 100
 * microseconds, so one is always due. */
#include <segue/segue.h>

#include <stdbool.h>
#include <sys/socket.h>

#include "child.h"
#include "http_line.h"
#include "support/cutting_proxy.h"

#define BETWEEN_CUTS 100 /* number of segments */
#define MAX_CUTS 10000

typedef struct cutter {
    bench_child server;
    cutting_proxy *proxy;
    segue_runtime *runtime;
    segue_session *session;
    uint64_t segments;
    uint64_t since;       /* number of the segment at the last cut, or of the one that
                           * resumed after it */
    uint64_t connections; /* number of connections accepted before the cut; 0 = the client
                           * has resumed */
    int64_t cut_ns;
    size_t cuts;
    size_t wanted;
    int64_t spent_ns[MAX_CUTS];
} cutter;

static void cut(cutter *c)
{
    cutting_how how = c->cuts % 2 ? CUTTING_RST : CUTTING_FIN;
    c->connections = cutting_proxy_get(c->proxy, CUTTING_CONNECTIONS);
    c->cut_ns = bench_now_ns();
    if (!cutting_proxy_cut_all(c->proxy, how))
        bench_fail("there is nothing to cut");
}

/* ---- the baseline ---- */

static void run_bare(cutter *c)
{
    char answer[HTTP_TEXT_SIZE];
    http_text request;
    int port = cutting_proxy_port(c->proxy);
    http_write_request(&request, port, "ping", NULL, "", NULL);
    int fd = http_connect(port);
    http_send(fd, &request);
    http_read_answer(fd, answer, sizeof answer);
    while (c->cuts < c->wanted) {
        cut(c);
        if (recv(fd, answer, sizeof answer, 0) > 0)
            bench_fail("a connection that was cut brings bytes");
        close(fd);
        fd = http_connect(port);
        http_send(fd, &request);
        http_read_answer(fd, answer, sizeof answer);
        c->spent_ns[c->cuts++] = bench_now_ns() - c->cut_ns;
    }
    close(fd);
}

/* ---- the library ---- */

static void on_segment(void *user, segue_request *request, const segue_segment *segment)
{
    cutter *c = user;
    int64_t now = bench_now_ns();
    (void)request;
    if (segue_segment_read(segment)->number != ++c->segments)
        bench_fail("a segment is missing or repeated");
    if (c->connections) {
        if (cutting_proxy_get(c->proxy, CUTTING_CONNECTIONS) == c->connections)
            return; /* this segment was on its way already */
        c->spent_ns[c->cuts++] = now - c->cut_ns;
        c->connections = 0;
        c->since = c->segments;
        if (c->cuts == c->wanted)
            segue_runtime_stop(c->runtime);
    } else if (c->segments - c->since >= BETWEEN_CUTS && c->cuts < c->wanted) {
        cut(c);
    }
}

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    const cutter *c = user;
    (void)request;
    (void)status;
    (void)json;
    (void)len;
    if (c->cuts < c->wanted) /* otherwise the session is being closed */
        bench_fail(segue_error_read(error)->message);
}

static void on_open(void *user, segue_session *session)
{
    static const char params[] = "{\"name\":\"tick\",\"arguments\":{\"us\":100}}";
    cutter *c = user;
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    options.discard = 1;
    events.user = c;
    events.on_segment = on_segment;
    events.on_complete = on_complete;
    if (segue_request_start(session, "tools/call", params, sizeof params - 1, &options,
                            &events, NULL, NULL) != SEGUE_OK)
        bench_fail("a request cannot be started");
}

static void run(cutter *c)
{
    segue_session_events events = SEGUE_SESSION_EVENTS_INIT;
    segue_transport *transport;
    char url[64];
    events.user = c;
    events.on_open = on_open;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/mcp",
             (int)cutting_proxy_port(c->proxy));
    if (segue_runtime_new(NULL, &c->runtime, NULL) != SEGUE_OK ||
        segue_transport_http(c->runtime, url, NULL, &transport, NULL) != SEGUE_OK ||
        segue_session_open(c->runtime, transport, NULL, &events, &c->session, NULL) !=
            SEGUE_OK)
        bench_fail("the client cannot be made");
    segue_runtime_run(c->runtime);
    if (c->cuts < c->wanted)
        bench_fail("the session ended before its time");
}

static void end(cutter *c)
{
    segue_session_free(c->session);
    segue_runtime_free(c->runtime);
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    static cutter c;
    cutting_options options = {0};
    bench_pin(&argc, &argv);
    bool bare = argc > 1 && strcmp(argv[1], "--bare") == 0;
    argc -= bare;
    argv += bare;
    c.wanted = (size_t)bench_number(argc, argv, 1, 0);
    if (argc < 3 || c.wanted < 1 || c.wanted > MAX_CUTS)
        bench_fail("[--bare] CUTS (1 to 10000) and a command");
    bench_child_start(&c.server, argv + 2);
    options.target_port = (uint16_t)c.server.port;
    if (!cutting_proxy_start(&options, &c.proxy))
        bench_fail("no proxy");
    (bare ? run_bare : run)(&c);
    qsort(c.spent_ns, c.cuts, sizeof *c.spent_ns, compare_times);
    bench_say("resume_p50_ms", (double)c.spent_ns[c.cuts / 2] / 1e6);
    bench_say("resume_p99_ms", (double)c.spent_ns[c.cuts * 99 / 100] / 1e6);
    if (!bare)
        end(&c);
    cutting_proxy_stop(c.proxy);
    bench_child_end(&c.server);
    return 0;
}
