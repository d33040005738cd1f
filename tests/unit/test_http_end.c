/* How a listener ends. Running calls may finish, streams that can be resumed end at once,
 * and the remaining connections are cut at the deadline. Handles may be closed in any
 * order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>

#include "support/http_stage.h"
#include "support/scratch.h"
#include "support/sqlite_kit.h"

static void say(http_caller *c, char *request)
{
    http_caller_say(c, request);
    free(request);
    http_stage_run(c->s);
}

static bool is_listening(const http_stage *s)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool is = connect(fd, (struct sockaddr *)&to, sizeof to) == 0;
    close(fd);
    return is;
}

typedef segue_status closing(http_stage *s);

static segue_status close_listener(http_stage *s)
{
    return segue_listener_close(s->listener);
}

static segue_status close_server(http_stage *s)
{
    return segue_server_close(s->server);
}

/* A server that closes reports that on its subscriptions. A listener only ends the
 * stream, and the client can listen again elsewhere. */
static void drain_in_peace(closing *close_it, bool says_so)
{
    http_stage s = {.listen = {.stream_after_ms = 3600000}};
    http_caller idle, busy, begun, stream;
    http_reply reply;
    http_stage_begin(&s);
    http_caller_open(&s, &idle);
    http_caller_open(&s, &busy);
    http_caller_open(&s, &begun);
    http_caller_open(&s, &stream);
    say(&busy, http_call("1", "slow_compute", "{\"seconds\":5}"));
    http_caller_say(&begun, "POST /mcp HTTP/1.1\r\nHost: localhost\r\n");
    say(&stream, http_request("1", "subscriptions/listen", NULL,
                              "\"notifications\":{\"toolsListChanged\":true}", NULL));
    http_caller_read(&stream, &reply);
    free(http_caller_event(&stream));
    assert_int_equal(close_it(&s), SEGUE_OK);
    http_stage_run(&s);
    http_caller_until_closed(&idle);
    if (says_so) {
        char *event = http_caller_event(&stream);
        assert_non_null(event);
        assert_non_null(strstr(event, "\"result\""));
        free(event);
    }
    assert_null(http_caller_event(&stream)); /* the last chunk */
    http_caller_until_closed(&stream);
    assert_false(is_listening(&s));
    http_caller_say(&begun, "Content-Type: application/json\r\n"
                            "Content-Length: 2\r\n\r\n{}");
    assert_int_equal(http_caller_status(&begun), 503);
    http_caller_until_closed(&begun);
    http_caller_quiet(&busy);
    http_stage_advance(&s, 6000);
    http_caller_read(&busy, &reply);
    assert_int_equal(reply.status, 200);
    assert_string_equal(http_reply_header(&reply, "Connection"), "close");
    http_reply_free(&reply);
    http_caller_until_closed(&busy);
    http_caller_close(&idle);
    http_caller_close(&busy);
    http_caller_close(&begun);
    http_caller_close(&stream);
    http_stage_end(&s);
}

static void a_closed_listener_drains(void **state)
{
    (void)state;
    drain_in_peace(close_listener, false);
}

static void a_closed_server_drains(void **state)
{
    (void)state;
    drain_in_peace(close_server, true);
}

static void what_takes_too_long_is_cut(void **state)
{
    http_stage s = {.listen = {.drain_ms = 2000}};
    http_caller waiting, streaming, stalled;
    http_reply reply;
    (void)state;
    http_stage_begin(&s);
    http_caller_open(&s, &streaming);
    http_caller_open(&s, &waiting);
    http_caller_open(&s, &stalled);
    say(&streaming, http_call("1", "hang_plain", NULL));
    http_stage_advance(&s, 300);
    http_caller_read(&streaming, &reply);
    say(&waiting, http_call("1", "hang_plain", NULL));
    say(&stalled, http_call("1", "big", "{\"bytes\":15000000}"));
    segue_listener_close(s.listener);
    http_stage_advance(&s, 1000);
    assert_int_equal(fixtures_jobs(s.fixtures), 2);
    http_caller_quiet(&streaming); /* a call that cannot be resumed may finish */
    http_stage_advance(&s, 1500);
    assert_int_equal(fixtures_jobs(s.fixtures), 0);
    http_caller_close(&stalled);
    http_caller_close(&waiting);
    http_caller_close(&streaming);
    http_stage_end(&s);
}

static int idles;

static void count_idle(void *user)
{
    (void)user;
    idles++;
}

