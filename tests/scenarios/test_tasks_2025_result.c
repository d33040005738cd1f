/* tasks/result of 2025-11-25: it waits for the end and returns every kind of end. Also
 * who may ask about a task, in which era, and after a death of the server. */
#include "support/legacy_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

/* ---- each end ---- */

static void assert_related(const char *r, const char *id)
{
    char related[160];
    snprintf(related, sizeof related,
             "{\"io.modelcontextprotocol/related-task\":{\"taskId\":\"%s\"}}", id);
    assert_at(r, "result._meta", related);
}

/* Asks before the end has come and again afterwards: both answers are equal. */
static const char *ask_twice(wire *c, world *w, const char *id, int64_t ms)
{
    legacy_ask_about(c, "7", "tasks/result", id, NULL);
    world_advance(w, ms);
    const char *waited = wire_response(c, "7");
    assert_string_equal(waited, legacy_task(c, "7", "tasks/result", id, NULL));
    return waited;
}

static void tells_each_end(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    const char *id = legacy_make_task(c, "1", "slow_compute", "\"ms\":100", NULL);
    const char *r = ask_twice(c, w, id, 100);
    assert_at(r, "result.content.0.text", "\"Computed: done\"");
    assert_related(r, id);
    id = legacy_make_task(c, "2", "failing_job", "\"ms\":100", NULL);
    r = ask_twice(c, w, id, 100);
    assert_at(r, "result.isError", "true");
    assert_at(r, "result.content.0.text", "\"The job failed\"");
    assert_related(r, id);
    id = legacy_make_task(c, "3", "protocol_error_job", NULL, NULL);
    r = ask_twice(c, w, id, 100);
    assert_at(r, "error",
              "{\"code\":-32603,\"message\":\"Protocol level failure\",\"data\":"
              "{\"hint\":\"on purpose\"}}");
    id = legacy_make_task(c, "4", "hang", NULL, "{\"ttl\":100}");
    r = ask_twice(c, w, id, 100);
    assert_at(r, "error", "{\"code\":-32603,\"message\":\"Task TTL expired\"}");
}

static void keeps_what_the_tool_said(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    const char *id = legacy_make_task(c, "1", "fields", NULL, NULL);
    const char *r = ask_twice(c, w, id, 0);
    assert_at(r, "result.content.0.text", "\"right\"");
    assert_at(r, "result.content.1", "");
    assert_at(r, "result.structuredContent", "{\"a\":2}");
    assert_non_null(strstr(json_at(r, "result._meta"), "\"com.example/k\":true"));
    assert_non_null(strstr(json_at(r, "result._meta"), id));
}

#define CANCELLED "{\"type\":\"text\",\"text\":\"Task was cancelled\"}"

static void tells_that_it_was_cancelled(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    const char *id = legacy_make_task(c, "1", "hang", NULL, NULL);
    legacy_ask_about(c, "2", "tasks/result", id, NULL);
    assert_at(legacy_task(c, "3", "tasks/cancel", id, NULL), "result.status",
              "\"cancelled\"");
    const char *r = wire_response(c, "2");
    assert_at(r, "result.content", "[" CANCELLED "]");
    assert_at(r, "result.isError", "true");
    assert_related(r, id);
    assert_string_equal(legacy_task(c, "2", "tasks/result", id, NULL), r);
}

static void cancelled_keeps_what_there_was(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    const char *id = legacy_make_task(c, "1", "story", "\"n\":9,\"delayMs\":1000", NULL);
    world_run(w);
    legacy_task(c, "2", "tasks/cancel", id, NULL);
    const char *r = legacy_task(c, "3", "tasks/result", id, NULL);
    assert_at(r, "result.content",
              "[{\"type\":\"text\",\"text\":\"segment 1 of the story\"}," CANCELLED "]");
}

/* ---- waiting ---- */

static void all_who_wait_are_answered(world *w)
{
    static const char *const ids[] = {"11", "12", "13"};
    wire *c = legacy_connect(w, NULL, NULL);
    const char *id =
        legacy_make_task(c, "1", "slow_compute", world_lasting(w, 300), NULL);
    for (size_t i = 0; i < 3; i++)
        legacy_ask_about(c, ids[i], "tasks/result", id, NULL);
    if (w->place == WORLD_STDIO) { /* over stdio a cut ends the server */
        legacy_ask_about(c, "14", "tasks/result", id, NULL);
        wire_notify(c, "notifications/cancelled", "\"requestId\":14");
    } else {
        wire *other = legacy_connect(w, NULL, NULL);
        legacy_ask_about(other, "14", "tasks/result", id, NULL);
        wire_cut(other);
    }
    assert_at(legacy_task(c, "2", "tasks/get", id, NULL), "result.status", "\"working\"");
    world_advance(w, 300);
    char first[1024];
    snprintf(first, sizeof first, "%s", json_at(wire_response(c, ids[0]), "result"));
    assert_non_null(strstr(first, "Computed: done"));
    for (size_t i = 1; i < 3; i++)
        assert_string_equal(json_at(wire_response(c, ids[i]), "result"), first);
    assert_at(legacy_task(c, "3", "tasks/get", id, NULL), "result.status",
              "\"completed\"");
    if (w->place == WORLD_STDIO)
        assert_null(strstr(wire_history(c), "\"id\":14"));
}

