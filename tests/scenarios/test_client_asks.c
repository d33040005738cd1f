/* The client against a server of the handshake eras that the test plays and that sends
 * requests of its own: over a pair and over HTTP. */
#include "support/http_script.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define YES "{\"action\":\"accept\",\"content\":{}}"
#define DONE "\"content\":[]"
#define ASK(id, more)                                                                    \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"elicitation/create\",\"params\":{"  \
    "\"message\":\"?\"" more "}}"

static void begin(kit *k, const char *capabilities, const char *version)
{
    segue_session_options options = kit_legacy_options();
    options.capabilities = capabilities;
    options.no_tasks = 1;
    kit_begin(k, &options);
    assert_at(kit_shake_hands(k, version, SERVER_PLAIN), "params.capabilities",
              capabilities ? capabilities : "{}");
}

/* Checks the client's answer to this id. */
static void assert_answer(kit *k, const char *id, const char *path, const char *value)
{
    const char *line = kit_heard(k);
    assert_non_null(line);
    assert_at(line, "id", id);
    assert_at(line, path, value);
    assert_at(line, "method", "");
}

static void each_revision_asks(void **state)
{
    static const char *const versions[] = {"2024-11-05", "2025-03-26", "2025-06-18",
                                           "2025-11-25"};
    (void)state;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        kit k = {0};
        begin(&k, "{\"elicitation\":{}}", versions[i]);
        record *r = kit_call(&k, "t");
        const char *call = kit_expect(&k, "tools/call");
        kit_say(&k, ASK("7", ""));
        assert_string_equal(r->log, "input 1:7 elicitation/create {\"message\":\"?\"}\n");
        kit_expect_silence(&k);
        assert_int_equal(record_answer(r, NULL, "[]"), SEGUE_E_INVALID);
        assert_int_equal(record_answer(r, NULL, YES), SEGUE_OK);
        assert_answer(&k, "7", "result", YES);
        assert_int_equal(record_answer(r, NULL, YES), SEGUE_E_NOT_FOUND);
        kit_expect_silence(&k);
        kit_result(&k, call, DONE);
        assert_int_equal(r->status, SEGUE_OK);
        kit_end(&k);
    }
}

/* As in 2026-07-28, an answer that does not fit the form is not sent, and the question
 * stays open. */
static void an_answer_fits_its_form(void **state)
{
    static const char form[] =
        ",\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":"
        "\"integer\"}},\"required\":[\"n\"]}";
    static const char fits[] = "{\"action\":\"accept\",\"content\":{\"n\":1}}";
    char line[512];
    kit k = {0};
    (void)state;
    begin(&k, "{\"elicitation\":{}}", "2025-11-25");
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    snprintf(line, sizeof line, ASK("7", "%s"), form);
    kit_say(&k, line);
    assert_int_equal(record_answer(r, NULL, YES), SEGUE_E_INVALID);
    assert_int_equal(
        record_answer(r, NULL, "{\"action\":\"accept\",\"content\":{\"n\":\"x\"}}"),
        SEGUE_E_INVALID);
    kit_expect_silence(&k);
    assert_int_equal(record_answer(r, NULL, fits), SEGUE_OK);
    assert_answer(&k, "7", "result", fits);
    kit_say(&k, line);
    assert_answer(&k, "7", "result", fits);
    kit_result(&k, call, DONE);
    kit_end(&k);
}

/* R-975-16: a question that is sent again has the same id, and gets the same answer. */
static void a_repeat_gets_the_same_answer(void **state)
{
    (void)state;
    kit k = {0};
    begin(&k, "{\"elicitation\":{}}", "2025-11-25");
    record *r = kit_call(&k, "t");
    kit_expect(&k, "tools/call");
    kit_say(&k, ASK("\"a\\u0062\"", ""));
    kit_say(&k, ASK("\"ab\"", "")); /* the same id, spelled differently */
    kit_expect_silence(&k);
    record_answer(r, NULL, YES);
    assert_answer(&k, "\"ab\"", "result", YES);
    kit_say(&k, ASK("\"ab\"", ""));
    assert_answer(&k, "\"ab\"", "result", YES);
    assert_null(strstr(strstr(r->log, "input") + 1, "input"));
    kit_end(&k);
}