/* A daemon waits for this report before it exits. */
static void a_drained_server_says_that_it_is_idle(void **state)
{
    static closing *const ways[] = {close_listener, close_server};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        http_stage s = {.on_idle = count_idle};
        http_caller c;
        idles = 0;
        http_stage_open(&s, &c);
        say(&c, http_call("1", "greet", NULL));
        assert_int_equal(http_caller_status(&c), 200);
        say(&c, http_call("2", "slow_compute", "{\"ms\":100}"));
        ways[i](&s);
        http_stage_run(&s);
        assert_int_equal(idles, 0); /* a call still runs */
        http_stage_advance(&s, 150);
        assert_int_equal(http_caller_status(&c), 200);
        http_caller_until_closed(&c);
        http_stage_run(&s);
        assert_int_equal(idles, 1);
        http_stage_close(&s, &c);
    }
}

/* ---- idle connections ---- */

static void expect_refused(http_caller *c, char *request)
{
    http_reply reply;
    http_caller_ask(c, request, &reply);
    assert_int_equal(reply.status, 503);
    assert_non_null(strstr(reply.body, "\"reason\":\"server_ending\""));
    assert_string_equal(http_reply_header(&reply, "Connection"), "close");
    http_reply_free(&reply);
    http_caller_until_closed(c);
}

/* A load balancer sends a request on an idle connection at the moment at which the
 * listener closes. It may send the request to another server only if it was refused. */
static void what_is_sent_on_an_idle_connection_is_refused_and_not_cut(void **state)
{
    http_stage s = {.on_idle = count_idle, .listen = {.idle_drain_ms = 1000}};
    http_caller late, silent, soon;
    (void)state;
    idles = 0;
    http_stage_open(&s, &late);
    http_caller_open(&s, &silent);
    http_caller_open(&s, &soon);
    say(&late, http_call("1", "greet", NULL));
    assert_int_equal(http_caller_status(&late), 200);
    say(&soon, http_call("1", "slow_compute", "{\"ms\":400}"));
    /* the answer is a stream, whose head has told of no end */
    http_stage_advance(&s, 300);
    segue_listener_close(s.listener);
    http_stage_run(&s);
    assert_false(is_listening(&s));
    http_caller_quiet(&late);
    http_caller_quiet(&silent);
    http_stage_advance(&s, 200);
    assert_int_equal(http_caller_status(&soon), 200);
    free(http_caller_event(&soon));
    assert_null(http_caller_event(&soon));
    expect_refused(&soon, http_call("2", "greet", NULL));
    http_stage_advance(&s, 700);
    http_caller_quiet(&silent);
    assert_int_equal(idles, 0);
    expect_refused(&late, http_call("2", "greet", NULL));
    http_stage_advance(&s, 200);
    http_caller_until_closed(&silent);
    http_stage_run(&s);
    assert_int_equal(idles, 1);
    http_caller_close(&soon);
    http_caller_close(&silent);
    http_stage_close(&s, &late);
}

/* The system has accepted the connection, and the listener has not. */
static void what_waits_at_the_socket_is_refused_and_not_cut(void **state)
{
    http_stage s = {.on_idle = count_idle, .listen = {.idle_drain_ms = 1000}};
    http_caller c;
    (void)state;
    idles = 0;
    http_stage_begin(&s);
    http_stage_run(&s);
    segue_listener_close(s.listener);
    http_caller_open(&s, &c);
    expect_refused(&c, http_call("1", "greet", NULL));
    http_stage_run(&s);
    assert_int_equal(idles, 1);
    http_stage_close(&s, &c);
}

/* Also when idle_drain_ms is longer. */
static void an_idle_connection_ends_with_drain_ms(void **state)
{
    http_stage s = {.listen = {.idle_drain_ms = 60000, .drain_ms = 2000}};
    http_caller c;
    (void)state;
    http_stage_open(&s, &c);
    http_stage_run(&s);
    segue_listener_close(s.listener);
    http_stage_advance(&s, 1900);
    http_caller_quiet(&c);
    http_stage_advance(&s, 200);
    http_caller_until_closed(&c);
    http_stage_close(&s, &c);
}

static void closing_twice_and_freeing_early_are_fine(void **state)
{
    http_stage s = {0};
    http_caller c;
    char *request = http_call("1", "greet", NULL);
    (void)state;
    http_stage_begin(&s);
    segue_listener_free(s.listener); /* the server goes on listening */
    s.listener = NULL;
    http_caller_open(&s, &c);
    http_caller_say(&c, request);
    assert_int_equal(http_caller_status(&c), 200);
    segue_server_close(s.server);
    segue_server_close(s.server);
    http_caller_until_closed(&c);
    http_caller_close(&c);
    free(request);
    http_stage_end(&s);

    memset(&s, 0, sizeof s);
    http_stage_begin(&s);
    segue_listener_close(s.listener);
    segue_listener_close(s.listener);
    segue_server_free(s.server);
    s.server = NULL;
    http_stage_run(&s);
    segue_listener_close(s.listener);
    http_stage_end(&s);
}

