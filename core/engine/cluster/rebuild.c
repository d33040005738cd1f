/* Makes operations in memory from their records and logs in the store. Each rebuild has
 * its own job, so several rebuilds of one operation can run at once. */
#include "engine/cluster/rebuild.h"

#include "base/rare.h"
#include "engine/cluster/following.h"
#include "engine/error.h"
#include "engine/log/dropping.h"
#include "engine/log/observer.h"
#include "engine/log/record.h"

/* The purpose of a rebuilt operation. FOR_ONCE: the operation is used once and then
 * freed. FOR_GOOD: the operation enters the maps of the server and is followed. COPY: the
 * operation is a second copy of an operation in the maps. OURS: this server owns and runs
 * the operation. */
typedef enum use { FOR_ONCE, FOR_GOOD, COPY, OURS } use;

typedef struct sgi_rebuilding {
    LIST_ENTRY(sgi_rebuilding) link;
    sgi_op *op;
    use purpose;
    /* OURS: the record of the claim, which can still become torn; otherwise NULL */
    const sgi_found_record *claim;
    bool ended; /* the record says that the operation has ended */
    bool grew;  /* the log has grown during the rebuild */
    sgi_found_fn done;
    void *user;
} sgi_rebuilding;

static void read_more(sgi_rebuilding *build);

static bool is_followed(const sgi_rebuilding *build)
{
    return build->purpose == FOR_GOOD && !build->ended;
}

/* Hands the rebuilt operation to the code that asked for the rebuild. Called when the
 * whole log was read. An operation that this server runs or follows stays in the maps;
 * any other operation leaves the maps again. */
static void hand_over(sgi_rebuilding *build)
{
    sgi_op *op = build->op;
    sgi_cluster *cluster = sgi_op_cluster(op);
    /* an ended operation has no owner, so this server can keep the operation */
    bool is_mine = build->purpose == OURS || sgi_op_has_ended(op);
    bool follows = !is_mine && is_followed(build) && !cluster->committer->closed;
    bool stays = is_mine || follows;
    sgi_op_set_hold(op, is_mine ? SGI_HOLD_HERE : SGI_HOLD_ELSEWHERE);
    cluster->observer->known(op);
    if (follows)
        sgi_followed_add(op);
    sgi_op_ref(op);
    cluster->observer->rebuilt(op);
    build->done(build->user, op, SEGUE_OK);
    op->committer->observer->visible(op);
    if (!stays)
        cluster->observer->forget(op);
    else if (is_mine && cluster->committer->closed)
        /* the committer was closed during the rebuild, so other servers get the chance to
         * claim the operation */
        cluster->observer->release(op);
    else if (build->grew)
        sgi_followed_read_more(op);
    sgi_op_unref(op);
}

bool sgi_claim_is_torn(const sgi_found_record *claim)
{
    return claim->record.ended == SEGUE_STORE_TORN;
}

sgi_op *sgi_cluster_find_op(sgi_cluster *cluster, const char *task_id, bool torn)
{
    sgi_op *op = sgi_cluster_known_task(cluster, sgi_str_of(task_id));
    if (op && torn && sgi_op_has_ended(op)) {
        cluster->observer->forget(op);
        op = NULL;
    }
    return op;
}

static void end_rebuild(sgi_rebuilding *build, segue_status status)
{
    sgi_op *op = build->op;
    sgi_engine *engine = op->engine;
    sgi_cluster *cluster = sgi_op_cluster(op);
    bool torn = build->claim && sgi_claim_is_torn(build->claim);
    sgi_op *known = sgi_cluster_find_op(cluster, op->task_id, torn);
    LIST_REMOVE(build, link);
    sgi_cluster_ref(cluster);
    if (status == SEGUE_OK && !op->drops && !sgi_op_log_has_whole_result(op))
        /* the log lacks an entry that the result needs, so the log in the store is
         * damaged */
        status = SEGUE_E_STORE_CORRUPT;
    if (sgi_op_has_ended(op) && is_followed(build) && !known)
        sgi_followed_unsubscribe(cluster, op->id);
    if (status == SEGUE_OK && build->purpose == COPY)
        build->done(build->user, op, SEGUE_OK);
    else if (status == SEGUE_OK && known)
        build->done(build->user, known, SEGUE_OK);
    else if (status == SEGUE_OK)
        hand_over(build);
    if (status != SEGUE_OK) {
        if (status != SEGUE_E_NOT_FOUND)
            sgi_engine_log(engine, SEGUE_LOG_ERROR,
                           "an operation cannot be rebuilt from the store: %s",
                           sgi_status_name(status));
        build->done(build->user, NULL, status);
    }
    sgi_op_unref(op);
    sgi_free(sgi_engine_mem(engine), build, sizeof *build);
    sgi_cluster_unref(cluster);
}

