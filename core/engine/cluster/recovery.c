/* Takes over the operations that the store has given to this server. The store gives an
 * operation when its owner is gone; sgi_recover_claimed_op then continues or ends the
 * operation. If this server already follows the operation, it is not rebuilt: its readers
 * and waiters stay (sgi_followed_take_over).
 *
 * The operations are claimed in portions, because a server that ended can have left very
 * many. The next portion is claimed when most of the last one is taken over, so the
 * records and logs in memory and the work in one turn of the loop are bounded. Recovery
 * ends when the store has no further operation. */
#include "engine/cluster/recovery.h"

#include "base/rare.h"
#include "base/thresholds.h"
#include "engine/cluster/following.h"
#include "engine/cluster/rebuild.h"
#include "engine/error.h"
#include "engine/log/observer.h"

#define CLAIM_AGAIN_MS SGI_THRESHOLD(claim_again_ms)
#define PORTION SGI_THRESHOLD(claim_portion)

/* ---- operations that the store has given to this server ---- */

static void one_done(sgi_cluster *cluster)
{
    if (--cluster->recovering == 0) {
        cluster->observer->recovered(cluster);
        sgi_forwarded_commands_run_waiting(cluster);
    }
    sgi_cluster_unref(cluster);
}

void sgi_recover_claimed_op(sgi_cluster *cluster, sgi_op *op)
{
    if (!cluster->committer->closed)
        cluster->observer->taken_over(op);
    one_done(cluster);
}

void sgi_recover_leave_op(sgi_op *op)
{
    if (!op->shared->claimed)
        return;
    op->shared->claimed = false;
    one_done(sgi_op_cluster(op));
}

static void drop_claim(sgi_cluster *cluster, sgi_found_record *found)
{
    TAILQ_REMOVE(&cluster->claims, found, link);
    sgi_map_remove(&cluster->claims_by_id, &found->by_id);
    sgi_free(sgi_engine_mem(cluster->engine), found, found->size);
}

void sgi_claims_free(sgi_cluster *cluster)
{
    sgi_found_record *found;
    while ((found = TAILQ_FIRST(&cluster->claims)))
        drop_claim(cluster, found);
}

/* True when the next portion can be claimed. */
static bool has_room(const sgi_cluster *cluster)
{
    return cluster->claims_by_id.count <= PORTION / 2;
}

static void claim_later(sgi_timer *timer);

static void try_later(sgi_cluster *cluster)
{
    if (!cluster->committer->closed)
        sgi_engine_set_timer(cluster->engine, &cluster->claim_timer, CLAIM_AGAIN_MS,
                             claim_later);
}

/* Claims further operations, if the store may have some, and enough of the claimed ones
 * are taken over. Called before the last claimed operation counts as recovered, so that
 * recovery goes on. Operations that cannot be read now do not hold up the others: they
 * stay in the list, and claim_later makes another attempt. */
static void claim_more(sgi_cluster *cluster)
{
    if (cluster->claim_again && !cluster->claiming && has_room(cluster))
        sgi_recover_orphans(cluster);
}

/* Continues with a claimed operation that is already in memory: this server reads its log
 * for a client while another server runs it, or has just rebuilt the operation. This
 * server now becomes the owner. */
static void go_on_with(sgi_op *op, bool torn)
{
    if (torn)
        SGI_RARE(torn);
    op->torn = torn;
    if (sgi_op_runs_elsewhere(op))
        sgi_followed_take_over(op);
    else
        sgi_recover_claimed_op(sgi_op_cluster(op), op);
}

/* Called when the rebuild of a claimed operation has ended. If the store could not be
 * read, the operation is rebuilt again later: this server owns the operation, so no other
 * server continues it. */
static void go_on(void *user, sgi_op *op, segue_status status)
{
    sgi_found_record *found = user;
    sgi_cluster *cluster = found->user;
    bool again = status == SEGUE_E_NOMEM || status == SEGUE_E_STORE;
    bool torn = sgi_claim_is_torn(found);
    found->busy = false;
    if (!op && again) {
        SGI_RARE(claimed_unread);
        try_later(cluster);
    } else {
        drop_claim(cluster, found);
        claim_more(cluster);
    }
    if (op)
        go_on_with(op, torn);
    else
        one_done(cluster);
}

/* ---- operations that another server may have continued meanwhile ---- */

static bool is_same(const sgi_entry *own, const sgi_entry *stored)
{
    return own && own->seq == stored->seq && own->kind == stored->kind &&
           own->at_ms == stored->at_ms && own->len == stored->len &&
           memcmp(own->data, stored->data, own->len) == 0;
}

/* True when another server has written to the operation: the store has an entry behind
 * the last entry that this server knows to be durable, and this server did not make that
 * entry. Entries that this server made can also be in the store, when the store's answer
 * to the commit was lost. */
