/* The store in memory. An operation is one block, its record, task id and data together,
 * and a packed log (memory_log.c).
 *
 * Every operation is in two maps (three with an idempotency key), in the order of its
 * principal (memory_owner.c), in the heap of purge times (at INT64_MAX when it is never
 * due, so that moving it cannot fail) and in one list:
 *
 *     CREATE -> live --RELEASE--> loose --claim--> live
 *                 \----------- END --> ended (oldest first: the order of eviction)
 *
 * A commit works in two steps. Staging applies the writes one by one, which may fail at
 * any of them; before an operation is changed for the first time its state goes to
 * `touches`. Then either undo puts these states back or apply moves operations to their
 * lists and frees what was deleted, which cannot fail. Staging leaves the lists alone and
 * frees nothing.
 *
 * What is dropped from logs is dropped when all else has been applied: it needs nothing,
 * and nothing undoes it.
 *
 * `used` counts blocks as they were allocated plus an allowance for what the maps, the
 * heap and the allocator add. Room is made last: only then is it sure that the commit
 * goes through, so no operation is evicted for one that fails. */
#include "store/store.h"

#include "base/crypto.h"
#include "base/map.h"
#include "base/timer.h"
#include "store/memory_log.h"
#include "store/memory_owner.h"

#define DEFAULT_MAX_BYTES (256 * 1024 * 1024)
#define OPERATION_ALLOWANCE 192
#define PURGE_STEP 1000
#define TOUCHES_KEPT 256

typedef struct operation {
    sgi_map_node by_id;
    sgi_map_node by_task;
    sgi_map_node by_key;
    TAILQ_ENTRY(operation) link;
    sgi_timer purge;
    sgi_memory_log log;
    sgi_memory_place place; /* among those of its principal; since when it is there */
    size_t data_len;
    uint32_t task_len;
    uint32_t touch; /* place in touches + 1, 0 = as it was */
    bool has_key;
    bool ended;
    bool loose; /* nobody owns it */
    uint8_t id[SEGUE_STORE_ID_SIZE];
    uint8_t key[SEGUE_STORE_HASH_SIZE];
    char text[]; /* task id, NUL, data */
} operation;

TAILQ_HEAD(operation_list, operation);

typedef struct touch {
    operation *op;
    sgi_memory_mark mark;
    int64_t purge_ms;
    bool ended;
    bool loose;
    bool created;
    bool deleted;
} touch;

typedef struct memory_store {
    sgi_mem mem;
    size_t max_bytes;
    size_t used;
    int64_t max_operations_each; /* of one principal; 0 = any number */
    int64_t max_bytes_each;
    sgi_map by_id;
    sgi_map by_task;
    sgi_map by_key;
    sgi_map owners;
    sgi_timers purges;
    struct operation_list live;
    struct operation_list loose;
    struct operation_list ended;
    touch *touches;
    size_t touch_count;
    size_t touch_cap;
    int64_t evicted;
    int64_t purged;
} memory_store;

/* ---- operations ---- */

static sgi_str id_str(const uint8_t *id)
{
    return (sgi_str){(const char *)id, SEGUE_STORE_ID_SIZE};
}

static sgi_str key_str(const uint8_t *key)
{
    return (sgi_str){(const char *)key, SEGUE_STORE_HASH_SIZE};
}

static sgi_str task_str(const operation *op)
{
    return (sgi_str){op->text, op->task_len};
}

static operation *find_by_id(const memory_store *store, const uint8_t *id)
{
    sgi_map_node *node = sgi_map_find(&store->by_id, id_str(id));
    return node ? SGI_OWNER(node, operation, by_id) : NULL;
}

static struct operation_list *list_of(memory_store *store, bool ended, bool loose)
{
    return ended ? &store->ended : loose ? &store->loose : &store->live;
}

static size_t operation_size(const operation *op)
{
    return sizeof *op + op->task_len + 1 + op->data_len;
}

/* Its share of `used`. */
static size_t weight(const operation *op)
{
    return operation_size(op) + OPERATION_ALLOWANCE + op->log.bytes;
}

