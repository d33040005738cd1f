/* fetch: outgoing HTTP exchanges. One exchange is a method, headers and a body out, then
 * a status with headers, the body as it comes, and the end. It knows no MCP and no SSE.
 *
 * A fetcher is one client endpoint: where it is and how it is reached. All fetchers of a
 * runtime share one pool of connections, which ends with the runtime.
 *
 * Any thread, lock held, except sgi_fetcher_new. Events come on the loop thread with the
 * lock held, never inside a function of this header. */
#ifndef SGI_FETCH_H
#define SGI_FETCH_H

#include "transport/address.h"
#include "transport/transport.h"

#define SGI_FETCH_HEAD_MAX ((size_t)64 * 1024) /* bytes of response headers */

typedef struct sgi_fetcher sgi_fetcher;
typedef struct sgi_fetch sgi_fetch;

/* Zero is the default of each; texts are copied. Files are PEM, read when a connection is
 * made: one that is missing is a fault of the exchange. */
typedef struct sgi_fetch_settings {
    const char *url;     /* http or https */
    const char *ca_file; /* instead of the system's certificates */
    const char *ca_path;
    const char *client_cert;
    const char *client_key; /* NULL = in client_cert */
    const char *key_password;
    const char *proxy;       /* NULL = as the environment says; "" = none */
    const char *unix_socket; /* connect to this path, whatever the host in the URL is */
    bool insecure;           /* anybody may be at the other end of a TLS connection */
    bool http1_only;         /* no HTTP/2 where TLS offers it */
    int64_t connect_timeout_ms; /* name, connection and TLS together; 30 s */
    int64_t keepalive_s;        /* idle time before TCP probes; 30; negative = none */
    /* Of each lane at once; more wait; 0 = no limit. Where requests turned into streams
     * there may be more streams, but no more of both together. */
    size_t max_exchanges;
} sgi_fetch_settings;

/* Lock not held. SEGUE_E_INVALID when the URL is none, SEGUE_E_FATAL when libcurl is of
 * no use, SEGUE_E_CLOSED once the runtime has stopped; why, where it is wanted, says
 * more. */
segue_status sgi_fetcher_new(segue_runtime *rt, const sgi_fetch_settings *settings,
                             sgi_fetcher **out, char why[SGI_WHY_SIZE]);
/* Lock held: one that is like another, but for hosts elsewhere: unix_socket, which is the
 * way to one host, is not gone. SEGUE_E_NOMEM. */
segue_status sgi_fetcher_elsewhere(const sgi_fetcher *like, sgi_fetcher **out);
/* Lock held: where the last response of this fetcher came from; NULL = none has come. */
const sgi_address *sgi_fetcher_address(const sgi_fetcher *fetcher);
/* Cancels what is under way. Takes NULL. */
void sgi_fetcher_free(sgi_fetcher *fetcher);

typedef enum sgi_fetch_method {
    SGI_FETCH_GET = 0,
    SGI_FETCH_POST,
    SGI_FETCH_DELETE
} sgi_fetch_method;

/* Each lane has places of its own, as exchanges of one may wait for those of another: a
 * stream goes on when a question in it was answered, and the answer is brief. */
typedef enum sgi_fetch_lane {
    SGI_FETCH_BRIEF = 0, /* ends soon, whatever the others do */
    SGI_FETCH_REQUEST,   /* may turn out to be a stream */
    SGI_FETCH_STREAM,    /* without a foreseeable end */
    SGI_FETCH_STANDING,  /* a stream that is open as long as its owner is */
    SGI_FETCH_LANES      /* how many there are */
} sgi_fetch_lane;

typedef struct sgi_fetch_header_line {
    sgi_str name;
    sgi_str value;
} sgi_fetch_header_line;

