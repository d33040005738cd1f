/* A client over HTTP against a hostile server. The client follows no redirect, sends no
 * secrets elsewhere, and decodes nothing that could grow. It takes no more than its
 * limits. It is neither kept away for ever nor made to hurry. test_bad_input.c has
 * hostile messages. */
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

#define JSON "Content-Type: application/json\r\n"
#define KIB ((size_t)1024)
#define LIMIT (256 * KIB) /* limit of one message here */

/* Makes a session with its own limit and a secret to steal, and a call that was
 * received. */
static record *begin_call(http_script *s, heard **call)
{
    script_prepare(s);
    s->most = LIMIT;
    script_connect(s, NULL);
    assert_int_equal(segue_transport_set_header(s->k.transport, "Authorization",
                                                "Bearer secret", NULL),
                     SEGUE_OK);
    script_discover(s, SERVER_PLAIN);
    record *r = kit_call(&s->k, "t");
    *call = script_expect(s, "tools/call");
    assert_header(*call, "Authorization", "Bearer secret");
    return r;
}

/* Checks that the session goes on as before. */
static void end_well(http_script *s)
{
    record *r = kit_call(&s->k, "probe");
    script_result(script_expect(s, "tools/call"), "\"content\":[]");
    script_until(s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    script_end(s);
}

/* ---- redirects ---- */

static void no_redirect_is_followed_with_credentials(void **state)
{
    static const char *const statuses[] = {"301 a", "302 a", "303 a", "307 a", "308 a"};
    (void)state;
    http_peer thief;
    http_line line = {.fd = -1};
    http_peer_open(&thief);
    char places[6][80];
    snprintf(places[0], 80, "http://127.0.0.1:%d/mcp", thief.port);
    snprintf(places[1], 80, "//127.0.0.1:%d/mcp", thief.port);
    snprintf(places[2], 80, "http://user@127.0.0.1:%d/", thief.port);
    snprintf(places[3], 80, "file:///etc/passwd");
    snprintf(places[4], 80, "gopher://127.0.0.1:%d/_x", thief.port);
    snprintf(places[5], 80, "/elsewhere");
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        for (size_t p = 0; p < 6; p++) {
            http_script s;
            heard *h;
            char headers[512];
            record *r = begin_call(&s, &h);
            snprintf(headers, sizeof headers, "Location: %s\r\n", places[p]);
            script_say(h, statuses[i], headers, "");
            script_until(&s, r->completed);
            assert_int_equal(r->status, SEGUE_E_REFUSED);
            assert_null(strstr(r->message, "secret"));
            script_expect_silence(&s);
            assert_false(http_peer_accept(&thief, &line));
            end_well(&s);
        }
    }
    http_peer_close(&thief);
}

/* ---- headers and names ---- */

static void nothing_is_brought_along(void **state)
{
    (void)state;
    http_script s;
    heard *h;
    record *r = begin_call(&s, &h);
    char body[128];
    snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s}}",
             json_at(h->body, "id"), "\"resultType\":\"complete\",\"content\":[]");
    script_say(h, "200 OK",
               JSON "Set-Cookie: track=1; Path=/\r\nAlt-Svc: h2=\":1\"; ma=9\r\n"
                    "Strict-Transport-Security: max-age=9\r\n"
                    "WWW-Authenticate: Basic\r\nRefresh: 0; url=/x\r\n",
               body);
    script_until(&s, r->completed);
    r = kit_call(&s.k, "again");
    h = script_expect(&s, "tools/call");
    assert_header(h, "Cookie", NULL);
    assert_header(h, "Referer", NULL);
    assert_header(h, "Accept-Encoding", NULL);
    assert_header(h, "Authorization", "Bearer secret");
    script_result(h, "\"content\":[]");
    script_until(&s, r->completed);
    end_well(&s);
}

/* Names from a server stay within one line of the log. */
static void names_of_a_server_begin_no_line_of_the_log(void **state)
{
    (void)state;
    http_script s;
    script_begin(&s, NULL);
    script_discover(&s, SERVER_PLAIN);
    record *r = kit_start(&s.k, "tools/list", "{}", NULL);
    script_result(script_expect(&s, "tools/list"),
                  "\"tools\":[{\"name\":\"x\\n\\u001b[2Jroot\\u009b\\u007f\","
                  "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"a\":{"
                  "\"type\":\"string\",\"x-mcp-header\":\"no token\"}}}}]");
    script_until(&s, r->completed);
    assert_non_null(strstr(s.k.last_warning, "root"));
    assert_null(strchr(s.k.last_warning, '\\')); /* the name itself, not its JSON */
    for (const char *c = s.k.last_warning; *c; c++)
        assert_true((unsigned char)*c >= ' ' && *c != 0x7f && (unsigned char)*c != 0x9b);
    end_well(&s);
}

/* ---- answers that grow ---- */

