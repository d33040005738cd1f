/* A server over a byte stream whose process dies again and again. Requests are retried
 * with the same pauses and the same limit as over HTTP, and the session goes on for other
 * requests. */
#include "support/client_kit.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define PLAIN "{\"tools\":{}}"
#define TRIES_MAX 100

static segue_session_options options;

static void open_2025(kit *k)
{
    kit_begin_2025(k, &options, PLAIN);
}

static void open_modern(kit *k)
{
    kit_begin_modern(k, &options, SERVER_STREAMS);
}

static void reopen_2025(kit *k)
{
    kit_handshake_2025(k, PLAIN);
}

static void reopen_modern(kit *k)
{
    kit_handshake(k, SERVER_STREAMS);
}

static record *call_with_policy(kit *k)
{
    record *r = kit_call(k, "t");
    kit_say(k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/requests/resumePolicy\","
            "\"params\":{\"requestId\":%s,\"resumeToken\":\"to.ken\"}}",
            json_at(kit_expect(k, "tools/call"), "id"));
    return r;
}

static record *call_with_key(kit *k)
{
    record *r = kit_call(k, "t");
    kit_expect(k, "tools/call");
    return r;
}

static record *call_with_task(kit *k)
{
    record *r = kit_call(k, "t");
    kit_result(k, kit_expect(k, "tools/call"), CREATED("T"));
    kit_expect(k, "tasks/stream");
    return r;
}

/* The request that is retried, and its kind. */
static const struct way {
    const char *again;
    void (*open)(kit *k);
    void (*reopen)(kit *k);
    record *(*call)(kit *k);
    int polled; /* tasks/get is sent beside it */
} ways[] = {
    {"requests/resume", open_2025, reopen_2025, call_with_policy, 0},
    {"tools/call", open_modern, reopen_modern, call_with_key, 0},
    {"tasks/stream", open_modern, reopen_modern, call_with_task, 1},
};

static void set_options(const struct way *way)
{
    options = SEGUE_SESSION_OPTIONS_INIT;
    if (way->open == open_2025) {
        options.era = SEGUE_ERA_LEGACY;
        options.dialects_on = SEGUE_DIALECT_RESUMABLE;
    }
}

/* Lets the server die at each try; returns how often it died. */
static int die_until_the_end(kit *k, const struct way *way, const record *r)
{
    int asked = 0;
    while (asked < TRIES_MAX && !r->completed) {
        kit_cut(k);
        way->reopen(k);
        if (r->completed)
            break;
        if (asked++ > (way->polled ? 5 : 1))
            kit_expect_silence(k); /* the client pauses now */
        kit_advance(k, 40000);
        if (r->completed)
            break;
        const char *again = kit_heard(k);
        assert_non_null(again);
        assert_true(way->polled || strstr(again, way->again));
        while (kit_heard(k))
            ;
    }
    return asked;
}

static void a_request_is_given_up(const struct way *way)
{
    kit k = {.can_reopen = 1};
    way->open(&k);
    const record *r = way->call(&k);
    const int64_t begun = k.clock_ms;
    int asked = die_until_the_end(&k, way, r);
    assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
    assert_int_equal(k.closed, 0);
    assert_true(way->polled || k.retries >= asked);
    if (options.max_reconnects) {
        assert_in_range(asked, options.max_reconnects, 3 * options.max_reconnects);
        assert_non_null(strstr(r->message, "failed 4 times in a row (max_reconnects"));
    } else {
        assert_true(asked > 4);
        assert_true(k.clock_ms - begun > 5000);
        assert_non_null(strstr(r->message, "reconnect_timeout_ms"));
    }
    r = kit_call(&k, "other");
    kit_result(&k, kit_expect(&k, "tools/call"),
               "\"resultType\":\"complete\",\"content\":[]");
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

static void what_is_asked_again_has_an_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        set_options(&ways[i]);
        a_request_is_given_up(&ways[i]);
        options.max_reconnects = 3;
        a_request_is_given_up(&ways[i]);
    }
}

/* A session that may not reconnect ends with its first server, also while it follows a
 * task. */
static void none_is_none(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        kit k = {.can_reopen = 1};
        set_options(&ways[i]);
        options.max_reconnects = -1;
        ways[i].open(&k);
        const record *r = ways[i].call(&k);
        kit_cut(&k);
        kit_advance(&k, 40000);
        assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
        assert_int_equal(k.closed, 1);
        assert_int_equal(k.retries, 0);
        kit_end(&k);
    }
}

