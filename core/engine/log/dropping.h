/* Drops entries from the log before the operation ends: pieces and notes that a client
 * has confirmed (lasting calls), notes when the log is full, and void segments that are
 * no longer sent (dialect E). The store is asked to delete them. Readers of the log skip
 * the gaps.
 *
 * Some entries are never dropped, because the numbers continue from them: the last entry,
 * and the last segment or the replacement that made this segment void. */
#ifndef SGI_DROPPING_H
#define SGI_DROPPING_H

#include "engine/log/op.h"

/* Drops the entries of this kind up to seq, because they are no longer needed. */
void sgi_op_drop(sgi_op *op, sgi_drop what, uint64_t seq);
/* For the committer. sgi_op_drop_write returns the write that deletes dropped entries, as
 * far as the log is durable; seq 0 = nothing is to be deleted. The next two functions
 * report whether this write succeeded. */
segue_store_entry sgi_op_drop_write(const sgi_op *op, sgi_drop what, uint64_t durable);
void sgi_op_drop_written(sgi_op *op, sgi_drop what, uint64_t seq);
void sgi_op_drop_failed(sgi_op *op);

/* True while the log has all entries that make up the result. */
bool sgi_op_log_has_result(const sgi_op *op);
/* True when the log of this operation in the store may have gaps. */
bool sgi_op_may_have_gaps(const sgi_op *op);

/* From now on limits how many events of this task are retained, by the options of the
 * server. When out of memory, no such limit applies, and events stay as long as the
 * log. */
void sgi_op_retain(sgi_op *op);
void sgi_op_free_retention(sgi_op *op);
/* Counts an event that was appended to the log. */
void sgi_op_count_event(sgi_op *op, const sgi_entry *entry);
/* Returns 1 + the number of the earliest event that can still be sent. */
uint64_t sgi_op_earliest_event(sgi_op *op);

#endif
