/* The head of an operation: its state as a fold over the log. These functions apply and
 * revert entries. Appended entries and entries from the store are applied in the same
 * way, so a rebuilt operation equals the original operation (R-C-1). The comment of
 * struct sgi_op_head in op.h lists the few changes that other files make. */
#ifndef SGI_OP_HEAD_H
#define SGI_OP_HEAD_H

#include "engine/log/op.h"

/* Gives the entry its numbers: the next position, segment number and event number. */
void sgi_op_head_number_entry(const sgi_op *op, sgi_entry *entry);
/* Makes op->head.result, if the operation does not have it. Called before the first entry
 * of a result is applied, and before an entry is dropped. Returns false when out of
 * memory. */
bool sgi_op_head_make_result(sgi_op *op);
/* Returns the index of a segment's block in the list of blocks. Sets *block to the
 * block. */
uint64_t sgi_op_head_index_of_block(const sgi_op *op, const sgi_entry *entry,
                                    sgi_str *block);
/* Applies one entry to the head of the operation. Returns false and changes nothing when
 * out of memory. */
bool sgi_op_head_apply_entry(sgi_op *op, const sgi_entry *entry);
/* Notes that the entry has become visible. If the entry is a change for peers, its time
 * becomes the time of the last change. */
void sgi_op_head_note_visible(sgi_op *op, const sgi_entry *entry);
/* Undoes the effect of the entries after `durable` as far as the failure of the operation
 * needs this: questions, status messages, the end, the change into a task. The checkpoint
 * and the blocks are not restored, because only another run of the handler would use
 * them. */
void sgi_op_head_revert(sgi_op *op);
/* Frees the questions that `sgi_op_head_revert` has removed from the log. Called when
 * their handlers have the outcome, before the handler runs again. */
void sgi_op_head_free_reverted_questions(sgi_op *op);
void sgi_op_head_free(sgi_op *op);
/* Swaps the heads (states) of the operation and of `fresh`, which was rebuilt from the
 * log. The sgi_op_question of each question stays at its address. */
void sgi_op_head_swap(sgi_op *op, sgi_op *fresh);

/* ---- shared by the files of an operation ---- */

/* Calls readers and waiters, because more of the log is visible. after: the last visible
 * position before. upto: the last visible position now. */
void sgi_op_on_entries_visible(sgi_op *op, uint64_t after, uint64_t upto);
/* Calls the waiters whose wait is over. If status is not SEGUE_OK, all waiters are
 * called. */
void sgi_op_fire_due_waiters(sgi_op *op, segue_status status);
/* Removes an entry from the tail and frees it. */
void sgi_op_tail_remove(sgi_op *op, sgi_entry *entry);
/* Removes the entries that are not durable, because the store could not write them. */
void sgi_op_drop_unwritten_entries(sgi_op *op);

#endif
