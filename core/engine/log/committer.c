/* The dirty list has the operations with entries that are neither durable nor in a
 * running commit. An operation is in at most one commit at a time, so its entries reach
 * the store in order. When a commit has failed, its operations return to the front of the
 * dirty list. Then each of these operations gets a separate commit (`solo`). So one
 * operation that cannot be written neither ends other operations (AS-114) nor delays
 * their writes.
 *
 * A lease is the time for which a silent server stays the owner of its operations. An
 * operation is on the `broken` list when even its end cannot be written, when a store
 * with leases cannot be reached, or when a commit has timed out. Such an operation still
 * counts as dirty and is tried again at intervals. A commit that has timed out wrote
 * nothing, because the store was not free. So it says nothing about its operations, and
 * they stay together. Other operations do not wait for it. A store with leases may have
 * applied a commit that failed with SEGUE_E_STORE. If the store then refuses to repeat
 * the commit, this refusal does not show that the store lacks the operation. So the
 * operation ends in memory, and its end is written when the store accepts it. */
#include "engine/log/committer.h"

#include "base/rare.h"
#include "base/thresholds.h"
#include "engine/error.h"
#include "engine/event.h"
#include "engine/log/dropping.h"
#include "engine/log/record.h"
#include "engine/log/observer.h"

#include <assert.h>

#define MAX_BATCH_WRITES SGI_THRESHOLD(batch_writes)
#define RETRY_MS SGI_THRESHOLD(commit_retry_ms)

struct sgi_commit_op {
    sgi_op *op;
    uint64_t upto;
    uint64_t dropped[SGI_DROPS];
    uint64_t taken;
    bool releases, deletes;
    /* The doubt of the operation that the outcome of the commit can settle: the outcome
     * can show whether this server still owns the operation, and whether the log in the
     * store is whole. 0 = the operation is not in doubt. */
    uint32_t doubt;
};

int32_t sgi_committer_records(const sgi_committer *committer)
{
    const sgi_host_functions *host = &committer->engine->host;
    return host->records ? host->records(host->user, committer) : SGI_RECORDS;
}

void sgi_committer_init(sgi_committer *committer, sgi_engine *engine,
                        const struct sgi_log_observer *observer)
{
    *committer = (sgi_committer){.engine = engine, .observer = observer};
    committer->counts.store =
        (segue_store_stats){sizeof(segue_store_stats), -1, -1, -1, -1};
    TAILQ_INIT(&committer->dirty);
    TAILQ_INIT(&committer->broken);
    TAILQ_INIT(&committer->jobs);
}

void sgi_committer_free(sgi_committer *committer)
{
    sgi_store_job *job, *next;
    sgi_engine_clear_timer(committer->engine, &committer->retry);
    sgi_engine_clear_timer(committer->engine, &committer->purge);
    SGI_TAILQ_EACH(job, &committer->jobs, link, next)
        sgi_store_job_free(job);
    TAILQ_INIT(&committer->jobs);
}

static void call_host(sgi_committer *committer)
{
    committer->engine->host.store(committer->engine->host.user, committer);
}

void sgi_committer_shut_down(sgi_committer *committer)
{
    committer->dying = true;
    committer->starved = false;
    TAILQ_CONCAT(&committer->dirty, &committer->broken, dirty_link);
    sgi_engine_clear_timer(committer->engine, &committer->retry);
    sgi_engine_clear_timer(committer->engine, &committer->purge);
    call_host(committer);
}

/* True when this server may write to the operation: it owns the operation, and the store
 * has the operation or is about to create it. */
static bool may_write(const sgi_op *op)
{
    return sgi_op_is_owned_here(op) && sgi_op_is_logged(op);
}

void sgi_committer_mark_dirty(sgi_committer *committer, sgi_op *op)
{
    if (!may_write(op) || op->writing)
        return;
    sgi_op_set_writing(op, SGI_WRITING_DIRTY);
    sgi_op_ref(op);
    TAILQ_INSERT_TAIL(&committer->dirty, op, dirty_link);
    if (!committer->starved)
        call_host(committer);
}

/* ---- commits ---- */

void sgi_commit_free(const sgi_mem *mem, sgi_commit *batch)
{
    sgi_free(mem, batch->writes, batch->cap * sizeof *batch->writes);
    sgi_free(mem, batch->ops, batch->op_cap * sizeof *batch->ops);
    *batch = (sgi_commit){0};
}

