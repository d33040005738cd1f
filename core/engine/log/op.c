/* The log of an operation: appends entries, and handles the outcomes of commits.
 * op_head.c changes the head of the operation, which is the state that follows from its
 * log.
 *
 * An entry belongs to the tail or to a reader's chunk. An entry leaves the tail only when
 * it is durable. A running commit has only entries that are not durable. The operation is
 * reference-counted. References are held by the server's maps, the operation's call, its
 * readers, code that waits for the store, and the committer while the operation waits to
 * be written or is being written. */
#include "engine/log/op.h"

#include "base/thresholds.h"
#include "engine/error.h"
#include "engine/log/dropping.h"
#include "engine/log/op_head.h"
#include "engine/log/observer.h"
#include "engine/log/reader.h"
#include "engine/log/record.h"
#include "engine/log/refusal.h"
#include "wire/jsonrpc.h"

/* number of bytes of durable entries that stay in memory for readers near the end of the
 * log */
#define TAIL_KEEP SGI_THRESHOLD(tail_bytes)
/* number of bytes of entries that stay in memory after the operation has ended */
#define LINGER_KEEP SGI_THRESHOLD(linger_tail_bytes)
#define END_RETRY_MS SGI_THRESHOLD(end_retry_ms)
sgi_op *sgi_op_new(sgi_committer *committer, size_t text_bytes)
{
    sgi_engine *engine = committer->engine;
    const sgi_mem *mem = sgi_engine_mem(engine);
    sgi_op *op = sgi_zalloc(mem, sizeof *op + committer->observer->room);
    if (!op)
        return NULL;
    op->start = sgi_alloc(mem, sizeof *op->start + text_bytes);
    if (!op->start) {
        sgi_free(mem, op, sizeof *op + committer->observer->room);
        return NULL;
    }
    op->start->size = sizeof *op->start + text_bytes;
    op->committer = committer;
    op->engine = engine;
    op->refs = 1;
    op->head.next_log = op->head.next_seg = op->head.next_evt = 1;
    op->account = committer->account;
    op->created_ms = op->head.updated_ms = sgi_wall_now(&engine->env);
    TAILQ_INIT(&op->tail);
    TAILQ_INIT(&op->head.inputs);
    TAILQ_INIT(&op->head.remarks);
    TAILQ_INIT(&op->readers);
    TAILQ_INIT(&op->waiters);
    LIST_INIT(&op->watches);
    op->head.result = (sgi_op_result *)&sgi_op_no_result;
    return op;
}

bool sgi_op_set_idempotency_key(sgi_op *op, const uint8_t key[SGI_DIGEST_SIZE],
                                const uint8_t digest[SGI_DIGEST_SIZE])
{
    op->key = sgi_zalloc(sgi_engine_mem(op->engine), sizeof *op->key);
    if (!op->key)
        return false;
    op->key->op = op;
    memcpy(op->key->key, key, SGI_DIGEST_SIZE);
    memcpy(op->key->digest, digest, SGI_DIGEST_SIZE);
    return true;
}

/* A random key is its own digest. The digest of a request never equals the key that the
 * request names. */
bool sgi_op_set_random_key(sgi_op *op)
{
    uint8_t key[SGI_DIGEST_SIZE];
    return sgi_random(&op->engine->env, key, sizeof key) &&
           sgi_op_set_idempotency_key(op, key, key);
}

bool sgi_op_has_random_key(const sgi_op *op)
{
    return op->key && memcmp(op->key->key, op->key->digest, SGI_DIGEST_SIZE) == 0;
}

void sgi_op_ref(sgi_op *op)
{
    op->refs++;
}

static void free_op(sgi_op *op)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_committer *committer = op->committer;
    sgi_waiter *waiter;
    while ((waiter = TAILQ_FIRST(&op->waiters))) {
        sgi_op_wait_cancel(waiter);
        waiter->fire(waiter, op, SEGUE_E_CLOSED);
    }
    sgi_engine_clear_timer(op->engine, &op->end_again);
    sgi_op_release_bytes(op, op->held);
    committer->observer->freed(op);
    sgi_op_free_retention(op);
    sgi_op_head_free(op);
    sgi_entry_list_free(mem, &op->tail);
    sgi_shared_text_unref(op->text);
    if (op->start)
        sgi_free(mem, op->start, op->start->size);
    if (op->key)
        sgi_free(mem, op->key, sizeof *op->key);
    sgi_op_record_free_written(op);
    sgi_free(mem, op, sizeof *op + committer->observer->room);
    committer->observer->released(committer);
}

