#include "support/http_script.h"

#include "support/tap.h"
#include "support/world.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <setjmp.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define WAIT_MS 120000
#define QUIET_PUMPS 20

struct http_wire {
    http_wire *next;
    http_line line;
    bool busy; /* a request is being answered */
};

/* ---- time ---- */

int64_t script_deadline(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 + WAIT_MS;
}

void script_check(int64_t until, const char *what, const char *file, int line)
{
    if (script_deadline() - WAIT_MS > until)
        fail_msg("%s:%d: waited in vain for %s", file, line, what);
}

/* ---- the network ---- */

static void accept_wires(http_script *s)
{
    http_line line;
    while (s->peer.listener >= 0 && http_peer_accept(&s->peer, &line)) {
        http_wire *tcp = calloc(1, sizeof *tcp);
        tcp->line = line;
        tcp->next = s->wires;
        s->wires = tcp;
    }
}

/* Returns whether a request goes to the endpoint. Other requests are for metadata or a
 * token. */
static bool is_message(const heard *h)
{
    const char *path = strchr(h->text, ' ');
    return path && strncmp(path, " /mcp ", 6) == 0;
}

static void hear(http_script *s, http_wire *tcp)
{
    heard *h = calloc(1, sizeof *h);
    heard **at = &s->all;
    h->script = s;
    h->wire = tcp;
    h->text = strdup(tcp->line.in);
    char *end = strstr(h->text, "\r\n\r\n");
    end[2] = 0;
    h->body = end + 4;
    if (is_message(h))
        tap_message(s->k.tap, TAP_IN, h->body, strlen(h->body));
    while (*at)
        at = &(*at)->next;
    *at = h;
    tcp->busy = true;
    http_line_clear(&tcp->line);
}

void script_pump(http_script *s)
{
    accept_wires(s);
    for (http_wire *tcp = s->wires; tcp; tcp = tcp->next)
        if (tcp->line.fd >= 0 && !tcp->busy && http_line_asked(&tcp->line))
            hear(s, tcp);
    for (int i = 0; i < 3; i++)
        segue_runtime_dispatch(s->k.runtime, i == 2, 0, NULL);
}

void script_advance(http_script *s, int64_t ms)
{
    for (int64_t end = s->k.clock_ms + ms; s->k.clock_ms < end;) {
        s->k.clock_ms += end - s->k.clock_ms > 50 ? 50 : end - s->k.clock_ms;
        segue_runtime_dispatch(s->k.runtime, 0, 0, NULL);
    }
    script_pump(s);
}

/* ---- the stage ---- */

void script_prepare(http_script *s)
{
    *s = (http_script){.peer.listener = -1};
    s->options = SEGUE_HTTP_OPTIONS_INIT;
    s->options.proxy = "";
    s->k.transport_gone = 1; /* the library's own transport is freed by itself */
    http_peer_open(&s->peer);
    snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d/mcp", s->peer.port);
}

void script_connect(http_script *s, const segue_session_options *options)
{
    if (!s->k.runtime) {
        kit_prepare(&s->k, (int64_t)s->most);
        if (s->background)
            assert_int_equal(segue_runtime_start(s->k.runtime), SEGUE_OK);
    }
    if (!s->k.transport)
        assert_int_equal(segue_transport_http(s->k.runtime, s->url, &s->options,
                                              &s->k.transport, NULL),
                         SEGUE_OK);
    kit_open(&s->k, options);
}

void script_begin(http_script *s, const segue_session_options *options)
{
    script_prepare(s);
    script_connect(s, options);
}

void script_end(http_script *s)
{
    kit_end(&s->k);
    while (s->wires) {
        http_wire *gone = s->wires;
        s->wires = gone->next;
        http_line_close(&gone->line);
        free(gone);
    }
    while (s->all) {
        heard *gone = s->all;
        s->all = gone->next;
        free(gone->text);
        free(gone);
    }
    http_peer_close(&s->peer);
}

/* ---- requests ---- */

