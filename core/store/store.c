/* The handle of a store: a reference count, a mutex and a vtable.
 *
 * The application holds one reference, and each server holds one more. Dropping the last
 * reference frees the store. The mutex serialises calls from all threads; it is held
 * while the callbacks of find, read, claim, list and scan run. The store has its own copy
 * of the allocator, because the store can outlive every runtime that used it.
 *
 * listeners.c has the listeners. A store whose vtable has the function `news` reports
 * what other processes wrote. The first listener that asks takes this news from the
 * vtable, and the news is passed to all listeners. A store whose vtable has no `post`
 * keeps no forwarded commands; listeners.c then keeps them in memory until they are
 * taken. */
#include "store/listeners.h"

#include "base/thresholds.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

struct segue_store {
    segue_store_vtable vtable;
    void *self;
    sgi_mem mem;
    atomic_size_t refs;
    pthread_mutex_t lock;
    atomic_size_t waiting; /* threads that wait for the mutex */
    sgi_listeners listeners;
};

/* A scan that other threads keep waiting looks at most this often whether they are
 * done. */
#define YIELDS 1000

/* The pause in ms before the store is asked again for changes of other processes,
 * after a forwarded command could not be stored for lack of space or memory. */
#define LETTER_RETRY_MS SGI_THRESHOLD(letter_retry_ms)

static void enter(segue_store *store)
{
    if (pthread_mutex_trylock(&store->lock) == 0)
        return;
    atomic_fetch_add_explicit(&store->waiting, 1, memory_order_relaxed);
    pthread_mutex_lock(&store->lock);
    atomic_fetch_sub_explicit(&store->waiting, 1, memory_order_relaxed);
}

static void leave(segue_store *store)
{
    pthread_mutex_unlock(&store->lock);
}

/* Lets the threads that wait for the mutex have it first: a thread that takes it again
 * at once would be faster than they are. */
void sgi_store_let_others_in(segue_store *store)
{
    for (int i = 0;
         i < YIELDS && atomic_load_explicit(&store->waiting, memory_order_relaxed); i++)
        sched_yield();
}

/* Copies the members of the vtable that this library knows. Returns SEGUE_E_VERSION when
 * the vtable has further members that are set, and SEGUE_E_INVALID when a member is
 * missing. */
static segue_status copy_vtable(segue_store_vtable *to, const segue_store_vtable *from)
{
    size_t size = from->struct_size;
    const unsigned char *bytes = (const unsigned char *)from;
    for (size_t i = sizeof *to; i < size; i++)
        if (bytes[i])
            return SEGUE_E_VERSION;
    memset(to, 0, sizeof *to);
    memcpy(to, from, size < sizeof *to ? size : sizeof *to);
    int verbs = !!to->set_wake + !!to->follow + !!to->post + !!to->news;
    bool news_fit = verbs == 4 || (verbs == 0 && !to->leased);
    return to->commit && to->find && to->read && to->claim && news_fit ? SEGUE_OK
                                                                       : SEGUE_E_INVALID;
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
        sgi_free(mem, store, sizeof *store);
        return SEGUE_E_NOMEM;
    }
    status = sgi_listeners_init(&store->listeners, mem, copy.news != NULL);
    if (status) {
        pthread_mutex_destroy(&store->lock);
        sgi_free(mem, store, sizeof *store);
        return status;
    }
    store->vtable = copy;
    store->self = self;
    store->mem = *mem;
    atomic_init(&store->refs, 1);
    if (copy.set_wake)
        copy.set_wake(self, sgi_listeners_wake_all, &store->listeners);
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
    if (store->vtable.set_wake)
        store->vtable.set_wake(store->self, NULL, NULL);
    if (store->vtable.free)
        store->vtable.free(store->self);
    sgi_listeners_free(&store->listeners);
    pthread_mutex_destroy(&store->lock);
    sgi_mem mem = store->mem;
    sgi_free(&mem, store, sizeof *store);
}

bool sgi_store_is_blocking(const segue_store *store)
{
    return store->vtable.blocking != 0;
}

bool sgi_store_is_leased(const segue_store *store)
{
    return store->vtable.leased != 0;
}

bool sgi_store_is_volatile(const segue_store *store)
{
    return store->vtable.forgets != 0;
}

int32_t sgi_store_records(const segue_store *store)
{
    int32_t records =
        store->vtable.records ? store->vtable.records(store->self) : SGI_RECORDS;
    return records < SGI_RECORDS ? records : SGI_RECORDS;
}

/* Commits all writes except those of kind TAKEN to a store that keeps no forwarded
 * commands. Such a store does not know the kind TAKEN. left: the number of the other
 * writes. */