static bool has_moved_on(const sgi_op *op, const sgi_store_job *job)
{
    const sgi_entry *stored, *own = op->pending;
    TAILQ_FOREACH(stored, &job->entries, link) {
        if (stored->seq <= op->durable)
            continue;
        while (own && own->seq < stored->seq)
            own = TAILQ_NEXT(own, link);
        if (!is_same(own, stored))
            return true;
    }
    return false;
}

static bool read_behind(sgi_cluster *cluster, const sgi_op *op,
                        void (*done)(sgi_store_job *), void *user)
{
    sgi_store_job *job =
        sgi_store_job_new(cluster->committer, SGI_STORE_JOB_READ, done, user);
    if (!job)
        return false;
    memcpy(job->id, op->id, sizeof job->id);
    job->after = op->durable;
    /* when the store has all entries that this server made, the next entry is read too */
    job->max_bytes = op->pending_bytes + 1;
    sgi_cluster_ref(cluster);
    sgi_committer_add_job(cluster->committer, job);
    return true;
}

/* An end that the store does not have yet does not count, unless clients were told of
 * it: another server may have continued the operation. */
static bool has_told_end(const sgi_op *op)
{
    return sgi_op_has_ended(op) && op->head.final_seq <= sgi_op_horizon(op);
}

static bool is_own(const sgi_op *op)
{
    return op && !sgi_op_runs_elsewhere(op) && !has_told_end(op);
}

static void compared(sgi_store_job *job)
{
    sgi_cluster *cluster = job->user;
    sgi_op *op = sgi_cluster_known_op(cluster, job->id);
    bool moved = is_own(op) && job->status == SEGUE_OK && has_moved_on(op, job);
    if (op)
        op->shared->compare = is_own(op) && !moved && job->status == SEGUE_OK
                                  ? SGI_COMPARE_WHOLE
                                  : SGI_COMPARE_NOT;
    sgi_store_job_free(job);
    if (moved) {
        SGI_RARE(moved_on);
        sgi_op_give_up_to_new_owner(op);
        sgi_recover_orphans(cluster);
    }
    sgi_cluster_unref(cluster);
}

bool sgi_op_may_have_moved_on(sgi_op *op)
{
    sgi_cluster_op_data *shared = op->shared;
    bool was_compared = shared->compare == SGI_COMPARE_WHOLE;
    if (was_compared)
        shared->compare = SGI_COMPARE_NOT;
    if (was_compared || has_told_end(op) || sgi_op_cluster(op)->committer->closed)
        return false;
    if (shared->compare == SGI_COMPARE_NOT &&
        read_behind(sgi_op_cluster(op), op, compared, sgi_op_cluster(op)))
        shared->compare = SGI_COMPARE_READING;
    return shared->compare == SGI_COMPARE_READING;
}

static void take(sgi_cluster *cluster, sgi_found_record *found);

/* Called when this server already runs an operation that the store has given to this
 * server, because its lease (the time for which a silent server stays the owner) had
 * expired. If another server has continued the operation meanwhile and has gone, this
 * server takes over the operation with the new entries. */
static void compared_claim(sgi_store_job *job)
{
    sgi_found_record *found = job->user;
    sgi_cluster *cluster = found->user;
    sgi_op *op =
        sgi_cluster_find_op(cluster, found->record.task_id, sgi_claim_is_torn(found));
    segue_status status = job->status;
    bool moved = is_own(op) && status == SEGUE_OK && has_moved_on(op, job);
    sgi_store_job_free(job);
    found->busy = false;
    if (moved) {
        SGI_RARE(moved_on);
        sgi_op_give_up_to_new_owner(op);
        take(cluster, found);
    } else if (is_own(op) && status != SEGUE_OK && status != SEGUE_E_NOT_FOUND) {
        try_later(cluster);
    } else {
        drop_claim(cluster, found);
        claim_more(cluster);
    }
    sgi_cluster_unref(cluster);
}

static void take(sgi_cluster *cluster, sgi_found_record *found)
{
    bool torn = sgi_claim_is_torn(found);
    sgi_op *op = sgi_cluster_find_op(cluster, found->record.task_id, torn);
    if (is_own(op)) {
        found->user = cluster;
        found->busy = read_behind(cluster, op, compared_claim, found);
        if (!found->busy)
            try_later(cluster);
        return;
    }
    if (op && (!sgi_op_runs_elsewhere(op) || op->shared->claimed)) {
        drop_claim(cluster, found);
        return;
    }
    cluster->recovering++;
    sgi_cluster_ref(cluster);
    if (op) {
        drop_claim(cluster, found);
        go_on_with(op, torn);
        return;
    }
    found->busy = true;
    found->user = cluster;
    sgi_rebuild_claimed_op(cluster, found, go_on);
}

/* Adds a claimed record to the list. A store that failed during a claim returns the same
 * records again, so a newer record replaces an older record. If the older record is
 * already being rebuilt, the newer record is used only to note that the end of the log is
 * lost. */
