/* Not a client: only the HTTP that known servers need. Anything else ends the program
 * with a message. */
#include "http_line.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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

int64_t http_drain_events(int fd)
{
    static char room[256 * 1024];
    static const char last[] = "\r\n0\r\n\r\n", event[] = "data:";
    const size_t keep = sizeof last - 1; /* finds the end also when it is split */
    size_t len = 0;
    int64_t events = 0;
    do {
        size_t kept = len < keep ? len : keep;
        memmove(room, room + len - kept, kept);
        size_t got = read_some(fd, room + kept, sizeof room - kept);
        len = kept + got;
        /* an event that was counted has all its bytes among the kept ones */
        size_t seen = kept < sizeof event - 2 ? 0 : kept - (sizeof event - 2);
        for (const char *at = room + seen, *end = room + len;
             (at = memmem(at, (size_t)(end - at), event, sizeof event - 1));
             at += sizeof event - 1)
            events++;
    } while (len < keep || memcmp(room + len - keep, last, keep) != 0);
    return events;
}
