/* What is special about fetches over plain HTTP, whose connections do not belong to
 * libcurl: which connections are kept, how many, and what a server may do to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>

#include "base/thresholds.h"
#include "runtime/state.h"
#include "support/fetch_kit.h"
#include "transport/fetch_state.h"

/* The errno with which the next sendmsg of this process fails; 0 = none. */
static int send_fault;

__attribute__((visibility("default"))) ssize_t
sendmsg(int fd, const struct msghdr *message, int flags)
{
    static ssize_t (*real)(int, const struct msghdr *, int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "sendmsg");
    errno = send_fault;
    send_fault = 0;
    return errno ? -1 : real(fd, message, flags);
}

/* The runtime whose lock is looked at when a socket is closed, and how often it was not
 * held. NULL = no look. */
static segue_runtime *watched;
static int closed, closed_without_lock;

__attribute__((visibility("default"))) int close(int fd)
{
    static int (*real)(int);
    int type = 0;
    socklen_t size = sizeof type;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "close");
    if (watched && !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size)) {
        closed++;
        if (pthread_mutex_trylock(&watched->mutex) == 0) {
            closed_without_lock++;
            pthread_mutex_unlock(&watched->mutex);
        }
    }
    return real(fd);
}

static size_t idle_of(fetch_rig *rig)
{
    return rig->fetcher->pool->idle_count;
}

static void libcurl_only_connects(void **state)
{
    fetch_rig rig;
    http_line line = {.fd = -1};
    (void)state;
    fetch_begin(&rig, NULL);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fetch_exchange(&rig, &line, "{}"), 200);
        assert_int_equal(idle_of(&rig), 1);
        assert_int_equal(rig.fetcher->pool->live, 0);
    }
    http_line_close(&line);
    RUN_UNTIL(rig.rt, idle_of(&rig) == 0); /* the close of an idle one is seen */
    fetch_tear_down(&rig);
}

static void answer_and_expect_idle(const char *answer, bool peer_closes, size_t idle)
{
    fetch_rig rig;
    fetch_seen seen = {0};
    http_line line = {.fd = -1}, next = {.fd = -1};
    fetch_begin(&rig, NULL);
    fetch_open_stream(&rig, &seen, &line);
    http_line_say(&line, answer);
    if (peer_closes)
        http_line_close(&line);
    RUN_UNTIL(rig.rt, seen.dones);
    assert_int_equal(seen.fault, SGI_FETCH_OK);
    assert_string_equal(seen.body, "{}");
    assert_int_equal(idle_of(&rig), idle);
    if (!idle && !peer_closes)
        RUN_UNTIL(rig.rt, http_line_ended(&line));
    assert_int_equal(fetch_exchange(&rig, idle ? &line : &next, "{}"), 200);
    http_line_close(&line);
    http_line_close(&next);
    fetch_tear_down(&rig);
}

static void only_a_clean_connection_is_kept(void **state)
{
    (void)state;
    answer_and_expect_idle(FETCH_ANSWER("2", "{}"), false, 1);
    answer_and_expect_idle(FETCH_CHUNKED "2\r\n{}\r\n0\r\n\r\n", false, 1);
    /* bytes behind the answer, which nobody asked for */
    answer_and_expect_idle(FETCH_ANSWER("2", "{}") "HTTP/1.1 200 OK\r\n", false, 0);
    answer_and_expect_idle("HTTP/1.1 200 OK\r\nConnection: close\r\n"
                           "Content-Length: 2\r\n\r\n{}",
                           false, 0);
    answer_and_expect_idle("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", false, 0);
    answer_and_expect_idle("HTTP/1.1 200 OK\r\n\r\n{}", true, 0);
}

static void an_idle_connection_that_speaks_is_closed(void **state)
{
    fetch_rig rig;
    http_line line = {.fd = -1}, next = {.fd = -1};
    (void)state;
    fetch_begin(&rig, NULL);
    assert_int_equal(fetch_exchange(&rig, &line, "{}"), 200);
    http_line_say(&line, FETCH_ANSWER("2", "{}"));
    assert_int_equal(fetch_exchange(&rig, &next, "{}"), 200);
    RUN_UNTIL(rig.rt, http_line_ended(&line));
    http_line_close(&line);
    http_line_close(&next);
    fetch_tear_down(&rig);
}