/* A request that makes progress is retried as often as necessary. */
static void what_gets_on_is_asked_more_often(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    set_options(&ways[2]);
    options.max_reconnects = 3;
    ways[2].open(&k);
    const record *r = ways[2].call(&k);
    for (int n = 1; n <= 12; n++) {
        kit_segment(&k, "T", n - 1, n, "x");
        kit_cut(&k);
        ways[2].reopen(&k);
        kit_advance(&k, 40000);
        kit_expect(&k, "tasks/stream");
    }
    assert_int_equal(r->completed, 0);
    assert_int_equal(r->segments, 12);
    segue_request_cancel(r->request);
    kit_run(&k);
    while (kit_heard(&k))
        ;
    kit_end(&k);
}

/* A server that dies right after its start, while there is no request. */
static void a_server_that_never_stays_is_given_up(void **state)
{
    (void)state;
    for (int most = 0; most <= 3; most += 3) {
        kit k = {.can_reopen = 1};
        int died = 0;
        set_options(&ways[1]);
        options.max_reconnects = most;
        ways[1].open(&k);
        for (; died < TRIES_MAX && !k.closed; died++) {
            kit_cut(&k);
            kit_advance(&k, most ? 3000 : 40000);
            if (!k.closed)
                ways[1].reopen(&k);
        }
        assert_int_equal(k.closed_status, SEGUE_E_DISCONNECTED);
        assert_true(died > 2 && died <= 21);
        assert_non_null(
            strstr(k.closed_message, most ? "failed 4 times in a row (max_reconnects)"
                                          : "(reconnect_timeout_ms)"));
        kit_end(&k);
    }
}

/* A server that dies at each message that the session sends for itself. */
static void a_server_that_dies_at_the_log_level_is_given_up(void **state)
{
    static const char logs[] = "{\"tools\":{},\"logging\":{}}";
    segue_request_options request = SEGUE_REQUEST_OPTIONS_INIT;
    kit k = {.can_reopen = 1};
    int died = 0;
    (void)state;
    set_options(&ways[0]);
    options.max_reconnects = 3;
    kit_begin_2025(&k, &options, logs);
    request.log_level = "info";
    const record *r = kit_start(&k, "tools/call", "{\"name\":\"t\"}", &request);
    for (; died < TRIES_MAX && !k.closed; died++) {
        kit_expect(&k, "logging/setLevel");
        kit_cut(&k);
        kit_advance(&k, 3000);
        if (!k.closed)
            kit_handshake_2025(&k, logs);
    }
    assert_int_equal(died, 4);
    assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
    assert_int_equal(k.closed_status, SEGUE_E_DISCONNECTED);
    assert_non_null(strstr(k.closed_message, "failed 4 times in a row (max_reconnects)"));
    kit_end(&k);
}

/* A server that dies at a request which the application makes each time the session is
 * open. The request ends with each connection, so it limits nothing. */
static void a_server_that_dies_at_what_is_asked_first_is_given_up(void **state)
{
    kit k = {.can_reopen = 1};
    int died = 0;
    (void)state;
    set_options(&ways[0]);
    options.max_reconnects = 3;
    open_2025(&k);
    for (; died < TRIES_MAX && !k.closed; died++) {
        const record *r = kit_start(&k, "resources/subscribe", "{\"uri\":\"a:1\"}", NULL);
        kit_expect(&k, "resources/subscribe");
        kit_cut(&k);
        assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
        kit_advance(&k, 3000);
        if (!k.closed)
            reopen_2025(&k);
    }
    assert_int_equal(died, 4);
    assert_int_equal(k.closed_status, SEGUE_E_DISCONNECTED);
    assert_non_null(strstr(k.closed_message, "failed 4 times in a row (max_reconnects)"));
    kit_end(&k);
}

/* A server that dies right after each start, whether a request is sent to it or not. The
 * pauses of the session grow, although the request counts failures of its own. */
