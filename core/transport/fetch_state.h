/* The private state of fetch, for its three files:
 *
 *   fetch.c       the interface of fetchers and fetches; never runs libcurl's transfers
 *   fetch_pool.c  one CURLM per runtime on the runtime's loop
 *   fetch_easy.c  one fetch from libcurl's side: options, callbacks, outcome
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
 *
 * Only the loop thread frees a fetch: a cancelled fetch in the work step, any
 * other fetch after the callback `done`. The lock protects each member unless the
 * member's comment begins with "loop" (used on the loop thread only). */
#ifndef SGI_FETCH_STATE_H
#define SGI_FETCH_STATE_H

#include <curl/curl.h>
#include <ev.h>

#include "transport/fetch.h"

typedef struct sgi_fetch_pool sgi_fetch_pool;
TAILQ_HEAD(sgi_fetch_list, sgi_fetch);

struct sgi_fetcher {
    sgi_fetch_pool *pool;
    /* the settings with copies of their texts; they never change */
    sgi_fetch_settings settings;
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
    struct curl_slist *headers;
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
    /* loop: number of bytes of the body that were sent; only used if `once` is set */
    size_t sent;
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
};

/* ---- fetch_pool.c ---- */

/* True when libcurl is initialised and has the needed features; otherwise `why` receives
 * the reason. Any thread may call the function. */
bool sgi_fetch_is_possible(char why[SGI_WHY_SIZE]);
/* Adds a fetcher to the runtime's pool, and makes the pool if the runtime has none.
 * Returns NULL when out of memory. The caller holds the lock. */
sgi_fetch_pool *sgi_fetch_pool_join(segue_runtime *rt);
void sgi_fetch_pool_leave(sgi_fetch_pool *pool);
/* sgi_fetch_pool_queue_new adds a new fetch to the pool. sgi_fetch_pool_queue_change
 * queues a fetch that was started, paused or cancelled for the pool's next work step.
 * The caller of both functions holds the lock. */
void sgi_fetch_pool_queue_new(sgi_fetch_pool *pool, sgi_fetch *fetch);
void sgi_fetch_pool_queue_change(sgi_fetch_pool *pool, sgi_fetch *fetch);

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

static inline segue_runtime *sgi_fetch_runtime(const sgi_fetch *fetch)
{
    return fetch->fetcher->pool->carrier.runtime;
}

#endif
