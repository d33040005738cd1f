/* Exchanges by hand: the application's HTTP server carries requests and answers. Whole
 * and cut requests, streams, sessions, limits, Host and Origin, principals, a host that
 * does not send, ends at each point, and the end of the listener. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/mount_stage.h"
#include "transport/http_listener.h"

#define GREET "{\"name\":\"Ada\"}"
#define WINDOW ((size_t)128 * 1024)
#define INITIALIZE                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"               \
    "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"                            \
    "\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}}}"

static void begin(http_stage *s)
{
    s->by_hand = true;
    http_stage_begin(s);
}

static void expect_header(const mount_call *c, const char *line)
{
    if (!strstr(c->head, line))
        fail_msg("there is no %s in %s", line, c->head);
}

static void a_call_is_answered_however_its_body_comes(void **state)
{
    http_stage s = {0};
    (void)state;
    begin(&s);
    for (int round = 0; round < 30; round++) {
        mount_call c = {.way = round == 0   ? MOUNT_WHOLE
                               : round == 1 ? MOUNT_BYTES
                                            : MOUNT_PIECES};
        mount_ask(&c, &s, http_call("1", "greet", GREET), 200);
        assert_non_null(strstr(c.body, "Hello, Ada!"));
        expect_header(&c, "content-type: application/json\n");
        expect_header(&c, "content-length: ");
        assert_null(strstr(c.head, "date:"));
        assert_null(strstr(c.head, "connection:"));
        mount_free(&c);
    }
    http_stage_end(&s);
}

/* Removes the line Content-Length, as a server of HTTP/2 or with chunks has none. */
static char *without_length(char *request)
{
    char *line = strstr(request, "Content-Length"), *end = strstr(line, "\r\n") + 2;
    memmove(line, end, strlen(end) + 1);
    return request;
}

static void a_body_without_a_length_ends_when_the_host_says_so(void **state)
{
    http_stage s = {0};
    (void)state;
    begin(&s);
    for (int way = MOUNT_WHOLE; way <= MOUNT_PIECES; way++) {
        mount_call c = {.way = (mount_way)way};
        mount_ask(&c, &s, without_length(http_call("1", "greet", GREET)), 200);
        assert_non_null(strstr(c.body, "Hello, Ada!"));
        mount_free(&c);
    }
    http_stage_end(&s);
}

static void a_body_shorter_than_its_length_is_refused(void **state)
{
    http_stage s = {0};
    mount_call c = {0};
    char *request = http_call("1", "greet", GREET);
    (void)state;
    begin(&s);
    request[strlen(request) - 1] = 0;
    mount_ask(&c, &s, request, 400);
    assert_non_null(strstr(c.body, "shorter than Content-Length"));
    mount_free(&c);
    http_stage_end(&s);
}

static void a_large_body_is_refused(void **state)
{
    http_stage s = {.max_message = 4096};
    char *body = malloc(1000000);
    (void)state;
    begin(&s);
    memset(body, ' ', 999999);
    body[999999] = 0;
    for (int round = 0; round < 2; round++) {
        mount_call c = {.way = MOUNT_PIECES};
        char *request = http_post("MCP-Protocol-Version: 2026-07-28\r\n", body);
        if (round)
            without_length(request);
        mount_ask(&c, &s, request, 413);
        assert_non_null(strstr(c.body, "max_message_bytes"));
        mount_free(&c);
    }
    free(body);
    http_stage_end(&s);
}

/* ---- heads ---- */

static segue_status ask_with(http_stage *s, mount_call *c, const char *line)
{
    char *request = http_post(line, "{}");
    segue_status status = mount_begin(c, s, request);
    free(request);
    if (status == SEGUE_OK)
        mount_finish(c);
    return status;
}

static void headers_of_the_connection_do_not_count(void **state)
{
    static const char *const lines[] = {
        "Connection: close, x\r\n", "Transfer-Encoding: gzip\r\n",
        "Expect: something\r\n",    "TE: trailers\r\n",
        "Upgrade: h2c\r\n",         ":path: /x\r\n",
        "Keep-Alive: 5\r\n"};
    http_stage s = {0};
    (void)state;
    begin(&s);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        mount_call c = {0};
        assert_int_equal(ask_with(&s, &c, lines[i]), SEGUE_OK);
        assert_int_equal(c.status, 400);
        assert_non_null(strstr(c.body, "-32600")); /* the message is none */
        mount_free(&c);
    }
    http_stage_end(&s);
}

