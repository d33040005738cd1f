/* The private state of fetch, for its files:
 *
 *   fetch.c         the interface of fetchers and fetches; never runs transfers
 *   fetch_request.c the request of a fetch
 *   fetch_pool.c    the fetches of a runtime, from start to end
 *   fetch_multi.c   libcurl's CURLM on the runtime's loop
 *   fetch_easy.c    one fetch from libcurl's side: options, callbacks, outcome
 *   fetch_direct.c  the fetches over plain HTTP, for which libcurl only connects
 *   fetch_head.c    the head of a response
 *
 * The rule about the lock: libcurl is called only on the loop thread and without the
 * runtime's lock; libcurl's callbacks take the lock. A start, a pause or a cancel that is
 * requested under the lock is recorded in the fetch, and the fetch joins the pool's
 * to_do list. The pool handles the list in its work step, which the loop runs as it runs
 * the work of a transport. Therefore libcurl is never called from one of its own
 * callbacks, and the owner of a fetch can request a start, a pause or a cancel
 * anywhere.
 *
 *   WAITING --free slot, or cancelled--> QUEUED --work step--> RUNNING --> ENDED
 *                                          ^--dead idle connection--'
 *
 * Only the loop thread frees a fetch: a cancelled fetch in the work step, any
 * other fetch after the callback `done`. The lock protects each member unless the
 * member's comment begins with "loop" (used on the loop thread only). */
#ifndef SGI_FETCH_STATE_H
#define SGI_FETCH_STATE_H

#include <ev.h>

#include "transport/fetch.h"
#include "transport/fetch_library.h"
#include "wire/http1_response.h"

typedef struct sgi_fetch_pool sgi_fetch_pool;
typedef struct sgi_fetch_direct sgi_fetch_direct;
TAILQ_HEAD(sgi_fetch_list, sgi_fetch);

struct sgi_fetcher {
    sgi_fetch_pool *pool;
    /* the settings with copies of their texts; they never change */
    sgi_fetch_settings settings;
    /* Where the direct fetches go. target.p is NULL = libcurl carries all fetches. The
     * members never change. */
    sgi_str target;    /* path and query, as a view of settings.url */
    sgi_str authority; /* value of the header Host, as a view of settings.url */
    /* the address that sent the last response; see sgi_fetcher_last_address */
    sgi_ip_address address;
    /* number of references: the owner of the fetcher has one, and each fetch has
     * one */
    size_t refs;
    /* for each lane: the number of fetches past the stage WAITING */
    size_t busy[SGI_FETCH_LANES];
    struct sgi_fetch_list waiting[SGI_FETCH_LANES];
};

typedef enum sgi_fetch_stage {
    SGI_FETCH_WAITING = 0,
    SGI_FETCH_QUEUED,
    SGI_FETCH_RUNNING, /* libcurl runs the fetch */
    SGI_FETCH_ENDED    /* the callback `done` is running */
} sgi_fetch_stage;

struct sgi_fetch {
    sgi_fetcher *fetcher;
    const sgi_fetch_events *events;
    void *user;
    size_t size; /* size of the block of memory that holds this struct and the
                  * request's headers */
    sgi_fetch_stage stage;
    bool counted; /* true = the fetch is counted in fetcher->busy */
    bool cancelled;
    bool paused;
    /* true = libcurl keeps bytes that on_bytes refused because of a pause */
    bool held;
    bool headed;                 /* true = the callback `head` was called */
    bool asked;                  /* true = the fetch is in the pool's to_do list */
    TAILQ_ENTRY(sgi_fetch) link; /* entry in the pool's list of fetches */
    /* entry in the pool's to_do list, or in the fetcher's list of waiting fetches */
    TAILQ_ENTRY(sgi_fetch) to_do;
    /* the method, the URL, the headers and the body never change */
    sgi_fetch_method method;
    /* the URL, as a text in this block of memory or of the fetcher's settings */
    const char *url;
    /* the request's headers for libcurl; unused if the fetch is direct */
    struct curl_slist *headers;
    /* the request's head as a text, if the fetch is direct */
    sgi_buf request_head;
    sgi_buf body;
    sgi_fetch_lane lane;
    /* true = the server must not process the request twice (see sgi_fetch_request) */
    bool once;
    /* true = only public addresses are allowed, and `excepted`; both members never
     * change */
    bool public_only;
    sgi_ip_address excepted;
    /* loop: true = a connection was refused because its address is not public */
    bool shut_out;
    /* loop: number of bytes of the body that libcurl has sent; only used if `once` is
     * set */
    size_t sent;
    bool is_direct; /* true = libcurl only connects; never changes */
    /* loop: true = an idle connection turned out to be dead, so the fetch needs a new
     * one */
    bool needs_new;
    /* loop: the connection of a direct fetch, once there is one */
    sgi_fetch_direct *direct;
    /* the lines of the response's head: name, colon, value, CR LF */
    sgi_buf head;
    /* the fault, if this code and not libcurl has ended the transfer */
    sgi_fetch_fault fault;
    char why[SGI_WHY_SIZE];
    CURL *easy;                 /* loop: libcurl's handle */
    char text[CURL_ERROR_SIZE]; /* loop: the error text of libcurl */
};

