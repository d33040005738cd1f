/* The client against a server that the test plays: requests that are answered with
 * questions before they have a result (SEP-2322). */
#include "support/client_kit.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define ROUND(questions)                                                                 \
    "\"resultType\":\"input_required\",\"inputRequests\":{" questions "}"
#define QUESTION(key)                                                                    \
    "\"" key "\":{\"method\":\"elicitation/create\",\"params\":{\"message\":\"?\"}}"
#define STATE ",\"requestState\":\"s1\""
#define YES "{\"action\":\"accept\",\"content\":{}}"
#define DONE "\"resultType\":\"complete\",\"content\":[]"

static void answer(record *r, const char *key)
{
    assert_int_equal(record_answer(r, key, YES), SEGUE_OK);
}

static void the_retry_has_the_answers_and_the_state(void **state)
{
    (void)state;
    char id[16];
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = kit_start(&k, "tools/call",
                          "{\"name\":\"t\",\"arguments\":{\"a\":[1e400]},\"x\":7}", NULL);
    const char *line = kit_expect(&k, "tools/call");
    assert_at(line, "params.inputResponses", "");
    assert_at(line, "params.requestState", "");
    snprintf(id, sizeof id, "%s", json_at(line, "id"));
    kit_result(&k, line,
               ROUND(QUESTION("k1") "," QUESTION("k2")) ",\"requestState\":\"a\\u0062"
                                                        "\\\"\\\\ \xc3\xa9\"");
    assert_string_equal(r->log, "input k1 elicitation/create {\"message\":\"?\"}\n"
                                "input k2 elicitation/create {\"message\":\"?\"}\n");
    kit_expect_silence(&k);
    answer(r, "k2");
    kit_expect_silence(&k);
    assert_int_equal(segue_request_answer(r->request, "k2", YES, strlen(YES), NULL),
                     SEGUE_E_NOT_FOUND);
    answer(r, "k1");
    line = kit_expect(&k, "tools/call");
    assert_string_not_equal(json_at(line, "id"), id);
    assert_at(line, "params.inputResponses", "{\"k1\":" YES ",\"k2\":" YES "}");
    assert_at(line, "params.requestState", "\"a\\u0062\\\"\\\\ \xc3\xa9\"");
    assert_at(line, "params.arguments", "{\"a\":[1e400]}");
    assert_at(line, "params.x", "7");
    assert_true(*json_at(line, "params._meta"));
    kit_result(&k, line, DONE);
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

/* Each message of the request declares them, a retry with answers too. The next request
 * declares those of the session. In 2025-11-25 the session has declared its own. */
static void a_request_may_declare_other_capabilities(void **state)
{
    static const char declared[] = "\"io.modelcontextprotocol/clientCapabilities\":{"
                                   "\"sampling\":{\"tools\":{}}";
    (void)state;
    kit k = {0};
    segue_session_options own = SEGUE_SESSION_OPTIONS_INIT;
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    own.capabilities = "{\"roots\":{}}";
    options.capabilities = " {\"sampling\":{\"tools\":{}}} ";
    kit_begin_modern(&k, &own, SERVER_PLAIN);
    record *r = kit_start(&k, "tools/call", "{\"name\":\"t\"}", &options);
    const char *line = kit_expect(&k, "tools/call");
    assert_non_null(strstr(line, declared));
    assert_false(json_mentions(line, "roots"));
    assert_true(json_mentions(line, "io.modelcontextprotocol/tasks"));
    kit_result(&k, line, ROUND(QUESTION("k")));
    answer(r, "k");
    line = kit_expect(&k, "tools/call");
    assert_non_null(strstr(line, declared));
    kit_result(&k, line, DONE);
    assert_int_equal(r->status, SEGUE_OK);
    kit_call(&k, "t");
    line = kit_expect(&k, "tools/call");
    assert_true(json_mentions(line, "roots"));
    assert_false(json_mentions(line, "sampling"));
    kit_result(&k, line, DONE);
    kit_end(&k);

    k = (kit){0};
    kit_begin_2025(&k, &own, "{\"tools\":{}}");
    kit_start(&k, "tools/call", "{\"name\":\"t\"}", &options);
    line = kit_expect(&k, "tools/call");
    assert_false(json_mentions(line, "sampling"));
    kit_result(&k, line, "\"content\":[]");
    kit_end(&k);
}

static void capabilities_of_a_request_are_checked(void **state)
{
    static const char params[] = "{\"name\":\"t\"}";
    (void)state;
    kit k = {0};
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    options.capabilities = "[]";
    assert_int_equal(segue_request_start(k.session, "tools/call", params, strlen(params),
                                         &options, NULL, NULL, NULL),
                     SEGUE_E_INVALID);
    options.capabilities = "{";
    assert_int_equal(segue_request_start(k.session, "tools/call", params, strlen(params),
                                         &options, NULL, NULL, NULL),
                     SEGUE_E_JSON);
    kit_expect_silence(&k);
    kit_end(&k);
}

static void a_state_is_not_kept_beyond_its_round(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), ROUND(QUESTION("k")) STATE);
    answer(r, "k");
    const char *line = kit_expect(&k, "tools/call");
    assert_at(line, "params.requestState", "\"s1\"");
    /* The same key again, as another question, without a state. */
    kit_result(&k, line, ROUND(QUESTION("k")));
    answer(r, "k");
    line = kit_expect(&k, "tools/call");
    assert_at(line, "params.requestState", "");
    assert_at(line, "params.inputResponses", "{\"k\":" YES "}");
    /* A state alone: the client sends the request again at once, without answers. */
    kit_result(&k, line, "\"resultType\":\"input_required\",\"requestState\":\"s3\"");
    kit_advance(&k, 600);
    line = kit_expect(&k, "tools/call");
    assert_at(line, "params.requestState", "\"s3\"");
    assert_at(line, "params.inputResponses", "");
    /* Another request carries no state or answer of this one. */
    kit_call(&k, "u");
    const char *other = kit_expect(&k, "tools/call");
    assert_at(other, "params.requestState", "");
    kit_result(&k, other, DONE);
    kit_result(&k, line, DONE);
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

