/* Slow callers that cost the server more than themselves (slow-loris and similar): heads,
 * bodies, chunks and trailers byte by byte, bodies that are announced and never come,
 * pipelines whose answers nobody reads. Hundreds of them do not delay a good caller, hold
 * little memory, and are cut off after their time, however active they seem. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "support/http_stage.h"

#define POST "POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
#define JSON "Content-Type: application/json\r\n"
#define KIB ((size_t)1024)
#define MANY 200

typedef struct shape {
    const char *begins;
    const char *drips; /* sent again and again, one byte per second */
    int lasts_s;       /* cut off after this time at the latest */
} shape;

static const shape shapes[] = {
    {"P", "POST", 11},
    {POST, "X: y\r\n", 11},
    {POST "X: ", "a", 11},
    {"\r\n", "P", 11},
    {POST JSON "Content-Length: 1000\r\n\r\n", " ", 31},
    {POST JSON "Transfer-Encoding: chunked\r\n\r\n", "1\r\n \r\n", 31},
    {POST JSON "Transfer-Encoding: chunked\r\n\r\n1;", "a=b;", 31},
    {POST JSON "Transfer-Encoding: chunked\r\n\r\n0\r\n", "X: y\r\n", 31},
    {POST JSON "Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n", "", 31},
    /* A refused body is read to its end because that is cheap, but it has a time limit,
     * too. */
    {"GET /else HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", " ", 31},
};

/* A good caller among them is answered at once. */
static void serve_well(http_stage *s)
{
    http_caller c;
    char *request = http_call("1", "greet", NULL);
    http_caller_open(s, &c);
    http_caller_say(&c, request);
    free(request);
    assert_int_equal(http_caller_status(&c), 200);
    http_caller_close(&c);
    http_stage_run(s);
}

static void drip_all(http_caller *c, const shape *how, int second)
{
    size_t len = strlen(how->drips);
    for (int i = 0; i < MANY && len; i++)
        if (!c[i].ended)
            http_caller_send(&c[i], how->drips + (size_t)second % len, 1);
}

static int count_open(http_caller *c)
{
    int open = 0;
    for (int i = 0; i < MANY; i++) {
        http_caller_look(&c[i]);
        open += !c[i].ended;
    }
    return open;
}

static void who_drips_is_gone_in_time(void **state)
{
    static http_caller c[MANY];
    (void)state;
    for (size_t n = 0; n < sizeof shapes / sizeof *shapes; n++) {
        http_stage s = {0};
        int second = 0;
        http_stage_begin(&s);
        serve_well(&s);
        size_t before = s.mem.live;
        for (int i = 0; i < MANY; i++) {
            http_caller_open(&s, &c[i]);
            http_caller_say(&c[i], shapes[n].begins);
            http_stage_run(&s); /* accepts the connections in the backlog */
        }
        for (; second <= shapes[n].lasts_s && count_open(c); second++) {
            assert_true(s.mem.live - before < MANY * 16 * KIB);
            if (second == 5)
                serve_well(&s);
            drip_all(c, &shapes[n], second);
            http_stage_advance(&s, 1000);
        }
        if (count_open(c))
            fail_msg("shape %zu: %d are left", n, count_open(c));
        for (int i = 0; i < MANY; i++) {
            if (c[i].in && !strstr(c[i].in, " 408 "))
                fail_msg("shape %zu: %s", n, c[i].in);
            http_caller_close(&c[i]);
        }
        http_stage_run(&s);
        assert_true(s.mem.live <= before + 4 * KIB);
        serve_well(&s);
        http_stage_end(&s);
    }
}

/* One caller is silent from the start, the other between requests. */
static void who_is_silent_is_gone_in_time(void **state)
{
    static http_caller c[MANY];
    http_stage s = {.listen = {.idle_timeout_ms = 20000}};
    (void)state;
    http_stage_begin(&s);
    for (int i = 0; i < MANY; i++) {
        http_caller_open(&s, &c[i]);
        http_stage_run(&s); /* accepts the connections in the backlog */
    }
    http_stage_advance(&s, 19000);
    assert_int_equal(count_open(c), MANY);
    serve_well(&s);
    http_stage_advance(&s, 2000);
    assert_int_equal(count_open(c), 0);
    for (int i = 0; i < MANY; i++)
        http_caller_close(&c[i]);
    http_stage_end(&s);
}

/* There are few connections, and slow callers take all: a waiting caller gets one when
 * their time is over. */