static void free_operation(memory_store *store, operation *op)
{
    sgi_timer_clear(&store->purges, &op->purge);
    sgi_memory_log_free(&op->log, &store->mem);
    sgi_memory_owner_drop(&store->owners, &store->mem, &op->place);
    sgi_release(&store->mem, op, operation_size(op));
}

static void put_in_maps(memory_store *store, operation *op)
{
    sgi_map_put(&store->by_id, &op->by_id, id_str(op->id));
    sgi_map_put(&store->by_task, &op->by_task, task_str(op));
    if (op->has_key)
        sgi_map_put(&store->by_key, &op->by_key, key_str(op->key));
    sgi_memory_owner_add(&op->place);
}

static void take_from_maps(memory_store *store, operation *op)
{
    sgi_map_remove(&store->by_id, &op->by_id);
    sgi_map_remove(&store->by_task, &op->by_task);
    if (op->has_key)
        sgi_map_remove(&store->by_key, &op->by_key);
    sgi_memory_owner_remove(&op->place);
}

/* Outside of a commit: takes the operation away for good. */
static void drop_operation(memory_store *store, operation *op)
{
    take_from_maps(store, op);
    TAILQ_REMOVE(list_of(store, op->ended, op->loose), op, link);
    store->used -= weight(op);
    free_operation(store, op);
}

static segue_store_record record_of(const operation *op)
{
    segue_store_record record = {.task_id = op->text,
                                 .has_key = op->has_key,
                                 .ended = op->ended,
                                 .created_ms = op->place.created_ms,
                                 .purge_ms = op->purge.at_ms,
                                 .data = op->text + op->task_len + 1,
                                 .data_len = op->data_len};
    memcpy(record.id, op->id, sizeof record.id);
    memcpy(record.idempotency_key, op->key, sizeof record.idempotency_key);
    memcpy(record.principal, sgi_memory_owner_principal(&op->place),
           sizeof record.principal);
    return record;
}

/* ---- staging ---- */

static bool reserve_touch(memory_store *store)
{
    if (store->touch_count < store->touch_cap)
        return true;
    size_t cap = store->touch_cap ? store->touch_cap * 2 : 4;
    touch *touches =
        sgi_resize(&store->mem, store->touches, store->touch_cap * sizeof *touches,
                   cap * sizeof *touches);
    if (!touches)
        return false;
    store->touches = touches;
    store->touch_cap = cap;
    return true;
}

static touch *remember(memory_store *store, operation *op)
{
    touch *t = &store->touches[store->touch_count++];
    *t = (touch){.op = op,
                 .mark = sgi_memory_log_mark(&op->log),
                 .purge_ms = op->purge.at_ms,
                 .ended = op->ended,
                 .loose = op->loose};
    op->touch = (uint32_t)store->touch_count;
    return t;
}

/* To be called before an operation is changed; NULL when out of memory. */
static touch *touch_operation(memory_store *store, operation *op)
{
    if (op->touch)
        return &store->touches[op->touch - 1];
    return reserve_touch(store) ? remember(store, op) : NULL;
}

static operation *new_operation(memory_store *store, const segue_store_record *record)
{
    size_t task_len = strlen(record->task_id);
    size_t size = sizeof(operation) + task_len + 1 + record->data_len;
    operation *op = sgi_alloc(&store->mem, size);
    if (!op)
        return NULL;
    *op = (operation){.place.created_ms = record->created_ms,
                      .place.task_id = op->text,
                      .data_len = record->data_len,
                      .task_len = (uint32_t)task_len,
                      .has_key = record->has_key != 0,
                      .ended = record->ended != 0};
    memcpy(op->id, record->id, sizeof op->id);
    if (op->has_key)
        memcpy(op->key, record->idempotency_key, sizeof op->key);
    memcpy(op->text, record->task_id, task_len + 1);
    if (record->data_len)
        memcpy(op->text + task_len + 1, record->data, record->data_len);
    if (!sgi_memory_owner_hold(&store->owners, &store->mem, &op->place,
                               record->principal)) {
        sgi_release(&store->mem, op, size);
        return NULL;
    }
    if (!sgi_timer_set(&store->purges, &op->purge, record->purge_ms, NULL)) {
        sgi_memory_owner_drop(&store->owners, &store->mem, &op->place);
        sgi_release(&store->mem, op, size);
        return NULL;
    }
    return op;
}

