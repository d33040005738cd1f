/* Keys of questions. A tool may choose them, and no key is used twice. Keys that the
 * library chooses never equal those of the tool. Also what a tool is told about them. */
#include "support/legacy_wire.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define ACCEPT "{\"action\":\"accept\",\"content\":{}}"
#define LONGEST "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"

/* The questions of the tool, one after another, and the outcome of each. */
static const char *const *asks;
static size_t ask_count;
static char told[1024];
static int answers;
static char heard[256]; /* status and JSON of the last answer */

static void answered(void *user, segue_call *call, segue_status status, const char *json,
                     size_t len)
{
    (void)user;
    snprintf(heard, sizeof heard, "%s %.*s", segue_status_name(status), (int)len,
             json ? json : "");
    if (++answers < (int)ask_count)
        return;
    if (status == SEGUE_OK)
        segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void ask_all(void *user, segue_call *call)
{
    (void)user;
    answers = 0;
    told[0] = 0;
    for (size_t i = 0; i < ask_count; i++) {
        char params[128];
        snprintf(params, sizeof params,
                 "{\"message\":\"%zu\",\"requestedSchema\":{\"type\":\"object\","
                 "\"properties\":{}}}",
                 i);
        segue_status status =
            segue_call_require_input(call, asks[i], "elicitation/create", params,
                                     strlen(params), answered, NULL, NULL, NULL);
        strcat(told, status == SEGUE_OK ? "ok" : segue_status_name(status) + 8);
        strcat(told, " ");
        answers += status != SEGUE_OK;
    }
    if (answers == (int)ask_count)
        segue_call_free(call);
}

static void add_tool(world *w, const char *const *keys, size_t count, int32_t task,
                     int32_t flags)
{
    static const char json[] =
        "{\"name\":\"keys\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = ask_all;
    options.task = task;
    options.flags = flags;
    asks = keys;
    ask_count = count;
    assert_int_equal(segue_server_add(w->server, SEGUE_ITEM_TOOL, json, sizeof json - 1,
                                      &options, NULL),
                     SEGUE_OK);
}

#define ADD(w, keys, task, flags)                                                        \
    add_tool(w, keys, sizeof(keys) / sizeof *(keys), task, flags)

static const char *call_keys(world *w)
{
    return wire_do(world_connect(w, NULL), "1", "tools/call", "\"name\":\"keys\"",
                   CAPS_ALL);
}

static void a_tool_chooses(world *w)
{
    static const char *const keys[] = {"user_name", "b.2-C", LONGEST, "x"};
    char params[1024];
    ADD(w, keys, SEGUE_TASK_NEVER, 0);
    wire *c = world_connect(w, NULL);
    const char *r = wire_do(c, "1", "tools/call", "\"name\":\"keys\"", CAPS_ALL);
    assert_string_equal(told, "ok ok ok ok ");
    assert_at(r, "result.inputRequests.user_name.params.message", "\"0\"");
    assert_at(r, "result.inputRequests.x.params.message", "\"3\"");
    assert_non_null(strstr(r, "\"" LONGEST "\":{"));
    snprintf(params, sizeof params,
             "\"name\":\"keys\",\"requestState\":%s,\"inputResponses\":{\"x\":" ACCEPT
             ",\"b.2-C\":" ACCEPT ",\"" LONGEST "\":" ACCEPT ",\"user_name\":" ACCEPT "}",
             json_at(r, "result.requestState"));
    r = wire_do(c, "2", "tools/call", params, CAPS_ALL);
    assert_at(r, "result.resultType", "\"complete\"");
}

static void none_is_used_twice(world *w)
{
    static const char *const keys[] = {"a", "a", "b", "a"};
    ADD(w, keys, SEGUE_TASK_NEVER, 0);
    call_keys(w);
    assert_string_equal(told, "ok EXISTS ok EXISTS ");
}

static void some_are_none(world *w)
{
    static const char *const keys[] = {"",    "a b",  "a\"b",      "\xc3\xa9",
                                       "a/b", "a\nb", LONGEST "x", "\\"};
    ADD(w, keys, SEGUE_TASK_NEVER, 0);
    call_keys(w);
    for (char *at = told; *at; at += strlen("INVALID "))
        assert_memory_equal(at, "INVALID ", strlen("INVALID "));
}

static void the_librarys_are_others(world *w)
{
    static const char *const keys[] = {"input-2", NULL, "input-1", NULL, "input-4", NULL};
    ADD(w, keys, SEGUE_TASK_NEVER, 0);
    const char *r = call_keys(w);
    assert_string_equal(told, "ok ok ok ok EXISTS ok ");
    assert_at(r, "result.inputRequests.input-2.params.message", "\"0\"");
    assert_at(r, "result.inputRequests.input-3.params.message", "\"1\"");
    assert_at(r, "result.inputRequests.input-1.params.message", "\"2\"");
    assert_at(r, "result.inputRequests.input-4.params.message", "\"3\"");
    assert_at(r, "result.inputRequests.input-5.params.message", "\"5\"");
}

static const char *call_early(wire *c, const char *early)
{
    char params[4096];
    snprintf(params, sizeof params, "\"name\":\"keys\",\"inputResponses\":%s", early);
    return wire_do(c, "1", "tools/call", params, CAPS_ALL);
}

/* Answers without a state, to questions that the client expects: those that fit are
 * accepted, for keys that the tool chose. */
static void answers_may_come_early(world *w)
{
    static const char *const keys[] = {"name", NULL};
    ADD(w, keys, SEGUE_TASK_NEVER, 0);
    wire *c = world_connect(w, NULL);
    const char *r = call_early(c, "{\"x\":" ACCEPT ",\"name\":" ACCEPT
                                  ",\"input-1\":" ACCEPT ",\"input-2\":" ACCEPT "}");
    assert_at(r, "result.resultType", "\"input_required\"");
    assert_at(r, "result.inputRequests.name", "");
    assert_at(r, "result.inputRequests.input-2.params.message", "\"1\"");
    r = call_early(c, "{\"name\":{\"action\":\"banana\"}}");
    assert_at(r, "result.inputRequests.name.params.message", "\"0\"");
    r = call_early(c, "{\"nam\\u0065\":" ACCEPT "}");
    assert_at(r, "result.inputRequests.name.params.message", "\"0\"");
    r = call_early(c, "7");
    assert_at(r, "result.inputRequests.name.params.message", "\"0\"");
    ask_count = 1;
    assert_at(call_early(c, "{\"name\":" ACCEPT "}"), "result.resultType",
              "\"complete\"");
}

/* At most max_inputs of them are kept. */
static void early_answers_are_bounded(world *w)
{
    static const char *const keys[] = {"name"};
    ADD(w, keys, SEGUE_TASK_NEVER, 0);
    wire *c = world_connect(w, NULL);
    for (int others = 63; others <= 64; others++) {
        char early[4096] = "{";
        for (int i = 0; i < others; i++)
            sprintf(early + strlen(early), "\"k%d\":" ACCEPT ",", i);
        strcat(early, "\"name\":" ACCEPT "}");
        assert_at(call_early(c, early), "result.resultType",
                  others < 64 ? "\"complete\"" : "\"input_required\"");
    }
}

static const char *const three[] = {"a", NULL, "b"};

static void add_restartable(world *w)
{
    ADD(w, three, SEGUE_TASK_MUST, SEGUE_TOOL_RESTARTABLE);
}

/* R-2557-25, R-C-1: after a restart a key means the same question. */
static void a_run_after_a_restart_means_the_same(world *w)
{
    char id[64];
    add_restartable(w);
    wire *c = world_connect(w, NULL);
    snprintf(id, sizeof id, "%s", wire_make_task(c, "1", "keys", NULL, CAPS_ALL));
    wire_task(c, "2", "tasks/update", id, "\"inputResponses\":{\"a\":" ACCEPT "}");
    w->furnish = add_restartable;
    world_restart(w);
    c = world_connect(w, NULL);
    world_run(w);
    assert_string_equal(told, "ok ok ok ");
    const char *r = wire_task(c, "3", "tasks/get", id, NULL);
    assert_at(r, "result.inputRequests.a", "");
    assert_at(r, "result.inputRequests.input-2.params.message", "\"1\"");
    assert_at(r, "result.inputRequests.b.params.message", "\"2\"");
}

static void add_with_others(world *w)
{
    static const char *const others[] = {"b", "a", "c"};
    ADD(w, others, SEGUE_TASK_MUST, SEGUE_TOOL_RESTARTABLE);
}

/* The same key for another question counts as used. */
static void a_restart_frees_no_key(world *w)
{
    add_restartable(w);
    wire_make_task(world_connect(w, NULL), "1", "keys", NULL, CAPS_ALL);
    w->furnish = add_with_others;
    world_restart(w);
    world_run(w);
    assert_string_equal(told, "EXISTS EXISTS ok ");
}

/* Before 2026-07-28 keys are not sent. */
static void handshake_eras_have_ids(world *w)
{
    static const char *const keys[] = {"secret-key"};
    ADD(w, keys, SEGUE_TASK_NEVER, 0);
    wire *c = legacy_connect(w, NULL, "{\"elicitation\":{}}");
    wire_ask_plain(c, "2", "tools/call", "\"name\":\"keys\"");
    const char *question = wire_request(c, "elicitation/create");
    assert_null(strstr(question, "secret-key"));
    char line[512];
    snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}",
             json_at(question, "id"), ACCEPT);
    wire_send(c, line);
    assert_at(wire_response(c, "2"), "error", "");
}

