/* Arguments and results of tools against their schemas: the application's validator on
 * the server's side, per era, for plain calls and tasks, and the checks that the library
 * makes itself (server/tools, "Output Schema" and "Error Handling"). */
#include "support/legacy_wire.h"
#include "support/small_validator.h"
#include "support/world.h"

#include <segue/segue_ext.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define INPUT                                                                            \
    "\"inputSchema\":{\"type\":\"object\",\"required\":[\"a\"],\"properties\":{\"a\":{"  \
    "\"type\":\"integer\"}}}"
#define OUTPUT                                                                           \
    "\"outputSchema\":{\"type\":\"object\",\"required\":[\"sum\"],\"properties\":{"      \
    "\"sum\":{\"type\":\"integer\"}}}"
#define FITS "{\\\"sum\\\":2}"
#define MISFITS "{\\\"sum\\\":\\\"two\\\"}"
/* Arguments of the tool: what it returns, and how. */
#define GIVE(how, text) "\"a\":1,\"" how "\":\"" text "\""
#define CALL(tool, arguments) "\"name\":\"" tool "\",\"arguments\":{" arguments "}"

/* ---- the tool ---- */

static int runs;
static segue_status ended;      /* status of completing the call */
static segue_status tries_said; /* status of completing it again with other content */
static segue_call *kept;

static const char *argument(segue_call *call, const char *name)
{
    const char *text = NULL;
    segue_call_argument_text(call, name, &text, NULL);
    return text;
}

static segue_status complete(world *w, segue_call *call, const char *structured,
                             int is_error)
{
    segue_content *content;
    assert_int_equal(segue_content_new(w->runtime, &content), SEGUE_OK);
    segue_content_add_text(content, "done", 4, NULL);
    segue_content_set_error(content, is_error);
    if (structured)
        assert_int_equal(
            segue_content_set_structured(content, structured, strlen(structured), NULL),
            SEGUE_OK);
    segue_status status = segue_call_complete(call, content, NULL);
    segue_content_free(content);
    return status;
}

/* Nothing can be sent behind the end, whether it was checked yet or not. */
static void try_more(world *w, segue_call *call)
{
    const segue_status said[] = {
        segue_call_send_text(call, "x", 1, NULL),
        segue_call_set_field(call, "x", "1", 1, NULL),
        segue_call_replace(call, NULL),
        segue_call_set_status(call, "x", NULL),
        segue_call_progress(call, 1, 2, NULL, NULL),
        segue_call_log(call, "info", "1", 1, NULL),
        segue_call_defer(call, 0, NULL),
        segue_call_hang_up(call, 0, NULL),
        segue_call_fail(call, -32603, "x", NULL, 0, NULL),
        complete(w, call, "{\"sum\":3}", 0),
    };
    tries_said = SEGUE_E_TERMINAL;
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (said[i] != SEGUE_E_TERMINAL)
            tries_said = said[i];
}

static void give(void *user, segue_call *call)
{
    world *w = user;
    const char *field = argument(call, "field");
    const char *void_field = argument(call, "void");
    runs++;
    if (field || void_field)
        assert_int_equal(segue_call_send_text(call, "piece", 5, NULL), SEGUE_OK);
    if (void_field) {
        segue_call_set_field(call, "structuredContent", void_field, strlen(void_field),
                             NULL);
        segue_call_replace(call, NULL);
    }
    if (field)
        segue_call_set_field(call, "structuredContent", field, strlen(field), NULL);
    ended = complete(w, call, argument(call, "content"), argument(call, "error") != NULL);
    if (argument(call, "more"))
        try_more(w, call);
    if (argument(call, "keep"))
        kept = call;
    else
        segue_call_free(call);
}

static void add(world *w, const char *name, const char *schemas, int32_t task)
{
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    segue_error *error = NULL;
    char json[600];
    options.on_call = give;
    options.user = w;
    options.task = task;
    snprintf(json, sizeof json, "{\"name\":\"%s\",%s}", name, schemas);
    if (segue_server_add(w->server, SEGUE_ITEM_TOOL, json, strlen(json), &options,
                         &error) != SEGUE_OK)
        fail_msg("%s", segue_error_read(error)->message);
}

