/* Makes the heads of HTTP answers: as text of HTTP/1.1 for the library's own connections,
 * or as fields for another HTTP server. The sender checks once, at the end, whether the
 * buffer ran out of memory. */
#include "transport/http_answer.h"

#include <stdio.h>
#include <time.h>

#include "wire/http1_text.h"
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

/* Where a head goes: into text of HTTP/1.1, or into fields. */
typedef struct head_out {
    sgi_buf *text;
    sgi_http_fields *fields; /* NULL = text of HTTP/1.1 */
} head_out;

static void add_lower_case(sgi_buf *out, sgi_str name)
{
    size_t at = out->len;
    sgi_buf_add_str(out, name);
    for (; at < out->len; at++)
        if (out->p[at] >= 'A' && out->p[at] <= 'Z')
            out->p[at] = (char)(out->p[at] | 0x20);
    sgi_buf_add_char(out, 0);
}

/* Begins a header. The caller appends the value to the result, and calls end_field. */
static sgi_buf *begin_field(const head_out *to, sgi_str name)
{
    sgi_http_fields *fields = to->fields;
    if (!fields) {
        sgi_buf_add_str(to->text, name);
        sgi_buf_add_lit(to->text, ": ");
        return to->text;
    }
    /* no answer has more headers, so the limit is never exceeded */
    if (fields->count == SGI_HTTP_FIELDS)
        fields->text.failed = true;
    if (fields->text.failed)
        return &fields->text;
    sgi_http1_field *field = &fields->at[fields->count];
    field->name_at = (uint32_t)fields->text.len;
    field->name_len = (uint32_t)name.n;
    add_lower_case(&fields->text, name);
    field->value_at = (uint32_t)fields->text.len;
    return &fields->text;
}

static void end_field(const head_out *to)
{
    sgi_http_fields *fields = to->fields;
    if (!fields) {
        sgi_buf_add_lit(to->text, "\r\n");
        return;
    }
    if (fields->text.failed)
        return;
    sgi_http1_field *field = &fields->at[fields->count++];
    field->value_len = (uint32_t)fields->text.len - field->value_at;
    sgi_buf_add_char(&fields->text, 0);
}

static void put(const head_out *to, sgi_str name, sgi_str value)
{
    sgi_buf_add_str(begin_field(to, name), value);
    end_field(to);
}

/* Appends a header whose value is of a peer or of the application. A value with a
 * control character is left out. */
static void put_given(const head_out *to, sgi_str name, sgi_str value)
{
    if (sgi_http1_is_value(value))
        put(to, name, value);
}

static void put_uint(const head_out *to, sgi_str name, uint64_t value)
{
    sgi_buf_add_uint(begin_field(to, name), value);
    end_field(to);
}

static void add_date(sgi_buf *out, sgi_http_date *date, int64_t wall_ms)
{
    int64_t second = wall_ms / 1000;
    if (!date->len || date->second != second)
        make_date(date, second);
    sgi_buf_add(out, date->line, date->len);
}

static void add_type(const head_out *to, const sgi_http_answer_head *head)
{
    static const sgi_str types[] = {
        [SGI_HTTP_JSON] = SGI_STR_INIT("application/json"),
        [SGI_HTTP_TEXT] = SGI_STR_INIT("text/plain; charset=utf-8"),
        [SGI_HTTP_METRICS_TEXT] =
            SGI_STR_INIT("text/plain; version=0.0.4; charset=utf-8"),
        [SGI_HTTP_EVENTS] = SGI_STR_INIT("text/event-stream"),
    };
    if (head->media_type)
        put(to, SGI_STR("Content-Type"), sgi_str_of(head->media_type));
    if (head->type == SGI_HTTP_NOTHING)
        return;
    put(to, SGI_STR("Content-Type"), types[head->type]);
    if (head->type != SGI_HTTP_EVENTS)
        return;
    /* A middleware or a proxy that compresses would hold events back. */
    put(to, SGI_STR("Cache-Control"), SGI_STR("no-cache, no-transform"));
    put(to, SGI_STR("X-Accel-Buffering"), SGI_STR("no"));
}

/* Adds the length of the body, if it is known and the status allows a body: an answer
 * with status 204 has no Content-Length (RFC 9110 8.6). */
static void add_length(const head_out *to, const sgi_http_answer_head *head)
{
    if (!head->chunked && head->type != SGI_HTTP_EVENTS && head->status != 204)
        put_uint(to, SGI_STR("Content-Length"), head->length);
}

