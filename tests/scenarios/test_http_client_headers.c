/* Headers that the application adds to each request over HTTP: headers that it has set,
 * and headers that a callback gives when they are needed. Also forbidden headers. */
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

static segue_transport *transport_of(http_script *s)
{
    kit_prepare(&s->k, 0);
    assert_int_equal(
        segue_transport_http(s->k.runtime, s->url, &s->options, &s->k.transport, NULL),
        SEGUE_OK);
    return s->k.transport;
}

/* ---- headers that are set ---- */

static void headers_that_are_set_go_with_each_request(void **state)
{
    (void)state;
    http_script s;
    script_prepare(&s);
    segue_transport *t = transport_of(&s);
    assert_int_equal(segue_transport_set_header(t, "Authorization", "Bearer 1", NULL),
                     SEGUE_OK);
    assert_int_equal(segue_transport_set_header(t, "X-Team", "a b\tc", NULL), SEGUE_OK);
    assert_int_equal(segue_transport_set_header(t, "X-Gone", "1", NULL), SEGUE_OK);
    assert_int_equal(segue_transport_set_header(t, "AUTHORIZATION", "Bearer 2", NULL),
                     SEGUE_OK);
    assert_int_equal(segue_transport_set_header(t, "x-gone", NULL, NULL), SEGUE_OK);
    assert_int_equal(segue_transport_set_header(t, "X-Never", NULL, NULL), SEGUE_OK);
    script_connect(&s, NULL);
    for (int i = 0; i < 2; i++) {
        heard *h = script_expect(&s, i ? "initialize" : "server/discover");
        assert_header(h, "Authorization", "Bearer 2");
        assert_header(h, "X-Team", "a b\tc");
        assert_header(h, "X-Gone", NULL);
        assert_header(h, "X-Never", NULL);
        script_say(h, "400 Bad Request", "", "");
    }
    /* is it a server of 2024-11-05? */
    heard *h = script_expect(&s, "GET");
    assert_header(h, "Authorization", "Bearer 2");
    assert_header(h, "X-Team", "a b\tc");
    script_say(h, "404 Not Found", "", "");
    script_until(&s, s.k.closed);
    script_end(&s);
}

static void what_cannot_be_sent_is_refused(void **state)
{
    (void)state;
    static const char *const reserved[] = {"Accept",
                                           "content-type",
                                           "Content-Length",
                                           "Transfer-Encoding",
                                           "Connection",
                                           "Mcp-Method",
                                           "MCP-Protocol-Version",
                                           "mcp-session-id",
                                           "Mcp-Name",
                                           "Expect",
                                           "Host",
                                           "Last-Event-ID",
                                           "Mcp-Param-",
                                           "mcp-param-x"};
    static const char *const names[] = {"", "a b", "a:", "a\r\n", "\xc3\xa9", "(a)"};
    static const char *const values[] = {"a\r\nb", "a\n", "\x01", "\x7f", "\xc3\xa9"};
    http_script s;
    char name[16];
    script_prepare(&s);
    segue_transport *t = transport_of(&s);
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        assert_int_equal(segue_transport_set_header(t, reserved[i], "1", NULL),
                         SEGUE_E_INVALID);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(segue_transport_set_header(t, names[i], "1", NULL),
                         SEGUE_E_INVALID);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        assert_int_equal(segue_transport_set_header(t, "X-A", values[i], NULL),
                         SEGUE_E_INVALID);
    assert_int_equal(segue_transport_set_header(t, NULL, "1", NULL), SEGUE_E_INVALID);
    for (int i = 0; i < 64; i++) {
        snprintf(name, sizeof name, "X-%d", i);
        assert_int_equal(segue_transport_set_header(t, name, "", NULL), SEGUE_OK);
    }
    assert_int_equal(segue_transport_set_header(t, "X-64", "1", NULL), SEGUE_E_LIMIT);
    assert_int_equal(segue_transport_set_header(t, "x-63", "1", NULL), SEGUE_OK);
    char *large = malloc(100001);
    memset(large, 'a', 100000);
    large[100000] = 0;
    test_mem_rearm(&s.k.mem);
    s.k.mem.fail_from = 1;
    assert_int_equal(segue_transport_set_header(t, "x-63", large, NULL), SEGUE_E_NOMEM);
    test_mem_rearm(&s.k.mem);
    free(large);
    script_connect(&s, NULL);
    heard *h = script_expect(&s, "server/discover");
    assert_header(h, "X-0", "");
    assert_header(h, "X-63", "1"); /* the earlier value stays */
    script_end(&s);
}

static void a_transport_of_another_kind_has_no_headers(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin(&k, NULL);
    assert_int_equal(segue_transport_set_header(k.transport, "X-A", "1", NULL),
                     SEGUE_E_STATE);
    kit_end(&k);
}

