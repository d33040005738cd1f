/* The fake store keeps committed entries as rows in one list. The fake store checks the
 * rules on which stores rely: an operation is created once, before its entries, and the
 * entry numbers have no gap. A breach aborts, because it is a fault of the code under
 * test. The store uses libc memory, so that a test allocator counts the engine alone. */
#include "fake_host.h"

#include "engine/dialect/rows.h"
#include "engine/server/dialects.h"
#include "engine/server/serving.h"
#include "engine/log/record.h"
#include "engine/reverse/reverse.h"

#include <stdio.h>
#include <stdlib.h>

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fake_host: %s\n", what);
    abort();
}

/* ---- clock and chance ---- */

static int64_t monotonic_ms(void *user)
{
    return ((fake_host *)user)->clock_ms;
}

static int64_t wall_ms(void *user)
{
    return FAKE_EPOCH + ((fake_host *)user)->clock_ms;
}

static uint64_t next_chance(fake_host *h)
{
    uint64_t z = h->chance += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint32_t fake_host_chance(fake_host *h, uint32_t n)
{
    return (uint32_t)(next_chance(h) % n);
}

static int32_t random_bytes(void *user, void *bytes, size_t len)
{
    fake_host *h = user;
    unsigned char *out = bytes;
    for (size_t i = 0; i < len; i++)
        out[i] = (unsigned char)next_chance(h);
    return h->random_fails ? -1 : 0;
}

/* ---- what the engine calls ---- */

static void lock(void *user)
{
    must(((fake_host *)user)->locked++ == 0, "locked twice");
}

static void unlock(void *user)
{
    must(--((fake_host *)user)->locked == 0, "unlocked without a lock");
}

static void log_line(void *user, int32_t level, const char *text)
{
    (void)level;
    (void)text;
    ((fake_host *)user)->logs++;
}

static void wake(void *user)
{
    ((fake_host *)user)->wakes++;
}

static void output(void *user, sgi_conn *conn)
{
    (void)conn;
    ((fake_host *)user)->outputs++;
}

static void input(void *user, sgi_conn *conn)
{
    (void)conn;
    ((fake_host *)user)->inputs++;
}

static void close_conn(void *user, sgi_conn *conn)
{
    fake_host *h = user;
    h->closes++;
    h->closing = conn;
}

static bool reopen(void *user, sgi_conn *conn)
{
    fake_host *h = user;
    (void)conn;
    h->reopens++;
    return !h->no_reopen;
}

static void store_due(void *user, sgi_committer *committer)
{
    (void)committer;
    ((fake_host *)user)->stores++;
}

static void retain(void *user)
{
    ((fake_host *)user)->handles++;
}

static void release(void *user)
{
    ((fake_host *)user)->handles--;
}

/* Makes a digest of all bytes, which is not secret. */
static bool digest(sgi_hasher *hasher, uint8_t out[SGI_DIGEST_SIZE], const sgi_str *parts,
                   size_t count)
{
    uint64_t seed[2] = {count, 0};
    (void)hasher;
    for (int word = 0; word < SGI_DIGEST_SIZE / 8; word++) {
        for (size_t i = 0; i < count; i++)
            seed[0] = sgi_siphash(seed, parts[i].p, parts[i].n) + (uint64_t)word;
        memcpy(out + word * 8, seed, 8);
    }
    return true;
}

static void start_engine(fake_host *h, const sgi_mem *mem, uint64_t seed)
{
    h->chance = seed;
    h->locked = 1;
    h->hooks = (segue_hooks){sizeof h->hooks, h, monotonic_ms, wall_ms, random_bytes};
    sgi_env env = {mem, &h->hooks};
    sgi_host_functions host = {h,      lock,    unlock,     log_line, wake,
                               output, input,   close_conn, reopen,   store_due,
                               retain, release, NULL};
    sgi_buf_init(&h->said, &sgi_mem_libc);
    sgi_engine_init(&h->engine, &env, &host, digest, &sgi_crypto_aead);
    h->engine.hosting = &sgi_reverse_hosting;
    h->engine.question_tasks = &sgi_reverse_question_tasks;
    sgi_engine_set_limits(&h->engine, (size_t)4 << 20, 64, (size_t)1 << 20);
}

void fake_host_init(fake_host *h, const sgi_mem *mem, uint64_t seed)
{
    *h = (fake_host){0};
    LIST_INIT(&h->records);
    TAILQ_INIT(&h->rows);
    start_engine(h, mem, seed);
}

static void end_engine(fake_host *h)
{
    must(h->locked == 1, "the lock was left open");
    must(TAILQ_EMPTY(&h->engine.ready), "callbacks are still due");
    must(sgi_timers_next_due_ms(&h->engine.timers) == INT64_MAX, "timers are still set");
    sgi_commit_free(sgi_engine_mem(&h->engine), &h->batch);
    sgi_engine_free(&h->engine);
}

void fake_host_crash(fake_host *h, const sgi_mem *mem, uint64_t seed)
{
    sgi_buf_free(&h->said);
    h->batch = (sgi_commit){0};
    h->landed = false;
    h->closing = NULL;
    h->server = NULL;
    start_engine(h, mem, seed);
}

void fake_host_reboot(fake_host *h, uint64_t seed)
{
    const sgi_mem *mem = sgi_engine_mem(&h->engine);
    end_engine(h);
    fake_host_crash(h, mem, seed);
}

void fake_host_free(fake_host *h)
{
    fake_record *record;
    fake_row *row;
    end_engine(h);
    sgi_buf_free(&h->said);
    while ((record = LIST_FIRST(&h->records))) {
        LIST_REMOVE(record, link);
        free(record);
    }
    while ((row = TAILQ_FIRST(&h->rows))) {
        TAILQ_REMOVE(&h->rows, row, link);
        free(row);
    }
}

void fake_host_advance(fake_host *h, int64_t ms)
{
    int64_t end = h->clock_ms + ms;
    for (;;) {
        int64_t due = sgi_timers_next_due_ms(&h->engine.timers);
        if (due > end)
            break;
        if (due > h->clock_ms)
            h->clock_ms = due;
        sgi_timers_run_due(&h->engine.timers, h->clock_ms);
    }
    h->clock_ms = end;
}

int32_t fake_host_deliver(fake_host *h)
{
    int32_t ran = 0;
    while (!TAILQ_EMPTY(&h->engine.ready))
        ran += sgi_engine_run_callbacks(&h->engine, 64);
    return ran;
}

/* ---- operations ---- */

static void on_call(void *user, segue_call *call)
{
    (void)user;
    (void)call; /* The call is never ended here, because the tests append to its operation
                 * themselves. */
}

segue_server *fake_server_new(fake_host *h)
{
    segue_server_options options = {
        .struct_size = sizeof options,
        .name = "fake",
        .version = "1",
        .page_size = 100,
        .max_result_bytes = 16 << 20,
        .max_log_bytes = 64 << 20,
        .max_segments = 1000000,
        .max_inputs = 64,
        .max_tasks = 100,
        .max_requests = 100,
        .max_streams = 16,
        .max_ttl_ms = -1,
        .grace_ms = 1000,
        .lookups_per_second = 100,
        .fetches_per_second = 1000,
        .max_principal_requests = 1000,
        .max_principal_bytes = 256 << 20,
        .max_server_requests = 1000,
        .max_server_bytes = 256 << 20,
    };
    segue_item_options tool = {.struct_size = sizeof tool,
                               .on_call = on_call,
                               .task = SEGUE_TASK_MAY,
                               .ttl_ms = 3600 * 1000,
                               .poll_ms = 1000};
    segue_server *server = NULL;
    if (sgi_server_new(&h->engine, &sgi_serving_mcp, &options, true, &server) != SEGUE_OK)
        return NULL;
    if (sgi_item_add(server, SEGUE_ITEM_TOOL, SGI_STR("{\"name\":\"tool\"}"), &tool,
                     NULL) != SEGUE_OK) {
        sgi_server_unref(server);
        return NULL;
    }
    server->stage = SGI_SERVER_OPEN;
    server->cluster.takes = true; /* the state after sgi_recover_ops */
    h->server = server;
    return server;
}

void fake_server_end(segue_server *server)
{
    fake_host *h = server->engine->host.user;
    if (server->stage != SGI_SERVER_DEAD)
        sgi_server_shut_down(server);
    if (h->batch.op_count)
        fake_store_done(h, SEGUE_OK);
    fake_store_settle(h);
    fake_host_deliver(h);
    h->server = NULL;
    sgi_server_unref(server);
    fake_host_deliver(h);
}

sgi_op *fake_op_new(segue_server *server)
{
    static const uint8_t nobody[SGI_DIGEST_SIZE];
    sgi_op *op =
        sgi_served_op_new(server, SGI_STR("tool"), SGI_STR("{\"name\":\"tool\"}"));
    if (!op)
        return NULL;
    op->served->who =
        sgi_principal_find_or_new(&server->principals, server->engine, nobody);
    sgi_served_set_item(op, sgi_item_find(server, SEGUE_ITEM_TOOL, SGI_STR("tool")));
    op->served->caps = SGI_CAP_TASKS | SGI_CAP_ELICITATION;
    if (op->served->who)
        return op;
    sgi_op_unref(op);
    return NULL;
}

/* Does what sgi_op_turn_into_task does, without the limit on live tasks. */
sgi_op *fake_task_new(segue_server *server)
{
    char id[SGI_OPERATION_TEXT + 1];
    sgi_op *op = fake_op_new(server);
    if (!op)
        return NULL;
    sgi_operation_text(&server->engine->env, id);
    sgi_operation_id(&server->engine->env, op->id);
    op->ttl_ms = op->served->item->options.ttl_ms;
    op->head.tasking = SGI_TASKING_YES;
    op->served->dialect = &sgi_srv_tasks_ext;
    if (sgi_op_turn_into_stored(op, sgi_str_of(id)) != SEGUE_OK) {
        sgi_op_unref(op);
        return NULL;
    }
    sgi_server_put_in_maps(op);
    return op;
}

sgi_op *fake_op_replay(fake_host *h, const sgi_op *op)
{
    sgi_op *copy = NULL;
    const fake_row *row = NULL;
    segue_status status = sgi_op_new_from_record(
        &h->server->committer, &fake_store_find(h, op->id)->record, &copy);
    const sgi_mem *mem = sgi_engine_mem(&h->engine);
    while (status == SEGUE_OK &&
           (row = fake_store_next(h, op->id, row ? row->entry.seq : 0))) {
        const segue_store_entry *from = &row->entry;
        sgi_entry *entry = sgi_entry_new(mem, from->kind, from->data, from->data_len);
        if (!entry) {
            status = SEGUE_E_NOMEM;
            break;
        }
        entry->seq = from->seq;
        entry->segment = from->segment;
        entry->event = from->event;
        entry->at_ms = from->at_ms;
        status = sgi_op_apply_stored_entry(copy, entry);
        sgi_entry_free(mem, entry);
    }
    must(status == SEGUE_OK || status == SEGUE_E_NOMEM, "what was stored is refused");
    if (status == SEGUE_OK || !copy)
        return copy;
    sgi_op_unref(copy);
    return NULL;
}

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* Skips questions whose ASK entry could not be written: they stay in the list but were
 * never asked. */
static const sgi_op_question *next_input(const sgi_op *op, const sgi_op_question *input)
{
    input = input ? TAILQ_NEXT(input, link) : TAILQ_FIRST(&op->head.inputs);
    while (input && input->asked == UINT64_MAX)
        input = TAILQ_NEXT(input, link);
    return input;
}

static const char *input_difference(const sgi_op *a, const sgi_op *b)
{
    const sgi_op_question *one = next_input(a, NULL);
    const sgi_op_question *other = next_input(b, NULL);
    for (; one && other; one = next_input(a, one), other = next_input(b, other)) {
        if (!is_same_text(one->key, other->key) ||
            !is_same_text(one->method, other->method) || one->asked != other->asked ||
            !is_same_text(one->params, other->params))
            return "a question";
        if (one->answered != other->answered ||
            (one->answered && !is_same_text(one->answer, other->answer)))
            return "an answer";
    }
    return one || other ? "the questions" : NULL;
}

const char *fake_op_difference(const sgi_op *a, const sgi_op *b)
{
    if (a->head.next_log != b->head.next_log || a->head.next_seg != b->head.next_seg ||
        a->head.next_evt != b->head.next_evt)
        return "the counters";
    if (a->head.log_bytes != b->head.log_bytes)
        return "the size of the log";
    if (a->head.final != b->head.final || a->head.final_seq != b->head.final_seq ||
        a->head.ended_ms != b->head.ended_ms ||
        !is_same_text(a->head.final_data, b->head.final_data))
        return "the end";
    if (!is_same_text(sgi_op_status_message(a), sgi_op_status_message(b)))
        return "the status";
    if (!sgi_op_has_ended(a) &&
        (a->head.checkpoint_len != b->head.checkpoint_len ||
         (a->head.checkpoint_len &&
          memcmp(a->head.checkpoint, b->head.checkpoint, a->head.checkpoint_len) != 0)))
        return "the checkpoint";
    if (a->head.updated_ms != b->head.updated_ms)
        return "the last update";
    if (a->head.tasking != b->head.tasking || a->head.task_seq != b->head.task_seq ||
        a->ttl_ms != b->ttl_ms)
        return "the task";
    return input_difference(a, b);
}

/* ---- sessions ---- */

segue_session *fake_session_new(fake_host *h, const segue_session_events *events)
{
    segue_session_options options = {
        .struct_size = sizeof options,
        .name = "fake",
        .version = "1",
        .probe_timeout_ms = 5000,
        .request_timeout_ms = 60000,
        .max_reconnects = 20,
        .max_result_bytes = 64 << 20,
        .max_requests = 64,
    };
    segue_session *session = NULL;
    if (sgi_session_new(&h->engine, NULL, &options, (sgi_json){0}, events, &session) !=
        SEGUE_OK)
        return NULL;
    session->conn->can_reopen = true;
    return session;
}

void fake_session_feed(segue_session *session, const char *line)
{
    sgi_conn *conn = session->conn;
    sgi_conn_add_input(conn, line, strlen(line));
    sgi_conn_add_input(conn, "\n", 1);
}

const char *fake_session_said(segue_session *session)
{
    fake_host *h = session->engine->host.user;
    sgi_buf taken;
    sgi_buf_init(&taken, sgi_engine_mem(session->engine));
    sgi_conn_take_output(session->conn, &taken);
    sgi_buf_reset(&h->said, SIZE_MAX);
    sgi_buf_add_str(&h->said, sgi_buf_str(&taken));
    must(sgi_buf_terminate(&h->said), "out of memory");
    sgi_buf_free(&taken);
    return h->said.p;
}

void fake_session_open(segue_session *session)
{
    char answer[600];
    long long id = session->last_id + 1;
    sgi_conn_start(session->conn);
    snprintf(answer, sizeof answer,
             "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":{\"resultType\":\"complete\","
             "\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"extensions\":{"
             "\"io.modelcontextprotocol/tasks\":{\"eventStreams\":{}},"
             "\"dev.segue/idempotency\":{}}}}}",
             id);
    fake_session_feed(session, answer);
    must(sgi_session_is_open(session), "the session did not open");
}

void fake_session_end(segue_session *session)
{
    fake_host *h = session->engine->host.user;
    sgi_session_close(session);
    sgi_conn_detach(session->conn);
    fake_host_deliver(h);
    sgi_session_unref(session);
    fake_host_deliver(h);
}

/* ---- the store ---- */

const fake_record *fake_store_find(const fake_host *h, const uint8_t *id)
{
    const fake_record *found;
    LIST_FOREACH(found, &h->records, link)
        if (!memcmp(found->record.id, id, sizeof found->record.id))
            return found;
    return NULL;
}

const fake_row *fake_store_next(const fake_host *h, const uint8_t *id, uint64_t after)
{
    const fake_row *row;
    TAILQ_FOREACH(row, &h->rows, link)
        if (row->entry.seq > after && !memcmp(row->id, id, sizeof row->id))
            return row;
    return NULL;
}

static void create(fake_host *h, const segue_store_record *record)
{
    size_t id_len = strlen(record->task_id);
    must(!fake_store_find(h, record->id), "an operation is created twice");
    fake_record *kept = malloc(sizeof *kept + id_len + 1 + record->data_len);
    must(kept != NULL, "out of memory");
    kept->record = *record;
    kept->last_seq = 0;
    kept->releases = 0;
    memcpy(kept->text, record->task_id, id_len + 1);
    memcpy(kept->text + id_len + 1, record->data, record->data_len);
    kept->record.task_id = kept->text;
    kept->record.data = kept->text + id_len + 1;
    LIST_INSERT_HEAD(&h->records, kept, link);
}

static void append(fake_host *h, const segue_store_write *write)
{
    fake_record *record = (fake_record *)fake_store_find(h, write->id);
    fake_row *row = malloc(sizeof *row + write->entry.data_len);
    must(row != NULL, "out of memory");
    must(record != NULL, "an entry of an operation that was not created");
    must(!record->record.ended, "an entry behind the end");
    must(write->entry.seq == record->last_seq + 1 || h->torn, "a hole in the log");
    record->last_seq = write->entry.seq;
    memcpy(row->id, write->id, sizeof row->id);
    row->entry = write->entry;
    row->entry.data = row->data;
    if (write->entry.data_len)
        memcpy(row->data, write->entry.data, write->entry.data_len);
    TAILQ_INSERT_TAIL(&h->rows, row, link);
}

static void apply(fake_host *h, const segue_store_write *write)
{
    fake_record *record = (fake_record *)fake_store_find(h, write->id);
    switch (write->kind) {
    case SEGUE_STORE_CREATE:
        must(!memcmp(write->id, write->record->id, sizeof write->id),
             "the record is not that of its write");
        create(h, write->record);
        break;
    case SEGUE_STORE_APPEND:
        append(h, write);
        break;
    case SEGUE_STORE_END:
        must(record && !record->record.ended, "a second end");
        record->record.ended = 1;
        record->record.purge_ms = write->purge_ms;
        break;
    case SEGUE_STORE_RELEASE:
        must(record && !record->record.ended, "a release of what has ended");
        record->releases++;
        break;
    case SEGUE_STORE_TAKEN:
        break; /* nothing reads the number of the last command */
    case SEGUE_STORE_DELETE:
        must(record && !record->last_seq, "a deletion of what has a log");
        LIST_REMOVE(record, link);
        free(record);
        break;
    case SEGUE_STORE_DROP:
        must(record && write->entry.seq < record->last_seq, "a drop of the last entry");
        break;
    default:
        must(false, "an unknown write");
    }
}

bool fake_store_take(fake_host *h)
{
    must(h->batch.op_count == 0, "a commit is under way");
    return sgi_committer_fill_commit(&h->server->committer, &h->batch);
}

/* Returns true when a creation has the idempotency key of another operation. */
static bool meets_key(const fake_host *h, const segue_store_record *record)
{
    const fake_record *found;
    LIST_FOREACH(found, &h->records, link)
        if (record->has_key && found->record.has_key &&
            !memcmp(found->record.idempotency_key, record->idempotency_key,
                    sizeof record->idempotency_key))
            return true;
    return false;
}

static bool exists(const fake_host *h)
{
    for (size_t i = 0; i < h->batch.count; i++)
        if (h->batch.writes[i].kind == SEGUE_STORE_CREATE &&
            meets_key(h, h->batch.writes[i].record))
            return true;
    return false;
}

void fake_store_land(fake_host *h)
{
    must(h->batch.op_count > 0 && !h->landed, "there is nothing to land");
    if (exists(h))
        return;
    for (size_t i = 0; i < h->batch.count; i++)
        apply(h, &h->batch.writes[i]);
    h->landed = true;
}

void fake_store_done(fake_host *h, segue_status status)
{
    must(status == SEGUE_OK || status == SEGUE_E_STORE || !h->landed,
         "of what is durable the answer can be lost, no more");
    if (status == SEGUE_OK && !h->landed && exists(h))
        status = SEGUE_E_EXISTS;
    if (status == SEGUE_OK && !h->landed)
        fake_store_land(h);
    h->landed = false;
    h->commits++;
    sgi_committer_on_commit_done(&h->server->committer, &h->batch, status);
}

bool fake_store_commit(fake_host *h, segue_status status)
{
    if (!fake_store_take(h))
        return false;
    fake_store_done(h, status);
    return true;
}

static void find(fake_host *h, sgi_store_job *job)
{
    const fake_record *found;
    LIST_FOREACH(found, &h->records, link) {
        const segue_store_record *r = &found->record;
        if (job->task_id
                ? !strcmp(r->task_id, job->task_id)
                : r->has_key && !memcmp(r->idempotency_key, job->key, sizeof job->key)) {
            sgi_store_job_add_record(job, r);
            return;
        }
    }
    job->status = SEGUE_E_NOT_FOUND;
}

static void read_log(fake_host *h, sgi_store_job *job)
{
    const fake_row *row;
    TAILQ_FOREACH(row, &h->rows, link)
        if (row->entry.seq > job->after && !memcmp(row->id, job->id, sizeof row->id) &&
            sgi_store_job_add_entry(job, &row->entry))
            return;
}

static void claim(fake_host *h, sgi_store_job *job)
{
    const fake_record *found;
    LIST_FOREACH(found, &h->records, link) {
        segue_store_record record = found->record;
        if (h->torn)
            record.ended = SEGUE_STORE_TORN;
        if (!found->record.ended && sgi_store_job_add_record(job, &record))
            return;
    }
}

bool fake_store_answer(fake_host *h, segue_status status)
{
    sgi_store_job *job = sgi_committer_take_job(&h->server->committer);
    if (!job)
        return false;
    if (status != SEGUE_OK)
        job->status = status;
    else if (job->kind == SGI_STORE_JOB_FIND)
        find(h, job);
    else if (job->kind == SGI_STORE_JOB_READ)
        read_log(h, job);
    else if (job->kind == SGI_STORE_JOB_PURGE)
        job->next_ms = INT64_MAX;
    else if (job->kind == SGI_STORE_JOB_LIST)
        job->status = SEGUE_E_UNSUPPORTED;
    else if (job->kind == SGI_STORE_JOB_CLAIM)
        claim(h, job);
    job->done(job);
    return true;
}

void fake_store_settle(fake_host *h)
{
    bool more = true;
    while (more) {
        more = fake_store_commit(h, SEGUE_OK);
        more |= fake_store_answer(h, SEGUE_OK);
    }
}