typedef struct sgi_fetch_request {
    sgi_fetch_method method;
    const char *url;                      /* copied; NULL = that of the settings */
    const sgi_fetch_header_line *headers; /* copied */
    size_t header_count;
    sgi_buf *body; /* of a POST: taken on success, then empty; may be NULL */
    sgi_fetch_lane lane;
    bool public_only; /* a peer has named the URL: no connection is made to an
                                    address that is not public */
    const sgi_address
        *excepted; /* a connection is made to this address all the same; when
                                    it is of this machine, to all of this machine; NULL =
                                    to none */
    bool once;     /* may not be acted on twice: a pooled connection that dies when some
                      of the body has left is a fault, else it is sent again; one that was
                      idle for more than 3 s is not used */
} sgi_fetch_request;

/* Where nothing was sent, nothing was sent on a new connection: one of the pool may have
 * died with the request before, and without an answer. */
typedef enum sgi_fetch_fault {
    SGI_FETCH_OK = 0,
    SGI_FETCH_UNRESOLVED,  /* no such host; nothing was sent */
    SGI_FETCH_UNREACHABLE, /* no connection, or the proxy has none; nothing was sent */
    SGI_FETCH_UNTRUSTED,   /* TLS: certificates, names, versions; nothing was sent */
    SGI_FETCH_TIMEOUT,     /* no connection in time; nothing was sent */
    SGI_FETCH_BROKEN,      /* the connection broke after it had been made */
    SGI_FETCH_REDIRECTED,  /* refused: no redirect is followed */
    SGI_FETCH_TOO_LARGE,   /* headers beyond SGI_FETCH_HEAD_MAX */
    SGI_FETCH_MALFORMED,   /* what answers speaks no HTTP */
    SGI_FETCH_SHUT_OUT,    /* the address is not public; nothing was sent */
    SGI_FETCH_NOMEM,
    SGI_FETCH_CLOSED /* the runtime ends */
} sgi_fetch_fault;

typedef struct sgi_fetch_outcome {
    sgi_fetch_fault fault;
    const char *text; /* one line; "" when all is well */
} sgi_fetch_outcome;

/* head once at most, then bytes, then done exactly once, after which the exchange is
 * gone. After sgi_fetch_cancel none is called. Each may pause, cancel and start. */
typedef struct sgi_fetch_events {
    void (*head)(void *user, sgi_fetch *fetch, int32_t status);
    void (*bytes)(void *user, sgi_fetch *fetch, const char *bytes, size_t len);
    void (*done)(void *user, sgi_fetch *fetch, const sgi_fetch_outcome *outcome);
} sgi_fetch_events;

/* SEGUE_E_INVALID for a header that is none and for a body where none belongs,
 * SEGUE_E_CLOSED once the runtime ends. *out is set before any event; events stay the
 * caller's and must last. */
segue_status sgi_fetch_start(sgi_fetcher *fetcher, const sgi_fetch_request *request,
                             const sgi_fetch_events *events, void *user, sgi_fetch **out);
/* In head or bytes: a request turns out to be a stream, and is counted as one. What is
 * brief remains so. */
void sgi_fetch_lasts(sgi_fetch *fetch);
/* While paused no bytes are handed out, and the peer is slowed down; head may come. */
void sgi_fetch_pause(sgi_fetch *fetch, bool paused);
/* The exchange is gone for the caller. Its stream is closed in the next turn: over
 * HTTP/1.1 with its connection, over HTTP/2 alone. */
void sgi_fetch_cancel(sgi_fetch *fetch);
/* From head on, inside the events or out of them: the first header of that name, without
 * blanks around it; p is NULL when there is none. Lives as long as the exchange. */
sgi_str sgi_fetch_header(const sgi_fetch *fetch, const char *name);
/* Appends all headers of that name, with commas between. */
void sgi_fetch_add_headers(const sgi_fetch *fetch, const char *name, sgi_buf *out);

/* In head: for how long the peer asks to be left alone (Retry-After, seconds or a date);
 * 0 = it does not. */
int64_t sgi_fetch_retry_after_ms(const sgi_fetch *fetch);

#endif