static void a_text_that_could_add_a_line_is_refused(void **state)
{
    http_stage s = {0};
    segue_exchange_head head = SEGUE_EXCHANGE_HEAD_INIT;
    segue_exchange_events events = SEGUE_EXCHANGE_EVENTS_INIT;
    segue_http_field host = {"host", SEGUE_TO_NUL, "localhost", SEGUE_TO_NUL};
    segue_exchange *out = NULL;
    (void)state;
    begin(&s);
    head.method = "GET";
    head.target = "/";
    head.headers = &host;
    head.header_count = 1;
    assert_int_equal(segue_exchange_open(s.listener, &head, &events, &out, NULL),
                     SEGUE_E_INVALID); /* there are no callbacks */
    mount_call c = {0};
    assert_int_equal(ask_with(&s, &c, "X-A: b\rc\r\n"), SEGUE_E_INVALID);
    assert_int_equal(ask_with(&s, &c, "X A: b\r\n"), SEGUE_E_INVALID);
    assert_int_equal(mount_begin(&c, &s, "GE\tT / HTTP/1.1\r\n\r\n"), SEGUE_E_INVALID);
    assert_int_equal(mount_begin(&c, &s, "GET /\x01 HTTP/1.1\r\n\r\n"), SEGUE_E_INVALID);
    c.principal = "\xff";
    assert_int_equal(mount_begin(&c, &s, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
                     SEGUE_E_INVALID);
    http_stage_end(&s);
}

static void expect_status(http_stage *s, mount_call c, const char *request, int status)
{
    mount_ask(&c, s, strdup(request), status);
    mount_free(&c);
}

#define GET(path, host) "GET " path " HTTP/1.1\r\nHost: " host "\r\n\r\n"

static void paths_belong_to_the_host(void **state)
{
    http_stage s = {.listen = {.health_path = "/health"}};
    http_stage t = {.listen = {.path = "/mcp"}};
    (void)state;
    begin(&s);
    begin(&t);
    expect_status(&s, (mount_call){0}, GET("/", "localhost"), 405);
    expect_status(&s, (mount_call){0}, GET("/any/where?x=y", "localhost"), 405);
    expect_status(&s, (mount_call){0}, GET("/health", "localhost"), 200);
    expect_status(&t, (mount_call){0}, GET("/mcp", "localhost"), 405);
    expect_status(&t, (mount_call){0}, GET("/", "localhost"), 404);
    http_stage_end(&t);
    http_stage_end(&s);
}

/* The listener of every path loses it, and another path stays what it is. */
static void the_end_of_every_path_leaves_the_others(void **state)
{
    http_stage s = {0};
    segue_server *other;
    (void)state;
    begin(&s);
    assert_int_equal(segue_server_new(s.rt, NULL, &other, NULL), SEGUE_OK);
    assert_int_equal(segue_listener_add(s.listener, other, "/b", NULL), SEGUE_OK);
    http_stage_run(&s);
    assert_int_equal(segue_listener_remove(s.listener, "/typo"), SEGUE_E_NOT_FOUND);
    expect_status(&s, (mount_call){0}, GET("/x", "localhost"), 405);
    assert_int_equal(segue_listener_remove(s.listener, "/"), SEGUE_OK);
    expect_status(&s, (mount_call){0}, GET("/x", "localhost"), 404);
    expect_status(&s, (mount_call){0}, GET("/b", "localhost"), 405);
    segue_server_free(other);
    http_stage_end(&s);
}

/* The server still reads its store. */
static void a_listener_that_closes_early_ends_its_exchanges(void **state)
{
    http_stage s = {0};
    mount_call c = {.way = MOUNT_OPEN};
    (void)state;
    begin(&s);
    s.listener->is_open = false;
    assert_int_equal(mount_begin(&c, &s, GET("/", "localhost")), SEGUE_OK);
    http_stage_run(&s);
    assert_false(c.ended);
    assert_int_equal(segue_listener_close(s.listener), SEGUE_OK);
    http_stage_run(&s);
    assert_true(c.ended);
    assert_int_equal(c.end, SEGUE_E_CLOSED);
    mount_free(&c);
    http_stage_end(&s);
}

static void no_head(void *user, segue_exchange *exchange, int32_t status,
                    const segue_http_field *fields, size_t count, const char *bytes,
                    size_t len)
{
    (void)user, (void)exchange, (void)status, (void)fields, (void)count, (void)bytes,
        (void)len;
    fail();
}

static void no_body(void *user, segue_exchange *exchange, const char *bytes, size_t len)
{
    (void)user, (void)exchange, (void)bytes, (void)len;
    fail();
}

static void no_end(void *user, segue_exchange *exchange, segue_status status)
{
    (void)user, (void)exchange, (void)status;
    fail();
}

static void headers_without_a_text_are_refused(void **state)
{
    http_stage s = {0};
    segue_exchange *exchange;
    segue_exchange_head head = SEGUE_EXCHANGE_HEAD_INIT;
    segue_exchange_events events = SEGUE_EXCHANGE_EVENTS_INIT;
    segue_http_field fields[] = {{.name = NULL, .name_len = 3, .value = "x"},
                                 {.name = "x-a", .name_len = 3, .value_len = 3}};
    (void)state;
    begin(&s);
    head.method = "GET";
    head.target = "/";
    head.header_count = 1;
    events.on_head = no_head;
    events.on_body = no_body;
    events.on_end = no_end;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        head.headers = &fields[i];
        assert_int_equal(segue_exchange_open(s.listener, &head, &events, &exchange, NULL),
                         SEGUE_E_INVALID);
    }
    http_stage_end(&s);
}

