/* All wire sessions of a server (wire_session.h). */
#ifndef SGI_WIRE_SESSIONS_H
#define SGI_WIRE_SESSIONS_H

#include "base/map.h"

#include <sys/queue.h>

typedef struct sgi_wire_sessions {
    sgi_map by_id;
    /* all sessions; the least recently used session is first */
    TAILQ_HEAD(, sgi_wire_session) by_use;
    /* number of bytes of stored events in exchanges that no transport carries (parked
     * exchanges) */
    size_t parked_bytes;
    size_t max_parked; /* limit of parked_bytes */
} sgi_wire_sessions;

#endif
