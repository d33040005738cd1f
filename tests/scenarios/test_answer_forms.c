/* SEP-1905: which form the answer to a call takes (immediate result, task or stream). It
 * depends on what the client listed and declared, and on the server's switches. */
#include "support/legacy_wire.h"
#include "support/world_inside.h"

#include <segue/segue_ext.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define IMMEDIATE "{\"responseModes\":[\"immediate\"]}"
#define STREAMING "{\"responseModes\":[\"streaming\"]}"
#define BOTH "{\"responseModes\":[\"immediate\",\"streaming\"]}"
#define KEYED(key)                                                                       \
    IMMEDIATE ",\"_meta\":{\"dev.segue/idempotencyKey\":\"key-of-the-call-" key "\"}"
#define FALLBACK "{\"io.modelcontextprotocol/fallback-mode\":\"task\"}"

static int mentions_streaming(const char *text)
{
    return strstr(text, "partial-content") || strstr(text, "isComplete") ||
           strstr(text, "seqNr") || strstr(text, "fallback-mode");
}

static void assert_task(const char *r, const char *meta)
{
    assert_at(r, "result.task.status", "\"working\"");
    assert_at(r, "result._meta", meta);
    assert_at(r, "result.content", "");
    assert_at(r, "result.partial-content", "");
}

/* Reads the id of the task that an answer makes. */
static void read_task_id(const char *r, char id[64])
{
    const char *quoted = json_at(r, "result.task.taskId");
    assert_true(strlen(quoted) > 2);
    snprintf(id, 64, "%.*s", (int)strlen(quoted) - 2, quoted + 1);
}

/* Checks that one response has all of it and that the task has ended. */
static void assert_whole_story(wire *c, const char *r, int n)
{
    char path[64], number[16];
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "result.partial-content.%d.seqNr", i);
        snprintf(number, sizeof number, "%d", i + 1);
        assert_at(r, path, number);
    }
    snprintf(path, sizeof path, "result.partial-content.%d", n);
    assert_at(r, path, "");
    assert_at(r, "result.isComplete", "true");
    assert_at(r, "result.isError", "false");
    char id[64];
    read_task_id(r, id);
    assert_at(legacy_task(c, "\"get\"", "tasks/get", id, NULL), "result.status",
              "\"completed\"");
    const char *merged = legacy_task(c, "\"all\"", "tasks/result", id, NULL);
    snprintf(path, sizeof path, "result.content.%d", n - 1);
    assert_true(*json_at(merged, path));
    assert_false(mentions_streaming(merged));
}

static void immediate_result(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    const char *r = legacy_call(c, "1", "greet", "\"name\":\"Ada\"", IMMEDIATE);
    assert_at(r, "result",
              "{\"content\":[{\"type\":\"text\",\"text\":\"Hello, Ada!\"}]}");
    r = legacy_call(c, "2", "big", "\"bytes\":3", BOTH); /* a tool that may be a task */
    assert_at(r, "result", "{\"content\":[{\"type\":\"text\",\"text\":\"xxx\"}]}");
    r = legacy_call(c, "3", "fail_after", "\"n\":0", IMMEDIATE);
    assert_at(r, "result.isError", "true");
    assert_false(json_mentions(r, "isComplete"));
    assert_false(json_mentions(r, "io.modelcontextprotocol/related-task"));
}

static void ready_at_once_in_one_response(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    assert_whole_story(c, legacy_call(c, "1", "story", "\"n\":3", STREAMING), 3);
    assert_whole_story(c, legacy_call(c, "2", "big", "\"bytes\":3", STREAMING), 1);
}

static void not_ready(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    const char *slow = "\"n\":2,\"delayMs\":50";
    assert_task(legacy_call(c, "1", "story", slow, IMMEDIATE), FALLBACK);
    assert_task(legacy_call(c, "2", "slow_compute", "\"ms\":50", BOTH), FALLBACK);
    assert_task(legacy_call(c, "3", "slow_compute", "\"ms\":50",
                            "{\"responseModes\":[\"immediate\",\"task\"]}"),
                "");
    const char *r = legacy_call(c, "4", "story", slow, BOTH);
    assert_at(r, "result.partial-content.0.seqNr", "1");
    assert_at(r, "result.isComplete", "false");
    world_advance(w, 200);
    do
        r = wire_response(c, "4");
    while (strcmp(json_at(r, "result.isComplete"), "true") != 0);
}