static void entries_arrived(sgi_store_job *job)
{
    sgi_rebuilding *build = job->user;
    sgi_op *op = build->op;
    const sgi_entry *entry;
    segue_status status = job->status;
    bool more = job->bytes >= job->max_bytes;
    TAILQ_FOREACH(entry, &job->entries, link) {
        if (status == SEGUE_OK)
            status = sgi_op_apply_stored_entry(op, entry);
    }
    sgi_store_job_free(job);
    if (status == SEGUE_OK && more) {
        SGI_RARE(read_in_chunks);
        read_more(build);
        return;
    }
    end_rebuild(build, status);
}

static void read_more(sgi_rebuilding *build)
{
    sgi_op *op = build->op;
    sgi_store_job *job =
        sgi_store_job_new(op->committer, SGI_STORE_JOB_READ, entries_arrived, build);
    if (!job) {
        end_rebuild(build, SEGUE_E_NOMEM);
        return;
    }
    memcpy(job->id, op->id, sizeof job->id);
    job->after = op->durable;
    job->max_bytes = op->committer->read_bytes;
    job->follows = is_followed(build) || build->purpose == COPY;
    sgi_committer_add_job(op->committer, job);
}

static void rebuild(sgi_cluster *cluster, const segue_store_record *record, use purpose,
                    sgi_found_fn done, void *user)
{
    const sgi_found_record *claim = purpose == OURS ? user : NULL;
    const sgi_mem *mem = sgi_engine_mem(cluster->engine);
    sgi_op *op = NULL;
    sgi_rebuilding *build = sgi_alloc(mem, sizeof *build);
    segue_status status =
        build ? sgi_op_new_from_record(cluster->committer, record, &op) : SEGUE_E_NOMEM;
    if (status != SEGUE_OK) {
        sgi_free(mem, build, sizeof *build);
        done(user, NULL, status);
        return;
    }
    *build = (sgi_rebuilding){.op = op,
                              .purpose = purpose,
                              .claim = claim,
                              .ended = record->ended == SEGUE_STORE_ENDED,
                              .done = done,
                              .user = user};
    LIST_INSERT_HEAD(&cluster->rebuilds, build, link);
    read_more(build);
}

void sgi_rebuild_op(sgi_cluster *cluster, const segue_store_record *record,
                    sgi_found_fn done, void *user)
{
    rebuild(cluster, record, FOR_GOOD, done, user);
}

void sgi_rebuild_op_once(sgi_cluster *cluster, const segue_store_record *record,
                         sgi_found_fn done, void *user)
{
    rebuild(cluster, record, FOR_ONCE, done, user);
}

void sgi_rebuild_op_copy(sgi_cluster *cluster, const segue_store_record *record,
                         sgi_found_fn done, void *user)
{
    rebuild(cluster, record, COPY, done, user);
}

void sgi_rebuild_claimed_op(sgi_cluster *cluster, sgi_found_record *claim,
                            sgi_found_fn done)
{
    rebuild(cluster, &claim->record, OURS, done, claim);
}

static bool is_of(const sgi_rebuilding *build, const uint8_t *id)
{
    return !memcmp(build->op->id, id, sizeof build->op->id);
}

bool sgi_rebuild_is_running(const sgi_cluster *cluster, const uint8_t *id)
{
    const sgi_rebuilding *build;
    LIST_FOREACH(build, &cluster->rebuilds, link)
        if (is_of(build, id))
            return true;
    return false;
}

bool sgi_rebuild_note_growth(sgi_cluster *cluster, const uint8_t *id)
{
    sgi_rebuilding *build;
    bool any = false;
    LIST_FOREACH(build, &cluster->rebuilds, link)
        if (is_of(build, id))
            any = build->grew = true;
    return any;
}
