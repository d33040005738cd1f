/* Several servers on one store, and one of them ends. Its operations go on at another
 * server, from their last segment, for all clients that follow them; or they have ended,
 * once. Also a server that was only away and comes back when its operations belong to
 * another one. test_taken_over_calls.c has the calls that clients repeat or resume. */
#include "support/take_over.h"
#include "support/fault_store.h"
#include "support/fixture_job.h"
#include "support/legacy_wire.h"
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

#define ANSWER(key) "\"inputResponses\":{\"" key "\":" ACCEPT "}"
#define HOPS 400

static const char *state_at(wire *c, const char *id)
{
    static int next;
    char ask[24];
    snprintf(ask, sizeof ask, "%d", 5000 + next++);
    return wire_task(c, ask, "tasks/get", id, NULL);
}

static const char *until_state(wire *c, const char *id, const char *status)
{
    const char *r = NULL;
    for (int i = 0; i < HOPS; i++) {
        r = state_at(c, id);
        if (!strcmp(json_at(r, "result.status"), status))
            return r;
        world_advance(c->w, 50);
    }
    fail_msg("never %s: %s", status, r);
    return NULL;
}

static void must_be_story(const char *r, int64_t lines)
{
    char path[48], text[256], quoted[300];
    for (int64_t n = 1; n <= lines; n++) {
        fixtures_story_line(n, 0, text, sizeof text);
        snprintf(path, sizeof path, "result.result.content.%d.text", (int)n - 1);
        snprintf(quoted, sizeof quoted, "\"%s\"", text);
        assert_at(r, path, quoted);
    }
    snprintf(path, sizeof path, "result.result.content.%d", (int)lines);
    assert_at(r, path, "");
}

/* ---- a server ends ---- */

/* A client streams it at B when A ends: the stream goes on, without a gap or a note. */
static void a_stream_goes_on(world *w)
{
    char params[128];
    take_over_begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&take_over_other, "Ada");
    const char *id = wire_make_task(a, "1", "story", "\"n\":6,\"delayMs\":300", NULL);
    snprintf(params, sizeof params, "\"taskId\":\"%s\"", id);
    wire_ask(b, "2", "tasks/stream", params, CAPS_TASKS);
    world_advance(w, 1000);
    world_stop(w);
    world_advance(&take_over_other, 3000);
    const char *r = until_state(b, id, "\"completed\"");
    must_be_story(r, 6);
    assert_true(*json_at(wire_response(b, "2"), "result"));
    assert_int_equal(take_over_count_of(wire_history(b), "\"seq\":0,"), 1);
    for (int n = 1; n <= 6; n++) {
        char text[256];
        fixtures_story_line(n, 0, text, sizeof text);
        /* Once as an event, and once in each whole result that was asked for. */
        assert_true(take_over_count_of(wire_history(b), text) >= 2);
    }
    assert_int_equal(world_runs(&take_over_other, "story"), 1);
    assert_int_equal(take_over_other.server->counts.taken_over, 1);
    assert_int_equal(take_over_other.server->cluster.followed, 0);
    take_over_end();
}

/* No client of B knew of it. */
static void what_nobody_saw_goes_on(world *w)
{
    take_over_begin(w);
    wire *a = world_connect(w, "Ada");
    const char *made = wire_make_task(a, "1", "story", "\"n\":4,\"delayMs\":300", NULL);
    char id[64];
    snprintf(id, sizeof id, "%s", made);
    world_advance(w, 700);
    world_stop(w);
    world_advance(&take_over_other, 3000);
    wire *b = world_connect(&take_over_other, "Ada");
    must_be_story(until_state(b, id, "\"completed\""), 4);
    take_over_end();
}

/* A server is closed and its handlers give up, while their process goes on. */
static void what_a_closed_server_gives_up_goes_on(world *w)
{
    char id[64], lost[64];
    take_over_begin(w);
    wire *a = world_connect(w, "Ada");
    const char *made = wire_make_task(a, "1", "story", "\"n\":4,\"delayMs\":300", NULL);
    snprintf(id, sizeof id, "%s", made);
    made = wire_make_task(a, "2", "slow_compute", "\"ms\":60000", NULL);
    snprintf(lost, sizeof lost, "%s", made);
    world_advance(w, 700);
    segue_server_close(w->server);
    for (job *j = w->fixtures->jobs; j; j = j->next)
        fixture_drop(j);
    world_advance(w, 100);
    world_advance(&take_over_other, 3000);
    wire *b = world_connect(&take_over_other, "Ada");
    must_be_story(until_state(b, id, "\"completed\""), 4);
    assert_at(state_at(b, lost), "result.error.message", "\"Server restarted\"");
    assert_at(state_at(b, lost), "result.error.data.reason", "\"server_restarted\"");
    assert_int_equal(w->server->calls.count, 0);
    take_over_end();
}