void sgi_op_unref(sgi_op *op)
{
    if (--op->refs == 0)
        free_op(op);
}

/* ---- append ---- */

/* Numbers the entry and adds it to the log. Returns false and changes nothing when out of
 * memory. */
static bool take_entry(sgi_op *op, sgi_entry *entry)
{
    sgi_op_head_number_entry(op, entry);
    entry->at_ms = sgi_wall_now(&op->engine->env);
    if (!sgi_op_head_apply_entry(op, entry))
        return false;
    TAILQ_INSERT_TAIL(&op->tail, entry, link);
    op->tail_bytes += entry->len;
    sgi_op_hold_bytes(op, entry->len);
    if (entry->kind == SGI_ENTRY_SEGMENT) {
        op->committer->counts.segments++;
        op->committer->counts.segment_bytes += entry->len;
    }
    if (sgi_op_is_logged(op)) {
        if (!op->pending)
            op->pending = entry;
        op->pending_bytes += entry->len;
        sgi_committer_mark_dirty(op->committer, op);
    }
    return true;
}

/* Checks the limits before entries are appended. On SEGUE_E_LIMIT, op->reached is the
 * limit that was reached. */
static segue_status check_limits(sgi_op *op, const struct sgi_entry_list *list)
{
    size_t limit = sgi_op_is_logged(op) ? op->committer->limits.max_log_bytes
                                        : op->committer->limits.max_result_bytes;
    size_t bytes = 0;
    uint64_t segments = op->head.next_seg - 1;
    const sgi_entry *entry;
    TAILQ_FOREACH(entry, list, link) {
        bytes += entry->len;
        segments += entry->kind == SGI_ENTRY_SEGMENT;
    }
    if (op->drops)
        op->committer->observer->make_room(op, bytes, limit);
    if (op->head.log_bytes + bytes > limit)
        op->reached = (sgi_limit){sgi_op_is_logged(op) ? SGI_LIMIT_MAX_LOG_BYTES
                                                       : SGI_LIMIT_MAX_RESULT_BYTES,
                                  (int64_t)limit};
    else if (segments > op->committer->limits.max_segments)
        op->reached = (sgi_limit){SGI_LIMIT_MAX_SEGMENTS,
                                  (int64_t)op->committer->limits.max_segments};
    else if (sgi_op_is_logged(op) ||
             sgi_byte_account_allows(op->account, bytes, &op->reached))
        return SEGUE_OK;
    return SEGUE_E_LIMIT;
}

/* Reserves memory for all entries of the list, so that only appending the first entry can
 * fail. Returns false when out of memory. */
static bool make_room(sgi_op *op, const struct sgi_entry_list *list)
{
    uint64_t end = op->head.result->blocks;
    bool has_result = false;
    const sgi_entry *entry;
    TAILQ_FOREACH(entry, list, link) {
        end += entry->kind == SGI_ENTRY_SEGMENT;
        has_result |= sgi_entry_is_of_result(entry->kind);
    }
    return !has_result || (sgi_op_head_make_result(op) &&
                           sgi_text_blocks_reserve(&op->head.result->texts, end));
}

/* True when the store has refused entries and there was no memory to end the operation.
 * The log now has a gap. Only a final entry without a result may be appended behind the
 * gap: an error, a cancellation or an expiry. */
static bool is_beyond_repair(const sgi_op *op, const struct sgi_entry_list *list)
{
    const sgi_entry *first = TAILQ_FIRST(list);
    return sgi_op_is_broken(op) && (!first || !sgi_entry_is_final(first->kind) ||
                                    first->kind == SGI_ENTRY_RESULT);
}

static void wake_readers(sgi_op *op)
{
    sgi_reader *reader, *next;
    SGI_TAILQ_EACH(reader, &op->readers, link, next)
        reader->ready(reader);
}

