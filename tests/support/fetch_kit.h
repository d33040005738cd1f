/* A runtime, a fetcher and what the events of an exchange said: what the tests of fetch
 * have in common. */
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
    bool once;                   /* of the next request */
    sgi_fetch_lane lane;         /* likewise */
    bool public_only;            /* likewise */
    const sgi_address *excepted; /* the address that public_only lets pass */
    char named[200];             /* its URL; "" = the fetcher's */
} fetch_rig;

typedef struct fetch_seen fetch_seen;

struct fetch_seen {
    fetch_rig *rig;
    sgi_fetch *fetch; /* until it is gone */
    int heads;
    int dones;
    int32_t status;
    char type[64];   /* Content-Type */
    size_t pieces;   /* calls of bytes */
    size_t total;    /* bytes in all */
    char body[4096]; /* the first of them */
    sgi_fetch_fault fault;
    char text[300];
    /* Lock held, after the event was noted. */
    void (*at_head)(fetch_seen *seen);
    void (*at_bytes)(fetch_seen *seen);
    void (*at_done)(fetch_seen *seen);
    void *user;
};

/* A runtime and a peer that listens; no fetcher yet. */
void fetch_set_up(fetch_rig *rig);
/* settings NULL = no proxy and else the default; with a NULL url the peer's. */
void fetch_connect(fetch_rig *rig, const sgi_fetch_settings *settings);
/* Both. */
void fetch_begin(fetch_rig *rig, const sgi_fetch_settings *settings);
/* Everything ends; all memory must be back. */
void fetch_tear_down(fetch_rig *rig);

/* These take the lock. body NULL = GET. */
void fetch_start(fetch_rig *rig, fetch_seen *seen, const char *body);
/* The same for what may not be acted on twice. */
void fetch_start_once(fetch_rig *rig, fetch_seen *seen, const char *body);
segue_status fetch_request(fetch_rig *rig, fetch_seen *seen, sgi_fetch_method method,
                           const sgi_fetch_header_line *headers, size_t count,
                           const char *body);
void fetch_pause(fetch_seen *seen, bool paused);
void fetch_cancel(fetch_seen *seen);

/* An exchange with a small answer, from start to end, on this line of the peer's or, when
 * it has none yet, on one that is accepted. The status. */
int32_t fetch_exchange(fetch_rig *rig, http_line *line, const char *body);

/* A POST whose request has come to the peer on a line of its own. */
void fetch_open_stream(fetch_rig *rig, fetch_seen *seen, http_line *line);

/* The head of a stream. */
#define FETCH_CHUNKED                                                                    \
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"                             \
    "Transfer-Encoding: chunked\r\n\r\n"

/* "HTTP/1.1 200 OK" with a body and its length. */
#define FETCH_ANSWER(length, body)                                                       \
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"                              \
    "Content-Length: " length "\r\n\r\n" body

#endif