/* The tool of the task is no tool of the server that takes it over. */
static void a_task_of_an_unknown_tool_fails(world *w)
{
    take_over_begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&take_over_other, "Ada");
    const char *id = wire_make_task(a, "1", "hang", NULL, NULL);
    assert_int_equal(segue_server_remove(take_over_other.server, SEGUE_ITEM_TOOL, "hang"),
                     SEGUE_OK);
    world_stop(w);
    assert_at(until_state(b, id, "\"failed\""), "result.error.message",
              "\"Server restarted\"");
    take_over_end();
}

static void what_cannot_run_again_fails_once(world *w)
{
    take_over_begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&take_over_other, "Ada");
    const char *id = wire_make_task(a, "1", "hang", NULL, NULL);
    assert_at(state_at(b, id), "result.status", "\"working\"");
    world_stop(w);
    const char *r = until_state(b, id, "\"failed\"");
    assert_at(r, "result.error.message", "\"Server restarted\"");
    take_over_end();
}

/* The new run asks its question under the same key; a question that was answered at B is
 * answered. */
static void questions_stay_answerable(world *w)
{
    take_over_begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&take_over_other, "Ada");
    const char *id = wire_make_task(a, "1", "confirm_delete", NULL, CAPS_ALL);
    until_state(b, id, "\"input_required\"");
    world_stop(w);
    world_run(&take_over_other);
    until_state(b, id, "\"input_required\"");
    wire_task(b, "3", "tasks/update", id, ANSWER("input-1"));
    until_state(b, id, "\"completed\"");
    take_over_end();
}

/* ---- Z ---- */

/* A client waits for the result of a task when the handler gives up. The client is told
 * to ask again later, and the next server has the result. */
static void a_closed_server_lets_a_wait_for_the_result_go(world *w)
{
    char id[64];
    take_over_begin(w);
    wire *a = legacy_connect(w, "Ada", NULL);
    const char *made = legacy_make_task(a, "1", "story", "\"n\":5,\"delayMs\":300", NULL);
    snprintf(id, sizeof id, "%s", made);
    legacy_ask_about(a, "2", "tasks/result", id, NULL);
    world_advance(w, 650);
    take_over_let_all_go(w);
    const char *r = wire_response(a, "2");
    assert_at(r, "error.data.reason", "\"server_ending\"");
    assert_at(r, "error.data.retryAfterMs", "1000");
    assert_int_equal(w->server->calls.count, 0);
    wire *b = legacy_connect(&take_over_other, "Ada", NULL);
    world_advance(&take_over_other, 2500);
    r = legacy_task(b, "3", "tasks/result", id, NULL);
    assert_true(*json_at(r, "result.content.4"));
    take_over_end();
}

/* ---- a server comes back ---- */

static fault_store *faults;

static void with_faults(world *w)
{
    faults = fault_store_new(NULL, &w->custom);
}

static void release(world *w, const char *task_id)
{
    const sgi_op *op = sgi_cluster_known_task(&w->server->cluster, sgi_str_of(task_id));
    segue_store_write write = {.kind = SEGUE_STORE_RELEASE};
    memcpy(write.id, op->id, sizeof write.id);
    assert_int_equal(sgi_store_commit(w->store, &write, 1), SEGUE_OK);
}

/* A was away, and another server has claimed its operations. A's entries that were not
 * durable are gone, its handlers are stopped, and its clients see how the operations
 * go on elsewhere. In this test the other server is A itself, which takes them over
 * again. */
static void who_comes_back_is_fenced(world *w)
{
    char params[128];
    wire *a = world_connect(w, "Ada");
    const char *id = wire_make_task(a, "1", "story", "\"n\":5,\"delayMs\":300", NULL);
    snprintf(params, sizeof params, "\"taskId\":\"%s\"", id);
    wire_ask(a, "2", "tasks/stream", params, CAPS_TASKS);
    world_advance(w, 700);
    fault_store_refuse(faults, SEGUE_E_FENCED, 1);
    world_advance(w, 300);
    assert_int_equal(w->server->cluster.counts.fenced, 1);
    assert_int_equal(w->server->cluster.followed, 1);
    assert_at(state_at(a, id), "result.status", "\"working\"");
    world_advance(w, 3000); /* the handler of A does not go on */
    assert_at(state_at(a, id), "result.status", "\"working\"");
    release(w, id);
    world_advance(w, 3000);
    must_be_story(until_state(a, id, "\"completed\""), 5);
    assert_true(*json_at(wire_response(a, "2"), "result"));
    assert_int_equal(world_runs(w, "story"), 2);
    assert_int_equal(fault_store_changed(faults), 0);
    assert_int_equal(fault_store_finals(faults, 0), 1);
}

static segue_call *held;

static void hold_turn(void *user, segue_call *call)
{
    (void)user;
    held = call;
    bool is_first = segue_call_resumed(call, NULL, NULL, NULL) == SEGUE_E_NOT_FOUND;
    assert_int_equal(segue_call_hold_turn(call), is_first ? SEGUE_OK : SEGUE_E_STATE);
}

