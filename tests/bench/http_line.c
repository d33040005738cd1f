/* Not a client: only the HTTP that known servers need. Anything else ends the program
 * with a message. */
#include "http_line.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define PATIENCE_S 20

static const char ok[] = "HTTP/1.1 200 ";

void http_write_request(http_text *request, int port, const char *method,
                        const char *name, const char *members, const char *meta)
{
    char body[HTTP_TEXT_SIZE];
    char naming[128] = "";
    if (name)
        snprintf(naming, sizeof naming, "Mcp-Name: %s\r\n", name);
    int len = snprintf(
        body, sizeof body,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{%s\"_meta\":{%s"
        "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
        "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"bench\",\"version\":\"0\"},"
        "\"io.modelcontextprotocol/clientCapabilities\":{\"extensions\":{"
        "\"io.modelcontextprotocol/tasks\":{}}}}}}",
        method, members, meta ? meta : "");
    int all = snprintf(request->bytes, sizeof request->bytes,
                       "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                       "Content-Type: application/json\r\n"
                       "Accept: application/json, text/event-stream\r\n"
                       "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: %s\r\n%s"
                       "Content-Length: %d\r\n\r\n%s",
                       port, method, naming, len, body);
    if (len < 0 || all < 0 || (size_t)all >= sizeof request->bytes)
        bench_fail("a request is too long");
    request->len = (size_t)all;
}

int http_connect(int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct timeval patience = {.tv_sec = PATIENCE_S};
    int on = 1;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        bench_fail("no connection");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

void http_send(int fd, const http_text *request)
{
    if (send(fd, request->bytes, request->len, MSG_NOSIGNAL) != (ssize_t)request->len)
        bench_fail("a request cannot be sent");
}

static size_t read_some(int fd, char *into, size_t room)
{
    ssize_t got = recv(fd, into, room, 0);
    if (got == 0)
        bench_fail("the server closed a connection");
    if (got < 0)
        bench_fail(errno == EAGAIN ? "the server does not answer" : strerror(errno));
    return (size_t)got;
}

/* Returns the length of the answer whose beginning is in text; 0 = it is not known
 * yet. */
static size_t answer_length(const char *text, size_t len)
{
    const char *end = strstr(text, "\r\n\r\n");
    if (!end)
        return 0;
    size_t head = (size_t)(end + 4 - text);
    const char *length = strcasestr(text, "\r\ncontent-length:");
    if (length && length < end)
        return head + strtoul(length + sizeof "\r\ncontent-length:" - 1, NULL, 10);
    return len > head + 5 && strcmp(text + len - 5, "0\r\n\r\n") == 0 ? len : 0;
}

size_t http_read_answer(int fd, char *text, size_t size)
{
    size_t len = 0;
    size_t all = 0;
    while (!all || len < all) {
        if (len + 1 >= size)
            bench_fail("an answer is too long");
        len += read_some(fd, text + len, size - 1 - len);
        text[len] = 0;
        all = answer_length(text, len);
    }
    if (len != all || strncmp(text, ok, sizeof ok - 1) != 0)
        bench_fail(text);
    return len;
}

void http_read_event(int fd)
{
    char text[HTTP_TEXT_SIZE];
    size_t len = 0;
    const char *body = NULL;
    while (!body || !strstr(body + 4, "\n\n")) {
        if (len + 1 >= sizeof text)
            bench_fail("an event is too long");
        len += read_some(fd, text + len, sizeof text - 1 - len);
        text[len] = 0;
        body = strstr(text, "\r\n\r\n");
    }
    if (strncmp(text, ok, sizeof ok - 1) != 0 || !strstr(text, "text/event-stream"))
        bench_fail(text);
}

/* An event stream whose events are counted while it is read: first the head, then
 * chunks. */
typedef struct drain {
    int64_t events;
    size_t left;    /* bytes of the chunk that are still to come */
    size_t size;    /* the number of the size line so far */
    size_t matched; /* bytes of "data:" at the beginning of the line; OTHER = others */
    int blank;      /* of the head: how much of "\r\n\r\n" has come */
    bool in_body;
    bool has_size; /* the size line has a digit */
    bool is_over;
} drain;

#define OTHER SIZE_MAX

static void count_events(drain *d, const char *at, const char *end)
{
    static const char event[] = "data:";
    for (; at < end; at++) {
        if (d->matched == OTHER)
            at = memchr(at, '\n', (size_t)(end - at));
        if (!at)
            return;
        if (*at == '\n') {
            d->matched = 0;
        } else if (*at != event[d->matched]) {
            d->matched = OTHER;
        } else if (++d->matched == sizeof event - 1) {
            d->events++;
            d->matched = OTHER;
        }
    }
}

/* Takes a byte of the line between two chunks. */
static void take_size(drain *d, char c)
{
    const char *digits = "0123456789abcdef";
    const char *digit = c == '\r' || c == '\n' ? NULL : strchr(digits, c | 0x20);
    if (digit) {
        d->size = d->size * 16 + (size_t)(digit - digits);
        d->has_size = true;
    } else if (c == '\n' && d->has_size) {
        d->is_over = !d->size;
        d->left = d->size;
        d->size = 0;
        d->has_size = false;
    }
}

static void take_head(drain *d, char c)
{
    static const char blank[] = "\r\n\r\n";
    d->blank = c == blank[d->blank] ? d->blank + 1 : c == '\r';
    d->in_body = d->blank == sizeof blank - 1;
}

int64_t http_drain_events(int fd)
{
    static char room[256 * 1024];
    drain d = {0};
    while (!d.is_over) {
        const char *at = room, *end = room + read_some(fd, room, sizeof room);
        while (at < end && !d.is_over) {
            size_t some = (size_t)(end - at) < d.left ? (size_t)(end - at) : d.left;
            count_events(&d, at, at + some);
            at += some;
            d.left -= some;
            if (some)
                continue;
            if (d.in_body)
                take_size(&d, *at++);
            else
                take_head(&d, *at++);
        }
    }
    return d.events;
}
