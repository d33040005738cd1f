/* Access and limits: tasks of other principals, guessing of ids, limits of a server. */
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define ANSWER "\"inputResponses\":{\"input-1\":{\"action\":\"accept\"}}"
#define SLOW "\"name\":\"slow_compute\",\"arguments\":{\"ms\":100}"

/* ---- foreign tasks ---- */

static void foreign_is_unknown(world *w)
{
    static const char *const methods[] = {"tasks/get", "tasks/update", "tasks/cancel",
                                          "tasks/stream"};
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(w, "Bob");
    wire *nobody = world_connect(w, NULL);
    const char *id = wire_make_task(a, "1", "confirm_delete", NULL, CAPS_ALL);
    wire_get_until(a, id, "input_required", NULL);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        char unknown[512];
        snprintf(unknown, sizeof unknown, "%s",
                 wire_task(b, "2", methods[i], "AAAAAAAAAAAAAAAAAAAAAA", ANSWER));
        assert_code(unknown, -32602);
        assert_at(unknown, "error.data", "");
        assert_string_equal(wire_task(b, "2", methods[i], id, ANSWER), unknown);
        assert_string_equal(wire_task(nobody, "2", methods[i], id, ANSWER), unknown);
    }
    assert_at(wire_task(a, "3", "tasks/get", id, NULL), "result.status",
              "\"input_required\"");
    wire_task(a, "4", "tasks/update", id, ANSWER);
    wire_get_until(a, id, "completed", NULL);
}

static void foreign_is_left_out_of_subscriptions(world *w)
{
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(w, "Bob");
    const char *mine = wire_make_task(b, "1", "hang", NULL, NULL);
    const char *id = wire_make_task(a, "1", "hang", NULL, NULL);
    char params[512], agreed[256];
    snprintf(params, sizeof params,
             "\"notifications\":{\"taskIds\":[\"%s\",\"%s\",\"x\"]}", id, mine);
    snprintf(agreed, sizeof agreed, "[\"%s\"]", mine);
    wire_ask(b, "2", "subscriptions/listen", params, CAPS_TASKS);
    const char *ack = wire_notification(b, "notifications/subscriptions/acknowledged");
    assert_at(ack, "params.notifications.taskIds", agreed);
    wire_notification(b, "notifications/tasks");
    wire_task(a, "3", "tasks/cancel", id, NULL);
    wire_quiet(b);
    assert_null(strstr(wire_history(b), id));
}

static void same_principal_elsewhere(world *w)
{
    wire *a = world_connect(w, "Ada");
    const char *id = wire_make_task(a, "1", "hang", NULL, NULL);
    wire *again = world_connect(w, "Ada");
    assert_at(wire_task(again, "2", "tasks/get", id, NULL), "result.status",
              "\"working\"");
    world_restart(w);
    wire *foreign = world_connect(w, "Bob");
    assert_code(wire_task(foreign, "3", "tasks/get", id, NULL), -32602);
    wire *later = world_connect(w, "Ada");
    assert_at(wire_task(later, "3", "tasks/get", id, NULL), "result.status",
              "\"failed\"");
}

/* A guesser without tasks uses a new connection each time: the guess limit belongs to the
 * principal, not to the connection. */
static void new_connections_are_no_new_guesses(world *w)
{
    int refused = 0;
    for (int i = 0; i < 300; i++) {
        wire *c = world_connect(w, "Cem");
        const char *r = wire_task(c, "2", "tasks/get", "no-such-task", NULL);
        refused += !strcmp(json_at(r, "error.code"), "-32603");
        wire_cut(c);
        world_run(w);
    }
    assert_true(refused >= 150);
    world_advance(w, 1500); /* the guess limit is full again, and forgotten */
    wire *c = world_connect(w, "Cem");
    assert_code(wire_task(c, "2", "tasks/get", "no-such-task", NULL), -32602);
}

