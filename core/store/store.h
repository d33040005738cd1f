/* The room of the stores, which keep the logs of operations. The memory, SQLite, Redis
 * and PostgreSQL stores implement the public vtable of segue_ext.h, exactly as a store of
 * an application does. store.c has the handle and serialises the calls. The runtime calls
 * the store, on a worker thread when the store blocks. Files of this room may include
 * base and the public headers, and know nothing of transports. */
#ifndef SGI_STORE_H
#define SGI_STORE_H

#include "base/base.h"
#include "base/records.h"

/* A store that servers and runtimes share, with a reference count. The application's
 * handle is one reference, and each server holds one more. Any thread may change the
 * count and call the store; a mutex of the store serialises the calls into the vtable. */

/* Makes a store from a vtable. allocator: NULL = malloc. Returns SEGUE_E_INVALID for the
 * same vtables as segue_store_custom, and SEGUE_E_VERSION when the vtable is from a newer
 * library. On failure `self` is not freed. */
segue_status sgi_store_new(const segue_store_vtable *vtable, void *self,
                           const segue_allocator *allocator, segue_store **out);
void sgi_store_ref(segue_store *store);
void sgi_store_unref(segue_store *store);
/* The following functions return properties that the vtable declares. */
bool sgi_store_is_blocking(const segue_store *store);
bool sgi_store_is_leased(const segue_store *store);
bool sgi_store_is_volatile(const segue_store *store);

/* Returns the newest format of records and entries that may be written to the store
 * (core/docs/upgrades.md); at most SGI_RECORDS. */
int32_t sgi_store_records(const segue_store *store);

/* The memory functions of the store. */
const sgi_mem *sgi_store_mem(const segue_store *store);

/* True when the store can list operations. */
bool sgi_store_can_list(const segue_store *store);

/* The callbacks of find, read, claim, list and scan run under the mutex, so they must not
 * call the store.
 *
 * sgi_store_commit returns SEGUE_E_STATE when an APPEND would repeat a number or leave a
 * hole, and SEGUE_E_NOT_FOUND for an APPEND to, or the END of, an unknown operation. A
 * DELETE of an unknown operation succeeds. */
segue_status sgi_store_commit(segue_store *store, const segue_store_write *writes,
                              size_t count);
segue_status sgi_store_find(segue_store *store, const char *task_id,
                            const uint8_t *idempotency_key, segue_store_record_fn fn,
                            void *user);
/* Calls fn for the entries of an operation with numbers above `after`. Returns
 * SEGUE_E_NOT_FOUND when the operation does not exist. */
segue_status sgi_store_read(segue_store *store, const uint8_t *id, uint64_t after,
                            segue_store_entry_fn fn, void *user);
/* Lets threads that wait for the mutex have it, between two reads of a long log. */
void sgi_store_let_others_in(segue_store *store);
/* Claims operations whose owner is gone, and calls fn for each. When fn returns 1, the
 * claim stops; operations that were not passed to fn can be claimed again. */
segue_status sgi_store_claim(segue_store *store, segue_store_record_fn fn, void *user);
/* Calls fn for operations of a principal, the newest first, after the position
 * (created_ms, task_id). Returns SEGUE_E_UNSUPPORTED when the store cannot list
 * operations. */
segue_status sgi_store_list(segue_store *store, const uint8_t *principal,
                            int64_t created_ms, const char *task_id,
                            segue_store_record_fn fn, void *user);
/* Calls fn for all operations, in any order, perhaps for one twice. Other users of the
 * store get their turns meanwhile: the mutex is held for some operations at a time.
 * Returns SEGUE_E_UNSUPPORTED when the store cannot do this, and SEGUE_E_STORE_CORRUPT
 * when all but unreadable records were passed. */
segue_status sgi_store_scan(segue_store *store, segue_store_record_fn fn, void *user);
/* Calls fn for the operations of one turn, as `scan` of the vtable. */
segue_status sgi_store_scan_turn(segue_store *store, uint64_t *place,
                                 segue_store_record_fn fn, void *user);
/* Purges operations in one bounded step. *next_ms receives the time of the next call:
 * now_ms when more operations are already due, and INT64_MAX when no operation will ever
 * be due. */