static segue_status stage_create(memory_store *store, const segue_store_record *record)
{
    if (!record || !record->task_id || strlen(record->task_id) > UINT32_MAX)
        return SEGUE_E_INVALID;
    if (sgi_map_find(&store->by_id, id_str(record->id)) ||
        sgi_map_find(&store->by_task, sgi_str_of(record->task_id)) ||
        (record->has_key &&
         sgi_map_find(&store->by_key, key_str(record->idempotency_key))))
        return SEGUE_E_EXISTS;
    if (!reserve_touch(store))
        return SEGUE_E_NOMEM;
    operation *op = new_operation(store, record);
    if (!op)
        return SEGUE_E_NOMEM;
    remember(store, op)->created = true;
    put_in_maps(store, op);
    store->used += weight(op);
    return SEGUE_OK;
}

static segue_status stage_append(memory_store *store, operation *op,
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

static segue_status stage_end(memory_store *store, operation *op, int64_t purge_ms)
{
    if (!touch_operation(store, op))
        return SEGUE_E_NOMEM;
    op->ended = true;
    sgi_timer_set(&store->purges, &op->purge, purge_ms, NULL);
    return SEGUE_OK;
}

static segue_status stage_delete(memory_store *store, operation *op)
{
    touch *t = touch_operation(store, op);
    if (!t)
        return SEGUE_E_NOMEM;
    t->deleted = true;
    take_from_maps(store, op);
    store->used -= weight(op);
    return SEGUE_OK;
}

static segue_status stage_release(memory_store *store, operation *op)
{
    if (op->ended)
        return SEGUE_OK;
    if (!touch_operation(store, op))
        return SEGUE_E_NOMEM;
    op->loose = true;
    return SEGUE_OK;
}

/* recent: where the last write went, most likely the place of this one too. */
static segue_status stage(memory_store *store, const segue_store_write *write,
                          operation **recent)
{
    if (write->kind == SEGUE_STORE_CREATE)
        return stage_create(store, write->record);
    operation *op = *recent;
    if (!op || memcmp(op->id, write->id, sizeof op->id) != 0)
        op = *recent = find_by_id(store, write->id);
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
        return SEGUE_OK; /* comes last */
    default:
        return SEGUE_E_INVALID;
    }
}

/* ---- the two ends of a commit ---- */

static void undo_touch(memory_store *store, touch *t)
{
    operation *op = t->op;
    op->touch = 0;
    if (t->created) {
        if (!t->deleted)
            take_from_maps(store, op);
        free_operation(store, op);
        return;
    }
    if (t->deleted)
        put_in_maps(store, op);
    sgi_memory_log_cut(&op->log, &store->mem, &t->mark);
    op->ended = t->ended;
    op->loose = t->loose;
    sgi_timer_set(&store->purges, &op->purge, t->purge_ms, NULL);
}

static void apply_touch(memory_store *store, touch *t)
{
    operation *op = t->op;
    struct operation_list *before = list_of(store, t->ended, t->loose);
    struct operation_list *after = list_of(store, op->ended, op->loose);
    op->touch = 0;
    if (t->deleted) {
        if (!t->created)
            TAILQ_REMOVE(before, op, link);
        free_operation(store, op);
    } else if (t->created || before != after) {
        if (!t->created)
            TAILQ_REMOVE(before, op, link);
        TAILQ_INSERT_TAIL(after, op, link);
    }
}

/* Evicts what ended first until the commit fits, or nothing when it cannot fit. What the
 * commit itself touches stays. */
