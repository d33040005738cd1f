/* The ways to a server and what may fail on them: names, connections, proxies, broken
 * responses. The test answers name lookups: its getaddrinfo replaces libc's. libcurl
 * looks up names on threads of its own. label: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "support/fetch_kit.h"

/* ---- names ---- */

static pthread_mutex_t slow_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t slow_change = PTHREAD_COND_INITIALIZER;
static int slow_inside;
static bool slow_may_end;

static void wait_slowly(void)
{
    pthread_mutex_lock(&slow_lock);
    slow_inside++;
    pthread_cond_broadcast(&slow_change);
    while (!slow_may_end)
        pthread_cond_wait(&slow_change, &slow_lock);
    slow_inside--;
    pthread_cond_broadcast(&slow_change);
    pthread_mutex_unlock(&slow_lock);
}

static void end_slow_lookups(void)
{
    pthread_mutex_lock(&slow_lock);
    slow_may_end = true;
    pthread_cond_broadcast(&slow_change);
    while (slow_inside)
        pthread_cond_wait(&slow_change, &slow_lock);
    slow_may_end = false;
    pthread_mutex_unlock(&slow_lock);
}

static bool is_looking_up(void)
{
    pthread_mutex_lock(&slow_lock);
    bool inside = slow_inside > 0;
    pthread_mutex_unlock(&slow_lock);
    return inside;
}

__attribute__((visibility("default"))) int getaddrinfo(const char *name,
                                                       const char *service,
                                                       const struct addrinfo *hints,
                                                       struct addrinfo **found)
{
    static int (*real)(const char *, const char *, const struct addrinfo *,
                       struct addrinfo **);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (name && strcmp(name, "slow.test") == 0)
        wait_slowly();
    if (name && strcmp(name, "here.test") == 0)
        return real("127.0.0.1", service, hints, found);
    if (name && strstr(name, ".test"))
        return EAI_NONAME;
    return real(name, service, hints, found);
}

/* ---- time ---- */

static _Atomic int64_t ahead_s;

/* The clock of libcurl: the test decides how many seconds pass. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock,
                                                         struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(clock, now);
    now->tv_sec += ahead_s;
    return status;
}

/* ---- faults ---- */

static void expect_fault(fetch_rig *rig, fetch_seen *seen, sgi_fetch_fault fault)
{
    RUN_UNTIL(rig->rt, seen->dones);
    if (seen->fault != fault)
        fail_msg("%d, not %d: %s", (int)seen->fault, (int)fault, seen->text);
    assert_true(seen->text[0]);
}

static void where_nobody_listens_is_unreachable(void **state)
{
    fetch_rig rig;
    fetch_seen seen = {0};
    (void)state;
    fetch_set_up(&rig);
    http_peer_close(&rig.peer);
    fetch_connect(&rig, NULL);
    fetch_start(&rig, &seen, "{}");
    expect_fault(&rig, &seen, SGI_FETCH_UNREACHABLE);
    assert_int_equal(seen.heads, 0);
    fetch_tear_down(&rig);
}

static void a_host_without_address_is_unresolved(void **state)
{
    fetch_rig rig;
    fetch_seen seen = {0};
    (void)state;
    fetch_set_up(&rig);
    fetch_connect(&rig,
                  &(sgi_fetch_settings){.url = "http://nowhere.test/", .proxy = ""});
    fetch_start(&rig, &seen, "{}");
    expect_fault(&rig, &seen, SGI_FETCH_UNRESOLVED);
    fetch_tear_down(&rig);
}

static void a_lookup_that_takes_too_long_is_a_timeout(void **state)
{
    fetch_rig rig;
    fetch_seen seen = {0};
    (void)state;
    fetch_begin(&rig, &(sgi_fetch_settings){.url = "http://slow.test/",
                                            .proxy = "",
                                            .connect_timeout_ms = 30});
    fetch_start(&rig, &seen, "{}");
    expect_fault(&rig, &seen, SGI_FETCH_TIMEOUT);
    fetch_tear_down(&rig);
    end_slow_lookups();
}

typedef enum ending { RESET, CLOSE } ending;