/* One of libcurl's sockets, watched by the runtime's loop. */
typedef struct sgi_fetch_watch {
    ev_io io; /* the first member */
    sgi_fetch_pool *pool;
    LIST_ENTRY(sgi_fetch_watch) link;
} sgi_fetch_watch;

LIST_HEAD(sgi_fetch_watches, sgi_fetch_watch);

/* One connection for direct fetches; used on the loop thread only. */
struct sgi_fetch_direct {
    ev_io io;
    sgi_fetch_pool *pool;
    sgi_fetch *fetch; /* NULL = the connection is idle */
    sgi_ip_address address;
    int64_t idle_since_ms;
    bool is_reused; /* true = the connection has carried an earlier fetch */
    bool is_torn;   /* true = the request could not be sent completely */
    int fault;      /* the errno of the failure, if is_torn */
    size_t sent;    /* number of bytes of head and body that were sent */
    sgi_http1_response reader;
    sgi_buf kept;              /* bytes that came while the fetch was paused */
    sgi_str authority, socket; /* what the connection leads to, as views of this block */
    size_t size;
    TAILQ_ENTRY(sgi_fetch_direct) link; /* entry in the pool's list of idle ones */
};

TAILQ_HEAD(sgi_fetch_directs, sgi_fetch_direct);

struct sgi_fetch_pool {
    /* the first member: the pool as the loop sees it; attached while there are
     * fetches */
    sgi_carrier carrier;
    struct sgi_fetch_list fetches; /* all fetches that are not freed */
    struct sgi_fetch_list to_do;
    size_t to_do_count;
    size_t fetchers;
    sgi_stop_hook on_stop;
    bool stopping; /* true = the runtime is ending; running fetches can finish */
    bool closed;   /* true = the runtime is ending; no fetch is accepted any more */
    /* true = the runtime has destroyed the pool, and the last fetcher frees the memory */
    bool orphaned;
    /* loop: libcurl's pool, made at first use; the members from `multi` on are "loop"
     * members */
    CURLM *multi;
    size_t live; /* number of fetches that libcurl runs */
    ev_timer timer;
    struct sgi_fetch_watches watched;
    struct sgi_fetch_watches spare;
    size_t watches; /* number of watches in `watched` and `spare` together */
    struct sgi_fetch_directs idle; /* the idle direct connections, the latest first */
    size_t idle_count;
    curl_socket_t adopted; /* the socket that libcurl has to leave open; -1 = none */
};

/* ---- fetch_pool.c ---- */

/* Adds a fetcher to the runtime's pool, and makes the pool if the runtime has none.
 * Returns NULL when out of memory. The caller holds the lock. */
sgi_fetch_pool *sgi_fetch_pool_join(segue_runtime *rt);
void sgi_fetch_pool_leave(sgi_fetch_pool *pool);
/* sgi_fetch_pool_queue_new adds a new fetch to the pool. sgi_fetch_pool_queue_change
 * queues a fetch that was started, paused or cancelled for the pool's next work step.
 * The caller of both functions holds the lock. */
void sgi_fetch_pool_queue_new(sgi_fetch_pool *pool, sgi_fetch *fetch);
void sgi_fetch_pool_queue_change(sgi_fetch_pool *pool, sgi_fetch *fetch);

/* Ends the fetch and calls the owner's callback `done`. outcome: NULL = the fetch was
 * cancelled, and `done` is not called. The caller holds the lock. */
void sgi_fetch_pool_end(sgi_fetch_pool *pool, sgi_fetch *fetch,
                        const sgi_fetch_outcome *outcome);

