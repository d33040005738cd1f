/* Requests of a client against a server that the test plays: limits, timeouts, cancel,
 * the end of the session, messages that match no request, and handles that are freed in
 * callbacks. */
#include "support/client_kit.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define PLAIN "\"resultType\":\"complete\",\"content\":[]"

static segue_request_options request_options(void)
{
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    return options;
}

static segue_session_options session_options(void)
{
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    return options;
}

static record *call_with(kit *k, const segue_request_options *options)
{
    return kit_start(k, "tools/call", "{\"name\":\"t\"}", options);
}

static void a_call_that_asks_for_no_task_takes_as_long_as_its_handler(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options session = session_options();
    segue_request_options options = request_options();
    session.capabilities = "{\"elicitation\":{\"form\":{}},\"extensions\":{\"x\":{}}}";
    session.request_timeout_ms = 1000;
    kit_begin_modern(&k, &session, SERVER_PLAIN);
    options.no_task = 1;
    record *r = call_with(&k, &options);
    const char *call = kit_expect(&k, "tools/call");
    assert_non_null(strstr(call, "\"elicitation\":{\"form\":{}}"));
    assert_non_null(strstr(call, "\"extensions\":{\"x\":{}}"));
    kit_advance(&k, 100000);
    assert_int_equal(r->completed, 0);
    kit_result(&k, call, PLAIN);
    assert_int_equal(r->status, SEGUE_OK);
    options.capabilities = "{\"roots\":{}}";
    call_with(&k, &options);
    call = kit_expect(&k, "tools/call");
    assert_non_null(strstr(call, "\"roots\":{}"));
    assert_null(strstr(call, "elicitation"));
    assert_null(strstr(call, "io.modelcontextprotocol/tasks"));
    kit_call(&k, "t");
    call = kit_expect(&k, "tools/call");
    assert_non_null(strstr(call, "\"x\":{},\"io.modelcontextprotocol/tasks\":{}"));
    kit_end(&k);
}

/* ---- messages that match no request ---- */

/* AS-118: an answer without a request is dropped and counted. */
static void answers_nobody_waits_for_are_dropped(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    kit_say(&k, "{\"jsonrpc\":\"2.0\",\"id\":999,\"result\":{}}");
    kit_say(&k, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,"
                "\"message\":\"m\"}}");
    kit_say(&k, "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"result\":{}}", json_at(call, "id"));
    kit_say(&k, "{\"jsonrpc\":\"2.0\",\"id\":1e400,\"result\":{}}");
    kit_say(&k, "[]");
    kit_say(&k, "{\"jsonrpc\":\"2.0\"");
    kit_say(&k, "{}");
    assert_int_equal(r->completed, 0);
    kit_result(&k, call, PLAIN);
    assert_int_equal(r->status, SEGUE_OK);
    kit_result(&k, call, PLAIN); /* a second answer to the same call */
    kit_error(&k, call, -32603, NULL);
    kit_expect_silence(&k);
    kit_end(&k);
}

/* AS-118: the meaning is unclear, so the request ends. */
static void an_answer_with_result_and_error_is_malformed(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = kit_call(&k, "t");
    kit_say(&k,
            "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{},\"error\":{\"code\":1,"
            "\"message\":\"m\"}}",
            json_at(kit_expect(&k, "tools/call"), "id"));
    assert_int_equal(r->status, SEGUE_E_PROTOCOL);
    kit_end(&k);
}

static void notifications_of_no_request_go_to_the_session(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    kit_say(&k, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}");
    kit_say(&k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"params\":{\"a\":1}}");
    assert_int_equal(k.notifications, 2);
    assert_string_equal(k.last_notification, "notifications/x {\"a\":1}");
    kit_end(&k);
}

