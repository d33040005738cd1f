/* Oversized input to a server (R-C-10, AS-116). Input above its limit is refused with a
 * clear error. Input within the message limit, but larger than anybody needs, is
 * answered. In both cases memory follows the received bytes and is freed. Limits that
 * count objects (tasks, streams, sessions, subscriptions, batches, connections) are
 * tested with those objects; SECURITY.md says where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/http_stage.h"
#include "support/world.h"

#define KIB ((size_t)1024)
#define MIB (KIB * 1024)
#define META                                                                             \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","             \
    "\"io.modelcontextprotocol/clientCapabilities\":" CAPS_TASKS "}"

/* ---- texts of any size ---- */

typedef struct maker {
    char *text;
    size_t len, cap;
} maker;

static void put(maker *m, const char *text, size_t times)
{
    size_t len = strlen(text);
    if (m->len + len * times + 1 > m->cap) {
        m->cap = (m->len + len * times + 1) * 2;
        m->text = realloc(m->text, m->cap);
        if (!m->text)
            abort();
    }
    for (size_t i = 0; i < times; i++, m->len += len)
        memcpy(m->text + m->len, text, len);
    m->text[m->len] = 0;
}

/* ---- heads ---- */

#define START "POST /mcp HTTP/1.1\r\nHost: localhost\r\n"

/* Sends `before`, `times` pieces and `behind`, and checks the status. */
static void refuse(segue_listen_options listen, const char *before, const char *piece,
                   size_t times, const char *behind, int status)
{
    http_stage s = {.listen = listen};
    http_caller c;
    http_reply reply;
    maker m = {0};
    put(&m, before, 1);
    put(&m, piece, times);
    put(&m, behind, 1);
    http_stage_open(&s, &c);
    http_stage_run(&s);
    size_t before_it = s.mem.live;
    s.mem.peak = before_it;
    http_caller_send(&c, m.text, m.len);
    http_caller_read(&c, &reply);
    if (reply.status != status)
        fail_msg("%.60s %.20s * %zu is %d", before, piece, times, reply.status);
    assert_true(s.mem.peak - before_it < 160 * KIB);
    http_reply_free(&reply);
    http_caller_until_closed(&c);
    http_stage_run(&s);
    assert_true(s.mem.live <= before_it);
    free(m.text);
    http_stage_close(&s, &c);
}

static void heads_are_limited(void **state)
{
    segue_listen_options defaults = {0}, small = {.max_header_bytes = 1024};
    (void)state;
    refuse(defaults, "POST /", "a", 9000, " HTTP/1.1\r\n", 414);
    refuse(defaults, "POST /mcp?", "a", 9000, " HTTP/1.1\r\n", 414);
    refuse(defaults, "POST /mcp?", "a", 1000000, "", 414);
    refuse(defaults, START "X: ", "a", 33 * KIB, "\r\n\r\n", 431);
    refuse(defaults, START "X: ", "a", 1000000, "", 431);
    refuse(defaults, START "Mcp-Session-Id: ", "a", 33 * KIB, "\r\n\r\n", 431);
    refuse(defaults, START "Last-Event-ID: ", "1", 33 * KIB, "\r\n\r\n", 431);
    refuse(defaults, START "Mcp-Name: =?base64?", "AAAA", 9 * KIB, "?=\r\n\r\n", 431);
    refuse(defaults, START "Authorization: Bearer ", "a", 33 * KIB, "\r\n\r\n", 431);
    refuse(defaults, START "Origin: http://", "a", 33 * KIB, "\r\n\r\n", 431);
    refuse(defaults, START, "X: y\r\n", 100, "\r\n", 431);
    refuse(defaults, START, "X: y\r\n", 100000, "", 431);
    refuse(defaults, "", "A", 100000, "", 414);
    refuse(small, START "X: ", "a", 1024, "\r\n\r\n", 431);
}

/* ---- bodies ---- */

