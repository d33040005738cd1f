/* The stores of a runtime, and the committers that use them. store_worker.c does commits
 * and jobs; store_changes.c delivers news (changes that other servers made). A
 * committer writes the operations of one server. A queue connects one committer with
 * its store. */
#ifndef SGI_STORE_QUEUE_H
#define SGI_STORE_QUEUE_H

#include "engine/log/committer.h"
#include "runtime/state.h"
#include "store/store.h"

/* The work of one committer at the committer's store. */
typedef struct sgi_store_queue {
    TAILQ_ENTRY(sgi_store_queue) link;
    TAILQ_ENTRY(sgi_store_queue) due_link;
    sgi_committer *committer;
    struct sgi_store_slot *slot;
    bool due;
    bool busy;
    bool removed;

    /* ---- used by store_changes.c ---- */
    sgi_store_listener *listener;
    /* true = the store has reported news (changes of other servers); any thread may
     * set the flag */
    atomic_bool woken;
    bool news_due;
    bool deaf; /* true = the committer is being removed, so the store's changes no
                  longer go to it */
    /* time at which the store is next asked for changes, real clock in ms; INT64_MAX =
     * not planned */
    int64_t news_ms;
    /* fires when the store is next asked for changes; only used for a store that does
     * not block */
    sgi_timer news_timer;
} sgi_store_queue;

TAILQ_HEAD(sgi_store_queue_list, sgi_store_queue);

/* One store that servers of this runtime use. */
struct sgi_store_slot {
    TAILQ_ENTRY(sgi_store_slot) link;
    segue_runtime *rt;
    segue_store *store; /* a counted reference */
    bool blocking;
    bool closing;
    bool finished; /* true = the worker has ended, and only joining its thread is left */
    pthread_t worker;
    pthread_cond_t wanted;
    struct sgi_store_queue_list queues;
    struct sgi_store_queue_list due;
    sgi_commit batch;
};

/* Puts the queue at the end of the list of due queues (in store_worker.c). The caller
 * holds the lock. */
void sgi_store_queue_mark_due(sgi_store_queue *queue);
/* sgi_store_slot_unlock releases the lock before a call of a blocking store, and
 * sgi_store_slot_lock takes the lock again. For a store that does not block, both do
 * nothing. */
void sgi_store_slot_unlock(sgi_store_slot *slot);
void sgi_store_slot_lock(sgi_store_slot *slot);

/* Asks the store what the job wants to know, and fills the job (in store_ask.c). The
 * caller has released the lock of a blocking store. */
segue_status sgi_store_queue_ask(segue_store *store, sgi_store_listener *by,
                                 sgi_store_job *job);

/* ---- store_changes.c; the caller holds the lock ---- */
segue_status sgi_store_queue_listen(sgi_store_queue *queue);
/* Stops listening. Releases the lock for a time. For a blocking store, only its worker
 * calls the function, while the queue is busy. */
void sgi_store_queue_stop_listening(sgi_store_queue *queue);
/* Delivers due news (changes of other servers) to the committer. Releases the lock for
 * a time. Returns false when no news was due. */
bool sgi_store_queue_read_changes(sgi_store_queue *queue);
/* Puts all queues whose stores have reported news (changes of other servers) into the
 * lists of due queues. */
void sgi_store_queues_mark_due(segue_runtime *rt);
/* Puts all queues of the slot whose poll time has come into the list of due queues.
 * Returns the next poll time, real clock in ms. */
int64_t sgi_store_slot_mark_due_polls(sgi_store_slot *slot);

#endif