static void requests_of_the_server_are_refused_and_ping_is_answered(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    kit_say(&k, "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}");
    assert_at(kit_heard(&k), "id", "\"p\"");
    kit_say(&k, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"roots/list\",\"params\":{}}");
    const char *refused = kit_heard(&k);
    assert_at(refused, "id", "7");
    assert_code(refused, -32601);
    kit_end(&k);
}

/* ---- progress and log ---- */

static void progress_and_log_reach_the_request_that_asked(void **state)
{
    (void)state;
    kit k = {0};
    segue_request_options options = request_options();
    options.log_level = "info";
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = call_with(&k, &options);
    const char *call = kit_expect(&k, "tools/call");
    const char *token = json_at(call, "params._meta.progressToken");
    assert_true(*token != 0);
    assert_non_null(strstr(call, "\"io.modelcontextprotocol/logLevel\":\"info\""));
    kit_say(&k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
            "\"progressToken\":%s,\"progress\":1,\"total\":4,\"message\":\"m\"}}",
            token);
    kit_say(&k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
            "\"progressToken\":%s,\"progress\":2.5}}",
            token);
    kit_say(&k, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
                "\"progressToken\":\"other\",\"progress\":3}}");
    kit_say(&k, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{"
                "\"level\":\"info\",\"data\":1}}");
    kit_result(&k, call, PLAIN);
    kit_say(&k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
            "\"progressToken\":%s,\"progress\":4}}",
            token); /* too late */
    assert_string_equal(r->log,
                        "progress 1/4 m\nprogress 2.5/0 -\n"
                        "log {\"level\":\"info\",\"data\":1}\ncomplete SEGUE_OK\n");
    kit_end(&k);
}

/* ---- time ---- */

/* R-776-29: the time of a call is limited. */
static void a_server_that_does_not_answer_times_out(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = session_options();
    options.request_timeout_ms = 2000;
    kit_begin_modern(&k, &options, SERVER_PLAIN);
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    kit_advance(&k, 1900);
    assert_int_equal(r->completed, 0);
    kit_advance(&k, 200);
    assert_int_equal(r->status, SEGUE_E_TIMEOUT);
    const char *cancelled = kit_expect(&k, "notifications/cancelled");
    assert_at(cancelled, "params.requestId", json_at(call, "id"));
    kit_result(&k, call, PLAIN); /* a late answer is dropped */
    kit_end(&k);
}

static void progress_keeps_an_exchange_alive(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = session_options();
    options.request_timeout_ms = 2000;
    kit_begin_modern(&k, &options, SERVER_PLAIN);
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    for (int i = 1; i < 5; i++) {
        kit_advance(&k, 1500);
        kit_say(&k,
                "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
                "\"progressToken\":%s,\"progress\":%d}}",
                json_at(call, "params._meta.progressToken"), i);
    }
    assert_int_equal(r->completed, 0);
    kit_result(&k, call, PLAIN);
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

/* The timeout of the whole request either leaves the task alone or cancels it. */
static void a_timeout_leaves_or_cancels_the_task(void **state)
{
    (void)state;
    enum { LEAVES, CANCELS, CANCELS_IN_VAIN };
    for (int what = LEAVES; what <= CANCELS_IN_VAIN; what++) {
        kit k = {0};
        segue_request_options options = request_options();
        options.timeout_ms = 3000;
        options.on_timeout = what != LEAVES;
        kit_begin_modern(&k, NULL, SERVER_TASKS);
        record *r = call_with(&k, &options);
        kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T"));
        kit_expect(&k, "tasks/get");
        kit_advance(&k, 3100);
        assert_int_equal(r->completed, what == LEAVES);
        const char *cancel = what == LEAVES ? NULL : kit_expect(&k, "tasks/cancel");
        if (what == CANCELS)
            kit_result(&k, cancel, "\"resultType\":\"complete\"");
        else if (what == CANCELS_IN_VAIN)
            kit_advance(&k, 1000);
        assert_int_equal(r->status, SEGUE_E_TIMEOUT);
        kit_advance(&k, 100000);
        kit_expect_silence(&k);
        kit_end(&k);
    }
}

/* ---- cancel and detach ---- */

static void cancel_before_the_session_is_open_sends_nothing(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin(&k, NULL);
    record *r = kit_call(&k, "t");
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    assert_int_equal(r->completed, 0); /* on_complete never runs inside the call */
    kit_handshake(&k, SERVER_PLAIN);
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    assert_int_equal(segue_request_cancel(r->request), SEGUE_E_TERMINAL);
    kit_expect_silence(&k);
    kit_end(&k);
}

static void cancel_of_a_plain_call_withdraws_it(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    assert_int_equal(segue_request_detach(r->request), SEGUE_E_NOT_RESUMABLE);
    segue_request_cancel(r->request);
    assert_at(kit_expect(&k, "notifications/cancelled"), "params.requestId",
              json_at(call, "id"));
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    kit_result(&k, call, PLAIN);
    kit_end(&k);
}

/* The answer came whole, so there is nothing to discard. */
static void discard_leaves_a_plain_answer_whole(void **state)
{
    (void)state;
    kit k = {0};
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.discard = 1;
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = kit_start(&k, "tools/call", "{\"name\":\"t\"}", &options);
    kit_result(
        &k, kit_expect(&k, "tools/call"),
        "\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}]");
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 1);
    assert_string_equal(json_at(r->result, "content.0.text"), "\"x\"");
    kit_end(&k);
}

static void cancel_of_a_task_cancels_it_on_the_server(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_STREAMS);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T"));
    const char *stream = kit_expect(&k, "tasks/stream");
    kit_segment(&k, "T", 0, 1, "a");
    segue_request_cancel(r->request);
    const char *cancel = kit_expect(&k, "tasks/cancel");
    assert_at(cancel, "params.taskId", "\"T\"");
    kit_result(&k, cancel, "\"resultType\":\"complete\"");
    assert_at(kit_expect(&k, "notifications/cancelled"), "params.requestId",
              json_at(stream, "id"));
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    kit_segment(&k, "T", 1, 2, "b"); /* an event of the stream that is over */
    assert_int_equal(r->segments, 1);
    /* Segments that came are delivered with the error. */
    assert_at(r->result, "content", "[{\"type\":\"text\",\"text\":\"a\"}]");
    kit_end(&k);
}

