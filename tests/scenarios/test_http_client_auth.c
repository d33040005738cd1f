/* A client that authorizes itself. Refused requests wait for one token and are sent
 * again. Tokens are renewed ahead of time. Each request ends once, whatever happens
 * meanwhile. label: threads */
#include "support/auth_script.h"
#include "support/world.h"

#include "engine/oauth/flow.h"

#include <segue/segue_auth.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define HOUR INT64_C(3600000)
#define LACKS "Bearer error=\"insufficient_scope\", scope=\"more\""

static void ends_well(auth_script *a, record *r, const char *token)
{
    heard *h = script_expect(&a->s, "tools/call");
    char wanted[64];
    snprintf(wanted, sizeof wanted, "Bearer %s", token);
    assert_header(h, "Authorization", wanted);
    script_result(h, "\"resultType\":\"complete\",\"content\":[]");
    script_until(&a->s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
}

/* ---- getting in ---- */

static void a_refused_request_goes_again_with_a_token(void **state)
{
    (void)state;
    auth_script a;
    char key[128];
    auth_prepare(&a);
    auth_connect(&a);
    auth_discover(&a);
    assert_non_null(strstr(a.body, "\"application_type\":\"native\""));
    snprintf(key, sizeof key, "client %s", a.origin);
    assert_string_equal(a.key, key);
    script_expect_silence(&a.s);
    auth_agree(&a);
    auth_token(&a, "t1", "");
    assert_non_null(strstr(a.body, "code=x1&code_verifier="));
    heard *h = script_expect(&a.s, "server/discover");
    assert_header(h, "Authorization", "Bearer t1");
    snprintf(key, sizeof key, "token %s/mcp", a.origin);
    assert_string_equal(a.key, key); /* saved before it is used */
    assert_non_null(strstr(a.kept, "\"access_token\":\"t1\""));
    script_result(h, "\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"
                     "\"capabilities\":{},\"ttlMs\":0,\"cacheScope\":\"private\"");
    script_until(&a.s, a.s.k.opened);
    ends_well(&a, kit_call(&a.s.k, "t"), "t1");
    assert_int_equal(a.asked, 1);
    auth_end(&a);
}

static void a_session_of_the_handshake_eras_shows_its_token_everywhere(void **state)
{
    (void)state;
    auth_script a;
    auth_prepare(&a);
    auth_connect(&a);
    auth_discover(&a);
    auth_agree(&a);
    auth_token(&a, "t1", "");
    script_legacy(&a.s, "one");
    heard *h = script_expect(&a.s, "GET");
    assert_header(h, "Authorization", "Bearer t1");
    script_say(h, "405 Method Not Allowed", "", "");
    assert_int_equal(segue_session_close(a.s.k.session), SEGUE_OK);
    h = script_expect(&a.s, "DELETE");
    assert_header(h, "Authorization", "Bearer t1");
    script_say(h, "204 No Content", "", "");
    auth_end(&a);
}

static void what_was_kept_is_used_from_the_first_request_on(void **state)
{
    (void)state;
    auth_script a;
    auth_prepare(&a);
    strcpy(a.stored, "{\"access_token\":\"t0\"}");
    auth_connect(&a);
    heard *h = script_expect(&a.s, "server/discover");
    assert_header(h, "Authorization", "Bearer t0");
    assert_int_equal(a.loads, 1);
    strcpy(a.stored, "{\"access_token\":\"t9\"}"); /* a token of another process */
    auth_refuse(h, "401 Unauthorized", "Bearer");
    h = script_expect(&a.s, "server/discover");
    assert_header(h, "Authorization", "Bearer t9");
    assert_int_equal(a.loads, 2);
    auth_end(&a);
}

static void many_requests_wait_for_one_flow(void **state)
{
    (void)state;
    auth_script a;
    record *r[3];
    auth_prepare(&a);
    auth_connect(&a);
    /* the server answers discovery without a token */
    script_discover(&a.s, SERVER_PLAIN);
    for (int i = 0; i < 3; i++)
        r[i] = kit_call(&a.s.k, "t");
    for (int i = 0; i < 3; i++)
        auth_refuse(script_find(&a.s, "tools/call"), "401 Unauthorized", "Bearer");
    auth_metadata(&a);
    auth_register(&a);
    script_until(&a.s, a.asked);
    /* waits for the token and is not sent before */
    r[0]->user = kit_call(&a.s.k, "late");
    script_expect_silence(&a.s);
    auth_agree(&a);
    auth_token(&a, "t1", "");
    for (int i = 0; i < 4; i++) {
        heard *h = script_find(&a.s, "tools/call");
        assert_header(h, "Authorization", "Bearer t1");
        script_result(h, "\"resultType\":\"complete\",\"content\":[]");
    }
    script_until(&a.s, r[0]->completed && r[1]->completed && r[2]->completed);
    script_until(&a.s, ((record *)r[0]->user)->completed);
    assert_int_equal(a.asked, 1);
    auth_end(&a);
}

/* All connections that brief messages may have are busy. The time of an exchange with the
 * authorization server begins when it has one. */
static void an_exchange_waits_for_a_connection(void **state)
{
    (void)state;
    auth_script a;
    auth_prepare(&a);
    a.s.options.max_connections = 1;
    auth_connect(&a);
    script_discover(&a.s, SERVER_PLAIN); /* this one is for everybody */
    record *look = kit_start(&a.s.k, "server/discover", NULL, NULL);
    heard *busy = script_expect(&a.s, "server/discover");
    record *r = kit_call(&a.s.k, "t");
    auth_refuse(script_expect(&a.s, "tools/call"), "401 Unauthorized", "Bearer");
    script_expect_silence(&a.s);
    script_advance(&a.s, SGI_FLOW_EXCHANGE_MS + 1000);
    script_expect_silence(&a.s);
    assert_false(r->completed);
    script_result(busy, "\"resultType\":\"complete\",\"supportedVersions\":"
                        "[\"2026-07-28\"],\"capabilities\":{},\"ttlMs\":0,"
                        "\"cacheScope\":\"private\"");
    script_until(&a.s, look->completed);
    auth_metadata(&a);
    auth_register(&a);
    script_until(&a.s, a.asked);
    auth_agree(&a);
    auth_token(&a, "t1", "");
    ends_well(&a, r, "t1");
    auth_end(&a);
}

/* It has one, and its server is silent. */
static void an_exchange_that_is_silent_ends(void **state)
{
    (void)state;
    auth_script a;
    auth_prepare(&a);
    auth_connect(&a);
    script_discover(&a.s, SERVER_PLAIN);
    record *r = kit_call(&a.s.k, "t");
    auth_refuse(script_expect(&a.s, "tools/call"), "401 Unauthorized", "Bearer");
    heard *silent = script_expect(&a.s, "GET");
    script_advance(&a.s, SGI_FLOW_EXCHANGE_MS - 1);
    assert_false(heard_is_closed(silent));
    script_advance(&a.s, 2);
    script_until(&a.s, heard_is_closed(silent));
    segue_request_cancel(r->request);
    auth_end(&a);
}

static void the_user_may_agree_inside_the_callback(void **state)
{
    (void)state;
    for (int background = 0; background < 2; background++) {
        auth_script a;
        auth_prepare(&a);
        a.agrees = 1;
        a.s.background = background;
        auth_connect(&a);
        auth_serve_until(&a, a.s.k.opened);
        record *r = kit_call(&a.s.k, "t");
        auth_serve_until(&a, r->completed);
        assert_int_equal(r->status, SEGUE_OK);
        assert_int_equal(a.asked, 1);
        auth_end(&a);
    }
}

/* ---- later ---- */

static void a_token_is_renewed_before_the_next_request(void **state)
{
    (void)state;
    auth_script a;
    auth_prepare(&a);
    auth_enter(&a, ",\"expires_in\":3600,\"refresh_token\":\"r1\"");
    a.s.k.clock_ms += HOUR;
    record *one = kit_call(&a.s.k, "t");
    record *two = kit_call(&a.s.k, "t");
    auth_token(&a, "t2", "");
    assert_non_null(strstr(a.body, "grant_type=refresh_token&refresh_token=r1"));
    for (int i = 0; i < 2; i++) {
        heard *h = script_find(&a.s, "tools/call");
        assert_header(h, "Authorization", "Bearer t2");
        script_result(h, "\"resultType\":\"complete\",\"content\":[]");
    }
    script_until(&a.s, one->completed && two->completed);
    assert_int_equal(a.asked, 1);
    auth_end(&a);
}

static void a_lack_of_scopes_asks_the_user_once_more(void **state)
{
    (void)state;
    auth_script a;
    auth_prepare(&a);
    auth_enter(&a, "");
    record *r = kit_call(&a.s.k, "t");
    auth_refuse(script_expect(&a.s, "tools/call"), "403 Forbidden", LACKS);
    heard *h = auth_expect(&a, "GET", "/.well-known/oauth-protected-resource/mcp");
    /* the token is good enough for other requests */
    record *other = kit_call(&a.s.k, "t");
    ends_well(&a, other, "t1");
    script_say(h, "404 Not Found", "", "");
    script_say(auth_expect(&a, "GET", "/.well-known/oauth-protected-resource"),
               "404 Not Found", "", "");
    script_until(&a.s, a.asked == 2);
    assert_non_null(strstr(a.url, "&scope=more"));
    auth_agree(&a);
    auth_token(&a, "t2", "");
    ends_well(&a, r, "t2");
    r = kit_call(&a.s.k, "t"); /* the new token does not help */
    auth_refuse(script_expect(&a.s, "tools/call"), "403 Forbidden", LACKS);
    script_until(&a.s, r->completed);
    assert_int_equal(r->status, SEGUE_E_UNAUTHORIZED);
    assert_non_null(strstr(r->message, "did not grant"));
    r = kit_call(&a.s.k, "t"); /* this refusal has another reason */
    script_say(script_expect(&a.s, "tools/call"), "403 Forbidden", "", "");
    script_until(&a.s, r->completed);
    assert_int_equal(r->status, SEGUE_E_REFUSED);
    assert_int_equal(a.asked, 2);
    auth_end(&a);
}

/* A server that issues tokens and refuses each of them. */
static void a_server_that_never_lets_in_ends_the_request(void **state)
{
    (void)state;
    auth_script a;
    auth_prepare(&a);
    a.agrees = 1;
    auth_connect(&a);
    for (int i = 0; !a.s.k.closed; i++) {
        assert_in_range(i, 0, 1000);
        auth_serve(&a);
        strcpy(a.right, "never");
        script_pump(&a.s);
    }
    assert_int_equal(a.s.k.closed_status, SEGUE_E_UNAUTHORIZED);
    assert_int_equal(a.asked, 1);
    auth_end(&a);
}

/* A server that asks for another scope each time. */
static void scopes_without_end_end_the_request(void **state)
{
    (void)state;
    auth_script a;
    auth_prepare(&a);
    a.agrees = 1;
    auth_connect(&a);
    script_discover(&a.s, SERVER_PLAIN);
    record *r = kit_call(&a.s.k, "t");
    for (int i = 0; !r->completed; i++) {
        char challenge[100];
        heard *h = script_next(&a.s);
        assert_in_range(i, 0, 1000);
        if (h && strstr(h->text, "POST /mcp")) {
            h->looked = true;
            snprintf(challenge, sizeof challenge,
                     "Bearer error=\"insufficient_scope\", scope=\"s%d\"", i);
            auth_refuse(h, "403 Forbidden", challenge);
        } else {
            auth_serve(&a);
        }
        script_pump(&a.s);
    }
    assert_int_equal(r->status, SEGUE_E_UNAUTHORIZED);
    assert_non_null(strstr(r->message, "refuses every new access token"));
    assert_int_equal(a.asked, 3);
    auth_end(&a);
}

/* ---- no token ---- */

static void who_waited_in_vain_is_told_why(void **state)
{
    (void)state;
    auth_script a;
    char url[200];
    auth_prepare(&a);
    auth_connect(&a);
    script_discover(&a.s, SERVER_PLAIN);
    record *one = kit_call(&a.s.k, "t");
    record *two = kit_call(&a.s.k, "t");
    for (int i = 0; i < 2; i++)
        auth_refuse(script_find(&a.s, "tools/call"), "401 Unauthorized", "Bearer");
    auth_metadata(&a);
    auth_register(&a);
    script_until(&a.s, a.asked);
    assert_int_equal(segue_runtime_authorize(a.s.k.runtime, "?state=x&code=y"),
                     SEGUE_E_NOT_FOUND);
    assert_int_equal(segue_runtime_authorize(a.s.k.runtime, "x"), SEGUE_E_INVALID);
    assert_int_equal(segue_runtime_authorize(a.s.k.runtime, NULL), SEGUE_E_INVALID);
    snprintf(url, sizeof url, "?error=access_denied&state=%s", a.state);
    assert_int_equal(segue_runtime_authorize(a.s.k.runtime, url), SEGUE_OK);
    script_until(&a.s, one->completed && two->completed);
    assert_int_equal(one->status, SEGUE_E_UNAUTHORIZED);
    assert_int_equal(two->status, SEGUE_E_UNAUTHORIZED);
    assert_non_null(strstr(one->message, "access_denied"));
    one = kit_call(&a.s.k, "t"); /* the session goes on, and asks again */
    auth_refuse(script_expect(&a.s, "tools/call"), "401 Unauthorized", "Bearer");
    auth_expect(&a, "GET", "/.well-known/oauth-protected-resource/mcp");
    auth_end(&a);
}

static void without_options_a_refusal_is_one(void **state)
{
    (void)state;
    http_script s;
    script_begin(&s, NULL);
    auth_refuse(script_expect(&s, "server/discover"), "401 Unauthorized",
                "Bearer error=\"invalid_token\", error_description=\"it has expired\"");
    script_until(&s, s.k.closed);
    assert_int_equal(s.k.closed_status, SEGUE_E_UNAUTHORIZED);
    assert_non_null(strstr(s.k.closed_message,
                           " HTTP 401 to server/discover: the server requires "
                           "authorization: invalid_token: it has expired"));
    script_end(&s);
}

static void a_user_may_take_minutes_and_not_for_ever(void **state)
{
    (void)state;
    auth_script a;
    auth_prepare(&a);
    auth_connect(&a);
    auth_discover(&a);
    script_advance(&a.s, 599000); /* no time limit of a request counts meanwhile */
    assert_int_equal(a.s.k.closed, 0);
    script_expect_silence(&a.s);
    script_advance(&a.s, 2000);
    script_until(&a.s, a.s.k.closed);
    assert_int_equal(a.s.k.closed_status, SEGUE_E_UNAUTHORIZED);
    assert_int_equal(segue_runtime_authorize(a.s.k.runtime, "?state=x&code=y"),
                     SEGUE_E_NOT_FOUND);
    auth_end(&a);
}

static void a_server_that_says_too_much_ends_the_flow(void **state)
{
    (void)state;
    auth_script a;
    char *text = calloc(1, 300001);
    memset(text, ' ', 300000);
    auth_prepare(&a);
    auth_connect(&a);
    auth_refuse(script_expect(&a.s, "server/discover"), "401 Unauthorized", "Bearer");
    script_say(auth_expect(&a, "GET", "/.well-known/oauth-protected-resource/mcp"),
               "200 OK", "", text);
    free(text);
    script_until(&a.s, a.s.k.closed);
    assert_int_equal(a.s.k.closed_status, SEGUE_E_UNAUTHORIZED);
    auth_end(&a);
}

static void redirects_are_followed_on_the_same_host_only(void **state)
{
    (void)state;
    auth_script a;
    char location[100];
    auth_prepare(&a);
    auth_connect(&a);
    auth_refuse(script_expect(&a.s, "server/discover"), "401 Unauthorized", "Bearer");
    script_say(auth_expect(&a, "GET", "/.well-known/oauth-protected-resource/mcp"),
               "302 Found", "Location: /moved\r\n", "");
    snprintf(location, sizeof location, "Location: http://127.0.0.2:%d/\r\n",
             a.s.peer.port);
    script_say(auth_expect(&a, "GET", "/moved"), "307 Temporary Redirect", location, "");
    auth_expect(&a, "GET", "/.well-known/oauth-protected-resource");
    auth_end(&a);
}

/* ---- interruptions ---- */

/* Starts a flow with two calls waiting, and stops it at a stage. */
static void begin_flow(auth_script *a, int stage)
{
    auth_prepare(a);
    auth_connect(a);
    script_discover(&a->s, SERVER_PLAIN);
    kit_call(&a->s.k, "t");
    kit_call(&a->s.k, "t");
    for (int i = 0; i < 2; i++)
        auth_refuse(script_find(&a->s, "tools/call"), "401 Unauthorized", "Bearer");
    if (stage == 0) {
        auth_expect(a, "GET", "/.well-known/oauth-protected-resource/mcp");
        return;
    }
    auth_metadata(a);
    if (stage == 1) {
        auth_expect(a, "POST", "/register");
        return;
    }
    auth_register(a);
    script_until(&a->s, a->asked);
    if (stage == 2)
        return;
    auth_agree(a);
    auth_expect(a, "POST", "/token");
}

static void a_session_closes_while_a_flow_runs(void **state)
{
    (void)state;
    for (int stage = 0; stage < 4; stage++) {
        auth_script a;
        begin_flow(&a, stage);
        assert_int_equal(segue_session_close(a.s.k.session), SEGUE_OK);
        script_until(&a.s, a.s.k.closed);
        for (record *r = a.s.k.records; r; r = r->next)
            assert_int_equal(r->status, SEGUE_E_CLOSED);
        script_until(&a.s, a.freed);
        if (stage == 2) {
            char url[200];
            snprintf(url, sizeof url, "?code=x&state=%s", a.state);
            assert_int_equal(segue_runtime_authorize(a.s.k.runtime, url),
                             SEGUE_E_NOT_FOUND);
        }
        auth_end(&a);
    }
}

static void a_runtime_is_freed_while_a_flow_runs(void **state)
{
    (void)state;
    for (int stage = 0; stage < 4; stage++) {
        auth_script a;
        begin_flow(&a, stage);
        auth_end(&a);
    }
}

static void a_request_that_waits_can_be_cancelled(void **state)
{
    (void)state;
    auth_script a;
    begin_flow(&a, 2);
    record *r = a.s.k.records;
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    script_until(&a.s, r->completed);
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    auth_agree(&a);
    auth_token(&a, "t1", "");
    for (r = a.s.k.records; r->completed; r = r->next)
        continue;
    ends_well(&a, r, "t1"); /* the other call */
    script_expect_silence(&a.s);
    auth_end(&a);
}

/* ---- misuse ---- */

static void options_are_set_once_and_in_time(void **state)
{
    (void)state;
    auth_script a;
    segue_transport *other = NULL, *end = NULL;
    auth_prepare(&a);
    auth_make(&a);
    segue_transport *t = a.s.k.transport;
    segue_runtime *rt = a.s.k.runtime;
    assert_int_equal(segue_transport_set_oauth(t, &a.options, NULL), SEGUE_E_EXISTS);
    assert_int_equal(segue_transport_set_header(t, "authorization", "x", NULL),
                     SEGUE_E_INVALID);
    assert_int_equal(segue_transport_set_oauth(NULL, &a.options, NULL), SEGUE_E_INVALID);
    assert_int_equal(segue_transport_set_oauth(t, NULL, NULL), SEGUE_E_INVALID);
    assert_int_equal(segue_transport_http(rt, a.s.url, &a.s.options, &other, NULL),
                     SEGUE_OK);
    assert_int_equal(segue_transport_set_header(other, "Authorization", "x", NULL),
                     SEGUE_OK);
    assert_int_equal(segue_transport_set_oauth(other, &a.options, NULL), SEGUE_E_STATE);
    assert_int_equal(segue_transport_set_header(other, "Authorization", NULL, NULL),
                     SEGUE_OK);
    const char *uri = a.options.redirect_uri;
    a.options.redirect_uri = NULL;
    assert_int_equal(segue_transport_set_oauth(other, &a.options, NULL), SEGUE_E_INVALID);
    a.options.redirect_uri = uri;
    segue_transport_free(other);
    assert_int_equal(
        segue_transport_http(rt, "http://mcp.example/", &a.s.options, &other, NULL),
        SEGUE_OK);
    assert_int_equal(segue_transport_set_oauth(other, &a.options, NULL), SEGUE_E_INVALID);
    segue_transport_free(other);
    assert_int_equal(segue_transport_pair(rt, &other, &end), SEGUE_OK);
    assert_int_equal(segue_transport_set_oauth(other, &a.options, NULL), SEGUE_E_STATE);
    segue_transport_free(other);
    segue_transport_free(end);
    assert_int_equal(a.freed, 0);
    script_connect(&a.s, NULL);
    assert_int_equal(segue_transport_set_oauth(t, &a.options, NULL), SEGUE_E_EXISTS);
    auth_end(&a);
}

static void a_transport_that_is_not_used_gives_its_user_back(void **state)
{
    (void)state;
    auth_script a;
    auth_prepare(&a);
    auth_make(&a);
    segue_transport_free(a.s.k.transport);
    segue_runtime_dispatch(a.s.k.runtime, 0, 0, NULL);
    assert_int_equal(a.freed, 1);
    a.s.k.transport = NULL;
    script_connect(&a.s, NULL);
    auth_end(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_request_goes_again_with_a_token),
        cmocka_unit_test(a_session_of_the_handshake_eras_shows_its_token_everywhere),
        cmocka_unit_test(what_was_kept_is_used_from_the_first_request_on),
        cmocka_unit_test(many_requests_wait_for_one_flow),
        cmocka_unit_test(an_exchange_waits_for_a_connection),
        cmocka_unit_test(an_exchange_that_is_silent_ends),
        cmocka_unit_test(the_user_may_agree_inside_the_callback),
        cmocka_unit_test(a_token_is_renewed_before_the_next_request),
        cmocka_unit_test(a_lack_of_scopes_asks_the_user_once_more),
        cmocka_unit_test(a_server_that_never_lets_in_ends_the_request),
        cmocka_unit_test(scopes_without_end_end_the_request),
        cmocka_unit_test(who_waited_in_vain_is_told_why),
        cmocka_unit_test(without_options_a_refusal_is_one),
        cmocka_unit_test(a_user_may_take_minutes_and_not_for_ever),
        cmocka_unit_test(a_server_that_says_too_much_ends_the_flow),
        cmocka_unit_test(redirects_are_followed_on_the_same_host_only),
        cmocka_unit_test(a_session_closes_while_a_flow_runs),
        cmocka_unit_test(a_runtime_is_freed_while_a_flow_runs),
        cmocka_unit_test(a_request_that_waits_can_be_cancelled),
        cmocka_unit_test(options_are_set_once_and_in_time),
        cmocka_unit_test(a_transport_that_is_not_used_gives_its_user_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