static void set_up(world *w)
{
    runs = 0;
    ended = tries_said = SEGUE_OK;
    kept = NULL;
    small_validator_hook = NULL;
    small_validations(SEGUE_VALIDATE_ARGUMENTS);
    small_validations(SEGUE_VALIDATE_RESULT);
    add(w, "give", INPUT "," OUTPUT, SEGUE_TASK_MAY);
    add(w, "plain", INPUT, SEGUE_TASK_NEVER);
    add(w, "far",
        "\"inputSchema\":{\"type\":\"object\",\"$ref\":\"https://x.example/s\"}",
        SEGUE_TASK_NEVER);
    add(w, "list", INPUT ",\"outputSchema\":{\"type\":\"array\"}", SEGUE_TASK_NEVER);
    add(w, "open", "\"description\":\"no schema\"", SEGUE_TASK_NEVER);
}

static void validates(segue_server_options *options)
{
    options->on_validate = small_validate;
}

/* ---- arguments ---- */

static void arguments_that_fit_reach_the_handler(world *w)
{
    set_up(w);
    wire *c = world_connect(w, NULL);
    const char *r =
        wire_do(c, "1", "tools/call", CALL("give", GIVE("content", FITS)), NULL);
    assert_at(r, "result.structuredContent.sum", "2");
    assert_at(r, "result.isError", "");
    r = wire_do(c, "2", "tools/call", "\"name\":\"open\"", NULL);
    assert_at(r, "result.content.0.text", "\"done\"");
    assert_int_equal(runs, 2);
    assert_int_equal(ended, SEGUE_OK);
    assert_int_equal(small_validations(SEGUE_VALIDATE_ARGUMENTS), 2);
    assert_int_equal(small_validations(SEGUE_VALIDATE_RESULT), 1);
}

/* "Input validation errors" are errors of the tool, so that models can learn from
 * them. */
static void arguments_that_do_not_fit_are_an_error_of_the_tool(world *w)
{
    set_up(w);
    wire *c = world_connect(w, NULL);
    const char *r = wire_do(c, "1", "tools/call", CALL("plain", "\"a\":\"x\""), NULL);
    assert_golden(r, "arguments_do_not_fit");
    r = wire_do(c, "2", "tools/call", "\"name\":\"plain\"", NULL);
    assert_at(
        r, "result.content.0.text",
        "\"The arguments do not fit the tool's inputSchema: \\\"a\\\" is missing\"");
    wire *old = legacy_connect(w, NULL, NULL);
    r = wire_do_plain(old, "3", "tools/call", CALL("plain", ""));
    assert_at(r, "result.isError", "true");
    assert_int_equal(runs, 0);
}

static void before_2025_11_25_they_are_an_error_of_the_protocol(world *w)
{
    static const char *const versions[] = {"2025-06-18", "2025-03-26", "2024-11-05"};
    set_up(w);
    for (size_t i = 0; i < 3; i++) {
        wire *c = legacy_connect_as(w, NULL, versions[i], NULL);
        const char *r = wire_do_plain(c, "1", "tools/call", CALL("plain", "\"a\":1.5"));
        assert_code(r, -32602);
        assert_at(r, "error.message",
                  "\"The arguments do not fit the tool's inputSchema: \\\"a\\\" is no "
                  "integer\"");
    }
    assert_int_equal(runs, 0);
}

static void a_task_ends_with_that_error(world *w)
{
    set_up(w);
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "give", NULL, CAPS_TASKS);
    const char *r = wire_get_until(c, id, "completed", CAPS_TASKS);
    assert_at(r, "result.result.isError", "true");
    wire *old = legacy_connect(w, NULL, MODES_ALL);
    const char *task =
        legacy_make_task(old, "2", "give", NULL, "{\"responseModes\":[\"task\"]}");
    legacy_get_until(old, task, "failed"); /* the status in that revision */
    r = legacy_task(old, "3", "tasks/result", task, NULL);
    assert_at(r, "result.isError", "true");
    assert_int_equal(runs, 0);
}

