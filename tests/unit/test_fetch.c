/* Exchanges over plain HTTP with a server that the test plays step by step: requests,
 * responses, streams and their ends. One test uses further threads. label: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>

#include "support/fetch_kit.h"
#include "transport/fetch_state.h"

/* ---- request and response ---- */

static void a_post_brings_status_headers_and_body(void **state)
{
    fetch_rig rig;
    fetch_seen seen = {0};
    http_line line = {.fd = -1};
    (void)state;
    fetch_begin(&rig, NULL);
    fetch_start(&rig, &seen, "{\"a\":1}");
    RUN_UNTIL(rig.rt, http_peer_accept(&rig.peer, &line));
    RUN_UNTIL(rig.rt, http_line_asked(&line));
    assert_int_equal(strncmp(line.in, "POST /mcp HTTP/1.1\r\n", 20), 0);
    assert_non_null(strstr(line.in, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(line.in, "\r\nContent-Length: 7\r\n"));
    assert_non_null(strstr(line.in, "\r\nUser-Agent: segue/"));
    assert_non_null(strstr(line.in, "\r\n\r\n{\"a\":1}"));
    assert_null(strcasestr(line.in, "\r\nexpect:"));
    assert_null(strcasestr(line.in, "\r\naccept-encoding:"));
    assert_null(strcasestr(line.in, "\r\ncookie:"));
    http_line_say(&line, "HTTP/1.1 100 Continue\r\nContent-Type: no/no\r\n\r\n"
                         "HTTP/1.1 202 Accepted\r\ncontent-TYPE: \t text/x \r\n"
                         "Content-Length: 5\r\n\r\nhello");
    RUN_UNTIL(rig.rt, seen.dones);
    assert_int_equal(seen.status, 202);
    assert_string_equal(seen.type, "text/x");
    assert_string_equal(seen.body, "hello");
    assert_int_equal(seen.fault, SGI_FETCH_OK);
    assert_string_equal(seen.text, "");
    http_line_close(&line);
    fetch_tear_down(&rig);
}

/* By default libcurl sends Expect for a body larger than 1 MiB, and waits for the
 * answer. */
static void a_large_body_is_sent_without_asking(void **state)
{
    const size_t size = (size_t)3 * 1024 * 1024;
    fetch_rig rig;
    fetch_seen seen = {0};
    http_line line = {.fd = -1};
    char *body = malloc(size + 1);
    (void)state;
    memset(body, 'x', size);
    body[size] = 0;
    fetch_begin(&rig, NULL);
    fetch_start(&rig, &seen, body);
    RUN_UNTIL(rig.rt, http_peer_accept(&rig.peer, &line));
    RUN_UNTIL(rig.rt, !http_line_asked(&line) && line.in_len == sizeof line.in - 1);
    assert_null(strcasestr(line.in, "\r\nexpect:"));
    http_line_say(&line, FETCH_ANSWER("2", "{}"));
    for (int i = 0; i < 1000 && !seen.dones; i++) {
        http_line_ended(&line); /* the peer continues to read */
        sgi_runtime_dispatch(rig.rt, 1, 0, NULL);
    }
    assert_int_equal(seen.fault, SGI_FETCH_OK);
    assert_int_equal(seen.dones, 1);
    free(body);
    http_line_close(&line);
    fetch_tear_down(&rig);
}

static void each_method_is_sent_with_its_headers(void **state)
{
    static const sgi_fetch_header_line headers[] = {
        {SGI_STR_INIT("Accept"), SGI_STR_INIT("text/event-stream")},
        {SGI_STR_INIT("Mcp-Empty"), {NULL, 0}},
        {SGI_STR_INIT("Mcp-Session-Id"), SGI_STR_INIT("a b")}};
    static const char *const first[] = {"GET /mcp HTTP/1.1\r\n", "POST /mcp HTTP/1.1\r\n",
                                        "DELETE /mcp HTTP/1.1\r\n"};
    fetch_rig rig;
    http_line line = {.fd = -1};
    (void)state;
    fetch_begin(&rig, NULL);
    for (int method = SGI_FETCH_GET; method <= SGI_FETCH_DELETE; method++) {
        fetch_seen seen = {0};
        assert_int_equal(
            fetch_request(&rig, &seen, (sgi_fetch_method)method, headers, 3, NULL),
            SEGUE_OK);
        if (line.fd < 0)
            RUN_UNTIL(rig.rt, http_peer_accept(&rig.peer, &line));
        RUN_UNTIL(rig.rt, http_line_asked(&line));
        assert_int_equal(strncmp(line.in, first[method], strlen(first[method])), 0);
        assert_non_null(strstr(line.in, "\r\nAccept: text/event-stream\r\n"));
        assert_non_null(strstr(line.in, "\r\nMcp-Empty:\r\n"));
        assert_non_null(strstr(line.in, "\r\nMcp-Session-Id: a b\r\n"));
        assert_null(strcasestr(line.in, "\r\ncontent-type:"));
        http_line_clear(&line);
        http_line_say(&line, FETCH_ANSWER("2", "{}"));
        RUN_UNTIL(rig.rt, seen.dones);
        assert_int_equal(seen.fault, SGI_FETCH_OK);
    }
    http_line_close(&line);
    fetch_tear_down(&rig);
}

static void what_could_break_a_line_is_refused(void **state)
{
    static const sgi_fetch_header_line bad[] = {
        {SGI_STR_INIT("A"), SGI_STR_INIT("b\r\nC: d")},
        {SGI_STR_INIT("A"), SGI_STR_INIT("\n")},
        {SGI_STR_INIT("A B"), SGI_STR_INIT("c")},
        {SGI_STR_INIT("A:"), SGI_STR_INIT("c")},
        {SGI_STR_INIT(""), SGI_STR_INIT("c")},
        {SGI_STR_INIT("A"), SGI_STR_INIT("\0")}};
    fetch_rig rig;
    fetch_seen seen = {0};
    (void)state;
    fetch_begin(&rig, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(fetch_request(&rig, &seen, SGI_FETCH_POST, &bad[i], 1, "x"),
                         SEGUE_E_INVALID);
    assert_int_equal(fetch_request(&rig, &seen, SGI_FETCH_GET, NULL, 0, "x"),
                     SEGUE_E_INVALID);
    assert_null(seen.fetch);
    fetch_tear_down(&rig);
}

static void only_http_urls_are_taken(void **state)
{
    static const char *const bad[] = {
        NULL,          "",        "nonsense",   "ftp://127.0.0.1/",
        "file:///etc", "http://", "gopher://x/"};
    char why[SGI_WHY_SIZE];
    fetch_rig rig;
    (void)state;
    fetch_set_up(&rig);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sgi_fetch_settings settings = {.url = bad[i]};
        assert_int_equal(sgi_fetcher_new(rig.rt, &settings, &rig.fetcher, why),
                         SEGUE_E_INVALID);
        assert_true(why[0]);
        assert_int_equal(sgi_fetcher_new(rig.rt, &settings, &rig.fetcher, NULL),
                         SEGUE_E_INVALID);
    }
    assert_null(rig.fetcher);
    fetch_tear_down(&rig);
}

/* ---- streams ---- */

static void a_stream_is_handed_out_as_it_comes(void **state)
{
    fetch_rig rig;
    fetch_seen seen = {0};
    http_line line = {.fd = -1};
    (void)state;
    fetch_begin(&rig, NULL);
    fetch_open_stream(&rig, &seen, &line);
    http_line_say(&line, FETCH_CHUNKED);
    RUN_UNTIL(rig.rt, seen.heads);
    for (size_t i = 1; i <= 20; i++) {
        http_line_say(&line, "5\r\nhello\r\n");
        RUN_UNTIL(rig.rt, seen.total == 5 * i);
        assert_int_equal(seen.dones, 0);
    }
    http_line_say(&line, "0\r\nTrailer: x\r\n\r\n");
    RUN_UNTIL(rig.rt, seen.dones);
    assert_int_equal(seen.fault, SGI_FETCH_OK);
    http_line_close(&line);
    fetch_tear_down(&rig);
}

static void a_response_may_come_byte_by_byte(void **state)
{
    static const char all[] = FETCH_CHUNKED "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    fetch_rig rig;
    fetch_seen seen = {0};
    http_line line = {.fd = -1};
    (void)state;
    fetch_begin(&rig, NULL);
    fetch_open_stream(&rig, &seen, &line);
    for (size_t i = 0; i < sizeof all - 1; i++) {
        assert_int_equal(http_line_push(&line, all + i, 1), 1);
        sgi_runtime_dispatch(rig.rt, 1, 0, NULL);
    }
    RUN_UNTIL(rig.rt, seen.dones);
    assert_string_equal(seen.type, "text/event-stream");
    assert_string_equal(seen.body, "abcde");
    assert_int_equal(seen.fault, SGI_FETCH_OK);
    http_line_close(&line);
    fetch_tear_down(&rig);
}

/* Sends until neither the socket nor the client takes more bytes. */
static size_t flood(fetch_rig *rig, http_line *line, size_t most)
{
    static char block[65536];
    size_t sent = 0;
    for (int idle = 0; idle < 20 && sent < most;) {
        size_t part = sizeof block < most - sent ? sizeof block : most - sent;
        size_t took = http_line_push(line, block, part);
        sent += took;
        idle = took ? 0 : idle + 1;
        sgi_runtime_dispatch(rig->rt, took ? 0 : 1, 0, NULL);
    }
    return sent;
}

static void pause_at_once(fetch_seen *seen)
{
    sgi_fetch_set_paused(seen->fetch, true);
}

/* Memory is bounded: a paused stream stops the peer. */
static void a_paused_stream_holds_the_peer_and_goes_on(void **state)
{
    static const size_t size = (size_t)64 * 1024 * 1024;
    fetch_rig rig;
    fetch_seen seen = {.at_head = pause_at_once};
    http_line line = {.fd = -1};
    (void)state;
    fetch_begin(&rig, NULL);
    fetch_open_stream(&rig, &seen, &line);
    http_line_say(&line, "HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\n");
    RUN_UNTIL(rig.rt, seen.heads);
    size_t sent = flood(&rig, &line, size);
    assert_in_range(sent, 1, size / 4); /* about the number of bytes that two sockets
                                         * hold */
    assert_int_equal(seen.total, 0);
    /* The pieces come one at a time, because each piece pauses the exchange. */
    seen.at_bytes = pause_at_once;
    for (size_t pieces = 1; pieces <= 5; pieces++) {
        fetch_pause(&seen, false);
        RUN_UNTIL(rig.rt, seen.pieces == pieces);
        for (int i = 0; i < 5; i++)
            sgi_runtime_dispatch(rig.rt, 0, 0, NULL);
        assert_int_equal(seen.pieces, pieces);
    }
    seen.at_bytes = NULL;
    fetch_pause(&seen, false);
    sent += flood(&rig, &line, size - sent);
    assert_int_equal(sent, size);
    RUN_UNTIL(rig.rt, seen.dones);
    assert_int_equal(seen.fault, SGI_FETCH_OK);
    assert_int_equal(seen.total, size);
    http_line_close(&line);
    fetch_tear_down(&rig);
}

static void no_byte_is_lost_or_doubled_by_pauses(void **state)
{
    fetch_rig rig;
    fetch_seen seen = {.at_bytes = pause_at_once};
    http_line line = {.fd = -1};
    char expected[401] = "";
    (void)state;
    fetch_begin(&rig, NULL);
    fetch_open_stream(&rig, &seen, &line);
    http_line_say(&line, FETCH_CHUNKED);
    for (int i = 0; i < 100; i++) {
        char chunk[] = "4\r\n....\r\n";
        char digit = (char)('0' + i % 10), ten = (char)('0' + i / 10);
        memcpy(chunk + 3, (char[]){'a', 'b', ten, digit}, 4);
        http_line_say(&line, chunk);
        memcpy(expected + (size_t)i * 4, chunk + 3, 4);
    }
    http_line_say(&line, "0\r\n\r\n");
    while (!seen.dones) {
        sgi_runtime_dispatch(rig.rt, 1, 0, NULL);
        if (seen.fetch)
            fetch_pause(&seen, false);
    }
    assert_int_equal(seen.fault, SGI_FETCH_OK);
    assert_string_equal(seen.body, expected);
    http_line_close(&line);
    fetch_tear_down(&rig);
}

/* ---- cancel ---- */

static void cancel_now(fetch_seen *seen)
{
    sgi_fetch_cancel(seen->fetch);
    sgi_fetch_cancel(seen->fetch); /* a second cancel is harmless */
}

static void nothing_is_called_after_a_cancel(void **state)
{
    fetch_rig rig;
    fetch_seen early = {0}, head = {.at_head = cancel_now},
               bytes = {.at_bytes = cancel_now};
    fetch_seen done = {.at_done = cancel_now}, later = {0};
    http_line line = {.fd = -1};
    (void)state;
    fetch_begin(&rig, NULL);
    fetch_start(&rig, &early, "{}");
    fetch_cancel(&early);
    sgi_runtime_dispatch(rig.rt, 0, 0, NULL);

    fetch_open_stream(&rig, &head, &line);
    http_line_say(&line, FETCH_CHUNKED "1\r\na\r\n");
    /* the cancelled exchange's connection is closed */
    RUN_UNTIL(rig.rt, http_line_ended(&line));
    assert_int_equal(head.total, 0);
    http_line_close(&line);

    fetch_open_stream(&rig, &bytes, &line);
    http_line_say(&line, FETCH_CHUNKED "1\r\na\r\n1\r\nb\r\n");
    RUN_UNTIL(rig.rt, http_line_ended(&line));
    assert_int_equal(bytes.total, 1);
    http_line_close(&line);

    fetch_open_stream(&rig, &done, &line);
    http_line_say(&line, FETCH_ANSWER("1", "x"));
    RUN_UNTIL(rig.rt, done.dones);
    http_line_close(&line);

    fetch_open_stream(&rig, &later, &line);
    http_line_say(&line, FETCH_CHUNKED "1\r\na\r\n");
    RUN_UNTIL(rig.rt, later.total == 1);
    fetch_cancel(&later);
    RUN_UNTIL(rig.rt, http_line_ended(&line));
    assert_int_equal(early.heads + early.dones + head.dones + bytes.dones + later.dones,
                     0);
    http_line_close(&line);
    fetch_tear_down(&rig);
}

static void a_paused_stream_can_be_cancelled(void **state)
{
    fetch_rig rig;
    fetch_seen seen = {.at_head = pause_at_once};
    http_line line = {.fd = -1};
    (void)state;
    fetch_begin(&rig, NULL);
    fetch_open_stream(&rig, &seen, &line);
    http_line_say(&line, FETCH_CHUNKED "1\r\na\r\n");
    RUN_UNTIL(rig.rt, seen.heads);
    sgi_runtime_dispatch(rig.rt, 1, 0, NULL);
    fetch_pause(&seen, false); /* both calls come before the loop runs */
    fetch_cancel(&seen);
    RUN_UNTIL(rig.rt, http_line_ended(&line));
    assert_int_equal(seen.total + (size_t)seen.dones, 0);
    http_line_close(&line);
    fetch_tear_down(&rig);
}

/* ---- life ---- */

static void a_runtime_may_end_with_exchanges_in_flight(void **state)
{
    static fetch_seen seen[4];
    fetch_rig rig;
    http_line lines[2] = {{.fd = -1}, {.fd = -1}};
    (void)state;
    memset(seen, 0, sizeof seen);
    fetch_begin(&rig, &(sgi_fetch_settings){.proxy = "", .max_fetches = 3});
    fetch_open_stream(&rig, &seen[0], &lines[0]);
    http_line_say(&lines[0], FETCH_CHUNKED "1\r\na\r\n");
    RUN_UNTIL(rig.rt, seen[0].total == 1);
    fetch_open_stream(&rig, &seen[1], &lines[1]);
    fetch_start(&rig, &seen[2], "{}"); /* this exchange is not even started */
    fetch_start(&rig, &seen[3], "{}"); /* this one waits for a connection */
    sgi_runtime_ref(rig.rt);           /* a fetcher's transport holds such a reference */
    sgi_runtime_free(rig.rt);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(seen[i].dones, 1);
        assert_int_equal(seen[i].fault, SGI_FETCH_CLOSED);
    }
    assert_int_equal(fetch_request(&rig, &seen[0], SGI_FETCH_GET, NULL, 0, NULL),
                     SEGUE_E_CLOSED);
    sgi_runtime_lock(rig.rt);
    sgi_fetcher_free(rig.fetcher);
    sgi_runtime_unlock(rig.rt);
    sgi_runtime_unref(rig.rt);
    assert_true(http_line_ended(&lines[0]));
    http_line_close(&lines[0]);
    http_line_close(&lines[1]);
    http_peer_close(&rig.peer);
    assert_int_equal(rig.mem.live, 0);
}