static segue_status append_list(sgi_op *op, struct sgi_entry_list *list, bool limited)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    segue_status status = limited ? check_limits(op, list) : SEGUE_OK;
    sgi_entry *entry;
    if (op->committer->closed)
        status = SEGUE_E_CLOSED;
    if (sgi_op_has_ended(op) || is_beyond_repair(op, list) || !sgi_op_is_owned_here(op))
        status = SEGUE_E_TERMINAL;
    if (status == SEGUE_OK && !make_room(op, list))
        status = SEGUE_E_NOMEM;
    while (status == SEGUE_OK && (entry = TAILQ_FIRST(list))) {
        TAILQ_REMOVE(list, entry, link);
        if (!take_entry(op, entry)) {
            sgi_entry_free(mem, entry);
            status = SEGUE_E_NOMEM;
        }
    }
    sgi_entry_list_free(mem, list);
    if (!sgi_op_is_logged(op) && !TAILQ_EMPTY(&op->readers) && status == SEGUE_OK)
        /* the entries of a plain operation are visible as soon as they are appended */
        wake_readers(op);
    return status;
}

segue_status sgi_op_append_list(sgi_op *op, struct sgi_entry_list *list)
{
    return append_list(op, list, true);
}

static segue_status append_one(sgi_op *op, int32_t kind, sgi_str payload, bool limited)
{
    struct sgi_entry_list list = TAILQ_HEAD_INITIALIZER(list);
    if (payload.n > UINT32_MAX / 2) {
        op->reached = (sgi_limit){SGI_LIMIT_MAX_ENTRY_BYTES, UINT32_MAX / 2};
        return SEGUE_E_LIMIT;
    }
    sgi_entry *entry =
        sgi_entry_new(sgi_engine_mem(op->engine), kind, payload.p, payload.n);
    if (!entry)
        return SEGUE_E_NOMEM;
    TAILQ_INSERT_TAIL(&list, entry, link);
    return append_list(op, &list, limited);
}

segue_status sgi_op_append(sgi_op *op, sgi_entry_kind kind, sgi_str payload)
{
    return append_one(op, (int32_t)kind, payload, true);
}

segue_status sgi_op_end(sgi_op *op, sgi_entry_kind kind, sgi_str payload)
{
    segue_status status = append_one(op, (int32_t)kind, payload, false);
    if (status == SEGUE_OK)
        sgi_op_on_plain_end(op);
    return status;
}

segue_status sgi_op_fail(sgi_op *op, sgi_entry_kind kind, int32_t code, sgi_str message,
                         sgi_json data)
{
    sgi_buf payload;
    if (kind == SGI_ENTRY_ERROR && !sgi_op_has_ended(op))
        op->committer->observer->failing(op);
    sgi_buf_init(&payload, sgi_engine_mem(op->engine));
    sgi_jw w = sgi_jw_to(&payload);
    sgi_write_error_object(&w, code, message, data);
    segue_status status =
        payload.failed ? SEGUE_E_NOMEM : sgi_op_end(op, kind, sgi_buf_str(&payload));
    sgi_buf_free(&payload);
    return status;
}

static void try_the_end_again(sgi_timer *timer)
{
    sgi_op_end_internal_error(SGI_OWNER(timer, sgi_op, end_again), "Out of memory");
}

void sgi_op_end_internal_error(sgi_op *op, const char *text)
{
    segue_status status = SEGUE_E_TERMINAL;
    /* the final entry can drop the last other reference to the operation */
    sgi_op_ref(op);
    if (!sgi_op_has_ended(op))
        status = sgi_op_fail(op, SGI_ENTRY_ERROR, SGI_RPC_INTERNAL_ERROR,
                             sgi_str_of(text), (sgi_json){0});
    if (status == SEGUE_E_NOMEM) {
        sgi_engine_set_timer(op->engine, &op->end_again, END_RETRY_MS, try_the_end_again);
    } else if (sgi_op_is_broken(op) && sgi_op_has_ended(op)) {
        op->head.updated_ms = op->head.ended_ms;
        sgi_op_on_entries_visible(op, op->durable, UINT64_MAX);
    }
    sgi_op_unref(op);
}

segue_status sgi_op_turn_into_stored(sgi_op *op, sgi_str task_id)
{
    segue_status status = sgi_op_record_make(op, task_id);
    if (status != SEGUE_OK)
        return status;
    sgi_op_set_stored(op, SGI_STORED_CREATING);
    op->pending = TAILQ_FIRST(&op->tail);
    op->pending_bytes = op->tail_bytes;
    sgi_committer_mark_dirty(op->committer, op);
    return SEGUE_OK;
}