static void bodies_are_limited(void **state)
{
    static const char json[] = "Content-Type: application/json\r\n";
    (void)state;
    for (int way = 0; way < 4; way++) {
        http_stage s = {.max_message = 64 * (int64_t)KIB};
        http_caller c;
        maker m = {0};
        put(&m, START, 1);
        put(&m, json, 1);
        if (way == 0) /* announced, and no byte of it is sent */
            put(&m, "Content-Length: 65537\r\n\r\n", 1);
        else if (way == 1) /* announced far beyond the limit */
            put(&m, "Content-Length: 9223372036854775807\r\n\r\n", 1);
        else if (way == 2) /* with Expect: the server sends no 100 Continue */
            put(&m, "Content-Length: 65537\r\nExpect: 100-continue\r\n\r\n", 1);
        else
            put(&m, "Transfer-Encoding: chunked\r\n\r\n", 1);
        if (way == 3) /* the body grows while it comes */
            put(&m, "10\r\n0123456789abcdef\r\n", 5000);
        http_stage_open(&s, &c);
        http_stage_run(&s);
        size_t before = s.mem.live;
        s.mem.peak = before;
        http_caller_send(&c, m.text, m.len);
        assert_int_equal(http_caller_status(&c), 413);
        assert_true(s.mem.peak - before < 320 * KIB);
        http_caller_until_closed(&c);
        free(m.text);
        http_stage_close(&s, &c);
    }
}

/* A body that fits costs the received bytes, not the announced length. */
static void a_promise_costs_nothing(void **state)
{
    enum { CALLERS = 50 };
    http_stage s = {0};
    http_caller c[CALLERS];
    (void)state;
    http_stage_begin(&s);
    size_t before = s.mem.live;
    for (int i = 0; i < CALLERS; i++) {
        http_caller_open(&s, &c[i]);
        http_caller_say(&c[i], START "Content-Type: application/json\r\n"
                                     "Content-Length: 60000000\r\n\r\n{");
    }
    http_stage_run(&s);
    assert_true(s.mem.live - before < CALLERS * 16 * KIB);
    for (int i = 0; i < CALLERS; i++)
        http_caller_close(&c[i]);
    http_stage_end(&s);
}

/* ---- members of messages ---- */

/* One member of a message is this many pieces long. */
typedef struct row {
    const char *before, *piece, *behind;
    const char *says; /* text in the answer */
} row;

static const row rows[] = {
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"", "m", "\",\"params\":{" META "}}",
     "-32601"},
    {"{\"jsonrpc\":\"2.0\",\"id\":\"", "i",
     "\",\"method\":\"tools/call\",\"params\":{" META "}}", "-32602"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1", "0",
     ",\"method\":\"tools/call\",\"params\":{" META "}}", "error"},
    {"{\"jsonrpc\":\"", "2",
     "\",\"id\":1,\"method\":\"tools/list\",\"params\":{" META "}}", "-32600"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"",
     "n", "\"," META "}}", "-32602"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"prompts/get\",\"params\":{\"name\":\"",
     "n", "\"," META "}}", "-32602"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/"
     "read\",\"params\":{\"uri\":\"x:",
     "u", "\"," META "}}", "-32602"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"cursor\":\"",
     "c", "\"," META "}}", "-32602"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tasks/get\",\"params\":{\"taskId\":\"",
     "t", "\"," META "}}", "-32602"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tasks/"
     "stream\",\"params\":{\"taskId\":\"",
     "t", "\"," META "}}", "-32602"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
     "call\",\"params\":{\"name\":\"ask_once\","
     "\"requestState\":\"",
     "s", "\"," META "}}", "-32602"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tasks/"
     "update\",\"params\":{\"taskId\":\"T\","
     "\"inputResponses\":{\"k\":\"",
     "a", "\"}," META "}}", "-32602"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscriptions/listen\",\"params\":{"
     "\"notifications\":{\"taskIds\":[\"x\"",
     ",\"x\"", "]}," META "}}", "-32602"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscriptions/listen\",\"params\":{"
     "\"notifications\":{\"resourceSubscriptions\":[\"a:\"",
     ",\"a:b\"", "]}," META "}}", "-32602"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"completion/"
     "complete\",\"params\":{\"ref\":{"
     "\"type\":\"ref/prompt\",\"name\":\"",
     "n", "\"},\"argument\":{\"name\":\"a\",\"value\":\"\"}," META "}}", "-32602"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
     "call\",\"params\":{\"name\":\"greet\","
     "\"_meta\":{\"io.modelcontextprotocol/clientCapabilities\":{},"
     "\"io.modelcontextprotocol/protocolVersion\":\"",
     "v", "\"}}}", "-32022"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
     "call\",\"params\":{\"name\":\"greet\","
     "\"_meta\":{\"io.modelcontextprotocol/clientCapabilities\":{},"
     "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
     "\"dev.segue/idempotencyKey\":\"",
     "k", "\"}}}", "-32602"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
     "call\",\"params\":{\"name\":\"greet\","
     "\"_meta\":{\"io.modelcontextprotocol/clientCapabilities\":{},"
     "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"progressToken\":\"",
     "p", "\"}}}", "Hello"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
     "call\",\"params\":{\"name\":\"greet\","
     "\"_meta\":{\"io.modelcontextprotocol/clientCapabilities\":{},"
     "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
     "\"io.modelcontextprotocol/logLevel\":\"",
     "l", "\"}}}", "-32602"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
     "call\",\"params\":{\"name\":\"greet\","
     "\"arguments\":{\"",
     "a", "\":1}," META "}}", "Hello"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
     "call\",\"params\":{\"name\":\"greet\","
     "\"arguments\":{\"a\":[0",
     ",0", "]}," META "}}", "Hello"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
     "call\",\"params\":{\"name\":\"greet\","
     "\"arguments\":{\"a\":[0",
     ",{}", "]}," META "}}", "Hello"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
     "call\",\"params\":{\"name\":\"greet\","
     "\"arguments\":{\"a\":1",
     "0", "}," META "}}", "Hello"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
     "call\",\"params\":{\"name\":\"greet\","
     "\"arguments\":{\"a\":\"",
     "\\u0000", "\"}," META "}}", "Hello"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
     "call\",\"params\":{\"name\":\"greet\","
     "\"arguments\":{\"a\":",
     "[", "", "-32700"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1", " ", ",\"method\":\"ping\"}", "result"},
};

