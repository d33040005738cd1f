/* Losses over HTTP: requests that the library makes itself are sent again. Also what is
 * neither loss nor fault: bodies that no request waits for. */
#include "support/http_script.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "engine/client/questions.h"

#define TASK_TOOL                                                                        \
    "\"tools\":[{\"name\":\"t\",\"execution\":{\"taskSupport\":\"optional\"}}]"

static void begin_2025(http_script *s, int32_t max_reconnects)
{
    segue_session_options options = kit_legacy_options();
    options.max_reconnects = max_reconnects;
    options.request_timeout_ms = INT64_C(1000000000); /* the clock runs fast here */
    options.reconnect_timeout_ms = -1;
    script_begin(s, &options);
    script_initialize_with(s, "one", SERVER_2025);
    script_say(script_find(s, "GET"), "405 Method Not Allowed", "", "");
}

static void lose(heard *h, int how)
{
    switch (how) {
    case 0:
        script_say(h, "502 Bad Gateway", "Content-Type: text/html\r\n", "<p>no</p>");
        break;
    case 1:
        script_error(h, "503 Service Unavailable", -32603, NULL);
        break;
    default:
        script_cut(h, how == 2);
    }
}

/* Waits for tools/list, at once or after a pause. */
static heard *next_list(http_script *s)
{
    int64_t until = script_deadline();
    while (!script_next(s)) {
        script_advance(s, 50);
        script_check(until, "the next request", __FILE__, __LINE__);
    }
    return script_expect(s, "tools/list");
}

static void ends_as_a_task(http_script *s, record *r)
{
    heard *h = script_expect(s, "tools/call");
    assert_at(h->body, "params.task", "{}");
    script_result(h, "\"content\":[]");
    script_until(s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
}

/* 2025-11-25: the client decides whether a call is a task, and only the list of tools
 * tells. */
static void a_list_that_is_lost_is_asked_for_again(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++) {
        http_script s;
        begin_2025(&s, 0);
        record *r = kit_call(&s.k, "t");
        for (int i = 0; i < 3; i++)
            lose(next_list(&s), how);
        script_result(next_list(&s), TASK_TOOL);
        ends_as_a_task(&s, r);
        r = kit_call(&s.k, "t");
        ends_as_a_task(&s, r); /* the list is known and not asked for again */
        script_end(&s);
    }
}

static void a_list_that_stays_lost_fails_the_call(void **state)
{
    (void)state;
    http_script s;
    begin_2025(&s, 1);
    record *r = kit_call(&s.k, "t");
    lose(script_expect(&s, "tools/list"), 0);
    lose(script_expect(&s, "tools/list"), 0);
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
    assert_string_equal(
        r->message,
        "tools/call failed 2 times in a row (max_reconnects: 1): the client could not "
        "learn by tools/list whether the tool runs as a task: HTTP status 502");
    r = kit_call(&s.k, "t");
    script_result(script_expect(&s, "tools/list"), TASK_TOOL);
    ends_as_a_task(&s, r);
    r = kit_call(&s.k, "t");
    ends_as_a_task(&s, r);
    script_end(&s);
}

/* After a final refusal the list is not asked for again, and the call is not sent. */
static void a_list_that_is_refused_fails_the_call(void **state)
{
    (void)state;
    http_script s;
    begin_2025(&s, 0);
    record *r = kit_call(&s.k, "t");
    script_say(script_expect(&s, "tools/list"), "403 Forbidden", "", "");
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_E_REFUSED);
    assert_non_null(strstr(r->message, "tools/list"));
    script_expect_silence(&s);
    script_end(&s);
}

/* Some servers give the empty body of a 202 a content type, and some send a text
 * there. */
static void an_accepted_message_needs_no_body(void **state)
{
    (void)state;
    static const char *const bodies[] = {"", "null", "{\"status\":\"acc", " "};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        http_script s;
        begin_2025(&s, 0);
        record *r = kit_call(&s.k, "t");
        heard *list = script_expect(&s, "tools/list");
        segue_request_cancel(r->request);
        script_result(list, TASK_TOOL);
        script_until(&s, r->completed);
        r = kit_call(&s.k, "t");
        script_stream(script_expect(&s, "tools/call"));
        segue_request_cancel(r->request);
        script_say(script_expect(&s, "notifications/cancelled"), "202 Accepted",
                   "Content-Type: application/json\r\n", bodies[i]);
        script_until(&s, r->completed);
        script_expect_silence(&s);
        assert_string_equal(s.k.last_warning, "");
        script_end(&s);
    }
}

