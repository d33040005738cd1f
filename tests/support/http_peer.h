/* An HTTP server that a test plays by hand, on the test's own thread: it accepts, reads
 * and writes only when told, never waits, and sends what it is told to the letter. Plain,
 * over a Unix socket, or TLS. Faults of the machine abort. */
#ifndef HTTP_PEER_H
#define HTTP_PEER_H

#include <stdbool.h>
#include <stddef.h>

#include <openssl/ssl.h>

typedef struct http_peer {
    int listener; /* -1 = closed */
    int port;     /* on 127.0.0.1 */
    SSL_CTX *tls; /* NULL = plain; the test's */
} http_peer;

typedef struct http_line {
    int fd; /* -1 = none */
    SSL *tls;
    bool ended; /* the other side has closed it */
    size_t in_len;
    char in[32768]; /* NUL-terminated */
} http_line;

void http_peer_open(http_peer *peer);
void http_peer_open_unix(http_peer *peer, const char *path);
void http_peer_close(http_peer *peer);
/* On the port that it had before it was closed. */
void http_peer_reopen(http_peer *peer);

/* True when one has come; line must be unused. */
bool http_peer_accept(http_peer *peer, http_line *line);
/* Reads what is there; true once `in` holds a whole request. */
bool http_line_asked(http_line *line);
/* Reads what is there; true once the other side has closed. */
bool http_line_ended(http_line *line);
/* Forgets what was read. */
void http_line_clear(http_line *line);
/* Writes what can be written at once; how much that was. */
size_t http_line_push(http_line *line, const char *bytes, size_t len);
/* Small texts always fit. */
void http_line_say(http_line *line, const char *text);
void http_line_close(http_line *line);
/* Closes with a reset. */
void http_line_reset(http_line *line);

#endif
