/* Dialect E, the event stream of a task, as a raw client sees it: its content, where it
 * begins, how it ends, and that it is only a view of the task. */
#include "support/fault_store.h"
#include "support/scratch.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define EVENT "notifications/tasks/event"

static void ask_stream(wire *c, const char *id, const char *task, const char *after)
{
    char params[256];
    snprintf(params, sizeof params, "\"taskId\":\"%s\"%s%s", task,
             after ? ",\"after\":" : "", after ? after : "");
    wire_ask(c, id, "tasks/stream", params, CAPS_TASKS);
}

/* Checks the next event of a story: line seq + 1 of it. */
static void assert_story_event(wire *c, const char *task, int seq)
{
    const char *event = wire_notification(c, EVENT);
    char line[256], quoted[300], number[16];
    fixtures_story_line(seq + 1, 0, line, sizeof line);
    snprintf(quoted, sizeof quoted, "\"%s\"", line);
    assert_at(event, "params.payload.content.0.text", quoted);
    snprintf(number, sizeof number, "%d", seq);
    assert_at(event, "params.seq", number);
    snprintf(number, sizeof number, "%d", seq + 1);
    assert_at(event, "params.payload.segment", number);
    snprintf(quoted, sizeof quoted, "\"%s\"", task);
    assert_at(event, "params.taskId", quoted);
    assert_at(event, "params.type", "\"dev.segue.content.partial\"");
}

static void assert_end(const char *response)
{
    assert_at(response, "result.resultType", "\"complete\"");
    assert_at(response, "result.content", "");
    assert_at(response, "result.taskId", "");
}

/* ---- content ---- */

static void numbered_from_zero(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "story", "\"n\":100", NULL);
    char merged[16384] = "[";
    ask_stream(c, "2", id, NULL);
    for (int seq = 0; seq < 100; seq++) {
        char line[256];
        assert_story_event(c, id, seq);
        fixtures_story_line(seq + 1, 0, line, sizeof line);
        sprintf(merged + strlen(merged), "%s{\"type\":\"text\",\"text\":\"%s\"}",
                seq ? "," : "", line);
    }
    strcat(merged, "]");
    assert_end(wire_response(c, "2"));
    const char *r = wire_get_until(c, id, "completed", NULL);
    assert_at(r, "result.result.content", merged);
    /* Behind the last event only the end comes again. */
    ask_stream(c, "3", id, "99");
    assert_end(wire_response(c, "3"));
    wire_quiet(c);
}

static void follows_what_comes(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "story", "\"n\":20,\"delayMs\":10", NULL);
    ask_stream(c, "2", id, NULL);
    for (int seq = 0; seq < 20; seq++) {
        world_advance(w, 10);
        assert_story_event(c, id, seq);
    }
    assert_end(wire_response(c, "2"));
}

static void goes_on_behind_the_cursor(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "story", "\"n\":100,\"delayMs\":1", NULL);
    ask_stream(c, "2", id, NULL);
    for (int seq = 0; seq < 42; seq++) {
        world_advance(w, 1);
        assert_story_event(c, id, seq);
    }
    wire_notify(c, "notifications/cancelled", "\"requestId\":2");
    wire_get_until(c, id, "completed", NULL);
    while (strstr(wire_history(c), "\"id\":3") == NULL && wire_next(c))
        ; /* reads what was on its way when the stream was closed */
    ask_stream(c, "3", id, "41");
    for (int seq = 42; seq < 100; seq++)
        assert_story_event(c, id, seq);
    assert_end(wire_response(c, "3"));
    /* over stdio the task may have ended before the cancel */
    if (w->place != WORLD_STDIO)
        assert_null(strstr(wire_history(c), "\"id\":2,"));
}

static void goes_on_over_another_connection(world *w)
{
    wire *a = world_connect(w, NULL);
    const char *id = wire_make_task(a, "1", "story", "\"n\":100,\"delayMs\":1", NULL);
    ask_stream(a, "2", id, NULL);
    for (int seq = 0; seq < 42; seq++) {
        world_advance(w, 1);
        assert_story_event(a, id, seq);
    }
    wire_cut(a);
    wire *b = world_connect(w, NULL);
    assert_at(wire_task(b, "3", "tasks/get", id, NULL), "result.status", "\"working\"");
    world_advance(w, 100);
    ask_stream(b, "4", id, "41");
    for (int seq = 42; seq < 100; seq++)
        assert_story_event(b, id, seq);
    assert_end(wire_response(b, "4"));
}

