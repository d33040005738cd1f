/* An authorization server is unreachable for a while, when a token must be renewed or a
 * code exchanged. This is no refusal: requests, streams and readers of tasks wait and try
 * again within the reconnect limits, and no user is asked twice. A refusal is final. In
 * every case the token of a task stays valid. */
#include "support/auth_script.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define GRANT ",\"refresh_token\":\"r1\""
#define PAUSE_MS 2000 /* longer than the first pause */

typedef enum outage {
    IS_BUSY = 0,
    IS_LIMITED,
    SAYS_SO,
    HANGS_UP,
    IS_SILENT,
    OUTAGES
} outage;

static void break_down(auth_script *a, heard *h, outage how)
{
    switch (how) {
    case IS_BUSY:
        script_say(h, "503 Service Unavailable", "", "");
        break;
    case IS_LIMITED:
        script_say(h, "429 Too Many Requests", "", "{\"error\":\"slow_down\"}");
        break;
    case SAYS_SO:
        script_say(h, "400 Bad Request", "", "{\"error\":\"temporarily_unavailable\"}");
        break;
    case HANGS_UP:
        script_cut(h, true);
        break;
    default:
        script_advance(&a->s, 31000);
    }
}

/* Refuses a request because of its token; the client then asks for the metadata. */
static void refuse(auth_script *a, heard *h)
{
    auth_refuse(h, "401 Unauthorized", "Bearer");
    auth_resource(a);
}

static void grant(auth_script *a, const char *token)
{
    auth_token(a, token, ",\"refresh_token\":\"r2\"");
    assert_non_null(strstr(a->body, "refresh_token=r1"));
}

static void a_call_waits_for_its_token(void **state)
{
    (void)state;
    for (int how = 0; how < OUTAGES; how++) {
        auth_script a;
        auth_prepare(&a);
        auth_enter(&a, GRANT);
        record *r = kit_call(&a.s.k, "t");
        int tries = how == IS_SILENT ? 1 : 3; /* 31 s each, and the limit is 60 s */
        for (int i = 0; i < tries; i++) {
            refuse(&a, script_expect(&a.s, "tools/call"));
            break_down(&a, auth_expect(&a, "POST", "/token"), how);
            script_pump(&a.s);
            assert_int_equal(r->completed, 0);
            script_advance(&a.s, PAUSE_MS << i);
        }
        refuse(&a, script_expect(&a.s, "tools/call"));
        grant(&a, "t2");
        heard *h = script_expect(&a.s, "tools/call");
        assert_header(h, "Authorization", "Bearer t2");
        script_result(h, "\"resultType\":\"complete\",\"content\":[]");
        script_until(&a.s, r->completed);
        assert_int_equal(r->status, SEGUE_OK);
        assert_int_equal(a.asked, 1);
        auth_end(&a);
    }
}

static record *begin_task(auth_script *a)
{
    auth_prepare(a);
    auth_connect(a);
    auth_discover(a);
    auth_agree(a);
    auth_token(a, "t1", GRANT);
    script_discover(&a->s, SERVER_TASKS);
    record *r = kit_call(&a->s.k, "t");
    script_result(script_expect(&a->s, "tools/call"), CREATED("T"));
    script_until(&a->s, r->token[0]);
    script_advance(&a->s, 1200);
    return r;
}

