/* A call whose pieces come by notification (SEP-2998), and an application that is slow to
 * take them, for seconds or for minutes. What is held for the application is bounded, and
 * nothing fails because it waited for the application. Also such a call whose connection
 * breaks again and again, while it makes progress. */
#include "engine/client/request.h"
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

#define PIECE 4000
#define LARGE 100000
#define MANY 16000 /* 64 MB of pieces */
#define MB ((size_t)1024 * 1024)
#define DONE "\"resultType\":\"complete\",\"content\":[]"
#define NOTE "\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/partial_result\""

static segue_request_options with_credit(int64_t credit)
{
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.credit = credit;
    options.discard = 1;
    return options;
}

/* Makes a piece with this many bytes. */
static char *piece_of(const char *token, int seq, size_t bytes)
{
    char *text = malloc(bytes + 400);
    int n = sprintf(text,
                    "{" NOTE ",\"params\":{\"partialResultToken\":%s,\"seq\":%d,"
                    "\"content\":[{\"type\":\"text\",\"text\":\"",
                    token, seq);
    memset(text + n, 'x', bytes);
    strcpy(text + (size_t)n + bytes, "\"}]}}");
    return text;
}

/* ---- over HTTP ---- */

typedef struct sender {
    heard *h;
    char token[64];
    char unsent[PIECE + 600];
    int seq;
} sender;

static void begin_sending(sender *p, heard *h)
{
    *p = (sender){.h = h};
    snprintf(p->token, sizeof p->token, "%s",
             json_at(h->body, "params._meta.partialResultToken"));
    assert_true(*p->token);
    script_stream(h);
}

/* Sends as many pieces as the connection takes, at most up to this one; returns the
 * next. */
static size_t send_pieces(sender *p, int most)
{
    size_t all = 0, sent = 1;
    while (sent && (p->seq < most || *p->unsent)) {
        if (!*p->unsent) {
            char *piece = piece_of(p->token, p->seq++, PIECE);
            sprintf(p->unsent, "%x\r\ndata: %s\n\n\r\n", (unsigned)strlen(piece) + 8,
                    piece);
            free(piece);
        }
        sent = script_push(p->h, p->unsent, strlen(p->unsent));
        memmove(p->unsent, p->unsent + sent, strlen(p->unsent + sent) + 1);
        all += sent;
    }
    return all;
}

/* The application takes no segment: the client stops reading from an endless peer.
 * Meanwhile only the call's own time limit counts. */
static void a_peer_that_never_ends_waits_for_the_application(void **state)
{
    (void)state;
    http_script s;
    sender p;
    segue_request_options options = with_credit(1);
    size_t sent = 0;
    script_prepare(&s);
    s.k.quiet = 1;
    script_connect(&s, NULL);
    script_discover(&s, SERVER_PLAIN);
    record *r = kit_start(&s.k, "tools/call", "{\"name\":\"t\"}", &options);
    begin_sending(&p, script_expect(&s, "tools/call"));
    for (int i = 0; i < 3000; i++) {
        sent += send_pieces(&p, MANY);
        script_pump(&s);
    }
    assert_true(sent < 24 * MB); /* most of it in the sockets of the system */
    assert_true(s.k.mem.peak < 8 * MB);
    assert_int_equal(r->segments, 1);
    for (int minute = 0; minute < 5; minute++) {
        script_advance(&s, 60000);
        assert_int_equal(segue_request_grant(r->request, 10), SEGUE_OK);
        script_until(&s, r->segments == 1 + 10 * (minute + 1));
    }
    assert_int_equal(r->completed, 0);
    assert_int_equal(segue_request_grant(r->request, 1000000), SEGUE_OK);
    int until = p.seq + 500;
    while (p.seq < until || *p.unsent) {
        send_pieces(&p, until);
        script_pump(&s);
    }
    script_stream_result(p.h, NULL, DONE);
    script_finish(p.h);
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, until);
    assert_true(s.k.mem.peak < 8 * MB);
    script_end(&s);
}