/* Output that does not come in pieces is sent when it is complete. */
static void all_at_the_end(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    assert_task(legacy_call(c, "1", "slow_compute", "\"ms\":50", STREAMING), "");
    world_advance(w, 50);
    const char *r = wire_response(c, "1");
    assert_at(r, "result.partial-content",
              "[{\"seqNr\":1,\"type\":\"text\",\"text\":\"Computed: done\"}]");
    assert_at(r, "result.isComplete", "true");
}

static void lists(world *w)
{
    static const char *const bad[] = {"{\"responseModes\":\"streaming\"}",
                                      "{\"responseModes\":[1]}",
                                      "{\"responseModes\":{}}",
                                      "{\"responseModes\":null}",
                                      "{\"ttl\":-1}",
                                      "{\"ttl\":\"5\"}",
                                      "7"};
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_code(legacy_call(c, "1", "story", NULL, bad[i]), -32602);
    if (w->place != WORLD_STDIO) /* nothing ran, so there is no task */
        assert_int_equal(world_runs(w, "story"), 0);
    assert_whole_story(
        c,
        legacy_call(c, "2", "story", "\"n\":2",
                    "{\"responseModes\":[\"foo\",\"streaming\",\"streaming\"]}"),
        2);
    assert_task(legacy_call(c, "3", "story", NULL, "{\"responseModes\":[]}"), "");
    assert_task(legacy_call(c, "4", "story", NULL, "{\"responseModes\":[\"foo\"]}"),
                FALLBACK);
}

static void undeclared(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    assert_task(legacy_call(c, "1", "story", NULL, STREAMING), FALLBACK);
    wire *d =
        legacy_connect(w, NULL, "{\"tasks\":{\"responses\":{\"modes\":[\"task\"]}}}");
    assert_task(legacy_call(d, "1", "story", NULL, STREAMING), FALLBACK);
}

static void trusting(segue_server_options *options)
{
    options->draft_ways = SEGUE_WAY_UNDECLARED_MODES;
}

static void undeclared_is_trusted(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    assert_whole_story(c, legacy_call(c, "1", "story", "\"n\":2", STREAMING), 2);
    wire *d =
        legacy_connect(w, NULL, "{\"tasks\":{\"responses\":{\"modes\":[\"task\"]}}}");
    assert_task(legacy_call(d, "1", "story", NULL, STREAMING), FALLBACK);
}

static void without_streaming(segue_server_options *options)
{
    options->dialects_off = SEGUE_DIALECT_STREAMING;
}

static void immediate_alone(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r = legacy_hello(c, "2025-11-25", MODES_ALL);
    assert_at(r, "result.capabilities.tasks.responses.modes", "[\"task\",\"immediate\"]");
    assert_task(legacy_call(c, "1", "story", NULL, STREAMING), FALLBACK);
    r = legacy_call(c, "2", "big", "\"bytes\":3", BOTH);
    assert_at(r, "result.content.0.text", "\"xxx\"");
}

static void without_immediate(segue_server_options *options)
{
    options->dialects_off = SEGUE_DIALECT_IMMEDIATE;
}

static void streaming_alone(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r = legacy_hello(c, "2025-11-25", MODES_ALL);
    assert_at(r, "result.capabilities.tasks.responses.modes", "[\"task\",\"streaming\"]");
    assert_task(legacy_call(c, "1", "big", "\"bytes\":3", IMMEDIATE), FALLBACK);
    assert_whole_story(c, legacy_call(c, "2", "story", "\"n\":2", BOTH), 2);
}

static void little_plain(segue_server_options *options)
{
    options->max_result_bytes = 2048;
}

