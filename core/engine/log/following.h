/* Operations that another server on the store runs. Its owner alone writes to the log;
 * here it is read, as far as it is durable, and shown to clients as if it were ours: the
 * same readers, waiters and watches, woken by what the store tells.
 *
 *   rebuilt (recovery.c) --> FOLLOWED --ended--> lingers like an own one
 *                              |  ^ \--nobody looks, for a while--> forgotten
 *        its owner has gone:   v  | a commit of ours was fenced
 *                             OWNED
 *
 * What a client wants changed goes to the owner: serving/errands.h. */
#ifndef SGI_FOLLOWING_H
#define SGI_FOLLOWING_H

#include "engine/log/op.h"

/* So many that nobody looks at are followed, those that were asked for last. */
#define SGI_FOLLOWED_MAX 1024

/* It is known from here on, and followed. */
void sgi_followed_known(sgi_op *op);
/* Somebody asked for it. */
void sgi_followed_seen(sgi_op *op);
/* There may be more of its log. */
void sgi_followed_look(sgi_op *op);
/* The same for all. */
void sgi_followed_look_all(segue_server *server);
/* It is followed no more: it has ended, is forgotten, or ours. */
void sgi_followed_end(sgi_op *op);
/* Growth of this operation is not to be news any more. */
void sgi_followed_leave(segue_server *server, const uint8_t *id);
/* The store has made us its owner: what is left of the log is read, then it goes on here.
 * Counts in server->recovering until then. */
void sgi_followed_own(sgi_op *op);

#endif