/* Adds the headers of HTTP/1.1 about the end of the body and of the connection. */
static void add_framing(const head_out *to, const sgi_http_answer_head *head)
{
    if (head->chunked)
        put(to, SGI_STR("Transfer-Encoding"), SGI_STR("chunked"));
    if (head->last)
        put(to, SGI_STR("Connection"), SGI_STR("close"));
    else if (head->says_keep)
        put(to, SGI_STR("Connection"), SGI_STR("keep-alive"));
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

static void add_allowed_headers(const head_out *to, sgi_str wanted)
{
    const char *before = "";
    sgi_buf *out = begin_field(to, SGI_STR("Access-Control-Allow-Headers"));
    while (wanted.n) {
        size_t len = sgi_http1_span(wanted, SGI_HTTP1_TOKEN);
        if (may_send((sgi_str){wanted.p, len})) {
            sgi_buf_add_str(out, sgi_str_of(before));
            sgi_buf_add(out, wanted.p, len);
            before = ", ";
        }
        wanted = sgi_http1_skip(wanted, len < wanted.n ? len + 1 : len);
    }
    end_field(to);
}

/* The time in seconds for which clients may cache the metadata, which rarely change. */
#define KEEP "3600"

static void add_public(const head_out *to, const sgi_http_answer_head *head)
{
    put(to, SGI_STR("Access-Control-Allow-Origin"), SGI_STR("*"));
    if (!head->preflight) {
        put(to, SGI_STR("Cache-Control"), SGI_STR("public, max-age=" KEEP));
        return;
    }
    put(to, SGI_STR("Access-Control-Allow-Methods"), SGI_STR("GET"));
    put(to, SGI_STR("Access-Control-Max-Age"), SGI_STR(KEEP));
    add_allowed_headers(to, head->wanted);
}

static void add_cors(const head_out *to, const sgi_http_answer_head *head)
{
    if (head->for_all) {
        add_public(to, head);
        return;
    }
    if (!head->origin.n)
        return;
    put_given(to, SGI_STR("Access-Control-Allow-Origin"), head->origin);
    put(to, SGI_STR("Vary"), SGI_STR("Origin"));
    if (!head->preflight) {
        put(to, SGI_STR("Access-Control-Expose-Headers"),
            SGI_STR("Mcp-Session-Id, WWW-Authenticate"));
        return;
    }
    put(to, SGI_STR("Access-Control-Allow-Methods"), SGI_STR("POST, GET, DELETE"));
    put(to, SGI_STR("Access-Control-Max-Age"), SGI_STR("600"));
    add_allowed_headers(to, head->wanted);
}

/* What a page of the task board may do: load its parts from its own server, and speak
 * with it. */
#define PAGE_POLICY                                                                      \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "      \
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

static void add_guards(const head_out *to)
{
    put(to, SGI_STR("Cache-Control"), SGI_STR("no-store"));
    put(to, SGI_STR("Content-Security-Policy"), SGI_STR(PAGE_POLICY));
    put(to, SGI_STR("X-Frame-Options"), SGI_STR("DENY"));
    put(to, SGI_STR("X-Content-Type-Options"), SGI_STR("nosniff"));
    put(to, SGI_STR("Referrer-Policy"), SGI_STR("no-referrer"));
    put(to, SGI_STR("Cross-Origin-Resource-Policy"), SGI_STR("same-origin"));
    put(to, SGI_STR("Cross-Origin-Opener-Policy"), SGI_STR("same-origin"));
}

static void add_folder(const head_out *to, const char *folder)
{
    sgi_buf *out = begin_field(to, SGI_STR("Location"));
    sgi_buf_add_str(out, sgi_str_of(folder));
    sgi_buf_add_char(out, '/');
    end_field(to);
}

/* Adds the headers that follow from the answer, whoever sends it. */
static void add_headers(const head_out *to, const sgi_http_answer_head *head)
{
    if (head->session)
        put_given(to, SGI_STR("Mcp-Session-Id"), sgi_str_of(head->session));
    if (head->server)
        put_given(to, SGI_STR("Dev-Segue-Server"), sgi_str_of(head->server));
    if (head->allow)
        put_given(to, SGI_STR("Allow"), sgi_str_of(head->allow));
    if (head->challenge.n)
        put_given(to, SGI_STR("WWW-Authenticate"), head->challenge);
    else if (head->status == 401)
        put(to, SGI_STR("WWW-Authenticate"), SGI_STR("Bearer"));
    if (head->retry_s)
        put_uint(to, SGI_STR("Retry-After"), (uint64_t)head->retry_s);
    else if (head->status == 429 || head->status == 503)
        /* a full server can soon accept requests again */
        put(to, SGI_STR("Retry-After"), SGI_STR("1"));
    if (head->folder)
        add_folder(to, head->folder);
    if (head->is_guarded)
        add_guards(to);
    add_cors(to, head);
}

void sgi_http_add_head(sgi_buf *out, const sgi_http_answer_head *head,
                       sgi_http_date *date, int64_t wall_ms)
{
    head_out to = {.text = out};
    if (head->status == 200)
        sgi_buf_add_lit(out, "HTTP/1.1 200 OK\r\n");
    else
        sgi_http1_add_status(out, head->status);
    add_type(&to, head);
    add_date(out, date, wall_ms);
    add_length(&to, head);
    add_framing(&to, head);
    add_headers(&to, head);
    sgi_http1_add_head_end(out);
}

void sgi_http_list_head(sgi_http_fields *fields, const sgi_http_answer_head *head)
{
    head_out to = {.fields = fields};
    fields->status = head->status;
    add_type(&to, head);
    add_length(&to, head);
    add_headers(&to, head);
}

void sgi_http_add_problem(sgi_buf *out, int32_t code, const char *problem, sgi_json data)
{
    sgi_write_rpc_error(out, (sgi_json){0}, code, sgi_str_of(problem), data);
}