/* The address at which the client reached the host decides, as that of a socket does. */
static void hosts_follow_the_address_of_the_exchange(void **state)
{
    static const struct {
        const char *local, *host;
        bool is_tls, nowhere;
        int status;
    } cases[] = {
        {"127.0.0.1:80", "localhost", false, false, 405},
        {"127.0.0.1:80", "evil.example", false, false, 403},
        {"[::1]:80", "evil.example", true, false, 403},
        {"unix", "evil.example", false, false, 403},
        {NULL, "evil.example", false, true, 403},
        {NULL, "localhost", false, true, 405},
        {"192.0.2.7:80", "evil.example", false, false, 403},
        {"192.0.2.7:80", "192.0.2.7", false, false, 405},
        {"192.0.2.7:80", "a.example", true, false, 405},
        {"2001:db8::1", "[2001:db8::1]", false, false, 405},
        {"testserver:80", "testserver", false, false, 405},
        {"testserver:80", "evil.example", false, false, 403},
    };
    http_stage s = {0};
    (void)state;
    begin(&s);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char request[128];
        mount_call c = {.local = cases[i].local,
                        .is_tls = cases[i].is_tls,
                        .nowhere = cases[i].nowhere};
        snprintf(request, sizeof request, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n",
                 cases[i].host);
        assert_int_equal(mount_begin(&c, &s, request), SEGUE_OK);
        mount_finish(&c);
        if (c.status != cases[i].status)
            fail_msg("case %zu: %d", i, c.status);
        mount_free(&c);
    }
    http_stage_end(&s);
}

static void an_authority_is_the_host(void **state)
{
    http_stage s = {0};
    (void)state;
    begin(&s);
    expect_status(&s, (mount_call){0},
                  "GET / HTTP/1.1\r\n:authority: evil.example\r\n\r\n", 403);
    expect_status(&s, (mount_call){0}, "GET / HTTP/1.1\r\n:authority: localhost\r\n\r\n",
                  405);
    expect_status(&s, (mount_call){0}, "GET / HTTP/1.1\r\nX: y\r\n\r\n", 400);
    http_stage_end(&s);
}

