/* The client and the server over HTTP, both in one runtime, in real time. The same
 * program has the same outcome in every dialect. A stream whose connection is cut again
 * and again misses nothing; a proxy in between makes the cuts. */
#include "support/cutting_proxy.h"
#include "support/fixtures.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define PATIENCE_MS 120000 /* after which a request counts as lost */

typedef struct outcome {
    int segments;
    uint64_t last;
    int prompts;
    int completed, freed;
    segue_status status;
    char message[200];
    char content[65536];
} outcome;

typedef struct stage {
    segue_runtime *runtime;
    segue_server *server;
    segue_listener *listener;
    fixtures *fixtures;
    segue_session *session;
    cutting_proxy *proxy;
} stage;

static int64_t now_ms(void *user)
{
    struct timespec t;
    (void)user;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- callbacks of a request ---- */

static void on_segment(void *user, segue_request *request, const segue_segment *segment)
{
    outcome *o = user;
    char expected[64];
    const char *text = segue_segment_text(segment, NULL);
    (void)request;
    fixtures_story_line(++o->segments, 0, expected, sizeof expected);
    assert_int_equal(segue_segment_read(segment)->number, ++o->last);
    if (text && strstr(text, "story"))
        assert_string_equal(text, expected);
}

static void on_input(void *user, segue_request *request, const char *key,
                     const char *method, const char *params, size_t len)
{
    static const char yes[] = "{\"action\":\"accept\",\"content\":{\"confirm\":true}}";
    outcome *o = user;
    (void)method;
    (void)params;
    (void)len;
    o->prompts++;
    assert_int_equal(segue_request_answer(request, key, yes, sizeof yes - 1, NULL),
                     SEGUE_OK);
}

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    outcome *o = user;
    (void)request;
    assert_int_equal(o->completed++, 0);
    o->status = status;
    snprintf(o->message, sizeof o->message, "%s", segue_error_read(error)->message);
    if (json) {
        char *copy = strndup(json, len);
        snprintf(o->content, sizeof o->content, "%s", json_at(copy, "content"));
        free(copy);
    }
}

static void on_free(void *user)
{
    outcome *o = user;
    assert_int_equal(o->completed, 1);
    assert_int_equal(o->freed++, 0);
}

/* ---- the stage ---- */

static void listen_there(stage *s)
{
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    segue_error *error = NULL;
    options.dialects_on = SEGUE_DIALECT_DRAFT_TASKS; /* only used by clients that ask for
                                                      * them */
    assert_int_equal(segue_runtime_new(NULL, &s->runtime, NULL), SEGUE_OK);
    assert_int_equal(segue_server_new(s->runtime, &options, &s->server, NULL), SEGUE_OK);
    s->fixtures = fixtures_new(now_ms, NULL);
    assert_int_equal(fixtures_add(s->fixtures, s->runtime, s->server), SEGUE_OK);
    if (segue_server_listen(s->server, NULL, &s->listener, &error) != SEGUE_OK)
        fail_msg("listening: %s", segue_error_read(error)->message);
}

static void begin(stage *s, const segue_session_options *options, int with_proxy)
{
    segue_session_options session = SEGUE_SESSION_OPTIONS_INIT;
    segue_transport *transport;
    char url[128];
    listen_there(s);
    snprintf(url, sizeof url, "%s", segue_listener_url(s->listener));
    if (with_proxy) {
        int port = atoi(strrchr(url, ':') + 1);
        cutting_options proxy = {
            .target_port = (uint16_t)port, .seed = 7, .piece_max = 300};
        assert_true(cutting_proxy_start(&proxy, &s->proxy));
        snprintf(url, sizeof url, "http://127.0.0.1:%d/mcp",
                 (int)cutting_proxy_port(s->proxy));
    }
    if (options)
        session = *options;
    session.capabilities = "{\"elicitation\":{}}";
    assert_int_equal(segue_transport_http(s->runtime, url, NULL, &transport, NULL),
                     SEGUE_OK);
    assert_int_equal(
        segue_session_open(s->runtime, transport, &session, NULL, &s->session, NULL),
        SEGUE_OK);
}

static void end(stage *s)
{
    segue_session_close(s->session);
    segue_session_free(s->session);
    segue_listener_free(s->listener);
    segue_server_free(s->server);
    segue_runtime_free(s->runtime);
    fixtures_tick(s->fixtures);
    fixtures_free(s->fixtures);
    cutting_proxy_stop(s->proxy);
}

