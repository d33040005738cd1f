/* A client and the notifications that bring parts of the result of a plain call of
 * 2026-07-28 (SEP-2998). The test plays a server that also does what none should. */
#include "engine/client/request.h"
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

#define BLOCK(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define CONTENT(blocks) "\"content\":[" blocks "]"

static record *begin_modern(kit *k, const char **call, const char **token)
{
    kit_begin_modern(k, NULL, SERVER_PLAIN);
    record *r = kit_call(k, "t");
    *call = kit_expect(k, "tools/call");
    assert_non_null(strstr(*call, "\"partialResults\":{}"));
    *token = json_at(*call, "params._meta.partialResultToken");
    assert_true(**token);
    return r;
}

static void assert_ok(record *r, const char *content, const char *log)
{
    assert_int_equal(r->completed, 1);
    assert_int_equal(r->status, SEGUE_OK);
    assert_at(r->result, "content", content);
    assert_non_null(strstr(r->log, log));
}

typedef struct places {
    char text[256];
} places;

static void note_place(void *user, segue_request *request, const segue_segment *segment)
{
    places *p = user;
    (void)request;
    size_t used = strlen(p->text);
    snprintf(p->text + used, sizeof p->text - used, "%d@%d%s ",
             (int)segue_segment_read(segment)->number,
             (int)segue_segment_read(segment)->index,
             segue_segment_read(segment)->replaces ? "!" : "");
}

/* Makes a call whose segments are noted with their indices. */
static segue_request *call_noted(kit *k, places *p)
{
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    segue_request *request;
    events.user = p;
    events.on_segment = note_place;
    assert_int_equal(segue_request_start(k->session, "tools/call", "{\"name\":\"t\"}", 12,
                                         NULL, &events, &request, NULL),
                     SEGUE_OK);
    kit_run(k);
    return request;
}

#define TOO_LARGE(limit)                                                                 \
    "the result is too large: max_result_bytes is " limit                                \
    "; raise the limit in the session's options, or read the segments as they come and " \
    "do not collect them"

static void say_piece(kit *k, const char *token, const char *seq, const char *members)
{
    kit_say(k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/partial_result\","
            "\"params\":{\"partialResultToken\":%s,\"seq\":%s,%s}}",
            token, seq, members);
}

#define WHOLE                                                                            \
    "\"resultType\":\"complete\",\"content\":[" BLOCK("a") "," BLOCK("b") "," BLOCK(     \
        "c") "]"

static void notified(void **state)
{
    kit k = {0};
    const char *call, *token;
    (void)state;
    record *r = begin_modern(&k, &call, &token);
    say_piece(&k, token, "0", CONTENT(BLOCK("a")));
    say_piece(&k, token, "1", CONTENT(BLOCK("b")) ",\"final\":false");
    assert_string_equal(r->log, "segment 1 a\nsegment 2 b\n");
    kit_result(&k, call, WHOLE);
    assert_ok(r, "[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]", "segment 3 c\n");
    assert_int_equal(r->segments, 3);
    uint64_t warnings = k.session->engine->warnings;
    say_piece(&k, token, "2", CONTENT(BLOCK("c")));
    assert_int_equal(k.session->engine->warnings, warnings + 1);
    kit_end(&k);
}

/* One piece was lost on the way: the result is whole, and each segment comes once. */
static void with_a_hole(void **state)
{
    kit k = {0};
    const char *call, *token;
    (void)state;
    record *r = begin_modern(&k, &call, &token);
    say_piece(&k, token, "0", CONTENT(BLOCK("a")));
    say_piece(&k, token, "2", CONTENT(BLOCK("c")));
    assert_string_equal(r->log, "segment 1 a\n");
    assert_int_equal(r->request->delivery.holes, 1);
    kit_result(&k, call, WHOLE);
    assert_ok(r, "[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]",
              "segment 1 a\nsegment 2 b\nsegment 3 c\n");
    assert_int_equal(r->segments, 3);
    kit_end(&k);
}

/* As with responses: segments that came are delivered with the error. */
static void a_cut_leaves_what_was_notified(void **state)
{
    kit k = {0};
    const char *call, *token;
    (void)state;
    record *r = begin_modern(&k, &call, &token);
    say_piece(&k, token, "0", CONTENT(BLOCK("x")));
    say_piece(&k, token, "1", CONTENT(BLOCK("a")) ",\"_meta\":{\"dev.segue/replace\":1}");
    say_piece(&k, token, "2", CONTENT(BLOCK("b")));
    kit_cut(&k);
    assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
    assert_at(r->result, "content", "[" BLOCK("a") "," BLOCK("b") "]");
    kit_end(&k);
}

