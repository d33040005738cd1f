/* A runtime, a fetcher and a record of the events of an exchange, shared by the tests of
 * fetch. */
#ifndef FETCH_KIT_H
#define FETCH_KIT_H

#include "support/fake_engine.h"
#include "support/http_peer.h"
#include "support/test_mem.h"
#include "transport/fetch.h"

typedef struct fetch_rig {
    test_mem mem;
    segue_runtime *rt;
    http_peer peer;
    sgi_fetcher *fetcher;
    char url[200];
    bool once;                      /* the next request must not be sent twice */
    sgi_fetch_lane lane;            /* lane of the next request */
    bool public_only;               /* the next request may only go to public addresses */
    const sgi_ip_address *excepted; /* the only other address that public_only accepts */
    char named[200];                /* URL of the next request; "" = the URL of the
                                  * fetcher */
} fetch_rig;

typedef struct fetch_seen fetch_seen;

struct fetch_seen {
    fetch_rig *rig;
    sgi_fetch *fetch; /* NULL once the exchange is gone */
    int heads;
    int dones;
    int32_t status;
    char type[64];   /* Content-Type */
    size_t pieces;   /* number of at_bytes events */
    size_t total;    /* bytes of the body in all */
    char body[4096]; /* the first bytes of the body */
    sgi_fetch_fault fault;
    char text[300];
    /* Hooks of the test; they run with the lock held, after the event was recorded. */
    void (*at_head)(fetch_seen *seen);
    void (*at_bytes)(fetch_seen *seen);
    void (*at_done)(fetch_seen *seen);
    void *user;
};

/* Makes a runtime and a peer that listens; it makes no fetcher. */
void fetch_set_up(fetch_rig *rig);
/* Makes the fetcher. settings NULL = the defaults without a proxy; url NULL = the
 * peer's. With SEGUE_TEST_BY_LIBCURL in the environment, libcurl carries plain HTTP,
 * too. */
void fetch_connect(fetch_rig *rig, const sgi_fetch_settings *settings);
/* Does what fetch_set_up and fetch_connect do. */
void fetch_begin(fetch_rig *rig, const sgi_fetch_settings *settings);
/* Ends everything and checks that all memory was returned. */
void fetch_tear_down(fetch_rig *rig);

/* These functions take the lock. body NULL = GET. */
void fetch_start(fetch_rig *rig, fetch_seen *seen, const char *body);
/* Does what fetch_start does, for a request that must not be sent twice. */
void fetch_start_once(fetch_rig *rig, fetch_seen *seen, const char *body);
segue_status fetch_request(fetch_rig *rig, fetch_seen *seen, sgi_fetch_method method,
                           const sgi_fetch_header_line *headers, size_t count,
                           const char *body);
void fetch_pause(fetch_seen *seen, bool paused);
void fetch_cancel(fetch_seen *seen);

/* Plays an exchange with a small answer and returns its status. The exchange uses this
 * line of the peer. If the line is not connected, the peer accepts a connection first. */
int32_t fetch_exchange(fetch_rig *rig, http_line *line, const char *body);

/* Starts a POST and waits until its request has reached the peer, on a new line. */
void fetch_open_stream(fetch_rig *rig, fetch_seen *seen, http_line *line);

/* Head of a stream. */
#define FETCH_CHUNKED                                                                    \
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"                             \
    "Transfer-Encoding: chunked\r\n\r\n"

/* "HTTP/1.1 200 OK" with a body and its length. */
#define FETCH_ANSWER(length, body)                                                       \
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"                              \
    "Content-Length: " length "\r\n\r\n" body

#endif
