#include "engine/log/recovery.h"

#include "engine/serving/call.h"
#include "engine/dialect/dialect.h"
#include "engine/error.h"
#include "engine/log/dropping.h"
#include "engine/log/record.h"
#include "engine/serving/resumable.h"
#include "engine/serving/task.h"

#define CHUNK_BYTES (1024 * 1024)

/* ---- one operation ---- */

typedef struct rebuilding {
    sgi_op *op;
    sgi_found_fn done;
    void *user;
} rebuilding;

static void read_more(rebuilding *build);
static void go_on(void *user, sgi_op *op, segue_status status);

static void end_rebuild(rebuilding *build, segue_status status)
{
    sgi_op *op = build->op;
    sgi_engine *engine = op->engine;
    segue_server *server = op->server;
    sgi_map_node *known = sgi_map_find(&server->by_task, sgi_str_of(op->task_id));
    sgi_server_ref(server);
    if (status == SEGUE_OK && !op->resumable && !sgi_op_is_whole(op))
        status = SEGUE_E_STORE_CORRUPT; /* what is missing was not void */
    if (status == SEGUE_OK && known) {
        build->done(build->user, SGI_OWNER(known, sgi_op, by_task), SEGUE_OK);
    } else if (status == SEGUE_OK) {
        op->ran = true;
        op->elsewhere = build->done != go_on && !sgi_op_has_ended(op);
        sgi_server_op_known(op);
        sgi_op_ref(op);
        build->done(build->user, op, SEGUE_OK);
        sgi_server_op_visible(op);
        /* not claimed by this process: its log grows in another one, so who asks again is
         * told from the store again */
        if (op->elsewhere)
            sgi_server_op_forget(op);
        else if (server->stage == SGI_SERVER_DEAD)
            sgi_server_op_release(op); /* it came when all the others had gone */
        sgi_op_unref(op);
    } else {
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
    rebuilding *build = job->user;
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

static void read_more(rebuilding *build)
{
    sgi_op *op = build->op;
    sgi_job *job = sgi_job_new(&op->server->keeper, SGI_JOB_READ, entries_arrived, build);
    if (!job) {
        end_rebuild(build, SEGUE_E_NOMEM);
        return;
    }
    memcpy(job->id, op->id, sizeof job->id);
    job->after = op->durable;
    job->max_bytes = CHUNK_BYTES;
    sgi_keeper_ask(&op->server->keeper, job);
}

void sgi_rebuild(segue_server *server, const segue_store_record *record,
                 sgi_found_fn done, void *user)
{
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    sgi_op *op = NULL;
    rebuilding *build = sgi_alloc(mem, sizeof *build);
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
    *build = (rebuilding){op, done, user};
    read_more(build);
}

/* ---- all of them ---- */

static void open_server(segue_server *server)
{
    if (server->stage == SGI_SERVER_RECOVERING)
        sgi_server_open(server);
}

static void one_done(segue_server *server)
{
    if (--server->recovering == 0)
        open_server(server);
    sgi_server_unref(server);
}

/* Without memory for what only a client that resumes it is told, it ends without. */
static void give_up(sgi_op *op)
{
    static const char text[] = "Server restarted";
    if (!op->resumable || op->is_task ||
        sgi_op_fail(op, SGI_ENTRY_ERROR, SGI_RPC_INTERNAL_ERROR, SGI_STR(text),
                    SGI_STR("{\"reason\":\"server_restarted\"}")) != SEGUE_OK)
        sgi_op_give_up(op, text);
}

/* Its time may have passed while nobody ran; its tool may be gone or may not be able to
 * run twice. Whatever it is, it is decided here, once. */
static void go_on(void *user, sgi_op *op, segue_status status)
{
    segue_server *server = user;
    if (op && !sgi_op_has_ended(op) && server->stage < SGI_SERVER_DEAD) {
        bool expired = op->ttl_ms >= 0 &&
                       op->created_ms + op->ttl_ms <= sgi_wall(&server->engine->env);
        bool restartable = op->item && op->item->options.flags & SEGUE_TOOL_RESTARTABLE;
        if (op->is_task || op->resumable) {
            op->who->live_tasks++;
            op->counted = true;
        }
        if (expired)
            sgi_task_expire(op);
        else if (!restartable || sgi_server_run(op, true) != SEGUE_OK)
            give_up(op);
        else
            sgi_server_start_ttl(op);
        sgi_resumable_wake(op);
    }
    (void)status;
    one_done(server);
}

static void claimed(sgi_job *job)
{
    segue_server *server = job->user;
    sgi_found *found;
    if (job->status != SEGUE_OK)
        sgi_engine_log(server->engine, SEGUE_LOG_ERROR, "store: recovery failed: %s",
                       sgi_status_name(job->status));
    TAILQ_FOREACH(found, &job->found, link) {
        server->recovering++;
        sgi_server_ref(server);
        sgi_rebuild(server, &found->record, go_on, server);
    }
    sgi_job_free(job);
    one_done(server);
}

void sgi_recover(segue_server *server)
{
    sgi_job *job = sgi_job_new(&server->keeper, SGI_JOB_CLAIM, claimed, server);
    server->stage = SGI_SERVER_RECOVERING;
    server->recovering = 1;
    sgi_server_ref(server);
    if (job) {
        sgi_keeper_ask(&server->keeper, job);
        return;
    }
    sgi_engine_log(server->engine, SEGUE_LOG_ERROR,
                   "out of memory: nothing is recovered");
    one_done(server);
}
