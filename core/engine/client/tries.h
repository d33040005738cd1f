/* Counts the tries of one kind of exchange of a request: how often the exchange has
 * failed in a row, and when it is tried again. Each kind has its own count, because a
 * server may answer one kind and refuse another. For example, tasks/get may succeed while
 * each tasks/update is refused, or while each tasks/stream breaks. The pauses grow from 0
 * to SGI_BACKOFF_MOST_MS. While the server cannot be reached, probes may end a pause
 * early (probing.h); they are not counted. The options of the session limit the tries:
 * max_reconnects in a row, and reconnect_timeout_ms without a server. */
#ifndef SGI_TRIES_H
#define SGI_TRIES_H

#include "base/thresholds.h"
#include "engine/client/emitter.h"
#include "engine/client/probing.h"

#define SGI_BACKOFF_FIRST_MS SGI_THRESHOLD(backoff_first_ms)
#define SGI_BACKOFF_MOST_MS SGI_THRESHOLD(backoff_most_ms)

typedef struct sgi_tries {
    /* a pointer without a reference, because the request contains this struct */
    segue_request *request;
    sgi_engine *engine;
    const char *method; /* method of the exchange, used in messages */
    sgi_timer timer;    /* fires at the next attempt or the next poll */
    int32_t failures;   /* number of failures in a row */
    /* time without a server in ms: the sum of pauses and failed attempts */
    int64_t lost_ms;
    /* monotonic time at which the last attempt began, or at which the next attempt will
     * begin; 0 = no attempt was counted */
    int64_t tried_ms;
    /* the last counted pause, and the probes in it */
    sgi_probing probing;
} sgi_tries;

void sgi_tries_init(sgi_tries *tries, segue_request *request, const char *method);

/* Stops the timer. */
static inline void sgi_tries_stop(sgi_tries *tries)
{
    if (tries->engine)
        sgi_engine_clear_timer(tries->engine, &tries->timer);
}

/* True while the timer runs. Nothing is sent before the timer fires. */
static inline bool sgi_tries_is_waiting(const sgi_tries *tries)
{
    return tries->timer.slot != 0;
}

/* Resets the count of failures, because the exchange succeeded. */
static inline void sgi_tries_reset(sgi_tries *tries)
{
    tries->failures = 0;
    tries->lost_ms = tries->tried_ms = 0;
    tries->probing.until_ms = 0;
}

/* Subtracts the time in ms that a user needed to decide about an access token. This time
 * does not count as time without a server. */
static inline void sgi_tries_exclude_time(sgi_tries *tries, int64_t ms)
{
    if (tries->tried_ms)
        tries->tried_ms += ms;
}

/* Returns the pause in ms that the server's error asks for; 0 = no pause. */
int64_t sgi_error_retry_after_ms(sgi_json error);

/* Starts the timer, which calls sgi_request_send_due after about `ms`. */
void sgi_tries_set_timer(sgi_tries *tries, int64_t ms);
/* Starts the pause after a failure that does not end the request. The first pause is 0,
 * and later pauses grow (R-2557-63). at_least_ms: the shortest allowed pause. */
void sgi_tries_back_off(sgi_tries *tries, int64_t at_least_ms);
/* Like sgi_tries_back_off, after an exchange that was lost: while the server cannot be
 * reached, probes may end the pause early (probing.h). sgi_tries_was_probe returns
 * whether the lost exchange was a probe, which is not counted. */
void sgi_tries_back_off_lost(sgi_tries *tries, const sgi_outcome *outcome);
bool sgi_tries_was_probe(const sgi_tries *tries, const sgi_outcome *outcome);
/* Handles an exchange that was lost or that the server refused: tries the exchange again
 * if that can help, otherwise ends the request. While the session is not open, the next
 * try waits until the session opens. */
void sgi_tries_retry_lost(sgi_tries *tries, const sgi_outcome *outcome);
/* Writes the error text of `what` whose last of several attempts in a row has failed.
 * why: the reason of the last failure. */
#define SGI_ROW_MAX (SGI_WHY_MAX + 128)
void sgi_explain_row(const segue_session *session, const char *what, int32_t times,
                     const char *why, char text[SGI_ROW_MAX]);
/* Like sgi_tries_retry_lost, for an exchange that may safely be sent twice. Such an
 * exchange is also tried again after an error, after a missing or invalid answer, and
 * after a temporary HTTP status. */
void sgi_tries_retry_idempotent(sgi_tries *tries, const sgi_outcome *outcome);

#endif
