/* The metrics that a listener gives: to whom, in which form, and for several servers.
 * test_metrics.c has what is counted, and tests/python/test_metrics.py reads the text
 * with the parser of Prometheus' library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/mount_stage.h"

#define GET "GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
/* a token, and its SHA-256 */
#define TOKEN "secret"
#define TOKEN_LINE                                                                       \
    "ada 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\n"

static int ask(http_caller *c, const char *request, http_reply *reply)
{
    http_caller_say(c, request);
    http_stage_run(c->s);
    http_caller_read(c, reply);
    return reply->status;
}

static int status_of(http_stage *s, const char *request)
{
    http_caller c;
    http_reply reply;
    http_caller_open(s, &c);
    int status = ask(&c, request, &reply);
    http_reply_free(&reply);
    http_caller_close(&c);
    return status;
}

static void begin(http_stage *s)
{
    s->listen.metrics_path = "/metrics";
    http_stage_begin(s);
}

static void a_get_gives_the_text(void **state)
{
    http_stage s = {0};
    http_caller c;
    http_reply reply;
    (void)state;
    begin(&s);
    http_caller_open(&s, &c);
    http_caller_ask(&c, http_call("1", "greet", "{}"), &reply);
    http_reply_free(&reply);
    assert_int_equal(ask(&c, GET "\r\n", &reply), 200);
    assert_string_equal(http_reply_header(&reply, "Content-Type"),
                        "text/plain; version=0.0.4; charset=utf-8");
    assert_non_null(strstr(reply.body, "\nsegue_calls_total{endpoint=\"/mcp\","
                                       "mcp_method_name=\"tools/call\","
                                       "gen_ai_tool_name=\"greet\",era=\"modern\"} 1\n"));
    http_reply_free(&reply);
    http_caller_say(&c, "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n"
                        "Connection: close\r\n\r\n");
    http_stage_run(&s);
    http_caller_look(&c);
    assert_memory_equal(c.in, "HTTP/1.1 200 ", 13);
    assert_memory_equal(c.in + c.len - 4, "\r\n\r\n", 4);
    http_caller_close(&c);
    http_stage_end(&s);
}