static void any_method_may_be_answered_so(void **state)
{
    static const char *const methods[] = {"prompts/get", "resources/read"};
    static const char *const params[] = {"{\"name\":\"p\"}", "{\"uri\":\"test://x\"}"};
    (void)state;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        kit k = {0};
        kit_begin_modern(&k, NULL, SERVER_PLAIN);
        record *r = kit_start(&k, methods[i], params[i], NULL);
        kit_result(&k, kit_expect(&k, methods[i]), ROUND(QUESTION("k")) STATE);
        answer(r, "k");
        const char *line = kit_expect(&k, methods[i]);
        assert_at(line, "params.inputResponses", "{\"k\":" YES "}");
        kit_result(&k, line, "\"resultType\":\"complete\"");
        assert_int_equal(r->status, SEGUE_OK);
        kit_end(&k);
    }
}

/* AS-74, R-2557-30: the task has questions of its own. */
static void rounds_then_a_task(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_TASKS);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), ROUND(QUESTION("k")) STATE);
    answer(r, "k");
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T"));
    const char *get = kit_expect(&k, "tasks/get");
    assert_false(json_mentions(get, "requestState"));
    kit_result(&k, get,
               TASK("T", "input_required") ","
                                           "\"inputRequests\":{" QUESTION("k") "}");
    assert_non_null(strstr(r->log, "status input_required -\ninput k "));
    answer(r, "k");
    const char *update = kit_expect(&k, "tasks/update");
    assert_at(update, "params.inputResponses", "{\"k\":" YES "}");
    kit_result(&k, update, "\"resultType\":\"complete\"");
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK("T", "completed") "," RESULT);
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

static segue_status refuse(kit *k, record *r, const char *key)
{
    segue_status status =
        segue_request_answer_error(r->request, key, -32603, "It fails", NULL, 0, NULL);
    kit_run(k);
    return status;
}