static void an_error_comes_with_its_code(world *w)
{
    static const char *const keys[] = {NULL};
    ADD(w, keys, SEGUE_TASK_NEVER, 0);
    wire *c = legacy_connect(w, NULL, "{\"elicitation\":{}}");
    wire_ask_plain(c, "2", "tools/call", "\"name\":\"keys\"");
    char line[512];
    snprintf(line, sizeof line,
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-1,\"message\":"
             "\"User rejected\",\"data\":7}}",
             json_at(wire_request(c, "elicitation/create"), "id"));
    wire_send(c, line);
    wire_response(c, "2");
    assert_string_equal(heard, "SEGUE_E_REMOTE {\"code\":-1,\"message\":\"User "
                               "rejected\",\"data\":7}");
}

static const scenario scenarios[] = {
    {"a tool chooses the keys of its questions", a_tool_chooses, ONLY_HERE | ONE_DRIVE,
     NULL},
    {"R-2557-25 no key is used twice", none_is_used_twice, ONLY_HERE | ONE_DRIVE, NULL},
    {"keys that are none are refused", some_are_none, ONLY_HERE | ONE_DRIVE, NULL},
    {"the library's keys are others", the_librarys_are_others, ONLY_HERE | ONE_DRIVE,
     NULL},
    {"answers may come before they are asked for", answers_may_come_early,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"early answers are bounded", early_answers_are_bounded, ONLY_HERE | ONE_DRIVE, NULL},
    {"R-2557-25 after a restart a key means the same question",
     a_run_after_a_restart_means_the_same, ONLY_HERE | ONLY_SQLITE | ONE_DRIVE, NULL},
    {"R-2557-25 a restart frees no key", a_restart_frees_no_key,
     ONLY_HERE | ONLY_SQLITE | ONE_DRIVE, NULL},
    {"in the handshake eras questions have ids", handshake_eras_have_ids,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"an error for an answer comes with its code", an_error_comes_with_its_code,
     ONLY_HERE | ONE_DRIVE, NULL},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