static void break_stream(const char *said, ending how, sgi_fetch_fault fault,
                         size_t bytes)
{
    fetch_rig rig;
    fetch_seen seen = {0};
    http_line line = {.fd = -1};
    fetch_begin(&rig, NULL);
    fetch_open_stream(&rig, &seen, &line);
    http_line_say(&line, said);
    RUN_UNTIL(rig.rt, seen.total == bytes);
    if (how == RESET)
        http_line_reset(&line);
    else
        http_line_close(&line);
    RUN_UNTIL(rig.rt, seen.dones);
    assert_int_equal(seen.fault, fault);
    assert_int_equal(seen.total, bytes);
    fetch_tear_down(&rig);
}

static void a_connection_that_breaks_in_mid_stream_is_broken(void **state)
{
    (void)state;
    break_stream(FETCH_CHUNKED "3\r\nabc\r\n", RESET, SGI_FETCH_BROKEN, 3);
    break_stream(FETCH_CHUNKED "3\r\nabc\r\n", CLOSE, SGI_FETCH_BROKEN, 3);
    break_stream(FETCH_CHUNKED "9\r\nabc", CLOSE, SGI_FETCH_BROKEN, 3);
    break_stream("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", CLOSE,
                 SGI_FETCH_BROKEN, 3);
    break_stream("HTTP/1.1 200 OK\r\nContent-", CLOSE, SGI_FETCH_BROKEN, 0);
    break_stream("", CLOSE, SGI_FETCH_BROKEN, 0);
    break_stream("", RESET, SGI_FETCH_BROKEN, 0);
    /* A response without a length ends with its connection. */
    break_stream("HTTP/1.1 200 OK\r\n\r\nabc", CLOSE, SGI_FETCH_OK, 3);
}

static void answer_and_expect(const char *answer, sgi_fetch_fault fault, const char *text)
{
    fetch_rig rig;
    fetch_seen seen = {0};
    http_line line = {.fd = -1};
    fetch_begin(&rig, NULL);
    fetch_open_stream(&rig, &seen, &line);
    size_t len = strlen(answer), at = 0;
    RUN_UNTIL(rig.rt,
              seen.dones || (at += http_line_push(&line, answer + at, len - at)) == len);
    expect_fault(&rig, &seen, fault);
    assert_int_equal(seen.heads, 0);
    if (text)
        assert_string_equal(seen.text, text);
    http_line_close(&line);
    fetch_tear_down(&rig);
}

static void no_redirect_is_followed(void **state)
{
    (void)state;
    answer_and_expect("HTTP/1.1 307 Moved\r\nLocation: https://other.test/x?secret=1\r\n"
                      "Content-Length: 0\r\n\r\n",
                      SGI_FETCH_REDIRECTED,
                      "the server redirects to https://other.test:443/x?... (307), "
                      "and redirects are not followed");
    answer_and_expect("HTTP/1.1 307 Moved\r\nLocation: /mcp/\r\n\r\n",
                      SGI_FETCH_REDIRECTED, NULL);
    answer_and_expect("HTTP/1.1 308 Moved\r\nLocation: http://other.test:81/23456789/"
                      "123456789/123456789/123456789/123456789/123456789/123456789/"
                      "123456789\r\n\r\n",
                      SGI_FETCH_REDIRECTED,
                      "the server redirects to http://other.test:81/23456789/123456789/"
                      "123456789/123456789/123456789/123456789/123456... (308), and "
                      "redirects are not followed");
    answer_and_expect("HTTP/1.1 301 Moved\r\nLocation: //other.test:81/\r\n\r\n",
                      SGI_FETCH_REDIRECTED,
                      "the server redirects to http://other.test:81/ (301), and "
                      "redirects are not followed");
    answer_and_expect(
        "HTTP/1.1 302 Moved\r\nLocation: mailto:you\r\n\r\n", SGI_FETCH_REDIRECTED,
        "the server redirects to elsewhere (302), and redirects are not followed");
}

static void a_redirect_without_a_place_is_an_answer(void **state)
{
    fetch_rig rig;
    fetch_seen seen = {0};
    http_line line = {.fd = -1};
    (void)state;
    fetch_begin(&rig, NULL);
    fetch_open_stream(&rig, &seen, &line);
    http_line_say(&line, "HTTP/1.1 304 Not Modified\r\n\r\n");
    RUN_UNTIL(rig.rt, seen.dones);
    assert_int_equal(seen.fault, SGI_FETCH_OK);
    assert_int_equal(seen.status, 304);
    http_line_close(&line);
    fetch_tear_down(&rig);
}

