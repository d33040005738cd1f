/* Wires over HTTP to the server in this process, which listens on a Unix socket, so that
 * no network delays anything. Every line is sent as a POST, with the headers that repeat
 * its content, and answers become lines again. So a scenario need not know about HTTP.
 *
 * A lane is one connection. A lane carries one exchange at a time and is used again for
 * later exchanges. There are as many lanes as exchanges in flight. A modern request is
 * cancelled by closing its lane. After notifications/initialized of a handshake era one
 * more lane holds the stream of the session. */
#include "support/reply_reader.h"
#include "support/wire_mirror.h"
#include "support/world_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <setjmp.h>
// clang-format off
#include <cmocka.h>
// clang-format on

typedef struct lane {
    struct lane *next;
    wire *c;
    int fd;
    reply_reader reader;
    int busy;
    int modern;      /* 1 = the request under way is cancelled by closing the lane */
    int initializes; /* 1 = the answer to the request opens a session */
    char *id;        /* id of the request under way, NULL = none */
} lane;

/* ---- lanes ---- */

static void close_lane(lane *l)
{
    lane **at = &l->c->lanes;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    close(l->fd);
    reply_reader_free(&l->reader);
    free(l->id);
    free(l);
}

/* Breaks a lane in one of two ways: with an announced end, or by closing the socket with
 * unread bytes (the peer then sees a reset). */
static void break_lane(lane *l)
{
    if (world_chance(l->c->w, 2))
        shutdown(l->fd, SHUT_RDWR);
    close_lane(l);
}

static void on_message(void *user, const char *text, size_t len)
{
    lane *l = user;
    wire *c = l->c;
    char *line = malloc(len + 2);
    memcpy(line, text, len);
    line[len] = '\n';
    line[len + 1] = 0;
    wire_received(c, line, len + 1);
    line[len] = 0;
    const char *version = l->initializes ? json_at(line, "result.protocolVersion") : "";
    if (*version && *l->reader.session) {
        free(c->session);
        free(c->version);
        c->session = strdup(l->reader.session);
        c->version = strndup(version + 1, strlen(version) - 2);
    }
    free(line);
}

static lane *open_lane(wire *c)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    lane *l = calloc(1, sizeof *l);
    snprintf(to.sun_path, sizeof to.sun_path, "%.100s.sock", c->w->path);
    l->c = c;
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    l->reader.on_message = on_message;
    l->reader.user = l;
    l->next = c->lanes;
    c->lanes = l;
    c->closed = 0;
    while (connect(l->fd, (struct sockaddr *)&to, sizeof to) != 0) {
        if (errno != EAGAIN && errno != EINTR)
            fail_msg("connecting to %s: %s", to.sun_path, strerror(errno));
        segue_runtime_dispatch(c->w->runtime, 0, 0, NULL); /* the backlog is full */
    }
    return l;
}

static lane *idle_lane(wire *c)
{
    for (lane *l = c->lanes; l; l = l->next)
        if (!l->busy)
            return l;
    return open_lane(c);
}

/* Reads the bytes that have arrived; returns 0 when none have. */
static int read_lane(lane *l)
{
    char bytes[65536];
    ssize_t n = recv(l->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0 || l->c->w->dead) {
        if (n <= 0) {
            wire *c = l->c;
            close_lane(l);
            c->closed = !c->lanes;
        }
        return 1;
    }
    if (!l->busy)
        fail_msg("bytes that nobody asked for: %.*s", (int)n, bytes);
    reply_reader_add(&l->reader, bytes, (size_t)n);
    if (l->reader.last_event[0])
        snprintf(l->c->last_event, sizeof l->c->last_event, "%s", l->reader.last_event);
    if (l->reader.stage == REPLY_DONE) {
        l->c->status = l->reader.status;
        reply_reader_next(&l->reader);
        free(l->id);
        l->id = NULL;
        l->busy = 0;
        if (l->reader.closes)
            close_lane(l);
    }
    return 1;
}

static int look(wire *c)
{
    int any = 0;
    for (lane *l = c->stalled ? NULL : c->lanes, *next; l; l = next) {
        next = l->next;
        any |= read_lane(l);
    }
    return any;
}

/* ---- sending ---- */

/* Returns 0 when the server has closed: a caller that waits for an answer reports
 * that. */