bool sgi_op_handler_must_wait(const sgi_op *op)
{
    const sgi_reader *only = op->frees_consumed ? TAILQ_FIRST(&op->readers) : NULL;
    uint64_t waiting = only ? sgi_reader_bytes_left(only) : op->pending_bytes;
    return waiting >= op->engine->max_queue ||
           (op->pending && sgi_byte_account_slows_producers(op->account));
}

/* ---- reports of the store ---- */

static bool has_active_reader(const sgi_op *op)
{
    const sgi_reader *reader;
    TAILQ_FOREACH(reader, &op->readers, link)
        if (!sgi_reader_is_paused(reader))
            return true;
    return false;
}

void sgi_op_tail_remove(sgi_op *op, sgi_entry *entry)
{
    sgi_reader *reader;
    TAILQ_FOREACH(reader, &op->readers, link)
        sgi_reader_on_entry_removed(reader, entry);
    TAILQ_REMOVE(&op->tail, entry, link);
    op->tail_bytes -= entry->len;
    sgi_op_release_bytes(op, entry->len);
    sgi_entry_free(sgi_engine_mem(op->engine), entry);
}

void sgi_op_trim_tail(sgi_op *op)
{
    bool ended = sgi_op_has_ended(op) && op->head.final_seq <= op->durable;
    size_t keep = has_active_reader(op) ? TAIL_KEEP : 0;
    if (!sgi_op_is_logged(op) || (ended && op->head.log_bytes <= LINGER_KEEP))
        return;
    sgi_entry *entry;
    while ((entry = TAILQ_FIRST(&op->tail)) && entry->seq <= op->durable &&
           op->tail_bytes > keep) {
        sgi_op_tail_remove(op, entry);
    }
}

void sgi_op_free_consumed_entries(sgi_op *op, uint64_t seq)
{
    sgi_entry *entry;
    while (op->frees_consumed && (entry = TAILQ_FIRST(&op->tail)) && entry->seq <= seq) {
        if (entry->kind == SGI_ENTRY_SEGMENT)
            /* Only segments are subtracted: the fold of a plain operation still needs the
             * other entries, so their bytes remain counted. */
            op->head.log_bytes -= entry->len;
        sgi_op_tail_remove(op, entry);
    }
}

static void tell_watches(sgi_op *op)
{
    sgi_op_watch *watch = LIST_FIRST(&op->watches);
    while (watch) {
        sgi_op_watch *next = LIST_NEXT(watch, link);
        watch->changed(watch, op);
        watch = next;
    }
}

/* True when an entry that became visible changes the answer to tasks/get. */
static bool changes_status(sgi_op *op, uint64_t after, uint64_t upto)
{
    sgi_entry *entry;
    TAILQ_FOREACH_REVERSE(entry, &op->tail, sgi_entry_list, link)
    {
        if (entry->seq <= after)
            return false;
        if (entry->seq <= upto && entry->kind >= SGI_ENTRY_STATUS &&
            entry->kind != SGI_ENTRY_CHECKPOINT && entry->kind < SGI_ENTRY_NOTIFY)
            return true;
    }
    return false;
}

void sgi_op_tell_waiters_fired(sgi_op *op)
{
    op->committer->observer->waiters_fired(op);
}

void sgi_op_on_entries_visible(sgi_op *op, uint64_t after, uint64_t upto)
{
    const struct sgi_log_observer *observer = op->committer->observer;
    bool changed = !LIST_EMPTY(&op->watches) && changes_status(op, after, upto);
    sgi_op_ref(op);
    observer->visible(op);
    /* readers are called before waiters, so that a stream ends before the answers of the
     * waiters are sent */
    wake_readers(op);
    observer->readers_woken(op);
    sgi_op_fire_due_waiters(op, SEGUE_OK);
    if (changed)
        tell_watches(op);
    sgi_op_tell_waiters_fired(op);
    sgi_op_trim_tail(op);
    sgi_op_unref(op);
}

void sgi_op_on_entries_durable(sgi_op *op, uint64_t seq)
{
    uint64_t before = op->durable;
    while (op->pending && op->pending->seq <= seq) {
        op->pending_bytes -= op->pending->len;
        sgi_op_head_note_visible(op, op->pending);
        op->pending = TAILQ_NEXT(op->pending, link);
    }
    op->durable = seq;
    sgi_op_on_entries_visible(op, before, seq);
}

