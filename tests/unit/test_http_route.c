/* How the server interprets the head of a request, as a table without sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/test_mem.h"
#include "transport/http_answer.h"
#include "transport/http_route.h"
#include "wire/http1.h"

#define JSON "Content-Type: application/json\r\n"
#define LOCAL "Host: localhost:80\r\n"

typedef enum place { LOOPBACK, OUTSIDE, SECURE, TOKENS, LISTED, PAGES, OPEN, CORS } place;

static sgi_http_policy policy_of(place where)
{
    sgi_http_policy policy = {.path = SGI_STR("/mcp"),
                              .health_path = SGI_STR("/health"),
                              .ready_path = SGI_STR("/ready"),
                              .live_path = SGI_STR("/live")};
    policy.local = where == LOOPBACK || where == CORS;
    policy.bound = where == OUTSIDE ? SGI_STR("192.0.2.7") : SGI_STR("127.0.0.9");
    policy.secure = where == SECURE;
    policy.tokens = where == TOKENS;
    if (where == LISTED) {
        policy.hosts = SGI_STR("mcp.example.com, other.example:8443");
        policy.origins = SGI_STR("https://app.example.com, http://x.test:81");
    }
    if (where == PAGES)
        policy.origins = SGI_STR("https://app.example.com");
    if (where == OPEN)
        policy.hosts = policy.origins = SGI_STR("*");
    policy.cors = where == CORS;
    return policy;
}

typedef struct row {
    place where;
    const char *head; /* without the last empty line */
    int32_t status;   /* 0 = accepted */
    sgi_http_kind kind;
} row;

