#include "support/http_stage.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>

#include <setjmp.h>
#include <stdarg.h>
// clang-format off
#include <cmocka.h>
// clang-format on

/* ---- the stage ---- */

static int64_t real_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t fake_now(void *user)
{
    return ((http_stage *)user)->clock_ms;
}

static int64_t fake_wall(void *user)
{
    return 1764000000000 + ((http_stage *)user)->clock_ms;
}

static int32_t fake_random(void *user, void *bytes, size_t len)
{
    http_stage *s = user;
    for (size_t i = 0; i < len; i++) {
        s->chance = s->chance * 6364136223846793005u + 1442695040888963407u;
        ((unsigned char *)bytes)[i] = (unsigned char)(s->chance >> 33);
    }
    return 0;
}

static void make_runtime(http_stage *s)
{
    segue_runtime_options options = SEGUE_RUNTIME_OPTIONS_INIT;
    segue_hooks hooks = SEGUE_HOOKS_INIT;
    hooks.user = s;
    hooks.monotonic_ms = fake_now;
    hooks.wall_ms = fake_wall;
    hooks.random = fake_random;
    options.allocator = &s->mem.mem;
    options.hooks = &hooks;
    options.max_message_bytes = s->max_message;
    assert_int_equal(segue_runtime_new(&options, &s->rt, NULL), SEGUE_OK);
}

void http_stage_begin(http_stage *s)
{
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    segue_error *error = NULL;
    s->clock_ms = 1000;
    s->chance = 7;
    test_mem_init(&s->mem);
    make_runtime(s);
    options.principal = s->principal;
    options.store = s->store;
    options.on_idle = s->on_idle;
    options.dialects_on = s->dialects_on;
    options.user = s;
    assert_int_equal(segue_server_new(s->rt, &options, &s->server, NULL), SEGUE_OK);
    s->fixtures = fixtures_new(fake_now, s);
    assert_int_equal(fixtures_add(s->fixtures, s->rt, s->server), SEGUE_OK);
    assert_int_equal(item_fixtures_add(s->rt, s->server), SEGUE_OK);
    if (s->add)
        s->add(s->server);
    s->listen.struct_size = sizeof s->listen;
    segue_status status =
        s->by_hand ? segue_listener_open(s->server, &s->listen, &s->listener, &error)
                   : segue_server_listen(s->server, &s->listen, &s->listener, &error);
    if (status != SEGUE_OK)
        fail_msg("listening: %s", segue_error_read(error)->message);
    const char *colon = strrchr(segue_listener_url(s->listener), ':');
    s->port = colon ? atoi(colon + 1) : 0;
    http_stage_run(s);
}

void http_stage_end(http_stage *s)
{
    segue_listener_free(s->listener);
    segue_server_free(s->server);
    segue_runtime_free(s->rt);
    fixtures_free(s->fixtures);
    assert_int_equal(s->mem.live, 0);
}

static int32_t turn(http_stage *s)
{
    int32_t ran = 0;
    s->turns++;
    assert_int_equal(segue_runtime_dispatch(s->rt, 0, 0, &ran), SEGUE_OK);
    fixtures_tick(s->fixtures);
    return ran;
}

void http_stage_run(http_stage *s)
{
    for (int quiet = 0; quiet < 4; quiet++)
        if (turn(s))
            quiet = 0;
}

void http_stage_advance(http_stage *s, int64_t ms)
{
    while (ms > 0) {
        int64_t step = ms < 50 ? ms : 50;
        if (ms > 5000)
            step = 1000;
        s->clock_ms += step;
        ms -= step;
        http_stage_run(s);
    }
}

/* ---- callers ---- */

/* Gives the server a turn. When nothing has arrived, waits a moment for the system. */
static void await(http_caller *c, int64_t *deadline, const char *what)
{
    struct pollfd fd = {.fd = c->fd, .events = POLLIN};
    if (!*deadline)
        *deadline = real_now() + PATIENCE_MS;
    turn(c->s);
    if (real_now() > *deadline)
        fail_msg("waited for %s in vain; there is: %s", what, c->in ? c->in : "");
    poll(&fd, 1, 0);
}