static void kinds_of_events(world *w)
{
    static const char *const golden[] = {
        "event_partial", "event_replace", NULL, "event_fields", NULL, NULL,
        "event_status"};
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "fields", NULL, NULL);
    ask_stream(c, "2", id, NULL);
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        const char *event = wire_notification(c, EVENT);
        if (golden[i])
            assert_golden(event, golden[i]);
    }
    assert_golden(wire_response(c, "2"), "stream_end");
    const char *tool_error = wire_make_task(c, "3", "fail_after", "\"n\":1", NULL);
    const char *rpc_error = wire_make_task(c, "4", "protocol_error_job", NULL, NULL);
    const char *cancelled = wire_make_task(c, "5", "hang", NULL, NULL);
    wire_get_until(c, tool_error, "completed", NULL);
    wire_get_until(c, rpc_error, "failed", NULL);
    wire_task(c, "6", "tasks/cancel", cancelled, NULL);
    assert_golden(wire_task(c, "7", "tasks/stream", tool_error, NULL),
                  "stream_end_tool_error");
    assert_golden(wire_task(c, "8", "tasks/stream", rpc_error, NULL),
                  "stream_end_failed");
    assert_golden(wire_task(c, "9", "tasks/stream", cancelled, NULL),
                  "stream_end_cancelled");
}

static void numbers_without_holes(world *w)
{
    wire *c = world_connect(w, NULL);
    char *line =
        wire_line("1", "tools/call", "\"name\":\"chatty_task\",\"arguments\":{\"n\":5}",
                  CAPS_TASKS);
    /* The call asks for progress and log, which still are no part of a task. */
    char *meta = strstr(line, "\"_meta\":{");
    char asked[1024];
    snprintf(asked, sizeof asked, "%.*s%s%s", (int)(meta - line) + 9, line,
             "\"progressToken\":\"p\",\"io.modelcontextprotocol/logLevel\":\"debug\",",
             meta + 9);
    wire_send(c, asked);
    free(line);
    char id[160];
    snprintf(id, sizeof id, "%s", json_at(wire_response(c, "1"), "result.taskId") + 1);
    id[strlen(id) - 1] = 0;
    wire_get_until(c, id, "completed", NULL);
    ask_stream(c, "2", id, NULL);
    int segment = 0;
    for (int seq = 0; seq < 11; seq++) {
        const char *event = wire_notification(c, EVENT);
        assert_int_equal(atoi(json_at(event, "params.seq")), seq);
        if (*json_at(event, "params.payload.segment"))
            assert_int_equal(atoi(json_at(event, "params.payload.segment")), ++segment);
    }
    assert_int_equal(segment, 6);
    assert_end(wire_response(c, "2"));
}

/* ---- access ---- */

static void one_stream_per_connection(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "hang", NULL, NULL);
    const char *other = wire_make_task(c, "2", "hang", NULL, NULL);
    ask_stream(c, "3", id, NULL);
    ask_stream(c, "4", other, NULL); /* a stream of another task is accepted */
    const char *r = wire_task(c, "5", "tasks/stream", id, NULL);
    assert_code(r, -32602);
    assert_golden(r, "stream_twice");
    wire_notify(c, "notifications/cancelled", "\"requestId\":3");
    ask_stream(c, "6", id, NULL);
    wire_task(c, "7", "tasks/cancel", id, NULL);
    assert_end(wire_response(c, "6"));
    wire_task(c, "8", "tasks/cancel", other, NULL);
    assert_end(wire_response(c, "4"));
}

static void several_connections(world *w)
{
    wire *a = world_connect(w, NULL);
    wire *b = world_connect(w, NULL);
    const char *id = wire_make_task(a, "1", "story", "\"n\":10,\"delayMs\":5", NULL);
    ask_stream(a, "2", id, NULL);
    ask_stream(b, "2", id, "4");
    world_advance(w, 100);
    for (int seq = 0; seq < 10; seq++) {
        assert_story_event(a, id, seq);
        if (seq > 4)
            assert_story_event(b, id, seq);
    }
    assert_end(wire_response(a, "2"));
    assert_end(wire_response(b, "2"));
}

static void bad_cursors(world *w)
{
    static const char *const bad[] = {
        "-1", "1.5", "\"3\"", "null", "true", "{}", "99999999999999999999"};
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "hang", NULL, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ask_stream(c, "2", id, bad[i]);
        assert_code(wire_response(c, "2"), -32602);
    }
    char params[256];
    snprintf(params, sizeof params, "\"taskId\":\"%s\"", id);
    assert_code(wire_do(c, "3", "tasks/stream", params, NULL), -32021);
}

static void closing_is_not_cancelling(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "hang", NULL, NULL);
    ask_stream(c, "2", id, NULL);
    wire_notify(c, "notifications/cancelled", "\"requestId\":2");
    assert_at(wire_task(c, "3", "tasks/get", id, NULL), "result.status", "\"working\"");
    ask_stream(c, "4", id, NULL);
    wire_cut(c);
    if (w->place == WORLD_STDIO)
        return;
    c = world_connect(w, NULL);
    assert_at(wire_task(c, "5", "tasks/get", id, NULL), "result.status", "\"working\"");
}

static void beyond_the_end(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "story", "\"n\":3", NULL);
    wire_get_until(c, id, "completed", NULL);
    ask_stream(c, "2", id, "9007199254740991");
    assert_end(wire_response(c, "2"));
    assert_null(strstr(wire_history(c), EVENT));
}

/* ---- no memory ---- */