/* A request without an answer in the body fails once, with its own message and not with a
 * JSON error. */
static void an_answer_without_a_body_is_none(void **state)
{
    (void)state;
    static const char *const statuses[] = {"200 OK", "202 Accepted"};
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        http_script s;
        begin_2025(&s, 0);
        record *r = kit_start(&s.k, "ping", NULL, NULL);
        script_say(script_expect(&s, "ping"), statuses[i],
                   "Content-Type: application/json\r\n", "");
        script_until(&s, r->completed);
        assert_int_equal(r->status, SEGUE_E_PROTOCOL);
        assert_string_equal(r->message, "the answer of the server is invalid");
        assert_string_equal(s.k.last_warning, "");
        script_end(&s);
    }
}

/* ---- how long the client tries to reach a lost server ---- */

#define LIMIT_MS 5000

static segue_session_options limited(int64_t reconnect_timeout_ms)
{
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    options.reconnect_timeout_ms = reconnect_timeout_ms;
    return options;
}

/* Lets time pass until the condition holds; gives the time that passed. */
#define time_until(s, condition)                                                         \
    do {                                                                                 \
        int64_t patience_ = script_deadline();                                           \
        while (!(condition)) {                                                           \
            script_advance(s, 50);                                                       \
            script_check(patience_, #condition, __FILE__, __LINE__);                     \
        }                                                                                \
    } while (0)

static void a_server_that_is_never_there_is_given_up(void **state)
{
    (void)state;
    static const int64_t limits[][2] = {{LIMIT_MS, LIMIT_MS}, {0, 60000}};
    for (size_t i = 0; i < 2; i++) {
        http_script s;
        segue_session_options options = limited(limits[i][0]);
        script_prepare(&s);
        http_peer_close(&s.peer);
        script_connect(&s, &options);
        record *r = kit_call(&s.k, "t");
        int64_t begun = s.k.clock_ms;
        time_until(&s, s.k.closed && r->completed);
        assert_in_range(s.k.clock_ms - begun, limits[i][1], limits[i][1] + 1000);
        assert_int_equal(s.k.closed_status, SEGUE_E_DISCONNECTED);
        assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
        assert_non_null(strstr(s.k.closed_message, "(reconnect_timeout_ms)"));
        assert_in_range(s.k.retries, 3, 19);
        assert_int_equal(s.k.last_attempt, s.k.retries);
        assert_true(s.k.last_reason[0] != 0);
        assert_non_null(strstr(s.k.last_warning, "to reach the server again"));
        script_end(&s);
    }
}

/* A followed task: its request ends, the session does not. */
static void a_task_whose_server_is_gone_is_given_up(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options = limited(LIMIT_MS);
    script_begin(&s, &options);
    script_discover(&s, SERVER_TASKS);
    record *r = kit_call(&s.k, "t");
    script_result(script_expect(&s, "tools/call"), CREATED("T"));
    script_until(&s, r->token[0]);
    script_advance(&s, 1200);
    heard *get = script_expect(&s, "tasks/get");
    int64_t lost = s.k.clock_ms;
    http_peer_close(&s.peer);
    script_cut(get, true);
    time_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
    assert_non_null(strstr(r->message, "within 5000 ms (reconnect_timeout_ms)"));
    assert_in_range(s.k.clock_ms - lost, LIMIT_MS - 1000, LIMIT_MS + 1000);
    assert_in_range(s.k.retries, 3, 19);
    assert_memory_equal(s.k.last_reason, "tasks/get: ", 11);
    assert_int_equal(s.k.closed, 0);
    http_peer_reopen(&s.peer); /* with its token the task goes on, in the same session */
    record *again = kit_resume(&s.k, r->token, NULL);
    script_result(script_expect(&s, "tasks/get"), TASK("T", "completed") "," RESULT);
    script_until(&s, again->completed);
    assert_int_equal(again->status, SEGUE_OK);
    script_end(&s);
}

/* A stream and a poll that are lost together count as one loss. */
static void exchanges_that_are_lost_together_count_once(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options = limited(LIMIT_MS);
    script_begin(&s, &options);
    script_discover(&s, SERVER_STREAMS);
    s.k.clock_ms += 1000000; /* time before the loss does not count */
    record *r = kit_call(&s.k, "t");
    script_result(script_expect(&s, "tools/call"), CREATED("T"));
    heard *stream = script_expect(&s, "tasks/stream");
    script_stream(stream);
    script_event(stream, NULL, "%s",
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/event\","
                 "\"params\":{\"taskId\":\"T\",\"seq\":0,\"type\":\"dev.segue.status\","
                 "\"payload\":{\"status\":\"input_required\"}}}");
    heard *get = script_expect(&s, "tasks/get");
    int64_t lost = s.k.clock_ms;
    http_peer_close(&s.peer);
    script_cut(stream, true);
    script_cut(get, true);
    time_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
    assert_in_range(s.k.clock_ms - lost, LIMIT_MS - 1000, LIMIT_MS + 1000);
    script_end(&s);
}

/* 2025-11-25: a stream that is resumed by Last-Event-ID. */
static void a_stream_whose_server_is_gone_is_given_up(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options = kit_legacy_options();
    options.reconnect_timeout_ms = LIMIT_MS;
    script_begin(&s, &options);
    script_initialize(&s, "one");
    script_say(script_find(&s, "GET"), "405 Method Not Allowed", "", "");
    record *r = kit_call(&s.k, "t");
    heard *h = script_expect(&s, "tools/call");
    script_stream(h);
    script_text(h, "id: p\r\ndata:\r\n\r\n");
    script_pump(&s);
    script_expect_silence(&s);
    http_peer_close(&s.peer);
    int64_t lost = s.k.clock_ms;
    script_cut(h, true);
    time_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
    assert_non_null(strstr(r->message, "within 5000 ms (reconnect_timeout_ms)"));
    assert_in_range(s.k.clock_ms - lost, LIMIT_MS - 1000, LIMIT_MS + 1000);
    assert_in_range(s.k.retries, 3, 8);
    assert_memory_equal(s.k.last_reason, "tools/call: ", 12);
    script_end(&s);
}

/* 2025-11-25: the option limits the attempts to resume a stream; -1 = none. */
static void a_stream_is_resumed_max_reconnects_times(void **state)
{
    (void)state;
    static const int32_t limits[][2] = {{-1, 0}, {1, 1}, {3, 3}};
    for (size_t i = 0; i < 3; i++) {
        http_script s;
        begin_2025(&s, limits[i][0]);
        record *r = kit_call(&s.k, "t");
        script_result(script_expect(&s, "tools/list"), "\"tools\":[{\"name\":\"t\"}]");
        heard *h = script_expect(&s, "tools/call");
        script_stream(h);
        script_text(h, "id: p\r\ndata:\r\n\r\n");
        script_pump(&s);
        http_peer_close(&s.peer);
        script_cut(h, true);
        time_until(&s, r->completed);
        assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
        assert_int_equal(s.k.retries, limits[i][1]);
        if (limits[i][1])
            assert_non_null(strstr(r->message, "in a row (max_reconnects: "));
        script_end(&s);
    }
}

/* ---- how soon a server that comes back is found ---- */

/* Begins a call that waits for an answer of the server, and loses the answer. */
typedef heard *(*begin_fn)(http_script *s);

static heard *begin_look(http_script *s)
{
    script_begin(s, NULL);
    script_discover(s, SERVER_TASKS);
    kit_call(&s->k, "t");
    script_result(script_expect(s, "tools/call"), CREATED("T"));
    script_advance(s, 1200);
    return script_expect(s, "tasks/get");
}

static heard *begin_stream(http_script *s)
{
    script_begin(s, NULL);
    script_discover(s, SERVER_STREAMS);
    kit_call(&s->k, "t");
    script_result(script_expect(s, "tools/call"), CREATED("T"));
    heard *stream = script_expect(s, "tasks/stream");
    script_stream(stream);
    return stream;
}

static heard *begin_resumed_stream(http_script *s)
{
    segue_session_options options = kit_legacy_options();
    script_begin(s, &options);
    script_initialize(s, "one");
    script_say(script_find(s, "GET"), "405 Method Not Allowed", "", "");
    kit_call(&s->k, "t");
    heard *h = script_expect(s, "tools/call");
    script_stream(h);
    script_text(h, "id: p\r\ndata:\r\n\r\n");
    script_pump(s);
    script_expect_silence(s);
    return h;
}

/* Waits for the next request, at once or after a pause. */
static heard *next_try(http_script *s)
{
    int64_t until = script_deadline();
    while (!script_next(s)) {
        script_advance(s, 20);
        script_check(until, "the next request", __FILE__, __LINE__);
    }
    return script_expect(s, "");
}

/* Takes the server away for this time. Returns the time in ms after which the client has
 * found it again. dies_late: the system closes the connections of a killed process before
 * its listener, so the next try still finds a listener, and breaks. */
static int64_t found_after(begin_fn begin, int64_t outage_ms, bool dies_late)
{
    http_script s;
    heard *lost = begin(&s);
    if (dies_late) {
        script_cut(lost, true);
        lost = next_try(&s);
    }
    http_peer_close(&s.peer);
    script_cut(lost, true);
    int64_t back = s.k.clock_ms + outage_ms;
    int64_t step = outage_ms < 1000 ? 10 : outage_ms / 100;
    while (s.k.clock_ms < back)
        script_advance(&s, step);
    http_peer_reopen(&s.peer);
    int64_t until = script_deadline();
    while (!script_next(&s)) {
        script_advance(&s, step);
        script_check(until, "the server that is back", __FILE__, __LINE__);
    }
    int64_t found = s.k.clock_ms - back;
    assert_in_range(s.k.retries, 0, 9); /* probes are no attempts */
    script_end(&s);
    return found;
}

static void a_server_that_comes_back_is_found_soon(void **state)
{
    static const begin_fn begins[] = {begin_look, begin_stream, begin_resumed_stream};
    static const int64_t outages[] = {0, 100, 400, 900, 1500, 5000, 20000};
    (void)state;
    for (size_t b = 0; b < sizeof begins / sizeof *begins; b++)
        for (size_t i = 0; i < sizeof outages / sizeof *outages; i++) {
            int64_t most = outages[i] < 1000 ? 50 : outages[i] / 5;
            assert_in_range(found_after(begins[b], outages[i], false), 0, most);
            assert_in_range(found_after(begins[b], outages[i], true), 0, most);
        }
}

/* A server that breaks each connection, perhaps because of the request, gets at most two
 * requests for each counted attempt. */
static void a_server_that_breaks_each_connection_is_spared(void **state)
{
    static const begin_fn begins[] = {begin_look, begin_stream, begin_resumed_stream};
    /* attempts in four seconds: after 0, 250, 500, 1000 and 2000 ms; the stream has two
     * exchanges; the stream that is resumed is opened again each second */
    static const int32_t counted[] = {7, 11, 4};
    (void)state;
    for (size_t b = 0; b < sizeof begins / sizeof *begins; b++) {
        http_script s;
        heard *h = begins[b](&s);
        int64_t since = s.k.clock_ms;
        int32_t requests = 0;
        while (s.k.clock_ms < since + 4000) {
            script_cut(h, true);
            h = next_try(&s);
            requests++;
        }
        assert_in_range(requests, counted[b], 2 * counted[b]);
        script_end(&s);
    }
}

/* The server has said when to come again, so a connection that breaks is not followed by
 * a look before that time. */
static void a_server_that_names_a_time_gets_no_look(void **state)
{
    http_script s;
    (void)state;
    heard *h = begin_resumed_stream(&s);
    script_text(h, "retry: 3000\n\n");
    script_pump(&s);
    for (int i = 0; i < 3; i++) {
        script_cut(h, true);
        int64_t since = s.k.clock_ms;
        h = next_try(&s);
        assert_in_range(s.k.clock_ms - since, 3000, 3 * 30000);
    }
    script_end(&s);
}

static void ask(heard *get, const char *method)
{
    script_event(get, NULL,
                 "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"%s\","
                 "\"params\":{\"message\":\"?\",\"requestedSchema\":"
                 "{\"type\":\"object\",\"properties\":{}},\"_meta\":{"
                 "\"io.modelcontextprotocol/related-task\":{\"taskId\":\"U\"}}}}",
                 method);
}

/* Begins a session with a GET stream and a call. Returns the call. */
static record *begin_with_call(http_script *s, heard **get, heard **call)
{
    segue_session_options options = kit_legacy_options();
    options.capabilities = "{\"elicitation\":{}}";
    script_begin(s, &options);
    script_initialize_with(
        s, "one", "{\"tools\":{},\"experimental\":{\"dev.segue/idempotency\":{}}}");
    *get = script_expect(s, "GET");
    script_stream(*get);
    record *r = kit_call(&s->k, "t");
    *call = script_expect(s, "tools/call");
    return r;
}

/* The answer to a call is lost, and the server asks for the task that the call has made.
 * The client does not know the task yet. The lost call gets the question. */
static void a_lost_call_is_asked(void **state)
{
    (void)state;
    http_script s;
    heard *get, *call;
    record *r = begin_with_call(&s, &get, &call);
    script_say(call, "503 Service Unavailable", "Retry-After: 1\r\n", "");
    script_until(&s, s.k.retries);
    ask(get, "elicitation/create");
    script_until(&s, r->last_key);
    assert_int_equal(record_answer(r, NULL, "{\"action\":\"decline\"}"), SEGUE_OK);
    heard *h = script_expect(&s, "");
    assert_string_equal(json_at(h->body, "result.action"), "\"decline\"");
    script_accept(h);
    script_end(&s);
}

/* The client refuses a question, and the POST with the error is lost. The error goes
 * again, because the server waits for it. */
static void a_refusal_that_is_lost_goes_again(void **state)
{
    (void)state;
    http_script s;
    heard *get, *call;
    begin_with_call(&s, &get, &call);
    ask(get, "sampling/createMessage");
    for (int how = 0; how < 4; how++) {
        heard *h = script_expect(&s, "");
        assert_string_equal(json_at(h->body, "error.code"), "-32601");
        lose(h, how);
        script_advance(&s, 6000);
    }
    heard *h = script_expect(&s, "");
    assert_string_equal(json_at(h->body, "id"), "\"q\"");
    assert_string_equal(json_at(h->body, "error.code"), "-32601");
    script_accept(h);
    script_advance(&s, 6000);
    script_expect_silence(&s);
    script_end(&s);
}

/* The server asks in the answer to initialize, while a call waits for the session. The
 * error is sent at once. */
static void a_question_before_the_session_is_refused(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options = kit_legacy_options();
    script_begin(&s, &options);
    kit_call(&s.k, "t");
    heard *h = script_expect(&s, "initialize");
    script_stream(h);
    ask(h, "sampling/createMessage");
    h = script_expect(&s, "");
    assert_string_equal(json_at(h->body, "error.code"), "-32601");
    script_accept(h);
    script_end(&s);
}

/* A server that asks more than a request keeps, and takes each error. */
static void refusals_are_let_go(void **state)
{
    (void)state;
    http_script s;
    heard *get, *call;
    begin_with_call(&s, &get, &call);
    for (int i = 0; i < SGI_QUESTIONS_MAX / 2 + 2; i++) {
        script_event(get, NULL,
                     "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"roots/list\"}", i);
        script_accept(script_expect(&s, ""));
    }
    ask(get, "sampling/createMessage");
    lose(script_expect(&s, ""), 0);
    script_advance(&s, 6000);
    heard *h = script_expect(&s, "");
    assert_string_equal(json_at(h->body, "id"), "\"q\"");
    script_accept(h);
    script_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_is_never_there_is_given_up),
        cmocka_unit_test(a_task_whose_server_is_gone_is_given_up),
        cmocka_unit_test(exchanges_that_are_lost_together_count_once),
        cmocka_unit_test(a_stream_whose_server_is_gone_is_given_up),
        cmocka_unit_test(a_stream_is_resumed_max_reconnects_times),
        cmocka_unit_test(a_server_that_comes_back_is_found_soon),
        cmocka_unit_test(a_server_that_breaks_each_connection_is_spared),
        cmocka_unit_test(a_server_that_names_a_time_gets_no_look),
        cmocka_unit_test(a_lost_call_is_asked),
        cmocka_unit_test(a_refusal_that_is_lost_goes_again),
        cmocka_unit_test(a_question_before_the_session_is_refused),
        cmocka_unit_test(refusals_are_let_go),
        cmocka_unit_test(an_accepted_message_needs_no_body),
        cmocka_unit_test(an_answer_without_a_body_is_none),
        cmocka_unit_test(a_list_that_is_lost_is_asked_for_again),
        cmocka_unit_test(a_list_that_stays_lost_fails_the_call),
        cmocka_unit_test(a_list_that_is_refused_fails_the_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
