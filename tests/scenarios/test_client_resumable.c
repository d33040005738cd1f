/* A client of the handshake eras whose server told how to ask for an answer again
 * (SEP-975). The client does so when the connection breaks, and in another process. */
#include "engine/client/request.h"
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

#define CAPS_SERVER "{\"tools\":{}}"
#define PAUSE_MS 500 /* longer than the first pause between two connections */

static void options_of(segue_session_options *options)
{
    *options = SEGUE_SESSION_OPTIONS_INIT;
    options->era = SEGUE_ERA_LEGACY;
    options->dialects_on = SEGUE_DIALECT_RESUMABLE;
}

static void begin(kit *k)
{
    segue_session_options options;
    options_of(&options);
    k->can_reopen = 1;
    kit_begin_2025(k, &options, CAPS_SERVER);
}

static void begin_asked(kit *k)
{
    segue_session_options options;
    options_of(&options);
    options.capabilities = "{\"elicitation\":{}}";
    k->can_reopen = 1;
    kit_begin_2025(k, &options, CAPS_SERVER);
}

static void say_policy(kit *k, const char *call, const char *more)
{
    kit_say(k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/requests/resumePolicy\","
            "\"params\":{\"requestId\":%s,\"resumeToken\":\"to.ken\"%s}}",
            json_at(call, "id"), more);
}

static void say_progress(kit *k, const char *call, int value)
{
    kit_say(k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
            "\"progressToken\":%s,\"progress\":%d}}",
            json_at(call, "params._meta.progressToken"), value);
}

static void a_broken_call_is_resumed(void **state)
{
    (void)state;
    char id[32];
    kit k = {0};
    begin(&k);
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    snprintf(id, sizeof id, "%s", json_at(call, "id"));
    say_policy(&k, call, ",\"minWait\":3,\"maxWait\":60");
    say_progress(&k, call, 1);
    say_progress(&k, call, 2);
    kit_cut(&k);
    kit_handshake_2025(&k, CAPS_SERVER);
    kit_advance(&k, 2900);
    kit_expect_silence(&k); /* before minWait the client sends nothing */
    kit_advance(&k, 1000);
    const char *again = kit_expect(&k, "requests/resume");
    assert_at(again, "id", id);
    assert_at(again, "params.resumeToken", "\"to.ken\"");
    say_progress(&k, call, 1); /* a repeat: the application has it already */
    say_progress(&k, call, 2);
    say_progress(&k, call, 3);
    kit_result(&k, again, "\"content\":[{\"type\":\"text\",\"text\":\"x\"}]");
    assert_int_equal(r->status, SEGUE_OK);
    assert_string_equal(json_at(r->result, "content.0.text"), "\"x\"");
    kit_end(&k);
}

/* R-975-30: each new token is reported at once, even when no part of the answer has come.
 * A known token is not reported again. */
static void each_new_token_is_told_at_once(void **state)
{
    (void)state;
    char token[4096];
    kit first = {0}, second = {0};
    begin(&first);
    record *r = kit_call(&first, "t");
    const char *call = kit_expect(&first, "tools/call");
    say_policy(&first, call, "");
    kit_run(&first);
    assert_string_equal(r->log, "resumable\n");
    say_policy(&first, call, ",\"minWait\":1");
    say_progress(&first, call, 1);
    kit_run(&first);
    assert_string_equal(r->log, "resumable\nprogress 1/0 -\n");
    kit_say(&first,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/requests/resumePolicy\","
            "\"params\":{\"requestId\":%s,\"resumeToken\":\"an.other\"}}",
            json_at(call, "id"));
    kit_run(&first);
    assert_string_equal(r->log, "resumable\nprogress 1/0 -\nresumable\n");
    snprintf(token, sizeof token, "%s", r->token);
    kit_end(&first);

    begin(&second);
    r = kit_resume(&second, token, NULL);
    const char *again = kit_expect(&second, "requests/resume");
    assert_at(again, "params.resumeToken", "\"an.other\"");
    kit_result(&second, again, "\"content\":[]");
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&second);
}