static char *long_head(size_t lines, size_t width)
{
    char *text = malloc(64 + lines * (width + 2) + 8);
    size_t at = (size_t)sprintf(text, "HTTP/1.1 200 OK\r\n");
    for (size_t i = 0; i < lines; i++) {
        memset(text + at, 'x', width);
        memcpy(text + at, "X: ", 3);
        at += width;
        text[at++] = '\r';
        text[at++] = '\n';
    }
    strcpy(text + at, "\r\n");
    return text;
}

static void headers_are_bounded(void **state)
{
    fetch_rig rig;
    fetch_seen seen = {0};
    http_line line = {.fd = -1};
    (void)state;
    char *fits = long_head(64, 1022), *more = long_head(65, 1022);
    char *wide = long_head(1, 80000), *endless = long_head(1, 500000);
    answer_and_expect(more, SGI_FETCH_TOO_LARGE, "the response's headers are too large");
    answer_and_expect(wide, SGI_FETCH_TOO_LARGE, NULL);
    answer_and_expect(endless, SGI_FETCH_TOO_LARGE, NULL);
    fetch_begin(&rig, NULL);
    fetch_open_stream(&rig, &seen, &line);
    size_t len = strlen(fits), at = 0;
    RUN_UNTIL(rig.rt, (at += http_line_push(&line, fits + at, len - at)) == len);
    RUN_UNTIL(rig.rt, seen.heads);
    http_line_close(&line);
    RUN_UNTIL(rig.rt, seen.dones);
    assert_int_equal(seen.fault, SGI_FETCH_OK);
    fetch_tear_down(&rig);
    free(fits);
    free(more);
    free(wide);
    free(endless);
}

static void what_is_no_http_is_malformed(void **state)
{
    (void)state;
    answer_and_expect("220 mail.test ESMTP\r\nhello\r\n", SGI_FETCH_MALFORMED, NULL);
}

/* ---- connections ---- */

static void connections_are_used_again(void **state)
{
    fetch_rig rig;
    http_line line = {.fd = -1}, other = {.fd = -1};
    (void)state;
    fetch_begin(&rig, NULL);
    for (int i = 0; i < 5; i++)
        assert_int_equal(fetch_exchange(&rig, &line, "{}"), 200);
    assert_false(http_peer_accept(&rig.peer, &other));
    http_line_close(&line);
    fetch_tear_down(&rig);
}

/* A pooled connection that died unnoticed must not fail a POST. */
static void a_connection_that_died_while_idle_is_replaced(void **state)
{
    (void)state;
    for (int how = RESET; how <= CLOSE; how++) {
        fetch_rig rig;
        http_line line = {.fd = -1}, next = {.fd = -1};
        fetch_begin(&rig, NULL);
        assert_int_equal(fetch_exchange(&rig, &line, "{\"a\":1}"), 200);
        if (how == RESET)
            http_line_reset(&line);
        else
            http_line_close(&line);
        assert_int_equal(fetch_exchange(&rig, &next, "{\"a\":2}"), 200);
        assert_non_null(strstr(next.in, "{\"a\":2}"));
        http_line_close(&next);
        fetch_tear_down(&rig);
    }
}

/* The same POST, when the connection dies while the request is being sent. */
static void a_connection_that_dies_before_it_answers_is_replaced(void **state)
{
    (void)state;
    for (int how = RESET; how <= CLOSE; how++) {
        fetch_rig rig;
        fetch_seen seen = {0};
        http_line line = {.fd = -1}, next = {.fd = -1};
        fetch_begin(&rig, NULL);
        assert_int_equal(fetch_exchange(&rig, &line, "{\"a\":1}"), 200);
        http_line_clear(&line);
        fetch_start(&rig, &seen, "{\"a\":2}");
        RUN_UNTIL(rig.rt, http_line_asked(&line));
        if (how == RESET)
            http_line_reset(&line);
        else
            http_line_close(&line);
        RUN_UNTIL(rig.rt, http_peer_accept(&rig.peer, &next));
        RUN_UNTIL(rig.rt, http_line_asked(&next));
        assert_non_null(strstr(next.in, "{\"a\":2}"));
        http_line_say(&next, FETCH_ANSWER("2", "{}"));
        RUN_UNTIL(rig.rt, seen.dones);
        assert_int_equal(seen.fault, SGI_FETCH_OK);
        http_line_close(&next);
        fetch_tear_down(&rig);
    }
}

