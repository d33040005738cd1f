/* The stores of a runtime and the committers that use them, for store_worker.c
 * (commits and jobs) and store_changes.c (news). A committer writes the operations of
 * one server. A queue connects one committer with its store. */
#ifndef SGI_STORE_QUEUE_H
#define SGI_STORE_QUEUE_H

#include "engine/log/committer.h"
#include "runtime/state.h"
#include "store/store.h"

/* The work of one committer at its store. */
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
    atomic_bool woken; /* the store has reported news, on any thread */
    bool news_due;
    bool deaf; /* the committer is being removed, so it gets no more news */
    /* real time of the next poll for news; INT64_MAX = no poll is planned */
    int64_t news_ms;
    sgi_timer news_timer; /* fires at the next poll of a store that does not block */
} sgi_store_queue;

TAILQ_HEAD(sgi_store_queue_list, sgi_store_queue);

/* A store of this runtime. */
struct sgi_store_slot {
    TAILQ_ENTRY(sgi_store_slot) link;
    segue_runtime *rt;
    segue_store *store; /* a counted reference */
    bool blocking;
    bool closing;
    bool finished; /* the worker has ended, and only joining its thread is left */
    pthread_t worker;
    pthread_cond_t wanted;
    struct sgi_store_queue_list queues;
    struct sgi_store_queue_list due;
    sgi_commit batch;
};

/* Puts the queue at the end of the list of due queues (in store_worker.c). The caller
 * holds the lock. */
void sgi_store_queue_put_due(sgi_store_queue *queue);
/* Release and take the lock around calls of a blocking store. For other stores they do
 * nothing. */
void sgi_slot_unlock(sgi_store_slot *slot);
void sgi_slot_lock(sgi_store_slot *slot);

/* ---- store_changes.c; the caller holds the lock ---- */
segue_status sgi_store_queue_listen(sgi_store_queue *queue);
/* Stops listening. The lock is released for a time. For a blocking store, its worker
 * calls this while the queue is busy. */
void sgi_store_queue_stop_listening(sgi_store_queue *queue);
/* Delivers due news to the committer. The lock is released for a time. Returns false
 * when no news was due. */
bool sgi_store_queue_read_changes(sgi_store_queue *queue);
/* Makes due all queues whose stores have reported news. */
void sgi_store_queues_find_due(segue_runtime *rt);
/* Makes due all queues of the slot whose poll time has come. Returns the next poll time
 * (real time). */
int64_t sgi_slot_poll_due(sgi_store_slot *slot);

#endif