static segue_status commit_without_taken(segue_store *store,
                                         const segue_store_write *writes, size_t count,
                                         size_t left)
{
    if (!left)
        return SEGUE_OK;
    segue_store_write *kept = sgi_alloc(&store->mem, left * sizeof *kept);
    size_t n = 0;
    if (!kept)
        return SEGUE_E_NOMEM;
    for (size_t i = 0; i < count; i++)
        if (writes[i].kind != SEGUE_STORE_TAKEN)
            kept[n++] = writes[i];
    segue_status status = store->vtable.commit(store->self, kept, n);
    sgi_free(&store->mem, kept, left * sizeof *kept);
    return status;
}

static segue_status commit(segue_store *store, const segue_store_write *writes,
                           size_t count)
{
    size_t left = count;
    if (!store->vtable.news)
        for (size_t i = 0; i < count; i++)
            left -= writes[i].kind == SEGUE_STORE_TAKEN;
    return left == count ? store->vtable.commit(store->self, writes, count)
                         : commit_without_taken(store, writes, count, left);
}

static segue_status commit_as(segue_store *store, const sgi_store_listener *by,
                              const segue_store_write *writes, size_t count)
{
    if (!count)
        return SEGUE_OK;
    enter(store);
    segue_status status = commit(store, writes, count);
    leave(store);
    if (!status)
        sgi_listeners_report_writes(&store->listeners, by, writes, count);
    return status;
}

segue_status sgi_store_commit(segue_store *store, const segue_store_write *writes,
                              size_t count)
{
    return commit_as(store, NULL, writes, count);
}

segue_status sgi_store_find(segue_store *store, const char *task_id,
                            const uint8_t *idempotency_key, segue_store_record_fn fn,
                            void *user)
{
    if (!task_id && !idempotency_key)
        return SEGUE_E_INVALID;
    enter(store);
    segue_status status =
        store->vtable.find(store->self, task_id, idempotency_key, fn, user);
    leave(store);
    return status;
}

segue_status sgi_store_read(segue_store *store, const uint8_t *id, uint64_t after,
                            segue_store_entry_fn fn, void *user)
{
    enter(store);
    segue_status status = store->vtable.read(store->self, id, after, fn, user);
    leave(store);
    return status;
}

typedef struct claiming {
    sgi_listeners *listeners;
    segue_store_record_fn fn;
    void *user;
} claiming;

static int32_t show_claimed(void *user, const segue_store_record *record)
{
    claiming *c = user;
    sgi_listeners_report_claim(c->listeners, record->id);
    return c->fn(c->user, record);
}

segue_status sgi_store_claim(segue_store *store, segue_store_record_fn fn, void *user)
{
    claiming c = {&store->listeners, fn, user};
    enter(store);
    segue_status status = store->vtable.claim(store->self, show_claimed, &c);
    leave(store);
    sgi_listeners_wake(&store->listeners);
    return status;
}

const sgi_mem *sgi_store_mem(const segue_store *store)
{
    return &store->mem;
}

bool sgi_store_can_list(const segue_store *store)
{
    return store->vtable.list != NULL;
}

segue_status sgi_store_list(segue_store *store, const uint8_t *principal,
                            int64_t created_ms, const char *task_id,
                            segue_store_record_fn fn, void *user)
{
    if (!store->vtable.list)
        return SEGUE_E_UNSUPPORTED;
    enter(store);
    segue_status status =
        store->vtable.list(store->self, principal, created_ms, task_id, fn, user);
    leave(store);
    return status;
}

segue_status sgi_store_scan_turn(segue_store *store, uint64_t *place,
                                 segue_store_record_fn fn, void *user)
{
    if (!store->vtable.scan)
        return SEGUE_E_UNSUPPORTED;
    enter(store);
    segue_status status = store->vtable.scan(store->self, place, fn, user);
    leave(store);
    return status;
}

typedef struct scanning {
    segue_store_record_fn fn;
    void *user;
    bool stop;
} scanning;

static int32_t pass_scanned(void *user, const segue_store_record *record)
{
    scanning *s = user;
    s->stop = s->fn(s->user, record) != 0;
    return s->stop;
}

segue_status sgi_store_scan(segue_store *store, segue_store_record_fn fn, void *user)
{
    scanning s = {fn, user, false};
    uint64_t place = 0;
    segue_status all = SEGUE_OK;
    for (;;) {
        segue_status status = sgi_store_scan_turn(store, &place, pass_scanned, &s);
        if (status == SEGUE_E_STORE_CORRUPT)
            all = status;
        else if (status != SEGUE_OK)
            return status;
        if (s.stop || !place)
            return all;
        sgi_store_let_others_in(store);
    }
}

segue_status sgi_store_compact(segue_store *store)
{
    if (!store->vtable.compact)
        return SEGUE_E_UNSUPPORTED;
    enter(store);
    segue_status status = store->vtable.compact(store->self);
    leave(store);
    return status;
}

