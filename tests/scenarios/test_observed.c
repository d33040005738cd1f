/* The events of calls and requests that an observer gets, and what no event has. */
#include "support/client_kit.h"
#include "support/event_log.h"
#include "support/fault_store.h"
#include "support/world_inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "engine/server/server.h"
#include "store/store.h"

#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define ACCEPT "{\"action\":\"accept\",\"content\":{\"confirm\":true}}"

static fault_store *faults;

static void with_faults(world *w)
{
    faults = fault_store_new(NULL, &w->custom);
}

static void a_task_is_followed_from_its_start_to_its_end(world *w)
{
    event_log log;
    char prefix[40];
    event_log_begin(&log, w->runtime, 0);
    wire *c = world_connect(w, "Ada");
    if (w->place == WORLD_PAIR) /* over HTTP, 2026-07-28 has no sessions */
        event_log_sees(&log, "session_opened", "\"server\":\"fixtures\"");
    const char *id =
        wire_make_task(c, "1", "story", "\"n\":3,\"delayMs\":700", CAPS_TASKS);
    wire_get_until(c, id, "completed", NULL);
    snprintf(prefix, sizeof prefix, "\"task\":\"%.12s\"", id);
    event_log_sees(&log, "call_started", "\"item\":\"story\"");
    event_log_sees(&log, "task_created", prefix);
    event_log_sees(&log, "segments_sent", prefix);
    event_log_sees(&log, "entries_stored", prefix);
    event_log_sees(&log, "commit_done", "\"count\":");
    event_log_sees(&log, "call_ended", prefix);
    event_log_sees(&log, "task_ended", "\"status\":\"ok\"");
    event_log_sees(&log, "message", "is created");
    /* three segments in 2.1 s are fewer batches */
    assert_in_range(event_log_count(&log, "segments_sent", NULL), 1, 2);
    /* the whole id gives access to the task */
    event_log_has_nowhere(&log, id);
    wire_cut(c);
    world_advance(w, 10);
    if (w->place == WORLD_PAIR)
        event_log_sees(&log, "session_closed", "\"server\":\"fixtures\"");
    event_log_end(&log);
}

#define DAY (24 * 60 * 60)

/* Returns the time of the first event of this name, in seconds of the day. */
static int second_of(const event_log *log, const char *name)
{
    int hours = 0, minutes = 0, seconds = 0;
    char member[80];
    snprintf(member, sizeof member, "\"event\":\"%s\"", name);
    const char *line = log->text ? strstr(log->text, member) : NULL;
    assert_non_null(line);
    while (line > log->text && line[-1] != '\n')
        line--;
    assert_int_equal(
        sscanf(line, "{\"time\":\"%*d-%*d-%*dT%d:%d:%d", &hours, &minutes, &seconds), 3);
    return (hours * 60 + minutes) * 60 + seconds;
}

/* The first segment is sent at once, and the second one 20 s later. */
static void a_batch_has_the_time_of_its_last_part(world *w)
{
    event_log log;
    event_log_begin(&log, w->runtime, 0);
    wire *c = world_connect(w, "Ada");
    const char *id =
        wire_make_task(c, "1", "story", "\"n\":2,\"delayMs\":20000", CAPS_TASKS);
    world_advance(w, 21000);
    wire_get_until(c, id, "completed", NULL);
    /* seconds until the day has passed; so a new day changes nothing */
    int left = DAY - second_of(&log, "call_started");
    assert_in_range((second_of(&log, "segments_sent") + left) % DAY, 0, 5);
    assert_in_range((second_of(&log, "entries_stored") + left) % DAY, 0, 5);
    event_log_end(&log);
}

static void many_commits_of_a_call_are_few_events(world *w)
{
    event_log log;
    event_log_begin(&log, w->runtime, 0);
    wire *c = world_connect(w, "Ada");
    const char *id =
        wire_make_task(c, "1", "story", "\"n\":40,\"delayMs\":50", CAPS_TASKS);
    for (int i = 0; i < 50; i++)
        world_advance(w, 50);
    wire_get_until(c, id, "completed", NULL);
    assert_true(event_log_count(&log, "commit_done", NULL) > 20);
    assert_in_range(event_log_count(&log, "entries_stored", NULL), 1, 6);
    event_log_end(&log);
}