static void hold(void *user, segue_call *call)
{
    (void)user;
    held = call;
}

/* Adds a tool whose calls the test makes go on. */
static void add_held_tool(world *w, const char *name, segue_call_fn on_call)
{
    char tool[64];
    snprintf(tool, sizeof tool, "{\"name\":\"%s\"}", name);
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = on_call;
    options.flags = SEGUE_TOOL_INCREMENTAL | SEGUE_TOOL_RESTARTABLE;
    options.task = SEGUE_TASK_MAY;
    assert_int_equal(
        segue_server_add(w->server, SEGUE_ITEM_TOOL, tool, strlen(tool), &options, NULL),
        SEGUE_OK);
}

static void with_late_tools(segue_server_options *options)
{
    options->tool_wait_ms = 5000;
}

/* A runs a task of a tool that B does not have, and ends. */
static void leave_without_the_tool(world *w, wire **b, char id[64])
{
    take_over_begin(w);
    wire *a = world_connect(w, "Ada");
    *b = world_connect(&take_over_other, "Ada");
    snprintf(id, 64, "%s", wire_make_task(a, "1", "hang", NULL, NULL));
    assert_int_equal(segue_server_remove(take_over_other.server, SEGUE_ITEM_TOOL, "hang"),
                     SEGUE_OK);
    world_stop(w);
    world_advance(&take_over_other, 3000);
    assert_int_equal(take_over_other.server->counts.taken_over, 1);
    assert_at(state_at(*b, id), "result.status", "\"working\"");
}

/* B gets the tool of the task after it has taken the task over. */
static void a_task_waits_for_its_tool(world *w)
{
    char id[64];
    wire *b;
    leave_without_the_tool(w, &b, id);
    held = NULL;
    add_held_tool(&take_over_other, "hang", hold);
    world_run(&take_over_other);
    assert_non_null(held);
    assert_int_equal(segue_call_complete(held, NULL, NULL), SEGUE_OK);
    segue_call_free(held);
    until_state(b, id, "\"completed\"");
    take_over_end();
}

static void a_task_waits_only_for_a_while(world *w)
{
    char id[64];
    wire *b;
    leave_without_the_tool(w, &b, id);
    world_advance(&take_over_other, 3000);
    assert_at(until_state(b, id, "\"failed\""), "result.error.message",
              "\"Server restarted\"");
    take_over_end();
}

/* The first turn of a handler has ended, and the answer waits for what the handler sent.
 * Then another server takes the task over, which has the task without that. The answer is
 * the task, and not an error: the task goes on. */
static void a_first_turn_is_fenced(world *w)
{
    static const char *const modes[] = {"[\"immediate\"]",
                                        "[\"immediate\",\"streaming\"]"};
    wire *a = legacy_connect(w, "Ada", MODES_ALL);
    add_held_tool(w, "held", hold_turn);
    for (int i = 0; i < 2; i++) {
        char id[64], task[256];
        held = NULL;
        snprintf(task, sizeof task,
                 "{\"responseModes\":%s},\"_meta\":{\"dev.segue/idempotencyKey\":"
                 "\"key-of-the-call-%d\"}",
                 modes[i], i);
        legacy_ask_task(a, "1", "held", NULL, task);
        world_run(w);
        assert_non_null(held);
        fault_store_refuse(faults, SEGUE_E_FENCED, 1);
        assert_int_equal(segue_call_send_text(held, "lost", 4, NULL), SEGUE_OK);
        assert_int_equal(segue_call_end_turn(held), SEGUE_OK);
        world_run(w);
        assert_int_equal(w->server->cluster.counts.fenced, i + 1);
        segue_call_free(held);
        const char *quoted = json_at(wire_response(a, "1"), "result.task.taskId");
        assert_true(strlen(quoted) > 2);
        snprintf(id, sizeof id, "%.*s", (int)strlen(quoted) - 2, quoted + 1);
        held = NULL;
        release(w, id);
        world_advance(w, 3000);
        assert_non_null(held);
        assert_int_equal(segue_call_send_text(held, "told", 4, NULL), SEGUE_OK);
        assert_int_equal(segue_call_complete(held, NULL, NULL), SEGUE_OK);
        segue_call_free(held);
        world_run(w);
        assert_at(legacy_task(a, "2", "tasks/result", id, NULL), "result.content.0.text",
                  "\"told\"");
    }
}

/* A cancel that was not durable when its server was fenced did not count: its client is
 * told. */
static void what_was_not_durable_is_refused(world *w)
{
    wire *a = world_connect(w, "Ada");
    const char *id = wire_make_task(a, "1", "hang", NULL, NULL);
    fault_store_refuse(faults, SEGUE_E_FENCED, 1);
    const char *r = wire_task(a, "2", "tasks/cancel", id, NULL);
    assert_at(r, "error.data.reason", "\"elsewhere\"");
    assert_at(state_at(a, id), "result.status", "\"working\"");
    release(w, id);
    world_run(w);
    assert_at(until_state(a, id, "\"failed\""), "result.error.message",
              "\"Server restarted\"");
}

