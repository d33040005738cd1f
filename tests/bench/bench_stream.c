/* The throughput of a client on the library and a server that it starts.
 *
 *   bench_stream [--cpu N] [--http] [--2025] stream SEGMENTS BYTES COMMAND...
 *   bench_stream [--cpu N] [--http] [--2025] streams TASKS SEGMENTS BYTES COMMAND...
 *   bench_stream [--cpu N] [--http] [--2025] calls WINDOW MILLISECONDS COMMAND...
 *   bench_stream [--cpu N] [--http] [--2025] unkeyed WINDOW MILLISECONDS COMMAND...
 *   bench_stream [--cpu N] [--http] [--2025] counted WINDOW CALLS COMMAND...
 *
 * The command is bench_server, or, with --http, bench_http_server. With --2025 the client
 * uses 2025-11-25, where segments are pushed by SEP-1905. stream: one tools/call that
 * becomes a task and streams. Each segment is read as an application would, counted and
 * checked: a missing or repeated number ends the program. The time is that from the start
 * of the request to its completion. streams: this many of them at once, with this many
 * segments each. calls: echo, WINDOW in flight; each completion starts the next call.
 * Where the server knows idempotency keys, over HTTP or with a store that outlives it,
 * the calls carry keys, which the server keeps in its store; unkeyed calls carry none.
 * counted: this many unkeyed calls, for tools that count instructions. With --pipes this
 * program starts bench_server itself: such tools may not know all that the transport
 * needs to start a child. */
#include <segue/segue.h>

#include <stdbool.h>

#include "child.h"

#define LONGEST_NS (INT64_C(600) * 1000000000)

typedef struct client {
    bool over_http;
    bool by_pipes;
    int32_t era;
    /* the server over HTTP, or with --pipes; otherwise the transport starts it */
    bench_child server;
    segue_runtime *runtime;
    segue_session *session;
    uint64_t segments; /* received segments */
    uint64_t expected; /* segments of each stream */
    int streams;       /* number of running streams */
    struct one_stream *each;
    size_t bytes; /* bytes of each segment */
    int64_t begin_ns;
    int64_t end_ns; /* calls: when to start no further one */
    int64_t most;   /* calls: how many to start */
    int64_t calls;  /* calls that have ended */
    int32_t in_flight;
    int32_t unkeyed;
    long long commits;
    long long rows;
} client;

typedef struct one_stream {
    client *client;
    uint64_t segments;
} one_stream;

static void start_request(client *c, void *user, const char *params,
                          segue_complete_fn on_complete, segue_segment_fn on_segment)
{
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    options.discard = on_segment != NULL;
    events.user = user;
    events.on_segment = on_segment;
    events.on_complete = on_complete;
    if (segue_request_start(c->session, "tools/call", params, strlen(params), &options,
                            &events, NULL, NULL) != SEGUE_OK)
        bench_fail("a request cannot be started");
}

/* ---- stream ---- */

static void on_segment(void *user, segue_request *request, const segue_segment *segment)
{
    one_stream *stream = user;
    size_t len = 0;
    (void)request;
    stream->client->segments++;
    if (segue_segment_read(segment)->number != ++stream->segments ||
        !segue_segment_text(segment, &len) || len != stream->client->bytes)
        bench_fail("a segment is not what it should be");
}

static void on_stats(void *user, segue_request *request, segue_status status,
                     const char *json, size_t len, const segue_error *error)
{
    static const char mark[] = "\"text\":\"";
    client *c = user;
    const char *text = status == SEGUE_OK ? strstr(json, mark) : NULL;
    (void)request;
    (void)len;
    (void)error;
    if (!text || sscanf(text + sizeof mark - 1, "%lld %lld", &c->commits, &c->rows) != 2)
        bench_fail("no stats");
    segue_runtime_stop(c->runtime);
}

static void on_stream_end(void *user, segue_request *request, segue_status status,
                          const char *json, size_t len, const segue_error *error)
{
    one_stream *stream = user;
    client *c = stream->client;
    (void)request;
    (void)json;
    (void)len;
    if (status != SEGUE_OK)
        bench_fail(segue_error_read(error)->message);
    if (stream->segments != c->expected)
        bench_fail("segments are missing");
    if (--c->streams)
        return;
    c->end_ns = bench_now_ns();
    if (c->over_http)
        segue_runtime_stop(c->runtime);
    else
        start_request(c, c, "{\"name\":\"stats\",\"arguments\":{}}", on_stats, NULL);
}

static void start_streams(client *c)
{
    char params[96];
    snprintf(params, sizeof params,
             "{\"name\":\"stream\",\"arguments\":{\"n\":%llu,\"bytes\":%zu}}",
             (unsigned long long)c->expected, c->bytes);
    c->each = calloc((size_t)c->streams, sizeof *c->each);
    if (!c->each)
        bench_fail("no memory");
    c->begin_ns = bench_now_ns();
    for (int i = 0; i < c->streams; i++) {
        c->each[i].client = c;
        start_request(c, &c->each[i], params, on_stream_end, on_segment);
    }
}