/* A carrier that the runtime waits for when it ends. It waits for the end of a
 * connection, which only a turn of the loop can cause. */
typedef struct watcher {
    sgi_carrier carrier;
    http_line *line;
    bool has_ended;
} watcher;

static void watch(sgi_carrier *carrier, uint32_t work)
{
    watcher *self = SGI_OWNER(carrier, watcher, carrier);
    (void)work;
    self->has_ended = self->has_ended || http_line_ended(self->line);
    if (self->has_ended)
        carrier->attached = false;
    else
        sgi_carrier_request_work(carrier, SGI_WORK_OWN);
}

static void stop_watching(sgi_carrier *carrier)
{
    if (carrier->attached)
        sgi_carrier_retire(carrier);
    else
        sgi_carrier_drop(carrier);
}

static void keep_watcher(sgi_carrier *carrier)
{
    (void)carrier; /* the test owns the carrier */
}

/* A server in the same runtime waits until the kept connections are closed. */
static void kept_connections_close_when_the_runtime_begins_to_end(void **state)
{
    static const sgi_carrier_ops ops = {
        .work = watch, .abandon = stop_watching, .destroy = keep_watcher};
    fetch_rig rig;
    http_line line = {.fd = -1};
    watcher eye = {.carrier = {.ops = &ops, .attached = true, .grace_ms = 60000},
                   .line = &line};
    (void)state;
    fetch_begin(&rig, NULL);
    assert_int_equal(fetch_exchange(&rig, &line, "{}"), 200);
    assert_false(http_line_ended(&line)); /* the connection is kept */
    sgi_runtime_lock(rig.rt);
    sgi_carrier_add(rig.rt, &eye.carrier);
    sgi_runtime_unlock(rig.rt);
    fetch_tear_down(&rig);
    assert_true(eye.has_ended);
    http_line_close(&line);
}