static void release(world *w, const char *task_id)
{
    const sgi_op *op = sgi_cluster_known_task(&w->server->cluster, sgi_str_of(task_id));
    segue_store_write write = {.kind = SEGUE_STORE_RELEASE};
    memcpy(write.id, op->id, sizeof write.id);
    assert_int_equal(sgi_store_commit(w->store, &write, 1), SEGUE_OK);
}

/* Sends a call with the id 1 and a trace. */
static void call_in_trace(wire *c, const char *params)
{
    char text[2048];
    char *line = wire_line("1", "tools/call", params, CAPS_TASKS);
    char *meta = strstr(line, "\"_meta\":{");
    assert_non_null(meta);
    meta += strlen("\"_meta\":{");
    snprintf(text, sizeof text, "%.*s\"traceparent\":\"" TRACE "\",%s",
             (int)(meta - line), line, meta);
    free(line);
    wire_send(c, text);
}

/* A server that was away loses a task, and takes it over again. */
static void a_task_that_is_taken_over_stays_in_its_trace(world *w)
{
    event_log log;
    wire *c = world_connect(w, "Ada");
    event_log_begin(&log, w->runtime, 0);
    char id[64] = "";
    call_in_trace(c, "\"name\":\"story\",\"arguments\":{\"n\":5,\"delayMs\":300}");
    sscanf(json_at(wire_response(c, "1"), "result.taskId"), "\"%63[^\"]", id);
    world_advance(w, 700);
    fault_store_refuse(faults, SEGUE_E_FENCED, 1);
    world_advance(w, 300);
    event_log_sees(&log, "call_fenced", "\"item\":\"story\"");
    release(w, id);
    world_advance(w, 3000);
    wire_get_until(c, id, "completed", NULL);
    event_log_sees(&log, "call_taken_over", TRACE);
    event_log_sees(&log, "call_restarted", TRACE);
    event_log_sees(&log, "call_ended", "\"status\":\"lost\"");
    event_log_sees(&log, "task_ended", TRACE);
    event_log_end(&log);
}

static void a_commit_that_fails_is_reported(world *w)
{
    event_log log;
    wire *c = world_connect(w, "Ada");
    event_log_begin(&log, w->runtime, 0);
    fault_store_refuse(faults, SEGUE_E_TIMEOUT, 1);
    wire_ask(c, "1", "tools/call", "\"name\":\"multi_input\"", CAPS_ALL);
    world_advance(w, 1000);
    assert_true(*json_at(wire_response(c, "1"), "result.taskId"));
    event_log_sees(&log, "commit_failed", "\"status\":\"SEGUE_E_TIMEOUT\"");
    event_log_sees(&log, "commit_retried", "\"count\":1");
    event_log_end(&log);
}

static void a_question_and_its_answer_are_reported(world *w)
{
    event_log log;
    wire *c = world_connect(w, "Ada");
    event_log_begin(&log, w->runtime, 0);
    const char *id = wire_make_task(c, "1", "confirm_delete", NULL, CAPS_ALL);
    wire_get_until(c, id, "input_required", NULL);
    event_log_sees(&log, "question_asked", "\"question\":\"elicitation/create\"");
    wire_task(c, "2", "tasks/update", id, "\"inputResponses\":{\"input-1\":" ACCEPT "}");
    wire_get_until(c, id, "completed", NULL);
    event_log_sees(&log, "question_answered", "\"status\":\"ok\"");
    event_log_has_nowhere(&log, "confirm\\\":true");
    event_log_end(&log);
}

static void a_client_that_leaves_and_comes_back_is_reported(world *w)
{
    event_log log;
    char params[128];
    wire *c = world_connect(w, "Ada");
    event_log_begin(&log, w->runtime, 0);
    wire_ask(c, "1", "tools/call", "\"name\":\"hang\"", NULL);
    world_advance(w, 10);
    wire_cut(c);
    world_advance(w, 10);
    event_log_sees(&log, "client_left", "\"item\":\"hang\"");
    event_log_sees(&log, "call_ended", "\"status\":\"cancelled\"");
    c = world_connect(w, "Ada");
    const char *id = wire_make_task(c, "2", "story", "\"n\":4,\"delayMs\":300", NULL);
    world_advance(w, 1000);
    snprintf(params, sizeof params, "\"taskId\":\"%s\",\"after\":1", id);
    wire_ask(c, "3", "tasks/stream", params, CAPS_TASKS);
    world_advance(w, 1000);
    event_log_sees(&log, "client_resumed", "\"item\":\"story\"");
    event_log_end(&log);
}

