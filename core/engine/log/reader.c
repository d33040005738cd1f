/* The next entry is in the chunk that the store returned, in the tail if the tail reaches
 * back far enough, or in the store. `at` points to the last consumed entry while this
 * entry is in the tail, so that the next entry is found at once. When that entry leaves
 * the tail, `at` becomes NULL.
 *
 * The store may have more entries than the head of the operation (its state) includes,
 * especially if another server runs the operation. Code that sends an entry needs the
 * head of the operation to interpret the entry (the question of an INPUT_ASK, the end).
 * So entries after the horizon (the last entry that a peer may see) wait in the chunk.
 *
 * The log ends at the first end that the head knows. The store may have another end
 * behind it (entry_numbers.c), which no reader reads. When the store has nothing
 * between the reader and the horizon, it has lost these entries, and waiting for them
 * would be in vain. */
#include "engine/log/reader.h"

#include "engine/conversation/conn.h"
#include "engine/log/dropping.h"
#include "engine/log/observer.h"

#define FOLD_ROOM (64 * 1024)

void sgi_reader_init(sgi_reader *reader, sgi_op *op, uint64_t after_seq,
                     void (*ready)(sgi_reader *))
{
    *reader = (sgi_reader){.op = op, .seq = after_seq, .ready = ready};
    TAILQ_INIT(&reader->chunk);
    sgi_op_ref(op);
    TAILQ_INSERT_TAIL(&op->readers, reader, link);
}

void sgi_reader_end(sgi_reader *reader)
{
    sgi_op *op = reader->op;
    if (!op)
        return;
    if (reader->job)
        reader->job->user = NULL;
    sgi_entry_list_free(sgi_engine_mem(op->engine), &reader->chunk);
    TAILQ_REMOVE(&op->readers, reader, link);
    op->heard.end |= reader->tells && sgi_reader_at_end(reader);
    if (reader->tells)
        op->heard.last_ms = sgi_now(&op->engine->env);
    reader->op = NULL;
    sgi_op_unref(op);
}

bool sgi_reader_is_paused(const sgi_reader *reader)
{
    return reader->conn && !reader->conn->outer_conn && !sgi_conn_transport(reader->conn);
}

void sgi_reader_pause(sgi_reader *reader)
{
    sgi_entry_list_free(sgi_engine_mem(reader->op->engine), &reader->chunk);
    sgi_op_trim_tail(reader->op);
}

void sgi_reader_on_entry_removed(sgi_reader *reader, const sgi_entry *entry)
{
    if (reader->at == entry)
        reader->at = NULL;
}

static void chunk_arrived(sgi_store_job *job)
{
    sgi_reader *reader = job->user;
    if (reader) {
        reader->job = NULL;
        if (job->status != SEGUE_OK)
            reader->failure = job->status;
        else if (TAILQ_EMPTY(&job->entries))
            reader->failure = SEGUE_E_STATE; /* durable entries are lost */
        /* a paused reader drops the entries that arrive, and reads them again later */
        else if (!sgi_reader_is_paused(reader))
            TAILQ_CONCAT(&reader->chunk, &job->entries, link);
    }
    sgi_store_job_free(job);
    if (reader)
        reader->ready(reader);
}

static void fetch(sgi_reader *reader)
{
    sgi_op *op = reader->op;
    if (reader->job || reader->failure)
        return;
    sgi_store_job *job =
        sgi_store_job_new(op->committer, SGI_STORE_JOB_READ, chunk_arrived, reader);
    if (!job) {
        reader->failure = SEGUE_E_NOMEM;
        return;
    }
    memcpy(job->id, op->id, sizeof job->id);
    job->after = reader->seq;
    job->max_bytes = op->committer->read_bytes;
    reader->job = job;
    sgi_committer_add_job(op->committer, job);
}

/* True for the first entry behind entries that the store has lost. The reader itself must
 * skip such a gap: the store does not have the lost entries, and may not have the later
 * entries yet. */
static bool is_behind_hole(const sgi_reader *reader, const sgi_entry *entry)
{
    return entry->seq == reader->op->behind_hole && reader->op->durable <= reader->seq;
}