/* A server without a handle lives while it listens, and its handle may be freed first. */
static void a_server_without_a_handle_serves(void **state)
{
    http_stage s = {0};
    http_caller c;
    char *request = http_call("1", "greet", NULL);
    (void)state;
    http_stage_begin(&s);
    segue_server_free(s.server);
    s.server = NULL;
    http_caller_open(&s, &c);
    http_caller_say(&c, request);
    assert_int_equal(http_caller_status(&c), 200);
    segue_listener_close(s.listener);
    http_caller_until_closed(&c);
    http_caller_close(&c);
    free(request);
    http_stage_end(&s);
}

/* The runtime is freed while everything is in use. */
static void a_runtime_ends_under_its_connections(void **state)
{
    http_stage s = {0};
    http_caller callers[6];
    (void)state;
    http_stage_begin(&s);
    for (int i = 0; i < 6; i++)
        http_caller_open(&s, &callers[i]);
    say(&callers[1], http_call("1", "hang_plain", NULL));
    http_stage_advance(&s, 300);
    say(&callers[2], http_call("1", "hang_plain", NULL));
    http_caller_say(&callers[3], "POST /mcp HT");
    say(&callers[4], http_request("1", "subscriptions/listen", NULL,
                                  "\"notifications\":{\"toolsListChanged\":true}", NULL));
    char *last = http_call("1", "greet", NULL);
    http_caller_say(&callers[5], last);
    free(last);
    http_stage_end(&s);
    for (int i = 0; i < 6; i++) {
        http_caller_look(&callers[i]);
        assert_true(callers[i].ended);
        http_caller_close(&callers[i]);
    }
}

/* ---- beginnings ---- */

static void expect_refusal(http_stage *s, const segue_listen_options *options,
                           segue_status wanted)
{
    segue_listener *listener = NULL;
    segue_error *error = NULL;
    size_t live = s->mem.live;
    assert_int_equal(segue_server_listen(s->server, options, &listener, &error), wanted);
    assert_null(listener);
    assert_true(*segue_error_read(error)->message);
    segue_error_free(error);
    assert_int_equal(s->mem.live, live);
}

static void what_cannot_be_listened_on_is_refused(void **state)
{
    http_stage s = {0};
    segue_listen_options o;
    (void)state;
    http_stage_begin(&s);
#define TRY(field, value, status)                                                        \
    do {                                                                                 \
        o = SEGUE_LISTEN_OPTIONS_INIT;                                                   \
        o.field = value;                                                                 \
        expect_refusal(&s, &o, status);                                                  \
    } while (0)
    TRY(address, "no.such.name.test", SEGUE_E_INVALID);
    TRY(address, "192.0.2.1", SEGUE_E_IO);
    TRY(port, 70000, SEGUE_E_INVALID);
    TRY(port, s.port, SEGUE_E_IO);
    TRY(address, "systemd:nothing", SEGUE_E_IO);
    TRY(path, "mcp", SEGUE_E_INVALID);
    TRY(path, "/a b", SEGUE_E_INVALID);
    TRY(health_path, "/mcp", SEGUE_E_INVALID);
    TRY(ready_path, "/mcp", SEGUE_E_INVALID);
    TRY(ready_path, "ready", SEGUE_E_INVALID);
    TRY(live_path, "/mcp", SEGUE_E_INVALID);
    TRY(live_path, "live", SEGUE_E_INVALID);
    TRY(cert_file, "/no/such/file", SEGUE_E_IO);
    TRY(key_file, "/no/such/file", SEGUE_E_INVALID);
    TRY(client_cert_required, 1, SEGUE_E_INVALID);
    TRY(max_connections, -1, SEGUE_E_INVALID);
    TRY(max_header_bytes, 100, SEGUE_E_INVALID);
    TRY(drain_ms, -5, SEGUE_E_INVALID);
#undef TRY
    assert_int_equal(segue_listener_reload(s.listener, NULL), SEGUE_E_STATE);
    segue_server_close(s.server);
    o = SEGUE_LISTEN_OPTIONS_INIT;
    expect_refusal(&s, &o, SEGUE_E_CLOSED);
    http_stage_end(&s);
}

