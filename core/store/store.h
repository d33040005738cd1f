/* store: where the logs of operations are kept. memory.c and sqlite.c implement the
 * public vtable of segue_ext.h, exactly as a store from outside would; store.c holds the
 * handle and serialises the calls. Who calls: the runtime (a worker thread for blocking
 * stores). May include base and the public headers; knows nothing of transports. */
#ifndef SGI_STORE_H
#define SGI_STORE_H

#include "base/base.h"

/* A store shared by servers and runtimes. Counted: the handle of the application is one
 * reference, each server one more. The count and the calls are thread-safe; calls into
 * the vtable are serialised by a mutex of the store. */

/* Makes a store around a vtable; allocator NULL = malloc. SEGUE_E_INVALID as
 * segue_store_custom, SEGUE_E_VERSION when the vtable is of a newer library. On failure
 * self is not freed. */
segue_status sgi_store_new(const segue_store_vtable *vtable, void *self,
                           const segue_allocator *allocator, segue_store **out);
void sgi_store_ref(segue_store *store);
void sgi_store_unref(segue_store *store);
/* What the vtable says of itself. */
bool sgi_store_is_blocking(const segue_store *store);
bool sgi_store_is_leased(const segue_store *store);
bool sgi_store_forgets(const segue_store *store);

/* Can it list operations? */
bool sgi_store_lists(const segue_store *store);

/* The callbacks of find, read, claim and list run under the mutex: they must not call the
 * store.
 *
 * commit: SEGUE_E_STATE when an APPEND would repeat a number or leave a hole,
 * SEGUE_E_NOT_FOUND for an APPEND or END to what is not there; a DELETE of it is fine. */
segue_status sgi_store_commit(segue_store *store, const segue_store_write *writes,
                              size_t count);
segue_status sgi_store_find(segue_store *store, const char *task_id,
                            const uint8_t *idempotency_key, segue_store_record_fn fn,
                            void *user);
/* SEGUE_E_NOT_FOUND when there is no such operation. */
segue_status sgi_store_read(segue_store *store, const uint8_t *id, uint64_t after,
                            segue_store_entry_fn fn, void *user);
/* What fn was not shown because it returned 1 can be claimed again. */
segue_status sgi_store_claim(segue_store *store, segue_store_record_fn fn, void *user);
/* SEGUE_E_UNSUPPORTED from one that cannot. */
segue_status sgi_store_list(segue_store *store, const uint8_t *principal,
                            int64_t created_ms, const char *task_id,
                            segue_store_record_fn fn, void *user);
/* One bounded step. *next_ms: now_ms when more is due, INT64_MAX when nothing ever is. */
segue_status sgi_store_purge(segue_store *store, int64_t now_ms, int64_t *next_ms);
/* What it knows of itself; the rest of *stats stays. */
void sgi_store_stats(segue_store *store, segue_store_stats *stats);

/* ---- news: what others did ----
 *
 * One handle may serve several keepers (servers, runtimes, threads of one process), and
 * all of them are one owner towards other processes. Each keeper has a listener; what one
 * commits is news to the others, whether or not the store itself is shared. */

typedef struct sgi_store_listener sgi_store_listener;

/* ring tells that there are news; not again before sgi_store_news was called. It comes
 * from any thread, also one that is inside of a call here, with whatever locks its caller
 * holds: it may signal and do nothing else. The caller's reference of the store outlives
 * the listener. */
segue_status sgi_store_listen(segue_store *store, void (*ring)(void *user), void *user,
                              sgi_store_listener **out);
/* ring is not called any more when this returns; waits for one that runs. What was
 * followed is followed no more; the store is told so, until it fails. */
void sgi_store_unlisten(sgi_store_listener *listener);
/* As commit, by this listener: it is not told what it did itself. */
segue_status sgi_store_commit_by(sgi_store_listener *by, const segue_store_write *writes,
                                 size_t count);
/* Growth of an operation is news to this listener from now on, or no more. Idempotent.
 * What is there already is not told: read after it has returned. SEGUE_E_NOT_FOUND when
 * it is gone. What is purged or evicted is not told. */
segue_status sgi_store_follow(sgi_store_listener *listener, const uint8_t *id, bool on);
/* A letter to the operation's owner. When the owner is this very instance all listeners
 * are told, the poster too, and the one that runs the operation takes it. A claim tells
 * what waits to all once more. SEGUE_E_NOT_FOUND, SEGUE_E_TERMINAL, SEGUE_E_LIMIT as the
 * vtable's; a store without letters of its own knows that an operation has ended only
 * when somebody here follows it. */
segue_status sgi_store_post(sgi_store_listener *by, const uint8_t *id, const char *data,
                            size_t len);
/* Hands over what is new to this listener, as the vtable's. fn runs under a lock: it must
 * not call the store nor wait for anything. *within_ms: -1 = only when rung, 0 = fn has
 * stopped and there is more. A status tells that others could not be asked. */
segue_status sgi_store_news(sgi_store_listener *listener, segue_store_news_fn fn,
                            void *user, int64_t *within_ms);

/* The built-in ones. options may be NULL. message (may be NULL, size bytes) receives one
 * line for a person on failure. */
segue_status sgi_store_memory_new(const segue_store_options *options, segue_store **out);
segue_status sgi_store_sqlite_new(const char *path, const segue_store_options *options,
                                  segue_store **out, char *message, size_t size);
segue_status sgi_store_redis_new(const char *url, const segue_store_options *options,
                                 segue_store **out, char *message, size_t size);

#endif
