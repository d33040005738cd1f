/* The store in memory. An operation has three parts: a block for the store, the texts of
 * its record, which it shares with the server that made it, and a packed log
 * (memory_log.c).
 *
 * Every operation is in the map of ids, in the map of task ids, in the map of
 * idempotency keys if it has a key, in the sorted list of its principal
 * (memory_owner.c), in the heap of purge times and in one of the lists below. An
 * operation that is never purged has the purge time INT64_MAX in the heap. A later
 * change of the purge time therefore needs no memory and cannot fail.
 *
 *     CREATE -> live --RELEASE--> loose --claim--> live
 *                   \----------- END --> ended (oldest first: the order of eviction) */
#include "store/memory_store.h"

#include "base/thresholds.h"

#include "base/crypto.h"

#define DEFAULT_MAX_BYTES SGI_THRESHOLD(memory_store_bytes)
#define OPERATION_ALLOWANCE 192
#define PURGE_STEP SGI_THRESHOLD(memory_purge_step)
#define SCAN_STEP SGI_THRESHOLD(scan_step)

/* ---- operations ---- */

static sgi_memory_operation *op_of_id_node(const sgi_index_node *node)
{
    return SGI_OWNER((sgi_index_node *)node, sgi_memory_operation, by_id);
}

static sgi_memory_operation *op_of_task_node(const sgi_index_node *node)
{
    return SGI_OWNER((sgi_index_node *)node, sgi_memory_operation, by_task);
}

static sgi_memory_op_key *key_of_node(const sgi_index_node *node)
{
    return SGI_OWNER((sgi_index_node *)node, sgi_memory_op_key, by_key);
}

static sgi_str id_of(const sgi_index_node *node)
{
    return sgi_memory_id(op_of_id_node(node)->id);
}

static sgi_str task_id_of(const sgi_index_node *node)
{
    const sgi_memory_operation *op = op_of_task_node(node);
    return (sgi_str){op->text->bytes, op->task_len};
}

static sgi_str key_of(const sgi_index_node *node)
{
    return sgi_memory_key(key_of_node(node)->key);
}

sgi_memory_operation *sgi_memory_find_op(const sgi_memory_store *store, const uint8_t *id)
{
    const sgi_index_node *node = sgi_index_find(&store->by_id, sgi_memory_id(id));
    return node ? op_of_id_node(node) : NULL;
}

struct sgi_memory_list *sgi_memory_list_of(sgi_memory_store *store, bool ended,
                                           bool loose)
{
    return ended ? &store->ended : loose ? &store->loose : &store->live;
}

size_t sgi_memory_op_size(const sgi_memory_operation *op)
{
    return sizeof *op + (op->has_key ? sizeof *op->key : 0);
}

size_t sgi_memory_op_weight(const sgi_memory_operation *op)
{
    return sgi_memory_op_size(op) + op->task_len + 1 + op->data_len +
           OPERATION_ALLOWANCE + op->log.bytes;
}

void sgi_memory_op_free(sgi_memory_store *store, sgi_memory_operation *op)
{
    sgi_timer_clear(&store->purges, &op->purge);
    sgi_memory_log_free(&op->log, &store->mem);
    sgi_memory_principal_release(&store->owners, &store->mem, &op->place);
    sgi_shared_text_unref(op->text);
    sgi_free(&store->mem, op, sgi_memory_op_size(op));
}

void sgi_memory_put_in_maps(sgi_memory_store *store, sgi_memory_operation *op)
{
    sgi_index_put(&store->by_id, &op->by_id);
    sgi_index_put(&store->by_task, &op->by_task);
    if (op->has_key)
        sgi_index_put(&store->by_key, &op->key->by_key);
    sgi_memory_principal_add(&op->place);
}

void sgi_memory_take_from_maps(sgi_memory_store *store, sgi_memory_operation *op)
{
    sgi_index_remove(&store->by_id, &op->by_id);
    sgi_index_remove(&store->by_task, &op->by_task);
    if (op->has_key)
        sgi_index_remove(&store->by_key, &op->key->by_key);
    sgi_memory_principal_remove(&op->place);
}

void sgi_memory_op_delete(sgi_memory_store *store, sgi_memory_operation *op)
{
    sgi_memory_take_from_maps(store, op);
    TAILQ_REMOVE(sgi_memory_list_of(store, op->ended, op->loose), op, link);
    store->used -= sgi_memory_op_weight(op);
    sgi_memory_op_free(store, op);
}

static segue_store_record record_of(const sgi_memory_operation *op)
{
    segue_store_record record = {.task_id = op->text->bytes,
                                 .has_key = op->has_key,
                                 .ended = op->ended,
                                 .created_ms = op->place.created_ms,
                                 .purge_ms = op->purge.at_ms,
                                 .data = op->text->bytes + op->data_at,
                                 .data_len = op->data_len};
    memcpy(record.id, op->id, sizeof record.id);
    if (op->has_key)
        memcpy(record.idempotency_key, op->key->key, sizeof record.idempotency_key);
    memcpy(record.principal, sgi_memory_principal_of_entry(&op->place),
           sizeof record.principal);
    return record;
}

/* ---- finding, reading, claiming, purging ---- */

static segue_status find(void *self, const char *task_id, const uint8_t *idempotency_key,
                         segue_store_record_fn fn, void *user)
{
    sgi_memory_store *store = self;
    const sgi_index_node *node =
        task_id ? sgi_index_find(&store->by_task, sgi_str_of(task_id))
                : sgi_index_find(&store->by_key, sgi_memory_key(idempotency_key));
    if (!node)
        return SEGUE_E_NOT_FOUND;
    const sgi_memory_operation *op =
        task_id ? op_of_task_node(node)
                : SGI_OWNER(key_of_node(node), sgi_memory_operation, key);
    segue_store_record record = record_of(op);
    fn(user, &record);
    return SEGUE_OK;
}