static const row rows[] = {
    /* Methods and paths. */
    {LOOPBACK, "POST /mcp HTTP/1.1\r\n" LOCAL JSON, 0, SGI_HTTP_POST},
    {LOOPBACK, "POST /mcp?x=1 HTTP/1.1\r\n" LOCAL JSON, 0, SGI_HTTP_POST},
    {LOOPBACK, "POST http://localhost/mcp HTTP/1.1\r\n" LOCAL JSON, 0, SGI_HTTP_POST},
    {LOOPBACK, "GET /mcp HTTP/1.1\r\n" LOCAL, 0, SGI_HTTP_GET},
    {LOOPBACK, "DELETE /mcp HTTP/1.1\r\n" LOCAL, 0, SGI_HTTP_DELETE},
    {LOOPBACK, "OPTIONS /mcp HTTP/1.1\r\n" LOCAL, 405, 0},
    {CORS, "OPTIONS /mcp HTTP/1.1\r\n" LOCAL, 0, SGI_HTTP_PREFLIGHT},
    {LOOPBACK, "HEAD /mcp HTTP/1.1\r\n" LOCAL, 405, 0},
    {LOOPBACK, "post /mcp HTTP/1.1\r\n" LOCAL JSON, 405, 0},
    {LOOPBACK, "POST /mcp/ HTTP/1.1\r\n" LOCAL JSON, 404, 0},
    {LOOPBACK, "POST /MCP HTTP/1.1\r\n" LOCAL JSON, 404, 0},
    {LOOPBACK, "POST / HTTP/1.1\r\n" LOCAL JSON, 404, 0},
    {LOOPBACK, "OPTIONS * HTTP/1.1\r\n" LOCAL, 404, 0},
    {LOOPBACK, "GET /health HTTP/1.1\r\nHost: any\r\n", 0, SGI_HTTP_HEALTH},
    {LOOPBACK, "GET /health HTTP/1.0\r\n", 0, SGI_HTTP_HEALTH},
    {LOOPBACK, "POST /health HTTP/1.1\r\n" LOCAL JSON, 405, 0},
    {LOOPBACK, "GET /ready HTTP/1.1\r\nHost: any\r\n", 0, SGI_HTTP_READY},
    {LOOPBACK, "GET /live HTTP/1.1\r\nHost: any\r\n", 0, SGI_HTTP_LIVE},
    {LOOPBACK, "POST /ready HTTP/1.1\r\n" LOCAL JSON, 405, 0},
    /* Host, with access from this machine only. */
    {LOOPBACK, "GET /mcp HTTP/1.1\r\nHost: LocalHost\r\n", 0, SGI_HTTP_GET},
    {LOOPBACK, "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:1234\r\n", 0, SGI_HTTP_GET},
    {LOOPBACK, "GET /mcp HTTP/1.1\r\nHost: [::1]\r\n", 0, SGI_HTTP_GET},
    {LOOPBACK, "GET /mcp HTTP/1.1\r\nHost: [::1]:8080\r\n", 0, SGI_HTTP_GET},
    {LOOPBACK, "GET /mcp HTTP/1.1\r\nHost: 127.0.0.9:8080\r\n", 0, SGI_HTTP_GET},
    {LOOPBACK, "GET /mcp HTTP/1.1\r\nHost: 127.0.0.8\r\n", 403, 0},
    {LOOPBACK, "GET /mcp HTTP/1.1\r\nHost: evil.example.com\r\n", 403, 0},
    {LOOPBACK, "GET /mcp HTTP/1.1\r\nHost: localhost.evil.com\r\n", 403, 0},
    {LOOPBACK, "GET /mcp HTTP/1.1\r\nHost: evil.com:localhost\r\n", 400, 0},
    {LOOPBACK, "GET /mcp HTTP/1.0\r\n", 403, 0},
    /* Host, with access from elsewhere. */
    {OUTSIDE, "GET /mcp HTTP/1.1\r\nHost: anything.example\r\n", 403, 0},
    {OUTSIDE, "GET /mcp HTTP/1.1\r\nHost: 192.0.2.7:80\r\n", 0, SGI_HTTP_GET},
    {OUTSIDE, "GET /mcp HTTP/1.1\r\nHost: 198.51.100.255\r\n", 0, SGI_HTTP_GET},
    {OUTSIDE, "GET /mcp HTTP/1.1\r\nHost: [2001:db8::1]:80\r\n", 0, SGI_HTTP_GET},
    {OUTSIDE, "GET /mcp HTTP/1.1\r\nHost: localhost\r\n", 0, SGI_HTTP_GET},
    {OUTSIDE, "GET /mcp HTTP/1.1\r\nHost: 192.0.2.256\r\n", 403, 0},
    {OUTSIDE, "GET /mcp HTTP/1.1\r\nHost: 192.0.2.010\r\n", 403, 0},
    {OUTSIDE, "GET /mcp HTTP/1.1\r\nHost: 192.0.2.7.\r\n", 403, 0},
    {OUTSIDE, "GET /mcp HTTP/1.1\r\nHost: 192.0.2\r\n", 403, 0},
    {OUTSIDE, "GET /mcp HTTP/1.1\r\nHost: 192.0.2.7.8\r\n", 403, 0},
    {OUTSIDE, "GET /mcp HTTP/1.1\r\nHost: 1.2.3.4.example\r\n", 403, 0},
    {OUTSIDE, "GET /mcp HTTP/1.1\r\nHost: 1.2.3.a\r\n", 403, 0},
    {OUTSIDE, "GET /mcp HTTP/1.1\r\nHost: 999999999999.1\r\n", 403, 0},
    {OUTSIDE, "GET /mcp HTTP/1.0\r\n", 403, 0},
    {SECURE, "GET /mcp HTTP/1.1\r\nHost: anything.example\r\n", 0, SGI_HTTP_GET},
    {TOKENS, "GET /mcp HTTP/1.1\r\nHost: anything.example\r\n", 0, SGI_HTTP_GET},
    {TOKENS, "GET /mcp HTTP/1.1\r\nHost: a.b\r\nOrigin: http://c.d\r\n", 403, 0},
    {LISTED, "GET /mcp HTTP/1.1\r\nHost: mcp.example.com:99\r\n", 0, SGI_HTTP_GET},
    {LISTED, "GET /mcp HTTP/1.1\r\nHost: other.example:8443\r\n", 0, SGI_HTTP_GET},
    {LISTED, "GET /mcp HTTP/1.1\r\nHost: other.example:8444\r\n", 403, 0},
    {LISTED, "GET /mcp HTTP/1.1\r\n" LOCAL, 403, 0},
    {OPEN, "GET /mcp HTTP/1.1\r\nHost: a.b\r\n", 0, SGI_HTTP_GET},
    /* Origin. */
    {LOOPBACK, "GET /mcp HTTP/1.1\r\n" LOCAL "Origin: http://localhost:3000\r\n", 0,
     SGI_HTTP_GET},
    {LOOPBACK, "GET /mcp HTTP/1.1\r\n" LOCAL "Origin: https://[::1]:3000\r\n", 0,
     SGI_HTTP_GET},
    {LOOPBACK, "GET /mcp HTTP/1.1\r\n" LOCAL "Origin: http://evil.example.com\r\n", 403,
     0},
    {LOOPBACK, "GET /mcp HTTP/1.1\r\n" LOCAL "Origin: null\r\n", 403, 0},
    {LOOPBACK, "GET /mcp HTTP/1.1\r\n" LOCAL "Origin:\r\n", 403, 0},
    {LOOPBACK, "GET /mcp HTTP/1.1\r\n" LOCAL "Origin: ftp://localhost\r\n", 403, 0},
    {LOOPBACK,
     "GET /mcp HTTP/1.1\r\n" LOCAL
     "Origin: http://localhost\r\nOrigin: http://evil.example.com\r\n",
     400, 0},
    {OUTSIDE, "GET /mcp HTTP/1.1\r\nHost: 1.2.3.4:81\r\nOrigin: http://1.2.3.4:81\r\n", 0,
     SGI_HTTP_GET},
    {OUTSIDE, "GET /mcp HTTP/1.1\r\nHost: 1.2.3.4:81\r\nOrigin: http://1.2.3.4\r\n", 403,
     0},
    {OUTSIDE, "GET /mcp HTTP/1.1\r\nHost: 1.2.3.4\r\nOrigin: http://localhost\r\n", 403,
     0},
    {SECURE, "GET /mcp HTTP/1.1\r\nHost: a.b\r\nOrigin: https://a.b\r\n", 0,
     SGI_HTTP_GET},
    {SECURE, "GET /mcp HTTP/1.1\r\nHost: a.b\r\nOrigin: http://a.b\r\n", 403, 0},
    {LISTED,
     "GET /mcp HTTP/1.1\r\nHost: mcp.example.com\r\nOrigin: https://app.example.com\r\n",
     0, SGI_HTTP_GET},
    {LISTED,
     "GET /mcp HTTP/1.1\r\nHost: mcp.example.com\r\nOrigin: http://app.example.com\r\n",
     403, 0},
    /* Named origins exclude all others: a rebound name has its own Host. */
    {LISTED,
     "GET /mcp HTTP/1.1\r\nHost: mcp.example.com\r\nOrigin: http://mcp.example.com\r\n",
     403, 0},
    {PAGES, "GET /mcp HTTP/1.1\r\nHost: 1.2.3.4\r\nOrigin: http://1.2.3.4\r\n", 403, 0},
    {PAGES, "GET /mcp HTTP/1.1\r\nHost: 1.2.3.4\r\nOrigin: https://app.example.com\r\n",
     0, SGI_HTTP_GET},
    {OPEN, "GET /mcp HTTP/1.1\r\nHost: a.b\r\nOrigin: null\r\n", 0, SGI_HTTP_GET},
    /* Accept. */
    {LOOPBACK, "POST /mcp HTTP/1.1\r\n" LOCAL JSON "Accept: */*\r\n", 0, SGI_HTTP_POST},
    {LOOPBACK, "POST /mcp HTTP/1.1\r\n" LOCAL JSON "Accept: application/json\r\n", 0,
     SGI_HTTP_POST},
    {LOOPBACK, "POST /mcp HTTP/1.1\r\n" LOCAL JSON "Accept: text/event-stream\r\n", 0,
     SGI_HTTP_POST},
    {LOOPBACK, "POST /mcp HTTP/1.1\r\n" LOCAL JSON "Accept: text/html, image/*\r\n", 406,
     0},
    {LOOPBACK, "POST /mcp HTTP/1.1\r\n" LOCAL JSON "Accept: */*;q=0\r\n", 406, 0},
    {LOOPBACK, "POST /mcp HTTP/1.1\r\n" LOCAL JSON "Accept: a/b; q=1 , */* ;Q=0.1\r\n", 0,
     SGI_HTTP_POST},
    {LOOPBACK, "POST /mcp HTTP/1.1\r\n" LOCAL JSON "Accept: text/html\r\nAccept: */*\r\n",
     0, SGI_HTTP_POST},
    {LOOPBACK, "GET /mcp HTTP/1.1\r\n" LOCAL "Accept: application/json\r\n", 406, 0},
    /* Content-Type. */
    {LOOPBACK, "POST /mcp HTTP/1.1\r\n" LOCAL, 415, 0},
    {LOOPBACK, "POST /mcp HTTP/1.1\r\n" LOCAL "Content-Type: text/plain\r\n", 415, 0},
    {LOOPBACK,
     "POST /mcp HTTP/1.1\r\n" LOCAL "Content-Type: Application/JSON ; charset=utf-8\r\n",
     0, SGI_HTTP_POST},
    {LOOPBACK, "POST /mcp HTTP/1.1\r\n" LOCAL "Content-Type: application/jsonp\r\n", 415,
     0},
    /* Repeated headers. */
    {LOOPBACK, "POST /mcp HTTP/1.1\r\n" LOCAL JSON JSON, 400, 0},
    {LOOPBACK,
     "POST /mcp HTTP/1.1\r\n" LOCAL JSON "Mcp-Session-Id: a\r\nMcp-Session-Id: a\r\n",
     400, 0},
    {LOOPBACK, "GET /mcp HTTP/1.1\r\n" LOCAL "Last-Event-ID: a\r\nLast-Event-ID: b\r\n",
     400, 0},
    {LOOPBACK,
     "POST /mcp HTTP/1.1\r\n" LOCAL JSON "Authorization: a\r\nAuthorization: b\r\n", 400,
     0},
};

