/* DNS rebinding (2026-07-28 basic/transports/streamable-http, "Security & Transport"): a
 * web page makes its own host name resolve to this server and sends requests. The page
 * cannot choose its Origin, and its Host is its own name. Each way to make the two look
 * harmless is tried: on a listener that other machines reach, on one that only this
 * machine reaches, and on lists of an operator. A refused request has run nothing, and
 * the page gets no permission to read the answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/http_stage.h"

#define HOST(name) "Host: " name "\r\n"
#define FROM(origin) "Origin: " origin "\r\n"

static const char body[] =
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
    "\"greet\",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
    "\"io.modelcontextprotocol/clientCapabilities\":{}}}}";

typedef struct row {
    const char *lines; /* Host and Origin lines of the head */
    int status;
} row;

/* Asks on a new connection, because a 400 ends it. */
static void ask(http_stage *s, const char *target, const row *wanted)
{
    char request[1200];
    http_caller c;
    http_reply reply;
    int before = fixtures_runs(s->fixtures, "greet");
    snprintf(request, sizeof request,
             "POST %s HTTP/1.1\r\n%sContent-Type: application/json\r\n"
             "Accept: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n"
             "Mcp-Method: tools/call\r\nMcp-Name: greet\r\nContent-Length: %zu\r\n\r\n%s",
             target, wanted->lines, strlen(body), body);
    http_caller_open(s, &c);
    http_caller_say(&c, request);
    http_caller_read(&c, &reply);
    if (reply.status != wanted->status)
        fail_msg("%s\n%s is %d and not %d", target, wanted->lines, reply.status,
                 wanted->status);
    assert_int_equal(fixtures_runs(s->fixtures, "greet") - before, reply.status == 200);
    if (reply.status != 200)
        assert_string_equal(http_reply_header(&reply, "Access-Control-Allow-Origin"), "");
    http_reply_free(&reply);
    http_caller_close(&c);
    http_stage_run(s);
}

static void ask_all(segue_listen_options listen, const row *rows, size_t count)
{
    http_stage s = {.listen = listen};
    s.listen.cors = 1;
    http_stage_begin(&s);
    for (size_t i = 0; i < count; i++)
        ask(&s, "/mcp", &rows[i]);
    http_stage_end(&s);
}

#define ASK_ALL(listen, rows) ask_all((listen), (rows), sizeof(rows) / sizeof *(rows))

/* What every listener refuses, whatever it allows. */
static const row malformed[] = {
    {"", 400},
    {HOST("localhost") HOST("localhost"), 400},
    {HOST("localhost") HOST("evil.example"), 400},
    {HOST("localhost, evil.example"), 400},
    {HOST("localhost evil.example"), 400},
    {HOST("evil.example@localhost"), 400},
    {HOST("localhost:80@evil.example"), 400},
    {HOST("localhost/evil.example"), 400},
    {HOST("localhost\\@evil.example"), 400},
    {HOST("localhost#"), 400},
    {HOST("localhost:80:80"), 400},
    {HOST("localhost:http"), 400},
    {HOST("localhost:123456"), 400},
    {HOST("[::1"), 400},
    {HOST("[::1]evil.example"), 400},
    {HOST("[]"), 400},
    {HOST("[::1%25eth0]"), 400},
    {HOST("%6cocalhost"), 400},
    {HOST("local\x80host"), 400},
};

/* Every listener without configured names treats these as foreign names. */
static const row names_of_others[] = {
    {HOST("evil.example"), 403},
    {HOST("evil.example:8080"), 403},
    {HOST("localhost.evil.example"), 403},
    {HOST("127.0.0.1.evil.example"), 403},
    {HOST("127.0.0.1."), 403},
    {HOST("localhost."), 403},
    {HOST("localhosts"), 403},
    {HOST("xlocalhost"), 403},
    {HOST("127.1"), 403}, /* browsers write these as addresses before they ask */
    {HOST("2130706433"), 403},
    {HOST("0x7f.0.0.1"), 403},
    {HOST("0177.0.0.1"), 403},
    {HOST("127.0.0.1.1"), 403},
    {HOST("127.0.0.256"), 403},
    {HOST(""), 400},
    {HOST("evil.example") FROM("http://evil.example"), 403},
    {HOST("evil.example:8080") FROM("http://evil.example:8080"), 403},
};