/* In 2026-07-28 an answer is a result; there are no errors. */
static void an_error_is_what_comes_nearest(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_TASKS);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"),
               ROUND(QUESTION("form") ",\"roots\":{\"method\":\"roots/list\"}"));
    assert_int_equal(refuse(&k, r, "other"), SEGUE_E_NOT_FOUND);
    assert_int_equal(refuse(&k, r, "roots"), SEGUE_E_UNSUPPORTED);
    assert_int_equal(refuse(&k, r, "form"), SEGUE_OK);
    assert_int_equal(refuse(&k, r, "form"), SEGUE_E_NOT_FOUND);
    kit_expect_silence(&k);
    assert_int_equal(
        segue_request_answer(r->request, "roots", "{\"roots\":[]}", 12, NULL), SEGUE_OK);
    kit_run(&k);
    const char *line = kit_expect(&k, "tools/call");
    assert_at(line, "params.inputResponses",
              "{\"form\":{\"action\":\"cancel\"},\"roots\":{\"roots\":[]}}");
    kit_result(&k, line, CREATED("T"));
    kit_result(&k, kit_expect(&k, "tasks/get"),
               TASK("T", "input_required") ",\"inputRequests\":{" QUESTION(
                   "form") ",\"m\":{\"method\":\"sampling/createMessage\"}}");
    assert_int_equal(refuse(&k, r, "m"), SEGUE_E_UNSUPPORTED);
    assert_int_equal(refuse(&k, r, "form"), SEGUE_OK);
    line = kit_expect(&k, "tasks/update");
    assert_at(line, "params.inputResponses", "{\"form\":{\"action\":\"cancel\"}}");
    kit_result(&k, line, "\"resultType\":\"complete\"");
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK("T", "completed") "," RESULT);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(refuse(&k, r, "m"), SEGUE_E_TERMINAL);
    kit_end(&k);
}

/* ---- limits and faults of a server ---- */

static void malformed_rounds_end_the_request(void **state)
{
    static const char *const bad[] = {
        "\"resultType\":\"input_required\"",
        ROUND(""),
        "\"resultType\":\"input_required\",\"inputRequests\":[]",
        "\"resultType\":\"input_required\",\"inputRequests\":null" STATE,
        ROUND(QUESTION("k")) ",\"requestState\":7",
        ROUND("\"k\":{\"params\":{}}"),
        ROUND("\"k\":{\"method\":7}"),
        ROUND("\"k\":{\"method\":\"roots/list\",\"params\":[]}"),
        ROUND("\"k\":0"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kit k = {0};
        kit_begin_modern(&k, NULL, SERVER_PLAIN);
        record *r = kit_call(&k, "t");
        kit_result(&k, kit_expect(&k, "tools/call"), "%s", bad[i]);
        assert_int_equal(r->status, SEGUE_E_PROTOCOL);
        kit_expect_silence(&k);
        kit_end(&k);
    }
}

static void rounds_are_limited(void **state)
{
    (void)state;
    for (int asks = 0; asks < 2; asks++) {
        kit k = {0};
        kit_begin_modern(&k, NULL, SERVER_PLAIN);
        record *r = kit_call(&k, "t");
        for (int i = 0; i < 10; i++) {
            assert_int_equal(r->completed, 0);
            kit_result(&k, kit_expect(&k, "tools/call"), "%s",
                       asks ? ROUND(QUESTION("k"))
                            : "\"resultType\":\"input_required\",\"requestState\":\"s\"");
            if (asks)
                answer(r, "k");
            else
                kit_advance(&k, 20000);
        }
        kit_result(&k, kit_expect(&k, "tools/call"), ROUND(QUESTION("k")));
        assert_int_equal(r->status, SEGUE_E_LIMIT);
        kit_end(&k);
    }
}

static void coming_again_takes_ever_longer(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    kit_call(&k, "t");
    for (int i = 0; i < 4; i++) {
        static const int waits[] = {0, 250, 500, 1000};
        kit_result(&k, kit_expect(&k, "tools/call"),
                   "\"resultType\":\"input_required\",\"requestState\":\"s\"");
        if (waits[i]) {
            kit_advance(&k, waits[i] * 8 / 10);
            kit_expect_silence(&k);
            kit_advance(&k, waits[i] * 4 / 10);
        }
    }
    kit_result(&k, kit_expect(&k, "tools/call"), DONE);
    kit_end(&k);
}

static void questions_are_limited(void **state)
{
    (void)state;
    size_t size = 1025 * 100;
    char *text = malloc(size);
    size_t used = 0;
    for (int i = 0; i < 1025; i++)
        used +=
            (size_t)snprintf(text + used, size - used,
                             "%s\"q%d\":{\"method\":\"roots/list\"}", i ? "," : "", i);
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), ROUND("%s"), text);
    assert_int_equal(r->status, SEGUE_E_LIMIT);
    assert_non_null(strstr(r->log, "input q1023 "));
    free(text);
    kit_end(&k);
}