/* The parser may already refuse the head. */
static void read_route(const sgi_http_policy *policy, sgi_http1 *parser, const char *text,
                       sgi_http_head_verdict *route)
{
    char head[1024];
    snprintf(head, sizeof head, "%s\r\n", text);
    sgi_str input = sgi_str_of(head);
    sgi_http1_event event = sgi_http1_next(parser, &input);
    *route = (sgi_http_head_verdict){.status = parser->head.fault.status};
    if (event == SGI_HTTP1_HEAD)
        sgi_http_route_head(policy, &parser->head, route);
}

static void every_row(void **state)
{
    test_mem mem;
    (void)state;
    test_mem_init(&mem);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sgi_http_policy policy = policy_of(rows[i].where);
        sgi_http_head_verdict route;
        sgi_http1 parser;
        sgi_http1_init(&parser, &mem.mem, NULL);
        read_route(&policy, &parser, rows[i].head, &route);
        if (route.status != rows[i].status || route.kind != rows[i].kind)
            fail_msg("row %zu: %s\nis status %d, kind %d", i, rows[i].head, route.status,
                     route.kind);
        assert_true(!route.status || parser.head.fault.problem || route.problem);
        assert_true(route.status != 405 || route.allow);
        sgi_http1_free(&parser);
    }
    assert_int_equal(mem.live, 0);
}