static void an_error_leaves_what_was_notified(void **state)
{
    kit k = {0};
    const char *call, *token;
    (void)state;
    record *r = begin_modern(&k, &call, &token);
    say_piece(&k, token, "0", CONTENT(BLOCK("a")));
    kit_error(&k, call, -32603, NULL);
    assert_int_equal(r->status, SEGUE_E_REMOTE);
    assert_at(r->result, "content", "[" BLOCK("a") "]");
    kit_end(&k);
}

/* Members beside the content come in pieces, too; nothing comes behind the last piece. */
static void members_are_notified(void **state)
{
    kit k = {0};
    const char *call, *token;
    (void)state;
    record *r = begin_modern(&k, &call, &token);
    say_piece(&k, token, "0", CONTENT(BLOCK("a")) ",\"structuredContent\":{\"n\":1}");
    say_piece(&k, token, "1", CONTENT(BLOCK("b")) ",\"structuredContent\":{\"n\":2}");
    say_piece(&k, token, "2", CONTENT(BLOCK("c")) ",\"final\":true");
    say_piece(&k, token, "3", CONTENT(BLOCK("d")));
    assert_string_equal(r->log, "segment 1 a\nsegment 2 b\nsegment 3 c\n");
    kit_cut(&k);
    assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
    assert_at(r->result, "content", "[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]");
    assert_at(r->result, "structuredContent", "{\"n\":2}");
    kit_end(&k);
}

static void notified_more_than_may_be(void **state)
{
    kit k = {0};
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    char seq[16];
    (void)state;
    options.max_result_bytes = 100;
    kit_begin_modern(&k, &options, SERVER_PLAIN);
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    const char *token = json_at(call, "params._meta.partialResultToken");
    for (int i = 0; i < 9 && !r->completed; i++) {
        snprintf(seq, sizeof seq, "%d", i);
        say_piece(&k, token, seq, CONTENT(BLOCK("a")));
    }
    assert_int_equal(r->status, SEGUE_E_TOO_LARGE);
    assert_string_equal(r->message, TOO_LARGE("100"));
    kit_expect(&k, "notifications/cancelled");
    kit_end(&k);
}

/* ---- pieces without content ---- */

/* R-776-29: a limited number of empty pieces may come in a row, and they do not keep a
 * call alive. */
static void empty_pieces(int bounded)
{
    kit k = {0};
    const char *call, *token;
    char seq[16];
    record *r = begin_modern(&k, &call, &token);
    if (bounded)
        k.session->max_empty_pieces = 3;
    for (int i = 0; i < 40 && !r->completed; i++) {
        snprintf(seq, sizeof seq, "%d", i);
        say_piece(&k, token, seq, i < 2 ? CONTENT(BLOCK("a")) : CONTENT(""));
        if (!bounded)
            kit_advance(&k, 10000);
    }
    assert_int_equal(r->status, bounded ? SEGUE_E_LIMIT : SEGUE_E_TIMEOUT);
    if (bounded)
        assert_non_null(strstr(r->message, "no content: at most 3"));
    assert_at(r->result, "content", "[" BLOCK("a") "," BLOCK("a") "]");
    kit_expect(&k, "notifications/cancelled");
    kit_end(&k);
}

static void empty_pieces_have_a_bound(void **state)
{
    (void)state;
    empty_pieces(1);
}

static void empty_pieces_are_silence(void **state)
{
    (void)state;
    empty_pieces(0);
}

