/* An HTTP server that a test plays step by step, on the test's own thread. The peer
 * accepts, reads and writes only in its functions, never waits, and sends exactly the
 * given bytes. It runs over plain TCP, a Unix socket or TLS. Faults of the machine abort
 * the test. */
#ifndef HTTP_PEER_H
#define HTTP_PEER_H

#include <stdbool.h>
#include <stddef.h>

#include <openssl/ssl.h>

typedef struct http_peer {
    int listener; /* -1 = closed */
    int port;     /* port on 127.0.0.1 */
    SSL_CTX *tls; /* NULL = without TLS; owned by the test */
} http_peer;

typedef struct http_line {
    int fd; /* -1 = not connected */
    SSL *tls;
    bool ended; /* the other side has closed the connection */
    size_t in_len;
    char in[32768]; /* bytes read, NUL-terminated */
} http_line;

void http_peer_open(http_peer *peer);
void http_peer_open_unix(http_peer *peer, const char *path);
void http_peer_close(http_peer *peer);
/* Makes a closed peer listen again on its earlier port. */
void http_peer_reopen(http_peer *peer);

/* Accepts a waiting connection into an unused line; returns false when no connection
 * waits. */
bool http_peer_accept(http_peer *peer, http_line *line);
/* Reads what has arrived; returns true once `in` holds a whole request. */
bool http_line_asked(http_line *line);
/* Reads what has arrived; returns true once the other side has closed. */
bool http_line_ended(http_line *line);
/* Drops the bytes that were read. */
void http_line_clear(http_line *line);
/* Writes the bytes that can be written at once; returns their number. */
size_t http_line_push(http_line *line, const char *bytes, size_t len);
/* Writes a small text, which always fits. */
void http_line_say(http_line *line, const char *text);
void http_line_close(http_line *line);
/* Closes the connection with a reset. */
void http_line_reset(http_line *line);

#endif
