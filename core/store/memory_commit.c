/* Writes to the memory store. A commit has two steps. The first step, staging, applies
 * the writes one by one; each write can fail. Before staging changes an operation for the
 * first time, it saves the operation's state in `touches`. If a write has failed, `undo`
 * restores the saved states. Otherwise the second step, `apply`, moves the operations to
 * their lists and frees deleted operations. Neither `undo` nor `apply` can fail. Staging
 * changes no list and frees nothing.
 *
 * DROP writes are applied last. They need no memory and are never undone.
 *
 * `used` counts the bytes of allocated blocks, plus an allowance for the maps, the heap
 * and the allocator. Operations are evicted only after staging, when it is certain that
 * the commit succeeds. Therefore no operation is evicted for a commit that fails. */
#include "store/memory_store.h"

#define TOUCHES_KEPT 256

/* ---- staging ---- */

static bool reserve_touch(sgi_memory_store *store)
{
    if (store->touch_count < store->touch_cap)
        return true;
    size_t cap = store->touch_cap ? store->touch_cap * 2 : 4;
    sgi_memory_saved_op *touches =
        sgi_realloc(&store->mem, store->touches, store->touch_cap * sizeof *touches,
                    cap * sizeof *touches);
    if (!touches)
        return false;
    store->touches = touches;
    store->touch_cap = cap;
    return true;
}

static sgi_memory_saved_op *remember(sgi_memory_store *store, sgi_memory_operation *op)
{
    sgi_memory_saved_op *t = &store->touches[store->touch_count++];
    *t = (sgi_memory_saved_op){.op = op,
                               .mark = sgi_memory_log_get_mark(&op->log),
                               .purge_ms = op->purge.at_ms,
                               .ended = op->ended,
                               .loose = op->loose};
    op->touch = (uint32_t)store->touch_count;
    return t;
}

/* Saves the state of an operation, unless this commit has already saved it. Returns the
 * saved state, or NULL when out of memory. */
static sgi_memory_saved_op *touch_operation(sgi_memory_store *store,
                                            sgi_memory_operation *op)
{
    if (op->touch)
        return &store->touches[op->touch - 1];
    return reserve_touch(store) ? remember(store, op) : NULL;
}

/* Gives the operation the texts of the record: the block that the record shares, or
 * otherwise a copy. Returns false when out of memory. */
static bool take_texts(sgi_memory_store *store, sgi_memory_operation *op,
                       const segue_store_record *record)
{
    size_t data_at = op->task_len + (size_t)1;
    if (record->shared) {
        op->text = sgi_shared_text_ref(record->shared);
        op->data_at = (uint32_t)(record->data - op->text->bytes);
        return true;
    }
    op->text = sgi_shared_text_new(&store->mem, data_at + record->data_len);
    if (!op->text)
        return false;
    op->data_at = (uint32_t)data_at;
    memcpy(op->text->bytes, record->task_id, data_at);
    if (record->data_len)
        memcpy(op->text->bytes + data_at, record->data, record->data_len);
    return true;
}

/* Gives a new operation what it has beside its block. */
static bool fill(sgi_memory_store *store, sgi_memory_operation *op,
                 const segue_store_record *record)
{
    if (!take_texts(store, op, record))
        return false;
    op->place.task_id = op->text->bytes;
    if (!sgi_memory_principal_set(&store->owners, &store->mem, &op->place,
                                  record->principal)) {
        sgi_shared_text_unref(op->text);
        return false;
    }
    if (!sgi_timer_set(&store->purges, &op->purge, record->purge_ms, NULL)) {
        sgi_memory_principal_release(&store->owners, &store->mem, &op->place);
        sgi_shared_text_unref(op->text);
        return false;
    }
    return true;
}

static sgi_memory_operation *new_operation(sgi_memory_store *store,
                                           const segue_store_record *record)
{
    sgi_memory_operation fresh = {.place.created_ms = record->created_ms,
                                  .data_len = (uint32_t)record->data_len,
                                  .task_len = (uint32_t)strlen(record->task_id),
                                  .has_key = record->has_key != 0,
                                  .ended = record->ended != 0};
    size_t size = sgi_memory_op_size(&fresh);
    sgi_memory_operation *op = sgi_alloc(&store->mem, size);
    if (!op)
        return NULL;
    *op = fresh;
    memcpy(op->id, record->id, sizeof op->id);
    if (op->has_key)
        memcpy(op->key->key, record->idempotency_key, sizeof op->key->key);
    if (!fill(store, op, record)) {
        sgi_free(&store->mem, op, size);
        return NULL;
    }
    return op;
}

