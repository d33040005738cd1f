/* The head of an operation: its state as a fold over the log. It changes in one place,
 * for entries that are appended and for entries that come back from the store alike, so a
 * rebuilt operation equals the one that was lost (R-C-1). For op.c; others read through
 * op.h. */
#ifndef SGI_OP_HEAD_H
#define SGI_OP_HEAD_H

#include "engine/log/op.h"

/* Gives the entry the numbers that come next. */
void sgi_head_number(const sgi_op *op, sgi_entry *entry);
/* Moves the head over one entry; false and unchanged when out of memory. */
bool sgi_head_apply(sgi_op *op, const sgi_entry *entry);
/* The entry is visible from now on. */
void sgi_head_show(sgi_op *op, const sgi_entry *entry);
/* Takes back from the head what entries behind `durable` did to it. (Not the checkpoint:
 * it is asked for only when the handler runs again, which it does not after the end.) */
void sgi_head_revert(sgi_op *op);
void sgi_head_free(sgi_op *op);
/* The operation has the head of `fresh`, which is rebuilt from its log, and that one has
 * what is left. Questions stay where they are. */
void sgi_head_swap(sgi_op *op, sgi_op *fresh);

/* ---- what the files of an operation share ---- */

/* So much more of it may be seen: who looks is woken. */
void sgi_op_became_visible(sgi_op *op, uint64_t after, uint64_t upto);
/* Fires those that are due; with a failure, all. */
void sgi_op_fire(sgi_op *op, segue_status status);
/* An entry leaves the tail. */
void sgi_op_let_go(sgi_op *op, sgi_entry *entry);
/* What is not durable never was. */
void sgi_op_drop_pending(sgi_op *op);

#endif