static bool is_asked(heard *h, const char *method)
{
    char quoted[128];
    if (!*method)
        return true;
    if (strncmp(h->text, "POST ", 5) != 0)
        return strncmp(h->text, method, strlen(method)) == 0;
    snprintf(quoted, sizeof quoted, "\"%s\"", method);
    return strcmp(json_at(h->body, "method"), quoted) == 0;
}

heard *script_next(const http_script *s)
{
    heard *h = s->all;
    while (h && h->looked)
        h = h->next;
    return h;
}

heard *script_expect(http_script *s, const char *method)
{
    int64_t until = script_deadline();
    while (!script_next(s)) {
        script_pump(s);
        script_check(until, *method ? method : "any request", "script", 0);
    }
    heard *h = script_next(s);
    h->looked = true;
    if (!is_asked(h, method))
        fail_msg("expected %s, heard %s%s", method, h->text, h->body);
    return h;
}

heard *script_find(http_script *s, const char *method)
{
    int64_t until = script_deadline();
    for (;;) {
        for (heard *h = s->all; h; h = h->next)
            if (!h->looked && is_asked(h, method)) {
                h->looked = true;
                return h;
            }
        script_pump(s);
        script_check(until, method, "script", 0);
    }
}

void script_expect_silence(http_script *s)
{
    for (int i = 0; i < QUIET_PUMPS; i++)
        script_pump(s);
    heard *h = script_next(s);
    if (h)
        fail_msg("expected silence, heard %s%s", h->text, h->body);
}

const char *heard_header(heard *h, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = strstr(h->text, "\r\n"); at && at[2];
         at = strstr(at + 2, "\r\n")) {
        const char *line = at + 2;
        if (strncasecmp(line, name, n) != 0 || line[n] != ':')
            continue;
        line += n + 1 + strspn(line + n + 1, " ");
        snprintf(h->value, sizeof h->value, "%.*s", (int)strcspn(line, "\r\n"), line);
        return h->value;
    }
    return NULL;
}

void assert_header(heard *h, const char *name, const char *value)
{
    const char *is = heard_header(h, name);
    if (value && is ? strcmp(is, value) != 0 : value || is)
        fail_msg("%s is %s, not %s", name, is ? is : "absent", value ? value : "absent");
}

bool heard_is_closed(heard *h)
{
    script_pump(h->script);
    return h->wire->line.fd < 0 || http_line_ended(&h->wire->line);
}

/* ---- answers ---- */

size_t script_push(heard *h, const char *bytes, size_t len)
{
    return h->wire->line.fd < 0 ? 0 : http_line_push(&h->wire->line, bytes, len);
}

bool script_may_push(heard *h, int ms)
{
    struct pollfd fd = {.fd = h->wire->line.fd, .events = POLLOUT};
    return poll(&fd, 1, ms) > 0;
}

/* Bytes to a client that has closed the connection are dropped. */
static void send_all(heard *h, const char *bytes, size_t len)
{
    size_t piece = h->script->piece ? h->script->piece : len;
    int64_t until = script_deadline();
    while (len) {
        size_t sent = script_push(h, bytes, piece < len ? piece : len);
        bytes += sent;
        len -= sent;
        if (h->script->piece || len)
            script_pump(h->script);
        if (!sent && heard_is_closed(h))
            return;
        script_check(until, "the client to read", __FILE__, __LINE__);
    }
}

static char *compose(const char *format, va_list args)
{
    char *text = NULL;
    if (vasprintf(&text, format, args) < 0)
        abort();
    return text;
}

void script_say(heard *h, const char *status, const char *headers, const char *body)
{
    char *text;
    if (is_message(h))
        tap_message(h->script->k.tap, TAP_OUT, body, strlen(body));
    if (asprintf(&text, "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n%s", status, headers,
                 strlen(body), body) < 0)
        abort();
    send_all(h, text, strlen(text));
    free(text);
    h->wire->busy = false;
    script_pump(h->script);
}

void script_json(heard *h, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *body = compose(format, args);
    va_end(args);
    script_say(h, "200 OK", "Content-Type: application/json\r\n", body);
    free(body);
}

void script_result(heard *h, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *members = compose(format, args);
    va_end(args);
    script_json(h, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s}}",
                json_at(h->body, "id"), members);
    free(members);
}