static segue_store_write *add_write(const sgi_mem *mem, sgi_commit *batch, int32_t kind,
                                    const sgi_op *op)
{
    if (batch->count == batch->cap) {
        size_t cap = batch->cap ? batch->cap * 2 : 64;
        void *writes = sgi_realloc(mem, batch->writes, batch->cap * sizeof *batch->writes,
                                   cap * sizeof *batch->writes);
        if (!writes)
            return NULL;
        batch->writes = writes;
        batch->cap = cap;
    }
    segue_store_write *write = &batch->writes[batch->count++];
    memset(write, 0, sizeof *write);
    write->kind = kind;
    memcpy(write->id, op->id, sizeof write->id);
    return write;
}

static struct sgi_commit_op *add_op(const sgi_mem *mem, sgi_commit *batch, sgi_op *op)
{
    if (batch->op_count == batch->op_cap) {
        size_t cap = batch->op_cap ? batch->op_cap * 2 : 16;
        void *ops = sgi_realloc(mem, batch->ops, batch->op_cap * sizeof *batch->ops,
                                cap * sizeof *batch->ops);
        if (!ops)
            return NULL;
        batch->ops = ops;
        batch->op_cap = cap;
    }
    batch->ops[batch->op_count] = (struct sgi_commit_op){.op = op};
    return &batch->ops[batch->op_count++];
}

static bool add_entry(const sgi_mem *mem, sgi_commit *batch, const sgi_op *op,
                      const sgi_entry *entry)
{
    segue_store_write *write = add_write(mem, batch, SEGUE_STORE_APPEND, op);
    if (!write)
        return false;
    write->entry =
        (segue_store_entry){entry->seq,   entry->segment, entry->event, entry->kind,
                            entry->at_ms, entry->data,    entry->len};
    return true;
}

/* Adds the writes that delete dropped entries. These writes come after the entries of the
 * commit: when a store deletes entries, the store must already have the last entry of the
 * log. */
static bool add_drops(const sgi_mem *mem, sgi_commit *batch, const sgi_op *op,
                      uint64_t upto, uint64_t dropped[SGI_DROPS])
{
    memset(dropped, 0, SGI_DROPS * sizeof *dropped);
    for (int what = 0; what < SGI_DROPS && upto + 1 == op->head.next_log; what++) {
        dropped[what] = sgi_op_next_drop(op, (sgi_drop)what);
        segue_store_entry entry = sgi_op_drop_entry((sgi_drop)what, dropped[what], upto);
        if (!entry.seq)
            continue;
        segue_store_write *write = add_write(mem, batch, SEGUE_STORE_DROP, op);
        if (!write)
            return false;
        write->entry = entry;
    }
    return true;
}

/* Adds the number of the last command of another server that was run for this operation,
 * after the entries that the command caused. An ended operation needs no such number.
 * Returns false when out of memory. */
static bool add_taken(const sgi_mem *mem, sgi_commit *batch, struct sgi_commit_op *row,
                      uint64_t upto)
{
    const sgi_op *op = row->op;
    row->taken = op->commands_taken_stored;
    if ((op->commands_taken == op->commands_taken_stored && !sgi_op_is_in_doubt(op)) ||
        sgi_op_has_ended(op) || upto + 1 < op->head.next_log)
        return true;
    segue_store_write *write = add_write(mem, batch, SEGUE_STORE_TAKEN, op);
    if (!write)
        return false;
    write->entry.seq = row->taken = op->commands_taken;
    write->entry.event = upto;
    return true;
}

/* Adds everything that the operation must write. Returns false when out of memory; the
 * commit is then unchanged. */