/* The largest answer and the server's memory may be at most this many times the input: no
 * member multiplies its cost. */
#define LEVER 8
#define LONG (256 * KIB)

/* Sends a long request and checks the answer; then sends short calls, since a large
 * buffer may stay until then. */
static void ask_at_length(world *w, wire *c, const row *asked)
{
    maker m = {0};
    put(&m, asked->before, 1);
    put(&m, asked->piece, LONG / strlen(asked->piece));
    put(&m, asked->behind, 1);
    put(&m, "\n", 1);
    size_t before = w->mem.live;
    w->mem.peak = before;
    wire_feed(c, m.text, m.len);
    world_run(w);
    const char *answer = wire_due(c);
    if (!answer || !strstr(answer, asked->says))
        fail_msg("%.160s: %.300s", asked->before, answer ? answer : "nothing");
    assert_true(strlen(answer) < 2 * LONG);
    if (w->mem.peak - before > LEVER * m.len)
        fail_msg("%.160s took %zu", asked->before, w->mem.peak - before);
    free(m.text);
    for (int i = 0; i < 3; i++)
        wire_do(c, "\"short\"", "tools/call", "\"name\":\"greet\"", NULL);
}

static void members_of_any_size(world *w)
{
    wire *c = world_connect(w, NULL);
    for (int i = 0; i < 4; i++) /* the transport keeps some buffers */
        ask_at_length(w, c, &rows[i]);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t before = w->mem.live;
        ask_at_length(w, c, &rows[i]);
        if (w->mem.live > before + 64 * KIB)
            fail_msg("%.160s keeps %zu", rows[i].before, w->mem.live - before);
    }
}

/* As many different keys as there is room for, in one object and nested; then the same
 * with two equal keys. */
static void keys_by_the_ten_thousand(world *w)
{
    enum { KEYS = 50000 };
    wire *c = world_connect(w, NULL);
    for (int twice = 0; twice < 2; twice++) {
        maker m = {0};
        char key[32];
        put(&m,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
            "\"name\":\"greet\",\"arguments\":{\"a\":{\"k0\":0",
            1);
        for (int i = 1; i < KEYS; i++) {
            snprintf(key, sizeof key, ",\"k%d\":0", i);
            put(&m, key, 1);
        }
        put(&m, twice ? ",\"k0\":0}}," META "}}\n" : "}}," META "}}\n", 1);
        size_t before = w->mem.live;
        w->mem.peak = before;
        wire_feed(c, m.text, m.len);
        world_run(w);
        const char *answer = wire_due(c);
        assert_non_null(strstr(answer, twice ? "-32700" : "Hello"));
        assert_true(w->mem.peak - before < 16 * m.len);
        free(m.text);
        wire_do(c, "2", "tools/call", "\"name\":\"greet\"", NULL);
        assert_true(w->mem.live < before + MIB);
    }
}

static const scenario scenarios[] = {
    {"AS-116 members of any size are answered in bounded memory", members_of_any_size,
     ONLY_HERE | ONE_DRIVE | NOT_HTTP, NULL}, /* over HTTP heads have limits of their
                                               * own */
    {"AS-116 ten thousands of keys are read in bounded memory", keys_by_the_ten_thousand,
     ONLY_HERE | ONE_DRIVE | NOT_HTTP, NULL},
};

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_are_limited),
        cmocka_unit_test(bodies_are_limited),
        cmocka_unit_test(a_promise_costs_nothing),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios) + failed;
}
