/* tasks/list: lists the client's tasks of 2025-11-25 (dialect L), newest first. The store
 * has all tasks: also the tasks of an earlier process, and tasks that have ended and left
 * memory. A task in memory is listed with its state in memory. New tasks come first in
 * the list, before the pages that were already read. So each task is listed once, even
 * when tasks are made or removed between two pages. A client whose name the server does
 * not know sees the tasks that its session made (session_mark.h). The store lists the
 * tasks of all such clients together, so one request may find none of its own, and
 * continue at its cursor.
 *
 * A cursor is the position of the last record that was checked. The cursor is encrypted,
 * so that only its owner can use it and nobody can read the task id in it. */
#include "engine/dialect/rows.h"
#include "base/thresholds.h"
#include "engine/dialect/tasks_2025/tasks_2025.h"

#include "engine/log/record.h"
#include "engine/cluster/rebuild.h"
#include "engine/log/refusal.h"
#include "engine/server/session_mark.h"

#define PAGE_MAX SGI_THRESHOLD(task_page)
/* The number of records that one job reads from the store. */
#define CHUNK SGI_THRESHOLD(task_chunk)
/* The largest number of records that one request reads, including records of other
 * dialects. */
#define LOOK_AT_MOST SGI_THRESHOLD(list_look_most)
#define STAMP_SIZE 8
#define CURSOR_MAX 8192 /* the longest cursor, in bytes */

typedef struct listing {
    segue_server *server; /* a counted reference */
    sgi_reply *reply;
    sgi_session_mark mark; /* of the client's session; no mark = the client has a name */
    /* the job that reads records from the store; NULL = no job is under way */
    sgi_store_job *job;
    /* the next record to check; NULL = all read records were checked */
    sgi_found_record *at;
    int64_t created_ms; /* creation time of the last record that was checked */
    /* task id of the last record that was checked; empty = no record was checked yet */
    sgi_buf position;
    sgi_buf tasks;       /* the listed tasks as JSON, with commas between them */
    segue_status status; /* the error that has stopped the listing; SEGUE_OK = no error */
    int32_t shown;
    int32_t looked;
    bool more;
} listing;

static void look(listing *list);

/* ---- cursors ---- */

static void write_stamp(uint8_t stamp[STAMP_SIZE], int64_t ms)
{
    for (size_t i = 0; i < STAMP_SIZE; i++)
        stamp[i] = (uint8_t)((uint64_t)ms >> (56 - 8 * i));
}

static int64_t read_stamp(const char *stamp)
{
    uint64_t ms = 0;
    for (size_t i = 0; i < STAMP_SIZE; i++)
        ms = ms << 8 | (uint8_t)stamp[i];
    return (int64_t)ms;
}

/* A cursor is valid for one list: that of a principal, or that of a session. what: room
 * for the texts of the subject. */
static sgi_seal_purpose good_for(const listing *list, const sgi_peer *peer,
                                 sgi_str what[2])
{
    what[0] = SGI_STR("tasks");
    what[1] = sgi_str_of(list->mark.text);
    return (sgi_seal_purpose){SGI_SEAL_CURSOR, peer->who->digest, what,
                              what[1].n ? 2 : 1};
}

/* Writes the member nextCursor: the creation time and task id of the last checked record,
 * as a sealed text. */
static void write_cursor(const listing *list, sgi_jw *w)
{
    const sgi_peer *peer = list->reply->peer;
    sgi_str what[2];
    const sgi_seal_purpose subject = good_for(list, peer, what);
    uint8_t stamp[STAMP_SIZE];
    sgi_buf all;
    sgi_buf_init(&all, sgi_engine_mem(list->reply->engine));
    write_stamp(stamp, list->created_ms);
    sgi_buf_add(&all, stamp, sizeof stamp);
    sgi_buf_add_str(&all, sgi_buf_str(&list->position));
    w->buf->failed |= all.failed;
    sgi_jw_key(w, "nextCursor");
    sgi_buf_add_char(w->buf, '"');
    if (!all.failed)
        sgi_seal_write(&peer->server->seal, &subject, 0, sgi_buf_str(&all), w->buf);
    sgi_buf_add_char(w->buf, '"');
    sgi_buf_free(&all);
}