/* More than a plain call may keep, all of it in the handler's first turn. */
static void outgrows_a_plain_call(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    const char *task =
        legacy_make_task(c, "1", "story", "\"n\":100,\"chunk\":100", IMMEDIATE);
    legacy_get_until(c, task, "completed");
    const char *r = legacy_task(c, "2", "tasks/result", task, NULL);
    assert_true(*json_at(r, "result.content.99"));
    assert_at(r, "result.content.100", "");
    assert_at(legacy_call(c, "3", "big", "\"bytes\":3", IMMEDIATE),
              "result.content.0.text", "\"xxx\"");
}

/* The same, in one piece: before the end, or with it. */
static void one_piece_outgrows_a_plain_call(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    const char *task =
        legacy_make_task(c, "1", "story", "\"n\":1,\"chunk\":3000", IMMEDIATE);
    legacy_get_until(c, task, "completed");
    const char *r = legacy_task(c, "2", "tasks/result", task, NULL);
    assert_true(strlen(json_at(r, "result.content.0.text")) >= 3000);
    task = legacy_make_task(c, "3", "big", "\"bytes\":3000", IMMEDIATE);
    legacy_get_until(c, task, "completed");
    r = legacy_task(c, "4", "tasks/result", task, NULL);
    assert_int_equal(strlen(json_at(r, "result.content.0.text")), 3000 + 2);
    r = legacy_call(c, "5", "big", "\"bytes\":1900", IMMEDIATE);
    assert_int_equal(strlen(json_at(r, "result.content.0.text")), 1900 + 2);
}

static void tracking(segue_server_options *options)
{
    options->draft_ways = SEGUE_WAY_TRACKING;
}

static void assert_tracked(wire *c, const char *r, const char *content)
{
    static const char mark[] = "\"io.modelcontextprotocol/related-task\":{\"taskId\":\"";
    char id[64] = "";
    const char *related = strstr(r, mark);
    assert_non_null(related);
    sscanf(related + sizeof mark - 1, "%63[^\"]", id);
    assert_at(r, "result.content", content);
    assert_false(json_mentions(r, "task"));
    assert_false(json_mentions(r, "isComplete"));
    assert_at(legacy_task(c, "\"g\"", "tasks/get", id, NULL), "result.status",
              "\"completed\"");
    const char *again = legacy_task(c, json_at(r, "id"), "tasks/result", id, NULL);
    assert_string_equal(again, r);
}

static void tracked_results(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    assert_tracked(c, legacy_call(c, "1", "big", "\"bytes\":3", IMMEDIATE),
                   "[{\"type\":\"text\",\"text\":\"xxx\"}]");
    assert_tracked(c, legacy_call(c, "2", "fail_after", "\"n\":0", IMMEDIATE),
                   "[{\"type\":\"text\",\"text\":\"The job failed\"}]");
    assert_task(legacy_call(c, "3", "slow_compute", "\"ms\":50", IMMEDIATE), FALLBACK);
    const char *r = legacy_call(c, "4", "story", "\"n\":2,\"delayMs\":20", BOTH);
    assert_true(*json_at(r, "result.task.taskId")); /* with its first segment or before */
    assert_false(json_mentions(r, "fallback-mode"));
}

/* A repeated call with the key must find this call, so the call has a task from the
 * start. */
static void keyed_results(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    assert_tracked(c, legacy_call(c, "1", "big", "\"bytes\":3", KEYED("one")),
                   "[{\"type\":\"text\",\"text\":\"xxx\"}]");
    assert_tracked(c, legacy_call(c, "2", "fail_after", "\"n\":0", KEYED("two")),
                   "[{\"type\":\"text\",\"text\":\"The job failed\"}]");
    assert_task(legacy_call(c, "3", "slow_compute", "\"ms\":50", KEYED("three")),
                FALLBACK);
    const char *r = legacy_call(c, "4", "big", "\"bytes\":3", KEYED("one"));
    assert_at(r, "result.content.0.text", "\"xxx\""); /* the key finds the same call */
    assert_true(strstr(r, "related-task") != NULL);
}

/* A tool may delay the promotion of its plain calls. Until then a call can still be
 * immediate. */