/* ---- arguments ---- */

static void no_event_has_arguments_unless_they_are_wanted(world *w)
{
    event_log log;
    wire *c = world_connect(w, "Ada");
    const char *params = "\"name\":\"greet\",\"arguments\":{\"name\":\"s3cret\"}";
    event_log_begin(&log, w->runtime, 0);
    wire_do(c, "1", "tools/call", params, NULL);
    event_log_sees(&log, "call_ended", "\"item\":\"greet\"");
    event_log_has_nowhere(&log, "s3cret");
    event_log_end(&log);
    event_log_begin(&log, w->runtime, 12);
    wire_do(c, "2", "tools/call", params, NULL);
    event_log_sees(&log, "call_started", "\"arguments\":\"{\\\"name\\\":\\\"s3c\"}");
    event_log_end(&log);
}

/* ---- limits ---- */

static void with_one_task(segue_server_options *options)
{
    options->max_tasks = 1;
}

static void with_a_small_server(world *w)
{
    w->tune = with_one_task;
}

static void a_limit_is_reported(world *w)
{
    event_log log;
    wire *c = world_connect(w, "Ada");
    wire_make_task(c, "1", "multi_input", NULL, CAPS_ALL);
    event_log_begin(&log, w->runtime, 0);
    wire_do(c, "2", "tools/call", "\"name\":\"multi_input\"", CAPS_ALL);
    event_log_sees(&log, "limit_reached", "\"limit\":\"max_tasks\"");
    event_log_end(&log);
}

/* ---- the client ---- */

static void requests_are_reported(void **state)
{
    segue_session_options options = kit_legacy_options();
    event_log log;
    kit k = {.can_reopen = 1};
    (void)state;
#define SERVER "{\"tools\":{},\"experimental\":{\"dev.segue/idempotency\":{}}}"
    kit_begin_2025(&k, &options, SERVER);
    event_log_begin(&log, k.runtime, 0);
    record *r = kit_call(&k, "t");
    kit_expect(&k, "tools/call");
    event_log_sees(&log, "request_sent", "\"method\":\"tools/call\",\"item\":\"t\"");
    kit_cut(&k);
    kit_handshake_2025(&k, SERVER);
    kit_result(&k, kit_expect(&k, "tools/call"), "\"content\":[]");
    assert_int_equal(r->status, SEGUE_OK);
    event_log_sees(&log, "request_resumed", "\"item\":\"t\",\"era\":\"legacy\"");
    event_log_sees(&log, "request_ended", "\"status\":\"ok\"");
    event_log_end(&log);
    kit_end(&k);
}

static const scenario scenarios[] = {
    {"events of a task", a_task_is_followed_from_its_start_to_its_end,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"the time of a batch", a_batch_has_the_time_of_its_last_part, ONLY_HERE | ONE_DRIVE,
     NULL},
    {"many commits", many_commits_of_a_call_are_few_events, ONLY_HERE | ONE_DRIVE, NULL},
    {"events of a task that is taken over", a_task_that_is_taken_over_stays_in_its_trace,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"events of a commit that fails", a_commit_that_fails_is_reported,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"events of a question", a_question_and_its_answer_are_reported,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"events of a client that leaves", a_client_that_leaves_and_comes_back_is_reported,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"events have no arguments", no_event_has_arguments_unless_they_are_wanted,
     ONLY_HERE | ONE_DRIVE, NULL},
};

static const scenario small[] = {
    {"events of a limit", a_limit_is_reported, ONLY_HERE | ONE_DRIVE, NULL},
};

int main(void)
{
    const struct CMUnitTest client[] = {cmocka_unit_test(requests_are_reported)};
    int failed = scenarios_run_prepared(scenarios, sizeof scenarios / sizeof *scenarios,
                                        with_faults);
    failed +=
        scenarios_run_prepared(small, sizeof small / sizeof *small, with_a_small_server);
    return failed + cmocka_run_group_tests(client, NULL, NULL);
}