static void guessing_is_limited(world *w)
{
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(w, "Bob");
    const char *own = wire_make_task(a, "1", "hang", NULL, NULL);
    const char *foreign = wire_make_task(b, "1", "hang", NULL, NULL);
    int refused = 0;
    for (int i = 0; i < 1000; i++) {
        const char *r =
            wire_task(a, "2", "tasks/get", i % 2 ? "no-such-task" : foreign, NULL);
        if (!strcmp(json_at(r, "error.code"), "-32603")) {
            assert_at(r, "error.data.reason", "\"rate_limited\"");
            if (!refused++)
                assert_golden(r, "rate_limited");
        } else {
            assert_code(r, -32602);
            assert_int_equal(refused, 0);
        }
    }
    assert_int_equal(refused, 900);
    assert_at(wire_task(a, "3", "tasks/get", own, NULL), "result.status", "\"working\"");
    assert_code(wire_task(b, "4", "tasks/get", "no-such-task", NULL), -32602);
    world_jump(w, 1000);
    assert_code(wire_task(a, "5", "tasks/get", "no-such-task", NULL), -32602);
}

/* ---- limits ---- */

static void two_tasks(segue_server_options *options)
{
    options->max_tasks = 2;
}

static void tasks_are_limited(world *w)
{
    wire *c = world_connect(w, "Ada");
    wire *other = world_connect(w, "Bob");
    wire_make_task(c, "1", "hang", NULL, NULL);
    const char *second = wire_make_task(c, "2", "hang", NULL, NULL);
    /* A tool that may be a task runs plainly, one that must be is refused. */
    wire_ask(c, "3", "tools/call", SLOW, CAPS_TASKS);
    world_advance(w, 100);
    assert_at(wire_response(c, "3"), "result.resultType", "\"complete\"");
    const char *r = wire_do(c, "4", "tools/call", "\"name\":\"failing_job\"", CAPS_TASKS);
    assert_code(r, -32603);
    assert_at(r, "error.data.reason", "\"too_many_tasks\"");
    assert_golden(r, "too_many_tasks");
    wire_make_task(other, "5", "hang", NULL, NULL);
    wire_task(c, "6", "tasks/cancel", second, NULL);
    wire_make_task(c, "7", "hang", NULL, NULL);
}

static void two_requests(segue_server_options *options)
{
    options->max_requests = 2;
}

static void requests_are_limited(world *w)
{
    wire *c = world_connect(w, NULL);
    wire *other = world_connect(w, NULL);
    wire_ask(c, "1", "tools/call", "\"name\":\"hang_plain\"", NULL);
    wire_ask(c, "2", "tools/call", "\"name\":\"hang_plain\"", NULL);
    const char *r = wire_do(c, "3", "tools/call", "\"name\":\"greet\"", NULL);
    assert_code(r, -32603);
    assert_golden(r, "too_many_requests");
    assert_at(wire_do(other, "3", "tools/call", "\"name\":\"greet\"", NULL),
              "result.content.0.text", "\"Hello, World!\"");
    wire_notify(c, "notifications/cancelled", "\"requestId\":1");
    assert_at(wire_do(c, "4", "tools/call", "\"name\":\"greet\"", NULL),
              "result.content.0.text", "\"Hello, World!\"");
}

static void one_stream(segue_server_options *options)
{
    options->max_streams = 1;
}

static void streams_are_limited(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "hang", NULL, NULL);
    wire_ask(c, "2", "subscriptions/listen", "\"notifications\":{}", NULL);
    const char *r = wire_task(c, "3", "tasks/stream", id, NULL);
    assert_code(r, -32603);
    assert_golden(r, "too_many_streams");
    wire_notify(c, "notifications/cancelled", "\"requestId\":2");
    char params[256];
    snprintf(params, sizeof params, "\"taskId\":\"%s\"", id);
    wire_ask(c, "4", "tasks/stream", params, CAPS_TASKS);
    wire_task(c, "5", "tasks/cancel", id, NULL);
    assert_at(wire_response(c, "4"), "result.resultType", "\"complete\"");
}

static void small_results(segue_server_options *options)
{
    options->max_result_bytes = 10000;
    options->max_log_bytes = 20000;
    options->max_segments = 50;
}

static void results_are_limited(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r = wire_do(c, "1", "tools/call",
                            "\"name\":\"big\",\"arguments\":{\"bytes\":9000}", NULL);
    assert_int_equal(strlen(json_at(r, "result.content.0.text")), 9002);
    r = wire_do(c, "2", "tools/call", "\"name\":\"big\",\"arguments\":{\"bytes\":10000}",
                NULL);
    assert_code(r, -32603);
    assert_at(r, "error.data.reason", "\"partial_results_required\"");
    assert_golden(r, "result_too_large");
    wire_make_task(c, "3", "hang", NULL, NULL); /* the other tasks live */
}