/* A call that is held up can be cancelled, and its memory is freed. */
static void a_call_that_is_held_up_can_be_cancelled(void **state)
{
    (void)state;
    http_script s;
    sender p;
    segue_request_options options = with_credit(1);
    script_prepare(&s);
    s.k.quiet = 1;
    script_connect(&s, NULL);
    script_discover(&s, SERVER_PLAIN);
    record *r = kit_start(&s.k, "tools/call", "{\"name\":\"t\"}", &options);
    begin_sending(&p, script_expect(&s, "tools/call"));
    for (int i = 0; i < 500 && !r->request->delivery.behind; i++) {
        send_pieces(&p, MANY);
        script_pump(&s);
    }
    assert_true(r->request->delivery.behind);
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    script_until(&s, r->completed && heard_is_closed(p.h));
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    assert_int_equal(s.k.session->behind, 0);
    script_end(&s);
}

/* ---- over one pipe ---- */

/* Other requests on the pipe must not wait: segments without room come with the
 * result. */
static void a_full_inbox_leaves_the_rest_to_the_result(void **state)
{
    enum { PIECES = 60 };
    (void)state;
    kit k = {.quiet = 1};
    segue_request_options options = with_credit(1);
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = kit_start(&k, "tools/call", "{\"name\":\"t\"}", &options);
    const char *call = kit_expect(&k, "tools/call");
    const char *token = json_at(call, "params._meta.partialResultToken");
    for (int i = 0; i < PIECES; i++) {
        char *piece = piece_of(token, i, LARGE);
        kit_say(&k, "%s", piece);
        free(piece);
    }
    assert_true(k.mem.live < 4 * MB);
    record *other = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), DONE);
    assert_int_equal(other->status, SEGUE_OK);
    assert_int_equal(segue_request_grant(r->request, 1000), SEGUE_OK);
    kit_run(&k);
    assert_in_range(r->segments, 10, 14);
    char blocks[PIECES * 32] = "{\"type\":\"text\",\"text\":\"0\"}";
    for (int i = 1; i < PIECES; i++)
        strcat(blocks, ",{\"type\":\"text\",\"text\":\"x\"}");
    kit_result(&k, call, "\"resultType\":\"complete\",\"content\":[%s]", blocks);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, PIECES);
    kit_end(&k);
}

/* Feeds a message with more segments than the inbox should hold. */
static void feed_much(kit *k, const char *token)
{
    enum { BLOCKS = 12 };
    char *text = malloc((size_t)BLOCKS * (LARGE + 100) + 400);
    size_t n = (size_t)sprintf(text,
                               "{" NOTE ",\"params\":{\"partialResultToken\":%s,"
                               "\"seq\":0,\"content\":[",
                               token);
    for (int i = 0; i < BLOCKS; i++) {
        n += (size_t)sprintf(text + n, "%s{\"type\":\"text\",\"text\":\"", i ? "," : "");
        memset(text + n, 'x', LARGE);
        n += LARGE;
        n += (size_t)sprintf(text + n, "\"}");
    }
    n += (size_t)sprintf(text + n, "]}}\n");
    assert_int_equal(segue_transport_feed(k->transport, text, n), SEGUE_OK);
    free(text);
}

/* The client stops reading the pipe while callbacks are behind: the answers in it may be
 * old. */
static void callbacks_of_minutes_time_nothing_out(void **state)
{
    (void)state;
    kit k = {.quiet = 1};
    char answer[128];
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *slow = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    record *other = kit_call(&k, "t");
    const char *second = kit_expect(&k, "tools/call");
    feed_much(&k, json_at(call, "params._meta.partialResultToken"));
    segue_runtime_dispatch(k.runtime, 0, 1, NULL);
    assert_true(slow->request->delivery.behind);
    int n = snprintf(answer, sizeof answer,
                     "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s}}\n",
                     json_at(second, "id"), DONE);
    assert_int_equal(segue_transport_feed(k.transport, answer, (size_t)n), SEGUE_OK);
    for (int i = 0; i < 5; i++) {
        k.clock_ms += 50000;
        segue_runtime_dispatch(k.runtime, 0, 1, NULL);
    }
    assert_true(slow->request->delivery.behind);
    assert_int_equal(other->completed, 0);
    kit_run(&k);
    assert_int_equal(other->completed, 1);
    assert_int_equal(other->status, SEGUE_OK);
    assert_int_equal(slow->completed, 0);
    kit_result(&k, call, DONE);
    assert_int_equal(slow->status, SEGUE_OK);
    kit_end(&k);
}