/* No server owns the task for a while: a cancel is acknowledged, because it is stored.
 * The next owner carries it out. */
static void a_letter_waits_for_who_takes_over(world *w)
{
    wire *a = world_connect(w, "Ada");
    const char *id = wire_make_task(a, "1", "story", "\"n\":50,\"delayMs\":300", NULL);
    world_advance(w, 700);
    fault_store_refuse(faults, SEGUE_E_FENCED, 1);
    world_advance(w, 300);
    char params[128];
    snprintf(params, sizeof params, "\"taskId\":\"%s\"", id);
    wire_ask(a, "7", "tasks/cancel", params, CAPS_TASKS);
    world_advance(w, 1500);
    assert_at(wire_response(a, "7"), "result.resultType", "\"complete\"");
    assert_at(state_at(a, id), "result.status", "\"working\"");
    release(w, id);
    world_run(w);
    until_state(a, id, "\"cancelled\"");
}

/* ---- a store with leases, made by an application ---- */

static const char *story_at(wire *c)
{
    static char id[64];
    const char *made = wire_make_task(c, "1", "story", "\"n\":5,\"delayMs\":300", NULL);
    snprintf(id, sizeof id, "%s", made);
    return id;
}

/* A commit that failed is repeated, whether it was applied or not. */
static void fails_while_it_runs(world *w, int applied)
{
    wire *a = world_connect(w, "Ada");
    const char *id = story_at(a);
    world_advance(w, 700);
    shared_store_fail(take_over_instance, 3, applied);
    must_be_story(until_state(a, id, "\"completed\""), 5);
    assert_int_equal(world_runs(w, "story"), 1);
    assert_int_equal(w->server->committer.counts.failures, 3);
    assert_int_equal(shared_place_finals(take_over_place), 1);
}

static void no_commit_is_lost(world *w)
{
    fails_while_it_runs(w, 0);
}

static void no_answer_of_a_commit_is_lost(world *w)
{
    fails_while_it_runs(w, 1);
}

/* A creation that failed is repeated, too: its client waits for its task. */
static void fails_at_first(world *w, int applied)
{
    wire *a = world_connect(w, "Ada");
    shared_store_fail(take_over_instance, 1, applied);
    wire_ask(a, "1", "tools/call",
             "\"name\":\"story\",\"arguments\":{\"n\":5,\"delayMs\":300}", CAPS_TASKS);
    world_advance(w, 500);
    char id[64];
    const char *quoted = json_at(wire_response(a, "1"), "result.taskId");
    assert_true(strlen(quoted) > 2);
    snprintf(id, sizeof id, "%.*s", (int)strlen(quoted) - 2, quoted + 1);
    must_be_story(until_state(a, id, "\"completed\""), 5);
    assert_int_equal(world_runs(w, "story"), 1);
    assert_int_equal(shared_place_finals(take_over_place), 1);
}

static void a_creation_comes_again(world *w)
{
    fails_at_first(w, 0);
}

static void a_creation_that_was_applied_comes_again(world *w)
{
    fails_at_first(w, 1);
}

/* The store has a task of A, but A does not know that: the answer of its commit was lost.
 * B shows the task to its client. A does not say that there is no such task. */
static void a_task_that_is_not_confirmed_is_not_denied(world *w)
{
    char id[64], params[96];
    take_over_begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&take_over_other, "Ada");
    shared_store_fail(take_over_instance, 1, 1);
    wire_ask(a, "1", "tools/call",
             "\"name\":\"story\",\"arguments\":{\"n\":1,\"delayMs\":300}", CAPS_TASKS);
    world_run(w);
    const sgi_op *op =
        sgi_op_of_task_node(sgi_index_any_node(&w->server->cluster.by_task));
    snprintf(id, sizeof id, "%s", op->task_id);
    assert_at(state_at(b, id), "result.status", "\"working\"");
    snprintf(params, sizeof params, "\"taskId\":\"%s\"", id);
    wire_ask(a, "2", "tasks/get", params, CAPS_TASKS);
    world_run(w);
    assert_code(wire_response(a, "2"), -32603);
    until_state(a, id, "\"completed\"");
    take_over_end();
}

/* A cannot reach the store, and nothing of it is being written. Another server may own
 * the task and have asked a question that A does not know. So A does not acknowledge an
 * answer to it. */