static void a_task_cancelled_by_the_server_ends_as_cancelled(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_TASKS);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T"));
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK("T", "cancelled"));
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    kit_end(&k);
}

static void a_failed_task_ends_with_the_servers_error(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_TASKS);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T"));
    kit_result(&k, kit_expect(&k, "tasks/get"),
               TASK("T", "failed") ",\"error\":{\"code\":-32000,\"message\":\"oh\"}");
    assert_int_equal(r->status, SEGUE_E_REMOTE);
    assert_int_equal(r->rpc_code, -32000);
    assert_string_equal(r->message, "oh");
    kit_end(&k);
}

static void detach_leaves_the_task_and_its_token_good(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_TASKS);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T"));
    kit_expect(&k, "tasks/get");
    assert_int_equal(segue_request_detach(r->request), SEGUE_OK);
    kit_advance(&k, 5000);
    assert_int_equal(r->status, SEGUE_E_CLOSED);
    kit_expect_silence(&k);
    assert_int_equal(segue_request_detach(r->request), SEGUE_E_TERMINAL);
    record *again = kit_resume(&k, r->token, NULL);
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK("T", "completed") "," RESULT);
    assert_int_equal(again->status, SEGUE_OK);
    assert_int_equal(again->segments, 2);
    kit_end(&k);
}

/* ---- limits ---- */