static void pages_of_allowed_origins_may_call(void **state)
{
    http_stage s = {.listen = {.cors = 1, .origins = "https://a.example"}};
    mount_call c = {0};
    (void)state;
    begin(&s);
    mount_ask(&c, &s,
              strdup("OPTIONS / HTTP/1.1\r\nHost: localhost\r\nOrigin: "
                     "https://a.example\r\nAccess-Control-Request-Headers: "
                     "mcp-method\r\n\r\n"),
              204);
    expect_header(&c, "access-control-allow-origin: https://a.example\n");
    expect_header(&c, "access-control-allow-headers: mcp-method\n");
    assert_int_equal(c.len, 0);
    mount_free(&c);
    expect_status(
        &s, (mount_call){0},
        "GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: https://b.example\r\n\r\n", 403);
    http_stage_end(&s);
}

/* ---- callers ---- */

static int questions;

static segue_status name_caller(void *user, segue_transport *transport,
                                const char **principal)
{
    (void)user;
    questions++;
    assert_string_equal(segue_transport_peer(transport), "203.0.113.9:4711");
    *principal = segue_transport_header(transport, "X-User");
    return *principal ? SEGUE_OK : SEGUE_E_REFUSED;
}

static void the_server_asks_who_calls_unless_the_host_knows(void **state)
{
    http_stage s = {.principal = name_caller};
    mount_call refused = {.peer = "203.0.113.9:4711", .way = MOUNT_BYTES};
    mount_call named = refused, given = refused;
    (void)state;
    questions = 0;
    begin(&s);
    mount_ask(&refused, &s, http_call("1", "greet", GREET), 401);
    char *request = http_call("1", "greet", GREET);
    char *with = malloc(strlen(request) + 64);
    sprintf(with, "POST / HTTP/1.1\r\nX-User: ada%s", strstr(request, "\r\n"));
    mount_ask(&named, &s, with, 200);
    assert_int_equal(questions, 2);
    given.principal = "ada";
    mount_ask(&given, &s, request, 200);
    assert_int_equal(questions, 2);
    mount_free(&refused);
    mount_free(&named);
    mount_free(&given);
    http_stage_end(&s);
}

static char *task_call(void)
{
    return http_request("1", "tools/call", "slow_compute",
                        "\"name\":\"slow_compute\",\"arguments\":{\"ms\":60000}",
                        HTTP_CAPS_TASKS);
}

/* Only callers of this machine, and callers with a name, get tasks. */
static void strangers_get_no_tasks(void **state)
{
    static const struct {
        const char *peer, *principal;
        bool nowhere, task;
    } cases[] = {
        {"127.0.0.1:1", NULL, false, true}, {"203.0.113.9:1", NULL, false, false},
        {NULL, NULL, true, false},          {"203.0.113.9:1", "ada", false, true},
        {"[::1]:1", NULL, false, true},     {"unix", NULL, false, true}};
    http_stage s = {0};
    (void)state;
    begin(&s);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mount_call c = {.peer = cases[i].peer,
                        .principal = cases[i].principal,
                        .nowhere = cases[i].nowhere};
        char *request = task_call();
        assert_int_equal(mount_begin(&c, &s, request), SEGUE_OK);
        free(request);
        http_stage_advance(&s, 3000);
        bool is_task = c.ended && strstr(c.body, "\"taskId\"");
        if (is_task != cases[i].task)
            fail_msg("case %zu: %s", i, c.body ? c.body : "no answer");
        if (!c.ended)
            segue_exchange_closed(c.exchange);
        mount_finish(&c);
        mount_free(&c);
    }
    http_stage_end(&s);
}

/* ---- streams ---- */

static char *chatty(int count)
{
    char body[512];
    snprintf(body, sizeof body,
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
             "\"name\":\"chatty\",\"arguments\":{\"n\":%d},\"_meta\":{"
             "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
             "\"io.modelcontextprotocol/clientCapabilities\":{},"
             "\"io.modelcontextprotocol/logLevel\":\"debug\",\"progressToken\":1}}}",
             count);
    return http_post("MCP-Protocol-Version: 2026-07-28\r\n"
                     "Mcp-Method: tools/call\r\nMcp-Name: chatty\r\n",
                     body);
}

static void events_come_without_framing(void **state)
{
    http_stage s = {0};
    mount_call c = {0};
    (void)state;
    begin(&s);
    mount_ask(&c, &s, chatty(3), 200);
    expect_header(&c, "content-type: text/event-stream\n");
    assert_null(strstr(c.head, "transfer-encoding"));
    assert_memory_equal(c.body, "data: {", 7);
    assert_memory_equal(c.body + c.len - 2, "\n\n", 2);
    mount_free(&c);
    http_stage_end(&s);
}

