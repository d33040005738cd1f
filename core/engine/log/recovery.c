/* Two ways lead here: somebody looks for an operation, which then stays another server's
 * (following.h), or the store has given it to us, which ends in sgi_recover_one. One that
 * we follow and are given goes on in place, with whoever looks at it
 * (sgi_followed_own). */
#include "engine/log/recovery.h"

#include "engine/serving/call.h"
#include "engine/dialect/dialect.h"
#include "engine/error.h"
#include "engine/log/dropping.h"
#include "engine/log/following.h"
#include "engine/log/record.h"
#include "engine/serving/mail.h"
#include "engine/serving/resumable.h"
#include "engine/serving/task.h"

#define CLAIM_AGAIN_MS 1000

/* ---- one operation ---- */

/* What becomes of it. */
typedef enum use { FOR_ONCE, FOR_GOOD, APART, OURS } use;

typedef struct sgi_rebuilding {
    LIST_ENTRY(sgi_rebuilding) link;
    sgi_op *op;
    use purpose;
    bool ended; /* as its record says */
    bool grew;  /* news came meanwhile */
    sgi_found_fn done;
    void *user;
} sgi_rebuilding;

static void read_more(sgi_rebuilding *build);

static bool is_followed(const sgi_rebuilding *build)
{
    return build->purpose == FOR_GOOD && !build->ended;
}

/* All of its log is here: others may have it now. It is in the maps from here on, unless
 * that was only a look. */
static void hand_over(sgi_rebuilding *build)
{
    sgi_op *op = build->op;
    segue_server *server = op->server;
    bool is_mine = build->purpose == OURS || sgi_op_has_ended(op); /* that is nobody's */
    bool follows = !is_mine && is_followed(build) && server->stage < SGI_SERVER_DEAD;
    bool stays = is_mine || follows;
    op->hold = is_mine ? SGI_HOLD_HERE : SGI_HOLD_ELSEWHERE;
    sgi_server_op_known(op);
    if (follows)
        sgi_followed_known(op);
    sgi_op_ref(op);
    sgi_resumable_look(op);
    build->done(build->user, op, SEGUE_OK);
    sgi_server_op_visible(op);
    if (!stays)
        sgi_server_op_forget(op);
    else if (is_mine && server->stage == SGI_SERVER_DEAD)
        sgi_server_op_release(op); /* it came when all the others had gone */
    else if (build->grew)
        sgi_followed_look(op);
    sgi_op_unref(op);
}

static void end_rebuild(sgi_rebuilding *build, segue_status status)
{
    sgi_op *op = build->op;
    sgi_engine *engine = op->engine;
    segue_server *server = op->server;
    sgi_map_node *known = sgi_map_find(&server->by_task, sgi_str_of(op->task_id));
    LIST_REMOVE(build, link);
    sgi_server_ref(server);
    if (status == SEGUE_OK && !op->resumable && !sgi_op_is_whole(op))
        status = SEGUE_E_STORE_CORRUPT; /* what is missing was not void */
    if (sgi_op_has_ended(op) && is_followed(build) && !known)
        sgi_followed_leave(server, op->id);
    if (status == SEGUE_OK && build->purpose == APART)
        build->done(build->user, op, SEGUE_OK);
    else if (status == SEGUE_OK && known)
        build->done(build->user, SGI_OWNER(known, sgi_op, by_task), SEGUE_OK);
    else if (status == SEGUE_OK)
        hand_over(build);
    if (status != SEGUE_OK) {
        if (status != SEGUE_E_NOT_FOUND)
            sgi_engine_log(engine, SEGUE_LOG_ERROR,
                           "store: an operation cannot be rebuilt: %s",
                           sgi_status_name(status));
        build->done(build->user, NULL, status);
    }
    sgi_op_unref(op);
    sgi_release(sgi_engine_mem(engine), build, sizeof *build);
    sgi_server_unref(server);
}