void script_error(heard *h, const char *status, int code, const char *data)
{
    char *body;
    if (asprintf(&body,
                 "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":%d,"
                 "\"message\":\"no\"%s%s}}",
                 json_at(h->body, "id"), code, data ? ",\"data\":" : "",
                 data ? data : "") < 0)
        abort();
    script_say(h, status, "Content-Type: application/json\r\n", body);
    free(body);
}

void script_accept(heard *h)
{
    script_say(h, "202 Accepted", "", "");
}

void script_stream(heard *h)
{
    script_stream_with(h, "");
}

void script_stream_with(heard *h, const char *headers)
{
    char head[256];
    int len = snprintf(head, sizeof head,
                       "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                       "Transfer-Encoding: chunked\r\n%s\r\n",
                       headers);
    send_all(h, head, (size_t)len);
    script_pump(h->script);
}

void script_text(heard *h, const char *text)
{
    char *chunk;
    int n = asprintf(&chunk, "%zx\r\n%s\r\n", strlen(text), text);
    if (n < 0)
        abort();
    send_all(h, chunk, (size_t)n);
    free(chunk);
    script_pump(h->script);
}

void script_event(heard *h, const char *id, const char *format, ...)
{
    va_list args;
    char *text;
    va_start(args, format);
    char *data = compose(format, args);
    va_end(args);
    tap_message(h->script->k.tap, TAP_OUT, data, strlen(data));
    if (asprintf(&text, "%s%s%sdata: %s\n\n", id ? "id: " : "", id ? id : "",
                 id ? "\n" : "", data) < 0)
        abort();
    script_text(h, text);
    free(text);
    free(data);
}

void script_stream_result(heard *h, const char *id, const char *members)
{
    script_event(h, id, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s}}",
                 json_at(h->body, "id"), members);
}

void script_finish(heard *h)
{
    send_all(h, "0\r\n\r\n", 5);
    h->wire->busy = false;
    script_pump(h->script);
}

void script_cut(heard *h, bool reset)
{
    if (reset)
        http_line_reset(&h->wire->line);
    else
        http_line_close(&h->wire->line);
    script_pump(h->script);
}

/* ---- handshakes ---- */

void script_discover(http_script *s, const char *capabilities)
{
    script_result(script_expect(s, "server/discover"),
                  "\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"
                  "\"capabilities\":%s,\"ttlMs\":0,\"cacheScope\":\"private\"",
                  capabilities);
    script_until(s, s->k.opened);
}

void script_initialize_at(http_script *s, const char *session, const char *capabilities,
                          const char *server)
{
    char headers[256], body[512];
    int opened = s->k.opened;
    heard *h = script_expect(s, "initialize");
    assert_header(h, "Mcp-Session-Id", NULL);
    snprintf(headers, sizeof headers, "Content-Type: application/json\r\n%s%s%s%s%s%s",
             session ? "Mcp-Session-Id: " : "", session ? session : "",
             session ? "\r\n" : "", server ? "Dev-Segue-Server: " : "",
             server ? server : "", server ? "\r\n" : "");
    snprintf(body, sizeof body,
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"protocolVersion\":"
             "\"2025-11-25\",\"capabilities\":%s,\"serverInfo\":{\"name\":"
             "\"s\",\"version\":\"1\"}}}",
             json_at(h->body, "id"), capabilities);
    script_say(h, "200 OK", headers, body);
    h = script_expect(s, "notifications/initialized");
    assert_header(h, "Mcp-Session-Id", session);
    assert_header(h, "MCP-Protocol-Version", "2025-11-25");
    script_accept(h);
    script_until(s, s->k.opened > opened);
}

void script_initialize_with(http_script *s, const char *session, const char *capabilities)
{
    script_initialize_at(s, session, capabilities, NULL);
}

void script_initialize(http_script *s, const char *session)
{
    script_initialize_with(s, session, "{\"tools\":{}}");
}

void script_legacy(http_script *s, const char *session)
{
    script_error(script_expect(s, "server/discover"), "400 Bad Request", -32000, NULL);
    script_initialize(s, session);
}