static void a_silent_stream_gets_comments(void **state)
{
    http_stage s = {0};
    mount_call c = {0};
    char *request = http_call("1", "slow_compute", "{\"ms\":40000}");
    (void)state;
    begin(&s);
    assert_int_equal(mount_begin(&c, &s, request), SEGUE_OK);
    http_stage_advance(&s, 300);
    assert_true(c.has_head);
    http_stage_advance(&s, 16000);
    assert_string_equal(c.body, ":\n\n");
    http_stage_advance(&s, 30000);
    mount_finish(&c);
    assert_non_null(strstr(c.body, "\"result\""));
    mount_free(&c);
    free(request);
    http_stage_end(&s);
}

static void a_host_that_does_not_send_holds_little(void **state)
{
    http_stage s = {0};
    mount_call c = {.slow = true};
    char *request = http_call("1", "big", "{\"bytes\":3000000}");
    (void)state;
    begin(&s);
    assert_int_equal(mount_begin(&c, &s, request), SEGUE_OK);
    free(request);
    while (!c.ended) {
        http_stage_run(&s);
        size_t before = c.len;
        http_stage_run(&s);
        assert_int_equal(c.len, before); /* nothing more comes until it is sent */
        assert_int_equal(segue_exchange_sent(c.exchange, c.unsent + 1), SEGUE_E_INVALID);
        mount_sent(&c);
    }
    assert_true(c.most_unsent >= WINDOW && c.most_unsent <= 2 * WINDOW);
    assert_true(c.len > 3000000);
    mount_finish(&c);
    assert_int_equal(c.end, SEGUE_OK);
    mount_free(&c);
    http_stage_end(&s);
}

static void a_host_that_never_sends_is_cut(void **state)
{
    http_stage s = {0};
    mount_call c = {.slow = true};
    char *request = http_call("1", "big", "{\"bytes\":3000000}");
    (void)state;
    begin(&s);
    assert_int_equal(mount_begin(&c, &s, request), SEGUE_OK);
    free(request);
    http_stage_advance(&s, 55000);
    assert_false(c.ended);
    http_stage_advance(&s, 10000);
    assert_true(c.ended);
    assert_int_equal(c.end, SEGUE_E_CLOSED);
    mount_free(&c);
    http_stage_end(&s);
}

static void a_host_that_sends_slowly_is_not_cut(void **state)
{
    http_stage s = {0};
    mount_call c = {.slow = true};
    char *request = http_call("1", "big", "{\"bytes\":300000}");
    (void)state;
    begin(&s);
    assert_int_equal(mount_begin(&c, &s, request), SEGUE_OK);
    free(request);
    for (int i = 0; i < 10; i++) {
        http_stage_advance(&s, 50000);
        assert_false(c.ended);
        assert_int_equal(segue_exchange_sent(c.exchange, 1), SEGUE_OK);
        c.unsent--;
    }
    c.slow = false;
    mount_sent(&c);
    mount_finish(&c);
    assert_int_equal(c.end, SEGUE_OK);
    mount_free(&c);
    http_stage_end(&s);
}