static void promoted_later(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    legacy_ask_task(c, "1", "promote", "\"ms\":300", IMMEDIATE);
    world_advance(w, 300);
    assert_at(wire_response(c, "1"), "result.content.0.text", "\"Computed: done\"");
    legacy_ask_task(c, "2", "promote", "\"ms\":900", IMMEDIATE);
    world_advance(w, 499);
    wire_quiet(c);
    world_advance(w, 1);
    assert_task(wire_response(c, "2"), FALLBACK);
}

/* A tool in pieces that has sent one, and may stay plain for a second. */
static void begin_slowly(void *user, segue_call *call)
{
    *(segue_call **)user = call;
    assert_int_equal(segue_call_send_text(call, "one", 3, NULL), SEGUE_OK);
}

static void add_tool(world *w, const char *json, segue_call_fn on_call, segue_call **call,
                     int64_t promote_after_ms)
{
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.user = call;
    options.on_call = on_call;
    options.flags = SEGUE_TOOL_INCREMENTAL;
    options.task = SEGUE_TASK_MAY;
    options.promote_after_ms = promote_after_ms;
    assert_int_equal(
        segue_server_add(w->server, SEGUE_ITEM_TOOL, json, strlen(json), &options, NULL),
        SEGUE_OK);
}

#define TOOL(name) "{\"name\":\"" name "\",\"inputSchema\":{\"type\":\"object\"}}"

static void finish(segue_call *call, const char *text)
{
    if (text)
        assert_int_equal(segue_call_send_text(call, text, strlen(text), NULL), SEGUE_OK);
    assert_int_equal(segue_call_complete(call, NULL, NULL), SEGUE_OK);
    segue_call_free(call);
}

/* No time passes here: a result that is not ready streams at once. */
static void streams_before_it_is_promoted(world *w)
{
    segue_call *call = NULL;
    add_tool(w, TOOL("unhurried"), begin_slowly, &call, 1000);
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    const char *r = legacy_call(c, "1", "unhurried", NULL, BOTH);
    assert_true(*json_at(r, "result.task.taskId"));
    assert_at(r, "result.partial-content",
              "[{\"seqNr\":1,\"type\":\"text\",\"text\":\"one\"}]");
    assert_at(r, "result.isComplete", "false");
    finish(call, NULL);
    assert_at(wire_response(c, "1"), "result.isComplete", "true");
}

/* ---- a first turn that goes on after on_call: handlers of a binding ---- */

static void hold_turn(void *user, segue_call *call)
{
    *(segue_call **)user = call;
    assert_int_equal(segue_call_hold_turn(call), SEGUE_OK);
}

/* Makes a call and waits until the handler has begun. */
static segue_call *begin_held(wire *c, segue_call **call, const char *modes)
{
    *call = NULL;
    legacy_ask_task(c, "1", "held", NULL, modes);
    world_run(c->w);
    assert_non_null(*call);
    return *call;
}

static void a_held_turn_is_immediate(world *w)
{
    segue_call *call;
    add_tool(w, TOOL("held"), hold_turn, &call, 0);
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    finish(begin_held(c, &call, BOTH), "done");
    const char *r = wire_response(c, "1");
    assert_at(r, "result.content", "[{\"type\":\"text\",\"text\":\"done\"}]");
    assert_false(json_mentions(r, "task"));
    assert_false(json_mentions(r, "_meta"));
    finish(begin_held(c, &call, STREAMING), "done");
    r = wire_response(c, "1");
    assert_at(r, "result.partial-content.0.text", "\"done\"");
    assert_at(r, "result.isComplete", "true");
    wire_notification(c, "notifications/tasks/status");
    wire_quiet(c); /* its end is sent once */
}

/* An error is no result: the task fails, as it does when the first turn is over. */
static void a_failure_is_not_immediate(world *w)
{
    segue_call *call;
    add_tool(w, TOOL("held"), hold_turn, &call, 0);
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    segue_call_free(begin_held(c, &call, IMMEDIATE));
    const char *r = wire_response(c, "1");
    assert_task(r, FALLBACK);
    char id[64];
    read_task_id(r, id);
    legacy_get_until(c, id, "failed");
    assert_code(legacy_task(c, "2", "tasks/result", id, NULL), -32603);
    segue_call_free(begin_held(c, &call, BOTH)); /* a stream without segments */
    r = wire_response(c, "1");
    assert_at(r, "result.isComplete", "true");
    assert_at(r, "result.isError", "true");
    assert_true(strstr(r, "\"dev.segue/error\":{\"code\":-32603") != NULL);
    assert_true(strstr(r, "related-task") != NULL);
}

