/* The clock of a request that can be resumed: how long it waits for a client that is
 * away, which its log tells, so that it goes on over a restart and at another server. For
 * resumable.c. */
#ifndef SGI_RESUMABLE_CLOCK_H
#define SGI_RESUMABLE_CLOCK_H

#include "engine/serving/resumable.h"

#define SGI_UNTOLD_WAIT_MS 600000 /* nothing was promised: so long it is kept */

/* Its client is away from now on, or here; neither is written down. */
void sgi_resumable_begin_clock(sgi_resumable *r);
void sgi_resumable_end_clock(sgi_resumable *r);
/* That is written down. */
void sgi_resumable_say(sgi_resumable *r, bool away);
/* It was, and is read. */
void sgi_resumable_note_presence(sgi_resumable *r, const sgi_entry *entry);
/* Nothing more is to be had of it. */
void sgi_resumable_close(sgi_resumable *r, const char *why);
/* Its peer has it no more. */
void sgi_resumable_leave_peer(sgi_resumable *r);

#endif