static void input_has_a_limit(void **state)
{
    http_stage s = {.max_message = 8 << 20};
    mount_call c = {.way = MOUNT_BYTES};
    static char piece[256 * 1024];
    int refused = 0;
    (void)state;
    begin(&s);
    memset(piece, ' ', sizeof piece);
    assert_int_equal(mount_begin(&c, &s, GET("/", "localhost")), SEGUE_OK);
    mount_finish(&c);
    assert_int_equal(segue_exchange_feed(c.exchange, "x", 1), SEGUE_E_CLOSED);
    assert_int_equal(segue_exchange_end(c.exchange), SEGUE_E_CLOSED);
    assert_int_equal(segue_exchange_sent(c.exchange, 0), SEGUE_OK);
    assert_int_equal(segue_exchange_closed(c.exchange), SEGUE_E_CLOSED);
    mount_free(&c);
    mount_call d = {.way = MOUNT_OPEN};
    char *request = without_length(http_post("", ""));
    /* all input waits, because the loop has no turn in between */
    assert_int_equal(mount_begin(&d, &s, request), SEGUE_OK);
    for (int i = 0; i < 8; i++)
        refused +=
            segue_exchange_feed(d.exchange, piece, sizeof piece) == SEGUE_E_WOULD_BLOCK;
    assert_int_equal(refused,
                     3); /* a piece beyond 1 MiB is taken; the head does not count */
    assert_int_equal(d.rooms, 0);
    http_stage_run(&s);
    assert_int_equal(d.rooms, 1);
    assert_int_equal(segue_exchange_feed(d.exchange, piece, 1), SEGUE_OK);
    assert_int_equal(segue_exchange_end(d.exchange), SEGUE_OK);
    assert_int_equal(segue_exchange_end(d.exchange), SEGUE_E_STATE);
    assert_int_equal(segue_exchange_feed(d.exchange, piece, 1), SEGUE_E_STATE);
    mount_finish(&d);
    assert_int_equal(d.status, 400);
    mount_free(&d);
    free(request);
    http_stage_end(&s);
}

/* ---- sessions ---- */

