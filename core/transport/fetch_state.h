/* The insides of fetch, for its three files:
 *
 *   fetch.c       fetchers and exchanges as their owners see them; never enters libcurl's
 *                 transfers
 *   fetch_pool.c  one CURLM per runtime on the runtime's loop
 *   fetch_easy.c  one exchange as libcurl sees it: options, callbacks, outcome
 *
 * One rule about locks: libcurl is entered on the loop thread only and without the
 * runtime's lock; its callbacks take it. What is asked for under the lock (a start, a
 * pause, a cancel) is noted in the exchange, which is put on the pool's list of things to
 * do; the pool, a carrier of the runtime, does them in its work step. So libcurl is never
 * entered from one of its own callbacks, and an owner may ask for anything anywhere.
 *
 *   WAITING --its turn, or its end--> QUEUED --work step--> RUNNING --> ENDED
 *
 * Only the loop thread frees an exchange: in the work step when it was cancelled, else
 * after done. Fields are under the lock unless it says "loop". */
#ifndef SGI_FETCH_STATE_H
#define SGI_FETCH_STATE_H

#include <curl/curl.h>
#include <ev.h>

#include "transport/fetch.h"

typedef struct sgi_fetch_pool sgi_fetch_pool;
TAILQ_HEAD(sgi_fetch_list, sgi_fetch);

struct sgi_fetcher {
    sgi_fetch_pool *pool;
    sgi_fetch_settings settings;  /* its texts are the fetcher's own; never changes */
    sgi_address address;          /* of the last response */
    size_t refs;                  /* the owner and each exchange */
    size_t busy[SGI_FETCH_LANES]; /* exchanges that do not wait */
    struct sgi_fetch_list waiting[SGI_FETCH_LANES];
};

typedef enum sgi_fetch_stage {
    SGI_FETCH_WAITING = 0,
    SGI_FETCH_QUEUED,
    SGI_FETCH_RUNNING, /* libcurl has it */
    SGI_FETCH_ENDED    /* done is being called */
} sgi_fetch_stage;

struct sgi_fetch {
    sgi_fetcher *fetcher;
    const sgi_fetch_events *events;
    void *user;
    size_t size; /* of the block, with the request's headers behind the struct */
    sgi_fetch_stage stage;
    bool counted; /* in fetcher->busy */
    bool cancelled;
    bool paused;
    bool held;                    /* libcurl keeps bytes that were refused */
    bool headed;                  /* head was called */
    bool asked;                   /* on the pool's list */
    TAILQ_ENTRY(sgi_fetch) link;  /* of the pool's exchanges */
    TAILQ_ENTRY(sgi_fetch) to_do; /* of those with something to do, or that wait */
    sgi_fetch_method method;      /* never changes, nor do the URL, headers and body */
    const char *url;              /* behind the struct, or the fetcher's */
    struct curl_slist *headers;
    sgi_buf body;
    sgi_fetch_lane lane;
    bool once;        /* never sent again */
    bool public_only; /* never changes, nor does what is excepted */
    sgi_address excepted;
    bool shut_out;         /* loop: an address was not public */
    size_t sent;           /* loop: of the body, when it is sent once */
    sgi_buf head;          /* lines of the response: name, colon, value, CRLF */
    sgi_fetch_fault fault; /* why we ended it ourselves */
    char why[SGI_WHY_SIZE];
    CURL *easy;                 /* loop */
    char text[CURL_ERROR_SIZE]; /* loop: written by libcurl */
};

/* One socket of libcurl's on our loop. */
typedef struct sgi_fetch_watch {
    ev_io io; /* first */
    sgi_fetch_pool *pool;
    LIST_ENTRY(sgi_fetch_watch) link;
} sgi_fetch_watch;

LIST_HEAD(sgi_fetch_watches, sgi_fetch_watch);

struct sgi_fetch_pool {
    sgi_carrier carrier;           /* first; attached while there is something to do */
    struct sgi_fetch_list fetches; /* all that are not gone */
    struct sgi_fetch_list to_do;
    size_t to_do_count;
    size_t fetchers;
    sgi_stop_hook on_stop;
    bool stopping; /* the runtime ends, and what is open may end in good order */
    bool closed;   /* the runtime ends: nothing is taken any more */
    bool orphaned; /* the carrier is gone; the last fetcher frees the memory */
    CURLM *multi;  /* loop, and all that follows; made at first use */
    size_t live;   /* exchanges in multi */
    ev_timer timer;
    struct sgi_fetch_watches watched;
    struct sgi_fetch_watches spare;
    size_t watches; /* of both kinds */
};

/* ---- fetch_pool.c ---- */

/* libcurl is initialised and can do what is needed; any thread. */
bool sgi_fetch_ready(char why[SGI_WHY_SIZE]);
/* Lock held. The runtime's pool with one more fetcher; NULL when out of memory. */
sgi_fetch_pool *sgi_fetch_pool_join(segue_runtime *rt);
void sgi_fetch_pool_leave(sgi_fetch_pool *pool);
/* Lock held. The pool takes the exchange up, or looks at it again, in its next work
 * step. */
void sgi_fetch_pool_add(sgi_fetch_pool *pool, sgi_fetch *fetch);
void sgi_fetch_pool_ask(sgi_fetch_pool *pool, sgi_fetch *fetch);

/* ---- fetch.c ---- */

/* Lock held. The exchange waits for no place any more; nothing when it did not. */
void sgi_fetch_end_wait(sgi_fetch *fetch);
/* Lock held, loop thread. The exchange is off libcurl and off the pool: frees it, and the
 * next one that waits is queued. */
void sgi_fetch_gone(sgi_fetch *fetch);

/* ---- fetch_easy.c ---- */

/* Loop thread, no lock. Makes the handle with all its options. */
CURLcode sgi_fetch_easy_open(sgi_fetch *fetch);
/* Loop thread, no lock. What the end of a transfer means. */
void sgi_fetch_judge(sgi_fetch *fetch, CURLcode result, sgi_fetch_outcome *outcome);

static inline segue_runtime *sgi_fetch_runtime(const sgi_fetch *fetch)
{
    return fetch->fetcher->pool->carrier.runtime;
}

#endif