static void a_held_turn_is_tracked(world *w)
{
    segue_call *call;
    add_tool(w, TOOL("held"), hold_turn, &call, 0);
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    finish(begin_held(c, &call, IMMEDIATE), "done");
    assert_tracked(c, wire_response(c, "1"), "[{\"type\":\"text\",\"text\":\"done\"}]");
    segue_call_end_turn(begin_held(c, &call, IMMEDIATE));
    assert_task(wire_response(c, "1"), FALLBACK);
    finish(call, NULL);
}

static void ignore_answer(void *user, segue_call *call, segue_status status,
                          const char *json, size_t len)
{
    (void)user, (void)call, (void)status, (void)json, (void)len;
}

/* A held turn ends by its handler, by a question, or by the time limit of a turn. */
static void a_held_turn_ends(world *w)
{
    segue_call *call;
    add_tool(w, TOOL("held"), hold_turn, &call, 0);
    wire *c = legacy_connect(w, NULL,
                             "{\"roots\":{},\"tasks\":{\"responses\":{\"modes\":"
                             "[\"task\",\"immediate\",\"streaming\"]}}}");
    begin_held(c, &call, IMMEDIATE);
    assert_int_equal(segue_call_end_turn(call), SEGUE_OK);
    assert_task(wire_response(c, "1"), FALLBACK);
    assert_int_equal(segue_call_end_turn(call), SEGUE_OK);
    assert_int_equal(segue_call_hold_turn(call), SEGUE_E_STATE);
    finish(call, NULL);
    begin_held(c, &call, IMMEDIATE);
    assert_int_equal(segue_call_require_input(call, NULL, "roots/list", NULL, 0,
                                              ignore_answer, NULL, NULL, NULL),
                     SEGUE_OK);
    assert_task(wire_response(c, "1"), FALLBACK);
    finish(call, NULL);
    begin_held(c, &call, BOTH);
    assert_int_equal(segue_call_send_text(call, "one", 3, NULL), SEGUE_OK);
    world_advance(w, 6);
    assert_null(strstr(wire_history(c), "\"one\""));
    world_advance(w, 1);
    assert_at(wire_response(c, "1"), "result.partial-content.0.text", "\"one\"");
    finish(call, NULL);
}

static void short_turns(segue_server_options *options)
{
    options->first_turn_ms = 7;
}

static void begin_unheld(void *user, segue_call *call)
{
    (void)user;
    assert_int_equal(segue_call_hold_turn(call), SEGUE_E_STATE);
    finish(call, "done");
}

static void only_response_modes_wait_for_a_turn(world *w)
{
    add_tool(w, TOOL("unheld"), begin_unheld, NULL, 0);
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    const char *r = wire_do_plain(c, "1", "tools/call", "\"name\":\"unheld\"");
    assert_at(r, "result.content.0.text", "\"done\"");
    assert_task(legacy_call(c, "2", "unheld", NULL, "{}"), "");
    wire_ask(c, "3", "tools/call", "\"name\":\"unheld\"", CAPS_TASKS);
    assert_true(*json_at(wire_response(c, "3"), "result"));
}

static void one_response(segue_server_options *options)
{
    options->draft_ways = SEGUE_WAY_ONE_RESPONSE;
}

static void segments_are_fetched_only(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    const char *id = legacy_make_task(c, "1", "story", "\"n\":4", STREAMING);
    legacy_get_until(c, id, "completed");
    const char *r = legacy_task(c, "2", "tasks/result", id, "\"lastSeqNr\":1");
    assert_at(r, "result.partial-content.0.seqNr", "2");
    assert_at(r, "result.partial-content.2.seqNr", "4");
    assert_at(r, "result.isComplete", "true");
    assert_null(strstr(strstr(wire_history(c), "\"id\":1,") + 1, "\"id\":1,"));
}

