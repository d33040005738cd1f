/* The handle of a store: a count, a mutex and a vtable.
 *
 * The application holds one reference, each server one more; whoever drops the last frees
 * the store behind it. The mutex makes one call at a time out of calls from any thread;
 * it is held while the callbacks of find, read, claim and list run. The allocator is the
 * store's own copy: a store may outlive every runtime that used it. */
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

struct segue_store {
    segue_store_vtable vtable;
    void *self;
    sgi_mem mem;
    atomic_size_t refs;
    pthread_mutex_t lock;
};

/* Takes what both sides know; refuses a longer vtable that uses what we do not know. */
static segue_status copy_vtable(segue_store_vtable *to, const segue_store_vtable *from)
{
    size_t size = from->struct_size;
    const unsigned char *bytes = (const unsigned char *)from;
    for (size_t i = sizeof *to; i < size; i++)
        if (bytes[i])
            return SEGUE_E_VERSION;
    memset(to, 0, sizeof *to);
    memcpy(to, from, size < sizeof *to ? size : sizeof *to);
    return to->commit && to->find && to->read && to->claim ? SEGUE_OK : SEGUE_E_INVALID;
}

segue_status sgi_store_new(const segue_store_vtable *vtable, void *self,
                           const segue_allocator *allocator, segue_store **out)
{
    segue_store_vtable copy;
    segue_status status = copy_vtable(&copy, vtable);
    if (status)
        return status;
    const sgi_mem *mem = allocator ? allocator : &sgi_mem_libc;
    segue_store *store = sgi_zalloc(mem, sizeof *store);
    if (!store)
        return SEGUE_E_NOMEM;
    if (pthread_mutex_init(&store->lock, NULL)) {
        sgi_release(mem, store, sizeof *store);
        return SEGUE_E_NOMEM;
    }
    store->vtable = copy;
    store->self = self;
    store->mem = *mem;
    atomic_init(&store->refs, 1);
    *out = store;
    return SEGUE_OK;
}

void sgi_store_ref(segue_store *store)
{
    atomic_fetch_add_explicit(&store->refs, 1, memory_order_relaxed);
}

void sgi_store_unref(segue_store *store)
{
    if (!store || atomic_fetch_sub_explicit(&store->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (store->vtable.free)
        store->vtable.free(store->self);
    pthread_mutex_destroy(&store->lock);
    sgi_mem mem = store->mem;
    sgi_release(&mem, store, sizeof *store);
}

bool sgi_store_is_blocking(const segue_store *store)
{
    return store->vtable.blocking != 0;
}

segue_status sgi_store_commit(segue_store *store, const segue_store_write *writes,
                              size_t count)
{
    if (!count)
        return SEGUE_OK;
    pthread_mutex_lock(&store->lock);
    segue_status status = store->vtable.commit(store->self, writes, count);
    pthread_mutex_unlock(&store->lock);
    return status;
}

segue_status sgi_store_find(segue_store *store, const char *task_id,
                            const uint8_t *idempotency_key, segue_store_record_fn fn,
                            void *user)
{
    if (!task_id && !idempotency_key)
        return SEGUE_E_INVALID;
    pthread_mutex_lock(&store->lock);
    segue_status status =
        store->vtable.find(store->self, task_id, idempotency_key, fn, user);
    pthread_mutex_unlock(&store->lock);
    return status;
}

segue_status sgi_store_read(segue_store *store, const uint8_t *id, uint64_t after,
                            segue_store_entry_fn fn, void *user)
{
    pthread_mutex_lock(&store->lock);
    segue_status status = store->vtable.read(store->self, id, after, fn, user);
    pthread_mutex_unlock(&store->lock);
    return status;
}

segue_status sgi_store_claim(segue_store *store, segue_store_record_fn fn, void *user)
{
    pthread_mutex_lock(&store->lock);
    segue_status status = store->vtable.claim(store->self, fn, user);
    pthread_mutex_unlock(&store->lock);
    return status;
}

bool sgi_store_lists(const segue_store *store)
{
    return store->vtable.list != NULL;
}

segue_status sgi_store_list(segue_store *store, const uint8_t *principal,
                            int64_t created_ms, const char *task_id,
                            segue_store_record_fn fn, void *user)
{
    if (!store->vtable.list)
        return SEGUE_E_UNSUPPORTED;
    pthread_mutex_lock(&store->lock);
    segue_status status =
        store->vtable.list(store->self, principal, created_ms, task_id, fn, user);
    pthread_mutex_unlock(&store->lock);
    return status;
}

segue_status sgi_store_purge(segue_store *store, int64_t now_ms, int64_t *next_ms)
{
    *next_ms = INT64_MAX;
    if (!store->vtable.purge)
        return SEGUE_OK;
    pthread_mutex_lock(&store->lock);
    segue_status status = store->vtable.purge(store->self, now_ms, next_ms);
    pthread_mutex_unlock(&store->lock);
    return status;
}