static void no_more_requests_than_max_requests(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = session_options();
    segue_request *refused = NULL;
    options.max_requests = 2;
    kit_begin_modern(&k, &options, SERVER_PLAIN);
    kit_call(&k, "t");
    record *second = kit_call(&k, "t");
    assert_int_equal(
        segue_request_start(k.session, "tools/list", NULL, 0, NULL, NULL, &refused, NULL),
        SEGUE_E_LIMIT);
    assert_null(refused);
    kit_expect(&k, "tools/call");
    kit_result(&k, kit_expect(&k, "tools/call"), PLAIN);
    assert_int_equal(second->completed, 1);
    kit_start(&k, "tools/list", NULL, NULL);
    kit_expect(&k, "tools/list");
    kit_end(&k);
}

static void a_stream_larger_than_max_result_bytes_ends_and_cancels(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = session_options();
    options.max_result_bytes = 100;
    kit_begin_modern(&k, &options, SERVER_STREAMS);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T"));
    kit_expect(&k, "tasks/stream");
    for (int i = 0; i < 8 && !r->completed; i++)
        kit_segment(&k, "T", i, i + 1, "some text that fills it");
    assert_int_equal(r->status, SEGUE_E_TOO_LARGE);
    assert_non_null(strstr(r->message, "max_result_bytes is 100; raise the limit"));
    kit_expect(&k, "tasks/cancel");
    kit_end(&k);
}

/* ---- the end of the session ---- */

static void close_ends_everything_in_flight(void **state)
{
    (void)state;
    kit k = {0};
    segue_request *late = NULL;
    kit_begin_modern(&k, NULL, SERVER_STREAMS);
    record *streamed = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T"));
    kit_expect(&k, "tasks/stream");
    kit_segment(&k, "T", 0, 1, "a");
    record *waiting = kit_call(&k, "t");
    record *listing = kit_start(&k, "tools/list", NULL, NULL);
    assert_int_equal(segue_session_close(k.session), SEGUE_OK);
    assert_int_equal(segue_session_close(k.session), SEGUE_OK);
    assert_int_equal(
        segue_request_start(k.session, "tools/list", NULL, 0, NULL, NULL, &late, NULL),
        SEGUE_E_CLOSED);
    kit_run(&k);
    assert_int_equal(streamed->status, SEGUE_E_CLOSED);
    assert_int_equal(waiting->status, SEGUE_E_CLOSED);
    assert_int_equal(listing->status, SEGUE_E_CLOSED);
    assert_int_equal(k.closed, 1);
    assert_int_equal(k.closed_status, SEGUE_OK);
    kit_end(&k);
}

static void a_loss_that_is_final_ends_the_session_with_its_reason(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = kit_call(&k, "t");
    kit_cut(&k);
    assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
    assert_int_equal(k.closed, 1);
    assert_int_equal(k.closed_status, SEGUE_E_DISCONNECTED);
    kit_end(&k);
}

/* ---- freeing in callbacks ---- */

static void drop_session(record *r)
{
    segue_session_free(r->k->session);
    r->k->session = NULL;
}

static void drop_in_input(record *r, const char *key)
{
    (void)key;
    record_drop(r);
}

/* Freeing a handle does not cancel: the request goes on and ends. */
static void handles_may_be_freed_in_any_callback(void **state)
{
    (void)state;
    for (int where = 0; where < 5; where++) {
        kit k = {0};
        kit_begin_modern(&k, NULL, SERVER_TASKS);
        record *r = kit_call(&k, "t");
        r->on_task = where == 0 ? record_drop : NULL;
        r->on_input = where == 1 ? drop_in_input : NULL;
        r->on_segment = where == 2 ? record_drop : NULL;
        r->on_complete = where == 3 ? record_drop : where == 4 ? drop_session : NULL;
        kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T"));
        kit_result(&k, kit_expect(&k, "tasks/get"),
                   TASK("T", "input_required") ",\"inputRequests\":{\"k\":{\"method\":"
                                               "\"roots/list\",\"params\":{}}}");
        kit_advance(&k, 1200);
        kit_result(&k, kit_expect(&k, "tasks/get"), TASK("T", "completed") "," RESULT);
        assert_int_equal(r->status, SEGUE_OK);
        assert_int_equal(r->segments, 2);
        kit_end(&k);
    }
}