static segue_status stage_create(sgi_memory_store *store,
                                 const segue_store_record *record)
{
    if (!record || !record->task_id ||
        strlen(record->task_id) >= SGI_SHARED_TEXT_MAX / 2 ||
        record->data_len >= SGI_SHARED_TEXT_MAX / 2)
        return SEGUE_E_INVALID;
    if (sgi_index_find(&store->by_id, sgi_memory_id(record->id)) ||
        sgi_index_find(&store->by_task, sgi_str_of(record->task_id)) ||
        (record->has_key &&
         sgi_index_find(&store->by_key, sgi_memory_key(record->idempotency_key))))
        return SEGUE_E_EXISTS;
    if (!reserve_touch(store))
        return SEGUE_E_NOMEM;
    sgi_memory_operation *op = new_operation(store, record);
    if (!op)
        return SEGUE_E_NOMEM;
    remember(store, op)->created = true;
    sgi_memory_put_in_maps(store, op);
    store->used += sgi_memory_op_weight(op);
    return SEGUE_OK;
}

static segue_status stage_append(sgi_memory_store *store, sgi_memory_operation *op,
                                 const segue_store_entry *entry)
{
    if (entry->seq != op->log.last_seq + 1)
        return SEGUE_E_STATE;
    if (!touch_operation(store, op))
        return SEGUE_E_NOMEM;
    size_t before = op->log.bytes;
    segue_status status = sgi_memory_log_append(&op->log, &store->mem, entry);
    store->used += op->log.bytes - before;
    return status;
}

static segue_status stage_end(sgi_memory_store *store, sgi_memory_operation *op,
                              int64_t purge_ms)
{
    if (!touch_operation(store, op))
        return SEGUE_E_NOMEM;
    op->ended = true;
    sgi_timer_set(&store->purges, &op->purge, purge_ms, NULL);
    return SEGUE_OK;
}

static segue_status stage_delete(sgi_memory_store *store, sgi_memory_operation *op)
{
    sgi_memory_saved_op *t = touch_operation(store, op);
    if (!t)
        return SEGUE_E_NOMEM;
    t->deleted = true;
    sgi_memory_take_from_maps(store, op);
    store->used -= sgi_memory_op_weight(op);
    return SEGUE_OK;
}

static segue_status stage_release(sgi_memory_store *store, sgi_memory_operation *op)
{
    if (op->ended)
        return SEGUE_OK;
    if (!touch_operation(store, op))
        return SEGUE_E_NOMEM;
    op->loose = true;
    return SEGUE_OK;
}

/* Applies one write. *recent is the operation of the preceding write. Consecutive writes
 * often change the same operation, so *recent saves look-ups. */
static segue_status stage(sgi_memory_store *store, const segue_store_write *write,
                          sgi_memory_operation **recent)
{
    if (write->kind == SEGUE_STORE_CREATE)
        return stage_create(store, write->record);
    sgi_memory_operation *op = *recent;
    if (!op || memcmp(op->id, write->id, sizeof op->id) != 0)
        op = *recent = sgi_memory_find_op(store, write->id);
    switch (write->kind) {
    case SEGUE_STORE_APPEND:
        return op ? stage_append(store, op, &write->entry) : SEGUE_E_NOT_FOUND;
    case SEGUE_STORE_END:
        return op ? stage_end(store, op, write->purge_ms) : SEGUE_E_NOT_FOUND;
    case SEGUE_STORE_DELETE:
        *recent = NULL;
        return op ? stage_delete(store, op) : SEGUE_OK;
    case SEGUE_STORE_RELEASE:
        return op ? stage_release(store, op) : SEGUE_OK;
    case SEGUE_STORE_DROP:
        return SEGUE_OK; /* DROP writes are applied later, after all other writes */
    default:
        return SEGUE_E_INVALID;
    }
}

/* ---- undoing and applying ---- */

static void undo_touch(sgi_memory_store *store, sgi_memory_saved_op *t)
{
    sgi_memory_operation *op = t->op;
    op->touch = 0;
    if (t->created) {
        if (!t->deleted)
            sgi_memory_take_from_maps(store, op);
        sgi_memory_op_free(store, op);
        return;
    }
    if (t->deleted)
        sgi_memory_put_in_maps(store, op);
    sgi_memory_log_roll_back(&op->log, &store->mem, &t->mark);
    op->ended = t->ended;
    op->loose = t->loose;
    sgi_timer_set(&store->purges, &op->purge, t->purge_ms, NULL);
}