static void malformed_notifications(void **state)
{
    static const char *const seqs[] = {"-1", "0.5", "\"0\"", "null", "1e300"};
    kit k = {0};
    const char *call, *token;
    (void)state;
    record *r = begin_modern(&k, &call, &token);
    uint64_t warnings = k.session->engine->warnings;
    for (size_t i = 0; i < sizeof seqs / sizeof *seqs; i++)
        say_piece(&k, token, seqs[i], CONTENT(BLOCK("x")));
    say_piece(&k, "\"other\"", "0", CONTENT(BLOCK("x")));
    say_piece(&k, "99999", "0", CONTENT(BLOCK("x")));
    say_piece(&k, token, "0", "\"content\":{}");
    assert_int_equal(k.session->engine->warnings, warnings + 8);
    say_piece(&k, token, "0", CONTENT(BLOCK("x"))); /* a repeat of the first piece */
    assert_int_equal(r->segments, 0);
    kit_result(&k, call, WHOLE);
    assert_int_equal(r->segments, 3);
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

#define INTO(index) ",\"_meta\":{\"dev.segue/index\":" index "}"
#define TWO BLOCK("content 1.") "," BLOCK("content 2.")
#define TWO_OF(segments)                                                                 \
    "\"resultType\":\"complete\"," CONTENT(                                              \
        TWO) ",\"_meta\":{\"dev.segue/segments\":" #segments "}"

/* A server that says which text a piece extends: the pieces have indices, and form one
 * text in the segments that remain when the answer does not come. */
static void notified_texts_go_on(void **state)
{
    kit k = {0};
    places p = {""};
    const char *call, *token;
    (void)state;
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    segue_request *request = call_noted(&k, &p);
    call = kit_expect(&k, "tools/call");
    token = json_at(call, "params._meta.partialResultToken");
    say_piece(&k, token, "0", CONTENT(BLOCK("con")));
    say_piece(&k, token, "1", CONTENT(BLOCK("tent 1.")) INTO("0"));
    say_piece(&k, token, "2", CONTENT(BLOCK("cont")) INTO("1"));
    say_piece(&k, token, "3", CONTENT(BLOCK("ent 2.")) INTO("1"));
    kit_result(&k, call, TWO_OF(4));
    assert_string_equal(p.text, "1@0 2@0 3@1 4@1 ");
    segue_request_free(request);
    kit_end(&k);
    k = (kit){0};
    record *r = begin_modern(&k, &call, &token);
    say_piece(&k, token, "0", CONTENT(BLOCK("con")));
    say_piece(&k, token, "1", CONTENT(BLOCK("cont")));
    say_piece(&k, token, "2", CONTENT(BLOCK("tent 1.")) INTO("0"));
    kit_cut(&k);
    assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
    assert_at(r->result, "content", "[" BLOCK("content 1.") "," BLOCK("cont") "]");
    kit_end(&k);
}

/* Its blocks are not the segments that were shown, so the result is shown whole in their
 * place. */
static void a_result_of_texts_that_went_on(void **state)
{
    kit k = {0};
    places p = {""};
    (void)state;
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    segue_request *request = call_noted(&k, &p);
    const char *call = kit_expect(&k, "tools/call");
    const char *token = json_at(call, "params._meta.partialResultToken");
    say_piece(&k, token, "0", CONTENT(BLOCK("con")));
    say_piece(&k, token, "2", CONTENT(BLOCK("cont")) INTO("1"));
    kit_result(&k, call, TWO_OF(4));
    assert_string_equal(p.text, "1@0 2@0! 3@1 ");
    segue_request_free(request);
    kit_end(&k);
}

/* After an invalid index no more segments are shown before the result. Nothing else
 * changes. */
static void notified_places_that_are_none(void **state)
{
    static const char *const bad[] = {
        CONTENT(BLOCK("x")) INTO("2"), CONTENT(BLOCK("x")) INTO("-1"),
        CONTENT(BLOCK("x")) INTO("\"0\""), CONTENT(BLOCK("x")) INTO("0.5"),
        CONTENT("{\"type\":\"image\"}") INTO("0")};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kit k = {0};
        const char *call, *token;
        record *r = begin_modern(&k, &call, &token);
        uint64_t warnings = k.session->engine->warnings;
        say_piece(&k, token, "0", CONTENT(BLOCK("a")));
        say_piece(&k, token, "1", bad[i]);
        say_piece(&k, token, "2", CONTENT(BLOCK("b")));
        assert_int_equal(r->segments, 1);
        assert_int_equal(k.session->engine->warnings, warnings + 1);
        kit_result(&k, call, WHOLE);
        assert_int_equal(r->segments, 3);
        assert_int_equal(r->status, SEGUE_OK);
        kit_end(&k);
    }
}

/* ---- when the client does not ask ---- */