static bool make_room(memory_store *store)
{
    operation *op, *next;
    size_t left = store->used;
    TAILQ_FOREACH(op, &store->ended, link) {
        if (left <= store->max_bytes)
            break;
        if (!op->touch)
            left -= weight(op);
    }
    if (left > store->max_bytes)
        return false;
    SGI_TAILQ_EACH(op, &store->ended, link, next) {
        if (store->used <= store->max_bytes)
            break;
        if (op->touch)
            continue;
        drop_operation(store, op);
        store->evicted++;
    }
    return true;
}

static bool is_over(const memory_store *store, int64_t operations, int64_t bytes)
{
    return (store->max_operations_each && operations > store->max_operations_each) ||
           (store->max_bytes_each && bytes > store->max_bytes_each);
}

/* Whether evicting what ended of the principal of a new operation keeps it within its
 * bounds; it is done if evict says so. */
static bool fits_principal(memory_store *store, const operation *made, bool evict)
{
    int64_t operations = 0, bytes = 0;
    sgi_memory_place *place = sgi_memory_owner_oldest(&made->place), *next;
    for (; place; place = sgi_memory_owner_newer(place)) {
        operations++;
        bytes += (int64_t)weight(SGI_OWNER(place, operation, place));
    }
    place = sgi_memory_owner_oldest(&made->place);
    for (; place && is_over(store, operations, bytes); place = next) {
        operation *op = SGI_OWNER(place, operation, place);
        next = sgi_memory_owner_newer(place);
        if (!op->ended || op->touch)
            continue;
        operations--;
        bytes -= (int64_t)weight(op);
        if (!evict)
            continue;
        drop_operation(store, op);
        store->evicted++;
    }
    return !is_over(store, operations, bytes);
}

static bool make_room_each(memory_store *store, bool evict)
{
    if (!store->max_operations_each && !store->max_bytes_each)
        return true;
    for (size_t i = 0; i < store->touch_count; i++) {
        const touch *t = &store->touches[i];
        if (t->created && !t->deleted && !fits_principal(store, t->op, evict))
            return false;
    }
    return true;
}

static void forget_touches(memory_store *store)
{
    store->touch_count = 0;
    if (store->touch_cap <= TOUCHES_KEPT)
        return;
    sgi_release(&store->mem, store->touches, store->touch_cap * sizeof *store->touches);
    store->touches = NULL;
    store->touch_cap = 0;
}

static void drop_entries(memory_store *store, const segue_store_write *write)
{
    operation *op = find_by_id(store, write->id);
    if (!op)
        return;
    size_t before = op->log.bytes;
    sgi_memory_log_drop(&op->log, &store->mem, write->entry.kind, write->entry.seq);
    store->used -= before - op->log.bytes;
}