/* A request that must not be acted on twice is not sent again. */
static void what_is_sent_once_is_not_sent_again(void **state)
{
    (void)state;
    for (int how = RESET; how <= CLOSE; how++) {
        fetch_rig rig;
        fetch_seen seen = {0};
        http_line line = {.fd = -1}, next = {.fd = -1};
        fetch_begin(&rig, NULL);
        assert_int_equal(fetch_exchange(&rig, &line, "{\"a\":1}"), 200);
        http_line_clear(&line);
        fetch_start_once(&rig, &seen, "{\"a\":2}");
        RUN_UNTIL(rig.rt, http_line_asked(&line));
        assert_non_null(strstr(line.in, "{\"a\":2}"));
        if (how == RESET)
            http_line_reset(&line);
        else
            http_line_close(&line);
        RUN_UNTIL(rig.rt, seen.dones);
        assert_int_equal(seen.fault, SGI_FETCH_BROKEN);
        if (http_peer_accept(&rig.peer, &next))
            assert_null(strstr(next.in, "{\"a\":2}"));
        http_line_close(&next);
        fetch_tear_down(&rig);
    }
}

/* After a long idle time the server may be about to close the connection. */
static void what_is_sent_once_goes_by_no_connection_that_was_idle_for_long(void **state)
{
    (void)state;
    fetch_rig rig;
    http_line line = {.fd = -1}, next = {.fd = -1};
    fetch_begin(&rig, NULL);
    assert_int_equal(fetch_exchange(&rig, &line, "{\"a\":1}"), 200);
    for (int number = 2; number <= 3; number++) {
        bool is_late = number == 3;
        http_line *used = is_late ? &next : &line;
        fetch_seen seen = {0};
        http_line_clear(&line);
        ahead_s += is_late ? 5 : 1;
        fetch_start_once(&rig, &seen, "{\"a\":2}");
        if (is_late)
            RUN_UNTIL(rig.rt, http_peer_accept(&rig.peer, &next));
        RUN_UNTIL(rig.rt, http_line_asked(used));
        http_line_say(used, FETCH_ANSWER("2", "{}"));
        RUN_UNTIL(rig.rt, seen.dones);
        assert_int_equal(seen.fault, SGI_FETCH_OK);
    }
    ahead_s = 0;
    http_line_close(&line);
    http_line_close(&next);
    fetch_tear_down(&rig);
}

#define PARALLEL 16

static void exchanges_run_side_by_side(void **state)
{
    static fetch_seen seen[PARALLEL];
    static http_line lines[PARALLEL];
    fetch_rig rig;
    (void)state;
    memset(seen, 0, sizeof seen);
    fetch_begin(&rig, NULL);
    for (int i = 0; i < PARALLEL; i++)
        fetch_start(&rig, &seen[i], "{}");
    for (int i = 0; i < PARALLEL; i++) {
        RUN_UNTIL(rig.rt, http_peer_accept(&rig.peer, &lines[i]));
        RUN_UNTIL(rig.rt, http_line_asked(&lines[i]));
    }
    for (int i = PARALLEL - 1; i >= 0; i--)
        http_line_say(&lines[i], FETCH_ANSWER("2", "{}"));
    for (int i = 0; i < PARALLEL; i++) {
        RUN_UNTIL(rig.rt, seen[i].dones);
        assert_int_equal(seen[i].fault, SGI_FETCH_OK);
        http_line_close(&lines[i]);
    }
    fetch_tear_down(&rig);
}

static void exchanges_beyond_the_limit_wait(void **state)
{
    static fetch_seen seen[5];
    http_line lines[2] = {{.fd = -1}, {.fd = -1}}, third = {.fd = -1};
    fetch_rig rig;
    (void)state;
    memset(seen, 0, sizeof seen);
    fetch_begin(&rig, &(sgi_fetch_settings){.proxy = "", .max_fetches = 2});
    for (int i = 0; i < 5; i++)
        fetch_start(&rig, &seen[i], "{}");
    fetch_cancel(&seen[3]); /* exchange 3 still waits */
    for (int i = 0; i < 2; i++)
        RUN_UNTIL(rig.rt, http_peer_accept(&rig.peer, &lines[i]));
    for (int i = 0; i < 5; i++)
        sgi_runtime_dispatch(rig.rt, 1, 0, NULL);
    assert_false(http_peer_accept(&rig.peer, &third));
    for (int round = 0; round < 200 && !(seen[2].dones && seen[4].dones); round++) {
        for (int i = 0; i < 2; i++) {
            if (http_line_asked(&lines[i])) {
                http_line_clear(&lines[i]);
                http_line_say(&lines[i], FETCH_ANSWER("2", "{}"));
            }
        }
        sgi_runtime_dispatch(rig.rt, 5, 0, NULL);
    }
    for (int i = 0; i < 5; i++)
        assert_int_equal(seen[i].dones, i != 3);
    http_line_close(&lines[0]);
    http_line_close(&lines[1]);
    fetch_tear_down(&rig);
}