static sgi_entry *find_in_tail(const sgi_reader *reader)
{
    sgi_entry *entry = reader->at;
    if (entry)
        return TAILQ_NEXT(entry, link);
    TAILQ_FOREACH(entry, &reader->op->tail, link)
        if (entry->seq > reader->seq)
            return entry->seq == reader->seq + 1 || is_behind_hole(reader, entry) ? entry
                                                                                  : NULL;
    return NULL;
}

/* True when peers may see the end, and it is in front of this position. */
static bool is_behind_end(const sgi_op *op, uint64_t seq)
{
    return sgi_op_has_ended(op) && op->head.final_seq <= sgi_op_horizon(op) &&
           op->head.final_seq < seq;
}

const sgi_entry *sgi_reader_next(sgi_reader *reader)
{
    sgi_op *op = reader->op;
    const sgi_entry *first = TAILQ_FIRST(&reader->chunk);
    if (sgi_reader_at_end(reader))
        return NULL;
    if (first && is_behind_end(op, first->seq)) {
        reader->failure = SEGUE_E_STATE;
        return NULL;
    }
    if (first)
        return first->seq <= sgi_op_horizon(op) ? first : NULL;
    if (reader->seq + 1 >= op->head.next_log || reader->seq >= sgi_op_horizon(op))
        return NULL;
    sgi_entry *entry = find_in_tail(reader);
    if (!entry)
        fetch(reader);
    return entry;
}

static void consume(sgi_reader *reader, const sgi_entry *entry)
{
    const sgi_op *op = reader->op;
    reader->seq = entry->seq;
    if (entry->segment)
        reader->segment = entry->segment;
    reader->bytes += entry->len;
    if (entry->seq + 1 == op->head.next_log)
        /* nothing is left to read, so entries that left the log unread also count as
         * read */
        reader->bytes = op->head.appended_bytes;
}

uint64_t sgi_reader_segments_left(const sgi_reader *reader)
{
    return reader->op->head.next_seg - 1 - reader->segment;
}

uint64_t sgi_reader_bytes_left(const sgi_reader *reader)
{
    uint64_t appended = reader->op->head.appended_bytes;
    return appended > reader->bytes ? appended - reader->bytes : 0;
}

void sgi_reader_advance(sgi_reader *reader)
{
    sgi_entry *entry = TAILQ_FIRST(&reader->chunk);
    if (entry) {
        consume(reader, entry);
        TAILQ_REMOVE(&reader->chunk, entry, link);
        sgi_entry_free(sgi_engine_mem(reader->op->engine), entry);
        reader->at = NULL;
        return;
    }
    entry = find_in_tail(reader);
    consume(reader, entry);
    reader->at = entry;
}

bool sgi_reader_at_end(const sgi_reader *reader)
{
    return is_behind_end(reader->op, reader->seq + 1);
}

/* ---- folding the whole log ---- */

typedef struct folding {
    sgi_reader reader;
    sgi_fold fold;
    sgi_folded_fn done;
    void *user;
    uint64_t next_segment;
    /* The first reason why the segments so far make no result. SEGUE_OK = they make one.
     * SEGUE_E_STATE = a segment is missing. SEGUE_E_STORE_CORRUPT = a segment does not
     * fit the blocks before it. A replacement discards the segments and the reason. */
    segue_status flaw;
    /* true while fold_more runs, so that a chunk that arrives during fold_more does not
     * start fold_more a second time */
    bool running;
} folding;

/* Returns false when the text block that this segment should continue is missing. */
static bool fold_segment(sgi_fold *fold, const sgi_entry *entry)
{
    sgi_str block;
    uint64_t place;
    if (sgi_entry_read_indexed_block(entry, &block, &place) && !fold->keeps_segments)
        return sgi_fold_add_indexed_segment(fold, place, block);
    sgi_fold_add_segment(fold, block);
    return true;
}

/* Returns the new flaw of the segments (folding.flaw). */
static segue_status fold_entry(sgi_fold *fold, const sgi_entry *entry, segue_status flaw)
{
    sgi_str payload = {entry->data, entry->len};
    if (entry->kind == SGI_ENTRY_SEGMENT) {
        bool fits = fold_segment(fold, entry);
        return flaw || fits ? flaw : SEGUE_E_STORE_CORRUPT;
    }
    if (entry->kind == SGI_ENTRY_FIELDS)
        sgi_fold_add_fields(fold, payload);
    if (entry->kind != SGI_ENTRY_REPLACE)
        return flaw;
    sgi_fold_drop_replaced(fold, entry->segment);
    return SEGUE_OK;
}