static void a_fetcher_that_is_freed_takes_its_exchanges_along(void **state)
{
    fetch_rig rig;
    fetch_seen seen = {0}, queued = {0};
    http_line line = {.fd = -1};
    (void)state;
    fetch_begin(&rig, &(sgi_fetch_settings){.proxy = "", .max_fetches = 1});
    fetch_open_stream(&rig, &seen, &line);
    fetch_start(&rig, &queued, "{}");
    sgi_runtime_lock(rig.rt);
    sgi_fetcher_free(rig.fetcher);
    sgi_runtime_unlock(rig.rt);
    rig.fetcher = NULL;
    RUN_UNTIL(rig.rt, http_line_ended(&line));
    assert_int_equal(seen.dones + queued.dones, 0);
    http_line_close(&line);
    fetch_tear_down(&rig);
}

static void lack_of_memory_fails_one_start(void **state)
{
    fetch_rig rig;
    http_line line = {.fd = -1};
    (void)state;
    fetch_set_up(&rig);
    for (size_t n = 1;; n++) {
        test_mem_rearm(&rig.mem);
        rig.mem.fail_at = n;
        sgi_fetch_settings settings = {.url = "http://127.0.0.1/", .proxy = ""};
        segue_status status = sgi_fetcher_new(rig.rt, &settings, &rig.fetcher, NULL);
        if (status == SEGUE_OK)
            break;
        assert_int_equal(status, SEGUE_E_NOMEM);
        assert_null(rig.fetcher);
    }
    sgi_runtime_lock(rig.rt);
    sgi_fetcher_free(rig.fetcher);
    sgi_runtime_unlock(rig.rt);
    rig.fetcher = NULL;
    test_mem_rearm(&rig.mem);
    fetch_connect(&rig, NULL);
    int refused = 0, failed = 0;
    for (size_t n = 1; n < 50; n++) {
        fetch_seen seen = {0};
        test_mem_rearm(&rig.mem);
        rig.mem.fail_at = n;
        segue_status status = fetch_request(&rig, &seen, SGI_FETCH_POST, NULL, 0, "{}");
        if (status != SEGUE_OK) {
            assert_int_equal(status, SEGUE_E_NOMEM);
            refused++;
            continue;
        }
        for (int i = 0; i < 300 && !seen.dones; i++) {
            if (line.fd < 0)
                http_peer_accept(&rig.peer, &line);
            if (line.fd >= 0 && http_line_asked(&line)) {
                http_line_clear(&line);
                http_line_say(&line, FETCH_ANSWER("2", "{}"));
            }
            if (line.fd >= 0 && line.ended)
                http_line_close(&line);
            sgi_runtime_dispatch(rig.rt, 1, 0, NULL);
        }
        assert_int_equal(seen.dones, 1);
        if (rig.mem.failed) {
            assert_int_equal(seen.fault, SGI_FETCH_NOMEM);
            failed++;
        } else {
            assert_int_equal(seen.fault, SGI_FETCH_OK);
        }
        if (line.fd >= 0 && http_line_ended(&line))
            http_line_close(&line);
    }
    assert_true(refused >= 2); /* the body and the exchange */
    assert_true(failed >= 1);  /* the response's headers could not be stored */
    test_mem_rearm(&rig.mem);
    if (line.fd >= 0)
        http_line_close(&line);
    line = (http_line){.fd = -1};
    assert_int_equal(fetch_exchange(&rig, &line, "{}"), 200);
    http_line_close(&line);
    fetch_tear_down(&rig);
}

