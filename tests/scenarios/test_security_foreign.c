/* Foreign objects are answered like unknown ones: byte for byte, and by the same path
 * through the server, so that time reveals nothing either (R-0-5, R-2557-16, R-1905-54,
 * AS-63). The tests cover every method that takes a handle of an operation, in every
 * state of the operation, in both eras, before and after a restart. They also cover
 * handles that are no task ids: keys, states, cursors, ids of requests and questions.
 * test_security_sessions.c has the handles of HTTP. */
#include "support/fault_store.h"
#include "support/legacy_wire.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define INVENTED "AAAAAAAAAAAAAAAAAAAAAA"
#define ANSWER "\"inputResponses\":{\"input-1\":{\"action\":\"accept\"}}"
#define ACCEPT "{\"action\":\"accept\",\"content\":{\"confirm\":true}}"
#define CAPS_FORM "{\"elicitation\":{}}"

static fault_store *store;

static void with_account(world *w)
{
    scratch_name(w->path, sizeof w->path, "/tmp/segue-foreign");
    store = fault_store_new(w->store_kind == WORLD_SQLITE ? w->path : NULL, &w->custom);
}

/* ---- tasks ---- */

typedef const char *ask_fn(wire *c, const char *id, const char *method,
                           const char *task_id, const char *more);

typedef struct states {
    const char *ids[6];
    size_t count;
} states;

/* Asks for a foreign and an unknown one, and compares the answers and the work done. */
static void expect_alike(world *w, ask_fn *ask, const char *method, const char *id)
{
    static const char *const others[] = {"Bob", NULL};
    for (size_t i = 0; i < 2; i++) {
        wire *c = ask == legacy_task ? legacy_connect(w, others[i], NULL)
                                     : world_connect(w, others[i]);
        int finds = fault_store_finds(store), reads = fault_store_reads(store);
        char unknown[512];
        snprintf(unknown, sizeof unknown, "%s", ask(c, "2", method, INVENTED, ANSWER));
        assert_code(unknown, -32602);
        assert_at(unknown, "error.data", "");
        int took = fault_store_finds(store) - finds;
        assert_int_equal(fault_store_reads(store), reads);
        finds += took;
        const char *foreign = ask(c, "2", method, id, ANSWER);
        if (strcmp(foreign, unknown) != 0)
            fail_msg("%s: %s", method, foreign);
        assert_int_equal(fault_store_finds(store) - finds, took);
        assert_int_equal(fault_store_reads(store), reads);
        wire_cut(c);
        world_run(w);
    }
}

static const char *const modern_methods[] = {"tasks/get", "tasks/update", "tasks/cancel",
                                             "tasks/stream"};

static void expect_all_alike(world *w, const states *s)
{
    for (size_t m = 0; m < sizeof modern_methods / sizeof *modern_methods; m++)
        for (size_t i = 0; i < s->count; i++)
            expect_alike(w, wire_task, modern_methods[m], s->ids[i]);
}

static void foreign_tasks(world *w)
{
    wire *a = world_connect(w, "Ada");
    states s = {.count = 5};
    s.ids[0] = wire_make_task(a, "1", "hang", NULL, NULL);
    s.ids[1] = wire_make_task(a, "2", "confirm_delete", NULL, CAPS_ALL);
    s.ids[2] = wire_make_task(a, "3", "slow_compute", "\"ms\":10", NULL);
    s.ids[3] = wire_make_task(a, "4", "failing_job", "\"ms\":10", NULL);
    s.ids[4] = wire_make_task(a, "5", "hang", NULL, NULL);
    wire_get_until(a, s.ids[1], "input_required", NULL);
    wire_get_until(a, s.ids[2], "completed", NULL);
    wire_get_until(a, s.ids[3], "completed|failed", NULL);
    wire_task(a, "6", "tasks/cancel", s.ids[4], NULL);
    expect_all_alike(w, &s);
    assert_at(wire_task(a, "7", "tasks/get", s.ids[0], NULL), "result.status",
              "\"working\"");
    assert_at(wire_task(a, "8", "tasks/get", s.ids[1], NULL), "result.status",
              "\"input_required\"");
}

