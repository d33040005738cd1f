/* Drops entries from the log before the operation ends: pieces and notes (progress and
 * log messages) that the client of a lasting call has confirmed, notes when the log is
 * full, and void segments that no event stream of a task sends any more. The store is
 * asked to delete the dropped entries. Readers of the log skip the gaps.
 *
 * Some entries are never dropped, because later numbers continue after them: the last
 * entry of the log, and the last segment. If a replacement made the last segment void,
 * the replacement is kept instead. */
#ifndef SGI_DROPPING_H
#define SGI_DROPPING_H

#include "engine/log/op.h"

/* Drops the entries of this kind up to position seq, because no client needs them any
 * more. */
void sgi_op_drop_entries(sgi_op *op, sgi_drop what, uint64_t seq);
/* For the committer. sgi_op_next_drop returns the position up to which the next commit
 * deletes dropped entries; 0 = there is nothing to delete. Entries of an ended operation
 * are not deleted, because its whole log is purged later. sgi_op_drop_entry returns the
 * entry of the write that deletes up to this position; last: the position of the last
 * entry of the log, which stays; seq = 0 in the entry: no write is needed. The committer
 * then reports the outcome by sgi_op_on_drop_written or sgi_op_on_drop_failed. */
uint64_t sgi_op_next_drop(const sgi_op *op, sgi_drop what);
segue_store_entry sgi_op_drop_entry(sgi_drop what, uint64_t upto, uint64_t last);
void sgi_op_on_drop_written(sgi_op *op, sgi_drop what, uint64_t seq);
void sgi_op_on_drop_failed(sgi_op *op);

/* True while the log has all entries from which the result is made. */
bool sgi_op_log_has_whole_result(const sgi_op *op);
/* True when entries may have been dropped from the operation's log in the store, so that
 * a reader has to expect gaps. */
bool sgi_op_log_can_have_gaps(const sgi_op *op);

/* Limits the retained events of this task from now on, by the options of the server. When
 * out of memory, the events are not limited and stay as long as the log. */
void sgi_op_limit_retained_events(sgi_op *op);
void sgi_op_free_retention(sgi_op *op);
/* Counts an event that was appended to the log. */
void sgi_op_count_event(sgi_op *op, const sgi_entry *entry);
/* Returns 1 + the number of the earliest event that can still be sent. */
uint64_t sgi_op_earliest_event(sgi_op *op);

#endif
