/* What happens to an operation that another server runs, or runs by now: its log grows
 * by what the store has, and what was only ours of it is gone. */
#include "engine/log/op.h"
#include "engine/log/op_head.h"

#include "engine/log/following.h"
#include "engine/log/record.h"
#include "engine/serving/budget.h"
#include "engine/serving/resumable.h"
#include "engine/serving/server.h"

segue_status sgi_op_grow(sgi_op *op, struct sgi_entry_list *list)
{
    uint64_t before = op->durable;
    sgi_entry *entry, *next;
    segue_status status = SEGUE_OK;
    SGI_TAILQ_EACH(entry, list, link, next) {
        if (status != SEGUE_OK || entry->seq <= op->durable)
            continue; /* two reads may bring the same */
        status = sgi_op_apply(op, entry);
        if (status != SEGUE_OK)
            continue;
        TAILQ_REMOVE(list, entry, link);
        TAILQ_INSERT_TAIL(&op->tail, entry, link);
        op->tail_bytes += entry->len;
        sgi_budget_hold(op, entry->len);
    }
    if (op->durable > before)
        sgi_op_became_visible(op, before, op->durable);
    return status;
}

void sgi_op_adopt(sgi_op *op, sgi_op *fresh)
{
    uint64_t before = op->durable;
    sgi_watch *watch, *next;
    sgi_entry *entry;
    while ((entry = TAILQ_FIRST(&op->tail))) /* there may be a gap behind it now */
        sgi_op_let_go(op, entry);
    sgi_head_swap(op, fresh);
    if (op->resumable && fresh->resumable)
        sgi_resumable_adopt(op->resumable, fresh->resumable);
    sgi_op_ref(op);
    sgi_op_became_visible(op, before, op->durable);
    for (watch = LIST_FIRST(&op->watches); watch; watch = next) {
        next = LIST_NEXT(watch, link);
        watch->changed(watch, op);
    }
    sgi_op_unref(op);
}

/* Who has it found it in the store: its creation went through, only the answer was
 * lost. */
static void was_created(sgi_op *op)
{
    sgi_record_written(op);
    op->created = true;
    sgi_op_fire(op, SEGUE_OK);
}

/* Nothing of what is not durable was seen, so it never was. */
void sgi_op_fenced(sgi_op *op)
{
    sgi_op_ref(op);
    op->server->counts.fenced++;
    sgi_engine_log(op->engine, SEGUE_LOG_WARNING,
                   "store: another server has taken an operation over");
    if (op->store_broken) {
        sgi_server_op_forget(op); /* its peers were told of an end: the store knows */
        sgi_op_unref(op);
        return;
    }
    sgi_op_drop_pending(op);
    op->releasing = op->deleting = op->doubted = false;
    op->letters_taken = op->letters_told; /* the others are dealt with by who has it */
    op->hold = SGI_HOLD_ELSEWHERE;
    op->stale = true;
    op->torn = false;
    op->behind_hole = 0;
    sgi_server_op_fenced(op);
    sgi_op_wait_lost(op);
    if (op->known) {
        sgi_followed_known(op);
        sgi_resumable_moved(op);
        sgi_followed_look(op);
    }
    if (!op->created)
        was_created(op);
    sgi_op_unref(op);
}