/* A restarted server counts its ids from the beginning. An answer of the user to its
 * first question, now or later, must not answer the second. */
static void an_id_that_is_used_again_asks_anew(void **state)
{
    char first[64];
    (void)state;
    kit k = {0};
    begin(&k, "{\"elicitation\":{}}", "2025-11-25");
    record *r = kit_call(&k, "t");
    kit_expect(&k, "tools/call");
    kit_say(&k, ASK("1", ",\"n\":1"));
    snprintf(first, sizeof first, "%s", r->last_key);
    kit_say(&k, ASK("1", ",\"n\":2"));
    assert_string_not_equal(r->last_key, first);
    assert_int_equal(record_answer(r, first, YES), SEGUE_E_NOT_FOUND);
    kit_expect_silence(&k);
    assert_int_equal(record_answer(r, NULL, YES), SEGUE_OK);
    assert_answer(&k, "1", "result", YES);
    snprintf(first, sizeof first, "%s", r->last_key);
    kit_say(&k, ASK("1", ",\"n\":3")); /* question 1 has its answer */
    assert_string_not_equal(r->last_key, first);
    kit_expect_silence(&k);
    assert_int_equal(record_answer(r, NULL, YES), SEGUE_OK);
    assert_answer(&k, "1", "result", YES);
    kit_end(&k);
}

static segue_status refuse(kit *k, record *r, const char *data)
{
    segue_status status =
        segue_request_answer_error(r->request, r->last_key, -32603, "The \"model\" fails",
                                   data, data ? strlen(data) : 0, NULL);
    kit_run(k);
    return status;
}

static void an_error_may_be_the_answer(void **state)
{
    (void)state;
    kit k = {0};
    begin(&k, "{\"elicitation\":{}}", "2025-11-25");
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    kit_say(&k, ASK("7", ""));
    assert_int_equal(refuse(&k, r, "{"), SEGUE_E_JSON);
    assert_int_equal(
        segue_request_answer_error(r->request, r->last_key, 1, "\xff", NULL, 0, NULL),
        SEGUE_E_INVALID);
    kit_expect_silence(&k);
    assert_int_equal(refuse(&k, r, "{\"a\":[1e400]}"), SEGUE_OK);
    assert_answer(&k, "7", "error",
                  "{\"code\":-32603,\"message\":\"The \\\"model\\\" fails\","
                  "\"data\":{\"a\":[1e400]}}");
    assert_int_equal(refuse(&k, r, NULL), SEGUE_E_NOT_FOUND);
    assert_int_equal(record_answer(r, NULL, YES), SEGUE_E_NOT_FOUND);
    kit_say(&k, ASK("7", "")); /* the question comes again, from a replay */
    assert_answer(&k, "7", "error.code", "-32603");
    kit_say(&k, ASK("8", ""));
    assert_int_equal(refuse(&k, r, NULL), SEGUE_OK);
    const char *line = kit_heard(&k);
    assert_at(line, "result", "");
    assert_at(line, "error.data", "");
    kit_result(&k, call, DONE);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(refuse(&k, r, NULL), SEGUE_E_TERMINAL);
    kit_end(&k);
}

/* Each allocation of the answer fails once: the question stays open, and can be
 * answered. */
static void without_memory_for_an_error_the_question_stays(void **state)
{
    (void)state;
    bool refused = true;
    for (size_t n = 1; refused; n++) {
        kit k = {0};
        begin(&k, "{\"elicitation\":{}}", "2025-11-25");
        record *r = kit_call(&k, "t");
        const char *call = kit_expect(&k, "tools/call");
        kit_say(&k, ASK("7", ""));
        test_mem_rearm(&k.mem);
        k.mem.fail_at = n;
        segue_status status =
            segue_request_answer_error(r->request, r->last_key, -1, "no", NULL, 0, NULL);
        refused = k.mem.failed > 0;
        test_mem_rearm(&k.mem);
        assert_true(status == SEGUE_OK || (refused && status == SEGUE_E_NOMEM));
        if (status == SEGUE_OK && !refused) {
            kit_run(&k);
            assert_answer(&k, "7", "error.code", "-1");
            kit_result(&k, call, DONE);
            assert_int_equal(r->status, SEGUE_OK);
        }
        kit_end(&k);
    }
}