static void switched_off(void **state)
{
    kit k = {0};
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    (void)state;
    options.dialects_off = SEGUE_DIALECT_PARTIAL_RESULTS;
    kit_begin_modern(&k, &options, SERVER_PLAIN);
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    assert_null(strstr(call, "partialResult"));
    kit_result(&k, call, "\"resultType\":\"complete\"," CONTENT(BLOCK("a")));
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

static void a_list_does_not_ask(void **state)
{
    kit k = {0};
    (void)state;
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    kit_start(&k, "tools/list", "{}", NULL);
    const char *request = kit_expect(&k, "tools/list");
    assert_null(strstr(request, "partialResultToken"));
    kit_result(&k, request, "\"tools\":[]");
    kit_end(&k);
}

/* ---- segments that come again (R-776-18, C-9) ---- */

static void say_text(kit *k, const char *call, const char *seq, const char *text)
{
    kit_say(k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/partial_result\","
            "\"params\":{\"partialResultToken\":%s,\"seq\":%s,\"content\":[{\"type\":"
            "\"text\",\"text\":\"%s\"}]}}",
            json_at(call, "params._meta.partialResultToken"), seq, text);
}

#define COMPLETE(blocks) "\"resultType\":\"complete\",\"content\":[" blocks "]"

static void after_a_cut(void **state)
{
    kit k = {.can_reopen = 1};
    (void)state;
    kit_begin_modern(&k, NULL, SERVER_STREAMS);
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    say_text(&k, call, "0", "a");
    say_text(&k, call, "1", "b");
    kit_cut(&k);
    kit_handshake(&k, SERVER_STREAMS);
    call = kit_expect(&k, "tools/call");
    say_text(&k, call, "0", "a");
    say_text(&k, call, "1", "b");
    say_text(&k, call, "2", "c");
    assert_string_equal(r->log, "segment 1 a\nsegment 2 b\nsegment 3 c\n");
    kit_result(&k, call, COMPLETE(BLOCK("a") "," BLOCK("b") "," BLOCK("c")));
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 3);
    kit_end(&k);
}

/* The call is sent again and fails, before or behind the segments that came already: the
 * error comes with all of them. */
static void a_second_exchange_that_fails(void **state)
{
    static const char *const wanted[] = {
        "[" BLOCK("a") "," BLOCK("b") "]", "[" BLOCK("a") "," BLOCK("b") "]",
        "[" BLOCK("a") "," BLOCK("b") "]",
        "[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "]"};
    static const char *const texts[] = {"a", "b", "c"};
    (void)state;
    for (int again = 0; again <= 3; again++) {
        kit k = {.can_reopen = 1};
        char number[16];
        kit_begin_modern(&k, NULL, SERVER_STREAMS);
        record *r = kit_call(&k, "t");
        const char *call = kit_expect(&k, "tools/call");
        say_text(&k, call, "0", "a");
        say_text(&k, call, "1", "b");
        kit_cut(&k);
        kit_handshake(&k, SERVER_STREAMS);
        call = kit_expect(&k, "tools/call");
        for (int i = 0; i < again; i++) {
            snprintf(number, sizeof number, "%d", i);
            say_text(&k, call, number, texts[i]);
        }
        kit_error(&k, call, -32603, NULL);
        assert_int_equal(r->status, SEGUE_E_REMOTE);
        assert_at(r->result, "content", wanted[again]);
        kit_end(&k);
    }
}

/* The piece that replaced the first two segments was lost. */
static void replaced_unseen(void **state)
{
    kit k = {0};
    (void)state;
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    say_text(&k, call, "0", "a");
    say_text(&k, call, "3", "d");
    kit_result(
        &k, call,
        COMPLETE(BLOCK("c") "," BLOCK("d")) ",\"_meta\":{\"dev.segue/replace\":2}");
    assert_non_null(strstr(r->log, "segment 3 c\nsegment 4 d\n"));
    assert_int_equal(r->segments, 3);
    kit_end(&k);
}

static void after_a_token(void **state)
{
    kit first = {0}, second = {0};
    char token[4096];
    size_t len = sizeof token;
    (void)state;
    kit_begin_modern(&first, NULL, SERVER_STREAMS);
    record *r = kit_call(&first, "t");
    const char *call = kit_expect(&first, "tools/call");
    say_text(&first, call, "0", "a");
    assert_int_equal(segue_request_token(r->request, token, &len), SEGUE_OK);
    kit_end(&first);
    kit_begin_modern(&second, NULL, SERVER_STREAMS);
    r = kit_resume(&second, token, NULL);
    r->last_segment = 1;
    call = kit_expect(&second, "tools/call");
    say_text(&second, call, "0", "a");
    say_text(&second, call, "1", "b");
    kit_result(&second, call, COMPLETE(BLOCK("a") "," BLOCK("b")));
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 1);
    assert_non_null(strstr(r->log, "segment 2 b\n"));
    kit_end(&second);
}