static void who_is_cut_off_acknowledges_no_unknown_answer(world *w)
{
    char params[256];
    take_over_begin(w);
    wire *a = world_connect(w, "Ada");
    const char *id = wire_make_task(a, "1", "confirm_delete", "", CAPS_ALL);
    snprintf(params, sizeof params, "\"taskId\":\"%s\"," ANSWER("input-7"), id);
    shared_store_away(take_over_instance, 1);
    world_advance(w, 2 * LEASE_MS);
    wire_ask(a, "2", "tasks/update", params, CAPS_ALL);
    world_run(w);
    assert_code(wire_response(a, "2"), -32603);
    shared_store_away(take_over_instance, 0);
    world_advance(w, LEASE_MS);
    wire_ask(a, "3", "tasks/update", params, CAPS_ALL);
    world_advance(w, LEASE_MS);
    assert_at(wire_response(a, "3"), "error", "");
    take_over_end();
}

/* The store has a question of A, but A does not know that: the answer of its commit was
 * lost. A client of B sees the question and answers it. The answer reaches A's
 * handler. */
static void an_answer_overtakes_its_question(world *w)
{
    char id[64], params[256];
    take_over_begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&take_over_other, "Ada");
    shared_store_fail(take_over_instance, 1, 1);
    wire_ask(a, "1", "tools/call", "\"name\":\"confirm_delete\"", CAPS_ALL);
    world_run(w);
    assert_int_equal(w->server->committer.counts.failures, 1);
    const sgi_op *op =
        sgi_op_of_task_node(sgi_index_any_node(&w->server->cluster.by_task));
    snprintf(id, sizeof id, "%s", op->task_id);
    assert_at(state_at(b, id), "result.status", "\"input_required\"");
    snprintf(params, sizeof params, "\"taskId\":\"%s\"," ANSWER("input-1"), id);
    wire_ask(b, "3", "tasks/update", params, CAPS_ALL);
    until_state(b, id, "\"completed\"");
    assert_int_equal(world_runs(w, "confirm_delete"), 1);
    take_over_end();
}

/* The end of a task is in the store, but A does not know that: the answer of its commit
 * was lost. The store then refuses the next attempt, so A ends the task with an error,
 * which the store has behind the end. B reads the first end. */
static void the_first_of_two_ends_counts(world *w)
{
    char id[64];
    take_over_begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&take_over_other, "Ada");
    snprintf(id, sizeof id, "%s",
             wire_make_task(a, "1", "story", "\"n\":1,\"delayMs\":300", NULL));
    shared_store_fail(take_over_instance, 1, 1);
    world_advance(w, 300);
    assert_int_equal(w->server->committer.counts.failures, 1);
    shared_store_refuse(take_over_instance, 1, SEGUE_E_STORE_CORRUPT);
    until_state(a, id, "\"failed\"");
    world_advance(w, 60000);
    assert_int_equal(shared_place_finals(take_over_place), 2);
    must_be_story(until_state(b, id, "\"completed\""), 1);
    take_over_end();
}

/* A is out of reach for less than its lease: no other server runs its task. */
static void who_is_away_for_less_than_a_lease_goes_on(world *w)
{
    take_over_begin(w);
    wire *a = world_connect(w, "Ada");
    const char *id = story_at(a);
    world_advance(w, 400);
    shared_store_away(take_over_instance, 1);
    world_advance(w, LEASE_MS / 2);
    shared_store_away(take_over_instance, 0);
    must_be_story(until_state(a, id, "\"completed\""), 5);
    assert_int_equal(world_runs(&take_over_other, "story"), 0);
    assert_int_equal(take_over_other.server->counts.taken_over, 0);
    assert_int_equal(shared_place_finals(take_over_place), 1);
    take_over_end();
}

/* A is out of reach for longer than its lease: B takes the task over. When A is back, it
 * is fenced and follows the task. */
static void who_is_away_for_a_lease_is_fenced(world *w)
{
    take_over_begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&take_over_other, "Ada");
    const char *id = story_at(a);
    world_advance(w, 400);
    shared_store_away(take_over_instance, 1);
    world_advance(w, 3 * LEASE_MS);
    assert_int_equal(take_over_other.server->counts.taken_over, 1);
    shared_store_away(take_over_instance, 0);
    world_advance(w, LEASE_MS);
    assert_int_equal(w->server->cluster.counts.fenced, 1);
    must_be_story(until_state(b, id, "\"completed\""), 5);
    must_be_story(until_state(a, id, "\"completed\""), 5);
    assert_int_equal(world_runs(&take_over_other, "story"), 1);
    assert_int_equal(shared_place_finals(take_over_place), 1);
    assert_true(shared_place_fenced(take_over_place) > 0);
    take_over_end();
}

/* The store's answer to the creation is lost, and A is away. B continues the task, then
 * ends. A is back and owns a task again that it has not seen created. */
