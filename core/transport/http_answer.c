/* Writes the heads of HTTP answers into a buffer. The sender checks once, at the end,
 * whether the buffer ran out of memory. The most frequent head (a JSON text with status
 * 200) needs only three appends and a number. */
#include "transport/http_answer.h"

#include <stdio.h>
#include <time.h>

#include "wire/http1_head.h"
#include "wire/jsonrpc.h"

/* Writes the Date header (RFC 9110 5.6.7). The names of days and months are English in
 * every locale. */
static void make_date(sgi_http_date *date, int64_t second)
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm tm;
    time_t now = (time_t)second;
    date->second = second;
    date->len = 0;
    if (!gmtime_r(&now, &tm))
        return;
    int len = snprintf(date->line, sizeof date->line,
                       "Date: %.3s, %02d %.3s %04d %02d:%02d:%02d GMT\r\n",
                       days + (size_t)tm.tm_wday * 3, tm.tm_mday,
                       months + (size_t)tm.tm_mon * 3, tm.tm_year + 1900, tm.tm_hour,
                       tm.tm_min, tm.tm_sec);
    if (len > 0 && (size_t)len < sizeof date->line)
        date->len = (size_t)len;
}

static void add_date(sgi_buf *out, sgi_http_date *date, int64_t wall_ms)
{
    int64_t second = wall_ms / 1000;
    if (!date->len || date->second != second)
        make_date(date, second);
    sgi_buf_add(out, date->line, date->len);
}

static void add_type(sgi_buf *out, const sgi_http_answer_head *head)
{
    switch (head->type) {
    case SGI_HTTP_JSON:
        sgi_buf_add_lit(out, "Content-Type: application/json\r\n");
        break;
    case SGI_HTTP_TEXT:
        sgi_buf_add_lit(out, "Content-Type: text/plain; charset=utf-8\r\n");
        break;
    case SGI_HTTP_EVENTS:
        sgi_buf_add_lit(out, "Content-Type: text/event-stream\r\n"
                             "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n");
        break;
    case SGI_HTTP_NOTHING:
        break;
    }
}

/* Adds the headers that tell the client where the body ends. An answer with status 204
 * has no Content-Length (RFC 9110 8.6). */
static void add_framing(sgi_buf *out, const sgi_http_answer_head *head)
{
    if (head->chunked)
        sgi_buf_add_lit(out, "Transfer-Encoding: chunked\r\n");
    else if (head->type != SGI_HTTP_EVENTS && head->status != 204)
        sgi_http1_add_header_uint(out, SGI_STR("Content-Length"), head->length);
    if (head->by_hand)
        return;
    if (head->last)
        sgi_buf_add_lit(out, "Connection: close\r\n");
    else if (head->says_keep)
        sgi_buf_add_lit(out, "Connection: keep-alive\r\n");
}

/* True when CORS allows a client to send this header. Headers that repeat tool parameters
 * are recognised by the prefix "mcp-", because only the client knows their full names. */
static bool may_send(sgi_str name)
{
    static const sgi_str names[] = {SGI_STR_INIT("content-type"), SGI_STR_INIT("accept"),
                                    SGI_STR_INIT("authorization"),
                                    SGI_STR_INIT("last-event-id")};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (sgi_http1_same_ignoring_case(name, names[i]))
            return true;
    return name.n > 4 &&
           sgi_http1_same_ignoring_case((sgi_str){name.p, 4}, SGI_STR("mcp-")) &&
           sgi_http1_span(name, SGI_HTTP1_TOKEN) == name.n;
}

static void add_allowed_headers(sgi_buf *out, sgi_str wanted)
{
    const char *before = "";
    sgi_buf_add_lit(out, "Access-Control-Allow-Headers: ");
    while (wanted.n) {
        size_t len = sgi_http1_span(wanted, SGI_HTTP1_TOKEN);
        if (may_send((sgi_str){wanted.p, len})) {
            sgi_buf_add_str(out, sgi_str_of(before));
            sgi_buf_add(out, wanted.p, len);
            before = ", ";
        }
        wanted = sgi_http1_skip(wanted, len < wanted.n ? len + 1 : len);
    }
    sgi_buf_add_lit(out, "\r\n");
}

/* The time in seconds for which clients may cache the metadata, which rarely change. */
#define KEEP "3600"

static void add_public(sgi_buf *out, const sgi_http_answer_head *head)
{
    sgi_buf_add_lit(out, "Access-Control-Allow-Origin: *\r\n");
    if (!head->preflight) {
        sgi_buf_add_lit(out, "Cache-Control: public, max-age=" KEEP "\r\n");
        return;
    }
    sgi_buf_add_lit(out, "Access-Control-Allow-Methods: GET\r\n"
                         "Access-Control-Max-Age: " KEEP "\r\n");
    add_allowed_headers(out, head->wanted);
}

static void add_cors(sgi_buf *out, const sgi_http_answer_head *head)
{
    if (head->for_all) {
        add_public(out, head);
        return;
    }
    if (!head->origin.n)
        return;
    sgi_http1_add_header(out, SGI_STR("Access-Control-Allow-Origin"), head->origin);
    sgi_buf_add_lit(out, "Vary: Origin\r\n");
    if (!head->preflight) {
        sgi_buf_add_lit(out, "Access-Control-Expose-Headers: Mcp-Session-Id, "
                             "WWW-Authenticate\r\n");
        return;
    }
    sgi_buf_add_lit(out, "Access-Control-Allow-Methods: POST, GET, DELETE\r\n"
                         "Access-Control-Max-Age: 600\r\n");
    add_allowed_headers(out, head->wanted);
}

void sgi_http_add_head(sgi_buf *out, const sgi_http_answer_head *head,
                       sgi_http_date *date, int64_t wall_ms)
{
    if (head->status == 200)
        sgi_buf_add_lit(out, "HTTP/1.1 200 OK\r\n");
    else
        sgi_http1_add_status(out, head->status);
    add_type(out, head);
    if (!head->by_hand)
        add_date(out, date, wall_ms);
    add_framing(out, head);
    if (head->session)
        sgi_http1_add_header(out, SGI_STR("Mcp-Session-Id"), sgi_str_of(head->session));
    if (head->server)
        sgi_http1_add_header(out, SGI_STR("Dev-Segue-Server"), sgi_str_of(head->server));
    if (head->allow)
        sgi_http1_add_header(out, SGI_STR("Allow"), sgi_str_of(head->allow));
    if (head->challenge.n)
        sgi_http1_add_header(out, SGI_STR("WWW-Authenticate"), head->challenge);
    else if (head->status == 401)
        sgi_buf_add_lit(out, "WWW-Authenticate: Bearer\r\n");
    if (head->retry_s)
        sgi_http1_add_header_uint(out, SGI_STR("Retry-After"), (uint64_t)head->retry_s);
    else if (head->status == 429 || head->status == 503)
        /* a full server can soon accept requests again */
        sgi_buf_add_lit(out, "Retry-After: 1\r\n");
    add_cors(out, head);
    sgi_http1_add_head_end(out);
}

void sgi_http_add_problem(sgi_buf *out, int32_t code, const char *problem, sgi_json data)
{
    sgi_write_rpc_error(out, (sgi_json){0}, code, sgi_str_of(problem), data);
}
