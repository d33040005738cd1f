/* An application that is slow to take what it asked for, for seconds or for minutes. What
 * is held for it is bounded, whoever sends, and nothing fails because it waited for the
 * application. Also two sides that both send more than their limits at once, and a call
 * whose connection breaks again and again, while it makes progress. */
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

#define LARGE 100000
#define MB ((size_t)1024 * 1024)
#define DONE "\"resultType\":\"complete\",\"content\":[]"

static segue_request_options with_credit(int64_t credit)
{
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.credit = credit;
    options.discard = 1;
    return options;
}

/* ---- over one pipe ---- */

/* The ways in which a server of P sends without end, while the result stays small. */
typedef struct endless {
    int32_t discard;  /* of the call */
    const char *type; /* of the block */
    const char *meta; /* of the piece */
} endless;

/* Answers with pieces of this kind until the call ends, at most so many; returns how many
 * came. */
static int bring_endless(kit *k, record *r, const endless *kind, const char *call,
                         int most)
{
    static char text[LARGE + 1];
    int count = 0;
    memset(text, 'x', LARGE);
    while (!r->completed && count < most) {
        kit_result(k, call,
                   "\"content\":[{\"type\":\"%s\",\"text\":\"%s\"}],"
                   "\"_meta\":{\"hasMore\":true%s}",
                   kind->type, text, kind->meta);
        count++;
    }
    return count;
}

/* The pipe is not held up for credit, and a piece of P does not come again: what waits
 * for credit is limited. The limit is not that of the result, which stays small here. */
static void pieces_that_wait_for_credit_are_limited(void **state)
{
    static const endless kinds[] = {
        {1, "text", ""},
        {0, "text", ",\"mergeStrategy\":\"replace\""},
        {0, "other", ",\"index\":0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        kit k = {.quiet = 1};
        segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
        segue_request_options how = with_credit(1);
        options.max_result_bytes = 2000000;
        how.discard = kinds[i].discard;
        kit_begin_2025(&k, &options, SERVER_PLAIN);
        record *r = kit_start(&k, "tools/call", "{\"name\":\"t\"}", &how);
        const char *call = kit_expect(&k, "tools/call");
        int count = bring_endless(&k, r, &kinds[i], call, 100);
        assert_int_equal(count, 21); /* one was delivered, and 20 are too large */
        assert_true(k.mem.peak < 8 * MB);
        assert_int_equal(r->status, SEGUE_E_TOO_LARGE);
        assert_string_equal(r->message,
                            "the segments that wait for credit are too large: "
                            "max_result_bytes is 2000000; grant credit sooner, or raise "
                            "the limit in the session's options");
        assert_int_equal(r->segments, count);
        kit_expect(&k, "notifications/cancelled");
        record *next = kit_call(&k, "t"); /* the session stays usable */
        kit_result(&k, kit_expect(&k, "tools/call"), "\"content\":[]");
        assert_int_equal(next->status, SEGUE_OK);
        kit_end(&k);
    }
}

/* Credit in time makes room, so such a call may go on without end. */
static void pieces_with_credit_are_not_limited(void **state)
{
    static const endless kind = {1, "text", ""};
    (void)state;
    kit k = {.quiet = 1};
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    segue_request_options how = with_credit(1);
    options.max_result_bytes = 2000000;
    kit_begin_2025(&k, &options, SERVER_PLAIN);
    record *r = kit_start(&k, "tools/call", "{\"name\":\"t\"}", &how);
    const char *call = kit_expect(&k, "tools/call");
    for (int round = 0; round < 10; round++) {
        assert_int_equal(bring_endless(&k, r, &kind, call, 15), 15);
        assert_int_equal(segue_request_grant(r->request, 15), SEGUE_OK);
        kit_run(&k);
    }
    kit_result(&k, call, "\"content\":[]");
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 150);
    kit_end(&k);
}

/* ---- both sides at once ---- */

static void answer_large(void *user, segue_call *call)
{
    (void)user;
    char *text = malloc(LARGE);
    memset(text, 'y', LARGE);
    assert_int_equal(segue_call_send_text(call, text, LARGE, NULL), SEGUE_OK);
    assert_int_equal(segue_call_complete(call, NULL, NULL), SEGUE_OK);
    segue_call_free(call);
    free(text);
}

