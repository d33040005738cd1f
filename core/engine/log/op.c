/* The log of an operation: appending to it, and what happens when it becomes durable or
 * cannot be written. Its state is the business of op_head.c.
 *
 * Who frees what: entries belong to the tail, or to a reader's chunk. An entry leaves the
 * tail only when it is durable; a batch in flight holds only entries that are not. The op
 * is counted: by the server's maps, its call, its readers, the keeper while it is dirty
 * or being written, and whoever waits for the store on its behalf. */
#include "engine/log/op.h"

#include "engine/error.h"
#include "engine/log/dropping.h"
#include "engine/log/op_head.h"
#include "engine/serving/asks.h"
#include "engine/serving/budget.h"
#include "engine/serving/errands.h"
#include "engine/serving/origin.h"
#include "engine/serving/principal.h"
#include "engine/serving/recall.h"
#include "engine/serving/resumable.h"
#include "engine/log/reader.h"
#include "engine/log/record.h"
#include "engine/serving/rounds.h"
#include "engine/serving/server.h"
#include "engine/refusal.h"

#define TAIL_KEEP (256 * 1024)  /* kept for readers that follow */
#define LINGER_KEEP (64 * 1024) /* kept of an ended operation while it stays in memory */
#define END_RETRY_MS 100
/* The gap left in the numbering. It is larger than the number of entries a store can lose
 * in a few seconds. */
#define HOLE (UINT64_C(1) << 24)

sgi_op *sgi_op_new(segue_server *server, sgi_str item_name, sgi_str params)
{
    sgi_engine *engine = server->engine;
    const sgi_mem *mem = sgi_engine_mem(engine);
    sgi_op *op = sgi_zalloc(mem, sizeof *op);
    if (!op)
        return NULL;
    op->server = server;
    op->kind = &sgi_call_tool;
    op->engine = engine;
    op->refs = 1;
    op->next_log = op->next_seg = op->next_evt = 1;
    op->limits = server->limits;
    op->created_ms = op->updated_ms = sgi_wall(&engine->env);
    TAILQ_INIT(&op->tail);
    TAILQ_INIT(&op->inputs);
    TAILQ_INIT(&op->remarks);
    TAILQ_INIT(&op->readers);
    TAILQ_INIT(&op->waiters);
    LIST_INIT(&op->watches);
    sgi_texts_init(&op->texts, mem);
    sgi_server_ref(server);
    op->item_name = sgi_text_dup(mem, item_name);
    op->params = sgi_text_dup(mem, params);
    op->params_len = params.n;
    if (!op->item_name || !op->params) {
        sgi_op_unref(op);
        return NULL;
    }
    sgi_budget_hold(op, params.n);
    return op;
}

bool sgi_op_set_key(sgi_op *op, const uint8_t key[SGI_DIGEST_SIZE],
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

void sgi_op_ref(sgi_op *op)
{
    op->refs++;
}

static void free_op(sgi_op *op)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_waiter *waiter;
    while ((waiter = TAILQ_FIRST(&op->waiters))) {
        sgi_op_wait_end(waiter);
        waiter->fire(waiter, op, SEGUE_E_CLOSED);
    }
    sgi_engine_timer_clear(op->engine, &op->timer);
    sgi_engine_timer_clear(op->engine, &op->promote);
    sgi_round_end(op);
    sgi_recall_free(op);
    sgi_resumable_free(op);
    sgi_op_retain_end(op);
    sgi_origin_free(op);
    sgi_head_free(op);
    sgi_texts_free(&op->texts);
    sgi_entry_list_free(mem, &op->tail);
    if (op->item)
        sgi_item_unref(op->item);
    sgi_text_free(mem, op->item_name);
    sgi_text_free(mem, op->own_arguments);
    if (op->params)
        sgi_release(mem, op->params, op->params_len + 1);
    sgi_text_free(mem, op->task_id);
    if (op->key)
        sgi_release(mem, op->key, sizeof *op->key);
    sgi_record_written(op);
    sgi_budget_let(op, op->held);
    if (op->who)
        sgi_principal_unref(op->who);
    sgi_grant_unref(op->grant);
    segue_server *server = op->server;
    sgi_release(mem, op, sizeof *op);
    sgi_server_unref(server);
}