static void entries_arrived(sgi_job *job)
{
    sgi_rebuilding *build = job->user;
    sgi_op *op = build->op;
    const sgi_entry *entry;
    segue_status status = job->status;
    bool more = job->bytes >= job->max_bytes;
    TAILQ_FOREACH(entry, &job->entries, link) {
        if (status == SEGUE_OK)
            status = sgi_op_apply(op, entry);
    }
    sgi_job_free(job);
    if (status == SEGUE_OK && more)
        read_more(build);
    else
        end_rebuild(build, status);
}

static void read_more(sgi_rebuilding *build)
{
    sgi_op *op = build->op;
    sgi_job *job = sgi_job_new(&op->server->keeper, SGI_JOB_READ, entries_arrived, build);
    if (!job) {
        end_rebuild(build, SEGUE_E_NOMEM);
        return;
    }
    memcpy(job->id, op->id, sizeof job->id);
    job->after = op->durable;
    job->max_bytes = op->server->read_bytes;
    job->follows = is_followed(build) || build->purpose == APART;
    sgi_keeper_ask(&op->server->keeper, job);
}

static void rebuild(segue_server *server, const segue_store_record *record, use purpose,
                    sgi_found_fn done, void *user)
{
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    sgi_op *op = NULL;
    sgi_rebuilding *build = sgi_alloc(mem, sizeof *build);
    segue_status status = build ? sgi_record_read(server, record, &op) : SEGUE_E_NOMEM;
    if (status != SEGUE_OK) {
        sgi_release(mem, build, sizeof *build);
        done(user, NULL, status);
        return;
    }
    op->item = sgi_item_find(
        server, sgi_call_is_question(op->kind) ? SEGUE_ITEM_QUESTION : SEGUE_ITEM_TOOL,
        sgi_str_of(op->item_name));
    if (op->item)
        sgi_item_ref(op->item);
    op->torn = purpose == OURS && record->ended == SEGUE_STORE_TORN;
    *build = (sgi_rebuilding){.op = op,
                              .purpose = purpose,
                              .ended = record->ended == SEGUE_STORE_ENDED,
                              .done = done,
                              .user = user};
    LIST_INSERT_HEAD(&server->rebuilds, build, link);
    read_more(build);
}

void sgi_rebuild(segue_server *server, const segue_store_record *record,
                 sgi_found_fn done, void *user)
{
    rebuild(server, record, FOR_GOOD, done, user);
}

void sgi_rebuild_once(segue_server *server, const segue_store_record *record,
                      sgi_found_fn done, void *user)
{
    rebuild(server, record, FOR_ONCE, done, user);
}

void sgi_rebuild_apart(segue_server *server, const segue_store_record *record,
                       sgi_found_fn done, void *user)
{
    rebuild(server, record, APART, done, user);
}

static bool is_of(const sgi_rebuilding *build, const uint8_t *id)
{
    return !memcmp(build->op->id, id, sizeof build->op->id);
}

bool sgi_is_rebuilt(const segue_server *server, const uint8_t *id)
{
    const sgi_rebuilding *build;
    LIST_FOREACH(build, &server->rebuilds, link)
        if (is_of(build, id))
            return true;
    return false;
}

/* Several may want it at once, and each reads for itself. */
bool sgi_rebuild_grew(segue_server *server, const uint8_t *id)
{
    sgi_rebuilding *build;
    bool any = false;
    LIST_FOREACH(build, &server->rebuilds, link)
        if (is_of(build, id))
            any = build->grew = true;
    return any;
}

/* ---- those that are ours now ---- */

static void open_server(segue_server *server)
{
    if (server->stage == SGI_SERVER_RECOVERING)
        sgi_server_open(server);
}

static void one_done(segue_server *server)
{
    if (--server->recovering == 0) {
        open_server(server);
        sgi_letters_deal(&server->keeper);
    }
    sgi_server_unref(server);
}