static segue_status read_log(void *self, const uint8_t *id, uint64_t after,
                             segue_store_entry_fn fn, void *user)
{
    sgi_memory_operation *op = sgi_memory_find_op(self, id);
    if (!op)
        return SEGUE_E_NOT_FOUND;
    sgi_memory_log_read(&op->log, after, fn, user);
    return SEGUE_OK;
}

static segue_status list(void *self, const uint8_t *principal, int64_t created_ms,
                         const char *task_id, segue_store_record_fn fn, void *user)
{
    sgi_memory_store *store = self;
    sgi_memory_principal_entry *place =
        sgi_memory_principal_first_after(&store->owners, principal, created_ms, task_id);
    for (; place; place = sgi_memory_principal_next(place)) {
        segue_store_record record =
            record_of(SGI_OWNER(place, sgi_memory_operation, place));
        if (fn(user, &record))
            break;
    }
    return SEGUE_OK;
}

typedef struct scanning {
    segue_store_record_fn fn;
    void *user;
    int64_t passed;
    bool stop;
} scanning;

static void pass_scanned(void *user, sgi_index_node *node)
{
    scanning *s = user;
    if (s->stop)
        return;
    segue_store_record record = record_of(op_of_id_node(node));
    s->stop = s->fn(s->user, &record) != 0;
    s->passed++;
}

static segue_status scan(void *self, uint64_t *place, segue_store_record_fn fn,
                         void *user)
{
    const sgi_memory_store *store = self;
    scanning s = {.fn = fn, .user = user};
    int64_t chains = 0;
    do
        sgi_index_pass_chain(&store->by_id, place, pass_scanned, &s);
    while (*place && !s.stop && s.passed < SCAN_STEP && ++chains < SCAN_STEP);
    return SEGUE_OK;
}

static segue_status claim(void *self, segue_store_record_fn fn, void *user)
{
    sgi_memory_store *store = self;
    sgi_memory_operation *op;
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
    sgi_memory_store *store = self;
    uint64_t rows = 0;
    sgi_timer *next;
    while ((next = sgi_timers_first(&store->purges)) && next->at_ms <= now_ms &&
           rows < PURGE_STEP) {
        sgi_memory_operation *op = SGI_OWNER(next, sgi_memory_operation, purge);
        rows += op->log.last_seq + 1;
        sgi_memory_op_delete(store, op);
        store->purged++;
    }
    int64_t due_ms = sgi_timers_next_due_ms(&store->purges);
    *next_ms = due_ms < now_ms ? now_ms : due_ms;
    return SEGUE_OK;
}

static void tell_stats(void *self, segue_store_stats *stats)
{
    const sgi_memory_store *store = self;
    stats->operations = (int64_t)store->by_id.count;
    stats->bytes = (int64_t)store->used;
    stats->evicted = store->evicted;
    stats->purged = store->purged;
}

static void free_list(sgi_memory_store *store, struct sgi_memory_list *list)
{
    sgi_memory_operation *op, *next;
    SGI_TAILQ_EACH(op, list, link, next)
        sgi_memory_op_free(store, op);
}

static void free_store(void *self)
{
    sgi_memory_store *store = self;
    /* The heap is freed first. Afterwards no operation is in a heap, so freeing an
     * operation needs no search for its timer. */
    sgi_timers_free(&store->purges);
    free_list(store, &store->live);
    free_list(store, &store->loose);
    free_list(store, &store->ended);
    sgi_index_free(&store->by_id);
    sgi_index_free(&store->by_task);
    sgi_index_free(&store->by_key);
    sgi_index_free(&store->owners);
    sgi_free(&store->mem, store->touches, store->touch_cap * sizeof *store->touches);
    sgi_mem mem = store->mem;
    sgi_free(&mem, store, sizeof *store);
}

segue_status sgi_store_memory_new(const segue_store_options *options, segue_store **out)
{
    static const sgi_index_keys ids = {.of = id_of, .are_random = true};
    static const sgi_index_keys task_ids = {.of = task_id_of, .are_random = true};
    static const sgi_index_keys keys = {.of = key_of, .are_random = true};
    static const segue_store_vtable vtable = {.struct_size = sizeof vtable,
                                              .forgets = 1,
                                              .commit = sgi_memory_commit,
                                              .find = find,
                                              .read = read_log,
                                              .claim = claim,
                                              .purge = purge,
                                              .free = free_store,
                                              .list = list,
                                              .scan = scan,
                                              .stats = tell_stats};
    const sgi_mem *mem =
        options && options->allocator ? options->allocator : &sgi_mem_libc;
    int64_t max_bytes = options ? options->max_bytes : 0;
    if (max_bytes < 0 || (options && (options->max_principal_operations < 0 ||
                                      options->max_principal_bytes < 0)))
        return SEGUE_E_INVALID;
    sgi_memory_store *store = sgi_zalloc(mem, sizeof *store);
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
    sgi_index_init(&store->by_id, &env, &ids);
    sgi_index_init(&store->by_task, &env, &task_ids);
    sgi_index_init(&store->by_key, &env, &keys);
    sgi_memory_principals_init(&store->owners, &env);
    sgi_timers_init(&store->purges, &store->mem);
    TAILQ_INIT(&store->live);
    TAILQ_INIT(&store->loose);
    TAILQ_INIT(&store->ended);
    segue_status status = sgi_store_new(&vtable, store, mem, out);
    if (status)
        free_store(store);
    return status;
}
