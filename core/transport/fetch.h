/* fetch: one outgoing HTTP exchange. A fetch sends a method, headers and a body, and
 * receives a status with headers, the body in pieces, and the end. The code of fetch
 * knows neither MCP nor SSE.
 *
 * A fetcher is one client endpoint: its URL and the settings of its connections. All
 * fetchers of a runtime share one pool of connections, which ends with the runtime.
 *
 * Except for sgi_fetcher_new, the functions may be called on any thread with the lock
 * held. Events come on the loop thread with the lock held, never inside a function of
 * this header. */
#ifndef SGI_FETCH_H
#define SGI_FETCH_H

#include "transport/address.h"
#include "transport/transport.h"

#define SGI_FETCH_HEAD_MAX ((size_t)64 * 1024) /* maximum bytes of response headers */

typedef struct sgi_fetcher sgi_fetcher;
typedef struct sgi_fetch sgi_fetch;

/* The settings of a fetcher. Zero means the default. Texts are copied. Files have the
 * format PEM and are read when a connection is made, so a missing file makes the fetch
 * fail. */
typedef struct sgi_fetch_settings {
    const char *url; /* the URL of the endpoint, http or https */
    /* path of a file of certificates that are trusted instead of the system's
     * certificates; NULL = the system's */
    const char *ca_file;
    const char *ca_path;
    const char *client_cert;
    /* path of the file with the client's private key; NULL = the key is in client_cert */
    const char *client_key;
    const char *key_password;
    /* the URL of a proxy; NULL = the proxy of the environment; "" = no proxy */
    const char *proxy;
    /* path of a Unix socket that is used instead of the URL's host; NULL = none */
    const char *unix_socket;
    bool insecure;   /* true = TLS certificates are not verified */
    bool http1_only; /* true = HTTP/2 over TLS is not used */
    /* true = libcurl carries plain HTTP, too; see fetch_direct.c */
    bool by_libcurl;
    /* the limit in ms for name look-up, connection and TLS together; default 30 s */
    int64_t connect_timeout_ms;
    /* idle time in s before TCP keep-alive probes are sent; default 30; negative = no
     * probes */
    int64_t keepalive_s;
    /* Maximum number of fetches per lane; further fetches wait; 0 = no limit. A
     * request that becomes a stream moves to the lane of streams, which can then exceed
     * the maximum. Requests and streams together stay within the sum of their two
     * maximums. */
    size_t max_fetches;
} sgi_fetch_settings;

/* Makes a fetcher. Returns SEGUE_E_INVALID for an invalid URL, SEGUE_E_FATAL when libcurl
 * is unusable, and SEGUE_E_CLOSED after the runtime has stopped. `why` receives the
 * details of a failure and may be NULL. The caller does not hold the lock. */
segue_status sgi_fetcher_new(segue_runtime *rt, const sgi_fetch_settings *settings,
                             sgi_fetcher **out, char why[SGI_WHY_SIZE]);
/* Makes a fetcher for other hosts with the settings of `like`, except unix_socket, which
 * leads to one host only. Returns SEGUE_E_NOMEM when out of memory. The caller holds the
 * lock. */
segue_status sgi_fetcher_new_for_other_hosts(const sgi_fetcher *like, sgi_fetcher **out);
/* Returns the address that sent the last response, or NULL when no response has arrived
 * yet. The caller holds the lock. */
const sgi_ip_address *sgi_fetcher_last_address(const sgi_fetcher *fetcher);
/* Frees a fetcher and cancels its running fetches. NULL is ignored. */
void sgi_fetcher_free(sgi_fetcher *fetcher);

typedef enum sgi_fetch_method {
    SGI_FETCH_GET = 0,
    SGI_FETCH_POST,
    SGI_FETCH_DELETE
} sgi_fetch_method;

/* The kind of a fetch. Each lane has its own maximum, because a fetch of one lane
 * can wait for a fetch of another lane: some streams continue only after the client
 * has sent an answer as a BRIEF fetch. */
typedef enum sgi_fetch_lane {
    SGI_FETCH_BRIEF = 0, /* a fetch that ends soon and waits for no other fetch */
    SGI_FETCH_REQUEST,   /* a fetch that may become a stream */
    SGI_FETCH_STREAM,    /* a fetch without a foreseeable end */
    SGI_FETCH_STANDING,  /* a stream that stays open as long as its owner exists */
    SGI_FETCH_LANES      /* number of lanes */
} sgi_fetch_lane;

typedef struct sgi_fetch_header_line {
    sgi_str name;
    sgi_str value;
} sgi_fetch_header_line;