static void add_claim(sgi_cluster *cluster, sgi_found_record *found)
{
    sgi_str id = {(const char *)found->record.id, sizeof found->record.id};
    sgi_map_node *node = sgi_map_find(&cluster->claims_by_id, id);
    sgi_found_record *known = node ? SGI_OWNER(node, sgi_found_record, by_id) : NULL;
    if (known && known->busy) {
        if (sgi_claim_is_torn(found))
            known->record.ended = SEGUE_STORE_TORN;
        sgi_free(sgi_engine_mem(cluster->engine), found, found->size);
        return;
    }
    if (known)
        drop_claim(cluster, known);
    TAILQ_INSERT_TAIL(&cluster->claims, found, link);
    sgi_map_put(&cluster->claims_by_id, &found->by_id, id);
}

static void add_claims(sgi_cluster *cluster, struct sgi_found_record_list *list)
{
    sgi_found_record *found, *next;
    SGI_TAILQ_EACH(found, list, link, next) {
        TAILQ_REMOVE(list, found, link);
        add_claim(cluster, found);
    }
}

/* Rebuilds or takes over each claimed operation of the list. An operation that needs no
 * rebuild leaves the list at once. */
static void take_all(sgi_cluster *cluster)
{
    sgi_found_record *found, *next;
    sgi_cluster_ref(cluster);
    SGI_TAILQ_EACH(found, &cluster->claims, link, next)
        if (!found->busy)
            take(cluster, found);
    sgi_cluster_unref(cluster);
}

static void claim_ended(sgi_cluster *cluster)
{
    cluster->claiming = false;
    sgi_cluster_ref(cluster);
    claim_more(cluster);
    one_done(cluster);
    sgi_cluster_unref(cluster);
}

static void released(sgi_store_job *job)
{
    sgi_cluster *cluster = job->user;
    sgi_store_job_free(job);
    try_later(cluster);
    claim_ended(cluster);
}

static void claimed(sgi_store_job *job)
{
    sgi_cluster *cluster = job->user;
    if (job->status == SEGUE_E_STORE_CORRUPT)
        sgi_engine_log(cluster->engine, SEGUE_LOG_ERROR,
                       "some operations in the store cannot be read, and are not "
                       "recovered");
    else if (job->status != SEGUE_OK)
        sgi_engine_log(cluster->engine, SEGUE_LOG_ERROR,
                       "the operations in the store cannot be recovered: %s",
                       sgi_status_name(job->status));
    if (job->found_count >= PORTION)
        cluster->claim_again = true; /* the store may have more */
    add_claims(cluster, &job->found);
    take_all(cluster);
    /* There was no memory for one of the claimed records. The job releases that operation
     * to other servers. The same job object is used again, because this needs no further
     * memory. */
    if (job->lost) {
        job->kind = SGI_STORE_JOB_RELEASE;
        job->status = SEGUE_OK;
        job->lost = false;
        job->done = released;
        sgi_committer_add_job(cluster->committer, job);
        return;
    }
    if (job->status != SEGUE_OK)
        try_later(cluster);
    sgi_store_job_free(job);
    claim_ended(cluster);
}

/* Asks the store for operations whose owner is gone, or for nothing while the server
 * claims nothing. Returns false when out of memory. */
static bool claim(sgi_cluster *cluster)
{
    sgi_store_job_kind kind =
        cluster->abstains ? SGI_STORE_JOB_NOTHING : SGI_STORE_JOB_CLAIM;
    sgi_store_job *job = sgi_store_job_new(cluster->committer, kind, claimed, cluster);
    if (!job)
        return false;
    job->max_found = PORTION;
    cluster->claiming = true;
    cluster->claim_again = false;
    cluster->recovering++;
    sgi_cluster_ref(cluster);
    sgi_committer_add_job(cluster->committer, job);
    return true;
}

void sgi_recover_ops(sgi_cluster *cluster)
{
    cluster->takes = true;
    cluster->recovering = 1;
    sgi_cluster_ref(cluster);
    if (!claim(cluster)) {
        sgi_engine_log(cluster->engine, SEGUE_LOG_ERROR,
                       "out of memory: the operations in the store are recovered later");
        try_later(cluster);
    }
    one_done(cluster);
}

static void claim_later(sgi_timer *timer)
{
    sgi_cluster *cluster = SGI_OWNER(timer, sgi_cluster, claim_timer);
    sgi_cluster_ref(cluster);
    take_all(cluster);
    sgi_recover_orphans(cluster);
    sgi_cluster_unref(cluster);
}

/* Claims operations whose owner is gone. Does nothing before recovery has started,
 * because recovery itself claims them, and nothing while the server closes. */
void sgi_recover_orphans(sgi_cluster *cluster)
{
    if (!cluster->takes || cluster->abstains)
        return;
    if (cluster->claiming || !has_room(cluster))
        cluster->claim_again = true;
    else if (!claim(cluster))
        try_later(cluster);
}

void sgi_recover_begin_claims(sgi_cluster *cluster)
{
    if (!cluster->abstains)
        return;
    cluster->abstains = false;
    sgi_recover_orphans(cluster);
}
