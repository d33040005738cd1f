/* A client gives up a call that can be resumed (SEP-975) and has no idempotency key,
 * while it is not connected to its server. The next connection does not know the id of
 * the call until the call is resumed there. So the client resumes the call, and then
 * cancels it. */
#include "engine/client/request.h"
#include "engine/client/withdrawal.h"
#include "support/client_kit.h"
#include "support/http_script.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define CANCELLED "notifications/cancelled"
#define RESUME "requests/resume"
#define CAPS_SERVER "{\"tools\":{}}"
#define POLICY                                                                           \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/requests/resumePolicy\","           \
    "\"params\":{\"requestId\":%s,\"resumeToken\":\"to.ken\",\"minWait\":2}}"

static segue_session_options resumable_options(void)
{
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    options.era = SEGUE_ERA_LEGACY;
    options.dialects_on = SEGUE_DIALECT_RESUMABLE;
    options.capabilities = "{\"elicitation\":{}}";
    return options;
}

/* ---- over a byte stream ---- */

/* Makes a call whose policy has come; id: its JSON. */
static record *begin(kit *k, char id[32])
{
    segue_session_options options = resumable_options();
    *k = (kit){.can_reopen = 1};
    kit_begin_2025(k, &options, CAPS_SERVER);
    record *r = kit_call(k, "t");
    snprintf(id, 32, "%s", json_at(kit_expect(k, "tools/call"), "id"));
    kit_say(k, POLICY, id);
    kit_run(k);
    return r;
}

static const char *expect_resume(kit *k, const char *id)
{
    const char *again = kit_expect(k, RESUME);
    assert_at(again, "id", id);
    assert_at(again, "params.resumeToken", "\"to.ken\"");
    return again;
}

static void expect_cancel(kit *k, const char *id)
{
    assert_at(kit_expect(k, CANCELLED), "params.requestId", id);
}

typedef enum moment { WHILE_UP, WHILE_DOWN, BEFORE_THE_RESUME, MOMENTS } moment;

/* Breaks the connection, and gives the call up at this moment. */
static void give_up(kit *k, record *r, moment when, const char *id)
{
    if (when == WHILE_UP) {
        assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
        expect_cancel(k, id); /* the cancel is lost with the connection */
    }
    kit_cut(k);
    if (when == WHILE_DOWN)
        assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    kit_handshake_2025(k, CAPS_SERVER);
    if (when == BEFORE_THE_RESUME) {
        kit_expect_silence(k); /* minWait is not over */
        assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    }
    kit_run(k);
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
}

static void the_next_connection_resumes_and_cancels(void **state)
{
    (void)state;
    for (moment when = WHILE_UP; when < MOMENTS; when++) {
        char id[32];
        kit k;
        record *r = begin(&k, id);
        give_up(&k, r, when, id);
        expect_resume(&k, id);
        expect_cancel(&k, id);
        assert_int_equal(k.session->withdrawals.count, 1);
        kit_advance(&k, SGI_WITHDRAWAL_MS);
        assert_int_equal(k.session->withdrawals.count, 0);
        kit_expect_silence(&k);
        kit_end(&k);
    }
}

/* A connection that breaks may have lost messages. */
static void each_connection_is_told(void **state)
{
    (void)state;
    char id[32];
    kit k;
    record *r = begin(&k, id);
    give_up(&k, r, WHILE_DOWN, id);
    for (int i = 0; i < 3; i++) {
        expect_resume(&k, id);
        expect_cancel(&k, id);
        kit_cut(&k);
        kit_advance(&k, 1500); /* a server that answers nothing is tried with pauses */
        kit_handshake_2025(&k, CAPS_SERVER);
    }
    expect_resume(&k, id);
    expect_cancel(&k, id);
    kit_end(&k);
}

/* The withdrawal ends when the server knows that the call was cancelled, or the call has
 * ended. */
static void an_answer_to_the_resume_is_the_end(void **state)
{
    (void)state;
    for (int refuses = 0; refuses < 2; refuses++) {
        char id[32];
        kit k;
        record *r = begin(&k, id);
        give_up(&k, r, WHILE_UP, id);
        const char *again = expect_resume(&k, id);
        expect_cancel(&k, id);
        if (refuses)
            kit_error(&k, again, -32602, "{\"reason\":\"cancelled\"}");
        else
            kit_result(&k, again, "\"content\":[]");
        assert_int_equal(k.session->withdrawals.count, 0);
        kit_end(&k);
    }
}

/* A piece of the result does not end the withdrawal. */
static void a_piece_is_no_answer(void **state)
{
    (void)state;
    char id[32];
    kit k;
    record *r = begin(&k, id);
    give_up(&k, r, WHILE_DOWN, id);
    const char *again = expect_resume(&k, id);
    expect_cancel(&k, id);
    for (int i = 0; i < 2; i++) {
        kit_result(&k, again, "\"content\":[],\"_meta\":{\"hasMore\":true}");
        assert_int_equal(k.session->withdrawals.count, 1);
    }
    kit_result(&k, again, "\"content\":[]");
    assert_int_equal(k.session->withdrawals.count, 0);
    kit_end(&k);
}