static void call(stage *s, const char *params, outcome *o)
{
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    *o = (outcome){0};
    events.user = o;
    events.free_user = on_free;
    events.on_segment = on_segment;
    events.on_input = on_input;
    events.on_complete = on_complete;
    assert_int_equal(segue_request_start(s->session, "tools/call", params, strlen(params),
                                         NULL, &events, NULL, NULL),
                     SEGUE_OK);
    for (int64_t until = now_ms(NULL) + PATIENCE_MS; !o->freed && now_ms(NULL) < until;) {
        int64_t wait = fixtures_tick(s->fixtures);
        segue_runtime_dispatch(s->runtime, wait < 0 || wait > 10 ? 10 : wait, 0, NULL);
    }
    assert_int_equal(o->freed, 1);
    if (o->status != SEGUE_OK)
        fail_msg("%s: %s %s", params, segue_status_name(o->status), o->message);
}

/* ---- AS-70 ---- */

/* Ways to have the same conversation: streamed tasks, plain calls, a handshake era, the
 * draft after it. */
enum { STREAMED, PLAIN, LEGACY, DRAFT, WAYS };

static void begin_way(stage *s, int way)
{
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    options.no_tasks = way == PLAIN;
    options.era = way == LEGACY || way == DRAFT ? SEGUE_ERA_LEGACY : SEGUE_ERA_AUTO;
    options.dialects_on = way == DRAFT ? SEGUE_DIALECT_DRAFT_TASKS : 0;
    begin(s, &options, 0);
}

static void the_same_program_gives_the_same_results(void **state)
{
    (void)state;
    static const struct {
        const char *task;  /* the call in ways with tasks */
        const char *plain; /* the same handler under a name that is never a task */
        int segments, prompts;
    } rows[] = {
        {"{\"name\":\"greet\",\"arguments\":{\"name\":\"you\"}}", NULL, 1, 0},
        {"{\"name\":\"story\",\"arguments\":{\"n\":5}}", NULL, 5, 0},
        {"{\"name\":\"slow_compute\",\"arguments\":{\"ms\":300,\"label\":\"x\"}}", NULL,
         1, 0},
        {"{\"name\":\"multi_input\",\"arguments\":{}}",
         "{\"name\":\"ask_both\",\"arguments\":{}}", 1, 2},
        {"{\"name\":\"ask_in_turn\",\"arguments\":{}}",
         "{\"name\":\"ask_rounds\",\"arguments\":{}}", 1, 3},
    };
    static outcome seen[sizeof rows / sizeof *rows], o;
    for (int way = 0; way < WAYS; way++) {
        stage s = {0};
        begin_way(&s, way);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            call(&s, way == PLAIN && rows[i].plain ? rows[i].plain : rows[i].task, &o);
            assert_int_equal(o.prompts, rows[i].prompts);
            assert_int_equal(o.segments, rows[i].segments);
            if (way == STREAMED)
                seen[i] = o;
            assert_string_equal(o.content, seen[i].content);
        }
        end(&s);
    }
}

/* ---- cuts ---- */

static void check_story(const outcome *o, int count)
{
    char path[24], expected[64], quoted[80];
    assert_int_equal(o->segments, count);
    for (int i = 0; i < count; i += 7) {
        snprintf(path, sizeof path, "%d.text", i);
        fixtures_story_line(i + 1, 0, expected, sizeof expected);
        snprintf(quoted, sizeof quoted, "\"%s\"", expected);
        assert_at(o->content, path, quoted);
    }
    snprintf(path, sizeof path, "%d", count);
    assert_at(o->content, path, "");
}

/* The stream is cut at any byte: in a head, in the framing of a chunk, in an event. In
 * every way each segment comes once and in order. */
static void a_stream_goes_on_behind_each_cut(void **state)
{
    (void)state;
    static const cutting_how ways[] = {CUTTING_FIN, CUTTING_RST};
    static outcome o;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        stage s = {0};
        begin(&s, NULL, 1);
        call(&s, "{\"name\":\"greet\",\"arguments\":{}}", &o);
        cutting_plan plan = {.direction = CUTTING_DOWN,
                             .min = 1500, /* more than the head and one event */
                             .max = 9000,
                             .how = ways[i],
                             .times = 5};
        static const char params[] =
            "{\"name\":\"story\",\"arguments\":{\"n\":150,\"delayMs\":5}}";
        cutting_proxy_plan(s.proxy, &plan);
        call(&s, params, &o);
        check_story(&o, 150);
        assert_true(cutting_proxy_get(s.proxy, CUTTING_CUTS) > 0);
        assert_int_equal(fixtures_runs(s.fixtures, "story"), 1);
        end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"AS-70 the same program gives the same results over HTTP",
         the_same_program_gives_the_same_results, NULL, NULL, NULL},
        {"AS-93a a stream over HTTP goes on behind each cut",
         a_stream_goes_on_behind_each_cut, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests_name("client_http", tests, NULL, NULL);
}