#define MANY 66

static void idle_connections_are_bounded(void **state)
{
    static fetch_seen seen[MANY];
    static http_line lines[MANY];
    fetch_rig rig;
    (void)state;
    memset(seen, 0, sizeof seen);
#ifdef SGI_KNOBS
    sgi_thresholds.idle_connections = 3;
#endif
    size_t most = SGI_THRESHOLD(idle_connections);
    fetch_begin(&rig, NULL);
    for (size_t i = 0; i < MANY; i++) {
        fetch_start(&rig, &seen[i], "{}");
        RUN_UNTIL(rig.rt, http_peer_accept(&rig.peer, &lines[i]));
        RUN_UNTIL(rig.rt, http_line_asked(&lines[i]));
    }
    for (size_t i = 0; i < MANY; i++) {
        http_line_say(&lines[i], FETCH_ANSWER("2", "{}"));
        RUN_UNTIL(rig.rt, seen[i].dones);
        assert_true(idle_of(&rig) <= most);
    }
    assert_int_equal(idle_of(&rig), most);
    /* the ones that were idle for the longest time are closed */
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(http_line_ended(&lines[i]), i < MANY - most);
    for (size_t i = 0; i < MANY; i++)
        http_line_close(&lines[i]);
    fetch_tear_down(&rig);
#ifdef SGI_KNOBS
    sgi_thresholds.idle_connections = 64;
#endif
}

