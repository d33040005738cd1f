/* The clock of a resumable request limits how long the request waits for a client that is
 * away. The log says since when the client is away, so the clock continues after a
 * restart and at another server. */
#ifndef SGI_RESUMABLE_CLOCK_H
#define SGI_RESUMABLE_CLOCK_H

#include "base/thresholds.h"
#include "engine/dialect/resumable/resumable.h"

/* How long, in ms, a request waits for its client when the client was promised no
 * maximum. */
#define SGI_UNTOLD_WAIT_MS SGI_THRESHOLD(untold_wait_ms)

/* sgi_resumable_begin_clock starts the clock, because the client has left;
 * sgi_resumable_end_clock stops it, because the client is back. Neither appends to the
 * log. */
void sgi_resumable_begin_clock(sgi_resumable *r);
void sgi_resumable_end_clock(sgi_resumable *r);
/* Starts the clock from the beginning, because a client with the right token has asked
 * about the request. */
void sgi_resumable_touch(sgi_resumable *r);
/* Starts the clock after a restart, because no client is attached yet. */
void sgi_resumable_start_clock(sgi_lasting *lasting);
/* True when the client has been away for too long, according to the log. */
bool sgi_resumable_is_over(const sgi_lasting *lasting);
/* Closes the request of an operation that was read from the store, if the operation has
 * ended and its client has not come back in time. */
void sgi_resumable_close_if_over(sgi_lasting *lasting);
/* Appends to the log that the client is away, or is back. */
void sgi_resumable_append_presence(sgi_resumable *r, bool away);
/* Applies a PRESENCE entry that was read from the log. */
void sgi_resumable_note_presence(sgi_resumable *r, const sgi_entry *entry);
/* Closes the request: nothing more is sent for it. why: the reason, for a client that
 * asks. */
void sgi_resumable_close(sgi_resumable *r, const char *why);

#endif