static int put(lane *l, const char *bytes, size_t len)
{
    while (len) {
        ssize_t n = send(l->fd, bytes, len, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return 0;
        if (n > 0) {
            bytes += n;
            len -= (size_t)n;
        } else {
            segue_runtime_dispatch(l->c->w->runtime, 0, 0, NULL);
        }
    }
    return 1;
}

static void put_cut(lane *l, const char *bytes, size_t len)
{
    world *w = l->c->w;
    for (size_t at = 0; at < len;) {
        size_t n = len - at;
        if (w->drive == WORLD_BYTES && len < 4096)
            n = 1;
        else if (w->drive == WORLD_RANDOM)
            n = 1 + world_chance(w, 64);
        if (n > len - at)
            n = len - at;
        if (!put(l, bytes + at, n))
            return;
        at += n;
        if (w->drive == WORLD_BYTES || world_chance(w, 4) == 0)
            segue_runtime_dispatch(w->runtime, 0, 0, NULL);
    }
}

/* Makes a body without a length, in chunks of any size. */
static char *in_chunks(world *w, const char *body, size_t len, size_t *out_len)
{
    char *text = malloc(len * 8 + 16);
    size_t n = 0;
    for (size_t at = 0; at < len;) {
        size_t size = 1 + world_chance(w, 200);
        if (size > len - at)
            size = len - at;
        n += (size_t)sprintf(text + n, "%zx%s\r\n", size,
                             world_chance(w, 4) ? "" : ";a=b");
        memcpy(text + n, body + at, size);
        n += size;
        n += (size_t)sprintf(text + n, "\r\n");
        at += size;
    }
    n += (size_t)sprintf(text + n, "0\r\n\r\n");
    *out_len = n;
    return text;
}

static void send_request(wire *c, const wire_mirror *m, const char *method,
                         const char *body, size_t len, int cuts)
{
    world *w = c->w;
    lane *l = idle_lane(c);
    int chunks = cuts && len && w->drive != WORLD_WHOLE && world_chance(w, 2);
    char *head = malloc(m->text_len + 800), length[64], after[160] = "";
    size_t body_len = len, n;
    char *chunked = chunks ? in_chunks(w, body, len, &body_len) : NULL;
    snprintf(length, sizeof length,
             chunks ? "Transfer-Encoding: chunked\r\n" : "Content-Length: %zu\r\n", len);
    if (c->after[0])
        snprintf(after, sizeof after, "Last-Event-ID: %s\r\n", c->after);
    n = (size_t)sprintf(head,
                        "%s /mcp HTTP/1.1\r\nHost: localhost\r\n"
                        "Content-Type: application/json\r\n"
                        "Accept: %stext/event-stream\r\n%s%s%s%s%s%s\r\n",
                        method, len ? "application/json, " : "",
                        c->principal ? "X-Principal: " : "",
                        c->principal ? c->principal : "", c->principal ? "\r\n" : "",
                        len ? length : "", after, m->text);
    char *all = malloc(n + body_len);
    memcpy(all, head, n);
    memcpy(all + n, chunked ? chunked : body, body_len);
    l->busy = 1;
    l->modern = m->modern;
    l->initializes = m->initializes;
    l->id = m->id ? strdup(m->id) : NULL;
    if (cuts && w->drive != WORLD_WHOLE)
        put_cut(l, all, n + body_len);
    else
        put(l, all, n + body_len);
    free(all);
    free(chunked);
    free(head);
}

/* Closes the lane of the request that notifications/cancelled names, as in the modern
 * era. Returns 0 for any other message. */
static int cancel(wire *c, const wire_mirror *m)
{
    for (lane *l = m->cancels ? c->lanes : NULL; l; l = l->next)
        if (l->modern && l->busy && l->id && strcmp(l->id, m->cancels) == 0) {
            break_lane(l);
            return 1;
        }
    return 0;
}

static void post(wire *c, const char *line, size_t len, int cuts)
{
    wire_mirror m;
    while (len && strchr(" \t\r", line[len - 1]) && line[len - 1])
        len--;
    if (!len)
        return; /* an empty line is not sent: it would be an empty body */
    wire_mirror_read(&m, line, len, c->session, c->version);
    if (!cancel(c, &m))
        send_request(c, &m, "POST", line, len, cuts);
    int listens = m.initialized && c->session;
    wire_mirror_free(&m);
    if (!listens)
        return;
    world_run(c->w);
    wire_mirror_read(&m, "", 0, c->session, c->version);
    send_request(c, &m, "GET", "", 0, cuts);
    wire_mirror_free(&m);
}

static void post_lines(wire *c, const char *bytes, size_t len, int cuts)
{
    c->fed = realloc(c->fed, c->fed_len + len);
    memcpy(c->fed + c->fed_len, bytes, len);
    c->fed_len += len;
    char *at = c->fed, *end;
    while ((end = memchr(at, '\n', c->fed_len - (size_t)(at - c->fed)))) {
        post(c, at, (size_t)(end - at), cuts);
        at = end + 1;
    }
    c->fed_len -= (size_t)(at - c->fed);
    memmove(c->fed, at, c->fed_len);
}

static void send_line(wire *c, const char *text, size_t len)
{
    post_lines(c, text, len, 1);
}

static void feed(wire *c, const char *bytes, size_t len)
{
    post_lines(c, bytes, len, 0);
}

/* ---- the wire ---- */

static void begin(wire *c)
{
    (void)c;
}

static void cut(wire *c)
{
    while (c->lanes)
        break_lane(c->lanes);
    c->closed = 1;
    world_run(c->w);
}

static void stall(wire *c)
{
    if (!c->stalled)
        world_run(c->w);
}

/* Reads the bytes that the server sent before its end was reported. The lanes close on
 * this side first, because a server that ends waits a while for peers. */
static void lose(wire *c)
{
    if (c->w->runtime && !c->stalled)
        while (look(c))
            ;
    while (c->lanes)
        close_lane(c->lanes);
    c->closed = 1;
}

static void end(wire *c)
{
    while (c->lanes)
        close_lane(c->lanes);
    free(c->session);
    free(c->version);
    free(c->fed);
}

const wire_ops wire_http = {begin, cut, stall, send_line, feed, look, lose, end};
