/* `drop_upto` is the position up to which entries are dropped. `gone_upto` is the
 * position up to which the store has deleted them. Readers skip entries up to `drop_upto`
 * at once, because the commit with the deletion can run while they read. */
#include "engine/log/dropping.h"

#include "engine/log/op_head.h"

static const int32_t kinds[SGI_DROPS] = {SGI_ENTRY_SEGMENT, SGI_ENTRY_NOTIFY,
                                         SGI_ENTRY_PRESENCE};

void sgi_op_drop_entries(sgi_op *op, sgi_drop what, uint64_t seq)
{
    if (seq <= op->head.result->drop_upto[what] || !sgi_op_is_logged(op))
        return;
    if (!sgi_op_head_make_result(op))
        return; /* without memory the entries stay until more are dropped */
    op->head.result->drop_upto[what] = seq;
    if (!sgi_op_has_ended(op))
        sgi_committer_mark_dirty(op->committer, op);
}

/* A store with leases may have applied a commit that failed. The commit is then repeated,
 * and the store must still have the entries that the commit appends. So a commit deletes
 * only entries of earlier commits, and a later commit deletes the others. */
uint64_t sgi_op_next_drop(const sgi_op *op, sgi_drop what)
{
    const sgi_op_result *result = op->head.result;
    bool repeats = op->committer->leased && op->durable < result->drop_upto[what];
    uint64_t upto = repeats ? op->durable : result->drop_upto[what];
    bool stays = sgi_op_has_ended(op) || sgi_op_is_broken(op);
    return stays || upto <= result->gone_upto[what] ? 0 : upto;
}

segue_store_entry sgi_op_drop_entry(sgi_drop what, uint64_t upto, uint64_t last)
{
    return (segue_store_entry){.kind = kinds[what],
                               .seq = !upto || upto < last ? upto : last - 1};
}

void sgi_op_on_drop_written(sgi_op *op, sgi_drop what, uint64_t seq)
{
    if (seq > op->head.result->gone_upto[what])
        op->head.result->gone_upto[what] = seq;
}

/* Handles a failed deletion. The deletion is not repeated, because a later deletion
 * includes the same entries. */
void sgi_op_on_drop_failed(sgi_op *op)
{
    sgi_op_result *result = op->head.result;
    if (result != &sgi_op_no_result)
        memcpy(result->gone_upto, result->drop_upto, sizeof result->gone_upto);
}

bool sgi_op_log_has_whole_result(const sgi_op *op)
{
    return op->head.result->drop_upto[SGI_DROP_SEGMENTS] <= op->head.result->voided_seq;
}

bool sgi_op_log_can_have_gaps(const sgi_op *op)
{
    return op->drops || op->retention;
}

/* ---- events ---- */

void sgi_op_limit_retained_events(sgi_op *op)
{
    const sgi_retention_limits *limits = &op->committer->retention;
    const sgi_entry *entry;
    if (op->retention || !sgi_retention_is_bounded(limits))
        return;
    op->retention = sgi_zalloc(sgi_engine_mem(op->engine), sizeof *op->retention);
    if (!op->retention)
        return;
    op->retention->limits = *limits;
    op->retention->earliest = 1;
    TAILQ_FOREACH(entry, &op->tail, link)
        if (entry->event)
            sgi_retention_count_event(op->retention, entry);
}

void sgi_op_free_retention(sgi_op *op)
{
    sgi_free(sgi_engine_mem(op->engine), op->retention, sizeof *op->retention);
    op->retention = NULL;
}

/* Drops void segments: no client gets void segments, and the result does not contain
 * them. */
static void drop_void(sgi_op *op)
{
    sgi_retention *kept = op->retention;
    if (kept->seq > op->head.result->voided_seq || !kept->gone_bytes)
        return;
    op->head.log_bytes -=
        kept->gone_bytes < op->head.log_bytes ? kept->gone_bytes : op->head.log_bytes;
    kept->gone_bytes = 0;
    sgi_op_drop_entries(op, SGI_DROP_SEGMENTS, kept->seq);
}

static void look(sgi_op *op)
{
    sgi_retention_apply_limits(op->retention, sgi_wall_now(&op->engine->env));
    drop_void(op);
}

void sgi_op_count_event(sgi_op *op, const sgi_entry *entry)
{
    if (!op->retention)
        return;
    sgi_retention_count_event(op->retention, entry);
    look(op);
}

uint64_t sgi_op_earliest_event(sgi_op *op)
{
    if (!op->retention)
        return 1;
    look(op);
    return op->retention->earliest;
}