void sgi_store_stats(segue_store *store, segue_store_stats *stats)
{
    if (!store->vtable.stats)
        return;
    enter(store);
    store->vtable.stats(store->self, stats);
    leave(store);
}

segue_status sgi_store_purge(segue_store *store, int64_t now_ms, int64_t *next_ms)
{
    *next_ms = INT64_MAX;
    if (!store->vtable.purge)
        return SEGUE_OK;
    enter(store);
    segue_status status = store->vtable.purge(store->self, now_ms, next_ms);
    leave(store);
    return status;
}

/* ---- news ---- */

segue_status sgi_store_listen(segue_store *store, void (*wake)(void *user), void *user,
                              sgi_store_listener **out)
{
    return sgi_listeners_add(&store->listeners, store, wake, user, out);
}

segue_status sgi_store_commit_by(sgi_store_listener *by, const segue_store_write *writes,
                                 size_t count)
{
    return commit_as(sgi_listeners_store(by), by, writes, count);
}

static int32_t stop_at_once(void *user, const segue_store_entry *entry)
{
    (void)user;
    (void)entry;
    return 1;
}

/* Checks whether an operation exists, by reading its log. For stores that have no
 * `follow`. */
static segue_status look_for(segue_store *store, const uint8_t *id)
{
    return store->vtable.read(store->self, id, 0, stop_at_once, NULL);
}

static segue_status follow(sgi_store_listener *listener, const uint8_t *id, bool on)
{
    segue_store *store = sgi_listeners_store(listener);
    bool changed, undone;
    enter(store);
    segue_status status =
        sgi_listeners_follow(&store->listeners, listener, id, on, &changed);
    if (changed && store->vtable.follow)
        status = store->vtable.follow(store->self, id, on);
    else if (!status && on && !store->vtable.follow)
        status = look_for(store, id);
    if (status && on)
        sgi_listeners_follow(&store->listeners, listener, id, false, &undone);
    leave(store);
    return status;
}

segue_status sgi_store_follow(sgi_store_listener *listener, const uint8_t *id, bool on)
{
    segue_status status = follow(listener, id, on);
    return on ? status : SEGUE_OK;
}

/* Stops following the listener's operations one by one, then removes the listener. When
 * the store fails for one operation, the remaining operations are skipped, because each
 * failing call can take long. */
void sgi_store_unlisten(sgi_store_listener *listener)
{
    segue_store *store = sgi_listeners_store(listener);
    uint8_t id[SEGUE_STORE_ID_SIZE];
    segue_status status = SEGUE_OK;
    while ((!status || status == SEGUE_E_NOT_FOUND) &&
           sgi_listeners_find_followed(&store->listeners, listener, id))
        status = follow(listener, id, false);
    sgi_listeners_remove(&store->listeners, listener);
}

segue_status sgi_store_post(segue_store *store, const uint8_t *id, const char *data,
                            size_t len)
{
    enter(store);
    segue_status status = store->vtable.post
                              ? store->vtable.post(store->self, id, data, len)
                              : look_for(store, id);
    leave(store);
    return status || store->vtable.post
               ? status
               : sgi_listeners_post_command(&store->listeners, id, data, len);
}

segue_status sgi_store_post_command(sgi_store_listener *by, const uint8_t *id,
                                    const char *data, size_t len)
{
    return sgi_store_post(sgi_listeners_store(by), id, data, len);
}

typedef struct asking {
    sgi_listeners *listeners;
    bool stopped;
} asking;

static int32_t put_to_listeners(void *user, const segue_store_news *news)
{
    asking *a = user;
    a->stopped = sgi_listeners_take_change(a->listeners, news) != 0;
    return a->stopped;
}

static segue_status ask_store(segue_store *store, int64_t *within_ms)
{
    asking a = {&store->listeners, false};
    if (!store->vtable.news)
        return SEGUE_OK;
    enter(store);
    segue_status status =
        store->vtable.news(store->self, put_to_listeners, &a, within_ms);
    leave(store);
    if (a.stopped && (*within_ms < 0 || *within_ms > LETTER_RETRY_MS))
        *within_ms = LETTER_RETRY_MS;
    return status;
}

segue_status sgi_store_deliver_news(sgi_store_listener *listener, segue_store_news_fn fn,
                                    void *user, int64_t *within_ms)
{
    segue_store *store = sgi_listeners_store(listener);
    *within_ms = -1;
    sgi_listeners_rearm(&store->listeners, listener);
    segue_status status = ask_store(store, within_ms);
    if (sgi_listeners_deliver(&store->listeners, listener, fn, user))
        *within_ms = 0;
    sgi_listeners_wake(&store->listeners);
    return status;
}