static sgi_http_head_verdict route_of(place where, sgi_http1 *parser, const char *head)
{
    sgi_http_policy policy = policy_of(where);
    sgi_http_head_verdict route;
    sgi_http1_init(parser, &sgi_mem_libc, NULL);
    read_route(&policy, parser, head, &route);
    return route;
}

static void events_are_taken_as_admitted(void **state)
{
    static const struct {
        const char *accept;
        bool events;
    } cases[] = {{"", true},
                 {"Accept: */*\r\n", true},
                 {"Accept: application/json\r\n", false},
                 {"Accept: application/json, text/event-stream;q=0\r\n", false},
                 {"Accept: application/json, TEXT/event-stream;q=0.5\r\n", true}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char head[256];
        sgi_http1 parser;
        snprintf(head, sizeof head, "POST /mcp HTTP/1.1\r\n" LOCAL JSON "%s",
                 cases[i].accept);
        sgi_http_head_verdict route = route_of(LOOPBACK, &parser, head);
        assert_int_equal(route.kind, SGI_HTTP_POST);
        assert_int_equal(route.takes_events, cases[i].events);
        sgi_http1_free(&parser);
    }
}

/* The error code of a header mismatch exists only in 2026-07-28 (R-2557-49). */
static void repeated_headers_have_the_code_of_the_era(void **state)
{
    sgi_http1 parser;
    (void)state;
    sgi_http_head_verdict route = route_of(LOOPBACK, &parser,
                                           "POST /mcp HTTP/1.1\r\n" LOCAL JSON
                                           "MCP-Protocol-Version: 2026-07-28\r\n"
                                           "Mcp-Method: ping\r\nmcp-method: ping\r\n");
    assert_int_equal(route.status, 400);
    assert_int_equal(route.code, -32020);
    sgi_http1_free(&parser);
    route = route_of(LOOPBACK, &parser,
                     "POST /mcp HTTP/1.1\r\n" LOCAL JSON
                     "MCP-Protocol-Version: 2025-11-25\r\n"
                     "Mcp-Session-Id: a\r\nMcp-Session-Id: b\r\n");
    assert_int_equal(route.code, -32600);
    sgi_http1_free(&parser);
}