/* "SHOULD be rejected rather than silently treated as permissive" */
static void what_cannot_be_told_is_refused(world *w)
{
    set_up(w);
    wire *c = world_connect(w, NULL);
    const char *r = wire_do(c, "1", "tools/call", CALL("far", ""), NULL);
    assert_code(r, -32603);
    assert_at(r, "error.message",
              "\"The arguments cannot be checked against the tool's inputSchema: there "
              "is a $ref or $schema\"");
    assert_int_equal(runs, 0);
    assert_int_equal(w->log_count, 1);
}

static segue_status says_nothing(void *user, const char *tool, int32_t what,
                                 const char *schema, size_t schema_len, const char *value,
                                 size_t value_len, char *reason, size_t size)
{
    (void)user, (void)tool, (void)schema, (void)schema_len, (void)value;
    if (what == SEGUE_VALIDATE_RESULT)
        memset(reason, 0xc3, size); /* neither a NUL nor UTF-8 */
    return what == SEGUE_VALIDATE_ARGUMENTS && value_len > 2 ? SEGUE_OK : SEGUE_E_INVALID;
}

static void validates_badly(segue_server_options *options)
{
    options->on_validate = says_nothing;
}

static void a_reason_is_not_needed(world *w)
{
    set_up(w);
    wire *c = world_connect(w, NULL);
    const char *r = wire_do(c, "1", "tools/call", CALL("plain", ""), NULL);
    assert_at(r, "result.content.0.text",
              "\"The arguments do not fit the tool's inputSchema: the value does not fit "
              "the schema\"");
    r = wire_do(c, "2", "tools/call", CALL("give", GIVE("content", FITS)), NULL);
    assert_at(r, "error.message",
              "\"The tool made a result that does not fit its outputSchema: the value "
              "does not fit the schema\"");
}

/* ---- results ---- */

static void a_result_that_does_not_fit_is_an_error(world *w)
{
    set_up(w);
    wire *c = world_connect(w, NULL);
    const char *r =
        wire_do(c, "1", "tools/call", CALL("give", GIVE("content", MISFITS)), NULL);
    assert_golden(r, "result_does_not_fit");
    assert_int_equal(ended, SEGUE_OK); /* the check came later */
    wire *old = legacy_connect(w, NULL, NULL);
    r = wire_do_plain(old, "2", "tools/call", CALL("give", GIVE("field", MISFITS)));
    assert_code(r, -32603);
    assert_int_equal(w->log_count, 2);
    assert_int_equal(runs, 2);
}

/* The merged result is checked, whatever was streamed before. */
static void what_came_in_pieces_is_checked_at_the_end(world *w)
{
    set_up(w);
    wire *c = world_connect(w, NULL);
    const char *r =
        wire_do(c, "1", "tools/call", CALL("give", GIVE("field", FITS)), NULL);
    assert_at(r, "result.content.0.text", "\"piece\"");
    assert_at(r, "result.content.1.text", "\"done\"");
    assert_at(r, "result.structuredContent", "{\"sum\":2}");
    r = wire_do(c, "2", "tools/call",
                CALL("give", GIVE("field", MISFITS) ",\"content\":\"" FITS "\""), NULL);
    /* the last structured content counts */
    assert_at(r, "result.structuredContent", "{\"sum\":2}");
    assert_int_equal(small_validations(SEGUE_VALIDATE_RESULT), 2);
}

static void a_task_fails(world *w)
{
    set_up(w);
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "give", GIVE("field", MISFITS), CAPS_TASKS);
    const char *r = wire_get_until(c, id, "failed", CAPS_TASKS);
    assert_at(r, "result.error.code", "-32603");
    id = wire_make_task(c, "2", "give", GIVE("field", FITS), CAPS_TASKS);
    r = wire_get_until(c, id, "completed", CAPS_TASKS);
    assert_at(r, "result.result.structuredContent.sum", "2");
    wire *old = legacy_connect(w, NULL, MODES_ALL);
    const char *task = legacy_make_task(old, "3", "give", GIVE("content", MISFITS),
                                        "{\"responseModes\":[\"task\"]}");
    legacy_get_until(old, task, "failed");
    r = legacy_task(old, "4", "tasks/result", task, NULL);
    assert_code(r, -32603);
}