/* Foreign pages that reach the listener under one of its own names. */
static const row pages_of_others[] = {
    {HOST("localhost") FROM("http://evil.example"), 403},
    {HOST("localhost") FROM("https://localhost.evil.example"), 403},
    {HOST("localhost") FROM("http://localhost@evil.example"), 403},
    {HOST("localhost") FROM("http://evil.example#localhost"), 403},
    {HOST("localhost") FROM("http://evil.example/http://localhost"), 403},
    {HOST("localhost") FROM("http://localhost."), 403},
    {HOST("localhost") FROM("http://localhost "
                            "http://evil.example"),
     403},
    {HOST("localhost") FROM("http://localhost,http://evil.example"), 403},
    {HOST("localhost") FROM("null"), 403},
    {HOST("localhost") FROM(""), 403},
    {HOST("localhost") FROM("localhost"), 403},
    {HOST("localhost") FROM("//localhost"), 403},
    {HOST("localhost") FROM("file://localhost"), 403},
    {HOST("localhost") FROM("ws://localhost"), 403},
    {HOST("localhost") FROM("chrome-extension://localhost"), 403},
    {HOST("localhost") FROM("http://"), 403},
    {HOST("localhost") FROM("*"), 403},
    {HOST("localhost") FROM("http://localhost") FROM("http://localhost"), 400},
    {HOST("localhost") FROM("http://localhost") FROM("http://evil.example"), 400},
};

static void a_local_listener_answers_to_its_own_names(void **state)
{
    static const row own[] = {
        {HOST("localhost"), 200},
        {HOST("LOCALHOST:1"), 200},
        {HOST("127.0.0.1:65535"), 200},
        {HOST("[::1]:80"), 200},
        {HOST("localhost:"), 200},
        {HOST("127.0.0.2"), 403},
        {HOST("192.0.2.7"), 403},
        {HOST("[::2]"), 403},
        {HOST("0.0.0.0"), 403},
        {HOST("localhost") FROM("http://localhost:5173"), 200},
        {HOST("127.0.0.1") FROM("HTTP://LOCALHOST"), 200},
        {HOST("localhost") FROM("http://192.0.2.7"), 403},
    };
    segue_listen_options listen = {0};
    (void)state;
    ASK_ALL(listen, malformed);
    ASK_ALL(listen, names_of_others);
    ASK_ALL(listen, pages_of_others);
    ASK_ALL(listen, own);
}

/* The listener accepts every address of the machine, and names that stand for one. A name
 * can be rebound, an address cannot. */
static void a_listener_on_all_addresses_answers_to_addresses(void **state)
{
    static const row own[] = {
        {HOST("localhost"), 200},
        {HOST("127.0.0.1"), 200},
        {HOST("192.0.2.7:8080"), 200},
        {HOST("[2001:db8::7]:8080"), 200},
        {HOST("0.0.0.0"), 200},
        {HOST("mcp"), 403}, /* a container's name: the operator must list it */
        {HOST("192.0.2.7:80") FROM("http://192.0.2.7:80"), 200},
        {HOST("192.0.2.7:80") FROM("http://192.0.2.7:81"), 403},
        {HOST("192.0.2.7:80") FROM("http://192.0.2.8:80"), 403},
        {HOST("0.0.0.0:80") FROM("http://evil.example"), 403},
    };
    segue_listen_options listen = {.address = "0.0.0.0"};
    (void)state;
    ASK_ALL(listen, malformed);
    ASK_ALL(listen, names_of_others);
    ASK_ALL(listen, pages_of_others);
    ASK_ALL(listen, own);
}

/* A list replaces the names that a listener knows by itself, on loopback as well. */
static void lists_of_an_operator_are_all_there_is(void **state)
{
    static const row listed[] = {
        {HOST("mcp.example"), 200},
        {HOST("MCP.example:9"), 200},
        {HOST("other.example:8443"), 200},
        {HOST("other.example"), 403},
        {HOST("mcp.example."), 403},
        {HOST("a.mcp.example"), 403},
        {HOST("mcp.exampl"), 403},
        {HOST("localhost"), 403},
        {HOST("127.0.0.1"), 403},
        {HOST("mcp.example") FROM("https://app.example"), 200},
        {HOST("mcp.example") FROM("https://app.example:443"), 403},
        {HOST("mcp.example") FROM("http://app.example"), 403},
        {HOST("mcp.example") FROM("https://app.example.evil"), 403},
        {HOST("mcp.example") FROM("http://mcp.example"), 403},
        {HOST("mcp.example") FROM("http://localhost"), 403},
    };
    static const char *const addresses[] = {"127.0.0.1", "0.0.0.0"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        segue_listen_options listen = {.address = addresses[i],
                                       .hosts = "mcp.example , other.example:8443,",
                                       .origins = "https://app.example"};
        ASK_ALL(listen, malformed);
        ASK_ALL(listen, listed);
    }
}