/* This failure cannot happen while watchers are allocated in advance; the test takes
 * them away. libcurl then gives up as a whole, and the next exchange begins with a new
 * CURLM. */
static void a_socket_that_cannot_be_watched_ends_what_runs(void **state)
{
    fetch_rig rig;
    fetch_seen first = {0}, second = {0};
    http_line line = {.fd = -1}, next = {.fd = -1};
    struct sgi_fetch_watches taken = LIST_HEAD_INITIALIZER(taken);
    sgi_fetch_watch *watch;
    (void)state;
    fetch_begin(&rig, &(sgi_fetch_settings){.proxy = "", .by_libcurl = true});
    fetch_open_stream(&rig, &first, &line);
    sgi_fetch_pool *pool = rig.fetcher->pool;
    while ((watch = LIST_FIRST(&pool->spare))) {
        LIST_REMOVE(watch, link);
        LIST_INSERT_HEAD(&taken, watch, link);
    }
    pool->watches += 1000;
    fetch_start(&rig, &second, "{}");
    rig.mem.fail_from = 1;
    RUN_UNTIL(rig.rt, first.dones && second.dones);
    rig.mem.fail_from = 0;
    pool->watches -= 1000;
    while ((watch = LIST_FIRST(&taken))) {
        LIST_REMOVE(watch, link);
        LIST_INSERT_HEAD(&pool->spare, watch, link);
    }
    assert_int_equal(first.fault, SGI_FETCH_BROKEN);
    assert_int_equal(second.fault, SGI_FETCH_BROKEN);
    http_line_close(&line);
    if (http_peer_accept(&rig.peer, &next))
        http_line_close(&next);
    next = (http_line){.fd = -1};
    assert_int_equal(fetch_exchange(&rig, &next, "{}"), 200);
    http_line_close(&next);
    fetch_tear_down(&rig);
}