/* SEP-1905, immediate: a result of the first turn is the answer, checked or not. One that
 * does not fit makes the call fail as a task. */
static void an_immediate_result_is_checked(world *w)
{
    set_up(w);
    wire *old = legacy_connect(w, NULL, MODES_ALL);
    const char *r = legacy_call(old, "1", "give", GIVE("content", FITS),
                                "{\"responseModes\":[\"immediate\",\"task\"]}");
    assert_at(r, "result.structuredContent.sum", "2");
    const char *task = legacy_make_task(old, "2", "give", GIVE("content", MISFITS),
                                        "{\"responseModes\":[\"immediate\",\"task\"]}");
    legacy_get_until(old, task, "failed");
    assert_code(legacy_task(old, "3", "tasks/result", task, NULL), -32603);
}

static void errors_promise_nothing(world *w)
{
    set_up(w);
    wire *c = world_connect(w, NULL);
    const char *r =
        wire_do(c, "1", "tools/call", CALL("give", GIVE("error", "yes")), NULL);
    assert_at(r, "result.isError", "true");
    assert_at(r, "result.content.0.text", "\"done\"");
    assert_int_equal(small_validations(SEGUE_VALIDATE_RESULT), 0);
}

/* This check needs no validator. */
static void what_is_promised_has_to_be_there(world *w)
{
    set_up(w);
    wire *c = world_connect(w, NULL);
    const char *r = wire_do(c, "1", "tools/call", CALL("give", "\"a\":1"), NULL);
    assert_golden(r, "result_lacks_structure");
    assert_int_equal(ended, SEGUE_E_INVALID);
    r = wire_do(c, "2", "tools/call", CALL("give", GIVE("void", FITS)), NULL);
    assert_code(r, -32603); /* a replacement drops it, too */
    r = wire_do(c, "3", "tools/call", CALL("give", GIVE("field", MISFITS)), NULL);
    /* the result is not checked */
    assert_at(r, "result.structuredContent.sum", "\"two\"");
    const char *id = wire_make_task(c, "4", "give", "\"a\":1", CAPS_TASKS);
    assert_at(wire_get_until(c, id, "failed", CAPS_TASKS), "result.error.code", "-32603");
    assert_int_equal(w->log_count, 3);
}

static void nothing_follows_an_end_that_is_checked(world *w)
{
    set_up(w);
    wire *c = world_connect(w, NULL);
    const char *r =
        wire_do(c, "1", "tools/call",
                CALL("give", GIVE("content", FITS) ",\"more\":\"yes\""), NULL);
    assert_at(r, "result.structuredContent.sum", "2");
    assert_int_equal(tries_said, SEGUE_E_TERMINAL);
    wire_quiet(c);
}

static world *hooked;

static void pull_the_rug(void)
{
    assert_int_equal(segue_server_remove(hooked->server, SEGUE_ITEM_TOOL, "give"),
                     SEGUE_OK);
    segue_call_free(kept);
    kept = NULL;
}

static void call_and_item_may_go_meanwhile(world *w)
{
    set_up(w);
    wire *c = world_connect(w, NULL);
    hooked = w;
    small_validator_hook = pull_the_rug;
    const char *r =
        wire_do(c, "1", "tools/call",
                CALL("give", GIVE("content", FITS) ",\"keep\":\"yes\""), NULL);
    assert_at(r, "result.structuredContent.sum", "2");
    assert_null(kept);
    small_validator_hook = NULL;
}

static void give_up(void)
{
    segue_server_close(hooked->server);
}

static void the_server_may_close_meanwhile(world *w)
{
    set_up(w);
    wire *c = world_connect(w, NULL);
    hooked = w;
    small_validator_hook = give_up;
    wire_ask(c, "1", "tools/call", CALL("give", GIVE("content", FITS)), NULL);
    wire_until_closed(c);
    assert_null(small_validator_hook);
}

static void only_objects_are_given_before_2026_07_28(world *w)
{
    set_up(w);
    wire *c = world_connect(w, NULL);
    const char *r =
        wire_do(c, "1", "tools/call", CALL("list", GIVE("content", "[1]")), NULL);
    assert_at(r, "result.structuredContent", "[1]");
    wire *old = legacy_connect(w, NULL, NULL);
    r = wire_do_plain(old, "2", "tools/call", CALL("list", GIVE("content", "[1]")));
    assert_at(r, "result.structuredContent", "");
    assert_at(r, "result.content.0.text", "\"done\"");
}