static void all_names_are_served_where_that_is_wanted(void **state)
{
    static const row open[] = {
        {HOST("evil.example"), 200},
        {HOST("mcp"), 200},
        /* The page's origin is checked separately. */
        {HOST("evil.example") FROM("http://other.example"), 403},
        {HOST("localhost") FROM("null"), 403},
    };
    segue_listen_options listen = {.address = "0.0.0.0", .hosts = "*"};
    (void)state;
    ASK_ALL(listen, malformed);
    ASK_ALL(listen, open);
}

/* A request in proxy form names the host twice (RFC 9112 3.2.2). The one in the target
 * counts, so the two must be equal. */
static void the_host_of_the_target_counts(void **state)
{
    static const struct {
        const char *target;
        row row;
    } rows[] = {
        {"http://localhost/mcp", {HOST("localhost"), 200}},
        {"http://LOCALHOST:80/mcp", {HOST("localhost"), 200}},
        {"http://evil.example/mcp", {HOST("evil.example"), 403}},
        {"http://evil.example/mcp", {HOST("localhost"), 400}},
        {"http://localhost/mcp", {HOST("evil.example"), 400}},
        {"http://localhost:81/mcp", {HOST("localhost"), 400}},
        {"http://localhost@evil.example/mcp", {HOST("localhost"), 400}},
        {"http://evil.example/mcp", {"", 400}},
        {"ftp://localhost/mcp", {HOST("localhost"), 400}},
        {"//localhost/mcp", {HOST("localhost"), 404}}, /* a path that is not served */
        {"localhost/mcp", {HOST("localhost"), 400}},
        {"/mcp#x", {HOST("localhost"), 400}},
    };
    http_stage s = {0};
    (void)state;
    http_stage_begin(&s);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ask(&s, rows[i].target, &rows[i].row);
    http_stage_end(&s);
}

/* A browser first asks whether it may send JSON and custom headers: it may not. */
static void a_preflight_of_a_page_of_others_is_refused(void **state)
{
    http_stage s = {.listen = {.cors = 1}};
    http_caller c;
    http_reply reply;
    (void)state;
    http_stage_open(&s, &c);
    http_caller_say(
        &c,
        "OPTIONS /mcp HTTP/1.1\r\n" HOST("localhost") FROM(
            "http://evil.example") "Access-Control-Request-Method: POST\r\n"
                                   "Access-Control-Request-Headers: mcp-method\r\n\r\n");
    http_caller_read(&c, &reply);
    assert_int_equal(reply.status, 403);
    assert_null(strstr(reply.head, "Access-Control-"));
    http_reply_free(&reply);
    http_stage_close(&s, &c);
}

/* HTTP/1.0 requires no Host, but a missing Host is refused. */
static void a_request_without_a_host_is_refused(void **state)
{
    static const char *const addresses[] = {"127.0.0.1", "0.0.0.0"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        http_stage s = {.listen = {.address = addresses[i], .health_path = "/health"}};
        http_caller c;
        http_stage_open(&s, &c);
        http_caller_say(&c, "GET /mcp HTTP/1.0\r\n\r\n");
        assert_int_equal(http_caller_status(&c), 403);
        http_caller_close(&c);
        http_caller_open(&s, &c); /* only a health check may leave it out */
        http_caller_say(&c, "GET /health HTTP/1.0\r\n\r\n");
        assert_int_equal(http_caller_status(&c), 200);
        http_stage_close(&s, &c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_local_listener_answers_to_its_own_names),
        cmocka_unit_test(a_listener_on_all_addresses_answers_to_addresses),
        cmocka_unit_test(lists_of_an_operator_are_all_there_is),
        cmocka_unit_test(all_names_are_served_where_that_is_wanted),
        cmocka_unit_test(the_host_of_the_target_counts),
        cmocka_unit_test(a_preflight_of_a_page_of_others_is_refused),
        cmocka_unit_test(a_request_without_a_host_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
