/* The tries of one kind of exchange of a request: how often it failed in a row, and when
 * it goes again. Each kind counts by itself, for a server may do the one well and fail at
 * the other: tasks/get is answered while each tasks/update is refused, or while each
 * tasks/stream breaks. The pauses grow from nothing to SGI_BACKOFF_MOST_MS. The options
 * of the session bound the tries: max_reconnects in a row, reconnect_timeout_ms without a
 * server. */
#ifndef SGI_TRIES_H
#define SGI_TRIES_H

#include "engine/asking/emitter.h"

#define SGI_BACKOFF_FIRST_MS 250
#define SGI_BACKOFF_MOST_MS 30000

typedef struct sgi_tries {
    segue_request *request; /* not counted: the request has the tries */
    const char *method;     /* the exchange, as messages name it */
    sgi_timer timer;        /* the next try, or the next poll */
    int32_t failures;       /* in a row */
    int64_t lost_ms;        /* time without a server: pauses and failed attempts */
    int64_t tried_ms;       /* when the last attempt began or begins; 0 = none */
} sgi_tries;

void sgi_tries_init(sgi_tries *tries, segue_request *request, const char *method);
/* The timer does not fire any more. */
void sgi_tries_stop(sgi_tries *tries);

/* Nothing is sent before the timer. */
static inline bool sgi_tries_wait(const sgi_tries *tries)
{
    return tries->timer.slot != 0;
}

/* The server did something: the failures before it are forgotten. */
static inline void sgi_tries_good(sgi_tries *tries)
{
    tries->failures = 0;
    tries->lost_ms = tries->tried_ms = 0;
}

/* A user took so long to decide: that was no time without a server. */
static inline void sgi_tries_pass(sgi_tries *tries, int64_t ms)
{
    if (tries->tried_ms)
        tries->tried_ms += ms;
}

/* sgi_request_go, about so much later. */
void sgi_tries_later(sgi_tries *tries, int64_t ms);
/* After a failure that does not end the request: the first try goes at once, the others
 * ever later (R-2557-63). */
void sgi_tries_back_off(sgi_tries *tries, int64_t at_least_ms);
/* An exchange was lost or refused: it is tried again if that is of use, else the request
 * ends. While the session is not open, whatever is due waits for it. */
void sgi_tries_cut_off(sgi_tries *tries, const sgi_outcome *outcome);
/* The same for an exchange that does no harm when it is sent twice. An error, no answer,
 * an answer that is none, and a status of HTTP that may pass are tried again as well. */
void sgi_tries_failed(sgi_tries *tries, const sgi_outcome *outcome);

#endif