static void a_withdrawn_one_is_not_answered(void **state)
{
    (void)state;
    kit k = {0};
    begin(&k, "{\"elicitation\":{}}", "2025-11-25");
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    kit_say(&k, ASK("7", ""));
    kit_say(&k, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
                "\"requestId\":7}}");
    assert_int_equal(record_answer(r, NULL, YES), SEGUE_E_NOT_FOUND);
    kit_say(&k, ASK("7", "")); /* the question comes again late, from a replay */
    kit_expect_silence(&k);
    assert_int_equal(k.notifications, 0);
    kit_result(&k, call, DONE);
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

static void what_cannot_be_asked_is_refused(void **state)
{
    (void)state;
    kit k = {0};
    begin(&k, "{\"elicitation\":{}}", "2025-11-25");
    kit_say(&k, ASK("1", ""));
    /* no request is open that could take it */
    assert_answer(&k, "1", "error.code", "-32603");
    kit_call(&k, "t");
    kit_expect(&k, "tools/call");
    kit_say(&k, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"roots/list\"}");
    assert_answer(&k, "2", "error.code", "-32601"); /* this method was not declared */
    kit_say(&k, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tasks/get\"}");
    assert_answer(&k, "3", "error.code", "-32601");
    kit_say(&k, ASK("4", ",\"mode\":\"url\""));
    assert_answer(&k, "4", "error.code", "-32602");
    kit_say(&k, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}");
    assert_answer(&k, "5", "result", "{}");
    kit_say(&k, ASK("6", ",\"mode\":\"riddle\""));
    assert_answer(&k, "6", "error.code", "-32602");
    kit_end(&k);
}

/* A client that declares only one mode is not asked in the other. */
static void a_mode_that_was_not_declared_is_refused(void **state)
{
    static const char *const declared[] = {"form", "url"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        kit k = {0};
        char capabilities[64];
        snprintf(capabilities, sizeof capabilities, "{\"elicitation\":{\"%s\":{}}}",
                 declared[i]);
        begin(&k, capabilities, "2025-11-25");
        record *r = kit_call(&k, "t");
        kit_expect(&k, "tools/call");
        kit_say(&k, ASK("1", ""));
        kit_say(&k, ASK("2", ",\"mode\":\"form\""));
        kit_say(&k, ASK("3", ",\"mode\":\"url\""));
        if (declared[i][0] == 'u') {
            assert_answer(&k, "1", "error.code", "-32602");
            assert_answer(&k, "2", "error.code", "-32602");
            assert_non_null(strstr(r->log, ":3 elicitation/create"));
        } else {
            assert_answer(&k, "3", "error.code", "-32602");
            assert_non_null(strstr(r->log, ":2 elicitation/create"));
        }
        kit_expect_silence(&k);
        kit_end(&k);
    }
}

static void thinking_takes_no_time_of_the_exchange(void **state)
{
    (void)state;
    kit k = {0};
    begin(&k, "{\"elicitation\":{}}", "2025-11-25");
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    kit_say(&k, ASK("7", ""));
    kit_advance(&k, 300000);
    kit_expect_silence(&k);
    record_answer(r, NULL, YES);
    assert_answer(&k, "7", "result", YES);
    kit_result(&k, call, DONE);
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

static void a_task_asks_its_own_request(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = kit_legacy_options();
    options.capabilities = "{\"elicitation\":{}}";
    kit_begin(&k, &options);
    kit_handshake_2025(&k, SERVER_2025);
    record *older = kit_call(&k, "p");
    kit_list_tools(&k);
    kit_expect(&k, "tools/call");
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED_2025("T"));
    kit_advance(&k, 1200);
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK_2025("T", "input_required"));
    const char *fetch = kit_expect(&k, "tasks/result"); /* some servers ask only on its
                                                         * stream */
    kit_say(&k, ASK("7", "," RELATED("T")));
    assert_null(strstr(older->log ? older->log : "", "input"));
    assert_non_null(strstr(r->log, "input 1:7 elicitation/create"));
    record_answer(r, NULL, "{\"action\":\"decline\",\"_meta\":{\"x\":1}}");
    assert_answer(&k, "7", "result",
                  "{\"action\":\"decline\",\"_meta\":{\"x\":1,\"io.modelcontextprotocol/"
                  "related-task\":{\"taskId\":\"T\"}}}");
    kit_result(&k, fetch, DONE "," RELATED("T"));
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

/* ---- HTTP ---- */

/* The stream breaks after the question: the question comes again, and the application is
 * asked once. */
static void a_replay_asks_once(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options = kit_legacy_options();
    options.capabilities = "{\"elicitation\":{}}";
    script_begin(&s, &options);
    script_initialize(&s, "one");
    script_say(script_find(&s, "GET"), "405 Method Not Allowed", "", "");
    record *older = kit_call(&s.k, "u");
    heard *first = script_expect(&s, "tools/call");
    record *r = kit_call(&s.k, "t");
    heard *call = script_expect(&s, "tools/call");
    script_stream(first);
    script_stream(call);
    script_text(call, "id: p\r\ndata:\r\n\r\n");
    script_event(call, "a", ASK("7", ""));
    script_until(&s, r->log && strstr(r->log, "input 1:7"));
    assert_null(older->log && strstr(older->log, "input") ? older->log : NULL);
    script_cut(call, false);
    assert_int_equal(record_answer(r, NULL, YES), SEGUE_OK);
    heard *told = script_expect(&s, "");
    assert_at(told->body, "id", "7");
    assert_at(told->body, "result", YES);
    assert_header(told, "Mcp-Session-Id", "one");
    script_accept(told);
    script_advance(&s, 2000);
    heard *again = script_expect(&s, "GET");
    script_stream(again);
    script_event(again, "a", ASK("7", "")); /* the server had not received the answer
                                             * yet */
    told = script_expect(&s, "");
    assert_at(told->body, "id", "7");
    assert_at(told->body, "result", YES);
    script_accept(told);
    script_event(again, "b",
                 "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}",
                 json_at(call->body, "id"));
    script_finish(again);
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    assert_null(strstr(strstr(r->log, "input") + 1, "input"));
    segue_request_cancel(older->request);
    script_end(&s);
}

/* A malformed request of the server is refused, also when its id equals an id of the
 * client. When there is no memory to refuse it, the session closes. */
static void a_malformed_request_is_refused(void **state)
{
    static const char line[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"elicitation/"
                               "create\",\"params\":[]}\n";
    int told = 0;
    (void)state;
    for (size_t fails = 0; fails < 12; fails++) {
        kit k = {0};
        begin(&k, "{\"elicitation\":{}}", "2025-11-25");
        record *r = kit_call(&k, "t");
        assert_at(kit_expect(&k, "tools/call"), "id", "2");
        test_mem_rearm(&k.mem);
        k.mem.fail_at = fails; /* 0 = none */
        segue_transport_feed(k.transport, line, sizeof line - 1);
        kit_run(&k);
        test_mem_rearm(&k.mem);
        const char *answer = kit_heard(&k);
        if (answer) {
            assert_at(answer, "id", "2");
            assert_code(answer, -32600);
            assert_int_equal(r->completed, 0);
            told++;
        } else {
            assert_int_equal(k.closed, 1);
        }
        kit_end(&k);
    }
    assert_true(told >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_revision_asks),
        cmocka_unit_test(an_answer_fits_its_form),
        cmocka_unit_test(a_repeat_gets_the_same_answer),
        cmocka_unit_test(an_id_that_is_used_again_asks_anew),
        cmocka_unit_test(an_error_may_be_the_answer),
        cmocka_unit_test(without_memory_for_an_error_the_question_stays),
        cmocka_unit_test(a_withdrawn_one_is_not_answered),
        cmocka_unit_test(what_cannot_be_asked_is_refused),
        cmocka_unit_test(a_mode_that_was_not_declared_is_refused),
        cmocka_unit_test(thinking_takes_no_time_of_the_exchange),
        cmocka_unit_test(a_task_asks_its_own_request),
        cmocka_unit_test(a_replay_asks_once),
        cmocka_unit_test(a_malformed_request_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