static void logs_are_limited(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *big = wire_make_task(c, "1", "big", "\"bytes\":20000", NULL);
    const char *r = wire_get_until(c, big, "failed", NULL);
    assert_at(r, "result.error.data.reason", "\"log_overflow\"");
    const char *fits = wire_make_task(c, "2", "story", "\"n\":50", NULL);
    wire_get_until(c, fits, "completed", NULL);
    const char *many = wire_make_task(c, "3", "story", "\"n\":51", NULL);
    r = wire_get_until(c, many, "failed", NULL);
    assert_golden(wire_task(c, "4", "tasks/get", many, NULL),
                  "tasks_ext_get_log_overflow");
}

/* ---- a slow reader ---- */

#define LINES 20000
#define LINE_BYTES 1000

static void slow_reader_costs_little(world *w)
{
    wire *slow = world_connect(w, NULL);
    char arguments[64], params[256], line[LINE_BYTES + 1];
    snprintf(arguments, sizeof arguments, "\"n\":%d,\"chunk\":%d", LINES, LINE_BYTES);
    const char *id = wire_make_task(slow, "1", "story", arguments, NULL);
    snprintf(params, sizeof params, "\"taskId\":\"%s\"", id);
    wire_stall(slow, 1);
    wire_ask(slow, "2", "tasks/stream", params, CAPS_TASKS);
    for (int i = 0; i < 1000 && fixtures_jobs(w->fixtures); i++)
        world_advance(w, 10);
    assert_int_equal(fixtures_jobs(w->fixtures), 0);
    assert_in_range(w->mem.live, 0, 4 * 1024 * 1024); /* of an output of 20 MB */
    wire_stall(slow, 0);
    for (int seq = 0; seq < LINES; seq++) {
        const char *event = wire_notification(slow, "notifications/tasks/event");
        if (seq % 1000)
            continue;
        const char *text = json_at(event, "params.payload.content.0.text");
        fixtures_story_line(seq + 1, LINE_BYTES, line, sizeof line);
        assert_memory_equal(text + 1, line, strlen(line));
    }
    assert_at(wire_response(slow, "2"), "result.resultType", "\"complete\"");
}

/* The server stops reading from a client that never reads its answers. */
static void deaf_client_is_not_served(world *w)
{
    wire *c = world_connect(w, NULL);
    char id[16];
    wire_stall(c, 1);
    for (int i = 0; i < 200; i++) {
        snprintf(id, sizeof id, "%d", i);
        wire_ask(c, id, "tools/call", "\"name\":\"big\",\"arguments\":{\"bytes\":100000}",
                 NULL);
    }
    assert_in_range(w->mem.live, 0, 6 * 1024 * 1024); /* of an output of 20 MB */
    wire_stall(c, 0);
    for (int i = 0; i < 200; i++) {
        snprintf(id, sizeof id, "%d", i);
        wire_response(c, id);
    }
}

static const scenario scenarios[] = {
    {"AS-63 a foreign task is answered like an unknown one", foreign_is_unknown,
     ONLY_HERE, NULL},
    {"AS-63 a foreign task is left out of a subscription",
     foreign_is_left_out_of_subscriptions, ONLY_HERE, NULL},
    {"AS-63 a principal is the same after a restart", same_principal_elsewhere,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-122 guessing of ids is limited per principal", guessing_is_limited,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-122 new connections allow no new guesses", new_connections_are_no_new_guesses,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"R-2557-41 max_tasks: plain where it may be, refused where it must",
     tasks_are_limited, ONLY_HERE | ONE_DRIVE, two_tasks},
    /* Over HTTP a connection has one request at a time, and the listener counts streams
     * per principal. */
    {"max_requests holds per connection", requests_are_limited,
     ONLY_HERE | ONE_DRIVE | NOT_HTTP, two_requests},
    {"max_streams holds per connection", streams_are_limited,
     ONLY_HERE | ONE_DRIVE | NOT_HTTP, one_stream},
    {"max_result_bytes ends a plain call", results_are_limited, ONLY_HERE | ONE_DRIVE,
     small_results},
    {"R-C-10 max_log_bytes and max_segments end a task", logs_are_limited,
     ONLY_HERE | ONE_DRIVE, small_results},
    {"R-C-11 a slow reader of a stream costs little and misses nothing",
     slow_reader_costs_little, ONLY_HERE | ONE_DRIVE, NULL},
    {"a client that never reads is not served without end", deaf_client_is_not_served,
     ONLY_HERE | ONE_DRIVE, NULL},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