static void cors_names_the_origin_when_it_is_on(void **state)
{
    static const char head[] =
        "GET /mcp HTTP/1.1\r\n" LOCAL "Origin: http://localhost:5173\r\n";
    sgi_http1 parser;
    (void)state;
    sgi_http_head_verdict route = route_of(CORS, &parser, head);
    assert_int_equal(route.origin.n, 21);
    sgi_http1_free(&parser);
    route = route_of(LOOPBACK, &parser, head);
    assert_int_equal(route.origin.n, 0);
    sgi_http1_free(&parser);
}

/* ---- heads of answers ---- */

static char *head_text(sgi_buf *out, const sgi_http_answer_head *head)
{
    sgi_http_date date = {0};
    sgi_buf_reset(out, 4096);
    sgi_http_add_head(out, head, &date, 784111777000);
    assert_true(sgi_buf_terminate(out));
    return out->p;
}

static void heads_say_what_they_should(void **state)
{
    sgi_buf out;
    sgi_http_answer_head head = {.status = 200, .type = SGI_HTTP_JSON, .length = 12};
    (void)state;
    sgi_buf_init(&out, &sgi_mem_libc);
    assert_string_equal(head_text(&out, &head),
                        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                        "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                        "Content-Length: 12\r\n\r\n");
    head = (sgi_http_answer_head){
        .status = 200, .type = SGI_HTTP_EVENTS, .chunked = true, .session = "abc"};
    assert_string_equal(head_text(&out, &head),
                        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                        "Cache-Control: no-cache, no-transform\r\n"
                        "X-Accel-Buffering: no\r\n"
                        "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                        "Transfer-Encoding: chunked\r\nMcp-Session-Id: abc\r\n\r\n");
    head = (sgi_http_answer_head){.status = 204,
                                  .last = true,
                                  .origin = SGI_STR("http://a"),
                                  .preflight = true,
                                  .wanted = SGI_STR("x-bad, mcp-param-x,Content-Type")};
    const char *text = head_text(&out, &head);
    assert_null(strstr(text, "Content-Length"));
    assert_non_null(strstr(text, "Connection: close\r\n"));
    assert_non_null(strstr(text, "Access-Control-Allow-Origin: http://a\r\n"));
    assert_non_null(strstr(text, "Allow-Headers: mcp-param-x, Content-Type\r\n"));
    head = (sgi_http_answer_head){.status = 401, .type = SGI_HTTP_JSON};
    assert_non_null(strstr(head_text(&out, &head), "WWW-Authenticate: Bearer\r\n"));
    sgi_buf_free(&out);
}

static const sgi_http_answer_head answers[] = {
    {.status = 200, .type = SGI_HTTP_JSON, .length = 12, .session = "abc"},
    {.status = 200, .type = SGI_HTTP_EVENTS, .server = "d"},
    {.status = 200, .type = SGI_HTTP_TEXT, .for_all = true},
    {.status = 202, .origin = SGI_STR_INIT("http://a")},
    {.status = 204,
     .origin = SGI_STR_INIT("http://a"),
     .preflight = true,
     .wanted = SGI_STR_INIT("x-bad, mcp-param-x,Content-Type")},
    {.status = 401, .challenge = SGI_STR_INIT("Bearer a=\"b\"")},
    {.status = 401},
    {.status = 405, .allow = "POST"},
    {.status = 503, .retry_s = 7},
    {.status = 429},
};

/* Writes the fields of an answer as lines. */
static void add_fields(sgi_buf *out, const sgi_http_answer_head *head)
{
    sgi_http_fields fields = {.status = 0};
    sgi_buf_init(&fields.text, &sgi_mem_libc);
    sgi_http_list_head(&fields, head);
    assert_int_equal(fields.status, head->status);
    for (uint32_t i = 0; i < fields.count; i++) {
        const char *name = fields.text.p + fields.at[i].name_at;
        const char *value = fields.text.p + fields.at[i].value_at;
        assert_int_equal(strlen(name), fields.at[i].name_len);
        assert_int_equal(strlen(value), fields.at[i].value_len);
        sgi_buf_add_str(out, sgi_str_of(name));
        sgi_buf_add_lit(out, ": ");
        sgi_buf_add_str(out, sgi_str_of(value));
        sgi_buf_add_lit(out, "\r\n");
    }
    sgi_buf_free(&fields.text);
    assert_true(sgi_buf_terminate(out));
}

/* Makes names lower, and leaves out the first line, the date and the last line. */
static void add_lines(sgi_buf *out, char *text)
{
    char *line = strstr(text, "\r\n") + 2;
    for (char *end; (end = strstr(line, "\r\n")) != line; line = end + 2) {
        if (strncmp(line, "Date", 4) == 0)
            continue;
        for (char *c = line; *c != ':'; c++)
            *c = (char)(*c >= 'A' && *c <= 'Z' ? *c | 0x20 : *c);
        sgi_buf_add(out, line, (size_t)(end - line) + 2);
    }
    assert_true(sgi_buf_terminate(out));
}

static void fields_say_what_the_text_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        sgi_buf out, lines, fields;
        sgi_buf_init(&out, &sgi_mem_libc);
        sgi_buf_init(&lines, &sgi_mem_libc);
        sgi_buf_init(&fields, &sgi_mem_libc);
        head_text(&out, &answers[i]);
        add_lines(&lines, out.p);
        add_fields(&fields, &answers[i]);
        assert_string_equal(fields.p, lines.p);
        sgi_buf_free(&out);
        sgi_buf_free(&lines);
        sgi_buf_free(&fields);
    }
}