static bool add_all(const sgi_mem *mem, sgi_commit *batch, sgi_op *op)
{
    size_t before = batch->count;
    segue_store_write *write;
    struct sgi_commit_op *row = add_op(mem, batch, op);
    if (!row)
        return false;
    bool ok = true;
    if (!sgi_op_is_created(op)) {
        write = add_write(mem, batch, SEGUE_STORE_CREATE, op);
        ok = write != NULL;
    }
    uint64_t upto = op->durable;
    for (sgi_entry *entry = op->pending; ok && entry; entry = TAILQ_NEXT(entry, link)) {
        ok = add_entry(mem, batch, op, entry);
        upto = entry->seq;
        if (batch->count > MAX_BATCH_WRITES && TAILQ_NEXT(entry, link))
            break;
    }
    bool ends = sgi_op_has_ended(op) && upto >= op->head.final_seq;
    if (ok && ends && op->durable < op->head.final_seq) {
        write = add_write(mem, batch, SEGUE_STORE_END, op);
        ok = write != NULL;
        if (ok)
            write->purge_ms = op->committer->observer->purge_ms(op);
        if (ok && op->torn)
            write->entry.seq = op->behind_hole;
    }
    ok = ok && add_drops(mem, batch, op, upto, row->dropped) &&
         add_taken(mem, batch, row, upto);
    bool releases =
        op->releasing && !sgi_op_has_ended(op) && upto + 1 == op->head.next_log;
    if (ok && releases)
        ok = add_write(mem, batch, SEGUE_STORE_RELEASE, op) != NULL;
    bool deletes = op->deleting && upto + 1 == op->head.next_log;
    if (ok && deletes)
        ok = add_write(mem, batch, SEGUE_STORE_DELETE, op) != NULL;
    if (!ok) {
        batch->count = before;
        batch->op_count--;
        return false;
    }
    row->upto = upto;
    row->releases = releases;
    row->deletes = deletes;
    if (sgi_op_is_in_doubt(op) && upto + 1 == op->head.next_log)
        row->doubt = op->doubts.count;
    return true;
}

/* Sets the pointers to the records of new operations. Called last, because the array of
 * writes can move in memory while writes are added. */
static void link_records(sgi_commit *batch)
{
    size_t at = 0;
    for (size_t i = 0; i < batch->count; i++) {
        segue_store_write *write = &batch->writes[i];
        if (write->kind != SEGUE_STORE_CREATE)
            continue;
        while (memcmp(batch->ops[at].op->id, write->id, sizeof write->id) != 0)
            at++;
        assert(batch->ops[at].op->record);
        write->record = &batch->ops[at].op->record->head;
    }
}

static void report_retry(const sgi_committer *committer)
{
    int64_t count = 0;
    const sgi_op *op;
    if (!sgi_event_is_wanted(committer->engine, SGI_EVENT_commit_retried))
        return;
    segue_event event = sgi_event_new(committer->engine, SGI_EVENT_commit_retried);
    TAILQ_FOREACH(op, &committer->broken, dirty_link)
        count++;
    event.count = count;
    sgi_event_report(committer->engine, SGI_EVENT_commit_retried, &event);
}

static void retry_now(sgi_timer *timer)
{
    sgi_committer *committer = SGI_OWNER(timer, sgi_committer, retry);
    committer->starved = false;
    committer->counts.retries++;
    report_retry(committer);
    TAILQ_CONCAT(&committer->dirty, &committer->broken, dirty_link);
    call_host(committer);
}

/* Sets the timer for another attempt unless the timer is set. Returns false when the
 * timer cannot be set. */
static bool retry_later(sgi_committer *committer)
{
    if (!committer->retry.slot && !committer->dying)
        sgi_engine_set_timer(committer->engine, &committer->retry, RETRY_MS, retry_now);
    return committer->retry.slot != 0;
}

/* Takes the first operation from the dirty list (the operations that have to be written).
 * The list's reference becomes the caller's. */
static sgi_op *take_first(sgi_committer *committer, sgi_writing to)
{
    sgi_op *op = TAILQ_FIRST(&committer->dirty);
    TAILQ_REMOVE(&committer->dirty, op, dirty_link);
    sgi_op_set_writing(op, to);
    return op;
}

/* Removes operations from the front of the dirty list without writing them. all: true =
 * all operations, because the runtime ends and there is no memory for a commit; false =
 * operations that this server may not write any more, because another server owns them
 * or the store has lost them. Returns the operation that was removed last, or `last` when
 * none was removed. The result is a counted reference, because the operation can hold the
 * last reference to the committer. */
static sgi_op *skip(sgi_committer *committer, sgi_op *last, bool all)
{
    const sgi_op *op;
    while ((op = TAILQ_FIRST(&committer->dirty)) && (all || !may_write(op))) {
        committer->solo -= committer->solo > 0;
        if (last)
            sgi_op_unref(last);
        last = take_first(committer, SGI_WRITING_NOTHING);
    }
    return last;
}