/* None of the tasks is in memory. */
static void foreign_tasks_in_the_store(world *w)
{
    wire *a = world_connect(w, "Ada");
    states s = {.count = 2};
    s.ids[0] = strdup(wire_make_task(a, "1", "story", "\"n\":50", NULL));
    s.ids[1] = strdup(wire_make_task(a, "2", "hang", NULL, NULL));
    wire_get_until(a, s.ids[0], "completed", NULL);
    world_restart(w);
    world_advance(w, 600000);
    expect_all_alike(w, &s);
    a = world_connect(w, "Ada");
    assert_at(wire_task(a, "3", "tasks/get", s.ids[0], NULL), "result.status",
              "\"completed\"");
    for (size_t i = 0; i < s.count; i++)
        free((char *)(uintptr_t)s.ids[i]);
}

static void foreign_tasks_of_2025(world *w)
{
    static const char *const methods[] = {"tasks/get", "tasks/result", "tasks/cancel"};
    wire *a = legacy_connect(w, "Ada", NULL);
    const char *ids[] = {
        legacy_make_task(a, "1", "hang", NULL, NULL),
        legacy_make_task(a, "2", "slow_compute", "\"ms\":10", NULL),
        legacy_make_task(a, "3", "failing_job", "\"ms\":10", NULL),
    };
    legacy_get_until(a, ids[1], "completed");
    legacy_get_until(a, ids[2], "failed");
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++)
        for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
            expect_alike(w, legacy_task, methods[m], ids[i]);
    assert_at(legacy_task(a, "4", "tasks/get", ids[0], NULL), "result.status",
              "\"working\"");
}

static void two_per_page(segue_server_options *options)
{
    options->page_size = 2;
}

/* A list has only one's own tasks; a foreign cursor is refused. */
static void foreign_lists(world *w)
{
    char params[512];
    const char *ids[5];
    wire *a = legacy_connect(w, "Ada", NULL);
    wire *b = legacy_connect(w, "Bob", NULL);
    for (int i = 0; i < 5; i++) {
        ids[i] = legacy_make_task(a, "\"make\"", "hang", NULL, NULL);
        world_jump(w, 1);
    }
    const char *r = wire_do_plain(a, "1", "tasks/list", NULL);
    snprintf(params, sizeof params, "\"cursor\":%s", json_at(r, "result.nextCursor"));
    assert_true(strlen(params) > 12);
    wire_do_plain(b, "1", "tasks/list", NULL);
    wire_do_plain(b, "2", "tasks/list", params);
    for (int i = 0; i < 5; i++)
        assert_null(strstr(wire_history(b), ids[i]));
    /* the cursor is still valid for its owner */
    r = wire_do_plain(a, "2", "tasks/list", params);
    assert_non_null(strstr(r, ids[2]));
}

/* ---- keys and states ---- */

#define KEYED(n)                                                                         \
    "\"name\":\"greet\",\"arguments\":{\"name\":\"" n "\"},\"_meta\":{"                  \
    "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                        \
    "\"io.modelcontextprotocol/clientCapabilities\":{},"                                 \
    "\"dev.segue/idempotencyKey\":\"key-0123456789abcdef\"}"

/* A key finds only its owner's operation: for any other principal it is new, with any
 * call. */
static void foreign_keys(world *w)
{
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(w, "Bob");
    wire *nobody = world_connect(w, NULL);
    assert_at(wire_do_plain(a, "1", "tools/call", KEYED("Ada")), "result.content.0.text",
              "\"Hello, Ada!\"");
    assert_at(wire_do_plain(b, "1", "tools/call", KEYED("Bob")), "result.content.0.text",
              "\"Hello, Bob!\"");
    assert_at(wire_do_plain(nobody, "1", "tools/call", KEYED("Cem")),
              "result.content.0.text", "\"Hello, Cem!\"");
    assert_int_equal(world_runs(w, "greet"), 3);
    assert_at(wire_do_plain(a, "2", "tools/call", KEYED("Ada")), "result.content.0.text",
              "\"Hello, Ada!\"");
    assert_at(wire_do_plain(a, "3", "tools/call", KEYED("Bob")), "error.data.reason",
              "\"idempotency_mismatch\"");
    assert_int_equal(world_runs(w, "greet"), 3);
}

