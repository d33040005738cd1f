/* Stores and keepers of a runtime, as the files of stores at work share them:
 * store_worker.c commits and asks, store_news.c listens. */
#ifndef SGI_STORE_DESK_H
#define SGI_STORE_DESK_H

#include "runtime/state.h"
#include "store/store.h"

/* A keeper at a store. */
typedef struct sgi_desk {
    TAILQ_ENTRY(sgi_desk) link;
    TAILQ_ENTRY(sgi_desk) due_link;
    sgi_keeper *keeper;
    struct sgi_store_slot *slot;
    bool due;
    bool busy;
    bool removed;

    /* store_news.c */
    sgi_store_listener *listener;
    atomic_bool rung; /* by the store, on any thread */
    bool news_due;
    bool deaf;            /* its keeper goes: it is told nothing any more */
    int64_t news_ms;      /* real time: to be asked for news without a bell; INT64_MAX */
    sgi_timer news_timer; /* ... at a store that does not block */
} sgi_desk;

TAILQ_HEAD(sgi_desk_list, sgi_desk);

/* A store of this runtime. */
struct sgi_store_slot {
    TAILQ_ENTRY(sgi_store_slot) link;
    segue_runtime *rt;
    segue_store *store; /* counted */
    bool blocking;
    bool closing;
    bool finished; /* the worker is at its end: only the join is left */
    pthread_t worker;
    pthread_cond_t wanted;
    struct sgi_desk_list desks;
    struct sgi_desk_list due;
    sgi_commit batch;
};

/* store_worker.c; lock held. The desk is worked on soon. */
void sgi_desk_put_due(sgi_desk *desk);
/* A blocking store is called without the lock. */
void sgi_slot_step_out(sgi_store_slot *slot);
void sgi_slot_step_in(sgi_store_slot *slot);

/* store_news.c; lock held. */
segue_status sgi_desk_listen(sgi_desk *desk);
/* Let go meanwhile: of a store that blocks, by its worker and while the desk is busy. */
void sgi_desk_unlisten(sgi_desk *desk);
/* Hands news that are due to the keeper; let go meanwhile. False: none were due. */
bool sgi_desk_read_news(sgi_desk *desk);
/* Desks that were rung are due. */
void sgi_desks_answer_bells(segue_runtime *rt);
/* ... or whose time has come; when the next one's does, real time. */
int64_t sgi_slot_news_ms(sgi_store_slot *slot);

#endif
