/* The head of an operation: its state as a fold over the log. These functions apply and
 * revert entries. They do not distinguish between appended entries and entries from the
 * store, so a rebuilt operation equals the original one (R-C-1). The comment of struct
 * sgi_head in op.h lists the few changes that other files make. */
#ifndef SGI_OP_HEAD_H
#define SGI_OP_HEAD_H

#include "engine/log/op.h"

/* Gives the entry the next numbers of the log. */
void sgi_head_number_entry(const sgi_op *op, sgi_entry *entry);
/* Applies one entry to the head. Returns false, and changes nothing, when out of
 * memory. */
bool sgi_head_apply_entry(sgi_op *op, const sgi_entry *entry);
/* Notes that the entry has become visible. If peers count the entry as a change, its time
 * becomes the time of the last change. */
void sgi_head_note_visible(sgi_op *op, const sgi_entry *entry);
/* Undoes the effect of the entries after `durable`, as far as a failing operation needs:
 * questions, status messages, the end. The checkpoint and the blocks are not restored.
 * Only another run of the handler would use them, and there is none. */
void sgi_head_revert(sgi_op *op);
void sgi_head_free(sgi_op *op);
/* Swaps the heads of the operation and of `fresh`, which was rebuilt from the log.
 * Questions stay at their addresses. */
void sgi_head_swap(sgi_op *op, sgi_op *fresh);

/* ---- shared by the files of an operation ---- */

/* Calls readers and waiters, because more of the log is visible. upto: the last visible
 * position now. after: the last visible position before. */
void sgi_op_became_visible(sgi_op *op, uint64_t after, uint64_t upto);
/* Calls the waiters that are due. If status is not SEGUE_OK, all waiters are due. */
void sgi_op_fire_due(sgi_op *op, segue_status status);
/* Removes an entry from the tail and frees it. */
void sgi_op_tail_remove(sgi_op *op, sgi_entry *entry);
/* Removes the entries that are not durable and could not be written. */
void sgi_op_drop_pending(sgi_op *op);

#endif