static const char *come_again(wire *c, const char *id, const char *state)
{
    char params[1024];
    snprintf(params, sizeof params,
             "\"name\":\"ask_once\",\"arguments\":{},\"requestState\":%s,"
             "\"inputResponses\":{\"input-1\":" ACCEPT "}",
             state);
    return wire_do(c, id, "tools/call", params, CAPS_ALL);
}

static void foreign_states(world *w)
{
    char state[512], unknown[512];
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(w, "Bob");
    const char *r =
        wire_do(a, "1", "tools/call", "\"name\":\"ask_once\",\"arguments\":{}", CAPS_ALL);
    snprintf(state, sizeof state, "%s", json_at(r, "result.requestState"));
    assert_true(strlen(state) > 2);
    snprintf(unknown, sizeof unknown, "%s",
             come_again(b, "2", "\"" INVENTED INVENTED INVENTED "\""));
    assert_code(unknown, -32602);
    assert_string_equal(come_again(b, "2", state), unknown);
    state[5] = state[5] == 'A' ? 'B' : 'A'; /* a changed state is refused for its owner,
                                             * too */
    assert_string_equal(come_again(a, "2", state), unknown);
    state[5] = 0;
    snprintf(state, sizeof state, "%s", json_at(r, "result.requestState"));
    assert_at(come_again(a, "2", state), "result.resultType", "\"complete\"");
}

/* ---- ids of requests and of questions ---- */

/* Both sides count from one: foreign ids are easy to guess and have no effect. */
static void foreign_requests(world *w)
{
    wire *a = legacy_connect(w, "Ada", NULL);
    wire *b = legacy_connect(w, "Bob", NULL);
    /* another conversation of the same principal */
    wire *same = legacy_connect(w, "Ada", NULL);
    wire_ask_plain(a, "7", "tools/call",
                   "\"name\":\"slow_compute\",\"arguments\":{\"ms\":100}");
    world_run(w);
    wire_notify(b, "notifications/cancelled", "\"requestId\":7");
    wire_notify(same, "notifications/cancelled", "\"requestId\":7");
    world_advance(w, 100);
    assert_at(wire_response(a, "7"), "result.content.0.text", "\"Computed: done\"");
}

static void foreign_questions(world *w)
{
    char line[512], id[WIRE_ID];
    wire *a = legacy_connect(w, "Ada", CAPS_FORM);
    wire *b = legacy_connect(w, "Bob", CAPS_FORM);
    wire_ask_plain(a, "1", "tools/call", "\"name\":\"ask_once\",\"arguments\":{}");
    snprintf(id, sizeof id, "%s", json_at(wire_request(a, "elicitation/create"), "id"));
    snprintf(line, sizeof line,
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"action\":\"decline\"}}", id);
    wire_send(b, line);
    world_advance(w, 100);
    wire_quiet(a);
    snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":" ACCEPT "}",
             id);
    wire_send(a, line);
    assert_non_null(
        strstr(json_at(wire_response(a, "1"), "result.content.0.text"), "accept"));
}

static const scenario scenarios[] = {
    {"R-0-5 R-2557-16 a foreign task is like none, in every state", foreign_tasks,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"R-0-5 a foreign task that is only in the store is like none",
     foreign_tasks_in_the_store, ONLY_HERE | ONE_DRIVE, NULL},
    {"R-0-5 R-1905-54 a foreign task of 2025-11-25 is like none", foreign_tasks_of_2025,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"R-0-5 foreign tasks are in no list, by no cursor", foreign_lists,
     ONLY_HERE | ONE_DRIVE, two_per_page},
    {"R-0-5 a foreign idempotency key is a fresh one", foreign_keys,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"R-0-5 a foreign requestState is like none", foreign_states, ONLY_HERE | ONE_DRIVE,
     NULL},
    {"R-0-5 a foreign request is not cancelled", foreign_requests, ONLY_HERE | ONE_DRIVE,
     NULL},
    {"R-0-5 a foreign question is not answered", foreign_questions, ONLY_HERE | ONE_DRIVE,
     NULL},
};

int main(void)
{
    return scenarios_run_prepared(scenarios, sizeof scenarios / sizeof *scenarios,
                                  with_account);
}
