/* Operations that another server on the store runs. Only their owner writes to the log.
 * This server reads the log as far as it is durable, and sends it to clients like the log
 * of an own operation. A followed operation has the same readers, waiters and watches as
 * an own one. They are called when the store's change feed reports growth.
 *
 *   rebuilt (recovery.c) --> FOLLOWED --ended--> stays in memory for a while
 *                              |  ^ \--no client uses it for a while--> forgotten
 *        its owner has gone:   v  | a commit of this server was refused
 *                             OWNED
 *
 * A change that a client wants goes to the owner: cluster/forwarding.h. */
#ifndef SGI_FOLLOWING_H
#define SGI_FOLLOWING_H

#include "engine/cluster/cluster.h"

/* The largest number of followed operations that no client uses. The most recently used
 * ones stay. */
#define SGI_FOLLOWED_MAX 1024

/* Puts an operation into the server's maps and begins to follow it. */
void sgi_followed_begin(sgi_op *op);
/* Notes that a client has asked for a followed operation, so that it stays in memory. */
void sgi_followed_note_use(sgi_op *op);
/* Reads more of the log of a followed operation, which may have grown. */
void sgi_followed_read_more(sgi_op *op);
/* Calls sgi_followed_read_more for all followed operations. */
void sgi_followed_read_all(sgi_cluster *cluster);
/* Stops following an operation, because it has ended, was forgotten, or was taken over by
 * this server. */
void sgi_followed_end(sgi_op *op);
/* Asks the store not to report growth of this operation any more. */
void sgi_followed_unsubscribe(sgi_cluster *cluster, const uint8_t *id);
/* Makes this server the owner of a followed operation, because the store has given the
 * operation to this server. The rest of the log is read, then the operation continues
 * here. Until it continues, it counts in cluster->recovering. */
void sgi_followed_take_over(sgi_op *op);
/* Gives up an operation of this server, because a commit was refused: another server has
 * taken the operation over. From now on this server follows the operation. */
void sgi_op_give_up_to_new_owner(sgi_op *op);

/* sgi_op_lend is called before a callback of the application that reads bytes of the
 * operation's head, sgi_op_give_back after this callback. The callback runs without the
 * lock, so the head is not replaced until it returns. */
void sgi_op_lend(sgi_op *op);
void sgi_op_give_back(sgi_op *op);

/* Appends entries that were read from the store to the log of a followed operation.
 * Appended entries leave the list. */
segue_status sgi_op_append_followed(sgi_op *op, struct sgi_entry_list *list);
/* Moves the head of `fresh` into the operation. `fresh` is a second copy of the
 * operation, made from the same log. */
void sgi_op_take_head_of(sgi_op *op, sgi_op *fresh);

#endif
