/* Follows operations that another server on the store runs. Only the owner writes to the
 * log. This server reads the durable part of the log and sends it to clients, like the
 * log of an operation that this server runs. Readers, waiters and watches work as usual:
 * they are called when the store's change feed reports growth.
 *
 *   rebuilt (rebuild.c) --> FOLLOWED --ended--> stays in memory for a while
 *                              |  ^ \--no client uses it for a while--> forgotten
 *        its owner has gone:   v  | a commit of this server was refused
 *                             OWNED
 *
 * A change that a client requests is forwarded to the owner: cluster/forwarding.h. */
#ifndef SGI_FOLLOWING_H
#define SGI_FOLLOWING_H

#include "base/thresholds.h"
#include "engine/cluster/cluster.h"

/* Maximum number of operations in memory that other servers run (followed operations).
 * Above this number, unused operations are forgotten, beginning with the least recently
 * used operation. */
#define SGI_FOLLOWED_MAX SGI_THRESHOLD(followed_max)

/* Begins to follow an operation that another server runs: adds it to the list of followed
 * operations and starts its timer. */
void sgi_followed_add(sgi_op *op);
/* Notes that a client asks now for an operation that another server runs, so that
 * operations for which no client has asked lately are forgotten first. */
void sgi_followed_note_use(sgi_op *op);
/* Reads new entries from the store, for the log of an operation that another server
 * runs. */
void sgi_followed_read_more(sgi_op *op);
/* Calls sgi_followed_read_more for all operations that other servers run and this server
 * follows. */
void sgi_followed_read_all(sgi_cluster *cluster);
/* Stops following an operation. Called when the operation has ended, was forgotten, or
 * was taken over by this server. */
void sgi_followed_end(sgi_op *op);
/* True when the store may have entries of another server that this server has not read:
 * another server runs the operation and its log was not read to the end, or it is in
 * doubt which server owns the operation, or the store does not tell its changes. */
bool sgi_op_may_be_behind(const sgi_op *op);
/* Asks the store not to report growth of this operation any more. */
void sgi_followed_unsubscribe(sgi_cluster *cluster, const uint8_t *id);
/* Makes this server the owner of an operation that another server ran, because the store
 * has given the operation to this server. The new entries of the log are read first; then
 * the operation continues on this server. Until then cluster->recovering counts the
 * operation. */
void sgi_followed_take_over(sgi_op *op);
/* Turns an operation of this server into a followed operation, which another server runs.
 * Called when a commit was refused, because another server has taken over the
 * operation. */
void sgi_op_give_up_to_new_owner(sgi_op *op);

/* Keep the bytes of the operation's head valid while a callback of the application reads
 * them without the lock. sgi_op_pin_head is called before the callback, sgi_op_unpin_head
 * after the callback. Between both calls the head of the operation is not replaced. */
void sgi_op_pin_head(sgi_op *op);
void sgi_op_unpin_head(sgi_op *op);

/* Appends entries that were read from the store to the log of an operation that another
 * server runs. Removes each appended entry from `list`. */
segue_status sgi_followed_append_entries(sgi_op *op, struct sgi_entry_list *list);
/* Moves the head of `fresh` (the state that follows from the log) into the operation.
 * `fresh` is a second copy of the operation that was rebuilt from the same log. */
void sgi_op_take_head_of(sgi_op *op, sgi_op *fresh);

#endif