/* An old client must get the same bytes as from a server without the addition. */
static char *old_client(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    const char *id = legacy_make_task(c, "1", "story", "\"n\":3", "{\"ttl\":60000}");
    legacy_get_until(c, id, "completed");
    legacy_task(c, "2", "tasks/result", id, NULL);
    legacy_task(c, "3", "tasks/result", "nobody", NULL);
    assert_false(mentions_streaming(wire_history(c)));
    const char *at = strstr(wire_history(c), "\"id\":1,");
    assert_non_null(at);
    return strdup(at);
}

/* The output of each server on each stage. Ids and stamps are equal, because randomness
 * and time start equal. */
static char *said[3][2];

static void full_server(world *w)
{
    said[w->place][w->store_kind] = old_client(w);
}

static void without_both(segue_server_options *options)
{
    options->dialects_off = SEGUE_DIALECT_STREAMING | SEGUE_DIALECT_IMMEDIATE;
}

static void plain_server(world *w)
{
    char *now = old_client(w);
    if (!said[w->place][w->store_kind])
        fail_msg("run it together with the full server");
    assert_string_equal(now, said[w->place][w->store_kind]);
    free(said[w->place][w->store_kind]);
    free(now);
}

static const scenario scenarios[] = {
    {"AS-1 a result that is ready is the answer", immediate_result, 0, NULL},
    {"AS-3 everything is ready: one response has all of it",
     ready_at_once_in_one_response, 0, NULL},
    {"AS-8 not ready: a stream if possible, otherwise a task", not_ready, 0, NULL},
    {"AS-8 output that is no stream comes when it is complete", all_at_the_end, 0, NULL},
    {"AS-17 lists of modes, good and bad", lists, 0, NULL},
    {"AS-8 R-1905-8 modes that were not declared do not count", undeclared, ONE_DRIVE,
     NULL},
    {"AS-8 R-1905-8 modes that were not declared count if the server trusts the list",
     undeclared_is_trusted, ONLY_HERE | ONE_DRIVE, trusting},
    {"AS-8 R-1905-2 R-1905-63 immediate without streaming", immediate_alone,
     ONLY_HERE | ONE_DRIVE, without_streaming},
    {"AS-8 R-1905-2 R-1905-63 streaming without immediate", streaming_alone,
     ONLY_HERE | ONE_DRIVE, without_immediate},
    {"AS-8 a result too large for a plain call becomes a task", outgrows_a_plain_call,
     ONLY_HERE | ONE_DRIVE, little_plain},
    {"AS-8 one piece too large for a plain call makes it a task",
     one_piece_outgrows_a_plain_call, ONLY_HERE | ONE_DRIVE, little_plain},
    {"AS-31 a tracked result names a task that has ended", tracked_results, ONLY_HERE,
     tracking},
    {"AS-1 R-1905-13 a call with a key is answered at once, and has a task",
     keyed_results, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-8 a tool's delay of promotion is kept", promoted_later, ONLY_HERE | ONE_DRIVE,
     NULL},
    {"AS-8 a tool in pieces streams before its promotion", streams_before_it_is_promoted,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-1 a turn that goes on after on_call is a first turn", a_held_turn_is_immediate,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-11 R-1905-11 a call that fails in its first turn is a task",
     a_failure_is_not_immediate, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-31 a turn that goes on after on_call is tracked", a_held_turn_is_tracked,
     ONLY_HERE | ONE_DRIVE, tracking},
    {"AS-8 a turn that goes on after on_call ends", a_held_turn_ends,
     ONLY_HERE | ONE_DRIVE, short_turns},
    {"AS-1 a turn is held only for response modes", only_response_modes_wait_for_a_turn,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-6 R-1905-66 one response only: segments are fetched", segments_are_fetched_only,
     ONLY_HERE | ONE_DRIVE, one_response},
    {"AS-14 an old client and a full server", full_server, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-14 an old client and a server with old tasks only get the same bytes",
     plain_server, ONLY_HERE | ONE_DRIVE, without_both},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