static void nobody_to_ask(void **state)
{
    (void)state;
    segue_request_events events;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = kit_record(&k, &events);
    events.on_input = NULL;
    assert_int_equal(segue_request_start(k.session, "tools/call", "{\"name\":\"t\"}", 12,
                                         NULL, &events, &r->request, NULL),
                     SEGUE_OK);
    kit_run(&k);
    kit_result(&k, kit_expect(&k, "tools/call"), ROUND(QUESTION("k")) STATE);
    assert_int_equal(r->status, SEGUE_E_UNSUPPORTED);
    kit_expect_silence(&k);
    kit_end(&k);
}

/* ---- between rounds ---- */

static void cancel_and_timeout_between_rounds(void **state)
{
    (void)state;
    for (int times_out = 0; times_out < 2; times_out++) {
        segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
        kit k = {0};
        options.timeout_ms = 90000;
        kit_begin_modern(&k, NULL, SERVER_PLAIN);
        record *r = kit_start(&k, "tools/call", "{\"name\":\"t\"}", &options);
        kit_result(&k, kit_expect(&k, "tools/call"), ROUND(QUESTION("k")) STATE);
        kit_advance(&k, 80000); /* request_timeout_ms limits exchanges, and none is under
                             * way */
        assert_int_equal(r->completed, 0);
        if (times_out)
            kit_advance(&k, 20000);
        else
            assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
        kit_run(&k);
        assert_int_equal(r->status, times_out ? SEGUE_E_TIMEOUT : SEGUE_E_CANCELLED);
        assert_int_equal(segue_request_answer(r->request, "k", YES, strlen(YES), NULL),
                         SEGUE_E_TERMINAL);
        kit_expect_silence(&k);
        kit_end(&k);
    }
}

static void cancel_of_a_retry_is_told(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), ROUND(QUESTION("k")) STATE);
    answer(r, "k");
    char id[16];
    snprintf(id, sizeof id, "%s", json_at(kit_expect(&k, "tools/call"), "id"));
    segue_request_cancel(r->request);
    kit_run(&k);
    assert_at(kit_expect(&k, "notifications/cancelled"), "params.requestId", id);
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    kit_end(&k);
}

/* Nothing is in flight: the connection may break and come back, before or after the
 * answer. */
static void a_break_between_rounds_is_survived(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        kit k = {.can_reopen = 1};
        kit_begin_modern(&k, NULL, SERVER_PLAIN);
        record *r = kit_call(&k, "t");
        kit_result(&k, kit_expect(&k, "tools/call"), ROUND(QUESTION("k")) STATE);
        kit_cut(&k);
        if (!late)
            answer(r, "k");
        kit_advance(&k, 1000);
        kit_handshake(&k, SERVER_PLAIN);
        if (late)
            answer(r, "k");
        const char *line = kit_expect(&k, "tools/call");
        assert_at(line, "params.requestState", "\"s1\"");
        assert_at(line, "params.inputResponses", "{\"k\":" YES "}");
        kit_result(&k, line, DONE);
        assert_int_equal(r->status, SEGUE_OK);
        kit_end(&k);
    }
}