/* Without memory for what only a client that resumes it is told, it ends without. */
static void give_up(sgi_op *op)
{
    const char *text = op->torn ? "The store has lost the end of it" : "Server restarted";
    if (!op->resumable || op->is_task ||
        sgi_op_fail(op, SGI_ENTRY_ERROR, SGI_RPC_INTERNAL_ERROR, sgi_str_of(text),
                    SGI_STR("{\"reason\":\"server_restarted\"}")) != SEGUE_OK)
        sgi_op_give_up(op, text);
}

/* Its time may have passed while nobody ran; its tool may be gone or may not be able to
 * run twice; the store may have lost what it did last, which cannot be done once more
 * under the same numbers. Whatever it is, it is decided here, once. */
void sgi_recover_one(segue_server *server, sgi_op *op)
{
    bool is_alive = server->stage < SGI_SERVER_DEAD;
    if (is_alive && sgi_mail_is_box(op)) {
        sgi_mail_drop(op);
    } else if (is_alive && !sgi_op_has_ended(op)) {
        bool expired = sgi_op_expiry(op) <= sgi_wall(&server->engine->env) ||
                       sgi_resumable_is_over(op);
        bool restartable = op->item && op->item->options.flags & SEGUE_TOOL_RESTARTABLE;
        server->counts.taken_over++;
        if (op->is_task || op->resumable) {
            op->who->live_tasks++;
            op->counted = true;
        }
        if (op->torn)
            sgi_op_torn(op);
        if (expired)
            sgi_task_expire(op);
        else if (op->torn || !restartable || sgi_server_run(op, true) != SEGUE_OK)
            give_up(op);
        else
            sgi_server_start_ttl(op);
        sgi_resumable_wake(op);
    }
    one_done(server);
}

static void drop_claim(segue_server *server, sgi_found *found)
{
    TAILQ_REMOVE(&server->claims, found, link);
    sgi_map_remove(&server->claims_by_id, &found->by_id);
    sgi_release(sgi_engine_mem(server->engine), found, found->size);
}

void sgi_claims_free(segue_server *server)
{
    sgi_found *found;
    while ((found = TAILQ_FIRST(&server->claims)))
        drop_claim(server, found);
}

static void claim_later(sgi_timer *timer);

static void try_later(segue_server *server)
{
    if (server->stage < SGI_SERVER_DEAD)
        sgi_engine_timer(server->engine, &server->claim_timer, CLAIM_AGAIN_MS,
                         claim_later);
}

/* What cannot be read now is read later: it is ours, and nobody else's. */
static void go_on(void *user, sgi_op *op, segue_status status)
{
    sgi_found *found = user;
    segue_server *server = found->user;
    bool again = status == SEGUE_E_NOMEM || status == SEGUE_E_STORE;
    found->busy = false;
    if (!op && again)
        try_later(server);
    else
        drop_claim(server, found);
    if (!op)
        one_done(server);
    else if (sgi_op_is_elsewhere(op))
        sgi_followed_own(op); /* somebody has asked for it meanwhile */
    else
        sgi_recover_one(server, op);
}

static void take(segue_server *server, sgi_found *found)
{
    sgi_map_node *node =
        sgi_map_find(&server->by_task, sgi_str_of(found->record.task_id));
    sgi_op *op = node ? SGI_OWNER(node, sgi_op, by_task) : NULL;
    if (op && sgi_op_has_ended(op) && found->record.ended == SEGUE_STORE_TORN) {
        sgi_server_op_forget(op); /* the store has lost its end: what it has now counts */
        op = NULL;
    }
    if (op && (!sgi_op_is_elsewhere(op) || op->claimed)) {
        drop_claim(server, found); /* its lease had lapsed, and nobody wanted it */
        return;
    }
    server->recovering++;
    sgi_server_ref(server);
    if (op) {
        op->torn = found->record.ended == SEGUE_STORE_TORN;
        drop_claim(server, found);
        sgi_followed_own(op);
        return;
    }
    found->busy = true;
    found->user = server;
    rebuild(server, &found->record, OURS, go_on, found);
}