static void say_stream(const client *c)
{
    double seconds = (double)(c->end_ns - c->begin_ns) / 1e9;
    bench_say("segments_per_s", (double)c->segments / seconds);
    bench_say("client_cpu_us", (double)bench_cpu_ns(0) / (double)c->segments / 1000);
    if (c->commits)
        bench_say("rows_per_commit", (double)c->rows / (double)c->commits);
}

/* ---- calls ---- */

static void on_call_end(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error);

static void start_call(client *c)
{
    c->in_flight++;
    start_request(c, c,
                  "{\"name\":\"echo\",\"arguments\":{\"text\":\"The quick brown fox\"}}",
                  on_call_end, NULL);
}

static void on_call_end(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    client *c = user;
    (void)request;
    (void)json;
    (void)len;
    if (status != SEGUE_OK)
        bench_fail(segue_error_read(error)->message);
    c->calls++;
    c->in_flight--;
    if (bench_now_ns() < c->end_ns && c->calls + c->in_flight < c->most)
        start_call(c);
    else if (!c->in_flight)
        segue_runtime_stop(c->runtime);
}

static void say_calls(const client *c)
{
    double seconds = (double)(bench_now_ns() - c->begin_ns) / 1e9;
    bench_say("calls_per_s", (double)c->calls / seconds);
}

/* ---- the client ---- */

static void on_open(void *user, segue_session *session)
{
    client *c = user;
    (void)session;
    if (c->expected) {
        start_streams(c);
        return;
    }
    c->begin_ns = bench_now_ns();
    c->end_ns += c->begin_ns;
    int32_t window = c->in_flight;
    c->in_flight = 0;
    for (int32_t i = 0; i < window; i++)
        start_call(c);
}

static void on_closed(void *user, segue_session *session, const segue_error *error)
{
    (void)user;
    (void)session;
    if (error)
        bench_fail(segue_error_read(error)->message);
}

static segue_status open_transport(client *c, char **command, segue_transport **out)
{
    segue_spawn_options options = SEGUE_SPAWN_OPTIONS_INIT;
    char url[64];
    int fds[2];
    options.argv = (const char *const *)command;
    if (c->by_pipes) {
        bench_child_open(&c->server, command, fds);
        return segue_transport_fds(c->runtime, fds[0], fds[1], out);
    }
    if (!c->over_http)
        return segue_transport_spawn(c->runtime, &options, out, NULL);
    bench_child_start(&c->server, command);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/mcp", c->server.port);
    return segue_transport_http(c->runtime, url, NULL, out, NULL);
}

static void run(client *c, char **command)
{
    segue_session_options session = SEGUE_SESSION_OPTIONS_INIT;
    segue_session_events events = SEGUE_SESSION_EVENTS_INIT;
    segue_transport *transport;
    session.no_idempotency = c->unkeyed;
    session.era = c->era;
    events.user = c;
    events.on_open = on_open;
    events.on_closed = on_closed;
    if (segue_runtime_new(NULL, &c->runtime, NULL) != SEGUE_OK ||
        open_transport(c, command, &transport) != SEGUE_OK ||
        segue_session_open(c->runtime, transport, &session, &events, &c->session, NULL) !=
            SEGUE_OK)
        bench_fail("the client cannot be made");
    segue_runtime_run(c->runtime);
}

int main(int argc, char **argv)
{
    client c = {0};
    bench_pin(&argc, &argv);
    for (; argc > 1 && strncmp(argv[1], "--", 2) == 0; argc--, argv++) {
        if (strcmp(argv[1], "--http") == 0)
            c.over_http = true;
        else if (strcmp(argv[1], "--pipes") == 0)
            c.by_pipes = true;
        else if (strcmp(argv[1], "--2025") == 0)
            c.era = SEGUE_ERA_LEGACY;
        else
            bench_fail("an option is unknown");
    }
    if (argc < 5)
        bench_fail("stream SEGMENTS BYTES or calls WINDOW MS, then a command");
    bool many = strcmp(argv[1], "streams") == 0;
    if (many || strcmp(argv[1], "stream") == 0) {
        if (many && argc < 6)
            bench_fail("streams TASKS SEGMENTS BYTES, then a command");
        c.streams = many ? atoi(argv[2]) : 1;
        c.expected = (uint64_t)atoll(argv[2 + many]);
        c.bytes = (size_t)atoll(argv[3 + many]);
        run(&c, argv + 4 + many);
        say_stream(&c);
    } else {
        bool counted = strcmp(argv[1], "counted") == 0;
        c.unkeyed = counted || strcmp(argv[1], "unkeyed") == 0;
        c.in_flight = atoi(argv[2]);
        c.most = counted ? atoll(argv[3]) : INT64_MAX;
        c.end_ns = counted ? LONGEST_NS : atoll(argv[3]) * 1000000;
        run(&c, argv + 4);
        say_calls(&c);
    }
    segue_session_free(c.session);
    segue_runtime_free(c.runtime);
    free(c.each);
    if (c.over_http || c.by_pipes)
        bench_child_end(&c.server);
    return 0;
}