/* A client with its maximum number of streams can still send the requests that its
 * streams wait for. */
static void streams_do_not_hold_up_what_is_short(void **state)
{
    fetch_seen stream = {0}, second = {0}, brief = {0};
    http_line line = {.fd = -1}, other = {.fd = -1}, third = {.fd = -1};
    fetch_rig rig;
    (void)state;
    fetch_begin(&rig, &(sgi_fetch_settings){.proxy = "", .max_fetches = 1});
    rig.lane = SGI_FETCH_STREAM;
    fetch_start(&rig, &stream, "{}");
    fetch_start(&rig, &second, "{}");
    rig.lane = SGI_FETCH_REQUEST;
    fetch_start(&rig, &brief, "{}");
    RUN_UNTIL(rig.rt, http_peer_accept(&rig.peer, &line));
    RUN_UNTIL(rig.rt, http_peer_accept(&rig.peer, &other));
    for (int i = 0; i < 5; i++)
        sgi_runtime_dispatch(rig.rt, 1, 0, NULL);
    assert_false(http_peer_accept(&rig.peer, &third));
    RUN_UNTIL(rig.rt, http_line_asked(&line));
    RUN_UNTIL(rig.rt, http_line_asked(&other));
    http_line_say(&other, FETCH_ANSWER("2", "{}"));
    RUN_UNTIL(rig.rt, brief.dones || stream.dones);
    fetch_tear_down(&rig);
    http_line_close(&line);
    http_line_close(&other);
}

static void it_lasts(fetch_seen *seen)
{
    sgi_fetch_move_to_stream_lane(seen->fetch);
    sgi_fetch_move_to_stream_lane(seen->fetch); /* a second call changes nothing */
}

static bool accept_soon(fetch_rig *rig, http_line *line)
{
    for (int i = 0; i < 5; i++)
        sgi_runtime_dispatch(rig->rt, 1, 0, NULL);
    return http_peer_accept(&rig->peer, line);
}

/* An exchange that becomes a stream makes room for short exchanges, within both
 * bounds. */
static void a_stream_that_began_as_short_makes_room(void **state)
{
    fetch_seen seen[4] = {{.at_head = it_lasts}, {.at_head = it_lasts}};
    http_line lines[4] = {{.fd = -1}, {.fd = -1}, {.fd = -1}, {.fd = -1}};
    fetch_rig rig;
    (void)state;
    fetch_begin(&rig, &(sgi_fetch_settings){.proxy = "", .max_fetches = 1});
    rig.lane = SGI_FETCH_REQUEST;
    for (int i = 0; i < 3; i++)
        fetch_start(&rig, &seen[i], "{}");
    rig.lane = SGI_FETCH_STREAM;
    for (int i = 0; i < 2; i++) {
        RUN_UNTIL(rig.rt, http_peer_accept(&rig.peer, &lines[i]));
        RUN_UNTIL(rig.rt, http_line_asked(&lines[i]));
        assert_false(accept_soon(&rig, &lines[i + 1]));
        http_line_say(&lines[i], FETCH_CHUNKED);
        RUN_UNTIL(rig.rt, seen[i].heads);
    }
    assert_false(accept_soon(&rig, &lines[2])); /* two streams at most */
    fetch_start(&rig, &seen[3], "{}");
    fetch_cancel(&seen[0]);
    RUN_UNTIL(rig.rt, http_peer_accept(&rig.peer, &lines[2]));
    assert_false(accept_soon(&rig, &lines[3]));
    fetch_cancel(&seen[1]);
    RUN_UNTIL(rig.rt, http_peer_accept(&rig.peer, &lines[3]));
    fetch_tear_down(&rig);
    for (int i = 0; i < 4; i++)
        http_line_close(&lines[i]);
}

/* One exchange turned into a stream, and a later stream waits. The runtime ends, and each
 * exchange ends once with it. */