void http_caller_open(http_stage *s, http_caller *c)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->port)};
    int on = 1;
    inet_pton(AF_INET, s->host ? s->host : "127.0.0.1", &to.sin_addr);
    *c = (http_caller){.s = s, .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_true(c->fd >= 0);
    assert_int_equal(connect(c->fd, (struct sockaddr *)&to, sizeof to), 0);
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void http_caller_close(http_caller *c)
{
    if (c->fd >= 0)
        close(c->fd);
    free(c->in);
    *c = (http_caller){.s = c->s, .fd = -1};
}

void http_stage_open(http_stage *s, http_caller *c)
{
    http_stage_begin(s);
    http_caller_open(s, c);
}

void http_stage_close(http_stage *s, http_caller *c)
{
    http_caller_close(c);
    http_stage_end(s);
}

void http_caller_reset(http_caller *c)
{
    struct linger hard = {1, 0};
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    http_caller_close(c);
}

bool http_caller_look(http_caller *c)
{
    bool any = false;
    while (!c->ended) {
        c->in = realloc(c->in, c->len + 65536 + 1);
        ssize_t got = recv(c->fd, c->in + c->len, 65536, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        c->ended = got <= 0;
        c->reset = got < 0;
        c->len += got > 0 ? (size_t)got : 0;
        any |= got > 0;
    }
    if (c->in)
        c->in[c->len] = 0;
    return any;
}

/* Sends the bytes. If the server has closed the connection, the caller notices this when
 * it reads. */
void http_caller_send(http_caller *c, const char *bytes, size_t len)
{
    int64_t deadline = 0;
    while (len) {
        ssize_t sent = send(c->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return;
        if (sent > 0) {
            bytes += sent;
            len -= (size_t)sent;
        } else {
            await(c, &deadline, "the server to read");
        }
    }
}

void http_caller_say(http_caller *c, const char *text)
{
    http_caller_send(c, text, strlen(text));
}

void http_caller_drip(http_caller *c, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        http_caller_send(c, bytes + i, 1);
        turn(c->s);
    }
}

static void drop(http_caller *c, size_t n)
{
    c->len -= n;
    memmove(c->in, c->in + n, c->len + 1);
}

/* ---- answers ---- */

static void need(http_caller *c, size_t len, const char *what)
{
    int64_t deadline = 0;
    while (c->len < len) {
        if (!http_caller_look(c) && c->ended)
            fail_msg("the connection ended before %s; there is: %s", what,
                     c->in ? c->in : "");
        if (c->len < len)
            await(c, &deadline, what);
    }
}

/* Waits for the mark in the input. Returns the length of the input up to and including
 * the mark. */
static size_t need_mark(http_caller *c, const char *mark, const char *what)
{
    for (size_t n = 1;; n = c->len + 1) {
        need(c, n, what);
        const char *at = strstr(c->in, mark);
        if (at)
            return (size_t)(at - c->in) + strlen(mark);
    }
}

const char *http_reply_header(const http_reply *reply, const char *name)
{
    static char value[512];
    size_t len = strlen(name);
    for (const char *line = strstr(reply->head, "\r\n"); line && line[2];
         line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, len) != 0 || line[2 + len] != ':')
            continue;
        sscanf(line + 2 + len + 1, " %511[^\r]", value);
        return value;
    }
    return "";
}

/* Moves the next chunk to the end of *into; returns false at the last chunk. */
static bool read_chunk(http_caller *c, char **into, size_t *len)
{
    size_t line = need_mark(c, "\r\n", "the size of a chunk");
    size_t size = strtoul(c->in, NULL, 16);
    need(c, line + size + 2, "a chunk");
    *into = realloc(*into, *len + size + 1);
    memcpy(*into + *len, c->in + line, size);
    *len += size;
    (*into)[*len] = 0;
    assert_memory_equal(c->in + line + size, "\r\n", 2);
    drop(c, line + size + 2);
    return size > 0;
}

void http_caller_read(http_caller *c, http_reply *reply)
{
    *reply = (http_reply){0};
    size_t head = need_mark(c, "\r\n\r\n", "an answer");
    assert_true(head < sizeof reply->head);
    memcpy(reply->head, c->in, head);
    drop(c, head);
    assert_int_equal(sscanf(reply->head, "HTTP/1.1 %d ", &reply->status), 1);
    if (strncmp(http_reply_header(reply, "Content-Type"), "text/event-stream", 17) == 0)
        return;
    if (*http_reply_header(reply, "Transfer-Encoding")) {
        while (read_chunk(c, &reply->body, &reply->body_len))
            reply->chunks++;
        return;
    }
    reply->body_len = (size_t)atol(http_reply_header(reply, "Content-Length"));
    need(c, reply->body_len, "a body");
    reply->body = malloc(reply->body_len + 1);
    if (reply->body_len)
        memcpy(reply->body, c->in, reply->body_len);
    reply->body[reply->body_len] = 0;
    if (reply->body_len)
        drop(c, reply->body_len);
}

void http_reply_free(http_reply *reply)
{
    free(reply->body);
    reply->body = NULL;
}

int http_caller_status(http_caller *c)
{
    http_reply reply;
    http_caller_read(c, &reply);
    http_reply_free(&reply);
    return reply.status;
}