static void sessions_and_their_streams_resume(void **state)
{
    http_stage s = {0};
    mount_call hello = {0}, call = {0}, again = {0};
    char lines[256], text[512], id[64] = "";
    (void)state;
    begin(&s);
    mount_ask(&hello, &s, http_post("", INITIALIZE), 200);
    const char *session = strstr(hello.head, "mcp-session-id: ");
    assert_non_null(session);
    snprintf(lines, sizeof lines,
             "Mcp-Session-Id: %.*s\r\n"
             "MCP-Protocol-Version: 2025-11-25\r\n",
             (int)strcspn(session + 16, "\n"), session + 16);
    char *request = http_post(
        lines, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{"
               "\"name\":\"slow_compute\",\"arguments\":{\"ms\":5000}}}");
    assert_int_equal(mount_begin(&call, &s, request), SEGUE_OK);
    free(request);
    http_stage_advance(&s, 1000);
    assert_non_null(strstr(call.body, "id: "));
    assert_int_equal(sscanf(strstr(call.body, "id: "), "id: %63s", id), 1);
    assert_int_equal(segue_exchange_closed(call.exchange), SEGUE_OK); /* a cut */
    mount_finish(&call);
    assert_int_equal(call.end, SEGUE_E_CLOSED);
    http_stage_advance(&s, 10000);
    snprintf(text, sizeof text,
             "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
             "%sLast-Event-ID: %s\r\n\r\n",
             lines, id);
    mount_ask(&again, &s, strdup(text), 200);
    assert_non_null(strstr(again.body, "\"id\":7"));
    mount_free(&hello);
    mount_free(&call);
    mount_free(&again);
    http_stage_end(&s);
}

/* ---- ends ---- */

/* The host's connection goes at each point of a request and its answer. */
static void a_connection_may_go_at_any_point(void **state)
{
    http_stage s = {0};
    char *requests[] = {http_call("1", "greet", GREET), chatty(50),
                        http_call("1", "slow_compute", "{\"ms\":500}")};
    (void)state;
    begin(&s);
    for (size_t i = 0; i < 3; i++) {
        for (int turns = 0; turns < 12; turns++) {
            mount_call c = {.slow = true, .free_early = false};
            assert_int_equal(mount_begin(&c, &s, requests[i]), SEGUE_OK);
            for (int turn = 0; turn < turns; turn++) {
                s.clock_ms += 50;
                segue_runtime_dispatch(s.rt, 0, 1, NULL);
                fixtures_tick(s.fixtures);
            }
            segue_status status = segue_exchange_closed(c.exchange);
            assert_int_equal(status, c.ended ? SEGUE_E_CLOSED : SEGUE_OK);
            size_t len = c.len;
            mount_finish(&c);
            assert_int_equal(c.len, len); /* nothing but on_end has come */
            mount_free(&c);
            http_stage_advance(&s, 1000);
        }
        free(requests[i]);
    }
    http_stage_end(&s);
}

static void a_freed_handle_changes_nothing(void **state)
{
    http_stage s = {0};
    mount_call c = {.free_early = true};
    (void)state;
    begin(&s);
    mount_ask(&c, &s, chatty(100), 200);
    assert_non_null(strstr(c.body, "\"result\""));
    mount_free(&c);
    http_stage_end(&s);
}

static void the_number_of_exchanges_has_a_limit(void **state)
{
    http_stage s = {.listen = {.max_connections = 2}};
    mount_call a = {0}, b = {0}, c = {0};
    char *slow = http_call("1", "slow_compute", "{\"ms\":5000}");
    (void)state;
    begin(&s);
    assert_int_equal(mount_begin(&a, &s, slow), SEGUE_OK);
    assert_int_equal(mount_begin(&b, &s, slow), SEGUE_OK);
    assert_int_equal(mount_begin(&c, &s, slow), SEGUE_E_LIMIT);
    http_stage_advance(&s, 6000);
    mount_finish(&a);
    mount_finish(&b);
    mount_ask(&c, &s, http_call("1", "greet", GREET), 200);
    mount_free(&a);
    mount_free(&b);
    mount_free(&c);
    free(slow);
    http_stage_end(&s);
}

static void a_closing_listener_lets_calls_end(void **state)
{
    http_stage s = {0};
    mount_call call = {0}, late = {0}, never = {0};
    char *slow = http_call("1", "slow_compute", "{\"ms\":3000}");
    (void)state;
    begin(&s);
    assert_int_equal(mount_begin(&call, &s, slow), SEGUE_OK);
    http_stage_run(&s);
    assert_int_equal(segue_listener_close(s.listener), SEGUE_OK);
    assert_int_equal(mount_begin(&late, &s, slow), SEGUE_OK);
    mount_finish(&late);
    assert_int_equal(late.status, 503);
    http_stage_advance(&s, 4000);
    mount_finish(&call);
    assert_int_equal(call.status, 200);
    assert_non_null(strstr(call.body, "\"result\""));
    http_stage_advance(&s, 1000);
    assert_int_equal(mount_begin(&never, &s, slow), SEGUE_E_CLOSED);
    mount_free(&call);
    mount_free(&late);
    free(slow);
    http_stage_end(&s);
}

static void calls_that_do_not_end_are_cut_at_the_deadline(void **state)
{
    http_stage s = {.listen = {.drain_ms = 2000}};
    mount_call call = {0};
    char *request = http_call("1", "slow_compute", "{\"ms\":60000}");
    (void)state;
    begin(&s);
    assert_int_equal(mount_begin(&call, &s, request), SEGUE_OK);
    http_stage_advance(&s, 500);
    segue_listener_close(s.listener);
    http_stage_advance(&s, 3000);
    assert_true(call.ended);
    assert_int_equal(call.end, SEGUE_E_CLOSED);
    mount_free(&call);
    free(request);
    http_stage_end(&s);
}

static void the_runtime_may_end_first(void **state)
{
    http_stage s = {0};
    mount_call a = {0}, b = {0};
    char *slow = http_call("1", "slow_compute", "{\"ms\":60000}");
    (void)state;
    begin(&s);
    assert_int_equal(mount_begin(&a, &s, slow), SEGUE_OK);
    http_stage_advance(&s, 500);
    assert_int_equal(mount_begin(&b, &s, slow), SEGUE_OK);
    segue_listener_free(s.listener);
    segue_server_free(s.server);
    segue_runtime_free(s.rt);
    assert_true(a.freed && b.freed);
    assert_int_equal(b.status, 503);
    assert_int_equal(segue_exchange_feed(a.exchange, "x", 1), SEGUE_E_CLOSED);
    mount_free(&a);
    mount_free(&b);
    free(slow);
    fixtures_free(s.fixtures);
    assert_int_equal(s.mem.live, 0);
}

static void options_of_a_socket_are_refused(void **state)
{
    http_stage s = {0};
    segue_listen_options options[] = {{.address = "127.0.0.1"}, {.port = 80},
                                      {.reuse_port = 1},        {.cert_file = "/x"},
                                      {.path = "no"},           {.max_streams = -1}};
    (void)state;
    begin(&s);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        segue_listener *listener = NULL;
        options[i].struct_size = sizeof *options;
        assert_int_equal(segue_listener_open(s.server, &options[i], &listener, NULL),
                         SEGUE_E_INVALID);
    }
    assert_string_equal(segue_listener_url(s.listener), "/");
    assert_int_equal(segue_listener_reload(s.listener, NULL), SEGUE_E_STATE);
    http_stage_end(&s);
}