static void other_requests_are_refused(void **state)
{
    http_stage s = {0};
    (void)state;
    begin(&s);
    assert_int_equal(
        status_of(&s, "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
                      "0\r\n\r\n"),
        405);
    assert_int_equal(status_of(&s, "GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
                     403);
    assert_int_equal(status_of(&s, GET "Origin: http://evil.example\r\n\r\n"), 403);
    assert_int_equal(status_of(&s, GET "X-Forwarded-For: 192.0.2.1\r\n\r\n"), 403);
    assert_int_equal(status_of(&s, GET "Forwarded: for=192.0.2.1\r\n\r\n"), 403);
    http_stage_end(&s);
}

static void there_are_none_without_the_option(void **state)
{
    http_stage s = {0};
    (void)state;
    http_stage_begin(&s);
    assert_int_equal(status_of(&s, GET "\r\n"), 404);
    http_stage_end(&s);
}

static void expect_for(http_stage *s, const char *peer, const char *principal, int status)
{
    mount_call c = {.peer = peer, .local = "192.0.2.1:80", .principal = principal};
    mount_ask(&c, s, strdup("GET /metrics HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n"), status);
    mount_free(&c);
}

/* The listener itself is not local: the application's HTTP server says who asks. */
static void strangers_are_refused(void **state)
{
    http_stage s = {.by_hand = true};
    (void)state;
    begin(&s);
    expect_for(&s, "192.0.2.7:4711", NULL, 403);
    expect_for(&s, "127.0.0.1:4711", NULL, 200);
    expect_for(&s, "192.0.2.7:4711", "ada", 200);
    mount_call nobody = {.nowhere = true};
    mount_ask(&nobody, &s, strdup(GET "\r\n"), 403);
    mount_free(&nobody);
    http_stage_end(&s);
}

static void a_listener_with_tokens_wants_one(void **state)
{
    http_stage s = {0};
    char tokens[] = "/tmp/segue-tokens-XXXXXX";
    int fd = mkstemp(tokens);
    (void)state;
    assert_int_equal(write(fd, TOKEN_LINE, sizeof TOKEN_LINE - 1), sizeof TOKEN_LINE - 1);
    close(fd);
    s.listen.tokens_file = tokens;
    begin(&s);
    assert_int_equal(status_of(&s, GET "\r\n"), 401);
    assert_int_equal(status_of(&s, GET "Authorization: Bearer wrong\r\n\r\n"), 401);
    assert_int_equal(status_of(&s, GET "Authorization: Bearer " TOKEN "\r\n\r\n"), 200);
    assert_int_equal(status_of(&s, GET "X-Forwarded-For: 192.0.2.1\r\n"
                                       "Authorization: Bearer " TOKEN "\r\n\r\n"),
                     200);
    http_stage_end(&s);
    unlink(tokens);
}

static segue_status refuse_all(void *user, segue_transport *transport,
                               const char **principal)
{
    (void)user;
    (void)transport;
    (void)principal;
    return SEGUE_E_REFUSED;
}

static void a_caller_that_the_application_refuses_gets_nothing(void **state)
{
    http_stage s = {.principal = refuse_all};
    (void)state;
    begin(&s);
    assert_int_equal(status_of(&s, GET "\r\n"), 401);
    http_stage_end(&s);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

/* Each server has its samples, once, and each metric its head once. */
static void all_servers_of_the_listener_are_there(void **state)
{
    http_stage s = {0};
    segue_server *other = NULL;
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    http_caller c;
    http_reply reply;
    (void)state;
    options.name = "other";
    options.version = "1";
    begin(&s);
    assert_int_equal(segue_server_new(s.rt, &options, &other, NULL), SEGUE_OK);
    assert_int_equal(segue_listener_add(s.listener, other, "/metrics", NULL),
                     SEGUE_E_EXISTS);
    assert_int_equal(segue_listener_add(s.listener, other, "/a\"b", NULL), SEGUE_OK);
    assert_int_equal(segue_listener_add(s.listener, other, "/again", NULL), SEGUE_OK);
    http_stage_run(&s);
    http_caller_open(&s, &c);
    assert_int_equal(ask(&c, GET "\r\n", &reply), 200);
    assert_int_equal(count_of(reply.body, "# TYPE segue_use_requests gauge\n"), 1);
    assert_int_equal(count_of(reply.body, "\nsegue_use_requests{"), 2);
    assert_int_equal(count_of(reply.body, "\nsegue_use_requests{endpoint=\"/mcp\"} 0\n"),
                     1);
    assert_int_equal(
        count_of(reply.body, "\nsegue_use_requests{endpoint=\"/a\\\"b\"} 0\n"), 1);
    http_reply_free(&reply);
    assert_int_equal(segue_listener_remove(s.listener, "/a\"b"), SEGUE_OK);
    assert_int_equal(ask(&c, GET "\r\n", &reply), 200);
    assert_int_equal(
        count_of(reply.body, "\nsegue_use_requests{endpoint=\"/again\"} 0\n"), 1);
    http_reply_free(&reply);
    http_caller_close(&c);
    segue_server_close(other);
    segue_server_free(other);
    http_stage_end(&s);
}

static void the_path_is_checked(void **state)
{
    http_stage s = {0};
    segue_listener *listener = NULL;
    segue_listen_options options = SEGUE_LISTEN_OPTIONS_INIT;
    (void)state;
    http_stage_begin(&s);
    options.metrics_path = "metrics";
    assert_int_equal(segue_server_listen(s.server, &options, &listener, NULL),
                     SEGUE_E_INVALID);
    options.metrics_path = "/mcp";
    assert_int_equal(segue_server_listen(s.server, &options, &listener, NULL),
                     SEGUE_E_INVALID);
    options.metrics_path = options.health_path = "/health";
    assert_int_equal(segue_server_listen(s.server, &options, &listener, NULL),
                     SEGUE_E_INVALID);
    http_stage_end(&s);
}

/* Returns the status of the answer when one allocation fails; 0 = the connection has
 * ended without an answer. */
static int status_without(http_stage *s, size_t at)
{
    http_caller c;
    http_caller_open(s, &c);
    test_mem_rearm(&s->mem);
    s->mem.fail_at = at;
    http_caller_say(&c, GET "\r\n");
    http_stage_run(s);
    http_caller_look(&c);
    int status = c.len ? atoi(c.in + strlen("HTTP/1.1 ")) : 0;
    http_caller_close(&c);
    return status;
}

static void without_memory_a_request_is_refused(void **state)
{
    http_stage s = {0};
    int refused = 0, status;
    size_t at = 0;
    (void)state;
    begin(&s);
    do {
        status = status_without(&s, ++at);
        refused += status == 503;
        assert_true(status == 200 || status == 503 || status == 0);
    } while (s.mem.failed);
    assert_int_equal(status, 200);
    assert_true(refused > 0);
    test_mem_rearm(&s.mem);
    http_stage_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_get_gives_the_text),
        cmocka_unit_test(other_requests_are_refused),
        cmocka_unit_test(there_are_none_without_the_option),
        cmocka_unit_test(strangers_are_refused),
        cmocka_unit_test(a_listener_with_tokens_wants_one),
        cmocka_unit_test(a_caller_that_the_application_refuses_gets_nothing),
        cmocka_unit_test(all_servers_of_the_listener_are_there),
        cmocka_unit_test(the_path_is_checked),
        cmocka_unit_test(without_memory_a_request_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