/* There are several servers on one store, and the client has reached another one. */
static void the_server_that_runs_it_is_looked_for(void **state)
{
    (void)state;
    char id[32];
    kit k;
    record *r = begin(&k, id);
    give_up(&k, r, WHILE_DOWN, id);
    for (int i = 0; i < 3; i++) {
        const char *again = expect_resume(&k, id);
        expect_cancel(&k, id);
        kit_error(&k, again, -32603, "{\"reason\":\"elsewhere\",\"retryAfterMs\":1000}");
        kit_expect_silence(&k);
        kit_advance(&k, SGI_WITHDRAWAL_AGAIN_MS);
    }
    expect_resume(&k, id);
    expect_cancel(&k, id);
    kit_end(&k);
}

/* The application wants the call after all. */
static void a_resume_of_the_application_ends_it(void **state)
{
    (void)state;
    char id[32], token[4096];
    size_t len = sizeof token;
    kit k;
    record *r = begin(&k, id);
    assert_int_equal(segue_request_token(r->request, token, &len), SEGUE_OK);
    kit_cut(&k);
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    kit_run(&k);
    assert_int_equal(k.session->withdrawals.count, 1);
    r = kit_resume(&k, token, NULL);
    assert_int_equal(k.session->withdrawals.count, 0);
    kit_handshake_2025(&k, CAPS_SERVER);
    kit_advance(&k, 3000);
    kit_result(&k, expect_resume(&k, id), "\"content\":[]");
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

/* The time limit of a withdrawal counts while the server is away, too. */
static void it_is_told_for_so_long(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        char id[32];
        kit k;
        record *r = begin(&k, id);
        kit_cut(&k); /* the next server does not answer */
        assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
        kit_advance(&k, SGI_WITHDRAWAL_MS - !late);
        assert_int_equal(k.session->withdrawals.count, !late);
        assert_int_equal(strstr(k.last_warning, "the tool may still run") != NULL, late);
        kit_end(&k);
    }
}

/* Without a token the client cannot withdraw the call. */
static void a_call_without_a_policy_is_not_told(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    segue_session_options options = resumable_options();
    kit_begin_2025(&k, &options, CAPS_SERVER);
    record *r = kit_call(&k, "t");
    kit_expect(&k, "tools/call");
    kit_cut(&k);
    assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
    segue_request_cancel(r->request);
    kit_handshake_2025(&k, CAPS_SERVER);
    kit_expect_silence(&k);
    kit_end(&k);
}

/* ---- over HTTP ---- */

static void begin_session(http_script *s, const char *name)
{
    script_initialize(s, name);
    script_say(script_find(s, "GET"), "405 Method Not Allowed", "", "");
}

static record *begin_http(http_script *s, heard **call, char id[32])
{
    segue_session_options options = resumable_options();
    script_begin(s, &options);
    begin_session(s, "one");
    record *r = kit_call(&s->k, "t");
    *call = script_expect(s, "tools/call");
    snprintf(id, 32, "%s", json_at((*call)->body, "id"));
    script_stream(*call);
    script_event(*call, "1", POLICY, id);
    script_until(s, r->token[0]);
    return r;
}

/* The stream is not resumed, so the client must resume the call. */
static void break_stream(http_script *s, heard *call, const record *r)
{
    script_cut(call, false);
    script_say(script_expect(s, "GET"), "405 Method Not Allowed", "", "");
    script_until(s, !r->request->calling);
}

static heard *expect_cancel_in(http_script *s, const char *session, const char *id)
{
    heard *h = script_expect(s, CANCELLED);
    assert_at(h->body, "params.requestId", id);
    assert_header(h, "Mcp-Session-Id", session);
    return h;
}

static heard *expect_resume_in(http_script *s, const char *session, const char *id)
{
    heard *h = script_expect(s, RESUME);
    assert_at(h->body, "id", id);
    assert_at(h->body, "params.resumeToken", "\"to.ken\"");
    assert_header(h, "Mcp-Session-Id", session);
    return h;
}

/* The session of the call still exists, so the id of the call is enough. */
static void a_stream_that_broke(void **state)
{
    (void)state;
    http_script s;
    heard *call;
    char id[32];
    record *r = begin_http(&s, &call, id);
    break_stream(&s, call, r);
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    script_accept(expect_cancel_in(&s, "one", id));
    script_until(&s, r->completed && !s.k.session->withdrawals.count);
    script_advance(&s, SGI_WITHDRAWAL_MS);
    script_expect_silence(&s);
    script_end(&s);
}

/* The server has forgotten the session. The client resumes the call in the next session.
 * It cancels the call only when the server has begun to answer the resume, because two
 * messages over HTTP may overtake each other. */
