#include "http_peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void must(int ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    abort();
}

static void listen_on(http_peer *peer, const struct sockaddr *address, socklen_t size)
{
    int one = 1;
    peer->listener =
        socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    must(peer->listener >= 0, "socket");
    if (address->sa_family == AF_INET)
        setsockopt(peer->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    must(bind(peer->listener, address, size) == 0, "bind");
    must(listen(peer->listener, 64) == 0, "listen");
}

void http_peer_open(http_peer *peer)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    *peer = (http_peer){0};
    listen_on(peer, (struct sockaddr *)&address, size);
    must(getsockname(peer->listener, (struct sockaddr *)&address, &size) == 0, "name");
    peer->port = ntohs(address.sin_port);
}

void http_peer_open_unix(http_peer *peer, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    *peer = (http_peer){0};
    listen_on(peer, (struct sockaddr *)&address, sizeof address);
}

void http_peer_reopen(http_peer *peer)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)peer->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    listen_on(peer, (struct sockaddr *)&address, sizeof address);
}

void http_peer_close(http_peer *peer)
{
    if (peer->listener >= 0)
        close(peer->listener);
    peer->listener = -1;
}

bool http_peer_accept(http_peer *peer, http_line *line)
{
    int one = 1;
    int fd = accept4(peer->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return false;
    /* Unix sockets ignore TCP_NODELAY */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    *line = (http_line){.fd = fd};
    if (peer->tls) {
        line->tls = SSL_new(peer->tls);
        must(line->tls && SSL_set_fd(line->tls, fd) == 1, "SSL_new");
        SSL_set_accept_state(line->tls);
    }
    return true;
}

/* Reads bytes. Returns their number, 0 when no byte has arrived, -1 at the end. */
static ssize_t read_some(http_line *line, char *to, size_t size)
{
    if (line->tls) {
        int got = SSL_read(line->tls, to, (int)size);
        if (got > 0)
            return got;
        int why = SSL_get_error(line->tls, got);
        return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? 0 : -1;
    }
    ssize_t got = recv(line->fd, to, size, 0);
    if (got > 0)
        return got;
    return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

/* Reads until the buffer is full: later bytes do not matter. */
static void read_all(http_line *line)
{
    char rest[4096];
    while (!line->ended) {
        size_t room = sizeof line->in - 1 - line->in_len;
        ssize_t got = room ? read_some(line, line->in + line->in_len, room)
                           : read_some(line, rest, sizeof rest);
        if (got == 0)
            break;
        line->ended = got < 0;
        if (got > 0 && room)
            line->in_len += (size_t)got;
    }
    line->in[line->in_len] = 0;
}

bool http_line_asked(http_line *line)
{
    read_all(line);
    const char *end = strstr(line->in, "\r\n\r\n");
    if (!end)
        return false;
    const char *length = strcasestr(line->in, "\r\ncontent-length:");
    size_t body = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
    return line->in_len >= (size_t)(end + 4 - line->in) + body;
}

bool http_line_ended(http_line *line)
{
    read_all(line);
    return line->ended;
}

void http_line_clear(http_line *line)
{
    line->in_len = 0;
    line->in[0] = 0;
}

size_t http_line_push(http_line *line, const char *bytes, size_t len)
{
    ssize_t sent = line->tls ? SSL_write(line->tls, bytes, (int)len)
                             : send(line->fd, bytes, len, MSG_NOSIGNAL);
    return sent > 0 ? (size_t)sent : 0;
}

void http_line_say(http_line *line, const char *text)
{
    must(http_line_push(line, text, strlen(text)) == strlen(text), "say");
}

void http_line_close(http_line *line)
{
    if (line->tls) {
        SSL_shutdown(line->tls);
        SSL_free(line->tls);
    }
    if (line->fd >= 0)
        close(line->fd);
    line->fd = -1;
    line->tls = NULL;
}

void http_line_reset(http_line *line)
{
    struct linger at_once = {1, 0};
    setsockopt(line->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(line->fd);
    line->fd = -1;
    SSL_free(line->tls);
    line->tls = NULL;
}