/* Removes entries that could not be written to the store. No peer has seen these entries,
 * because only durable entries are sent (AS-114). Restores only the parts of the
 * operation's head that a failing operation needs: numbers, questions, status messages,
 * the end. */
void sgi_op_drop_unwritten_entries(sgi_op *op)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    while (op->pending) {
        sgi_entry *entry = op->pending;
        op->pending = TAILQ_NEXT(entry, link);
        TAILQ_REMOVE(&op->tail, entry, link);
        op->tail_bytes -= entry->len;
        sgi_op_release_bytes(op, entry->len);
        op->head.log_bytes -= entry->len;
        op->head.appended_bytes -= entry->len;
        op->head.next_log =
            entry->seq < op->head.next_log ? entry->seq : op->head.next_log;
        if (entry->kind == SGI_ENTRY_SEGMENT && entry->segment < op->head.next_seg)
            op->head.next_seg = entry->segment;
        if (entry->event && entry->event < op->head.next_evt)
            op->head.next_evt = entry->event;
        sgi_entry_free(mem, entry);
    }
    op->pending_bytes = 0;
    sgi_op_head_revert(op);
}

void sgi_op_skip_lost_entries(sgi_op *op)
{
    op->torn = true;
    if (op->behind_hole)
        return;
    op->head.next_log += SGI_OP_HOLE;
    op->behind_hole = op->head.next_log;
}

void sgi_op_on_outcome_unknown(sgi_op *op, uint64_t seq)
{
    if (op->stored == SGI_STORED_CREATING)
        sgi_op_set_stored(op, SGI_STORED_PERHAPS);
    if (op->tried < seq)
        op->tried = seq;
}

/* The next entry, which ends the operation, gets a position behind the entries that the
 * store may have. */
static void skip_tried_entries(sgi_op *op)
{
    if (op->tried < op->head.next_log || op->behind_hole)
        return;
    op->torn = true;
    op->head.next_log = op->behind_hole = op->tried + 1;
}

/* True when the store does not have the operation, whose creation has failed. */
static bool is_not_in_store(const sgi_op *op, segue_status status)
{
    return op->stored == SGI_STORED_CREATING ||
           (op->stored == SGI_STORED_PERHAPS &&
            (status == SEGUE_E_EXISTS || status == SEGUE_E_NOT_FOUND));
}

void sgi_op_on_write_failed(sgi_op *op, segue_status status)
{
    sgi_op_ref(op);
    if (sgi_op_is_broken(op)) {
        /* clients have already received the end, so the committer continues its attempts
         * to write the end */
    } else if (is_not_in_store(op, status)) {
        sgi_op_drop_unwritten_entries(op);
        sgi_op_set_stored(op, SGI_STORED_NOT);
        op->head.final = SGI_FINAL_CANCELLED;
        sgi_op_fire_due_waiters(op, status);
        op->committer->observer->lost(op, status);
    } else {
        sgi_op_drop_unwritten_entries(op);
        sgi_op_record_free_written(op);
        sgi_op_set_stored(op, SGI_STORED_BROKEN);
        if (status == SEGUE_E_STATE)
            sgi_op_skip_lost_entries(op);
        else
            skip_tried_entries(op);
        sgi_engine_log(op->engine, SEGUE_LOG_ERROR,
                       "an operation ends, because the store could not write it: %s",
                       sgi_status_name(status));
        sgi_store_refusal refusal = sgi_store_refusal_of(SGI_UNSTORED, status);
        sgi_op_fail(op, SGI_ENTRY_ERROR, SGI_RPC_INTERNAL_ERROR, sgi_str_of(refusal.text),
                    sgi_str_of(refusal.data));
        /* the end takes the place of the removed entries, for which nobody may be told
         * that they are visible */
        sgi_op_fire_lost_waiters(op, status);
        /* makes the end visible; when out of memory, another attempt follows later */
        sgi_op_end_internal_error(op, refusal.text);
    }
    sgi_op_unref(op);
}

void sgi_op_on_plain_end(sgi_op *op)
{
    if (!sgi_op_is_logged(op))
        sgi_op_on_entries_visible(op, 0, UINT64_MAX);
}
