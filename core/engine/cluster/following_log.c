/* Changes the in-memory log of an operation that another server runs: appends entries
 * that were read from the store, and removes entries that are not in the store. */
#include "engine/cluster/following.h"

#include "engine/log/op_head.h"
#include "engine/log/record.h"

segue_status sgi_followed_append_entries(sgi_op *op, struct sgi_entry_list *list)
{
    uint64_t before = op->durable;
    sgi_entry *entry, *next;
    segue_status status = SEGUE_OK;
    SGI_TAILQ_EACH(entry, list, link, next) {
        if (status != SEGUE_OK || entry->seq <= op->durable)
            /* the log already has this entry, because two reads can return the same
             * entry */
            continue;
        status = sgi_op_apply_stored_entry(op, entry);
        if (status != SEGUE_OK)
            continue;
        TAILQ_REMOVE(list, entry, link);
        TAILQ_INSERT_TAIL(&op->tail, entry, link);
        op->tail_bytes += entry->len;
        sgi_op_hold_bytes(op, entry->len);
    }
    if (op->durable > before)
        sgi_op_on_entries_visible(op, before, op->durable);
    return status;
}

void sgi_op_take_head_of(sgi_op *op, sgi_op *fresh)
{
    uint64_t before = op->durable;
    sgi_op_watch *watch, *next;
    sgi_entry *entry;
    /* the whole old tail is removed, because entries between the old tail and the new
     * head may be missing */
    while ((entry = TAILQ_FIRST(&op->tail)))
        sgi_op_tail_remove(op, entry);
    sgi_op_head_swap(op, fresh);
    sgi_op_cluster(op)->observer->adopted(op, fresh);
    sgi_op_ref(op);
    sgi_op_on_entries_visible(op, before, op->durable);
    for (watch = LIST_FIRST(&op->watches); watch; watch = next) {
        next = LIST_NEXT(watch, link);
        watch->changed(watch, op);
    }
    sgi_op_unref(op);
}

/* Notes that the operation exists in the store, although the store's answer to the
 * creation was lost. Another server owns the operation now, so the creation must have
 * succeeded. */
static void was_created(sgi_op *op)
{
    sgi_op_record_free_written(op);
    sgi_op_set_stored(op, SGI_STORED_YES);
    sgi_op_fire_due_waiters(op, SEGUE_OK);
}

/* Entries that are not durable are removed from the log. No client has seen these
 * entries. */
void sgi_op_give_up_to_new_owner(sgi_op *op)
{
    sgi_cluster *cluster = sgi_op_cluster(op);
    sgi_op_ref(op);
    cluster->counts.fenced++;
    sgi_engine_log(op->engine, SEGUE_LOG_WARNING,
                   "another server has taken over an operation: the handler of this "
                   "server is stopped");
    if (sgi_op_is_broken(op)) {
        /* clients have already received an end that the store does not have, so the
         * operation is forgotten in memory, and later requests read it from the store */
        cluster->observer->forget(op);
        sgi_op_unref(op);
        return;
    }
    sgi_op_drop_unwritten_entries(op);
    op->releasing = op->deleting = false;
    op->doubts.settled = op->doubts.count;
    /* the new owner runs the forwarded commands whose effect is not in the store */
    op->commands_taken = op->commands_taken_stored;
    sgi_op_set_hold(op, SGI_HOLD_ELSEWHERE);
    op->shared->stale = true;
    op->torn = false;
    op->behind_hole = op->tried = 0;
    cluster->observer->fenced(op);
    sgi_op_fire_lost_waiters(op, SEGUE_E_FENCED);
    if (sgi_op_is_known(op)) {
        sgi_followed_add(op);
        cluster->observer->moved(op);
        sgi_followed_read_more(op);
    }
    if (!sgi_op_is_created(op))
        was_created(op);
    sgi_op_unref(op);
}
