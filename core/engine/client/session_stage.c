/* The stages of a session and the allowed moves between them. A move that is not in the
 * table is a defect of the caller, and stops a debug build. */
#include "engine/client/session.h"

#include <assert.h>

#define TO(stage) (1u << (stage))

/* The end of a connection: the session is lost and may connect again, or it is closed. */
#define ENDS (TO(SGI_STAGE_LOST) | TO(SGI_STAGE_CLOSED))
/* A connection is up: the handshake begins, or the session is open because it needs no
 * handshake. */
#define BEGINS (TO(SGI_STAGE_PROBING) | TO(SGI_STAGE_INITIALIZING) | TO(SGI_STAGE_OPEN))

/* PROBING -> PROBING: server/discover is sent once more.
 * PROBING -> INITIALIZING: the server did not answer server/discover, or the server knows
 * only versions that begin with `initialize`.
 * INITIALIZING -> PROBING: the server refused initialize, so the answer to
 * server/discover decides.
 * INITIALIZING -> INITIALIZING: initialize is sent once more, with another version.
 * LOST -> CLOSED: the attempts are used up.
 * CLOSED -> TOLD: on_closed is called. */
static const unsigned moves[] = {
    [SGI_STAGE_NEW] = BEGINS | ENDS,
    [SGI_STAGE_PROBING] = BEGINS | ENDS,
    [SGI_STAGE_INITIALIZING] = BEGINS | ENDS,
    [SGI_STAGE_OPEN] = ENDS,
    [SGI_STAGE_LOST] = BEGINS | TO(SGI_STAGE_CLOSED),
    [SGI_STAGE_CLOSED] = TO(SGI_STAGE_TOLD),
    [SGI_STAGE_TOLD] = 0,
};

void sgi_session_set_stage(segue_session *session, sgi_stage to)
{
    assert(moves[session->stage] & TO(to));
    (void)moves;
    session->stage = to;
}