/* Four MiB of blanks around an answer, packed in four KiB: never unpacked. */
static void packed_answers_are_not_unpacked(void **state)
{
    static const char *const codings[] = {"gzip", "deflate", "br", "zstd", "gzip, gzip"};
    (void)state;
    for (size_t i = 0; i < sizeof codings / sizeof *codings; i++) {
        http_script s;
        heard *h;
        char headers[128];
        record *r = begin_call(&s, &h);
        s.k.mem.peak = s.k.mem.live;
        size_t before = s.k.mem.live;
        snprintf(headers, sizeof headers, JSON "Content-Encoding: %s\r\n", codings[i]);
        script_say(h, "200 OK", headers,
                   "\x1f\x8b\x08\x01\x01\x01\x01\x01\x02\xff\xed\xc1\x01\x0d");
        script_until(&s, r->completed);
        assert_true(r->status != SEGUE_OK);
        assert_true(s.k.mem.peak - before < 64 * KIB);
        end_well(&s);
    }
}

/* Sends `before`, then pieces without end, until the client stops reading. */
static void flood(const char *before, const char *piece, segue_status expected)
{
    http_script s;
    heard *h;
    record *r = begin_call(&s, &h);
    size_t len = strlen(piece), sent = 0;
    size_t live = s.k.mem.live;
    s.k.mem.peak = live;
    script_push(h, before, strlen(before));
    while (!r->completed && sent < 64 * LIMIT) {
        size_t taken = script_push(h, piece, len);
        sent += taken;
        if (taken < len && taken) /* send the rest of the piece first */
            sent += script_push(h, piece + taken, len - taken);
        script_pump(&s);
    }
    script_until(&s, r->completed);
    if (r->status != expected)
        fail_msg("%.80s: %d %s", before, r->status, r->message);
    if (s.k.mem.peak - live > 4 * LIMIT)
        fail_msg("%.80s took %zu", before, s.k.mem.peak - live);
    script_until(&s, heard_is_closed(h));
    end_well(&s);
}

static void answers_without_end_are_cut(void **state)
{
    static char blanks[8193], lines[8193], header[8193];
    (void)state;
    memset(blanks, ' ', sizeof blanks - 1);
    memset(header, 'h', sizeof header - 1);
    for (size_t i = 0; i + 8 < sizeof lines; i += 8)
        memcpy(lines + i, "X: abc\r\n", 8);
    flood("HTTP/1.1 200 OK\r\n" JSON "\r\n", blanks, SEGUE_E_TOO_LARGE);
    flood("HTTP/1.1 200 OK\r\n" JSON "Content-Length: 9000000000\r\n\r\n", blanks,
          SEGUE_E_TOO_LARGE);
    flood("HTTP/1.1 200 OK\r\n" JSON, lines, SEGUE_E_REFUSED);
    flood("HTTP/1.1 200 OK\r\nX: ", header, SEGUE_E_REFUSED);
    flood("HTTP/1.1 500 Oh\r\nContent-Type: text/plain\r\n\r\n", header, SEGUE_E_REFUSED);
}

/* An event that is too large fails its call at once. */
static void an_event_without_end_takes_bounded_memory(void **state)
{
    static char filler[8193];
    (void)state;
    http_script s;
    heard *h;
    record *r = begin_call(&s, &h);
    memset(filler, 'd', sizeof filler - 1);
    script_stream(h);
    size_t live = s.k.mem.live;
    s.k.mem.peak = live;
    script_text(h, "id: ");
    /* the call ends while the event comes */
    for (int i = 0; i < 500 && !r->completed; i++) {
        script_text(h, i == 100 ? "\ndata: " : filler);
        script_pump(&s);
    }
    script_until(&s, r->completed);
    assert_true(s.k.mem.peak - live < 4 * LIMIT);
    assert_int_equal(r->status, SEGUE_E_TOO_LARGE);
    assert_true(heard_is_closed(h)); /* nothing more is read */
    end_well(&s);
}

/* ---- ids of a session ---- */

static void a_session_id_that_is_none_is_refused(void **state)
{
    static const char *const ids[] = {"a b", "\xc3\xa9", "a\tb", "\x7f"};
    char *large = malloc(5001);
    (void)state;
    memset(large, 'a', 5000);
    large[5000] = 0;
    for (size_t i = 0; i <= sizeof ids / sizeof *ids; i++) {
        http_script s;
        char headers[6000];
        script_begin(&s, NULL);
        heard *h = script_expect(&s, "server/discover");
        script_error(h, "404 Not Found", -32601, NULL);
        h = script_expect(&s, "initialize");
        snprintf(headers, sizeof headers, JSON "Mcp-Session-Id: %s\r\n",
                 i < sizeof ids / sizeof *ids ? ids[i] : large);
        script_say(h, "200 OK", headers,
                   "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"protocolVersion\":"
                   "\"2025-11-25\",\"capabilities\":{},\"serverInfo\":{\"name\":\"a\","
                   "\"version\":\"1\"}}}");
        script_until(&s, s.k.closed);
        assert_int_equal(s.k.closed_status, SEGUE_E_REFUSED);
        script_expect_silence(&s);
        script_end(&s);
    }
    free(large);
}