void sgi_op_unref(sgi_op *op)
{
    if (--op->refs == 0)
        free_op(op);
}

sgi_json sgi_op_arguments(const sgi_op *op)
{
    if (op->arguments.n)
        return op->arguments;
    return sgi_json_get((sgi_json){op->params, op->params_len}, "arguments");
}

/* SEP-1905 has no word for text that goes on, nor has PR 776 without its index: whoever
 * merges what was pushed has a block of each segment, and so has the result. */
bool sgi_op_keeps_apart(const sgi_op *op)
{
    return op->streams || !(op->server->dialects & SGI_DIALECT_PARTIAL_INDEX);
}

/* ---- append ---- */

/* Numbers the entry and takes it; false and unchanged when out of memory. */
static bool take_entry(sgi_op *op, sgi_entry *entry)
{
    sgi_head_number(op, entry);
    entry->at_ms = sgi_wall(&op->engine->env);
    if (!sgi_head_apply(op, entry))
        return false;
    TAILQ_INSERT_TAIL(&op->tail, entry, link);
    op->tail_bytes += entry->len;
    sgi_budget_hold(op, entry->len);
    if (op->logged) {
        if (!op->pending)
            op->pending = entry;
        op->pending_bytes += entry->len;
        sgi_keeper_dirty(&op->server->keeper, op);
    }
    return true;
}

/* SEGUE_E_LIMIT: op->reached says which. */
static segue_status check_limits(sgi_op *op, const struct sgi_entry_list *list)
{
    size_t limit = op->logged ? op->limits.max_log_bytes : op->limits.max_result_bytes;
    size_t bytes = 0;
    uint64_t segments = op->next_seg - 1;
    const sgi_entry *entry;
    TAILQ_FOREACH(entry, list, link) {
        bytes += entry->len;
        segments += entry->kind == SGI_ENTRY_SEGMENT;
    }
    if (op->resumable)
        sgi_resumable_make_room(op->resumable, bytes, limit);
    if (op->log_bytes + bytes > limit)
        op->reached = (sgi_limit){op->logged ? "max_log_bytes" : "max_result_bytes",
                                  (int64_t)limit};
    else if (segments > op->limits.max_segments)
        op->reached = (sgi_limit){"max_segments", (int64_t)op->limits.max_segments};
    else if (op->logged || sgi_budget_allows(op, bytes, &op->reached))
        return SEGUE_OK;
    return SEGUE_E_LIMIT;
}

/* What the entries behind the first need: once the first is taken, none may fail. */
static bool make_room(sgi_op *op, const struct sgi_entry_list *list)
{
    uint64_t end = op->blocks;
    const sgi_entry *entry;
    TAILQ_FOREACH(entry, list, link)
        end += entry->kind == SGI_ENTRY_SEGMENT;
    return sgi_texts_reserve(&op->texts, end);
}

/* The store refused entries and there was no memory to end it: until there is, nothing is
 * to follow what is missing, and no result to be made of the rest. */