/* ---- errors about schemas ---- */

static void only_objects_are_told_of_before_2026_07_28(world *w)
{
    set_up(w);
    wire *c = world_connect(w, NULL);
    const char *r = wire_do(c, "1", "tools/list", NULL, NULL);
    assert_non_null(strstr(r, "\"outputSchema\":{\"type\":\"array\"}"));
    wire *old = legacy_connect(w, NULL, MODES_ALL);
    r = wire_do_plain(old, "2", "tools/list", NULL);
    assert_null(strstr(r, "\"outputSchema\":{\"type\":\"array\"}"));
    assert_non_null(strstr(r, "\"outputSchema\":{\"type\":\"object\""));
    assert_non_null(strstr(r, "\"name\":\"list\""));
}

static void schemas_are_looked_at_when_a_tool_is_added(world *w)
{
    static const char *const bad[] = {
        "\"inputSchema\":{}",
        "\"inputSchema\":{\"type\":\"array\"}",
        "\"inputSchema\":{\"type\":[\"object\"]}",
        "\"inputSchema\":true",
        "\"inputSchema\":null",
        "\"outputSchema\":true",
        "\"outputSchema\":[]",
    };
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = give;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char json[200];
        segue_error *error = NULL;
        snprintf(json, sizeof json, "{\"name\":\"bad\",%s}", bad[i]);
        assert_int_equal(segue_server_add(w->server, SEGUE_ITEM_TOOL, json, strlen(json),
                                          &options, &error),
                         SEGUE_E_INVALID);
        assert_non_null(strstr(segue_error_read(error)->message, "bad"));
        segue_error_free(error);
    }
}

#define HERE ONLY_HERE
static const scenario scenarios[] = {
    {"arguments that fit reach the handler", arguments_that_fit_reach_the_handler, HERE,
     validates},
    {"arguments that do not fit are an error of the tool",
     arguments_that_do_not_fit_are_an_error_of_the_tool, HERE, validates},
    {"before 2025-11-25 they are an error of the protocol",
     before_2025_11_25_they_are_an_error_of_the_protocol, HERE | ONE_DRIVE, validates},
    {"a task ends with that error", a_task_ends_with_that_error, HERE, validates},
    {"what cannot be told is refused", what_cannot_be_told_is_refused, HERE | ONE_DRIVE,
     validates},
    {"a reason is not needed", a_reason_is_not_needed, HERE | ONE_DRIVE, validates_badly},
    {"a result that does not fit is an error", a_result_that_does_not_fit_is_an_error,
     HERE, validates},
    {"what came in pieces is checked at the end",
     what_came_in_pieces_is_checked_at_the_end, HERE, validates},
    {"a task fails", a_task_fails, HERE, validates},
    {"an immediate result is checked", an_immediate_result_is_checked, HERE, validates},
    {"errors promise nothing", errors_promise_nothing, HERE | ONE_DRIVE, validates},
    {"what is promised has to be there", what_is_promised_has_to_be_there, HERE, NULL},
    {"nothing follows an end that is checked", nothing_follows_an_end_that_is_checked,
     HERE | ONE_DRIVE, validates},
    {"call and item may go meanwhile", call_and_item_may_go_meanwhile, HERE | ONE_DRIVE,
     validates},
    /* Over HTTP a connection is no conversation. */
    {"the server may close meanwhile", the_server_may_close_meanwhile,
     HERE | ONE_DRIVE | NOT_HTTP, validates},
    {"only objects are given before 2026-07-28", only_objects_are_given_before_2026_07_28,
     HERE | ONE_DRIVE, validates},
    {"only objects are told of before 2026-07-28",
     only_objects_are_told_of_before_2026_07_28, HERE | ONE_DRIVE, NULL},
    {"schemas are looked at when a tool is added",
     schemas_are_looked_at_when_a_tool_is_added, HERE | ONE_DRIVE, NULL},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