static void a_listener_with_a_socket_takes_no_exchange(void **state)
{
    http_stage s = {0};
    mount_call c = {0};
    (void)state;
    http_stage_begin(&s);
    assert_int_equal(mount_begin(&c, &s, GET("/", "localhost")), SEGUE_E_STATE);
    http_stage_end(&s);
}

/* Each allocation of an exchange fails, alone and with all later ones. The exchange ends
 * once, and the next one works. */
static void memory_may_fail(void **state)
{
    http_stage s = {0};
    char *requests[] = {http_call("1", "greet", GREET), chatty(5)};
    int ends[2] = {0};
    (void)state;
    begin(&s);
    for (int n = 1; n < 400; n++) {
        mount_call c = {.way = n & 1 ? MOUNT_WHOLE : MOUNT_PIECES}, good = {0};
        test_mem_rearm(&s.mem);
        if (n & 2)
            s.mem.fail_at = (size_t)n / 4 + 1;
        else
            s.mem.fail_from = (size_t)n / 4 + 1;
        segue_status status = mount_begin(&c, &s, requests[n / 2 % 2]);
        for (int i = 0; i < 50 && status == SEGUE_OK && !c.ended; i++)
            segue_runtime_dispatch(s.rt, 0, 0, NULL);
        test_mem_rearm(&s.mem);
        if (status == SEGUE_OK) {
            http_stage_advance(&s, 40000); /* a body that was not fed is given up */
            mount_finish(&c);
            ends[c.end == SEGUE_OK]++;
        } else {
            assert_int_equal(status, SEGUE_E_NOMEM);
        }
        mount_free(&c);
        mount_ask(&good, &s, http_call("1", "greet", GREET), 200);
        mount_free(&good);
    }
    assert_true(ends[0] > 0 && ends[1] > 0);
    free(requests[0]);
    free(requests[1]);
    http_stage_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_answered_however_its_body_comes),
        cmocka_unit_test(a_body_without_a_length_ends_when_the_host_says_so),
        cmocka_unit_test(a_body_shorter_than_its_length_is_refused),
        cmocka_unit_test(a_large_body_is_refused),
        cmocka_unit_test(headers_of_the_connection_do_not_count),
        cmocka_unit_test(a_text_that_could_add_a_line_is_refused),
        cmocka_unit_test(paths_belong_to_the_host),
        cmocka_unit_test(the_end_of_every_path_leaves_the_others),
        cmocka_unit_test(a_listener_that_closes_early_ends_its_exchanges),
        cmocka_unit_test(headers_without_a_text_are_refused),
        cmocka_unit_test(hosts_follow_the_address_of_the_exchange),
        cmocka_unit_test(an_authority_is_the_host),
        cmocka_unit_test(pages_of_allowed_origins_may_call),
        cmocka_unit_test(the_server_asks_who_calls_unless_the_host_knows),
        cmocka_unit_test(strangers_get_no_tasks),
        cmocka_unit_test(events_come_without_framing),
        cmocka_unit_test(a_silent_stream_gets_comments),
        cmocka_unit_test(a_host_that_does_not_send_holds_little),
        cmocka_unit_test(a_host_that_never_sends_is_cut),
        cmocka_unit_test(a_host_that_sends_slowly_is_not_cut),
        cmocka_unit_test(input_has_a_limit),
        cmocka_unit_test(sessions_and_their_streams_resume),
        cmocka_unit_test(a_connection_may_go_at_any_point),
        cmocka_unit_test(a_freed_handle_changes_nothing),
        cmocka_unit_test(the_number_of_exchanges_has_a_limit),
        cmocka_unit_test(a_closing_listener_lets_calls_end),
        cmocka_unit_test(calls_that_do_not_end_are_cut_at_the_deadline),
        cmocka_unit_test(the_runtime_may_end_first),
        cmocka_unit_test(options_of_a_socket_are_refused),
        cmocka_unit_test(a_listener_with_a_socket_takes_no_exchange),
        cmocka_unit_test(memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
