/* The clock of a resumable request limits how long the request waits for a client that is
 * away. The log says when the client left, so the clock continues after a restart and at
 * another server. */
#ifndef SGI_RESUMABLE_CLOCK_H
#define SGI_RESUMABLE_CLOCK_H

#include "base/thresholds.h"
#include "engine/dialect/resumable/resumable.h"

/* The time in ms for which a request waits for its client, when the client was promised
 * no longest wait (maxWait). */
#define SGI_UNTOLD_WAIT_MS SGI_THRESHOLD(untold_wait_ms)

/* sgi_resumable_begin_clock starts the clock, because the client has left.
 * sgi_resumable_end_clock stops the clock, because the client is back. Neither function
 * appends to the log. */
void sgi_resumable_begin_clock(sgi_resumable *r);
void sgi_resumable_end_clock(sgi_resumable *r);
/* Restarts the clock, because a client with the right token has asked about the
 * request. */
void sgi_resumable_restart_clock(sgi_resumable *r);
/* Starts the clock after a restart, because no client is attached yet. */
void sgi_resumable_begin_clock_at_restart(sgi_lasting_call *lasting);
/* True when the client has been away for too long, according to the log. */
bool sgi_resumable_client_is_away_too_long(const sgi_lasting_call *lasting);
/* Closes the request of an operation that was read from the store, if the operation has
 * ended and its client has not come back in time. */
void sgi_resumable_close_if_away_too_long(sgi_lasting_call *lasting);
/* Appends an entry to the log that says whether the client is away. */
void sgi_resumable_append_presence(sgi_resumable *r, bool away);
/* Appends an entry that says that the client is attached, and notes its position in
 * r->attached_at. */
void sgi_resumable_append_arrival(sgi_resumable *r);
/* Applies a PRESENCE entry that was read from the log. */
void sgi_resumable_note_presence(sgi_resumable *r, const sgi_entry *entry);
/* Closes the request: nothing more is sent for it. why: the reason, which a client that
 * asks later gets. */
void sgi_resumable_close(sgi_resumable *r, const char *why);

#endif
