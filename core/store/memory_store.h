/* The objects that the files of the memory store share. memory.c finds, reads, claims and
 * purges operations; memory_commit.c writes them. */
#ifndef SGI_MEMORY_STORE_H
#define SGI_MEMORY_STORE_H

#include "base/index.h"
#include "base/shared_text.h"
#include "base/timer.h"
#include "store/memory_log.h"
#include "store/memory_owner.h"
#include "store/store.h"

/* The idempotency key of an operation. */
typedef struct sgi_memory_op_key {
    sgi_index_node by_key;
    uint8_t key[SEGUE_STORE_HASH_SIZE];
} sgi_memory_op_key;

/* An operation. Its texts are in a block that it shares with the server that made it. */
typedef struct sgi_memory_operation {
    sgi_index_node by_id;
    sgi_index_node by_task;
    TAILQ_ENTRY(sgi_memory_operation) link;
    sgi_timer purge;
    sgi_memory_log log;
    /* the operation's entry in the sorted list of its principal; also has the creation
     * time */
    sgi_memory_principal_entry place;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    sgi_shared_text *text; /* the task id and a NUL; then, at data_at, the data */
    uint32_t task_len;
    uint32_t data_at;
    uint32_t data_len;
    /* position of the operation's saved state in `touches`, counted from 1; 0 = the
     * current commit has not changed the operation */
    uint32_t touch;
    bool has_key;
    bool ended;
    bool loose;              /* true = no instance owns the operation */
    sgi_memory_op_key key[]; /* the idempotency key, if the operation has one */
} sgi_memory_operation;

TAILQ_HEAD(sgi_memory_list, sgi_memory_operation);

typedef struct sgi_memory_saved_op {
    sgi_memory_operation *op;
    sgi_memory_mark mark;
    int64_t purge_ms;
    bool ended;
    bool loose;
    bool created;
    bool deleted;
} sgi_memory_saved_op;

typedef struct sgi_memory_store {
    sgi_mem mem;
    size_t max_bytes;
    size_t used;
    /* maximum number of operations per principal; 0 = no limit */
    int64_t max_operations_each;
    int64_t max_bytes_each;
    sgi_index by_id;
    sgi_index by_task;
    sgi_index by_key;
    sgi_index owners;
    sgi_timers purges;
    struct sgi_memory_list live;
    struct sgi_memory_list loose;
    struct sgi_memory_list ended;
    sgi_memory_saved_op *touches;
    size_t touch_count;
    size_t touch_cap;
    int64_t evicted;
    int64_t purged;
} sgi_memory_store;

static inline sgi_str sgi_memory_id(const uint8_t *id)
{
    return (sgi_str){(const char *)id, SEGUE_STORE_ID_SIZE};
}

static inline sgi_str sgi_memory_key(const uint8_t *key)
{
    return (sgi_str){(const char *)key, SEGUE_STORE_HASH_SIZE};
}

sgi_memory_operation *sgi_memory_find_op(const sgi_memory_store *store,
                                         const uint8_t *id);
struct sgi_memory_list *sgi_memory_list_of(sgi_memory_store *store, bool ended,
                                           bool loose);
size_t sgi_memory_op_size(const sgi_memory_operation *op);
/* Returns the number of bytes that the operation adds to `used`. */
size_t sgi_memory_op_weight(const sgi_memory_operation *op);
void sgi_memory_op_free(sgi_memory_store *store, sgi_memory_operation *op);
void sgi_memory_put_in_maps(sgi_memory_store *store, sgi_memory_operation *op);
void sgi_memory_take_from_maps(sgi_memory_store *store, sgi_memory_operation *op);
/* Deletes the operation at once. A deletion cannot be undone, so it must not be a part of
 * staging a commit. */
void sgi_memory_op_delete(sgi_memory_store *store, sgi_memory_operation *op);

segue_status sgi_memory_commit(void *self, const segue_store_write *writes, size_t count);

#endif
