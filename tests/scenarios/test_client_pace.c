/* An application that is slower than what it asked for, for seconds or for minutes: what
 * is held for it is bounded, whoever sends, and nothing ends for having waited for it.
 * And a call whose connection breaks again and again, while it gets on. */
#include "engine/asking/request.h"
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
    segue_request_options options;
    segue_struct_init(&options, sizeof options, SEGUE_STRUCT_REQUEST_OPTIONS);
    options.credit = credit;
    options.discard = 1;
    return options;
}

/* A piece of so many bytes. */
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

/* As many as the connection takes, up to this one. */
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

/* Nobody takes a segment: the peer that never ends is read no further, and the call has
 * no limit but its own while that is so. */
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

/* What is held up can be given up, and then its memory goes. */
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
    for (int i = 0; i < 500 && !r->request->behind; i++) {
        send_pieces(&p, MANY);
        script_pump(&s);
    }
    assert_true(r->request->behind);
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    script_until(&s, r->completed && heard_is_closed(p.h));
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    assert_int_equal(s.k.session->behind, 0);
    script_end(&s);
}

/* ---- over one pipe ---- */

/* The others on it must not wait: what finds no room comes with the result. */
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

/* A message with more in it than the inbox should hold. */
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

/* The pipe is not read while callbacks have to catch up: the answers in it may be old. */
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
    assert_true(slow->request->behind);
    int n = snprintf(answer, sizeof answer,
                     "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s}}\n",
                     json_at(second, "id"), DONE);
    assert_int_equal(segue_transport_feed(k.transport, answer, (size_t)n), SEGUE_OK);
    for (int i = 0; i < 5; i++) {
        k.clock_ms += 50000;
        segue_runtime_dispatch(k.runtime, 0, 1, NULL);
    }
    assert_true(slow->request->behind);
    assert_int_equal(other->completed, 0);
    kit_run(&k);
    assert_int_equal(other->completed, 1);
    assert_int_equal(other->status, SEGUE_OK);
    assert_int_equal(slow->completed, 0);
    kit_result(&k, call, DONE);
    assert_int_equal(slow->status, SEGUE_OK);
    kit_end(&k);
}

/* ---- what belongs to no request ---- */

#define CHANGED "\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\""

/* The application may be busy while a server talks: it hears all of it afterwards, and
 * what waits in memory is bounded by not reading. */
static void notifications_wait_for_the_application(void **state)
{
    enum { COUNT = 40 };
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    char *text = malloc((size_t)COUNT * (LARGE + 200));
    size_t n = 0;
    for (int i = 0; i < COUNT; i++) {
        n += (size_t)sprintf(text + n,
                             "{" CHANGED ",\"params\":{\"uri\":\"u:%d\",\"x\":\"", i);
        memset(text + n, 'x', LARGE);
        n += LARGE;
        n += (size_t)sprintf(text + n, "\"}}\n");
    }
    assert_int_equal(segue_transport_feed(k.transport, text, n), SEGUE_OK);
    free(text);
    segue_runtime_dispatch(k.runtime, 0, 1, NULL);
    assert_in_range(k.notifications, 2, 4);
    assert_true(k.session->notifications.len < MB);
    kit_run(&k);
    assert_int_equal(k.notifications, COUNT);
    assert_non_null(strstr(k.last_notification, "\"u:39\""));
    kit_end(&k);
}

/* Over HTTP the streams wait on which more of them may come. */
static void streams_wait_for_the_application(void **state)
{
    (void)state;
    http_script s;
    script_prepare(&s);
    script_connect(&s, NULL);
    script_discover(&s, SERVER_PLAIN);
    record *r = kit_start(&s.k, "tools/call", "{\"name\":\"t\"}", NULL);
    heard *h = script_expect(&s, "tools/call");
    script_stream(h);
    s.k.session->notifications_full = true;
    script_event(h, NULL, "{" CHANGED ",\"params\":{\"uri\":\"u:1\"}}");
    script_stream_result(h, NULL, DONE);
    script_finish(h);
    for (int i = 0; i < 20; i++)
        script_pump(&s);
    assert_int_equal(s.k.notifications, 0);
    assert_int_equal(r->completed, 0);
    sgi_notifications_keep(s.k.session, SGI_STR("notifications/x"), SGI_STR("{}"));
    script_until(&s, r->completed);
    assert_int_equal(s.k.notifications, 2);
    assert_int_equal(r->status, SEGUE_OK);
    script_end(&s);
}

/* Once it is read again, a server that is silent is one. */
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

/* Cuts it when all was read, and lets it wait for its next try. */
static void end_cut(http_script *s, record *r, heard *h)
{
    int told = s->k.notifications;
    script_event(h, NULL, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}");
    script_until(s, s->k.notifications > told);
    int64_t cut = r->request->call_id;
    script_cut(h, true);
    script_until(s, !r->request->calling || r->request->call_id != cut);
    script_advance(s, 40000); /* more than it ever waits */
}

/* Each exchange brings pieces up to this one, and is cut: false when the call ended. */
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

/* max_reconnects counts those in a row that brought nothing. */
static void cuts_that_brought_something_are_not_counted(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options;
    segue_struct_init(&options, sizeof options, SEGUE_STRUCT_SESSION_OPTIONS);
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

/* Progress is something too, while it rises; the same again is none. */
static void a_call_whose_progress_rises_gets_on(void **state)
{
    (void)state;
    for (int rises = 0; rises < 2; rises++) {
        http_script s;
        segue_session_options options;
        segue_struct_init(&options, sizeof options, SEGUE_STRUCT_SESSION_OPTIONS);
        options.max_reconnects = 3;
        script_prepare(&s);
        script_connect(&s, &options);
        script_discover(&s, SERVER_STREAMS);
        record *r = kit_call(&s.k, "t");
        int cuts = 0;
        while (!r->completed && cuts < 12) {
            heard *h = script_expect(&s, "tools/call");
            const char *token = json_at(h->body, "params._meta.progressToken");
            script_stream(h);
            script_event(h, NULL,
                         "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
                         "\"params\":{\"progressToken\":%s,\"progress\":%d}}",
                         token, rises ? cuts : 7);
            end_cut(&s, r, h);
            cuts++;
        }
        assert_int_equal(cuts, rises ? 12 : 4);
        if (rises) {
            script_result(script_expect(&s, "tools/call"), DONE);
            script_until(&s, r->completed);
        }
        assert_int_equal(r->status, rises ? SEGUE_OK : SEGUE_E_DISCONNECTED);
        script_end(&s);
    }
}

static void cuts_that_brought_repeats_are(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options;
    segue_struct_init(&options, sizeof options, SEGUE_STRUCT_SESSION_OPTIONS);
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
    assert_int_equal(cuts, 4); /* the first of them brought both */
    script_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_that_never_ends_waits_for_the_application),
        cmocka_unit_test(a_call_that_is_held_up_can_be_cancelled),
        cmocka_unit_test(a_full_inbox_leaves_the_rest_to_the_result),
        cmocka_unit_test(callbacks_of_minutes_time_nothing_out),
        cmocka_unit_test(notifications_wait_for_the_application),
        cmocka_unit_test(streams_wait_for_the_application),
        cmocka_unit_test(a_silent_server_times_out_when_callbacks_have_caught_up),
        cmocka_unit_test(cuts_that_brought_something_are_not_counted),
        cmocka_unit_test(a_call_whose_progress_rises_gets_on),
        cmocka_unit_test(cuts_that_brought_repeats_are),
    };
    return cmocka_run_group_tests_name("client_pace", tests, NULL, NULL);
}