/* With a key the retry is sent again unchanged; without one the request ends. */
static void a_lost_retry(void **state)
{
    (void)state;
    for (int keyed = 0; keyed < 2; keyed++) {
        const char *server = keyed ? SERVER_STREAMS : SERVER_PLAIN;
        kit k = {.can_reopen = 1};
        kit_begin_modern(&k, NULL, server);
        record *r = kit_call(&k, "t");
        const char *line = kit_expect(&k, "tools/call");
        assert_int_equal(strstr(line, "dev.segue/idempotencyKey") != NULL, keyed);
        kit_result(&k, line, ROUND(QUESTION("k")) STATE);
        answer(r, "k");
        line = kit_expect(&k, "tools/call");
        assert_int_equal(strstr(line, "dev.segue/idempotencyKey") != NULL, keyed);
        kit_cut(&k);
        kit_advance(&k, 1000);
        kit_handshake(&k, server);
        if (keyed) {
            line = kit_expect(&k, "tools/call");
            assert_at(line, "params.requestState", "\"s1\"");
            assert_at(line, "params.inputResponses", "{\"k\":" YES "}");
            kit_result(&k, line, DONE);
        } else {
            kit_expect_silence(&k);
        }
        assert_int_equal(r->status, keyed ? SEGUE_OK : SEGUE_E_DISCONNECTED);
        kit_end(&k);
    }
}

static void drop_it(record *r, const char *key)
{
    (void)key;
    assert_int_equal(segue_request_answer(r->request, "k", YES, strlen(YES), NULL),
                     SEGUE_OK);
    record_drop(r);
}

static void cancel_it(record *r, const char *key)
{
    (void)key;
    segue_request_cancel(r->request);
}

static void answered_freed_and_cancelled_in_on_input(void **state)
{
    (void)state;
    for (int cancels = 0; cancels < 2; cancels++) {
        kit k = {0};
        kit_begin_modern(&k, NULL, SERVER_PLAIN);
        record *r = kit_call(&k, "t");
        r->on_input = cancels ? cancel_it : drop_it;
        kit_result(&k, kit_expect(&k, "tools/call"), ROUND(QUESTION("k")) STATE);
        if (!cancels)
            kit_result(&k, kit_expect(&k, "tools/call"), DONE);
        kit_run(&k);
        assert_int_equal(r->status, cancels ? SEGUE_E_CANCELLED : SEGUE_OK);
        kit_end(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"the retry has the answers and the state, and another id",
         the_retry_has_the_answers_and_the_state, 0, 0, 0},
        {"a request may declare other capabilities",
         a_request_may_declare_other_capabilities, 0, 0, 0},
        {"capabilities of a request are checked", capabilities_of_a_request_are_checked,
         0, 0, 0},
        {"a state is not kept beyond its round", a_state_is_not_kept_beyond_its_round, 0,
         0, 0},
        {"any method may be answered so", any_method_may_be_answered_so, 0, 0, 0},
        {"AS-74 rounds, then a task that asks by itself", rounds_then_a_task, 0, 0, 0},
        {"malformed rounds end the request", malformed_rounds_end_the_request, 0, 0, 0},
        {"an error as an answer is what comes nearest to it",
         an_error_is_what_comes_nearest, 0, 0, 0},
        {"rounds are limited to ten", rounds_are_limited, 0, 0, 0},
        {"coming again takes ever longer", coming_again_takes_ever_longer, 0, 0, 0},
        {"questions are limited", questions_are_limited, 0, 0, 0},
        {"without on_input it ends", nobody_to_ask, 0, 0, 0},
        {"cancel and timeout between rounds", cancel_and_timeout_between_rounds, 0, 0, 0},
        {"cancel of a retry is told", cancel_of_a_retry_is_told, 0, 0, 0},
        {"a break between rounds is survived", a_break_between_rounds_is_survived, 0, 0,
         0},
        {"a lost retry is sent again with its key", a_lost_retry, 0, 0, 0},
        {"answered, freed and cancelled in on_input",
         answered_freed_and_cancelled_in_on_input, 0, 0, 0},
    };
    return cmocka_run_group_tests_name("client_rounds", tests, NULL, NULL);
}