static void a_server_that_dies_at_once_is_started_with_pauses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        kit k = {.can_reopen = 1};
        int died = 0;
        set_options(&ways[i]);
        ways[i].open(&k);
        ways[i].call(&k);
        kit_cut(&k);
        for (int64_t end = k.clock_ms + 10000; k.clock_ms < end && !k.closed;) {
            if (k.reopens == died) {
                kit_advance(&k, 10);
                continue;
            }
            died = k.reopens;
            ways[i].reopen(&k);
            while (kit_heard(&k))
                ;
            kit_cut(&k);
        }
        assert_int_equal(k.closed, 0);
        assert_in_range(died, 8, 16);
        kit_end(&k);
    }
}

/* A server that dies at each tasks/cancel is started again with pauses. */
static void a_server_that_dies_at_a_cancel_is_started_with_pauses(void **state)
{
    kit k = {.can_reopen = 1};
    const char *heard;
    (void)state;
    set_options(&ways[2]);
    open_modern(&k);
    const record *r = call_with_task(&k);
    segue_request_cancel(r->request);
    for (int died = 0; died < 3; died++) {
        while ((heard = kit_heard(&k)) && !strstr(heard, "tasks/cancel"))
            ;
        assert_non_null(heard);
        kit_cut(&k);
        if (died) {
            kit_expect_silence(&k);
            kit_advance(&k, 1000);
        }
        reopen_modern(&k);
    }
    kit_end(&k);
}

/* A server that answers, or lives for a while, may end any number of times. */
static void a_server_that_works_may_end(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    set_options(&ways[1]);
    options.max_reconnects = 3;
    ways[1].open(&k);
    for (int i = 0; i < 24; i++) {
        if (i % 2) {
            kit_advance(&k, 5000);
        } else {
            const record *r = kit_call(&k, "t");
            kit_result(&k, kit_expect(&k, "tools/call"),
                       "\"resultType\":\"complete\",\"content\":[]");
            assert_int_equal(r->status, SEGUE_OK);
        }
        kit_cut(&k);
        ways[1].reopen(&k); /* the server is back without a pause */
    }
    assert_int_equal(k.closed, 0);
    kit_end(&k);
}

/* ---- tokens ---- */

static segue_status token_of(const record *r, char token[4096])
{
    size_t len = 4096;
    return segue_request_token(r->request, token, &len);
}

/* With a token the call would run a second time. */
static void what_was_sent_without_a_key_has_no_token(void **state)
{
    (void)state;
    for (int reopens = 0; reopens < 2; reopens++) {
        char token[4096];
        kit k = {.can_reopen = reopens};
        kit_begin_modern(&k, NULL, PLAIN);
        const record *r = kit_call(&k, "t");
        kit_expect(&k, "tools/call");
        assert_int_equal(token_of(r, token), SEGUE_E_NOT_RESUMABLE);
        kit_cut(&k);
        assert_int_equal(r->status, SEGUE_E_DISCONNECTED);
        assert_int_equal(token_of(r, token), SEGUE_E_TERMINAL);
        if (reopens)
            kit_handshake(&k, PLAIN);
        kit_end(&k);
    }
}

/* A token is useless when the server does not accept keys any more. */
static void a_token_needs_a_server_with_keys(void **state)
{
    (void)state;
    char token[4096];
    kit first = {0}, second = {0};
    kit_begin_modern(&first, NULL, SERVER_STREAMS);
    const record *r = kit_call(&first, "t");
    kit_expect(&first, "tools/call");
    kit_cut(&first);
    assert_int_equal(token_of(r, token), SEGUE_OK);
    kit_end(&first);
    kit_begin_modern(&second, NULL, PLAIN);
    r = kit_resume(&second, token, NULL);
    kit_expect_silence(&second);
    assert_int_equal(r->status, SEGUE_E_NOT_RESUMABLE);
    kit_end(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NAMED("R-975-25 what is asked again has an end", what_is_asked_again_has_an_end),
        cmocka_unit_test(none_is_none),
        cmocka_unit_test(what_gets_on_is_asked_more_often),
        cmocka_unit_test(a_server_that_never_stays_is_given_up),
        cmocka_unit_test(a_server_that_dies_at_the_log_level_is_given_up),
        cmocka_unit_test(a_server_that_dies_at_what_is_asked_first_is_given_up),
        cmocka_unit_test(a_server_that_dies_at_once_is_started_with_pauses),
        cmocka_unit_test(a_server_that_dies_at_a_cancel_is_started_with_pauses),
        cmocka_unit_test(a_server_that_works_may_end),
        cmocka_unit_test(what_was_sent_without_a_key_has_no_token),
        cmocka_unit_test(a_token_needs_a_server_with_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