static void places_are_not_held_for_ever(void **state)
{
    enum { PLACES = 3 };
    http_stage s = {.listen = {.max_connections = PLACES}};
    http_caller slow[PLACES], good;
    char *request = http_call("1", "greet", NULL);
    (void)state;
    http_stage_begin(&s);
    for (int i = 0; i < PLACES; i++) {
        http_caller_open(&s, &slow[i]);
        http_caller_say(&slow[i], POST "X: ");
    }
    http_stage_run(&s);
    http_caller_open(&s, &good);
    http_caller_say(&good, request);
    free(request);
    http_stage_advance(&s, 9000);
    http_caller_quiet(&good);
    http_stage_advance(&s, 2000);
    assert_int_equal(http_caller_status(&good), 200);
    for (int i = 0; i < PLACES; i++)
        http_caller_close(&slow[i]);
    http_caller_close(&good);
    http_stage_end(&s);
}

/* Nobody reads the answers of a pipeline: the server stops reading, holds at most one
 * answer more than the system, and cuts the connection. */
static void answers_that_nobody_reads_are_not_heaped_up(void **state)
{
    http_stage s = {0};
    http_caller c;
    char *request = http_call("1", "big", "{\"bytes\":100000}");
    size_t len = strlen(request), at = 0;
    int small = 4096;
    (void)state;
    http_stage_open(&s, &c);
    http_caller_say(&c, request); /* the listener keeps a buffer to write in */
    assert_int_equal(http_caller_status(&c), 200);
    setsockopt(c.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    http_stage_run(&s);
    size_t before = s.mem.live;
    s.mem.peak = before;
    for (int quiet = 0; quiet < 20;) { /* until the server takes no more */
        ssize_t sent = send(c.fd, request + at, len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        quiet = sent > 0 ? 0 : quiet + 1;
        at = sent > 0 ? (at + (size_t)sent) % len : at;
        http_stage_run(&s);
    }
    free(request);
    assert_true(s.mem.peak - before < 1024 * KIB);
    assert_true(fixtures_runs(s.fixtures, "big") < 200);
    http_stage_advance(&s, 65000); /* more than write_timeout_ms passes */
    if (s.mem.live > before + 16 * KIB)
        fail_msg("%zu are kept", s.mem.live - before);
    http_stage_close(&s, &c);
}

/* Opens a caller with a small receive buffer; the size must be set before it connects. */
static void open_small(http_stage *s, http_caller *c)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->port)};
    int small = 4096;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *c = (http_caller){.s = s, .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_int_equal(setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
    assert_int_equal(connect(c->fd, (struct sockaddr *)&to, sizeof to), 0);
}

/* Makes more answers wait than the system holds. */
static void fill_up(http_stage *s, http_caller *c)
{
    char *request = http_call("1", "big", "{\"bytes\":100000}");
    size_t len = strlen(request), at = 0;
    for (int quiet = 0; quiet < 20;) {
        ssize_t sent = send(c->fd, request + at, len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        quiet = sent > 0 ? 0 : quiet + 1;
        at = sent > 0 ? (at + (size_t)sent) % len : at;
        http_stage_run(s);
    }
    free(request);
}

/* The limit is for a peer that takes nothing. A peer that always takes a little goes on,
 * although more is waiting than it takes within the limit. */
static void who_reads_slowly_is_not_cut_off(void **state)
{
    http_stage s = {.listen = {.write_timeout_ms = 5000}};
    http_caller c;
    char bytes[4 * KIB];
    (void)state;
    http_stage_begin(&s);
    open_small(&s, &c);
    fill_up(&s, &c);
    for (int i = 0; i < 40; i++) {
        http_stage_advance(&s, 1000);
        if (recv(c.fd, bytes, sizeof bytes, 0) <= 0) /* there, or about to be */
            fail_msg("cut off after %d times: %s", i, strerror(errno));
    }
    /* Now the peer takes nothing more once its buffers are full. */
    struct pollfd end = {.fd = c.fd};
    for (int i = 0; i < 30 && !(end.revents & (POLLHUP | POLLERR)); i++) {
        http_stage_advance(&s, 1000);
        poll(&end, 1, 0);
    }
    assert_true(end.revents & (POLLHUP | POLLERR));
    http_stage_close(&s, &c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_reads_slowly_is_not_cut_off),
        cmocka_unit_test(who_drips_is_gone_in_time),
        cmocka_unit_test(who_is_silent_is_gone_in_time),
        cmocka_unit_test(places_are_not_held_for_ever),
        cmocka_unit_test(answers_that_nobody_reads_are_not_heaped_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
