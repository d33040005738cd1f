/* Waiters: code that waits until a part of an operation is visible. A waiter can wait for
 * a position of the log, for the end, or for a condition of the cluster or the server
 * (is_due). */
#include "engine/log/op.h"
#include "engine/log/op_head.h"

/* True when the wait of this waiter is over. */
static bool is_due(const sgi_op *op, const sgi_waiter *waiter)
{
    if (sgi_op_is_logged(op) && !sgi_op_is_created(op) && !sgi_op_is_broken(op))
        return false;
    if (waiter->is_due)
        return waiter->is_due(op, waiter);
    if (waiter->seq == SGI_WAIT_FINAL)
        return sgi_op_has_ended(op) && op->head.final_seq <= sgi_op_horizon(op);
    return waiter->seq <= sgi_op_horizon(op);
}

static sgi_waiter *first_due(const sgi_op *op, segue_status status)
{
    sgi_waiter *waiter;
    TAILQ_FOREACH(waiter, &op->waiters, link)
        if (status != SEGUE_OK || is_due(op, waiter))
            return waiter;
    return NULL;
}

/* Calls the waiters whose wait is over. After each call the search starts again, because
 * a waiter can remove other waiters. */
void sgi_op_fire_due_waiters(sgi_op *op, segue_status status)
{
    sgi_waiter *waiter;
    while ((waiter = first_due(op, status))) {
        sgi_op_wait_cancel(waiter);
        waiter->fire(waiter, op, status);
    }
}

void sgi_op_wait_until_visible(sgi_op *op, sgi_waiter *waiter, uint64_t seq)
{
    waiter->is_due = NULL;
    waiter->seq = seq;
    sgi_op_wait_until_due(op, waiter);
}

void sgi_op_wait_until_due(sgi_op *op, sgi_waiter *waiter)
{
    if (is_due(op, waiter)) {
        waiter->fire(waiter, op, SEGUE_OK);
        return;
    }
    waiter->op = op;
    TAILQ_INSERT_TAIL(&op->waiters, waiter, link);
}

void sgi_op_wait_cancel(sgi_waiter *waiter)
{
    if (!waiter->op)
        return;
    TAILQ_REMOVE(&waiter->op->waiters, waiter, link);
    waiter->op = NULL;
}

static sgi_waiter *first_in_vain(const sgi_op *op)
{
    sgi_waiter *waiter;
    TAILQ_FOREACH(waiter, &op->waiters, link)
        if (!waiter->is_due && waiter->seq > op->durable && waiter->seq < SGI_WAIT_FINAL)
            return waiter;
    return NULL;
}

void sgi_op_fire_lost_waiters(sgi_op *op, segue_status status)
{
    sgi_waiter *waiter;
    sgi_op_ref(op);
    while ((waiter = first_in_vain(op))) {
        sgi_op_wait_cancel(waiter);
        waiter->fire(waiter, op, status);
    }
    sgi_op_unref(op);
}
