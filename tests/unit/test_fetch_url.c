/* Exchanges with other URLs than the fetcher's own, and headers that come several times.
 * Metadata and tokens are fetched this way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/fetch_kit.h"

typedef struct told {
    sgi_fetch *fetch;
    int dones;
    int32_t status;
    sgi_fetch_fault fault;
    char location[200];
    char challenges[200];
} told;

static void on_head(void *user, sgi_fetch *fetch, int32_t status)
{
    told *t = user;
    sgi_buf all;
    sgi_buf_init(&all, &sgi_mem_libc);
    t->status = status;
    sgi_fetch_add_headers(fetch, "www-authenticate", &all);
    snprintf(t->challenges, sizeof t->challenges, "%.*s", (int)all.len,
             all.p ? all.p : "");
    sgi_buf_free(&all);
}

static void on_bytes(void *user, sgi_fetch *fetch, const char *bytes, size_t len)
{
    (void)user;
    (void)fetch;
    (void)bytes;
    (void)len;
}

static void on_done(void *user, sgi_fetch *fetch, const sgi_fetch_outcome *outcome)
{
    told *t = user;
    sgi_str location = sgi_fetch_get_header(fetch, "location");
    t->dones++;
    t->fault = outcome->fault;
    snprintf(t->location, sizeof t->location, "%.*s", (int)location.n,
             location.p ? location.p : "");
}

static const sgi_fetch_events events = {NULL, on_head, on_bytes, on_done};

static void start(fetch_rig *rig, sgi_fetcher *fetcher, told *t, const char *url)
{
    sgi_fetch_request request = {.method = SGI_FETCH_GET, .url = url};
    *t = (told){0};
    sgi_runtime_lock(rig->rt);
    assert_int_equal(sgi_fetch_start(fetcher, &request, &events, t, &t->fetch), SEGUE_OK);
    sgi_runtime_unlock(rig->rt);
}

static void an_exchange_goes_to_its_own_url(void **state)
{
    (void)state;
    fetch_rig rig;
    told t;
    http_line line = {.fd = -1};
    char url[100];
    fetch_begin(&rig, NULL);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/a/b?c", rig.peer.port);
    start(&rig, rig.fetcher, &t, url);
    memset(url, 'x', sizeof url - 1); /* the URL was copied */
    RUN_UNTIL(rig.rt, http_peer_accept(&rig.peer, &line));
    RUN_UNTIL(rig.rt, http_line_asked(&line));
    assert_ptr_equal(strstr(line.in, "GET /a/b?c HTTP/1.1\r\n"), line.in);
    http_line_say(&line, "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic a\r\nX: y\r\n"
                         "WWW-AUTHENTICATE:Bearer b=c \r\nContent-Length: 0\r\n\r\n");
    RUN_UNTIL(rig.rt, t.dones);
    assert_int_equal(t.status, 401);
    assert_string_equal(t.challenges, "Basic a, Bearer b=c");
    http_line_close(&line);
    fetch_tear_down(&rig);
}

static void where_a_redirect_points_is_known_at_its_end(void **state)
{
    (void)state;
    fetch_rig rig;
    told t;
    http_line line = {.fd = -1};
    fetch_begin(&rig, NULL);
    start(&rig, rig.fetcher, &t, NULL);
    RUN_UNTIL(rig.rt, http_peer_accept(&rig.peer, &line));
    RUN_UNTIL(rig.rt, http_line_asked(&line));
    http_line_say(&line, "HTTP/1.1 302 Found\r\nLocation: /c\r\n\r\n");
    RUN_UNTIL(rig.rt, t.dones);
    assert_int_equal(t.fault, SGI_FETCH_REDIRECTED);
    assert_string_equal(t.location, "/c");
    http_line_close(&line);
    fetch_tear_down(&rig);
}

/* A Unix socket leads to one host only: requests to other hosts do not use it. */
static void elsewhere_is_not_behind_the_unix_socket(void **state)
{
    (void)state;
    fetch_rig rig;
    told t;
    http_peer local;
    http_line line = {.fd = -1};
    char path[64], url[100];
    sgi_fetcher *elsewhere = NULL;
    snprintf(path, sizeof path, "/tmp/segue-fetch-url-%d", (int)getpid());
    unlink(path); /* left by a killed process with the same number */
    fetch_set_up(&rig);
    http_peer_open_unix(&local, path);
    sgi_fetch_settings settings = {
        .url = "http://mcp.example/mcp", .unix_socket = path, .proxy = ""};
    fetch_connect(&rig, &settings);
    sgi_runtime_lock(rig.rt);
    assert_int_equal(sgi_fetcher_new_for_other_hosts(rig.fetcher, &elsewhere), SEGUE_OK);
    sgi_runtime_unlock(rig.rt);
    start(&rig, rig.fetcher, &t, "http://mcp.example/.well-known/x");
    RUN_UNTIL(rig.rt, http_peer_accept(&local, &line));
    RUN_UNTIL(rig.rt, http_line_asked(&line));
    assert_ptr_equal(strstr(line.in, "GET /.well-known/x HTTP/1.1\r\n"), line.in);
    http_line_say(&line, FETCH_ANSWER("2", "{}"));
    RUN_UNTIL(rig.rt, t.dones);
    http_line_close(&line);
    line = (http_line){.fd = -1};
    snprintf(url, sizeof url, "http://127.0.0.1:%d/token", rig.peer.port);
    start(&rig, elsewhere, &t, url);
    RUN_UNTIL(rig.rt, http_peer_accept(&rig.peer, &line));
    RUN_UNTIL(rig.rt, http_line_asked(&line));
    http_line_say(&line, FETCH_ANSWER("2", "{}"));
    RUN_UNTIL(rig.rt, t.dones);
    assert_int_equal(t.status, 200);
    http_line_close(&line);
    sgi_runtime_lock(rig.rt);
    sgi_fetcher_free(elsewhere);
    sgi_runtime_unlock(rig.rt);
    test_mem_rearm(&rig.mem);
    rig.mem.fail_from = 1;
    sgi_runtime_lock(rig.rt);
    assert_int_equal(sgi_fetcher_new_for_other_hosts(rig.fetcher, &elsewhere),
                     SEGUE_E_NOMEM);
    sgi_runtime_unlock(rig.rt);
    test_mem_rearm(&rig.mem);
    http_peer_close(&local);
    unlink(path);
    fetch_tear_down(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exchange_goes_to_its_own_url),
        cmocka_unit_test(where_a_redirect_points_is_known_at_its_end),
        cmocka_unit_test(elsewhere_is_not_behind_the_unix_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