bool sgi_committer_fill_commit(sgi_committer *committer, sgi_commit *batch)
{
    const sgi_mem *mem = sgi_engine_mem(committer->engine);
    sgi_op *skipped = NULL;
    batch->count = batch->op_count = 0;
    if (committer->starved)
        return false;
    while (batch->count < MAX_BATCH_WRITES) {
        skipped = skip(committer, skipped, false);
        sgi_op *op = TAILQ_FIRST(&committer->dirty);
        if (!op)
            break;
        if (!add_all(mem, batch, op)) {
            if (!batch->op_count && committer->dying)
                skipped = skip(committer, skipped, true);
            else if (!batch->op_count)
                committer->starved = retry_later(committer);
            break;
        }
        take_first(committer, SGI_WRITING_NOW);
        if (committer->solo) {
            committer->solo--;
            break;
        }
    }
    link_records(batch);
    bool any = batch->op_count > 0;
    if (skipped)
        sgi_op_unref(skipped);
    return any;
}

static void settle_doubt(const struct sgi_commit_op *row)
{
    if (row->doubt)
        row->op->doubts.settled = row->doubt;
}

static void write_done(sgi_committer *committer, const struct sgi_commit_op *row,
                       uint64_t took_us)
{
    sgi_op *op = row->op;
    if (!sgi_op_is_created(op)) {
        sgi_op_record_free_written(op);
        sgi_op_set_stored(op, SGI_STORED_YES);
    }
    if (row->releases || sgi_op_has_ended(op))
        op->releasing = false;
    if (row->deletes)
        op->deleting = false;
    settle_doubt(row);
    op->commands_taken_stored = row->taken;
    bool more = op->commands_taken > op->commands_taken_stored && !sgi_op_has_ended(op);
    for (int what = 0; what < SGI_DROPS; what++)
        sgi_op_on_drop_written(op, (sgi_drop)what, row->dropped[what]);
    if (row->upto > op->durable &&
        sgi_event_is_wanted(committer->engine, SGI_EVENT_entries_stored))
        committer->observer->stored(op, row->upto - op->durable, took_us);
    sgi_op_on_entries_durable(op, row->upto);
    for (int what = 0; what < SGI_DROPS; what++)
        more |= sgi_op_next_drop(op, (sgi_drop)what) > 0;
    if (op->pending || op->releasing || op->deleting || sgi_op_is_in_doubt(op) || more)
        sgi_committer_mark_dirty(committer, op);
}

/* Puts the operation on the `broken` list for a later attempt, whatever the reason of the
 * failure was. Returns false when the timer for the attempt cannot be set. */
static bool put_off(sgi_committer *committer, sgi_op *op)
{
    if (!retry_later(committer))
        return false;
    SGI_RARE(put_off);
    sgi_op_set_writing(op, SGI_WRITING_DIRTY);
    sgi_op_ref(op);
    TAILQ_INSERT_TAIL(&committer->broken, op, dirty_link);
    return true;
}

/* True when the failure of a commit does not show whether this server still owns the
 * operation: the store did not look at the operation. */
static bool leaves_doubt(const sgi_op *op, segue_status status)
{
    return sgi_op_is_in_doubt(op) &&
           (status == SEGUE_E_STORE || status == SEGUE_E_STORE_FULL);
}

/* Handles a failed write of an operation. While a store with leases (times for which a
 * silent server stays the owner) cannot be reached, another server may continue the
 * operation. So an end that is not in the store is not reported to clients. When the
 * store can be reached again, the commit either succeeds or is refused because another
 * server owns the operation (fenced). A failed creation is handled in the same way,
 * because the operation may be in the store even though the commit failed. If the
 * creation were reported as failed, no server would run or claim the operation. The same
 * holds for an operation in doubt (`doubts` of sgi_op), until a commit settles the
 * doubt. */
static void write_lost(sgi_committer *committer, const struct sgi_commit_op *row,
                       segue_status status)
{
    sgi_op *op = row->op;
    bool again = sgi_op_is_broken(op);
    if (committer->dying)
        return;
    if (status == SEGUE_E_FENCED) {
        SGI_RARE(fenced);
        op->committer->observer->fenced(op);
        return;
    }
    if (status == SEGUE_E_TIMEOUT && put_off(committer, op))
        return;
    if (status == SEGUE_E_STORE && committer->leased && put_off(committer, op))
        return;
    if (status == SEGUE_E_STATE && committer->leased && sgi_op_is_created(op) && !again &&
        op->committer->observer->moved_on(op) && put_off(committer, op))
        return;
    if (leaves_doubt(op, status) && (committer->leased || !op->pending) &&
        put_off(committer, op))
        return;
    bool gone = row->doubt && status == SEGUE_E_NOT_FOUND;
    settle_doubt(row);
    if (status == SEGUE_E_NOT_FOUND && again)
        return; /* the store has purged the operation, so its end need not be written */
    bool only_drops = sgi_op_has_ended(op) || (!gone && !op->releasing && !op->deleting);
    if (status != SEGUE_E_STATE && sgi_op_is_created(op) && !op->pending && !again &&
        only_drops) {
        /* The failed commit contained only deletions for this operation. A later deletion
         * includes the same entries. */
        sgi_op_on_drop_failed(op);
        return;
    }
    sgi_op_on_write_failed(op, status);
    if (!(again && put_off(committer, op)) && op->pending)
        sgi_committer_mark_dirty(committer, op);
}