static void what_is_no_endpoint_is_refused(void **state)
{
    (void)state;
    static const char *const urls[] = {"", "ftp://h/", "http://", "http:// h",
                                       "file:///etc/passwd"};
    http_script s;
    segue_transport *t = NULL;
    segue_error *error = NULL;
    script_prepare(&s);
    kit_prepare(&s.k, 0);
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        assert_int_equal(
            segue_transport_http(s.k.runtime, urls[i], &s.options, &t, &error),
            SEGUE_E_INVALID);
        assert_non_null(error);
        segue_error_free(error);
        error = NULL;
    }
    const char **files[] = {&s.options.ca_file, &s.options.cert_file,
                            &s.options.key_file};
    for (size_t i = 0; i < 3; i++) {
        *files[i] = "/nonexistent/file.pem";
        assert_int_equal(segue_transport_http(s.k.runtime, s.url, &s.options, &t, &error),
                         SEGUE_E_IO);
        assert_non_null(
            strstr(segue_error_read(error)->message, "/nonexistent/file.pem"));
        segue_error_free(error);
        error = NULL;
        *files[i] = NULL;
    }
    assert_null(t);
    script_connect(&s, NULL);
    script_end(&s);
}

/* ---- headers from a callback ---- */

typedef struct asker {
    int asked;
    int32_t last_status;
    int freed;
} asker;

static void give_token(void *user, segue_transport *transport, int32_t status)
{
    asker *a = user;
    char token[32];
    a->last_status = status;
    snprintf(token, sizeof token, "Bearer %d", ++a->asked);
    assert_int_equal(segue_transport_set_header(transport, "Authorization", token, NULL),
                     SEGUE_OK);
}

static void asker_freed(void *user)
{
    ((asker *)user)->freed++;
}

static void begin_asking(http_script *s, asker *a)
{
    script_prepare(s);
    s->options.user = a;
    s->options.free_user = asker_freed;
    s->options.on_headers = give_token;
    script_connect(s, NULL);
}

static void the_application_is_asked_before_each_request(void **state)
{
    (void)state;
    http_script s;
    asker a = {0};
    begin_asking(&s, &a);
    heard *h = script_expect(&s, "server/discover");
    assert_header(h, "Authorization", "Bearer 1");
    assert_int_equal(a.last_status, 0);
    script_say(h, "401 Unauthorized", "", "");
    /* the request is sent again, with new headers */
    h = script_expect(&s, "server/discover");
    assert_header(h, "Authorization", "Bearer 2");
    assert_int_equal(a.last_status, 401);
    script_result(h, "\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{}");
    script_until(&s, s.k.opened);
    record *r = kit_call(&s.k, "t");
    h = script_expect(&s, "tools/call");
    assert_header(h, "Authorization", "Bearer 3");
    script_say(h, "403 Forbidden", "", "");
    h = script_expect(&s, "tools/call");
    assert_int_equal(a.last_status, 403);
    script_say(h, "401 Unauthorized", "", "");
    script_until(&s, r->completed); /* a second refusal is final */
    assert_int_equal(r->status, SEGUE_E_UNAUTHORIZED);
    script_expect_silence(&s);
    script_end(&s);
    assert_int_equal(a.freed, 1);
}

/* The request that waits for headers may be gone when they come. */
static void the_end_comes_while_headers_are_asked_for(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        http_script s;
        asker a = {0};
        begin_asking(&s, &a);
        script_say(script_expect(&s, "server/discover"), "401 Unauthorized", "", "");
        if (how == 0)
            segue_session_close(s.k.session);
        if (how == 1)
            script_expect(&s, "server/discover");
        script_end(&s);
        assert_int_equal(a.freed, 1);
    }
}

static void a_transport_that_is_not_used_gives_its_user_back(void **state)
{
    (void)state;
    http_script s;
    asker a = {0};
    segue_transport *t;
    script_prepare(&s);
    kit_prepare(&s.k, 0);
    s.options.user = &a;
    s.options.free_user = asker_freed;
    s.options.on_headers = give_token;
    assert_int_equal(segue_transport_http(s.k.runtime, s.url, &s.options, &t, NULL),
                     SEGUE_OK);
    segue_transport_free(t);
    for (int i = 0; i < 3; i++)
        segue_runtime_dispatch(s.k.runtime, 0, 0, NULL);
    assert_int_equal(a.freed, 1);
    assert_int_equal(a.asked, 0);
    script_connect(&s, NULL);
    script_end(&s);
    assert_int_equal(a.freed, 2); /* freed for the second transport */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_that_are_set_go_with_each_request),
        cmocka_unit_test(what_cannot_be_sent_is_refused),
        cmocka_unit_test(a_transport_of_another_kind_has_no_headers),
        cmocka_unit_test(what_is_no_endpoint_is_refused),
        cmocka_unit_test(the_application_is_asked_before_each_request),
        cmocka_unit_test(the_end_comes_while_headers_are_asked_for),
        cmocka_unit_test(a_transport_that_is_not_used_gives_its_user_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