/* A server may refuse a large body before it has read the body. */
static void an_answer_before_the_end_of_the_request_counts(void **state)
{
    const size_t size = (size_t)16 * 1024 * 1024;
    char *body = malloc(size + 1);
    fetch_rig rig;
    fetch_seen seen = {0};
    http_line line = {.fd = -1};
    (void)state;
    memset(body, 'x', size);
    body[size] = 0;
    fetch_begin(&rig, NULL);
    fetch_start(&rig, &seen, body);
    RUN_UNTIL(rig.rt, http_peer_accept(&rig.peer, &line));
    RUN_UNTIL(rig.rt, !http_line_asked(&line) && line.in_len > 1000);
    assert_false(seen.dones);
    http_line_say(&line, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
    RUN_UNTIL(rig.rt, seen.dones);
    assert_int_equal(seen.fault, SGI_FETCH_OK);
    assert_int_equal(seen.status, 413);
    assert_string_equal(seen.body, "no");
    assert_int_equal(idle_of(&rig), 0); /* the rest of the body was not sent */
    http_line_close(&line);
    fetch_tear_down(&rig);
    free(body);
}

/* Nobody waits for an answer to a request that the system could not send. */
static void a_request_that_cannot_be_sent_ends_its_fetch(void **state)
{
    (void)state;
    for (int reused = 0; reused < 2; reused++) {
        fetch_rig rig;
        fetch_seen seen = {0};
        http_line line = {.fd = -1}, next = {.fd = -1};
        fetch_begin(&rig, NULL);
        if (reused)
            assert_int_equal(fetch_exchange(&rig, &line, "{}"), 200);
        http_line_clear(&line);
        send_fault = ENOBUFS;
        fetch_start(&rig, &seen, "{}");
        if (reused) { /* goes over a new connection */
            RUN_UNTIL(rig.rt, http_peer_accept(&rig.peer, &next));
            RUN_UNTIL(rig.rt, http_line_asked(&next));
            http_line_say(&next, FETCH_ANSWER("2", "{}"));
        }
        RUN_UNTIL(rig.rt, seen.dones);
        assert_int_equal(seen.fault, reused ? SGI_FETCH_OK : SGI_FETCH_BROKEN);
        if (!reused)
            assert_non_null(strstr(seen.text, "the connection broke: "));
        http_line_close(&next);
        http_line_close(&line);
        fetch_tear_down(&rig);
    }
}

/* Other threads use what a fetch has with the lock held, so its connection is closed
 * with the lock held. */
static void a_cancelled_fetch_closes_its_connection_under_the_lock(void **state)
{
    fetch_rig rig;
    fetch_seen seen = {0};
    http_line line = {.fd = -1};
    (void)state;
    fetch_begin(&rig, NULL);
    fetch_open_stream(&rig, &seen, &line);
    http_line_say(&line, FETCH_CHUNKED "1\r\nx\r\n");
    RUN_UNTIL(rig.rt, seen.total == 1);
    watched = rig.rt;
    closed = closed_without_lock = 0;
    fetch_cancel(&seen);
    RUN_UNTIL(rig.rt, closed);
    watched = NULL;
    assert_int_equal(closed_without_lock, 0);
    RUN_UNTIL(rig.rt, http_line_ended(&line));
    http_line_close(&line);
    fetch_tear_down(&rig);
}

static void pause_in_bytes(fetch_seen *seen)
{
    sgi_fetch_set_paused(seen->fetch, true);
}

/* What has come during a pause is delivered, also if the connection has ended. */
static void a_pause_keeps_what_came_before_the_end(void **state)
{
    fetch_rig rig;
    fetch_seen seen = {.at_bytes = pause_in_bytes};
    http_line line = {.fd = -1};
    (void)state;
    fetch_begin(&rig, NULL);
    fetch_open_stream(&rig, &seen, &line);
    http_line_say(&line, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                         "1\r\na\r\n1\r\nb\r\n1\r\nc\r\n0\r\n\r\n");
    http_line_close(&line);
    for (size_t total = 1; total <= 3; total++) {
        RUN_UNTIL(rig.rt, seen.total == total);
        sgi_runtime_dispatch(rig.rt, 0, 0, NULL);
        assert_int_equal(seen.total, total);
        assert_int_equal(seen.dones, 0);
        fetch_pause(&seen, false);
    }
    RUN_UNTIL(rig.rt, seen.dones);
    assert_int_equal(seen.fault, SGI_FETCH_OK);
    assert_string_equal(seen.body, "abc");
    fetch_tear_down(&rig);
}

static void a_port_of_the_scheme_is_not_named(void **state)
{
    static const struct {
        const char *url, *authority, *target;
    } rows[] = {
        {"http://a.test:80/mcp", "a.test", "/mcp"},
        {"http://a.test:81/mcp?x=1", "a.test:81", "/mcp?x=1"},
        {"http://[::1]:8000/", "[::1]:8000", "/"},
        /* libcurl carries these, because it changes them or adds to them */
        {"http://a.test/b/../c", NULL, NULL},
        {"http://a.test", NULL, NULL},
        {"http://127.1:80/", NULL, NULL},
        {"http://cafe:80/", "cafe", "/"},
        {"http://127.0.0.1:80/", "127.0.0.1", "/"},
        {"http://user:word@a.test/", NULL, NULL},
        {"https://a.test/mcp", NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fetch_rig rig;
        fetch_set_up(&rig);
        fetch_connect(&rig, &(sgi_fetch_settings){.url = rows[i].url, .proxy = ""});
        const sgi_fetcher *fetcher = rig.fetcher;
        if (rows[i].target) {
            assert_true(sgi_str_eq(fetcher->authority, sgi_str_of(rows[i].authority)));
            assert_true(sgi_str_eq(fetcher->target, sgi_str_of(rows[i].target)));
        } else {
            assert_null(fetcher->target.p);
        }
        fetch_tear_down(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(libcurl_only_connects),
        cmocka_unit_test(only_a_clean_connection_is_kept),
        cmocka_unit_test(an_idle_connection_that_speaks_is_closed),
        cmocka_unit_test(idle_connections_are_bounded),
        cmocka_unit_test(an_answer_before_the_end_of_the_request_counts),
        cmocka_unit_test(a_request_that_cannot_be_sent_ends_its_fetch),
        cmocka_unit_test(a_cancelled_fetch_closes_its_connection_under_the_lock),
        cmocka_unit_test(a_pause_keeps_what_came_before_the_end),
        cmocka_unit_test(a_port_of_the_scheme_is_not_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