static bool read_cursor(listing *list, const sgi_inbound *in)
{
    sgi_str what[2];
    const sgi_seal_purpose subject = good_for(list, in->peer, what);
    sgi_json cursor = sgi_json_get(in->params, "cursor");
    sgi_str text;
    sgi_buf bytes;
    if (!cursor.n)
        return true;
    if (!sgi_json_plain_string(cursor, &text) || text.n > CURSOR_MAX)
        return false;
    sgi_buf_init(&bytes, sgi_engine_mem(in->peer->server->engine));
    bool ok =
        sgi_seal_open(&in->peer->server->seal, &subject, text, &bytes) == SEGUE_OK &&
        bytes.len > STAMP_SIZE;
    if (ok) {
        list->created_ms = read_stamp(bytes.p);
        sgi_buf_add(&list->position, bytes.p + STAMP_SIZE, bytes.len - STAMP_SIZE);
    }
    sgi_buf_free(&bytes);
    return ok;
}

/* ---- the answer ---- */

static void free_list(listing *list)
{
    segue_server *server = list->server;
    if (list->job)
        sgi_store_job_free(list->job);
    sgi_buf_free(&list->position);
    sgi_buf_free(&list->tasks);
    sgi_free(sgi_engine_mem(server->engine), list, sizeof *list);
    sgi_server_unref(server);
}

static void answer(listing *list)
{
    sgi_reply *reply = list->reply;
    sgi_sending sending;
    if (list->status != SEGUE_OK) {
        sgi_reply_store_error(reply, SGI_UNLISTED, list->status);
    } else if (sgi_reply_begin_result(&sending, reply, NULL)) {
        sgi_jw_key(&sending.w, "tasks");
        sgi_jw_open(&sending.w, '[');
        sgi_buf_add_str(sending.w.buf, sgi_buf_str(&list->tasks));
        sgi_jw_close(&sending.w, ']');
        if (list->more)
            write_cursor(list, &sending.w);
        sending.w.buf->failed |= list->tasks.failed | list->position.failed;
        sgi_send_end(&sending);
    }
    sgi_reply_close(reply);
    free_list(list);
}

static bool is_own(const listing *list, const sgi_op *op)
{
    return sgi_task_is_visible(list->reply->peer, op, &sgi_srv_tasks_2025) &&
           sgi_session_mark_fits(&list->mark, sgi_op_session(op));
}

static void show(listing *list, const sgi_op *op)
{
    sgi_jw w = sgi_jw_to(&list->tasks);
    if (!is_own(list, op))
        return;
    if (list->shown++)
        sgi_buf_add_char(&list->tasks, ',');
    sgi_jw_open(&w, '{');
    sgi_tasks_2025_write_task(&w, op, list->reply->peer);
    sgi_jw_close(&w, '}');
}

/* ---- reading the records ---- */

static void records_arrived(sgi_store_job *job)
{
    listing *list = job->user;
    list->job = job;
    list->at = TAILQ_FIRST(&job->found);
    list->status = job->status;
    look(list);
}

static void ask_store(listing *list)
{
    sgi_committer *committer = &list->server->committer;
    const sgi_mem *mem = sgi_engine_mem(list->server->engine);
    sgi_store_job *job =
        sgi_store_job_new(committer, SGI_STORE_JOB_LIST, records_arrived, list);
    bool ok = job && !list->position.failed;
    if (ok && list->position.len) {
        job->task_id = sgi_text_dup(mem, sgi_buf_str(&list->position));
        ok = job->task_id != NULL;
    }
    if (!ok) {
        if (job)
            sgi_store_job_free(job);
        list->status = SEGUE_E_NOMEM;
        answer(list);
        return;
    }
    memcpy(job->key, list->reply->peer->who->digest, sizeof job->key);
    job->now_ms = list->created_ms;
    job->max_found = CHUNK;
    sgi_committer_add_job(committer, job);
}

