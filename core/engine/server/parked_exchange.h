/* A parked exchange: an exchange of a wire session that no transport carries now. Its
 * events are stored (replay.h) until the client resumes it. Each function that tests a
 * condition returns false for an exchange that a transport carries. */
#ifndef SGI_PARKED_EXCHANGE_H
#define SGI_PARKED_EXCHANGE_H

#include "engine/server/peer.h"

/* True when the exchange gets no more events, because it was answered, or because it
 * closed when memory ran out. */
bool sgi_parked_is_settled(const sgi_peer *peer);
/* True when the exchange is settled, or can be dropped although its answers are not
 * complete (spare): for each answer, the client knows another request that returns the
 * rest, or no client can ask for the operation any more. */
bool sgi_parked_is_dispensable(const sgi_peer *peer);
/* True when the operations of the exchange have ended, and the rest of the answers waits
 * for the client. */
bool sgi_parked_is_complete(const sgi_peer *peer);
/* True when a source still has to write the rest. A source writes only after the client
 * has come back. */
bool sgi_parked_waits_for_client(const sgi_peer *peer);

/* Notes that more of the answers is there for the client from now on, also if no
 * transport carries the exchange. */
void sgi_parked_note_rest(sgi_peer *peer);
/* True while a client that has left is given time to come back for the rest. Always false
 * for a stream that carries no answer. */
bool sgi_parked_is_expected_back(const sgi_peer *peer);

/* Drops stored events if all parked exchanges of the server together store too many
 * bytes. Called when `peer` has stored another event. */
void sgi_parked_drop_excess_events(sgi_peer *peer);
/* The stored events of the exchange no longer count, because a transport carries it
 * again, or because it leaves its session. */
void sgi_parked_uncount(sgi_peer *peer);

#endif