/* Once the client reads again, silence of the server counts. */
static void a_silent_server_times_out_when_callbacks_have_caught_up(void **state)
{
    (void)state;
    kit k = {.quiet = 1};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    feed_much(&k, json_at(call, "params._meta.partialResultToken"));
    segue_runtime_dispatch(k.runtime, 0, 1, NULL);
    k.clock_ms += 90000;
    segue_runtime_dispatch(k.runtime, 0, 1, NULL);
    kit_run(&k);
    assert_int_equal(r->completed, 0);
    kit_advance(&k, 61000);
    assert_int_equal(r->completed, 1);
    assert_int_equal(r->status, SEGUE_E_TIMEOUT);
    kit_end(&k);
}

/* ---- cut again and again ---- */

/* Cuts the exchange when all was read, and waits for the next try. */
static void end_cut(http_script *s, record *r, heard *h)
{
    int told = s->k.notifications;
    script_event(h, NULL, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}");
    script_until(s, s->k.notifications > told);
    int64_t cut = r->request->call_id;
    script_cut(h, true);
    script_until(s, !r->request->calling || r->request->call_id != cut);
    script_advance(s, 40000); /* this is longer than any pause */
}

/* Each exchange brings pieces up to this one and is cut; returns false when the call
 * ended. */
static bool bring_and_cut(http_script *s, record *r, int last)
{
    heard *h = script_expect(s, "tools/call");
    const char *token = json_at(h->body, "params._meta.partialResultToken");
    script_stream(h);
    for (int seq = 0; seq <= last; seq++)
        script_event(h, NULL,
                     "{" NOTE ",\"params\":{\"partialResultToken\":%s,\"seq\":%d,"
                     "\"content\":[{\"type\":\"text\",\"text\":\"%d\"}]}}",
                     token, seq, seq);
    end_cut(s, r, h);
    return !r->completed;
}

/* max_reconnects limits tries in a row that brought nothing. */
static void cuts_that_brought_something_are_not_counted(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    script_prepare(&s);
    script_connect(&s, &options);
    script_discover(&s, SERVER_STREAMS);
    record *r = kit_call(&s.k, "t");
    for (int cut = 0; cut < 30; cut++)
        assert_true(bring_and_cut(&s, r, cut));
    script_result(script_expect(&s, "tools/call"), DONE);
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 30);
    script_end(&s);
}

static void cuts_that_brought_repeats_are(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    options.max_reconnects = 3;
    script_prepare(&s);
    script_connect(&s, &options);
    script_discover(&s, SERVER_STREAMS);
    record *r = kit_call(&s.k, "t");
    int cuts = 1;
    while (bring_and_cut(&s, r, 1))
        cuts++;
    assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
    assert_int_equal(r->segments, 2);
    assert_int_equal(cuts, 4); /* the first exchange brought both */
    script_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_that_never_ends_waits_for_the_application),
        cmocka_unit_test(a_call_that_is_held_up_can_be_cancelled),
        cmocka_unit_test(a_full_inbox_leaves_the_rest_to_the_result),
        cmocka_unit_test(callbacks_of_minutes_time_nothing_out),
        cmocka_unit_test(a_silent_server_times_out_when_callbacks_have_caught_up),
        cmocka_unit_test(cuts_that_brought_something_are_not_counted),
        cmocka_unit_test(cuts_that_brought_repeats_are),
    };
    return cmocka_run_group_tests_name("client_partial_result_pace", tests, NULL, NULL);
}