/* A client that waits for the task is not told of a lesser token before. */
static void one_that_asks_for_a_task_tells_its_task(void **state)
{
    (void)state;
    kit k = {0};
    begin(&k);
    record *r = kit_start(&k, "tools/call", "{\"name\":\"t\",\"task\":{}}", NULL);
    const char *call = kit_expect(&k, "tools/call");
    assert_at(call, "params.task", "{}");
    say_policy(&k, call, "");
    say_progress(&k, call, 1);
    kit_run(&k);
    assert_string_equal(r->log, "progress 1/0 -\n");
    kit_end(&k);
}

static void a_refused_resume_ends_the_call(void **state)
{
    (void)state;
    kit k = {0};
    begin(&k);
    record *r = kit_call(&k, "t");
    say_policy(&k, kit_expect(&k, "tools/call"), "");
    kit_cut(&k);
    kit_handshake_2025(&k, CAPS_SERVER);
    kit_error(&k, kit_expect(&k, "requests/resume"), -32602, "{\"reason\":\"expired\"}");
    assert_int_equal(r->status, SEGUE_E_REMOTE);
    assert_int_equal(r->rpc_code, -32602);
    kit_end(&k);
}

/* The server asked, and the application answered while there was no connection. The
 * answer is sent when the server asks again, and the application is not asked twice
 * (R-975-16). */