/* Returns the next event. The function assumes that each chunk ends at the end of an
 * event. This holds unless a write was full, which tests that read single events
 * avoid. */
char *http_caller_event(http_caller *c)
{
    char *text = NULL;
    size_t len = 0;
    for (;;) {
        need_mark(c, "\r\n", "the size of a chunk");
        if (!read_chunk(c, &text, &len)) {
            assert_int_equal(len, 0);
            free(text);
            return NULL;
        }
        char *end = strstr(text, "\n\n");
        if (!end)
            continue;
        size_t rest = len - (size_t)(end + 2 - text);
        if (rest) { /* the rest is put back into the input as a chunk */
            char *again = malloc(rest + c->len + 32);
            int size = sprintf(again, "%zx\r\n", rest);
            memcpy(again + size, end + 2, rest);
            memcpy(again + (size_t)size + rest, "\r\n", 2);
            memcpy(again + (size_t)size + rest + 2, c->in, c->len + 1);
            free(c->in);
            c->in = again;
            c->len += (size_t)size + rest + 2;
        }
        *end = 0;
        return text;
    }
}

void http_caller_until_closed(http_caller *c)
{
    int64_t deadline = 0;
    while (!c->ended) {
        http_caller_look(c);
        if (c->len)
            fail_msg("bytes before the end: %s", c->in);
        if (!c->ended)
            await(c, &deadline, "the end of the connection");
    }
}

void http_caller_quiet(http_caller *c)
{
    http_stage_run(c->s);
    http_caller_look(c);
    if (c->len)
        fail_msg("there should be nothing: %s", c->in);
    assert_false(c->ended);
}

/* ---- requests ---- */

static char *print(const char *format, ...) __attribute__((format(printf, 1, 2)));

static char *print(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        abort();
    va_end(args);
    return text;
}

char *http_post(const char *lines, const char *body)
{
    return print("POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
                 "Content-Type: application/json\r\n"
                 "Accept: application/json, text/event-stream\r\n"
                 "%sContent-Length: %zu\r\n\r\n%s",
                 lines, strlen(body), body);
}

char *http_request(const char *id, const char *method, const char *name,
                   const char *params, const char *caps)
{
    char *body =
        print("{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\",\"params\":{%s%s"
              "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
              "\"2026-07-28\",\"io.modelcontextprotocol/clientInfo\":"
              "{\"name\":\"t\",\"version\":\"1\"},"
              "\"io.modelcontextprotocol/clientCapabilities\":%s}}}",
              id, method, params ? params : "", params ? "," : "", caps ? caps : "{}");
    char *lines =
        print("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: %s\r\n%s%s%s", method,
              name ? "Mcp-Name: " : "", name ? name : "", name ? "\r\n" : "");
    char *request = http_post(lines, body);
    free(body);
    free(lines);
    return request;
}

char *http_call(const char *id, const char *tool, const char *arguments)
{
    char *params =
        print("\"name\":\"%s\",\"arguments\":%s", tool, arguments ? arguments : "{}");
    char *request = http_request(id, "tools/call", tool, params, NULL);
    free(params);
    return request;
}

void http_caller_ask(http_caller *c, char *request, http_reply *reply)
{
    http_caller_say(c, request);
    free(request);
    http_caller_read(c, reply);
    assert_non_null(reply->body);
}

void http_stage_begin_session(http_stage *s, char lines[160])
{
    http_caller c;
    http_reply reply;
    http_caller_open(s, &c);
    http_caller_ask(&c,
                    http_post("",
                              "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\","
                              "\"params\":{\"protocolVersion\":\"2025-11-25\","
                              "\"capabilities\":{},"
                              "\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}}}"),
                    &reply);
    snprintf(lines, 160, "Mcp-Session-Id: %s\r\nMCP-Protocol-Version: 2025-11-25\r\n",
             http_reply_header(&reply, "Mcp-Session-Id"));
    http_reply_free(&reply);
    http_caller_close(&c);
}

void http_stage_start_task(http_stage *s, const char *tool, const char *arguments,
                           char id[64])
{
    http_caller c;
    http_reply reply;
    char params[160];
    snprintf(params, sizeof params, "\"name\":\"%s\",\"arguments\":%s", tool, arguments);
    http_caller_open(s, &c);
    http_caller_ask(&c, http_request("1", "tools/call", tool, params, HTTP_CAPS_TASKS),
                    &reply);
    const char *at = strstr(reply.body, "\"taskId\":\"");
    assert_non_null(at);
    at += strlen("\"taskId\":\"");
    snprintf(id, 64, "%.*s", (int)strcspn(at, "\""), at);
    http_reply_free(&reply);
    http_caller_close(&c);
}