/* ---- threads ---- */

typedef struct asker {
    fetch_rig *rig;
    fetch_seen seen[20];
    pthread_t thread;
} asker;

static void *start_and_cancel(void *user)
{
    asker *a = user;
    for (size_t i = 0; i < 20; i++) {
        fetch_start(a->rig, &a->seen[i], "{}");
        sgi_runtime_lock(a->rig->rt);
        if (a->seen[i].fetch && i % 2)
            sgi_fetch_cancel(a->seen[i].fetch);
        else if (a->seen[i].fetch)
            sgi_fetch_set_paused(a->seen[i].fetch, false);
        sgi_runtime_unlock(a->rig->rt);
    }
    return NULL;
}

static bool is_over(asker *askers, size_t count)
{
    size_t over = 0;
    sgi_runtime_lock(askers->rig->rt);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < 20; k += 2)
            over += (size_t)askers[i].seen[k].dones;
    sgi_runtime_unlock(askers->rig->rt);
    return over == count * 10;
}

/* No server listens: each exchange that is not cancelled ends with a fault. */
static void any_thread_may_ask(void **state)
{
    static asker askers[3];
    fetch_rig rig;
    (void)state;
    memset(askers, 0, sizeof askers);
    fetch_set_up(&rig);
    http_peer_close(&rig.peer);
    fetch_connect(&rig, NULL);
    assert_int_equal(sgi_runtime_start(rig.rt), SEGUE_OK);
    for (int i = 0; i < 3; i++) {
        askers[i].rig = &rig;
        assert_int_equal(
            pthread_create(&askers[i].thread, NULL, start_and_cancel, &askers[i]), 0);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(askers[i].thread, NULL);
    while (!is_over(askers, 3))
        sgi_runtime_dispatch(rig.rt, 1, 0, NULL);
    fetch_tear_down(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_post_brings_status_headers_and_body),
        cmocka_unit_test(a_large_body_is_sent_without_asking),
        cmocka_unit_test(each_method_is_sent_with_its_headers),
        cmocka_unit_test(what_could_break_a_line_is_refused),
        cmocka_unit_test(only_http_urls_are_taken),
        cmocka_unit_test(a_stream_is_handed_out_as_it_comes),
        cmocka_unit_test(a_response_may_come_byte_by_byte),
        cmocka_unit_test(a_paused_stream_holds_the_peer_and_goes_on),
        cmocka_unit_test(no_byte_is_lost_or_doubled_by_pauses),
        cmocka_unit_test(nothing_is_called_after_a_cancel),
        cmocka_unit_test(a_paused_stream_can_be_cancelled),
        cmocka_unit_test(a_runtime_may_end_with_exchanges_in_flight),
        cmocka_unit_test(kept_connections_close_when_the_runtime_begins_to_end),
        cmocka_unit_test(a_fetcher_that_is_freed_takes_its_exchanges_along),
        cmocka_unit_test(lack_of_memory_fails_one_start),
        cmocka_unit_test(a_socket_that_cannot_be_watched_ends_what_runs),
        cmocka_unit_test(any_thread_may_ask),
    };
    return cmocka_run_group_tests_name("fetch", tests, NULL, NULL);
}