static segue_status commit(void *self, const segue_store_write *writes, size_t count)
{
    memory_store *store = self;
    operation *recent = NULL;
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

/* ---- the other calls ---- */

static segue_status find(void *self, const char *task_id, const uint8_t *idempotency_key,
                         segue_store_record_fn fn, void *user)
{
    memory_store *store = self;
    sgi_map_node *node = task_id ? sgi_map_find(&store->by_task, sgi_str_of(task_id))
                                 : sgi_map_find(&store->by_key, key_str(idempotency_key));
    if (!node)
        return SEGUE_E_NOT_FOUND;
    operation *op = task_id ? SGI_OWNER(node, operation, by_task)
                            : SGI_OWNER(node, operation, by_key);
    segue_store_record record = record_of(op);
    fn(user, &record);
    return SEGUE_OK;
}

static segue_status read_log(void *self, const uint8_t *id, uint64_t after,
                             segue_store_entry_fn fn, void *user)
{
    operation *op = find_by_id(self, id);
    if (!op)
        return SEGUE_E_NOT_FOUND;
    sgi_memory_log_read(&op->log, after, fn, user);
    return SEGUE_OK;
}

static segue_status list(void *self, const uint8_t *principal, int64_t created_ms,
                         const char *task_id, segue_store_record_fn fn, void *user)
{
    memory_store *store = self;
    sgi_memory_place *place =
        sgi_memory_owner_first(&store->owners, principal, created_ms, task_id);
    for (; place; place = sgi_memory_owner_next(place)) {
        segue_store_record record = record_of(SGI_OWNER(place, operation, place));
        if (fn(user, &record))
            break;
    }
    return SEGUE_OK;
}

static segue_status claim(void *self, segue_store_record_fn fn, void *user)
{
    memory_store *store = self;
    operation *op;
    while ((op = TAILQ_FIRST(&store->loose))) {
        op->loose = false;
        TAILQ_REMOVE(&store->loose, op, link);
        TAILQ_INSERT_TAIL(&store->live, op, link);
        segue_store_record record = record_of(op);
        if (fn(user, &record))
            break;
    }
    return SEGUE_OK;
}

static segue_status purge(void *self, int64_t now_ms, int64_t *next_ms)
{
    memory_store *store = self;
    int64_t next;
    for (uint64_t rows = 0; (next = sgi_timers_next(&store->purges)) != INT64_MAX;) {
        if (next > now_ms || rows >= PURGE_STEP)
            break;
        operation *op = SGI_OWNER(store->purges.heap[0], operation, purge);
        rows += op->log.last_seq + 1;
        drop_operation(store, op);
        store->purged++;
    }
    *next_ms = next < now_ms ? now_ms : next;
    return SEGUE_OK;
}

static void tell_stats(void *self, segue_store_stats *stats)
{
    const memory_store *store = self;
    stats->operations = (int64_t)store->by_id.count;
    stats->bytes = (int64_t)store->used;
    stats->evicted = store->evicted;
    stats->purged = store->purged;
}

static void free_list(memory_store *store, struct operation_list *list)
{
    operation *op, *next;
    SGI_TAILQ_EACH(op, list, link, next)
        free_operation(store, op);
}

static void free_store(void *self)
{
    memory_store *store = self;
    /* The heap first: a timer that is in no heap costs nothing to clear. */
    sgi_timers_free(&store->purges);
    free_list(store, &store->live);
    free_list(store, &store->loose);
    free_list(store, &store->ended);
    sgi_map_free(&store->by_id);
    sgi_map_free(&store->by_task);
    sgi_map_free(&store->by_key);
    sgi_map_free(&store->owners);
    sgi_release(&store->mem, store->touches, store->touch_cap * sizeof *store->touches);
    sgi_mem mem = store->mem;
    sgi_release(&mem, store, sizeof *store);
}

segue_status sgi_store_memory_new(const segue_store_options *options, segue_store **out)
{
    static const segue_store_vtable vtable = {.struct_size = sizeof vtable,
                                              .commit = commit,
                                              .find = find,
                                              .read = read_log,
                                              .claim = claim,
                                              .purge = purge,
                                              .free = free_store,
                                              .list = list,
                                              .stats = tell_stats};
    const sgi_mem *mem =
        options && options->allocator ? options->allocator : &sgi_mem_libc;
    int64_t max_bytes = options ? options->max_bytes : 0;
    if (max_bytes < 0 || (options && (options->max_principal_operations < 0 ||
                                      options->max_principal_bytes < 0)))
        return SEGUE_E_INVALID;
    memory_store *store = sgi_zalloc(mem, sizeof *store);
    if (!store)
        return SEGUE_E_NOMEM;
    store->mem = *mem;
    store->max_bytes = max_bytes ? (size_t)max_bytes : DEFAULT_MAX_BYTES;
    if (options) {
        store->max_operations_each = options->max_principal_operations;
        store->max_bytes_each = options->max_principal_bytes;
    }
    segue_hooks hooks = {.struct_size = sizeof hooks, .random = sgi_crypto_random};
    sgi_env env = {&store->mem, &hooks};
    sgi_map_init(&store->by_id, &env);
    sgi_map_init(&store->by_task, &env);
    sgi_map_init(&store->by_key, &env);
    sgi_map_init(&store->owners, &env);
    sgi_timers_init(&store->purges, &store->mem);
    TAILQ_INIT(&store->live);
    TAILQ_INIT(&store->loose);
    TAILQ_INIT(&store->ended);
    segue_status status = sgi_store_new(&vtable, store, mem, out);
    if (status)
        free_store(store);
    return status;
}