static bool is_beyond_repair(const sgi_op *op, const struct sgi_entry_list *list)
{
    const sgi_entry *first = TAILQ_FIRST(list);
    return op->store_broken && (!first || !sgi_entry_is_final(first->kind) ||
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
    if (op->server->stage == SGI_SERVER_DEAD)
        status = SEGUE_E_CLOSED;
    if (sgi_op_has_ended(op) || is_beyond_repair(op, list) || !sgi_op_is_ours(op))
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
    if (!op->logged && !TAILQ_EMPTY(&op->readers) && status == SEGUE_OK)
        wake_readers(op); /* it is its own horizon */
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
        op->reached = (sgi_limit){"max_entry_bytes", UINT32_MAX / 2};
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
        sgi_op_settle(op);
    return status;
}

segue_status sgi_op_fail(sgi_op *op, sgi_entry_kind kind, int32_t code, sgi_str message,
                         sgi_json data)
{
    sgi_buf payload;
    sgi_buf_init(&payload, sgi_engine_mem(op->engine));
    sgi_jw w = sgi_jw_on(&payload);
    sgi_jw_open(&w, '{');
    sgi_jw_member_int(&w, "code", code);
    sgi_jw_member_string(&w, "message", message);
    if (data.n)
        sgi_jw_member_raw(&w, "data", data);
    sgi_jw_close(&w, '}');
    segue_status status =
        payload.failed ? SEGUE_E_NOMEM : sgi_op_end(op, kind, sgi_buf_str(&payload));
    sgi_buf_free(&payload);
    return status;
}

static void try_the_end_again(sgi_timer *timer)
{
    sgi_op_give_up(SGI_OWNER(timer, sgi_op, promote), "Out of memory");
}

void sgi_op_give_up(sgi_op *op, const char *text)
{
    segue_status status = SEGUE_E_TERMINAL;
    sgi_op_ref(op); /* with its end it may go */
    if (!sgi_op_has_ended(op))
        status = sgi_op_fail(op, SGI_ENTRY_ERROR, SGI_RPC_INTERNAL_ERROR,
                             sgi_str_of(text), (sgi_json){0});
    if (status == SEGUE_E_NOMEM) {
        sgi_engine_timer(op->engine, &op->promote, END_RETRY_MS, try_the_end_again);
    } else if (op->store_broken && sgi_op_has_ended(op)) {
        op->updated_ms = op->ended_ms;
        sgi_op_became_visible(op, op->durable, UINT64_MAX);
    }
    sgi_op_unref(op);
}

segue_status sgi_op_log(sgi_op *op)
{
    segue_status status = sgi_record_write(op);
    if (status != SEGUE_OK)
        return status;
    op->logged = true;
    op->pending = TAILQ_FIRST(&op->tail);
    op->pending_bytes = op->tail_bytes;
    sgi_keeper_dirty(&op->server->keeper, op);
    return SEGUE_OK;
}

bool sgi_op_is_full(const sgi_op *op)
{
    size_t waiting = op->passes ? op->tail_bytes : op->pending_bytes;
    return waiting >= op->engine->max_queue || (op->pending && sgi_budget_slows(op));
}

/* ---- the store says ---- */

static bool is_followed(const sgi_op *op)
{
    const sgi_reader *reader;
    TAILQ_FOREACH(reader, &op->readers, link)
        if (!sgi_reader_rests(reader))
            return true;
    return false;
}

void sgi_op_let_go(sgi_op *op, sgi_entry *entry)
{
    sgi_reader *reader;
    TAILQ_FOREACH(reader, &op->readers, link)
        sgi_reader_forget(reader, entry);
    TAILQ_REMOVE(&op->tail, entry, link);
    op->tail_bytes -= entry->len;
    sgi_budget_let(op, entry->len);
    sgi_entry_free(sgi_engine_mem(op->engine), entry);
}

void sgi_op_trim(sgi_op *op)
{
    bool ended = sgi_op_has_ended(op) && op->final_seq <= op->durable;
    size_t keep = is_followed(op) ? TAIL_KEEP : 0;
    if (!op->logged || (ended && op->log_bytes <= LINGER_KEEP))
        return;
    sgi_entry *entry;
    while ((entry = TAILQ_FIRST(&op->tail)) && entry->seq <= op->durable &&
           op->tail_bytes > keep) {
        sgi_op_let_go(op, entry);
    }
}

void sgi_op_pass(sgi_op *op, uint64_t seq)
{
    sgi_entry *entry;
    while (op->passes && (entry = TAILQ_FIRST(&op->tail)) && entry->seq <= seq) {
        if (entry->kind == SGI_ENTRY_SEGMENT)
            op->log_bytes -= entry->len; /* members beside them stay in its fold */
        sgi_op_let_go(op, entry);
    }
}

static void tell_watches(sgi_op *op)
{
    sgi_watch *watch = LIST_FIRST(&op->watches);
    while (watch) {
        sgi_watch *next = LIST_NEXT(watch, link);
        watch->changed(watch, op);
        watch = next;
    }
}

/* Does the stretch of log that became visible change what tasks/get says? */
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

void sgi_op_became_visible(sgi_op *op, uint64_t after, uint64_t upto)
{
    bool changed = !LIST_EMPTY(&op->watches) && changes_status(op, after, upto);
    sgi_op_ref(op);
    sgi_server_op_visible(op);
    wake_readers(op); /* first: the end of a stream is told before what waits for it */
    if (!LIST_EMPTY(&op->errands))
        sgi_errands_look(op);
    sgi_op_fire(op, SEGUE_OK);
    if (changed)
        tell_watches(op);
    if (sgi_op_is_elsewhere(op))
        sgi_asks_follow(op);
    sgi_op_trim(op);
    sgi_op_unref(op);
}

void sgi_op_durable(sgi_op *op, uint64_t seq)
{
    uint64_t before = op->durable;
    while (op->pending && op->pending->seq <= seq) {
        op->pending_bytes -= op->pending->len;
        sgi_head_show(op, op->pending);
        op->pending = TAILQ_NEXT(op->pending, link);
    }
    op->durable = seq;
    sgi_op_became_visible(op, before, seq);
}

/* Drops what could not be written and ends the operation in memory: nothing that was not
 * durable has been seen, so the log simply never had it (AS-114). */
void sgi_op_drop_pending(sgi_op *op)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    while (op->pending) {
        sgi_entry *entry = op->pending;
        op->pending = TAILQ_NEXT(entry, link);
        TAILQ_REMOVE(&op->tail, entry, link);
        op->tail_bytes -= entry->len;
        sgi_budget_let(op, entry->len);
        op->log_bytes -= entry->len;
        op->appended_bytes -= entry->len;
        op->next_log = entry->seq < op->next_log ? entry->seq : op->next_log;
        if (entry->kind == SGI_ENTRY_SEGMENT && entry->segment < op->next_seg)
            op->next_seg = entry->segment;
        if (entry->event && entry->event < op->next_evt)
            op->next_evt = entry->event;
        sgi_entry_free(mem, entry);
    }
    op->pending_bytes = 0;
    sgi_head_revert(op);
}

