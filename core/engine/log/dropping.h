/* Entries that leave the log before their operation does: pieces and notes that a client
 * has confirmed (Z), notes of a log that is full, and segments that are void and no
 * longer shown (E). They are asked of the store to drop; whoever reads the log passes
 * over the gaps that are left.
 *
 * What tells how to go on is never dropped: the last entry, and the last of the segments
 * or the replacement that made it void. */
#ifndef SGI_DROPPING_H
#define SGI_DROPPING_H

#include "engine/log/op.h"

/* Nobody needs such entries up to seq any more. */
void sgi_op_drop(sgi_op *op, sgi_drop what, uint64_t seq);
/* For the keeper. The write that asks the store for it, when the log is durable up to
 * there; seq 0 = there is nothing to ask for. And it was asked for, or could not be. */
segue_store_entry sgi_op_drop_write(const sgi_op *op, sgi_drop what, uint64_t durable);
void sgi_op_drop_written(sgi_op *op, sgi_drop what, uint64_t seq);
void sgi_op_drop_failed(sgi_op *op);

/* Is there still all that the result is made of? */
bool sgi_op_is_whole(const sgi_op *op);
/* The store's log of such an operation may have gaps. */
bool sgi_op_may_have_gaps(const sgi_op *op);

/* It is a task whose events are shown: from here on within the limits of its server.
 * Without memory they are kept as long as the log is. */
void sgi_op_retain(sgi_op *op);
void sgi_op_retain_end(sgi_op *op);
/* An event joined the log. */
void sgi_op_note_event(sgi_op *op, const sgi_entry *entry);
/* Number + 1 of the first that can be had. */
uint64_t sgi_op_earliest_event(sgi_op *op);

#endif