typedef struct sgi_fetch_request {
    sgi_fetch_method method;
    /* the URL of the request (copied); NULL = the URL of the fetcher's settings */
    const char *url;
    const sgi_fetch_header_line *headers; /* the request's headers (copied) */
    size_t header_count;
    /* the body of a POST, or NULL; sgi_fetch_start empties the buffer when it succeeds */
    sgi_buf *body;
    sgi_fetch_lane lane;
    /* true = only connections to public addresses are made, because a peer named the
     * URL */
    bool public_only;
    /* an address that is allowed with public_only although it is not public; a loopback
     * address allows all loopback addresses; NULL = no exception */
    const sgi_ip_address *excepted;
    /* True = the server must not process the request twice. If a connection breaks after
     * a part of the body was sent, the fetch fails and is not sent again. Connections
     * that were idle for over 3 s are not used for this request. */
    bool once;
} sgi_fetch_request;

/* The reason why a fetch failed. "Nothing was sent" in the comments below is certain
 * only for a new connection. A pooled connection that broke without an answer can have
 * delivered the request to the server. */
typedef enum sgi_fetch_fault {
    SGI_FETCH_OK = 0,
    SGI_FETCH_UNRESOLVED, /* the host is unknown; nothing was sent */
    /* no connection to the host could be made, directly or by the proxy; nothing was
     * sent */
    SGI_FETCH_UNREACHABLE,
    /* the TLS certificate, its name or the TLS version is wrong; nothing was sent */
    SGI_FETCH_UNTRUSTED,
    SGI_FETCH_TIMEOUT,    /* no connection was made in time; nothing was sent */
    SGI_FETCH_BROKEN,     /* the connection broke after it was made */
    SGI_FETCH_REDIRECTED, /* the response was a redirect, which is never followed */
    /* the response's headers have more than SGI_FETCH_HEAD_MAX bytes */
    SGI_FETCH_TOO_LARGE,
    SGI_FETCH_MALFORMED, /* the answer is not valid HTTP */
    SGI_FETCH_SHUT_OUT,  /* the address of the server is not public; nothing was sent */
    SGI_FETCH_NOMEM,
    SGI_FETCH_CLOSED /* the runtime is ending */
} sgi_fetch_fault;

typedef struct sgi_fetch_outcome {
    sgi_fetch_fault fault;
    const char *text; /* a text of one line that describes the fault; "" on success */
} sgi_fetch_outcome;

/* The callbacks of a fetch, in this order: `started` and `head` at most once each,
 * `bytes` for each piece of the body, `done` exactly once. The fetch is freed after
 * `done`. After sgi_fetch_cancel no callback is called. Each callback may pause, cancel
 * and start fetches. */
typedef struct sgi_fetch_events {
    /* called when the fetch no longer waits for a slot; may be NULL */
    void (*started)(void *user, sgi_fetch *fetch);
    void (*head)(void *user, sgi_fetch *fetch, int32_t status);
    void (*bytes)(void *user, sgi_fetch *fetch, const char *bytes, size_t len);
    void (*done)(void *user, sgi_fetch *fetch, const sgi_fetch_outcome *outcome);
} sgi_fetch_events;

/* Starts a fetch. Returns SEGUE_E_INVALID for a malformed header and for a body that
 * the method does not allow, and SEGUE_E_CLOSED when the runtime is ending. *out is set
 * before the first event. `events` must stay valid until the fetch ends. */
segue_status sgi_fetch_start(sgi_fetcher *fetcher, const sgi_fetch_request *request,
                             const sgi_fetch_events *events, void *user, sgi_fetch **out);
/* Moves the fetch to the lane of streams, because its response is a stream. To be
 * called in the callbacks `head` and `bytes`. A BRIEF fetch stays BRIEF. */
void sgi_fetch_move_to_stream_lane(sgi_fetch *fetch);
/* Pauses or resumes a fetch. A paused fetch delivers no bytes and slows the peer
 * down. The callback `head` can still come during a pause. */
void sgi_fetch_set_paused(sgi_fetch *fetch, bool paused);
/* Cancels a fetch, which the caller must not use afterwards. The next turn of the
 * loop ends the transfer: with HTTP/1.1 it closes the connection, with HTTP/2 only the
 * stream. */
void sgi_fetch_cancel(sgi_fetch *fetch);
/* Returns the value of the response's first header with this name, without surrounding
 * blanks. The member p is NULL when the response has no such header. May be called from
 * the callback `head` on. The text is valid as long as the fetch exists. */
sgi_str sgi_fetch_get_header(const sgi_fetch *fetch, const char *name);
/* Appends the values of all response headers with this name, separated by commas. */
void sgi_fetch_add_headers(const sgi_fetch *fetch, const char *name, sgi_buf *out);

/* Returns the time in ms that the peer asks the client to wait (Retry-After, as seconds
 * or a date), or 0 when the response has no such header. To be called in the callback
 * `head`. */
int64_t sgi_fetch_retry_after_ms(const sgi_fetch *fetch);

#endif