static void what_waits_ends_with_the_runtime(void **state)
{
    fetch_seen stream = {0}, waiting = {0}, turned[2] = {{.at_head = it_lasts}};
    http_line lines[2] = {{.fd = -1}, {.fd = -1}};
    fetch_rig rig;
    (void)state;
    fetch_begin(&rig, &(sgi_fetch_settings){.proxy = "", .max_fetches = 1});
    rig.lane = SGI_FETCH_STREAM;
    fetch_open_stream(&rig, &stream, &lines[0]);
    fetch_start(&rig, &waiting, "{}");
    rig.lane = SGI_FETCH_REQUEST;
    fetch_open_stream(&rig, &turned[0], &lines[1]);
    http_line_say(&lines[1], FETCH_CHUNKED);
    RUN_UNTIL(rig.rt, turned[0].heads);
    fetch_start(&rig, &turned[1], "{}");
    http_line_say(&lines[0], FETCH_ANSWER("2", "{}"));
    RUN_UNTIL(rig.rt, stream.dones);
    sgi_runtime_ref(rig.rt); /* a fetcher's transport holds such a reference */
    sgi_runtime_free(rig.rt);
    assert_int_equal(waiting.dones, 1);
    assert_int_equal(waiting.fault, SGI_FETCH_CLOSED);
    for (int i = 0; i < 2; i++)
        assert_int_equal(turned[i].dones, 1);
    sgi_runtime_lock(rig.rt);
    sgi_fetcher_free(rig.fetcher);
    sgi_runtime_unlock(rig.rt);
    sgi_runtime_unref(rig.rt);
    for (int i = 0; i < 2; i++)
        http_line_close(&lines[i]);
    http_peer_close(&rig.peer);
    assert_int_equal(rig.mem.live, 0);
}

static void a_unix_socket_takes_the_place_of_the_host(void **state)
{
    char dir[] = "/tmp/fetch_XXXXXX", path[64];
    fetch_rig rig;
    http_line line = {.fd = -1};
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/s", dir);
    /* a proxy is not used for a Unix socket */
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    fetch_set_up(&rig);
    http_peer_close(&rig.peer);
    http_peer_open_unix(&rig.peer, path);
    fetch_connect(&rig,
                  &(sgi_fetch_settings){.url = "http://any.test/x", .unix_socket = path});
    assert_int_equal(fetch_exchange(&rig, &line, "{}"), 200);
    assert_non_null(strstr(line.in, "POST /x HTTP/1.1\r\nHost: any.test\r\n"));
    http_line_close(&line);
    fetch_tear_down(&rig);
    unsetenv("http_proxy");
    unlink(path);
    rmdir(dir);
}

static void a_unix_socket_that_is_not_there_is_named(void **state)
{
    fetch_rig rig;
    fetch_seen seen = {0};
    (void)state;
    fetch_set_up(&rig);
    fetch_connect(&rig, &(sgi_fetch_settings){.url = "http://localhost/x",
                                              .unix_socket = "/nowhere/at/all"});
    fetch_start(&rig, &seen, "{}");
    expect_fault(&rig, &seen, SGI_FETCH_UNREACHABLE);
    assert_string_equal(seen.text, "Failed to connect to the socket /nowhere/at/all: No "
                                   "such file or directory");
    fetch_tear_down(&rig);
}

/* ---- proxies ---- */

static void a_proxy_that_is_named_is_used(void **state)
{
    char proxy[64];
    fetch_rig rig;
    http_line line = {.fd = -1};
    (void)state;
    setenv("NO_PROXY", "*", 1); /* does not affect a proxy that was set explicitly */
    fetch_set_up(&rig);
    snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", rig.peer.port);
    fetch_connect(&rig,
                  &(sgi_fetch_settings){.url = "http://far.test/x", .proxy = proxy});
    assert_int_equal(fetch_exchange(&rig, &line, "{}"), 200);
    assert_int_equal(strncmp(line.in, "POST http://far.test/x HTTP/1.1\r\n", 33), 0);
    http_line_close(&line);
    fetch_tear_down(&rig);
    unsetenv("NO_PROXY");
}