static void a_creation_comes_again_behind_another_server(world *w)
{
    take_over_begin(w);
    wire *a = world_connect(w, "Ada");
    world_connect(&take_over_other, "Ada");
    shared_store_fail(take_over_instance, 1, 1);
    wire_ask(a, "1", "tools/call",
             "\"name\":\"story\",\"arguments\":{\"n\":12,\"delayMs\":300}", CAPS_TASKS);
    world_run(w);
    shared_store_away(take_over_instance, 1);
    world_advance(w, 2 * LEASE_MS);
    assert_int_equal(take_over_other.server->counts.taken_over, 1);
    world_stop(&take_over_other);
    shared_store_away(take_over_instance, 0);
    world_advance(w, 500);
    char id[64];
    const char *quoted = json_at(wire_response(a, "1"), "result.taskId");
    assert_true(strlen(quoted) > 2);
    snprintf(id, sizeof id, "%.*s", (int)strlen(quoted) - 2, quoted + 1);
    must_be_story(until_state(a, id, "\"completed\""), 12);
    take_over_end();
}

/* A is out of reach for longer than its lease. B takes the task over, continues it, and
 * ends before A is back. Then A owns the task again, and continues after B's segments. */
static void who_is_away_while_another_came_and_went(world *w)
{
    for (int asks = 0; asks < 2; asks++) {
        take_over_begin(w);
        wire *a = world_connect(w, "Ada");
        wire *b = world_connect(&take_over_other, "Ada");
        const char *made =
            wire_make_task(a, "1", "story", "\"n\":12,\"delayMs\":300", NULL);
        char id[64];
        snprintf(id, sizeof id, "%s", made);
        world_advance(w, 400);
        shared_store_away(take_over_instance, 1);
        world_advance(w, 2 * LEASE_MS);
        assert_int_equal(take_over_other.server->counts.taken_over, 1);
        if (asks)
            state_at(b, id);
        world_stop(&take_over_other);
        shared_store_away(take_over_instance, 0);
        must_be_story(until_state(a, id, "\"completed\""), 12);
        assert_int_equal(shared_place_finals(take_over_place), 1 + asks);
        take_over_end();
        world_restart(w);
    }
}

/* The same when the store has one more segment of A than A knows, because the answer of
 * its commit was lost. So B's segments begin behind this one. */
static void who_was_away_behind_a_lost_answer(world *w)
{
    char id[64];
    take_over_begin(w);
    wire *a = world_connect(w, "Ada");
    world_connect(&take_over_other, "Ada"); /* makes B open its store */
    snprintf(id, sizeof id, "%s",
             wire_make_task(a, "1", "story", "\"n\":12,\"delayMs\":300", NULL));
    world_advance(w, 400);
    shared_store_fail(take_over_instance, 1, 1);
    world_advance(w, 200);
    assert_int_equal(w->server->committer.counts.failures, 1);
    shared_store_away(take_over_instance, 1);
    world_advance(w, 2 * LEASE_MS);
    assert_int_equal(take_over_other.server->counts.taken_over, 1);
    world_stop(&take_over_other);
    shared_store_away(take_over_instance, 0);
    must_be_story(until_state(a, id, "\"completed\""), 12);
    assert_int_equal(shared_place_finals(take_over_place), 1);
    take_over_end();
}

/* A's handler has ended while A was cut off. Nobody saw this end. Another server went on
 * with the task, and has gone too. What the other server wrote counts. */
static void who_ended_before_another_came_and_went(world *w)
{
    char id[64];
    take_over_begin(w);
    wire *a = world_connect(w, "Ada");
    world_connect(&take_over_other, "Ada");
    snprintf(id, sizeof id, "%s",
             wire_make_task(a, "1", "story", "\"n\":4,\"delayMs\":300", NULL));
    world_advance(w, 400);
    shared_store_away(take_over_instance, 1);
    for (int i = 0; i < 100 && !take_over_other.server->counts.taken_over; i++)
        world_advance(w, 100);
    world_advance(w, 350);
    assert_int_equal(fixtures_jobs(w->fixtures), 0);
    world_stop(&take_over_other);
    shared_store_away(take_over_instance, 0);
    must_be_story(until_state(a, id, "\"completed\""), 4);
    assert_int_equal(shared_place_finals(take_over_place), 1);
    take_over_end();
}

/* The same while a handler waits for an answer. The answer reaches the new handler, even
 * if the earlier one has not ended yet. */
static void who_asked_before_another_came_and_went(world *w)
{
    take_over_begin(w);
    wire *a = world_connect(w, "Ada");
    world_connect(&take_over_other, "Ada");
    const char *made = wire_make_task(a, "1", "confirm_delete", NULL, CAPS_ALL);
    char id[64];
    snprintf(id, sizeof id, "%s", made);
    until_state(a, id, "\"input_required\"");
    shared_store_away(take_over_instance, 1);
    world_advance(w, 3 * LEASE_MS);
    assert_int_equal(take_over_other.server->counts.taken_over, 1);
    world_stop(&take_over_other);
    shared_store_away(take_over_instance, 0);
    world_advance(w, 2 * LEASE_MS);
    until_state(a, id, "\"input_required\"");
    wire_task(a, "3", "tasks/update", id, ANSWER("input-1"));
    until_state(a, id, "\"completed\"");
    take_over_end();
}

