/* The host of a session over HTTP. Questions come on event streams, and each answer is a
 * POST of its own. POSTs have no order, so a question has one response, and the server
 * pulls the segments behind it (SEP-1905). */
#include "support/host_stage.h"
#include "support/http_script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define MANY 70    /* more than may be sent at once */
#define AT_ONCE 63 /* the limit is 64: the stream takes one of them */

typedef struct web {
    http_script s;
    model m;
    heard *stream; /* the stream for messages of the server */
    char task[64];
} web;

static void initialize(web *w, const char *session)
{
    char headers[128];
    heard *h = script_expect(&w->s, "initialize");
    char body[700];
    snprintf(headers, sizeof headers,
             "Content-Type: application/json\r\nMcp-Session-Id: %s\r\n", session);
    snprintf(body, sizeof body,
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"protocolVersion\":"
             "\"2025-11-25\",\"capabilities\":" SERVER_2025_STREAMS
             ",\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}",
             json_at(h->body, "id"));
    script_say(h, "200 OK", headers, body);
    script_accept(script_find(&w->s, "notifications/initialized"));
    w->stream = script_find(&w->s, "GET");
    assert_header(w->stream, "Mcp-Session-Id", session);
    script_stream(w->stream);
}

static void begin(web *w)
{
    segue_session_options options = kit_legacy_options();
    memset(w, 0, sizeof *w);
    script_prepare(&w->s);
    kit_prepare(&w->s.k, 0);
    model_begin(&w->m, w->s.k.runtime, NULL, NULL);
    options.host = w->m.host;
    script_connect(&w->s, &options);
    initialize(w, "one");
}

static void end(web *w)
{
    model_end(&w->m);
    script_end(&w->s);
}

/* Waits for the next answer, checks it and accepts it. */
static const char *answer(web *w, const char *id, const char *path, const char *value)
{
    heard *h = script_expect(&w->s, "");
    assert_at(h->body, "id", id);
    assert_at(h->body, path, value);
    script_accept(h);
    return h->body;
}

static void ask_about(web *w, const char *id, const char *method, const char *more)
{
    script_event(
        w->stream, NULL,
        "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\",\"params\":{\"taskId\":"
        "\"%s\"%s}}",
        id, method, w->task, more);
}

static void make_task(web *w, const char *content)
{
    script_event(w->stream, NULL, ASK("7", STREAMED));
    const char *line = answer(w, "7", "result.partial-content", content);
    const char *id = json_at(line, "result.task.taskId");
    snprintf(w->task, sizeof w->task, "%.*s", (int)strlen(id) - 2, id + 1);
}

static void as_25_pulled(void **state)
{
    (void)state;
    web w;
    begin(&w);
    w.m.first = "a";
    make_task(&w, "[" NUMBERED(1, "a") "]");
    model_say(w.m.calls, "b");
    model_say(w.m.calls, "c");
    script_expect_silence(&w.s); /* nothing is pushed */
    ask_about(&w, "8", "tasks/result", ",\"lastSeqNr\":1");
    const char *line = answer(&w, "8", "result.partial-content",
                              "[" NUMBERED(2, "b") "," NUMBERED(3, "c") "]");
    assert_at(line, "result.isComplete", "false");
    model_complete(w.m.calls);
    heard *told = script_expect(&w.s, "notifications/tasks/status");
    assert_at(told->body, "params.status", "\"completed\"");
    script_accept(told);
    ask_about(&w, "9", "tasks/result", ",\"lastSeqNr\":3");
    line = answer(&w, "9", "result.isComplete", "true");
    assert_at(line, "result.partial-content", "[]");
    assert_at(line, "result.role", "\"assistant\"");
    assert_at(line, "result.model", "\"m-1\"");
    assert_at(line, "result.stopReason", "\"endTurn\"");
    ask_about(&w, "10", "tasks/result", "");
    line =
        answer(&w, "10", "result.content", "[" TEXT("a") "," TEXT("b") "," TEXT("c") "]");
    end(&w);
}

/* A limited number of answers is under way; the others wait, and none is lost. */
static void answers_are_bounded(void **state)
{
    (void)state;
    web w;
    heard *open[MANY];
    bool seen[MANY] = {false};
    begin(&w);
    make_task(&w, "");
    for (int i = 0; i < MANY; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", 100 + i);
        ask_about(&w, id, "tasks/get", "");
    }
    for (int i = 0; i < AT_ONCE; i++)
        open[i] = script_expect(&w.s, "");
    script_expect_silence(&w.s);
    for (int i = 0; i < MANY; i++) {
        if (i >= AT_ONCE)
            open[i] = script_expect(&w.s, "");
        script_accept(open[i]);
        if (i < MANY - AT_ONCE)
            script_pump(&w.s);
        assert_at(open[i]->body, "result.status", "\"working\"");
        int id = atoi(json_at(open[i]->body, "id")) - 100;
        assert_true(id >= 0 && id < MANY && !seen[id]);
        seen[id] = true;
    }
    end(&w);
}

/* In a new wire session old questions are not answered any more; the tasks are still
 * there. */
static void a_task_outlives_the_wire_session(void **state)
{
    (void)state;
    web w;
    begin(&w);
    make_task(&w, "");
    model_call *c = w.m.calls;
    ask_about(&w, "8", "tasks/result", "");
    record *r = kit_start(&w.s.k, "ping", NULL, NULL);
    script_say(script_expect(&w.s, "ping"), "404 Not Found", "", "");
    initialize(&w, "two");
    script_result(script_find(&w.s, "ping"), "\"_meta\":{}");
    script_until(&w.s, r->completed);
    model_say(c, "a");
    model_complete(c);
    script_expect_silence(&w.s);
    ask_about(&w, "9", "tasks/get", "");
    answer(&w, "9", "result.status", "\"completed\"");
    ask_about(&w, "8", "tasks/result", "");
    answer(&w, "8", "result.content", "[" TEXT("a") "]");
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"AS-25 over HTTP segments are pulled", as_25_pulled, NULL, NULL, NULL},
        cmocka_unit_test(answers_are_bounded),
        cmocka_unit_test(a_task_outlives_the_wire_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