/* R-1905-35: withdrawing ends the wait, not the task. */
static void withdrawing_ends_only_the_wait(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    const char *id =
        legacy_make_task(c, "1", "slow_compute", world_lasting(w, 300), NULL);
    legacy_ask_about(c, "2", "tasks/result", id, NULL);
    wire_notify(c, "notifications/cancelled", "\"requestId\":2");
    assert_at(legacy_task(c, "3", "tasks/get", id, NULL), "result.status", "\"working\"");
    legacy_get_until(c, id, "completed");
    assert_at(legacy_task(c, "4", "tasks/result", id, NULL), "result.content.0.text",
              "\"Computed: done\"");
}

/* ---- who may ask ---- */

static void foreign_is_unknown(world *w)
{
    static const struct {
        const char *method, *more;
    } asked[] = {{"tasks/get", NULL},
                 {"tasks/result", NULL},
                 {"tasks/result", "\"lastSeqNr\":1"},
                 {"tasks/cancel", NULL}};
    wire *a = legacy_connect(w, "Ada", MODES_ALL);
    wire *b = legacy_connect(w, "Bob", MODES_ALL);
    const char *id = legacy_make_task(a, "1", "hang", NULL, NULL);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        char unknown[512];
        snprintf(unknown, sizeof unknown, "%s",
                 legacy_task(b, "3", asked[i].method, "AAAAAAAAAAAAAAAAAAAAAA",
                             asked[i].more));
        assert_code(unknown, -32602);
        assert_at(unknown, "error.data", "");
        assert_string_equal(legacy_task(b, "3", asked[i].method, id, asked[i].more),
                            unknown);
    }
    assert_at(legacy_task(a, "4", "tasks/get", id, NULL), "result.status", "\"working\"");
}

static void eras_keep_their_tasks_apart(world *w)
{
    static const char *const methods[] = {"tasks/get", "tasks/cancel", "tasks/result"};
    wire *c = legacy_connect(w, NULL, NULL);
    const char *l = legacy_make_task(c, "1", "slow_compute", "\"ms\":200", NULL);
    const char *x = wire_make_task(c, "2", "slow_compute", "\"ms\":200", NULL);
    for (size_t i = 0; i < 3; i++)
        assert_code(legacy_task(c, "3", methods[i], x, NULL), -32602);
    for (size_t i = 0; i < 2; i++)
        assert_code(wire_task(c, "4", methods[i], l, NULL), -32602);
    assert_code(wire_task(c, "5", "tasks/update", l, "\"inputResponses\":{}"), -32602);
    assert_code(wire_task(c, "6", "tasks/stream", l, NULL), -32602);
    assert_code(wire_task(c, "7", "tasks/result", l, NULL), -32601);
    assert_code(wire_task(c, "8", "tasks/list", l, NULL), -32601);
    const char *r = legacy_get_until(c, l, "completed");
    assert_at(r, "result.ttl", "3600000");
    assert_at(r, "result.ttlMs", "");
    r = wire_get_until(c, x, "completed", NULL);
    assert_at(r, "result.ttlMs", "3600000");
    assert_at(r, "result.ttl", "");
}

/* ---- a server that dies ---- */

static void survives_a_death(world *w)
{
    wire *c = legacy_connect(w, "Ada", NULL);
    const char *done = legacy_make_task(c, "1", "fields", NULL, NULL);
    const char *lost = legacy_make_task(c, "2", "hang", NULL, NULL);
    const char *again = legacy_make_task(c, "3", "story", "\"n\":5,\"delayMs\":50", NULL);
    legacy_get_until(c, done, "completed");
    world_restart(w);
    c = legacy_connect(w, "Ada", NULL);
    assert_at(legacy_get_until(c, done, "completed"), "result.statusMessage",
              "\"almost\"");
    const char *r = legacy_get_until(c, lost, "failed");
    assert_at(r, "result.statusMessage", "\"Server restarted\"");
    r = legacy_task(c, "4", "tasks/result", lost, NULL);
    assert_at(r, "error.code", "-32603");
    assert_at(r, "error.data.reason", "\"server_restarted\"");
    legacy_get_until(c, again, "completed");
    r = legacy_task(c, "5", "tasks/result", again, NULL);
    assert_at(r, "result.content.4.text", "\"segment 5 of the story\"");
    assert_at(r, "result.content.5", "");
    assert_related(r, again);
    r = wire_do_plain(c, "6", "tasks/list", NULL);
    for (int i = 0; i < 3; i++) {
        const char *const ids[] = {done, lost, again};
        assert_non_null(strstr(r, ids[i]));
    }
    assert_at(r, "result.tasks.3", "");
}

static const scenario scenarios[] = {
    {"tasks/result tells each end", tells_each_end, 0, NULL},
    {"tasks/result keeps what the tool said", keeps_what_the_tool_said, ONE_DRIVE, NULL},
    {"tasks/result tells that a task was cancelled", tells_that_it_was_cancelled, 0,
     NULL},
    {"a cancelled task keeps what there was", cancelled_keeps_what_there_was,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-21 all who wait for a result are answered", all_who_wait_are_answered, 0, NULL},
    {"R-1905-35 withdrawing tasks/result ends only the wait",
     withdrawing_ends_only_the_wait, ONE_DRIVE, NULL},
    {"AS-30 a foreign task of 2025-11-25 is an unknown one", foreign_is_unknown,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-43 AS-120 two eras at once keep their tasks apart", eras_keep_their_tasks_apart,
     0, NULL},
    {"AS-78 tasks of 2025-11-25 survive a death of the server", survives_a_death,
     ONLY_SQLITE | ONE_DRIVE, NULL},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
