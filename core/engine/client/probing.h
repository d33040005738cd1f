/* Looks for a server that could not be reached. The pauses between attempts grow fast,
 * and a server that comes back in a long pause would wait for the end of the pause. So
 * while no server can be reached, the client also tries to connect during the pause:
 * every probe_first_ms at first, and then each time the server has been away for an
 * eighth longer. Such a probe does not count as an attempt. It sends the message itself,
 * which costs nothing while nobody listens.
 *
 * Probes follow the failure of an attempt that could not connect. When a connection broke
 * instead, a single probe looks whether somebody still listens: the system closes the
 * connections of a killed process before its listener, so the first attempt to connect
 * again can still find the listener of a process that is gone. If this probe breaks too,
 * the rest of the pause has no probes. A server that answers, also with an error, or that
 * asks for a pause, gets no probes. */
#ifndef SGI_PROBING_H
#define SGI_PROBING_H

#include "base/base.h"

typedef struct sgi_probing {
    int64_t until_ms; /* monotonic time at which the pause ends; 0 = no pause */
    int64_t next_ms;  /* monotonic time of the next try; 0 = unknown */
} sgi_probing;

/* True while the pause lasts, unless a probe broke in it: an attempt that fails now is a
 * probe. */
static inline bool sgi_probing_lasts(const sgi_probing *probing, int64_t now)
{
    return probing->until_ms > now;
}

/* Begins a pause of `ms` at `now`. has_probes: true after an attempt that could not
 * connect, or whose connection broke. */
static inline void sgi_probing_begin(sgi_probing *probing, int64_t now, int64_t ms,
                                     bool has_probes)
{
    probing->until_ms = has_probes ? now + ms : 0;
}

/* Goes on with the pause after a probe has failed. Returns the time in ms that is left.
 * broke: the probe has found a listener, so no further probes follow in this pause. */
static inline int64_t sgi_probing_go_on(sgi_probing *probing, int64_t now, bool broke)
{
    int64_t left = probing->until_ms - now;
    if (broke)
        probing->until_ms = 0;
    return left;
}

/* Returns the time in ms until the next try, at most `pause_ms`.
 *
 * pause_ms: the time until the next counted attempt. gone_ms: for how long the server
 * could not be reached. clients: how many requests look for the server; together they
 * probe no more often than every probe_each_ms. */
int64_t sgi_probing_ms(int64_t pause_ms, int64_t gone_ms, int32_t clients);

#endif