static const char form[] = "{\"mode\":\"form\",\"message\":\"Are you sure?\","
                           "\"requestedSchema\":{\"type\":\"object\","
                           "\"properties\":{\"confirm\":{\"type\":\"boolean\"}}}}";

static void on_confirm(void *user, segue_call *call, segue_status status,
                       const char *json, size_t len)
{
    (void)user;
    (void)json;
    (void)len;
    if (status == SEGUE_OK)
        assert_int_equal(segue_call_complete(call, NULL, NULL), SEGUE_OK);
}

static void asks(segue_call *call)
{
    assert_int_equal(segue_call_require_input(call, "sure", "elicitation/create", form,
                                              sizeof form - 1, on_confirm, NULL, NULL,
                                              NULL),
                     SEGUE_OK);
}

/* Takes the call that the handler has got since. */
static segue_call *take_held(void)
{
    segue_call *call = held;
    assert_non_null(call);
    held = NULL;
    return call;
}

/* A asks a question while it cannot reach its store, so the question is never stored. B
 * takes the task over. Then B asks the same question under the same key, or B leaves and
 * the next run at A asks it. The answer at A reaches the question that is stored. */
static void a_question_that_was_not_durable_is_asked_again(world *w, bool b_asks)
{
    char id[64];
    take_over_begin(w);
    wire *a = world_connect(w, "Ada");
    world_connect(&take_over_other, "Ada"); /* makes B open its store */
    add_held_tool(w, "held", hold);
    add_held_tool(&take_over_other, "held", hold);
    held = NULL;
    snprintf(id, sizeof id, "%s", wire_make_task(a, "1", "held", NULL, CAPS_ALL));
    segue_call *first = take_held();
    shared_store_away(take_over_instance, 1);
    asks(first);
    world_advance(w, 3 * LEASE_MS);
    segue_call *last = take_held();
    if (!b_asks) {
        assert_int_equal(segue_call_send_text(last, "b", 1, NULL), SEGUE_OK);
        world_run(&take_over_other);
        segue_server_close(take_over_other.server);
        segue_call_free(last);
        world_run(&take_over_other);
        world_stop(&take_over_other);
    }
    shared_store_away(take_over_instance, 0);
    world_advance(w, 3 * LEASE_MS);
    if (!b_asks)
        last = take_held();
    asks(last);
    until_state(a, id, "\"input_required\"");
    wire_task(a, "3", "tasks/update", id, ANSWER("sure"));
    until_state(a, id, "\"completed\"");
    segue_call_free(first);
    segue_call_free(last);
    take_over_end();
}

static void a_question_of_the_new_owner_is_answered(world *w)
{
    a_question_that_was_not_durable_is_asked_again(w, true);
}

static void a_question_is_asked_by_the_next_run(world *w)
{
    a_question_that_was_not_durable_is_asked_again(w, false);
}

/* A's handler sends nothing, so no write can be refused. A asks by itself when it is
 * back, and its client learns how the task ended. */
static void who_was_away_in_silence_hears_of_it(world *w)
{
    take_over_begin(w);
    wire *a = world_connect(w, "Ada");
    const char *made = wire_make_task(a, "1", "hang", NULL, NULL);
    world_connect(&take_over_other, "Ada"); /* makes B open its store */
    char id[64], params[128];
    snprintf(id, sizeof id, "%s", made);
    snprintf(params, sizeof params, "\"taskId\":\"%s\"", id);
    wire_ask(a, "2", "tasks/stream", params, CAPS_TASKS);
    shared_store_away(take_over_instance, 1);
    world_advance(w, 3 * LEASE_MS);
    shared_store_away(take_over_instance, 0);
    world_advance(w, 3 * LEASE_MS);
    assert_int_equal(w->server->cluster.counts.fenced, 1);
    assert_at(wire_response(a, "2"), "result.resultType", "\"complete\"");
    assert_at(state_at(a, id), "result.error.message", "\"Server restarted\"");
    take_over_end();
}

/* A has no room when it is back, so its store refuses a commit without saying who owns
 * the task. A asks again, and its client learns how the task ended. */
static void who_is_back_without_room_hears_of_it(world *w)
{
    take_over_begin(w);
    wire *a = world_connect(w, "Ada");
    const char *made = wire_make_task(a, "1", "hang", NULL, NULL);
    world_connect(&take_over_other, "Ada"); /* makes B open its store */
    char id[64], params[128];
    snprintf(id, sizeof id, "%s", made);
    snprintf(params, sizeof params, "\"taskId\":\"%s\"", id);
    wire_ask(a, "2", "tasks/stream", params, CAPS_TASKS);
    shared_store_away(take_over_instance, 1);
    world_advance(w, 3 * LEASE_MS);
    shared_store_refuse(take_over_instance, 2, SEGUE_E_STORE_FULL);
    shared_store_away(take_over_instance, 0);
    world_advance(w, 3 * LEASE_MS);
    assert_int_equal(w->server->cluster.counts.fenced, 1);
    assert_at(wire_response(a, "2"), "result.resultType", "\"complete\"");
    assert_at(state_at(a, id), "result.error.message", "\"Server restarted\"");
    take_over_end();
}