static void the_environment_names_the_proxy(void **state)
{
    char proxy[64], url[64];
    fetch_rig rig;
    http_line line = {.fd = -1}, direct = {.fd = -1};
    (void)state;
    fetch_set_up(&rig);
    snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", rig.peer.port);
    snprintf(url, sizeof url, "http://here.test:%d/x", rig.peer.port);
    setenv("http_proxy", proxy, 1);
    fetch_connect(&rig, &(sgi_fetch_settings){.url = url});
    assert_int_equal(fetch_exchange(&rig, &line, "{}"), 200);
    assert_int_equal(strncmp(line.in, "POST http://here.test:", 22), 0);
    http_line_close(&line);
    setenv("NO_PROXY", "here.test", 1);
    assert_int_equal(fetch_exchange(&rig, &direct, "{}"), 200);
    assert_int_equal(strncmp(direct.in, "POST /x HTTP/1.1\r\n", 18), 0);
    http_line_close(&direct);
    fetch_tear_down(&rig);
    unsetenv("http_proxy");
    unsetenv("NO_PROXY");
}

static void a_proxy_that_refuses_makes_the_host_unreachable(void **state)
{
    char proxy[64];
    fetch_rig rig;
    fetch_seen seen = {0};
    http_line line = {.fd = -1};
    (void)state;
    fetch_set_up(&rig);
    snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", rig.peer.port);
    fetch_connect(&rig,
                  &(sgi_fetch_settings){.url = "https://far.test/", .proxy = proxy});
    fetch_start(&rig, &seen, "{}");
    RUN_UNTIL(rig.rt, http_peer_accept(&rig.peer, &line));
    RUN_UNTIL(rig.rt, http_line_asked(&line));
    assert_int_equal(strncmp(line.in, "CONNECT far.test:443 HTTP/1.1\r\n", 31), 0);
    http_line_say(&line, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n");
    expect_fault(&rig, &seen, SGI_FETCH_UNREACHABLE);
    http_line_close(&line);
    fetch_tear_down(&rig);
}

/* ---- lookups ---- */

static int64_t real_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Nothing waits on the loop thread, and the end does not wait for a lookup either. */
static void a_pending_lookup_holds_nobody_up(void **state)
{
    fetch_rig rig;
    fetch_seen seen = {0}, other = {0};
    (void)state;
    fetch_begin(&rig, &(sgi_fetch_settings){.url = "http://slow.test/", .proxy = ""});
    fetch_start(&rig, &seen, "{}");
    fetch_start(&rig, &other, "{}");
    RUN_UNTIL(rig.rt, is_looking_up());
    int64_t before = real_ms();
    fetch_cancel(&seen);
    for (int i = 0; i < 5; i++)
        sgi_runtime_dispatch(rig.rt, 0, 0, NULL);
    fetch_tear_down(&rig);
    assert_true(real_ms() - before < 120000); /* true even on a slow machine */
    assert_int_equal(other.dones, 0);
    end_slow_lookups();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_nobody_listens_is_unreachable),
        cmocka_unit_test(a_host_without_address_is_unresolved),
        cmocka_unit_test(a_lookup_that_takes_too_long_is_a_timeout),
        cmocka_unit_test(a_connection_that_breaks_in_mid_stream_is_broken),
        cmocka_unit_test(no_redirect_is_followed),
        cmocka_unit_test(a_redirect_without_a_place_is_an_answer),
        cmocka_unit_test(headers_are_bounded),
        cmocka_unit_test(what_is_no_http_is_malformed),
        cmocka_unit_test(connections_are_used_again),
        cmocka_unit_test(a_connection_that_died_while_idle_is_replaced),
        cmocka_unit_test(a_connection_that_dies_before_it_answers_is_replaced),
        cmocka_unit_test(what_is_sent_once_is_not_sent_again),
        cmocka_unit_test(what_is_sent_once_goes_by_no_connection_that_was_idle_for_long),
        cmocka_unit_test(exchanges_run_side_by_side),
        cmocka_unit_test(exchanges_beyond_the_limit_wait),
        cmocka_unit_test(streams_do_not_hold_up_what_is_short),
        cmocka_unit_test(a_stream_that_began_as_short_makes_room),
        cmocka_unit_test(what_waits_ends_with_the_runtime),
        cmocka_unit_test(a_unix_socket_takes_the_place_of_the_host),
        cmocka_unit_test(a_unix_socket_that_is_not_there_is_named),
        cmocka_unit_test(a_proxy_that_is_named_is_used),
        cmocka_unit_test(the_environment_names_the_proxy),
        cmocka_unit_test(a_proxy_that_refuses_makes_the_host_unreachable),
        cmocka_unit_test(a_pending_lookup_holds_nobody_up),
    };
    return cmocka_run_group_tests_name("fetch_routes", tests, NULL, NULL);
}