static void apply_touch(sgi_memory_store *store, sgi_memory_saved_op *t)
{
    sgi_memory_operation *op = t->op;
    struct sgi_memory_list *before = sgi_memory_list_of(store, t->ended, t->loose);
    struct sgi_memory_list *after = sgi_memory_list_of(store, op->ended, op->loose);
    op->touch = 0;
    if (t->deleted) {
        if (!t->created)
            TAILQ_REMOVE(before, op, link);
        sgi_memory_op_free(store, op);
    } else if (t->created || before != after) {
        if (!t->created)
            TAILQ_REMOVE(before, op, link);
        TAILQ_INSERT_TAIL(after, op, link);
    }
}

/* Evicts ended operations, the oldest first, until the store is within max_bytes. Returns
 * false, and evicts nothing, when even the eviction of all ended operations would not be
 * enough. Operations that this commit changes are not evicted. */
static bool make_room(sgi_memory_store *store)
{
    sgi_memory_operation *op, *next;
    size_t left = store->used;
    TAILQ_FOREACH(op, &store->ended, link) {
        if (left <= store->max_bytes)
            break;
        if (!op->touch)
            left -= sgi_memory_op_weight(op);
    }
    if (left > store->max_bytes)
        return false;
    SGI_TAILQ_EACH(op, &store->ended, link, next) {
        if (store->used <= store->max_bytes)
            break;
        if (op->touch)
            continue;
        sgi_memory_op_delete(store, op);
        store->evicted++;
    }
    return true;
}

static bool is_over(const sgi_memory_store *store, int64_t operations, int64_t bytes)
{
    return (store->max_operations_each && operations > store->max_operations_each) ||
           (store->max_bytes_each && bytes > store->max_bytes_each);
}

/* True when the principal of the new operation `made` is within its limits, or can be
 * brought within its limits by eviction. evict: true = evict ended operations of the
 * principal as needed; false = only check. */
static bool fits_principal(sgi_memory_store *store, const sgi_memory_operation *made,
                           bool evict)
{
    int64_t operations = 0, bytes = 0;
    sgi_memory_principal_entry *place = sgi_memory_principal_oldest(&made->place), *next;
    for (; place; place = sgi_memory_principal_newer(place)) {
        operations++;
        bytes +=
            (int64_t)sgi_memory_op_weight(SGI_OWNER(place, sgi_memory_operation, place));
    }
    place = sgi_memory_principal_oldest(&made->place);
    for (; place && is_over(store, operations, bytes); place = next) {
        sgi_memory_operation *op = SGI_OWNER(place, sgi_memory_operation, place);
        next = sgi_memory_principal_newer(place);
        if (!op->ended || op->touch)
            continue;
        operations--;
        bytes -= (int64_t)sgi_memory_op_weight(op);
        if (!evict)
            continue;
        sgi_memory_op_delete(store, op);
        store->evicted++;
    }
    return !is_over(store, operations, bytes);
}

static bool make_room_each(sgi_memory_store *store, bool evict)
{
    if (!store->max_operations_each && !store->max_bytes_each)
        return true;
    for (size_t i = 0; i < store->touch_count; i++) {
        const sgi_memory_saved_op *t = &store->touches[i];
        if (t->created && !t->deleted && !fits_principal(store, t->op, evict))
            return false;
    }
    return true;
}

static void forget_touches(sgi_memory_store *store)
{
    store->touch_count = 0;
    if (store->touch_cap <= TOUCHES_KEPT)
        return;
    sgi_free(&store->mem, store->touches, store->touch_cap * sizeof *store->touches);
    store->touches = NULL;
    store->touch_cap = 0;
}

static void drop_entries(sgi_memory_store *store, const segue_store_write *write)
{
    sgi_memory_operation *op = sgi_memory_find_op(store, write->id);
    if (!op)
        return;
    size_t before = op->log.bytes;
    sgi_memory_log_drop_kind(&op->log, &store->mem, write->entry.kind, write->entry.seq);
    store->used -= before - op->log.bytes;
}

segue_status sgi_memory_commit(void *self, const segue_store_write *writes, size_t count)
{
    sgi_memory_store *store = self;
    sgi_memory_operation *recent = NULL;
    segue_status status = SEGUE_OK;
    size_t used = store->used;
    for (size_t i = 0; i < count && !status; i++)
        status = stage(store, &writes[i], &recent);
    if (!status && !make_room_each(store, false))
        status = SEGUE_E_STORE_FULL;
    if (!status && store->used > store->max_bytes && !make_room(store))
        status = SEGUE_E_STORE_FULL;
    if (status)
        store->used = used;
    else
        make_room_each(store, true);
    for (size_t i = 0; i < store->touch_count; i++)
        (status ? undo_touch : apply_touch)(store, &store->touches[i]);
    forget_touches(store);
    for (size_t i = 0; i < count && !status; i++)
        if (writes[i].kind == SEGUE_STORE_DROP)
            drop_entries(store, &writes[i]);
    return status;
}