segue_status sgi_store_purge(segue_store *store, int64_t now_ms, int64_t *next_ms);
/* Gives the room of deleted operations back to the system. SEGUE_E_UNSUPPORTED when the
 * store cannot do this. */
segue_status sgi_store_compact(segue_store *store);
/* Sets the members of *stats that the store knows. The other members keep their
 * values. */
void sgi_store_stats(segue_store *store, segue_store_stats *stats);

/* ---- news: changes that others made ----
 *
 * News reports a change that another listener or another process made. One handle can
 * serve several servers, runtimes and threads of one process; for other processes all of
 * them are one owner. Each server has a listener. A commit of one listener is news to the
 * other listeners, even if no other process uses the store. */

typedef struct sgi_store_listener sgi_store_listener;

/* Adds a listener. When there is news (a change that another listener or process
 * made), the store calls `wake`, the listener's wake-up callback, and calls it again
 * only after sgi_store_deliver_news was called. The call of `wake` can come from any
 * thread, even from a thread that is inside a call of the store, and with any locks
 * held. Therefore `wake` must only signal. The caller's reference to the store must
 * outlive the listener. */
segue_status sgi_store_listen(segue_store *store, void (*wake)(void *user), void *user,
                              sgi_store_listener **out);
/* Removes a listener. First stops following the listener's operations in the store one by
 * one, until such a call fails. Waits while the wake-up callback of the listener runs;
 * the callback is not called afterwards. */
void sgi_store_unlisten(sgi_store_listener *listener);
/* Commits writes as sgi_store_commit does. All listeners except `by` are notified of
 * the writes. */
segue_status sgi_store_commit_by(sgi_store_listener *by, const segue_store_write *writes,
                                 size_t count);
/* Starts or stops following an operation; repeating the call changes nothing. While the
 * listener follows the operation, the store reports to it when the operation grows.
 * Entries that exist already are not reported: the caller reads them after this call
 * has returned. A purge or an eviction is not reported. Returns SEGUE_E_NOT_FOUND when
 * the operation does not exist. */
segue_status sgi_store_follow(sgi_store_listener *listener, const uint8_t *id, bool on);
/* Forwards a command to the operation's owner. When this process is the owner, all
 * listeners of the handle get the command, even the listener that sent it, and the
 * listener that runs the operation takes it. When this process claims an operation, the
 * commands that wait for the operation are delivered to all listeners again. Returns
 * SEGUE_E_NOT_FOUND, SEGUE_E_TERMINAL and SEGUE_E_LIMIT as the vtable does. A store
 * without `post` keeps the commands in memory and learns only from its listeners that an
 * operation has ended. Such a store returns SEGUE_E_TERMINAL only for an operation that a
 * listener of this handle follows. */
segue_status sgi_store_post_command(sgi_store_listener *by, const uint8_t *id,
                                    const char *data, size_t len);
/* The same without a listener, for a tool. */
segue_status sgi_store_post(segue_store *store, const uint8_t *id, const char *data,
                            size_t len);
/* Delivers the listener's news (changes that others made) to fn. fn runs under a lock:
 * it must neither call the store nor wait. *within_ms receives the time in ms after
 * which the listener has to ask again: -1 = only after a wake-up call; 0 = at once,
 * because fn stopped and there is more news. An error status means that the store
 * could not be asked for news of other processes. */
segue_status sgi_store_deliver_news(sgi_store_listener *listener, segue_store_news_fn fn,
                                    void *user, int64_t *within_ms);

/* Make the built-in stores. options may be NULL. On failure `message` (may be NULL; has
 * `size` bytes) receives one line with the reason. */
segue_status sgi_store_memory_new(const segue_store_options *options, segue_store **out);
segue_status sgi_store_sqlite_new(const char *path, const segue_store_options *options,
                                  segue_store **out, char *message, size_t size);
segue_status sgi_store_redis_new(const char *url, const segue_store_options *options,
                                 segue_store **out, char *message, size_t size);
segue_status sgi_store_postgres_new(const char *url, const segue_store_options *options,
                                    segue_store **out, char *message, size_t size);

#endif