/* Makes a server of the library in the kit's runtime, for the session of the kit. */
static segue_server *serve_large(kit *k)
{
    static const char tool[] = "{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_item_options item = SEGUE_ITEM_OPTIONS_INIT;
    segue_server *server;
    segue_transport *far;
    item.on_call = answer_large;
    assert_int_equal(segue_server_new(k->runtime, NULL, &server, NULL), SEGUE_OK);
    assert_int_equal(
        segue_server_add(server, SEGUE_ITEM_TOOL, tool, sizeof tool - 1, &item, NULL),
        SEGUE_OK);
    assert_int_equal(segue_transport_pair(k->runtime, &k->transport, &far), SEGUE_OK);
    assert_int_equal(segue_server_attach(server, far, NULL), SEGUE_OK);
    return server;
}

static void count_success(void *user, segue_request *request, segue_status status,
                          const char *json, size_t len, const segue_error *error)
{
    (void)request, (void)json, (void)len, (void)error;
    assert_int_equal(status, SEGUE_OK);
    ++*(int *)user;
}

/* Starts calls with large arguments, while nothing is sent. */
static void start_large(kit *k, int calls, int *completed)
{
    static char params[LARGE + 100];
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    events.user = completed;
    events.on_complete = count_success;
    int n = sprintf(params, "{\"name\":\"t\",\"arguments\":{\"x\":\"");
    memset(params + n, 'x', LARGE);
    strcpy(params + n + LARGE, "\"}}");
    for (int i = 0; i < calls; i++)
        assert_int_equal(segue_request_start(k->session, "tools/call", params,
                                             strlen(params), NULL, &events, NULL, NULL),
                         SEGUE_OK);
}

/* The client has more than 1 MiB of requests to send, and the server has more than 1 MiB
 * of answers. The server waits until its answers are read, so the client has to read
 * (seeds 40621 and 69381). */
static void requests_that_wait_do_not_keep_answers_from_being_read(void **state)
{
    enum { CALLS = 60 };
    int completed = 0;
    (void)state;
    kit k = {.quiet = 1};
    kit_prepare(&k, 0);
    segue_server *server = serve_large(&k);
    kit_open(&k, NULL);
    start_large(&k, CALLS, &completed);
    segue_runtime_dispatch(k.runtime, 0, 1, NULL);
    start_large(&k, CALLS, &completed); /* the first calls are still under way */
    for (int turn = 0; turn < 1000; turn++)
        segue_runtime_dispatch(k.runtime, 0, 0, NULL);
    assert_int_equal(completed, 2 * CALLS);
    segue_server_free(server);
    k.transport_gone = 1; /* it is not the kit's transport */
    kit_end(&k);
}

/* ---- notifications without a request ---- */

#define CHANGED "\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\""

/* The application may be busy while a server sends: it gets everything later. Memory is
 * bounded because the client stops reading. */
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
    assert_true(k.session->notifications.waiting.len < MB);
    kit_run(&k);
    assert_int_equal(k.notifications, COUNT);
    assert_non_null(strstr(k.last_notification, "\"u:39\""));
    kit_end(&k);
}

/* Over HTTP the streams wait that may bring more notifications. */
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
    s.k.session->notifications.full = true;
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

/* Rising progress counts as something; a repeated value does not. */
static void a_call_whose_progress_rises_gets_on(void **state)
{
    (void)state;
    for (int rises = 0; rises < 2; rises++) {
        http_script s;
        segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_that_wait_for_credit_are_limited),
        cmocka_unit_test(pieces_with_credit_are_not_limited),
        cmocka_unit_test(requests_that_wait_do_not_keep_answers_from_being_read),
        cmocka_unit_test(notifications_wait_for_the_application),
        cmocka_unit_test(streams_wait_for_the_application),
        cmocka_unit_test(a_call_whose_progress_rises_gets_on),
    };
    return cmocka_run_group_tests_name("client_pace", tests, NULL, NULL);
}
