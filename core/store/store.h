/* store: the folder of the stores, which keep the logs of operations. The memory,
 * SQLite and Redis stores implement the public vtable of segue_ext.h, exactly as a
 * store of an application does. store.c has the handle and serialises the calls. The
 * runtime calls the store, on a worker thread when the store blocks. May include base
 * and the public headers; knows nothing of transports. */
#ifndef SGI_STORE_H
#define SGI_STORE_H

#include "base/base.h"

/* A store that servers and runtimes share, with a reference count. The application's
 * handle is one reference, and each server holds one more. Any thread may change the
 * count and call the store; a mutex of the store serialises the calls into the vtable. */

/* Makes a store from a vtable; allocator NULL = malloc. Returns SEGUE_E_INVALID as
 * segue_store_custom does, and SEGUE_E_VERSION when the vtable is from a newer library.
 * On failure self is not freed. */
segue_status sgi_store_new(const segue_store_vtable *vtable, void *self,
                           const segue_allocator *allocator, segue_store **out);
void sgi_store_ref(segue_store *store);
void sgi_store_unref(segue_store *store);
/* The properties that the vtable declares. */
bool sgi_store_is_blocking(const segue_store *store);
bool sgi_store_is_leased(const segue_store *store);
bool sgi_store_is_volatile(const segue_store *store);

/* True when the store can list operations. */
bool sgi_store_can_list(const segue_store *store);

/* The callbacks of find, read, claim and list run under the mutex, so they must not
 * call the store.
 *
 * sgi_store_commit returns SEGUE_E_STATE when an APPEND would repeat a number or leave
 * a hole, and SEGUE_E_NOT_FOUND for an APPEND or END to an unknown operation. A DELETE
 * of an unknown operation succeeds. */
segue_status sgi_store_commit(segue_store *store, const segue_store_write *writes,
                              size_t count);
segue_status sgi_store_find(segue_store *store, const char *task_id,
                            const uint8_t *idempotency_key, segue_store_record_fn fn,
                            void *user);
/* Reads the entries of an operation after number `after`. Returns SEGUE_E_NOT_FOUND
 * when the operation does not exist. */
segue_status sgi_store_read(segue_store *store, const uint8_t *id, uint64_t after,
                            segue_store_entry_fn fn, void *user);
/* Claims operations. When fn returns 1, the claim stops; operations that fn has not
 * got by then can be claimed again. */
segue_status sgi_store_claim(segue_store *store, segue_store_record_fn fn, void *user);
/* Lists operations of a principal. Returns SEGUE_E_UNSUPPORTED when the store cannot
 * list operations. */
segue_status sgi_store_list(segue_store *store, const uint8_t *principal,
                            int64_t created_ms, const char *task_id,
                            segue_store_record_fn fn, void *user);
/* Purges in one bounded step. *next_ms receives the time of the next call. It is
 * now_ms when more operations are due already, and INT64_MAX when no operation will
 * ever be due. */
segue_status sgi_store_purge(segue_store *store, int64_t now_ms, int64_t *next_ms);
/* Sets the members of *stats that the store knows. The other members keep their
 * values. */
void sgi_store_stats(segue_store *store, segue_store_stats *stats);

/* ---- news: changes that others made ----
 *
 * News reports a change that another listener or process made. One handle may serve
 * several servers, runtimes and threads of one process; towards other processes all of
 * them are one owner. Each server has a listener. A commit of one listener is news to
 * the other listeners, even if no other process uses the store. */

typedef struct sgi_store_listener sgi_store_listener;

/* Adds a listener. The store calls `wake`, the listener's wake-up callback, when there
 * is news, and then not again until sgi_store_deliver_news is called. The call of
 * `wake` may come from any thread, also from a thread that is inside a call of the
 * store, and with any locks held. So `wake` must only signal. The caller's reference
 * to the store must outlive the listener. */
segue_status sgi_store_listen(segue_store *store, void (*wake)(void *user), void *user,
                              sgi_store_listener **out);
/* Removes a listener. Stops following the listener's operations in the store one by
 * one, until such a call fails. Waits while the wake-up callback of the listener runs;
 * no wake-up call comes afterwards. */
void sgi_store_unlisten(sgi_store_listener *listener);
/* Commits as sgi_store_commit does. The listener `by` gets no news of these writes. */
segue_status sgi_store_commit_by(sgi_store_listener *by, const segue_store_write *writes,
                                 size_t count);
/* Starts or stops following an operation; repeating the call changes nothing. While
 * the listener follows the operation, it gets news when the operation grows. Entries
 * that exist already are not news: the caller reads them after this call has returned.
 * Returns SEGUE_E_NOT_FOUND when the operation does not exist. A purge or an eviction
 * is not news. */
segue_status sgi_store_follow(sgi_store_listener *listener, const uint8_t *id, bool on);
/* Forwards a command to the operation's owner. When this process is the owner, all
 * listeners of the handle get the command, also the one that sent it, and the listener
 * that runs the operation takes it. When this process claims an operation, the
 * commands that wait for the operation are delivered to all listeners again. Returns
 * SEGUE_E_NOT_FOUND, SEGUE_E_TERMINAL and SEGUE_E_LIMIT as the vtable does. A store
 * without `post` keeps the commands in memory and learns only from its listeners that
 * an operation has ended, so it returns SEGUE_E_TERMINAL only for an operation that a
 * listener of this handle follows. */
segue_status sgi_store_post(sgi_store_listener *by, const uint8_t *id, const char *data,
                            size_t len);
/* Delivers the listener's news to fn. fn runs under a lock: it must neither call the
 * store nor wait. *within_ms receives the time after which the listener asks again; -1
 * = only after a wake-up call, 0 = at once, because fn stopped and there is more news.
 * An error status means that the store could not be asked for news of other processes. */
segue_status sgi_store_deliver_news(sgi_store_listener *listener, segue_store_news_fn fn,
                                    void *user, int64_t *within_ms);

/* The built-in stores. options may be NULL. On failure message (may be NULL, size bytes)
 * receives one line that explains the error. */
segue_status sgi_store_memory_new(const segue_store_options *options, segue_store **out);
segue_status sgi_store_sqlite_new(const char *path, const segue_store_options *options,
                                  segue_store **out, char *message, size_t size);
segue_status sgi_store_redis_new(const char *url, const segue_store_options *options,
                                 segue_store **out, char *message, size_t size);
segue_status sgi_store_postgres_new(const char *url, const segue_store_options *options,
                                    segue_store **out, char *message, size_t size);

#endif