/* A store that did not hear that it has shown one shows it again. What was read last is
 * as new as the other, or newer; what is being read must not be read twice. */
static void add_claim(segue_server *server, sgi_found *found)
{
    sgi_str id = {(const char *)found->record.id, sizeof found->record.id};
    sgi_map_node *node = sgi_map_find(&server->claims_by_id, id);
    sgi_found *known = node ? SGI_OWNER(node, sgi_found, by_id) : NULL;
    if (known && known->busy) {
        sgi_release(sgi_engine_mem(server->engine), found, found->size);
        return;
    }
    if (known)
        drop_claim(server, known);
    TAILQ_INSERT_TAIL(&server->claims, found, link);
    sgi_map_put(&server->claims_by_id, &found->by_id, id);
}

static void add_claims(segue_server *server, struct sgi_found_list *list)
{
    sgi_found *found, *next;
    SGI_TAILQ_EACH(found, list, link, next) {
        TAILQ_REMOVE(list, found, link);
        add_claim(server, found);
    }
}

/* One that was dealt with at once has left the list by then. */
static void take_all(segue_server *server)
{
    sgi_found *found, *next;
    sgi_server_ref(server);
    SGI_TAILQ_EACH(found, &server->claims, link, next)
        if (!found->busy)
            take(server, found);
    sgi_server_unref(server);
}

static void claim_ended(segue_server *server)
{
    bool again = server->claim_again;
    server->claiming = server->claim_again = false;
    sgi_server_ref(server);
    one_done(server);
    if (again)
        sgi_recover_orphans(server);
    sgi_server_unref(server);
}

static void released(sgi_job *job)
{
    segue_server *server = job->user;
    sgi_job_free(job);
    try_later(server);
    claim_ended(server);
}

static void claimed(sgi_job *job)
{
    segue_server *server = job->user;
    if (job->status != SEGUE_OK)
        sgi_engine_log(server->engine, SEGUE_LOG_ERROR, "store: recovery failed: %s",
                       sgi_status_name(job->status));
    add_claims(server, &job->found);
    take_all(server);
    if (job->lost) { /* there is no memory for another job */
        job->kind = SGI_JOB_RELEASE;
        job->status = SEGUE_OK;
        job->lost = false;
        job->done = released;
        sgi_keeper_ask(&server->keeper, job);
        return;
    }
    if (job->status != SEGUE_OK)
        try_later(server);
    sgi_job_free(job);
    claim_ended(server);
}

/* False when out of memory. */
static bool claim(segue_server *server)
{
    sgi_job *job = sgi_job_new(&server->keeper, SGI_JOB_CLAIM, claimed, server);
    if (!job)
        return false;
    server->claiming = true;
    server->recovering++;
    sgi_server_ref(server);
    sgi_keeper_ask(&server->keeper, job);
    return true;
}

void sgi_recover(segue_server *server)
{
    server->stage = SGI_SERVER_RECOVERING;
    server->recovering = 1;
    sgi_server_ref(server);
    if (!claim(server)) {
        sgi_engine_log(server->engine, SEGUE_LOG_ERROR,
                       "out of memory: nothing is recovered yet");
        try_later(server);
    }
    one_done(server);
}

static void claim_later(sgi_timer *timer)
{
    segue_server *server = SGI_OWNER(timer, segue_server, claim_timer);
    sgi_server_ref(server);
    take_all(server);
    sgi_recover_orphans(server);
    sgi_server_unref(server);
}

/* One that is not open yet claims when it begins; one that closes leaves them to
 * others. */
void sgi_recover_orphans(segue_server *server)
{
    if (server->stage != SGI_SERVER_OPEN && server->stage != SGI_SERVER_RECOVERING)
        return;
    if (server->claiming)
        server->claim_again = true;
    else if (!claim(server))
        try_later(server);
}