static void cancel_it(record *r)
{
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
}

static void close_session(record *r)
{
    assert_int_equal(segue_session_close(r->k->session), SEGUE_OK);
}

static void cancel_and_close_work_inside_callbacks(void **state)
{
    (void)state;
    for (int closes = 0; closes < 2; closes++) {
        kit k = {0};
        kit_begin_modern(&k, NULL, SERVER_STREAMS);
        record *r = kit_call(&k, "t");
        r->on_segment = closes ? close_session : cancel_it;
        kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T"));
        kit_expect(&k, "tasks/stream");
        kit_segment(&k, "T", 0, 1, "a");
        if (!closes)
            kit_result(&k, kit_expect(&k, "tasks/cancel"), "\"resultType\":\"complete\"");
        assert_int_equal(r->status, closes ? SEGUE_E_CLOSED : SEGUE_E_CANCELLED);
        kit_end(&k);
    }
}

static void start_another(record *r)
{
    segue_request_events events;
    record *other = kit_record(r->k, &events);
    assert_int_equal(segue_request_start(r->k->session, "tools/list", NULL, 0, NULL,
                                         &events, &other->request, NULL),
                     SEGUE_OK);
    assert_int_equal(other->completed, 0);
    r->user = other;
}

static void requests_may_be_started_in_callbacks(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = kit_call(&k, "t");
    r->on_complete = start_another;
    kit_result(&k, kit_expect(&k, "tools/call"), PLAIN);
    kit_result(&k, kit_expect(&k, "tools/list"), "\"tools\":[]");
    assert_int_equal(((record *)r->user)->status, SEGUE_OK);
    kit_end(&k);
}

#define CASE(text, fn)                                                                   \
    {                                                                                    \
        text, fn, NULL, NULL, NULL                                                       \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_asks_for_no_task_takes_as_long_as_its_handler),
        CASE("AS-118 answers without a request are dropped",
             answers_nobody_waits_for_are_dropped),
        CASE("AS-118 an answer with result and error is malformed",
             an_answer_with_result_and_error_is_malformed),
        cmocka_unit_test(notifications_of_no_request_go_to_the_session),
        cmocka_unit_test(requests_of_the_server_are_refused_and_ping_is_answered),
        cmocka_unit_test(progress_and_log_reach_the_request_that_asked),
        cmocka_unit_test(a_server_that_does_not_answer_times_out),
        cmocka_unit_test(progress_keeps_an_exchange_alive),
        cmocka_unit_test(a_timeout_leaves_or_cancels_the_task),
        cmocka_unit_test(cancel_before_the_session_is_open_sends_nothing),
        cmocka_unit_test(cancel_of_a_plain_call_withdraws_it),
        cmocka_unit_test(discard_leaves_a_plain_answer_whole),
        cmocka_unit_test(cancel_of_a_task_cancels_it_on_the_server),
        cmocka_unit_test(a_task_cancelled_by_the_server_ends_as_cancelled),
        cmocka_unit_test(a_failed_task_ends_with_the_servers_error),
        cmocka_unit_test(detach_leaves_the_task_and_its_token_good),
        cmocka_unit_test(no_more_requests_than_max_requests),
        cmocka_unit_test(a_stream_larger_than_max_result_bytes_ends_and_cancels),
        cmocka_unit_test(close_ends_everything_in_flight),
        cmocka_unit_test(a_loss_that_is_final_ends_the_session_with_its_reason),
        cmocka_unit_test(handles_may_be_freed_in_any_callback),
        cmocka_unit_test(cancel_and_close_work_inside_callbacks),
        cmocka_unit_test(requests_may_be_started_in_callbacks),
    };
    return cmocka_run_group_tests_name("client_calls", tests, NULL, NULL);
}