/* Asks for a stream without letting the server run. */
static void feed_stream(wire *c, const char *task)
{
    char params[256];
    snprintf(params, sizeof params, "\"taskId\":\"%s\"", task);
    char *line = wire_line("2", "tasks/stream", params, CAPS_TASKS);
    wire_feed(c, line, strlen(line));
    wire_feed(c, "\n", 1);
    free(line);
}

/* Reads a stream, which has no gap, up to its response. Returns the response, or NULL
 * when the stream has none. *next: the number of the next event. */
static const char *read_stream(wire *c, int *next)
{
    const char *r;
    while ((r = wire_next(c)) && *json_at(r, "params.seq"))
        assert_int_equal(atoi(json_at(r, "params.seq")), (*next)++);
    return r;
}

static void no_memory_for_one(world *w)
{
    wire *maker = world_connect(w, NULL);
    const char *id = wire_make_task(maker, "1", "story", "\"n\":40,\"chunk\":3400", NULL);
    int failed = 1, at_begin = 0, between = 0;
    wire_get_until(maker, id, "completed", NULL);
    for (size_t k = 1; failed; k++) {
        char after[16];
        int next = 0;
        wire *c = world_connect(w, NULL);
        feed_stream(c, id);
        test_mem_rearm(&w->mem);
        w->mem.fail_at = k;
        world_advance(w, 100);
        failed = w->mem.failed > 0;
        test_mem_rearm(&w->mem);
        const char *r = read_stream(c, &next);
        if (r && *json_at(r, "error.data.reason")) {
            assert_at(r, "error.data.reason", "\"out_of_memory\"");
            assert_true(atoi(json_at(r, "error.data.retryAfterMs")) > 0);
            *(next ? &between : &at_begin) += 1;
            snprintf(after, sizeof after, "%d", next - 1);
            ask_stream(c, "3", id, next ? after : NULL);
            assert_end(read_stream(c, &next));
            assert_int_equal(next, 40);
        }
        wire_drop(c);
    }
    assert_true(at_begin > 0);
    assert_true(between > 0);
}

/* ---- a trimmed log ---- */

static fault_store *faults;

static void with_faults(world *w)
{
    scratch_name(w->path, sizeof w->path, "/tmp/segue-events");
    faults = fault_store_new(w->store_kind == WORLD_SQLITE ? w->path : NULL, &w->custom);
}

static void events_gone(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "story", "\"n\":100,\"delayMs\":1", NULL);
    world_advance(w, 50);
    fault_store_trim(faults, 10); /* log entries 1 to 10 are events 0 to 9 */
    ask_stream(c, "2", id, "3");
    const char *r = wire_response(c, "2");
    assert_code(r, -32603);
    assert_at(r, "error.data.reason", "\"events_gone\"");
    assert_at(r, "error.data.earliestSeq", "10");
    assert_golden(r, "events_gone");
    ask_stream(c, "3", id, "9");  /* the first event asked for is the first one kept */
    if (w->place != WORLD_HTTP) { /* a second stream on the same connection */
        ask_stream(c, "4", id, NULL);
        assert_code(wire_response(c, "4"), -32602);
    }
    for (int seq = 10; seq < 40; seq++)
        assert_story_event(c, id, seq);
    wire_notify(c, "notifications/cancelled", "\"requestId\":3");
    while (wire_next(c))
        ;
    ask_stream(c, "5", id, NULL); /* no cursor: from the earliest kept event */
    assert_story_event(c, id, 10);
}

static const scenario scenarios[] = {
    {"AS-93a R-C-9 events are numbered from 0 and fold to the result", numbered_from_zero,
     0, NULL},
    {"AS-93a a stream follows new events", follows_what_comes, ONE_DRIVE, NULL},
    {"AS-93a a stream goes on behind its cursor", goes_on_behind_the_cursor, ONE_DRIVE,
     NULL},
    {"AS-93a a stream goes on over another connection", goes_on_over_another_connection,
     ONLY_HERE, NULL},
    {"AS-93a each kind of event equals its golden file", kinds_of_events, 0, NULL},
    /* Over HTTP each stream has its own connection. */
    {"AS-93a a second stream of a task on one connection is refused",
     one_stream_per_connection, NOT_HTTP, NULL},
    {"AS-93a R-C-7 each connection has its own cursor", several_connections, ONLY_HERE,
     NULL},
    {"AS-93a invalid cursors are refused", bad_cursors, 0, NULL},
    {"AS-93a closing a stream leaves the task working", closing_is_not_cancelling, 0,
     NULL},
    {"AS-93a a cursor beyond the end gives the end", beyond_the_end, 0, NULL},
    {"AS-112 progress and log make no gap in the numbers", numbers_without_holes, 0,
     NULL},
    {"AS-93a a stream without memory says so, and goes on behind its last event",
     no_memory_for_one, ONLY_HERE | ONE_DRIVE, NULL},
};

static const scenario trimmed[] = {
    {"AS-93a a trimmed log says where it begins", events_gone, ONLY_HERE | ONE_DRIVE,
     NULL},
};

int main(void)
{
    int failed = scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
    return failed + scenarios_run_prepared(trimmed, 1, with_faults);
}