/* ---- Retry-After ---- */

static record *begin_task(http_script *s)
{
    script_begin(s, NULL);
    script_discover(s, SERVER_TASKS);
    record *r = kit_call(&s->k, "t");
    script_result(script_expect(s, "tools/call"), CREATED("T"));
    return r;
}

/* Returns how long the client waits before it asks again. */
static int64_t pause_of(http_script *s)
{
    int64_t since = s->k.clock_ms;
    while (!script_next(s)) {
        script_advance(s, 100);
        assert_true(s->k.clock_ms - since < 1000000);
    }
    return s->k.clock_ms - since;
}

static void retry_after_is_heeded_within_reason(void **state)
{
    static const struct {
        const char *status, *headers;
        int64_t least, most;
    } rows[] = {
        {"503 Busy", "Retry-After: 20\r\n", 20000, 25000},
        {"429 Slow", "Retry-After: 7\r\n", 7000, 9000},
        {"503 Busy", "retry-after:  7 \r\n", 7000, 9000},
        {"503 Busy", "Retry-After: 0\r\n", 0, 4000},
        {"503 Busy", "Retry-After: -5\r\n", 0, 4000},
        {"503 Busy", "Retry-After: soon\r\n", 0, 4000},
        {"503 Busy", "", 0, 4000},
        {"502 Odd", "Retry-After: 20\r\n", 0, 4000}, /* the header has no meaning with
                                                      * this status */
        {"503 Busy", "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n", 0, 4000},
        /* No server can keep a client away for good. */
        {"503 Busy", "Retry-After: Fri, 31 Dec 2049 23:59:59 GMT\r\n", 300000, 340000},
        {"503 Busy", "Retry-After: 86400\r\n", 300000, 340000},
        {"429 Slow", "Retry-After: 9223372036854775807\r\n", 0, 340000},
        {"429 Slow", "Retry-After: 99999999999999999999\r\n", 0, 340000},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        http_script s;
        record *r = begin_task(&s);
        pause_of(&s);
        script_say(script_expect(&s, "tasks/get"), rows[i].status, rows[i].headers, "");
        int64_t pause = pause_of(&s);
        if (pause < rows[i].least || pause > rows[i].most)
            fail_msg("%s %s: %d ms", rows[i].status, rows[i].headers, (int)pause);
        script_result(script_expect(&s, "tasks/get"), TASK("T", "completed") "," RESULT);
        script_until(&s, r->completed);
        assert_int_equal(r->status, SEGUE_OK);
        script_end(&s);
    }
}

/* Also before anything is known about the server. */
static void retry_after_holds_for_connecting(void **state)
{
    (void)state;
    http_script s;
    script_begin(&s, NULL);
    script_say(script_expect(&s, "server/discover"), "503 Busy", "Retry-After: 20\r\n",
               "");
    int64_t pause = pause_of(&s);
    assert_true(pause >= 20000 && pause <= 25000);
    script_discover(&s, SERVER_PLAIN);
    end_well(&s);
}

/* Also for the stream of server messages in the handshake eras. */
static void retry_after_holds_for_the_stream(void **state)
{
    (void)state;
    http_script s;
    script_begin(&s, NULL);
    script_legacy(&s, "one");
    script_say(script_expect(&s, "GET"), "429 Slow", "Retry-After: 20\r\n", "");
    int64_t pause = pause_of(&s);
    assert_true(pause >= 20000 && pause <= 25000);
    script_say(script_expect(&s, "GET"), "405 No", "", "");
    record *r = kit_call(&s.k, "probe");
    script_result(script_expect(&s, "tools/call"), "\"content\":[]");
    script_until(&s, r->completed);
    segue_session_close(s.k.session);
    script_say(script_expect(&s, "DELETE"), "200 OK", "", "");
    script_until(&s, s.k.closed);
    script_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_redirect_is_followed_with_credentials),
        cmocka_unit_test(nothing_is_brought_along),
        cmocka_unit_test(names_of_a_server_begin_no_line_of_the_log),
        cmocka_unit_test(packed_answers_are_not_unpacked),
        cmocka_unit_test(answers_without_end_are_cut),
        cmocka_unit_test(an_event_without_end_takes_bounded_memory),
        cmocka_unit_test(a_session_id_that_is_none_is_refused),
        cmocka_unit_test(retry_after_is_heeded_within_reason),
        cmocka_unit_test(retry_after_holds_for_connecting),
        cmocka_unit_test(retry_after_holds_for_the_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