static void urls_tell_where_to_go(void **state)
{
    char file[64], address[80], url_of_file[96];
    (void)state;
    scratch_name(file, sizeof file, "/tmp/segue-http-url");
    snprintf(address, sizeof address, "unix:%s", file);
    snprintf(url_of_file, sizeof url_of_file, "%s:/mcp", address);
    const struct {
        const char *address, *path, *begins, *ends;
    } cases[] = {{NULL, NULL, "http://127.0.0.1:", "/mcp"},
                 {"localhost", "/a/b", "http://127.0.0.1:", "/a/b"},
                 {"0.0.0.0", NULL, "http://0.0.0.0:", "/mcp"},
                 {address, NULL, url_of_file, "/mcp"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        http_stage s = {.listen = {.address = cases[i].address, .path = cases[i].path}};
        http_stage_begin(&s);
        const char *url = segue_listener_url(s.listener);
        assert_memory_equal(url, cases[i].begins, strlen(cases[i].begins));
        assert_string_equal(url + strlen(url) - strlen(cases[i].ends), cases[i].ends);
        segue_listener_close(s.listener);
        http_stage_run(&s);
        http_stage_end(&s);
    }
    assert_int_equal(access(file, F_OK), -1);
    assert_string_equal(segue_listener_url(NULL), "");
}

/* ---- memory ---- */

/* Plays one round of everything with the n-th allocation refused, alone or with all later
 * ones. Nothing crashes, hangs or leaks, and with memory back a call is answered. */
static size_t tortured_round(size_t fail_at, size_t fail_from)
{
    http_stage s = {0};
    http_caller a, b;
    char *call = http_call("1", "greet", NULL);
    char *slow = http_call("2", "slow_compute", "{\"ms\":400}");
    http_stage_begin(&s);
    http_caller_open(&s, &a);
    test_mem_rearm(&s.mem);
    s.mem.fail_at = fail_at;
    s.mem.fail_from = fail_from;
    http_caller_say(&a, call);
    http_stage_run(&s);
    http_caller_say(&a, slow);
    http_stage_advance(&s, 500);
    http_caller_say(&a, "GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n");
    http_stage_run(&s);
    size_t calls = s.mem.calls;
    test_mem_rearm(&s.mem);
    http_caller_close(&a);
    http_stage_advance(&s, 500);
    http_caller_open(&s, &b);
    http_caller_say(&b, call);
    assert_int_equal(http_caller_status(&b), 200);
    http_caller_close(&b);
    free(call);
    free(slow);
    http_stage_end(&s);
    return calls;
}

static void memory_runs_out_anywhere(void **state)
{
    (void)state;
    size_t calls = tortured_round(0, 0);
    assert_true(calls > 20);
    for (size_t i = 1; i <= calls; i++) {
        tortured_round(i, 0);
        tortured_round(0, i);
    }
}

static void listening_fails_cleanly_without_memory(void **state)
{
    (void)state;
    for (size_t i = 1;; i++) {
        http_stage s = {0};
        segue_listener *listener = NULL;
        http_stage_begin(&s);
        test_mem_rearm(&s.mem);
        s.mem.fail_at = i;
        segue_status status = segue_server_listen(s.server, NULL, &listener, NULL);
        bool failed = s.mem.failed > 0;
        test_mem_rearm(&s.mem);
        assert_int_equal(status, failed ? SEGUE_E_NOMEM : SEGUE_OK);
        segue_listener_free(listener);
        http_stage_end(&s);
        if (!failed)
            break;
    }
}

/* A socket of the server has existed, so the library behind it was loaded and ended. */
static void live_once(void)
{
    http_stage s = {0};
    http_caller caller;
    http_stage_open(&s, &caller);
    http_stage_close(&s, &caller);
}

static void an_ended_server_leaves_no_descriptor(void **state)
{
    (void)state;
    live_once(); /* what stays for the process is there after the first life */
    int before = test_count_files("/proc/self/fd");
    for (int i = 0; i < 3; i++)
        live_once();
    assert_int_equal(test_count_files("/proc/self/fd"), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ended_server_leaves_no_descriptor),
        cmocka_unit_test(a_closed_listener_drains),
        cmocka_unit_test(a_closed_server_drains),
        cmocka_unit_test(what_takes_too_long_is_cut),
        cmocka_unit_test(a_drained_server_says_that_it_is_idle),
        cmocka_unit_test(what_is_sent_on_an_idle_connection_is_refused_and_not_cut),
        cmocka_unit_test(what_waits_at_the_socket_is_refused_and_not_cut),
        cmocka_unit_test(an_idle_connection_ends_with_drain_ms),
        cmocka_unit_test(closing_twice_and_freeing_early_are_fine),
        cmocka_unit_test(a_server_without_a_handle_serves),
        cmocka_unit_test(a_runtime_ends_under_its_connections),
        cmocka_unit_test(what_cannot_be_listened_on_is_refused),
        cmocka_unit_test(urls_tell_where_to_go),
        cmocka_unit_test(memory_runs_out_anywhere),
        cmocka_unit_test(listening_fails_cleanly_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