/* Puts the operations of a failed commit back on the dirty list (the operations that have
 * to be written). Each of them then gets a separate commit. Each reference of the commit
 * becomes a reference of the list. */
static void try_each(sgi_committer *committer, const sgi_commit *batch)
{
    SGI_RARE(tried_each);
    for (size_t i = batch->op_count; i-- > 0;) {
        sgi_op *op = batch->ops[i].op;
        sgi_op_set_writing(op, SGI_WRITING_DIRTY);
        TAILQ_INSERT_HEAD(&committer->dirty, op, dirty_link);
    }
    committer->solo = batch->op_count;
}

static void report(sgi_committer *committer, const sgi_commit *batch, segue_status status)
{
    sgi_engine *engine = committer->engine;
    sgi_event_id id =
        status == SEGUE_OK ? SGI_EVENT_commit_done : SGI_EVENT_commit_failed;
    if (!sgi_event_is_wanted(engine, id))
        return;
    segue_event event = sgi_event_new(engine, id);
    event.status = status == SEGUE_OK ? NULL : sgi_status_name(status);
    event.count = (int64_t)batch->count;
    event.duration_us = (int64_t)batch->took_us;
    sgi_event_report(engine, id, &event);
}

static void count(sgi_committer *committer, const sgi_commit *batch, segue_status status)
{
    committer->counts.commits++;
    committer->counts.writes += status == SEGUE_OK ? batch->count : 0;
    committer->counts.failures += status != SEGUE_OK;
    sgi_duration_tally_add(&committer->counts.took, batch->took_us);
    sgi_histogram_add(&committer->counts.durations, &sgi_scale_of_commits,
                      batch->took_us);
    sgi_histogram_add(&committer->counts.batches, &sgi_scale_of_batches, batch->count);
}

void sgi_committer_on_commit_done(sgi_committer *committer, sgi_commit *batch,
                                  segue_status status)
{
    count(committer, batch, status);
    report(committer, batch, status);
    sgi_op *first = batch->op_count ? batch->ops[0].op : NULL;
    if (first)
        /* this operation can hold the last reference to the committer, so it must stay in
         * memory until the end of the function */
        sgi_op_ref(first);
    if (status == SEGUE_E_STORE && committer->leased)
        for (size_t i = 0; i < batch->op_count; i++)
            sgi_op_on_outcome_unknown(batch->ops[i].op, batch->ops[i].upto);
    if (status != SEGUE_OK && status != SEGUE_E_TIMEOUT && batch->op_count > 1) {
        try_each(committer, batch);
        batch->op_count = 0;
    }
    for (size_t i = 0; i < batch->op_count; i++) {
        sgi_op *op = batch->ops[i].op;
        sgi_op_set_writing(op, SGI_WRITING_NOTHING);
        if (status == SEGUE_OK)
            write_done(committer, &batch->ops[i], batch->took_us);
        else
            write_lost(committer, &batch->ops[i], status);
        sgi_op_unref(op);
    }
    batch->count = batch->op_count = 0;
    if (!TAILQ_EMPTY(&committer->dirty) && !committer->starved)
        call_host(committer);
    if (first)
        sgi_op_unref(first);
}

/* ---- jobs ---- */

void sgi_committer_add_job(sgi_committer *committer, sgi_store_job *job)
{
    TAILQ_INSERT_TAIL(&committer->jobs, job, link);
    call_host(committer);
}

sgi_store_job *sgi_committer_take_job(sgi_committer *committer)
{
    sgi_store_job *job = TAILQ_FIRST(&committer->jobs);
    if (job)
        TAILQ_REMOVE(&committer->jobs, job, link);
    return job;
}