void sgi_op_torn(sgi_op *op)
{
    op->torn = true;
    if (op->behind_hole)
        return;
    op->next_log += HOLE;
    op->behind_hole = op->next_log;
}

void sgi_op_write_failed(sgi_op *op, segue_status status)
{
    sgi_op_ref(op);
    if (op->store_broken) {
        /* its end is known to its peers; the keeper goes on trying to write it */
    } else if (!op->created) {
        sgi_op_drop_pending(op);
        op->logged = false;
        op->final = SGI_FINAL_CANCELLED;
        sgi_op_fire(op, status);
        sgi_server_op_lost(op, status);
    } else {
        sgi_op_drop_pending(op);
        op->store_broken = true;
        if (status == SEGUE_E_STATE)
            sgi_op_torn(op);
        sgi_engine_log(op->engine, SEGUE_LOG_ERROR, "store: an operation ends: %s",
                       sgi_status_name(status));
        sgi_refusal refusal = sgi_refusal_of(SGI_UNSTORED, status);
        sgi_op_fail(op, SGI_ENTRY_ERROR, SGI_RPC_INTERNAL_ERROR, sgi_str_of(refusal.text),
                    sgi_str_of(refusal.data));
        sgi_op_give_up(op, refusal.text); /* it may have had no memory to end */
    }
    sgi_op_unref(op);
}

void sgi_op_settle(sgi_op *op)
{
    if (!op->logged)
        sgi_op_became_visible(op, 0, UINT64_MAX);
}