static void no_value_leaves_its_line(void **state)
{
    static const char *const values[] = {"a\r\nSet-Cookie: b", "a\nb", "\r", "\x7f"};
    sgi_buf out;
    (void)state;
    sgi_buf_init(&out, &sgi_mem_libc);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const sgi_http_answer_head head = {.status = 202, .session = values[i]};
        assert_null(strstr(head_text(&out, &head), "Mcp-Session-Id"));
    }
    sgi_buf_free(&out);
}

static void the_date_moves_with_the_second(void **state)
{
    sgi_buf out;
    sgi_http_date date = {0};
    sgi_http_answer_head head = {.status = 202};
    (void)state;
    sgi_buf_init(&out, &sgi_mem_libc);
    sgi_http_add_head(&out, &head, &date, 1000);
    sgi_http_add_head(&out, &head, &date, 1999);
    sgi_http_add_head(&out, &head, &date, 2000);
    assert_true(sgi_buf_terminate(&out));
    const char *first = strstr(out.p, "00:00:01 GMT");
    assert_non_null(first);
    const char *second = strstr(first + 1, "00:00:01 GMT");
    assert_non_null(second);
    assert_non_null(strstr(second, "00:00:02 GMT"));
    sgi_buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row),
        cmocka_unit_test(events_are_taken_as_admitted),
        cmocka_unit_test(repeated_headers_have_the_code_of_the_era),
        cmocka_unit_test(cors_names_the_origin_when_it_is_on),
        cmocka_unit_test(heads_say_what_they_should),
        cmocka_unit_test(fields_say_what_the_text_says),
        cmocka_unit_test(no_value_leaves_its_line),
        cmocka_unit_test(the_date_moves_with_the_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