static void a_reader_of_a_task_waits_for_its_token(void **state)
{
    (void)state;
    auth_script a;
    record *r = begin_task(&a);
    refuse(&a, script_expect(&a.s, "tasks/get"));
    break_down(&a, auth_expect(&a, "POST", "/token"), IS_BUSY);
    script_advance(&a.s, PAUSE_MS);
    assert_int_equal(r->completed, 0);
    refuse(&a, script_expect(&a.s, "tasks/get"));
    grant(&a, "t2");
    script_result(script_expect(&a.s, "tasks/get"), TASK("T", "completed") "," RESULT);
    script_until(&a.s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    auth_end(&a);
}

/* A long outage ends like a lost server, and a refusal ends at once. The task goes on,
 * and its token stays valid. */
static void the_token_of_a_task_outlives_the_error_of_its_reader(void **state)
{
    (void)state;
    for (int is_refusal = 0; is_refusal < 2; is_refusal++) {
        auth_script a;
        char token[4096];
        size_t len = sizeof token;
        record *r = begin_task(&a);
        int tries = 0;
        while (!r->completed) {
            heard *h = script_next(&a.s);
            if (!h) {
                script_advance(&a.s, 100);
                continue;
            }
            h->looked = true;
            if (strstr(h->text, "POST /mcp")) {
                refuse(&a, h);
                tries++;
                /* the client's own credentials: there are no others */
            } else if (is_refusal) {
                script_say(h, "400 Bad Request", "", "{\"error\":\"invalid_scope\"}");
            } else {
                break_down(&a, h, IS_BUSY);
            }
            assert_in_range(tries, 0, 40);
            if (a.asked == 2)
                auth_decline(&a);
        }
        assert_int_equal(r->status,
                         is_refusal ? SEGUE_E_UNAUTHORIZED : SEGUE_E_DISCONNECTED);
        assert_int_equal(r->retryable, !is_refusal);
        assert_int_equal(segue_request_token(r->request, token, &len), SEGUE_OK);
        assert_string_equal(token, r->token);
        auth_end(&a);
    }
}

/* The user who logs in meanwhile may be another one, who does not own the task. */
static void a_task_that_another_user_does_not_have_says_so(void **state)
{
    (void)state;
    for (int is_other = 0; is_other < 2; is_other++) {
        auth_script a;
        record *r = begin_task(&a);
        if (is_other) {
            refuse(&a, script_expect(&a.s, "tasks/get"));
            script_say(auth_expect(&a, "POST", "/token"), "400 Bad Request", "",
                       "{\"error\":\"invalid_grant\"}");
            script_until(&a.s, a.asked == 2);
            auth_agree(&a);
            auth_token(&a, "t2", "");
        }
        script_error(script_expect(&a.s, "tasks/get"), "200 OK", -32602, NULL);
        script_until(&a.s, r->completed);
        assert_int_equal(r->status, SEGUE_E_TASK_LOST);
        assert_int_equal(strstr(r->message, "The credentials have changed") != NULL,
                         is_other);
        auth_end(&a);
    }
}

/* The stream of 2025-11-25 for messages of the server. */
static void a_stream_is_opened_again(void **state)
{
    (void)state;
    auth_script a;
    auth_prepare(&a);
    auth_connect(&a);
    auth_discover(&a);
    auth_agree(&a);
    auth_token(&a, "t1", GRANT);
    script_legacy(&a.s, "one");
    refuse(&a, script_expect(&a.s, "GET"));
    break_down(&a, auth_expect(&a, "POST", "/token"), IS_BUSY);
    script_advance(&a.s, 40000);
    refuse(&a, script_expect(&a.s, "GET"));
    grant(&a, "t2");
    assert_header(script_expect(&a.s, "GET"), "Authorization", "Bearer t2");
    auth_end(&a);
}

static void the_answer_to_a_call_is_taken_up_again(void **state)
{
    (void)state;
    auth_script a;
    auth_prepare(&a);
    auth_connect(&a);
    auth_discover(&a);
    auth_agree(&a);
    auth_token(&a, "t1", GRANT);
    script_legacy(&a.s, "one");
    script_say(script_expect(&a.s, "GET"), "405 Method Not Allowed", "", "");
    record *r = kit_call(&a.s.k, "t");
    heard *h = script_expect(&a.s, "tools/call");
    script_stream(h);
    script_event(h, "7", "%s", "");
    script_cut(h, false);
    for (int i = 0; i < 5; i++) { /* more often than a refused request waits for tokens */
        script_advance(&a.s, PAUSE_MS << i);
        refuse(&a, script_expect(&a.s, "GET"));
        break_down(&a, auth_expect(&a, "POST", "/token"), IS_BUSY);
        script_pump(&a.s);
        assert_int_equal(r->completed, 0);
    }
    script_advance(&a.s, 40000);
    refuse(&a, script_expect(&a.s, "GET"));
    grant(&a, "t2");
    heard *again = script_expect(&a.s, "GET");
    assert_header(again, "Last-Event-ID", "7");
    auth_end(&a);
}

/* ---- a user who has agreed ---- */

static void a_user_who_agreed_is_not_asked_again(void **state)
{
    (void)state;
    for (int how = 0; how < OUTAGES; how++) {
        auth_script a;
        auth_prepare(&a);
        auth_connect(&a);
        auth_discover(&a);
        auth_agree(&a);
        break_down(&a, auth_expect(&a, "POST", "/token"), how);
        script_advance(&a.s, PAUSE_MS);
        assert_int_equal(a.s.k.closed, 0);
        refuse(&a, script_expect(&a.s, "server/discover"));
        auth_token(&a, "t1", "");
        assert_non_null(strstr(a.body, "code=x1&code_verifier="));
        assert_header(script_expect(&a.s, "server/discover"), "Authorization",
                      "Bearer t1");
        assert_int_equal(a.asked, 1);
        auth_end(&a);
    }
}

static record *call_within(auth_script *a, int64_t ms)
{
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.timeout_ms = ms;
    return kit_start(&a->s.k, "tools/call", "{\"name\":\"t\"}", &options);
}

/* Tested before the session is open, and when a call is refused. */
static void the_limit_of_a_call_stands_still_while_a_user_decides(void **state)
{
    (void)state;
    for (int is_open = 0; is_open < 2; is_open++) {
        auth_script a;
        auth_prepare(&a);
        if (is_open)
            auth_enter(&a, "");
        else
            auth_connect(&a);
        record *r = call_within(&a, 5000);
        if (is_open) {
            refuse(&a, script_expect(&a.s, "tools/call"));
            script_until(&a.s, a.asked == 2);
        } else {
            auth_discover(&a);
        }
        script_advance(&a.s, 300000);
        assert_int_equal(r->completed, 0);
        auth_agree(&a);
        break_down(&a, auth_expect(&a, "POST", "/token"), IS_BUSY);
        /* that time does not count as time without a server */
        script_advance(&a.s, PAUSE_MS);
        assert_int_equal(r->completed, 0);
        refuse(&a, script_expect(&a.s, is_open ? "tools/call" : "server/discover"));
        auth_token(&a, "t2", "");
        if (!is_open)
            script_discover(&a.s, SERVER_PLAIN);
        script_expect(&a.s, "tools/call");
        script_advance(&a.s, 5100); /* now the time limit counts again */
        assert_int_equal(r->completed, 1);
        assert_int_equal(r->status, SEGUE_E_TIMEOUT);
        auth_end(&a);
    }
}

/* A user's decision for another request does not stop this call's time limit. */
static void the_limit_of_a_call_that_waits_for_nobody_counts(void **state)
{
    (void)state;
    auth_script a;
    auth_prepare(&a);
    auth_enter(&a, "");
    kit_call(&a.s.k, "t");
    auth_refuse(script_expect(&a.s, "tools/call"), "403 Forbidden",
                "Bearer error=\"insufficient_scope\", scope=\"more\"");
    auth_resource(&a);
    script_until(&a.s, a.asked == 2);
    record *r = call_within(&a, 5000);
    script_expect(&a.s, "tools/call");
    script_advance(&a.s, 5100);
    assert_int_equal(r->completed, 1);
    assert_int_equal(r->status, SEGUE_E_TIMEOUT);
    auth_end(&a);
}

/* A server that has just started has no keys to check the first token with. It asks the
 * client to come again, which is no failed attempt to connect. */
static void who_is_asked_to_come_again_does(void **state)
{
    (void)state;
    auth_script a;
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    auth_prepare(&a);
    strcpy(a.stored, "{\"access_token\":\"t0\"}");
    auth_make(&a);
    options.first_attempts = 1;
    script_connect(&a.s, &options);
    for (int i = 0; i < 3; i++) {
        script_say(script_expect(&a.s, "server/discover"), "503 Service Unavailable",
                   "Retry-After: 3\r\n", "");
        script_advance(&a.s, 2900);
        script_expect_silence(&a.s);
        assert_int_equal(a.s.k.closed, 0);
        script_advance(&a.s, 1000);
    }
    script_discover(&a.s, SERVER_PLAIN);
    script_until(&a.s, a.s.k.opened);
    auth_end(&a);
}

/* The first answer may have been lost, or the user took too long. */
static void a_code_that_is_no_longer_good_asks_him_again(void **state)
{
    (void)state;
    auth_script a;
    auth_prepare(&a);
    auth_connect(&a);
    auth_discover(&a);
    auth_agree(&a);
    break_down(&a, auth_expect(&a, "POST", "/token"), HANGS_UP);
    script_advance(&a.s, PAUSE_MS);
    refuse(&a, script_expect(&a.s, "server/discover"));
    script_say(auth_expect(&a, "POST", "/token"), "400 Bad Request", "",
               "{\"error\":\"invalid_grant\"}");
    script_until(&a.s, a.asked == 2);
    auth_agree(&a);
    script_say(auth_expect(&a, "POST", "/token"), "400 Bad Request", "",
               "{\"error\":\"invalid_grant\"}");
    script_until(&a.s, a.s.k.closed); /* a refusal of a fresh code is final */
    assert_int_equal(a.s.k.closed_status, SEGUE_E_UNAUTHORIZED);
    assert_int_equal(a.asked, 2);
    auth_end(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_waits_for_its_token),
        cmocka_unit_test(a_reader_of_a_task_waits_for_its_token),
        cmocka_unit_test(the_token_of_a_task_outlives_the_error_of_its_reader),
        cmocka_unit_test(a_task_that_another_user_does_not_have_says_so),
        cmocka_unit_test(a_stream_is_opened_again),
        cmocka_unit_test(the_answer_to_a_call_is_taken_up_again),
        cmocka_unit_test(a_user_who_agreed_is_not_asked_again),
        cmocka_unit_test(the_limit_of_a_call_stands_still_while_a_user_decides),
        cmocka_unit_test(the_limit_of_a_call_that_waits_for_nobody_counts),
        cmocka_unit_test(who_is_asked_to_come_again_does),
        cmocka_unit_test(a_code_that_is_no_longer_good_asks_him_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