static void rebuilt(void *user, sgi_op *op, segue_status status)
{
    listing *list = user;
    if (op && list->reply->peer)
        show(list, op);
    else if (!op && status != SEGUE_E_NOT_FOUND && status != SEGUE_E_STORE_CORRUPT)
        /* a task with a missing or damaged record is left out, and the listing
         * continues */
        list->status = status;
    look(list);
}

/* Called when all records of the chunk were checked. Reads another chunk, or answers when
 * the store has no further record or enough records were read. */
static void chunk_done(listing *list)
{
    bool full = list->job->found_count == CHUNK;
    sgi_store_job_free(list->job);
    list->job = NULL;
    list->more = full;
    if (full && list->looked < LOOK_AT_MOST)
        ask_store(list);
    else
        answer(list);
}

static bool is_listed(const listing *list, const sgi_op *op,
                      const segue_store_record *record)
{
    sgi_engine *engine = list->server->engine;
    if (op)
        return is_own(list, op);
    return record->purge_ms > sgi_wall_now(&engine->env) &&
           sgi_record_may_be_listed(engine, record, &sgi_srv_tasks_2025, &list->mark);
}

static void move_past(listing *list, const sgi_found_record *found)
{
    list->looked++;
    list->created_ms = found->record.created_ms;
    sgi_buf_truncate(&list->position, 0);
    sgi_buf_add_str(&list->position, sgi_str_of(found->record.task_id));
    list->at = TAILQ_NEXT(found, link);
}

/* Checks the records one by one. Stops when a task must be rebuilt from its record, when
 * another chunk must be read, or when the page is complete. */
static void look(listing *list)
{
    int32_t page = list->server->options.page_size;
    for (;;) {
        const sgi_found_record *found = list->at;
        if (list->status != SEGUE_OK || !list->reply->peer) {
            answer(list);
            return;
        }
        if (!found) {
            chunk_done(list);
            return;
        }
        const sgi_op *op = sgi_cluster_known_task(&list->server->cluster,
                                                  sgi_str_of(found->record.task_id));
        bool listed = is_listed(list, op, &found->record);
        if (listed && list->shown == (page < PAGE_MAX ? page : PAGE_MAX)) {
            list->more = true;
            answer(list);
            return;
        }
        move_past(list, found);
        if (listed && !op) {
            sgi_rebuild_op_once(&list->server->cluster, &found->record, rebuilt, list);
            return;
        }
        if (listed)
            show(list, op);
    }
}

/* ---- the method tasks/list ---- */

static void begin(listing *list, const sgi_inbound *in)
{
    if (!read_cursor(list, in)) {
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS, "Invalid cursor", NULL);
        free_list(list);
        return;
    }
    list->reply = sgi_reply_open(in, false);
    if (list->reply)
        ask_store(list);
    else
        free_list(list);
}

void sgi_tasks_2025_list(const sgi_inbound *in)
{
    segue_server *server = in->peer->server;
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    if (!sgi_peer_may_list_tasks(in->peer)) {
        sgi_answer_error(in, SGI_RPC_METHOD_NOT_FOUND, "Method not found", NULL);
        return;
    }
    listing *list = sgi_zalloc(mem, sizeof *list);
    if (!list) {
        sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR, "Out of memory", NULL);
        return;
    }
    list->server = server;
    sgi_server_ref(server);
    sgi_buf_init(&list->position, mem);
    sgi_buf_init(&list->tasks, mem);
    if (sgi_session_mark_make(in->peer, &list->mark)) {
        begin(list, in);
        return;
    }
    sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR, "Out of memory", NULL);
    free_list(list);
}