static void as_a_task(void **state)
{
    kit k = {0};
    (void)state;
    kit_begin_modern(&k, NULL, SERVER_STREAMS);
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    say_text(&k, call, "0", "a");
    kit_result(&k, call, CREATED("T"));
    const char *stream = kit_expect(&k, "tasks/stream");
    kit_segment(&k, "T", 0, 1, "a");
    kit_segment(&k, "T", 1, 2, "b");
    kit_result(&k, stream, FINAL);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 2);
    assert_at(r->result, "content", "[" BLOCK("a") "," BLOCK("b") "]");
    kit_end(&k);
}

static void a_task_that_fails(kit *k, record *r)
{
    (void)r;
    kit_result(k, kit_expect(k, "tasks/stream"),
               "\"resultType\":\"complete\",\"_meta\":{\"dev.segue/final\":{\"status\":"
               "\"failed\"}}");
    kit_result(k, kit_expect(k, "tasks/get"),
               TASK("T", "failed") ",\"error\":{\"code\":-32603,\"message\":\"oh\"}");
}

static void a_task_that_is_unknown(kit *k, record *r)
{
    (void)r;
    kit_error(k, kit_expect(k, "tasks/stream"), -32602, NULL);
    kit_error(k, kit_expect(k, "tasks/get"), -32602, NULL);
}

static void a_task_that_is_cut_off(kit *k, record *r)
{
    (void)r;
    kit_expect(k, "tasks/stream");
    kit_cut(k);
}

static void a_task_that_is_cancelled(kit *k, record *r)
{
    kit_expect(k, "tasks/stream");
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    kit_run(k);
    kit_result(k, kit_expect(k, "tasks/cancel"), "\"resultType\":\"complete\"");
}

/* The call becomes a task and ends before its stream has brought anything. */
static void what_came_before_the_task(void **state)
{
    static const struct {
        void (*end)(kit *k, record *r);
        segue_status status;
    } ends[] = {{a_task_that_fails, SEGUE_E_REMOTE},
                {a_task_that_is_unknown, SEGUE_E_TASK_LOST},
                {a_task_that_is_cut_off, SEGUE_E_DISCONNECTED},
                {a_task_that_is_cancelled, SEGUE_E_CANCELLED}};
    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        kit k = {0};
        kit_begin_modern(&k, NULL, SERVER_STREAMS);
        record *r = kit_call(&k, "t");
        const char *call = kit_expect(&k, "tools/call");
        say_text(&k, call, "0", "a");
        kit_result(&k, call, CREATED("T"));
        ends[i].end(&k, r);
        assert_int_equal(r->completed, 1);
        assert_int_equal(r->status, ends[i].status);
        assert_at(r->result, "content", "[" BLOCK("a") "]");
        kit_end(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NAMED("AS-91 notifications beside the request", notified),
        NAMED("AS-91 a piece that is lost leaves the result whole", with_a_hole),
        NAMED("AS-88 a cut keeps the pieces that were notified",
              a_cut_leaves_what_was_notified),
        NAMED("AS-85 an error keeps the pieces that were notified",
              an_error_leaves_what_was_notified),
        NAMED("R-776-17 members are notified", members_are_notified),
        NAMED("R-776-30 texts that are notified go on", notified_texts_go_on),
        NAMED("R-776-30 a result of texts that went on is shown whole",
              a_result_of_texts_that_went_on),
        NAMED("R-776-30 notified places that are none", notified_places_that_are_none),
        NAMED("R-776-29 notified more than may be", notified_more_than_may_be),
        NAMED("R-776-29 empty pieces have a bound", empty_pieces_have_a_bound),
        NAMED("R-776-29 empty pieces are silence", empty_pieces_are_silence),
        NAMED("AS-91 unknown tokens and invalid numbers are dropped",
              malformed_notifications),
        cmocka_unit_test(switched_off),
        NAMED("R-776-31 a list does not ask for pieces", a_list_does_not_ask),
        NAMED("R-776-18 pieces of a second exchange", after_a_cut),
        NAMED("AS-85 an error of a second exchange keeps the pieces of the first",
              a_second_exchange_that_fails),
        NAMED("R-776-18 a result tells what was replaced", replaced_unseen),
        NAMED("C-9 a token covers pieces", after_a_token),
        NAMED("R-776-20 a task streams what pieces showed", as_a_task),
        NAMED("AS-85 an error of a task keeps the pieces that came before the task",
              what_came_before_the_task),
    };
    return cmocka_run_group_tests_name("client_partial_result", tests, NULL, NULL);
}