static void a_session_that_is_forgotten(void **state)
{
    (void)state;
    http_script s;
    heard *call;
    char id[32];
    record *r = begin_http(&s, &call, id);
    break_stream(&s, call, r);
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    script_say(expect_cancel_in(&s, "one", id), "404 Not Found", "", "");
    begin_session(&s, "two");
    heard *again = expect_resume_in(&s, "two", id);
    script_expect_silence(&s);
    script_stream(again);
    script_accept(expect_cancel_in(&s, "two", id));
    script_until(&s, !s.k.session->withdrawals.count);
    script_until(&s, heard_is_closed(again));
    script_advance(&s, SGI_WITHDRAWAL_MS);
    script_expect_silence(&s);
    script_end(&s);
}

/* A server that answers the resume with JSON begins the answer only when the call has
 * ended. */
static void a_resume_that_is_silent(void **state)
{
    (void)state;
    http_script s;
    heard *call;
    char id[32];
    record *r = begin_http(&s, &call, id);
    break_stream(&s, call, r);
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    script_say(expect_cancel_in(&s, "one", id), "404 Not Found", "", "");
    begin_session(&s, "two");
    heard *again = expect_resume_in(&s, "two", id);
    for (int i = 0; i < 2; i++) {
        script_expect_silence(&s);
        script_advance(&s, SGI_WITHDRAWAL_AGAIN_MS);
        script_accept(expect_cancel_in(&s, "two", id));
    }
    script_error(again, "200 OK", -32602, "{\"reason\":\"cancelled\"}");
    script_until(&s, !s.k.session->withdrawals.count);
    script_end(&s);
}

/* The resume is lost, or refused for now. */
static void a_resume_that_does_not_arrive(void **state)
{
    (void)state;
    for (int cuts = 0; cuts < 2; cuts++) {
        http_script s;
        heard *call;
        char id[32];
        record *r = begin_http(&s, &call, id);
        break_stream(&s, call, r);
        assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
        script_say(expect_cancel_in(&s, "one", id), "404 Not Found", "", "");
        begin_session(&s, "two");
        heard *again = expect_resume_in(&s, "two", id);
        if (cuts)
            script_cut(again, true);
        else
            script_say(again, "503 Service Unavailable", "", "");
        script_expect_silence(&s);
        script_advance(&s, SGI_WITHDRAWAL_AGAIN_MS);
        again = expect_resume_in(&s, "two", id);
        script_stream(again);
        script_accept(expect_cancel_in(&s, "two", id));
        script_until(&s, !s.k.session->withdrawals.count);
        script_end(&s);
    }
}

/* A question of the call that comes while it is resumed belongs to no other request. */
static void a_question_of_the_call_is_asked_of_nobody(void **state)
{
    (void)state;
    http_script s;
    heard *call;
    char id[32];
    record *r = begin_http(&s, &call, id);
    break_stream(&s, call, r);
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    script_say(expect_cancel_in(&s, "one", id), "404 Not Found", "", "");
    begin_session(&s, "two");
    heard *again = expect_resume_in(&s, "two", id);
    record *other = kit_call(&s.k, "t");
    heard *other_call = script_expect(&s, "tools/call");
    script_stream(again);
    script_event(again, "2",
                 "{\"jsonrpc\":\"2.0\",\"id\":\"op:1\",\"method\":"
                 "\"elicitation/create\",\"params\":{\"message\":\"?\","
                 "\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}}");
    heard *answer = NULL;
    for (int i = 0; i < 2; i++) {
        heard *h = script_expect(&s, "");
        if (strstr(h->body, "\"op:1\""))
            answer = h;
        script_accept(h);
    }
    assert_non_null(answer);
    assert_code(answer->body, -32603);
    assert_null(other->last_key);
    script_result(other_call, "\"content\":[]");
    script_until(&s, other->completed);
    script_end(&s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        NAMED("R-975-12 the next connection resumes the call and cancels it",
              the_next_connection_resumes_and_cancels),
        NAMED("R-975-12 each connection is told", each_connection_is_told),
        NAMED("R-975-12 an answer to the resume is the end",
              an_answer_to_the_resume_is_the_end),
        cmocka_unit_test(a_piece_is_no_answer),
        NAMED("R-975-29 the server that runs the call is looked for",
              the_server_that_runs_it_is_looked_for),
        cmocka_unit_test(a_resume_of_the_application_ends_it),
        NAMED("R-975-12 it is told for so long", it_is_told_for_so_long),
        cmocka_unit_test(a_call_without_a_policy_is_not_told),
        NAMED("R-975-12 HTTP: a stream that broke", a_stream_that_broke),
        NAMED("R-975-12 HTTP: a session that is forgotten", a_session_that_is_forgotten),
        cmocka_unit_test(a_resume_that_is_silent),
        cmocka_unit_test(a_resume_that_does_not_arrive),
        NAMED("R-975-16 HTTP: a question of a call that was given up",
              a_question_of_the_call_is_asked_of_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