/* Lets libcurl handle an event of a socket, or the end of libcurl's timer. Only the loop
 * thread calls the function, without the lock. */
void sgi_fetch_pool_drive(sgi_fetch_pool *pool, curl_socket_t fd, int what);

/* ---- fetch_multi.c ---- */

/* True when libcurl is initialised and has the needed features; otherwise `why` receives
 * the reason. Any thread may call the function. */
bool sgi_fetch_is_possible(char why[SGI_WHY_SIZE]);
/* Only the loop thread calls the following functions, without the lock; init is called
 * before the pool is used. */
void sgi_fetch_multi_init(sgi_fetch_pool *pool);
/* Makes the CURLM if there is none. Returns false when out of memory. */
bool sgi_fetch_multi_open(sgi_fetch_pool *pool);
void sgi_fetch_multi_close(sgi_fetch_pool *pool);
/* Allocates watchers until there are `count`. Returns false when out of memory. */
bool sgi_fetch_multi_reserve(sgi_fetch_pool *pool, size_t count);
/* Frees spare watchers until there are `keep`. */
void sgi_fetch_multi_trim(sgi_fetch_pool *pool, size_t keep);
/* Sets libcurl's maximum number of connections, which counts used ones, too. */
void sgi_fetch_multi_allow_idle(const sgi_fetch_pool *pool);

/* ---- fetch_request.c ---- */

/* True when the request can be sent: no header can break a line, and the method allows
 * the body. */
bool sgi_fetch_request_is_valid(const sgi_fetch_request *request);
/* Makes a fetch, which takes over the request's body. Returns NULL when out of memory. */
sgi_fetch *sgi_fetch_make(const sgi_fetcher *fetcher, const sgi_fetch_request *request);
/* Sets where the direct fetches of a new fetcher go. */
void sgi_fetcher_find_route(sgi_fetcher *fetcher);

/* ---- fetch.c ---- */

/* Removes the fetch from its fetcher's waiting list, if the fetch is in that list.
 * The caller holds the lock. */
void sgi_fetch_end_wait(sgi_fetch *fetch);
/* Frees a fetch that was removed from libcurl and from the pool, and queues the next
 * waiting fetch. Only the loop thread calls the function, with the lock held. */
void sgi_fetch_end(sgi_fetch *fetch);

/* ---- fetch_easy.c ---- */

/* Makes libcurl's handle of the fetch with all its options. Only the loop thread calls
 * the function, without the lock. */
CURLcode sgi_fetch_easy_open(sgi_fetch *fetch);
/* Turns libcurl's result into an outcome. Only the loop thread calls the function,
 * without the lock. */
void sgi_fetch_read_outcome(sgi_fetch *fetch, CURLcode result,
                            sgi_fetch_outcome *outcome);

/* ---- fetch_head.c ---- */

/* Takes a complete head, of which fetch->head has the lines. address: the peer's, NULL =
 * unknown. Returns false when the transfer has to end: the response is a redirect, and
 * `fault` and `why` are set, or the owner has cancelled the fetch. The caller holds the
 * lock. */
bool sgi_fetch_take_head(sgi_fetch *fetch, int32_t status, const sgi_ip_address *address);

/* ---- fetch_direct.c ---- */

/* Only the loop thread calls these functions. The caller holds the lock. */

/* Sends the fetch over an idle connection. Returns false when there is none. */
bool sgi_fetch_direct_reuse(sgi_fetch *fetch);
/* Sends the fetch over a new connection, which the function takes over. Returns false
 * when out of memory; the socket is then closed. */
bool sgi_fetch_direct_begin(sgi_fetch *fetch, int fd);
/* Delivers the bytes that were kept during a pause, and reads on. */
void sgi_fetch_direct_resume(sgi_fetch *fetch);
/* Closes a connection, also one in use. */
void sgi_fetch_direct_close(sgi_fetch_direct *direct);
void sgi_fetch_direct_close_idle(sgi_fetch_pool *pool, size_t keep);
/* The callback of CURLOPT_CLOSESOCKETFUNCTION; user: the pool. */
int sgi_fetch_direct_on_close(void *user, curl_socket_t fd);

static inline segue_runtime *sgi_fetch_runtime(const sgi_fetch *fetch)
{
    return fetch->fetcher->pool->carrier.runtime;
}

#endif
