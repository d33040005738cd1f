/* Who waits for something of an operation to be visible: a position of its log, its end,
 * or what was asked of its owner (serving/errands.h). */
#include "engine/log/op.h"
#include "engine/log/op_head.h"

#include "engine/serving/errands.h"
#include "engine/serving/server.h"

/* Is what the waiter waits for visible? */
static bool is_due(const sgi_op *op, const sgi_waiter *waiter)
{
    if (op->logged && !op->created && !op->store_broken)
        return false;
    if (waiter->seq == SGI_WAIT_ERRAND)
        return !sgi_errands_are_open(op, waiter->errand);
    if (waiter->seq == SGI_WAIT_FINAL)
        return sgi_op_has_ended(op) && op->final_seq <= sgi_op_horizon(op);
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

/* Looked for anew each time: one that fires may end others. */
void sgi_op_fire(sgi_op *op, segue_status status)
{
    sgi_waiter *waiter;
    while ((waiter = first_due(op, status))) {
        sgi_op_wait_end(waiter);
        waiter->fire(waiter, op, status);
    }
}

static void begin(sgi_op *op, sgi_waiter *waiter)
{
    if (is_due(op, waiter)) {
        waiter->fire(waiter, op, SEGUE_OK);
        return;
    }
    waiter->op = op;
    TAILQ_INSERT_TAIL(&op->waiters, waiter, link);
}

void sgi_op_wait(sgi_op *op, sgi_waiter *waiter, uint64_t seq)
{
    waiter->seq = seq;
    begin(op, waiter);
}

void sgi_op_wait_done(sgi_op *op, sgi_waiter *waiter)
{
    bool sent = sgi_op_is_elsewhere(op) || !LIST_EMPTY(&op->errands);
    waiter->seq = sent ? SGI_WAIT_ERRAND : op->next_log - 1;
    waiter->errand = op->server->errand_number;
    begin(op, waiter);
}

void sgi_op_wait_end(sgi_waiter *waiter)
{
    if (!waiter->op)
        return;
    TAILQ_REMOVE(&waiter->op->waiters, waiter, link);
    waiter->op = NULL;
}

static sgi_waiter *first_in_vain(const sgi_op *op, uint64_t errand, uint64_t durable)
{
    sgi_waiter *waiter;
    TAILQ_FOREACH(waiter, &op->waiters, link)
        if (waiter->seq == SGI_WAIT_ERRAND
                ? waiter->errand >= errand
                : waiter->seq > durable && waiter->seq < SGI_WAIT_ERRAND)
            return waiter;
    return NULL;
}

static void fire_in_vain(sgi_op *op, uint64_t errand, uint64_t durable,
                         segue_status status)
{
    sgi_waiter *waiter;
    sgi_op_ref(op);
    while ((waiter = first_in_vain(op, errand, durable))) {
        sgi_op_wait_end(waiter);
        waiter->fire(waiter, op, status);
    }
    sgi_op_unref(op);
}

void sgi_op_wait_failed(sgi_op *op, uint64_t errand, segue_status status)
{
    fire_in_vain(op, errand, SGI_WAIT_ERRAND, status);
}

void sgi_op_wait_lost(sgi_op *op)
{
    fire_in_vain(op, UINT64_MAX, op->durable, SEGUE_E_FENCED);
}