static void an_answer_between_two_connections_is_kept(void **state)
{
    static const char yes[] = "{\"action\":\"accept\",\"content\":{}}";
    static const char question[] = "{\"jsonrpc\":\"2.0\",\"id\":\"op:1\",\"method\":"
                                   "\"elicitation/create\",\"params\":{\"message\":\"?\","
                                   "\"requestedSchema\":{\"type\":\"object\","
                                   "\"properties\":{}}}}";
    (void)state;
    kit k = {0};
    begin_asked(&k);
    record *r = kit_call(&k, "t");
    say_policy(&k, kit_expect(&k, "tools/call"), "");
    kit_say(&k, question);
    kit_run(&k);
    assert_non_null(r->last_key);
    kit_cut(&k); /* the client reconnects and is not connected yet */
    assert_int_equal(
        segue_request_answer(r->request, r->last_key, yes, sizeof yes - 1, NULL),
        SEGUE_OK);
    kit_run(&k);
    assert_int_equal(
        segue_request_answer(r->request, r->last_key, yes, sizeof yes - 1, NULL),
        SEGUE_E_NOT_FOUND); /* answered only once */
    kit_handshake_2025(&k, CAPS_SERVER);
    const char *again = kit_expect(&k, "requests/resume");
    kit_expect_silence(&k); /* this question was not asked here */
    kit_say(&k, question);
    const char *answer = kit_heard(&k);
    assert_at(answer, "id", "\"op:1\"");
    assert_at(answer, "result.action", "\"accept\"");
    kit_result(&k, again, "\"content\":[]");
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

/* Over a byte stream the client does not know which call a question belongs to. When the
 * call that it was given to ends, the server still gets an answer. */
static void a_question_ends_with_the_call_that_it_was_given_to(void **state)
{
    (void)state;
    kit k = {0};
    begin_asked(&k);
    record *first = kit_call(&k, "t");
    const char *one = kit_expect(&k, "tools/call");
    record *second = kit_call(&k, "t");
    const char *two = kit_expect(&k, "tools/call");
    say_policy(&k, one, "");
    say_policy(&k, two, "");
    kit_say(&k, "{\"jsonrpc\":\"2.0\",\"id\":\"op2:1\",\"method\":\"elicitation/create\","
                "\"params\":{\"message\":\"?\",\"requestedSchema\":{\"type\":\"object\","
                "\"properties\":{}}}}");
    kit_run(&k);
    assert_non_null(first->last_key);
    kit_result(&k, one, "\"content\":[]");
    const char *answer = kit_heard(&k);
    assert_at(answer, "id", "\"op2:1\"");
    assert_code(answer, -32603);
    kit_result(&k, two, "\"content\":[]");
    assert_int_equal(first->status, SEGUE_OK);
    assert_int_equal(second->status, SEGUE_OK);
    kit_end(&k);
}

/* The server refuses to answer now, for this reason, which ends after a while. */
static void refusals_pass(const char *data)
{
    kit k = {0};
    begin(&k);
    record *r = kit_call(&k, "t");
    say_policy(&k, kit_expect(&k, "tools/call"), "");
    kit_cut(&k);
    kit_handshake_2025(&k, CAPS_SERVER);
    for (int i = 0; i < 3; i++) {
        kit_error(&k, kit_expect(&k, "requests/resume"), -32603, data);
        kit_advance(&k, 800);
        kit_expect_silence(&k);
        kit_advance(&k, 400);
    }
    kit_result(&k, kit_expect(&k, "requests/resume"), "\"content\":[]");
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

/* There are several servers on one store, and the client has reached another one. */
static void a_call_that_runs_elsewhere_is_asked_for_again(void **state)
{
    (void)state;
    refusals_pass("{\"reason\":\"elsewhere\",\"retryAfterMs\":1000}");
}

static void a_call_that_the_store_cannot_read_is_asked_for_again(void **state)
{
    (void)state;
    refusals_pass("{\"reason\":\"store_failed\",\"retryAfterMs\":1000}");
    refusals_pass("{\"reason\":\"out_of_memory\",\"retryAfterMs\":1000}");
}

/* The client never reaches the right one. */
static void who_never_meets_it_is_told(void **state)
{
    (void)state;
    int asked = 0;
    kit k = {0};
    begin(&k);
    record *r = kit_call(&k, "t");
    say_policy(&k, kit_expect(&k, "tools/call"), "");
    kit_cut(&k);
    kit_handshake_2025(&k, CAPS_SERVER);
    for (; !r->completed && asked < 1000; asked++) {
        kit_error(&k, kit_expect(&k, "requests/resume"), -32603,
                  "{\"reason\":\"elsewhere\",\"retryAfterMs\":1000}");
        kit_advance(&k, 40000);
    }
    assert_int_equal(r->status, SEGUE_E_REMOTE);
    assert_int_equal(r->rpc_code, -32603);
    assert_in_range(asked, 3, 100);
    kit_end(&k);
}

static void bad_policies_are_passed_over(void **state)
{
    (void)state;
    kit k = {0};
    begin(&k);
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    kit_say(&k, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/requests/resumePolicy\","
                "\"params\":{\"requestId\":4711,\"resumeToken\":\"x\"}}");
    kit_say(&k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/requests/resumePolicy\","
            "\"params\":{\"requestId\":%s,\"resumeToken\":17}}",
            json_at(call, "id"));
    kit_cut(&k);
    assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
    kit_handshake_2025(&k, CAPS_SERVER);
    r = kit_call(&k, "t");
    call = kit_expect(&k, "tools/call");
    /* an invalid bound is ignored */
    say_policy(&k, call, ",\"minWait\":60,\"maxWait\":3");
    kit_cut(&k);
    kit_advance(&k, PAUSE_MS); /* no server has answered yet */
    kit_handshake_2025(&k, CAPS_SERVER);
    kit_result(&k, kit_expect(&k, "requests/resume"), "\"content\":[]");
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

static void a_token_is_good_in_another_process(void **state)
{
    (void)state;
    char token[4096], id[32];
    size_t len = sizeof token;
    kit first = {0}, second = {.chance = 99};
    begin(&first);
    record *r = kit_call(&first, "t");
    const char *call = kit_expect(&first, "tools/call");
    snprintf(id, sizeof id, "%s", json_at(call, "id"));
    assert_int_equal(segue_request_token(r->request, token, &len), SEGUE_E_NOT_RESUMABLE);
    say_policy(&first, call, ",\"maxWait\":60");
    len = sizeof token;
    assert_int_equal(segue_request_token(r->request, token, &len), SEGUE_OK);
    assert_int_equal(segue_request_detach(r->request), SEGUE_OK);
    kit_run(&first);
    assert_int_equal(r->status, SEGUE_E_CLOSED);
    kit_expect_silence(&first); /* the call was not cancelled */
    kit_end(&first);
    begin(&second);
    r = kit_resume(&second, token, NULL);
    const char *again = kit_expect(&second, "requests/resume");
    assert_at(again, "id", id);
    record *other = kit_call(&second, "t");
    call = kit_expect(&second, "tools/call");
    assert_string_not_equal(json_at(call, "id"), id);
    kit_result(&second, again, "\"content\":[]");
    assert_int_equal(r->status, SEGUE_OK);
    kit_result(&second, call, "\"content\":[]");
    assert_int_equal(other->status, SEGUE_OK);
    kit_end(&second);
}

static void say_pieces(kit *k, const char *id, int seq, int count, bool more)
{
    char content[512] = "";
    for (int i = 0; i < count; i++)
        snprintf(content + strlen(content), sizeof content - strlen(content),
                 "%s{\"type\":\"text\",\"text\":\"%d\"}", i ? "," : "", seq + i);
    kit_say(k,
            "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[%s],\"_meta\":{"
            "\"hasMore\":%s,\"index\":%d,\"dev.segue/seq\":%d}}}",
            id, content, more ? "true" : "false", seq - 1, seq);
}

/* Checks `after` of requests/resume, which says what the client has. */
static const char *expect_behind(kit *k, const char *after)
{
    const char *again = kit_expect(k, "requests/resume");
    const char *at = strstr(again, "\"dev.segue/after\":");
    assert_non_null(at);
    at += strlen("\"dev.segue/after\":");
    assert_int_equal(strspn(at, "0123456789"), strlen(after));
    assert_memory_equal(at, after, strlen(after));
    return again;
}

/* After a cut the client has everything. Another process has nothing, and segments that
 * were handled before are not shown again. */
static void a_token_has_the_position(void **state)
{
    (void)state;
    char token[4096], id[32];
    kit first = {0}, second = {.chance = 99};
    begin(&first);
    record *r = kit_call(&first, "t");
    const char *call = kit_expect(&first, "tools/call");
    snprintf(id, sizeof id, "%s", json_at(call, "id"));
    say_policy(&first, call, "");
    say_pieces(&first, id, 1, 3, true);
    kit_cut(&first);
    kit_handshake_2025(&first, CAPS_SERVER);
    expect_behind(&first, "3");
    say_pieces(&first, id, 4, 2, true);
    assert_int_equal(r->segments, 5);
    snprintf(token, sizeof token, "%s", r->token);
    kit_end(&first);
    begin(&second);
    r = kit_resume(&second, token, NULL);
    expect_behind(&second, "0");
    say_pieces(&second, id, 1, 4, true);
    say_pieces(&second, id, 5, 2, true);
    assert_string_equal(r->log, "segment 6 6\n");
    say_pieces(&second, id, 7, 1, false);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 2);
    assert_at(r->result, "content.0.text", "\"1\"");
    assert_at(r->result, "content.6.text", "\"7\"");
    kit_end(&second);
}

/* The server has dropped what was confirmed. This is a final error: it says what is
 * missing and what to do, each time the token is tried. */
static void what_is_gone_is_said_once_and_for_all(void **state)
{
    (void)state;
    static const struct {
        int first; /* the first segment that the server still has */
        const char *said;
    } rows[] = {
        {3, "segments 1 to 2 are no longer available here or at the server, so the "
            "result is incomplete: repeat the call without the token"},
        {9, "segments 1 to 8 are no longer available here or at the server, so the "
            "result is incomplete, and segments 6 to 8 did not come: repeat the call "
            "without the token"},
    };
    char token[4096], id[32];
    kit first = {0};
    begin(&first);
    record *r = kit_call(&first, "t");
    const char *call = kit_expect(&first, "tools/call");
    snprintf(id, sizeof id, "%s", json_at(call, "id"));
    say_policy(&first, call, "");
    say_pieces(&first, id, 1, 5, true);
    snprintf(token, sizeof token, "%s", r->token);
    kit_end(&first);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kit k = {.chance = 99};
        begin(&k);
        for (int tries = 0; tries < 2; tries++) {
            r = kit_resume(&k, token, NULL);
            expect_behind(&k, "0");
            say_pieces(&k, id, rows[i].first, 10 - rows[i].first, true);
            say_pieces(&k, id, 10, 1, false);
            assert_int_equal(r->status, SEGUE_E_INCOMPLETE);
            assert_string_equal(r->message, rows[i].said);
            assert_int_equal(r->retryable, 0);
            assert_int_equal(r->last_segment, 10);
            assert_int_equal(r->segments, rows[i].first > 6 ? 2 : 5);
        }
        kit_end(&k);
    }
}

static void say_placed(kit *k, const char *id, int n, int place, bool more)
{
    kit_say(k,
            "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\","
            "\"text\":\"%d\"}],\"_meta\":{\"dev.segue/seq\":%d,\"index\":%d%s}}}",
            id, n, n, place, more ? ",\"hasMore\":true" : "");
}

/* The same when remaining pieces extend blocks that are gone. */
static void what_goes_on_in_what_is_gone(void **state)
{
    (void)state;
    char token[4096], id[32];
    kit first = {0}, k = {.chance = 99};
    begin(&first);
    record *r = kit_call(&first, "t");
    const char *call = kit_expect(&first, "tools/call");
    snprintf(id, sizeof id, "%s", json_at(call, "id"));
    say_policy(&first, call, "");
    say_pieces(&first, id, 1, 2, true);
    snprintf(token, sizeof token, "%s", r->token);
    kit_end(&first);
    begin(&k);
    r = kit_resume(&k, token, NULL);
    expect_behind(&k, "0");
    say_placed(&k, id, 3, 0, true);
    say_placed(&k, id, 4, 2, true);
    say_placed(&k, id, 5, 1, true);
    say_placed(&k, id, 6, 2, false);
    assert_int_equal(r->status, SEGUE_E_INCOMPLETE);
    assert_string_equal(r->log, "segment 3 3\nsegment 4 4\nsegment 5 5\nsegment 6 6\n"
                                "complete SEGUE_E_INCOMPLETE\n");
    kit_end(&k);
}

/* R-975-31: the token is in no URL, no header, and only in the message that needs it. */
static void assert_only_in_bodies(const http_script *s, const char *token)
{
    int said = 0;
    for (const heard *h = s->all; h; h = h->next) {
        assert_null(strstr(h->text, token));
        if (!h->body || !strstr(h->body, token))
            continue;
        assert_string_equal(json_at(h->body, "method"), "\"requests/resume\"");
        said++;
    }
    assert_int_equal(said, 1);
}

static void over_http_the_position_goes_with_it(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options;
    options_of(&options);
    script_begin(&s, &options);
    script_initialize(&s, "one");
    script_say(script_find(&s, "GET"), "405 Method Not Allowed", "", "");
    record *r = kit_call(&s.k, "t");
    heard *h = script_expect(&s, "tools/call");
    char id[32];
    snprintf(id, sizeof id, "%s", json_at(h->body, "id"));
    script_stream(h);
    script_event(
        h, "1-1~aaaaaaaa~0",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/requests/resumePolicy\","
        "\"params\":{\"requestId\":%s,\"resumeToken\":\"to.ken\"}}",
        id);
    script_event(h, "1-2~aaaaaaaa~3",
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}");
    script_until(&s, s.k.notifications == 1);
    assert_string_equal(r->log, "resumable\n");
    assert_true(r->token[0]);
    script_cut(h, false);
    script_advance(&s, 1000);
    h = script_expect(&s, "GET"); /* the stream of the client's own session comes first */
    assert_header(h, "Last-Event-ID", "1-2~aaaaaaaa~3");
    script_say(h, "404 Not Found", "", ""); /* the server has forgotten the session */
    script_initialize(&s, "two");
    script_advance(&s, 1000);
    h = script_expect(&s, "requests/resume");
    assert_header(h, "Last-Event-ID", "1-2~aaaaaaaa~3");
    assert_header(h, "Mcp-Session-Id", "two");
    assert_string_equal(json_at(h->body, "id"), id);
    script_result(h, "\"content\":[]");
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    assert_only_in_bodies(&s, "to.ken");
    script_end(&s);
}

/* max_reconnects limits tries in a row that brought nothing. A new position counts as
 * something, a repeated one does not. */
static void a_call_that_gets_on_is_resumed_more_often(void **state)
{
    (void)state;
    for (int moves = 0; moves < 2; moves++) {
        http_script s;
        segue_session_options options;
        options_of(&options);
        options.max_reconnects = 3;
        script_begin(&s, &options);
        script_initialize(&s, "one");
        script_say(script_find(&s, "GET"), "405 Method Not Allowed", "", "");
        record *r = kit_call(&s.k, "t");
        heard *h = script_expect(&s, "tools/call");
        script_stream(h);
        script_event(h, "p",
                     "{\"jsonrpc\":\"2.0\",\"method\":"
                     "\"notifications/requests/resumePolicy\",\"params\":{"
                     "\"requestId\":%s,\"resumeToken\":\"to.ken\"}}",
                     json_at(h->body, "id"));
        int cuts = 0;
        while (cuts < 8) {
            char position[16];
            int told = s.k.notifications;
            snprintf(position, sizeof position, "p%d", moves ? cuts : 0);
            script_event(h, position,
                         "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}");
            script_until(&s, s.k.notifications > told);
            script_cut(h, false);
            cuts++;
            script_advance(&s, 40000);
            h = script_expect(&s, "GET");
            int32_t before = r->request->tries.failures;
            script_say(h, "405 Method Not Allowed", "", "");
            script_until(&s, r->completed || r->request->tries.failures != before);
            script_advance(&s, 40000);
            if (r->completed)
                break;
            h = script_expect(&s, "requests/resume");
            script_stream(h);
        }
        assert_int_equal(cuts, moves ? 8 : 4);
        if (moves) {
            script_stream_result(h, NULL, "\"content\":[]");
            script_until(&s, r->completed);
        }
        assert_int_equal(r->status, moves ? SEGUE_OK : SEGUE_E_DISCONNECTED);
        script_end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broken_call_is_resumed),
        NAMED("R-975-30 each new token is told at once", each_new_token_is_told_at_once),
        cmocka_unit_test(one_that_asks_for_a_task_tells_its_task),
        cmocka_unit_test(a_refused_resume_ends_the_call),
        NAMED("AS-98 R-975-16 an answer between two connections is kept",
              an_answer_between_two_connections_is_kept),
        NAMED("AS-98 a question ends with the call that it was given to",
              a_question_ends_with_the_call_that_it_was_given_to),
        NAMED("R-975-29 a call that runs elsewhere is asked for again",
              a_call_that_runs_elsewhere_is_asked_for_again),
        cmocka_unit_test(a_call_that_the_store_cannot_read_is_asked_for_again),
        NAMED("R-975-29 who never meets the server of its call is told",
              who_never_meets_it_is_told),
        cmocka_unit_test(bad_policies_are_passed_over),
        cmocka_unit_test(a_token_is_good_in_another_process),
        cmocka_unit_test(a_token_has_the_position),
        cmocka_unit_test(what_is_gone_is_said_once_and_for_all),
        NAMED("R-776-30 what goes on in what is gone", what_goes_on_in_what_is_gone),
        {"AS-108 over HTTP the position goes with it, and no header has the token",
         over_http_the_position_goes_with_it, NULL, NULL, NULL},
        cmocka_unit_test(a_call_that_gets_on_is_resumed_more_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