/* A cancel at B reaches A, although A's commits fail for a while. */
static void a_cancel_comes_through(world *w)
{
    take_over_begin(w);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&take_over_other, "Ada");
    const char *made = wire_make_task(a, "1", "hang", NULL, NULL);
    char id[64];
    snprintf(id, sizeof id, "%s", made);
    shared_store_fail(take_over_instance, 2, 1);
    wire_task(b, "2", "tasks/cancel", id, NULL);
    until_state(b, id, "\"cancelled\"");
    until_state(a, id, "\"cancelled\"");
    assert_int_equal(shared_place_finals(take_over_place), 1);
    take_over_end();
}

static const scenario scenarios[] = {
    {"AS-38 a stream goes on at the server that takes over", a_stream_goes_on, ONLY_HERE,
     NULL},
    {"AS-38 an operation without a reader goes on", what_nobody_saw_goes_on,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38 operations that a closed server gives up go on",
     what_a_closed_server_gives_up_goes_on, ONLY_HERE | ONE_DRIVE, NULL},
    {"a task of an unknown tool fails when it is taken over",
     a_task_of_an_unknown_tool_fails, ONLY_HERE | ONE_DRIVE, NULL},
    {"a task waits for its tool when it is taken over", a_task_waits_for_its_tool,
     ONLY_HERE | ONE_DRIVE, with_late_tools},
    {"a task that is taken over waits for its tool only for a while",
     a_task_waits_only_for_a_while, ONLY_HERE | ONE_DRIVE, with_late_tools},
    {"AS-38 an operation that cannot run again fails once",
     what_cannot_run_again_fails_once, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38 questions stay answerable", questions_stay_answerable, ONLY_HERE | ONE_DRIVE,
     NULL},
    {"AS-38 a closed server lets a wait for the result go",
     a_closed_server_lets_a_wait_for_the_result_go, ONLY_HERE | ONE_DRIVE, NULL},
};

static const scenario returns[] = {
    {"AS-38 a server that comes back is fenced", who_comes_back_is_fenced,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38 a task whose first turn is fenced goes on", a_first_turn_is_fenced,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38 a cancel that was not durable is refused", what_was_not_durable_is_refused,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38 a forwarded cancel waits for the next owner",
     a_letter_waits_for_who_takes_over, ONLY_HERE | ONE_DRIVE, NULL},
};

static const scenario leases[] = {
    {"AS-114 no commit to a shared store is lost", no_commit_is_lost,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-114 no answer of a commit is lost", no_answer_of_a_commit_is_lost,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-114 a creation comes again", a_creation_comes_again, ONLY_HERE | ONE_DRIVE,
     NULL},
    {"AS-114 a creation that was applied comes again",
     a_creation_that_was_applied_comes_again, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38 a creation comes again behind another server",
     a_creation_comes_again_behind_another_server, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38 a server that is away for less than a lease goes on",
     who_is_away_for_less_than_a_lease_goes_on, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38 a server that is away for a lease is fenced",
     who_is_away_for_a_lease_is_fenced, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38 a server that was away continues behind another that came and went",
     who_is_away_while_another_came_and_went, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38 a server that was away continues behind a segment of its own",
     who_was_away_behind_a_lost_answer, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38 a server that ended a task before another came and went takes it up again",
     who_ended_before_another_came_and_went, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38 a question of before another server came and went is answered",
     who_asked_before_another_came_and_went, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38 who is cut off acknowledges no answer to a question it does not know",
     who_is_cut_off_acknowledges_no_unknown_answer, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38 a task that is not confirmed is not denied",
     a_task_that_is_not_confirmed_is_not_denied, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38 an answer overtakes its question", an_answer_overtakes_its_question,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38 a question of the new owner is answered",
     a_question_of_the_new_owner_is_answered, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38 a question that was not durable is asked by the next run",
     a_question_is_asked_by_the_next_run, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-114 the first of two ends counts", the_first_of_two_ends_counts,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38 a silent server that was away learns of the take-over",
     who_was_away_in_silence_hears_of_it, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38 a server that is back without room learns of the take-over",
     who_is_back_without_room_hears_of_it, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38 a cancel comes through", a_cancel_comes_through, ONLY_HERE | ONE_DRIVE, NULL},
};

int main(void)
{
    int failed = scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
    failed +=
        scenarios_run_prepared(returns, sizeof returns / sizeof *returns, with_faults);
    failed += scenarios_run_prepared(scenarios, sizeof scenarios / sizeof *scenarios,
                                     take_over_with_shared);
    failed += scenarios_run_prepared(leases, sizeof leases / sizeof *leases,
                                     take_over_with_shared);
    shared_place_free(take_over_place);
    return failed;
}