static segue_status status_of(const sgi_fold *fold)
{
    if (fold->fields.full)
        return SEGUE_E_TOO_LARGE;
    return sgi_fold_failed(fold) ? SEGUE_E_NOMEM : SEGUE_OK;
}

static void end_folding(folding *f)
{
    sgi_op *op = f->reader.op;
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_op_ref(op);
    segue_status status = f->reader.failure ? f->reader.failure : status_of(&f->fold);
    f->done(f->user, op, status ? NULL : &f->fold, status);
    sgi_reader_end(&f->reader);
    sgi_fold_free(&f->fold);
    sgi_free(mem, f, sizeof *f);
    sgi_op_unref(op);
}

/* Checks the numbers of an entry. The server that runs the operation may have dropped
 * entries. A gap in the segment numbers shows that a segment of the result is missing,
 * which is a flaw of the segments. Returns false when an entry is missing that is never
 * dropped. */
static bool count_entry(folding *f, const sgi_entry *entry)
{
    bool is_segment = entry->kind == SGI_ENTRY_SEGMENT;
    if (is_segment && entry->segment != f->next_segment && !f->flaw)
        f->flaw = SEGUE_E_STATE;
    if (is_segment || entry->kind == SGI_ENTRY_REPLACE)
        f->next_segment = entry->segment + 1;
    return entry->seq == f->reader.seq + 1 || sgi_op_log_can_have_gaps(f->reader.op);
}

static void fold_more(sgi_reader *reader)
{
    folding *f = SGI_OWNER(reader, folding, reader);
    const sgi_entry *entry;
    if (f->running)
        return;
    f->running = true;
    while (!reader->failure && (entry = sgi_reader_next(reader))) {
        if (!count_entry(f, entry))
            reader->failure = SEGUE_E_STATE;
        f->flaw = fold_entry(&f->fold, entry, f->flaw);
        sgi_reader_advance(reader);
    }
    f->running = false;
    if (!reader->failure && sgi_reader_at_end(reader))
        reader->failure = f->flaw;
    if (sgi_reader_at_end(reader) || reader->failure)
        end_folding(f);
}

/* Folds a plain operation. The whole log is in the tail, so no reader is needed. The list
 * of blocks is written into engine->fold_room, a buffer that the engine keeps for this
 * use. */
static void fold_plain(sgi_op *op, sgi_folded_fn done, void *user)
{
    sgi_engine *engine = op->engine;
    const sgi_entry *entry;
    sgi_fold fold;
    sgi_fold_init(&fold, &engine->env);
    op->committer->observer->set_form(op, &fold);
    sgi_buf content = engine->fold_room;
    engine->fold_room = fold.content;
    fold.content = content;
    segue_status flaw = SEGUE_OK;
    TAILQ_FOREACH(entry, &op->tail, link)
        flaw = fold_entry(&fold, entry, flaw);
    segue_status status = flaw ? flaw : status_of(&fold);
    done(user, op, status ? NULL : &fold, status);
    sgi_buf_reset(&fold.content, FOLD_ROOM);
    /* engine->fold_room is empty here, unless another fold ran inside this fold */
    sgi_buf_free(&engine->fold_room);
    engine->fold_room = fold.content;
    sgi_buf_init(&fold.content, sgi_engine_mem(engine));
    sgi_fold_free(&fold);
}

void sgi_op_fold(sgi_op *op, sgi_folded_fn done, void *user)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    if (!sgi_op_is_logged(op)) {
        fold_plain(op, done, user);
        return;
    }
    bool is_whole = sgi_op_log_has_whole_result(op);
    folding *f = is_whole ? sgi_zalloc(mem, sizeof *f) : NULL;
    if (!f) {
        done(user, op, NULL, is_whole ? SEGUE_E_NOMEM : SEGUE_E_STATE);
        return;
    }
    f->done = done;
    f->user = user;
    f->next_segment = 1;
    sgi_fold_init(&f->fold, &op->engine->env);
    op->committer->observer->set_form(op, &f->fold);
    sgi_reader_init(&f->reader, op, 0, fold_more);
    fold_more(&f->reader);
}
