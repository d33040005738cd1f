/* What one instance of a store knows of the changes of other instances: the news that its
 * watching thread has received but not delivered, and the operations that the instance
 * follows. The thread and the calls of the store use this object at the same time.
 *
 *    thread --grown, mail, flags--> feed --news()--> fn
 *
 * The lists have a fixed size. When a list is full, the flag `missed` or `mail_all` is
 * set instead. Forwarded commands stay in the store until their owner takes them; `mail`
 * has only the ids of operations for which commands arrived. News that arrives during a
 * call of news() is delivered by the next call, so that other users of the store get
 * their turn.
 *
 * The feed knows an operation while the operation is followed, or while commands for
 * it were delivered and not taken. Only calls of the store add and remove known
 * operations, one call at a time. The thread reads under the lock which known
 * operations are followed. */
#ifndef SGI_STORE_FEED_H
#define SGI_STORE_FEED_H

#include <pthread.h>

#include "base/map.h"

#define SGI_FEED_IDS_MAX 1024

typedef struct sgi_feed_op {
    sgi_map_node node;
    TAILQ_ENTRY(sgi_feed_op) link;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    bool followed;
    /* number of the last delivered command that the owner has not taken; 0 = no such
     * command */
    uint64_t delivered;
    /* number of the last pass over the followed operations in which the thread handled
     * this operation (see sgi_feed_next_followed) */
    uint64_t round;
} sgi_feed_op;

TAILQ_HEAD(sgi_feed_op_list, sgi_feed_op);

/* A set of operation ids. */
typedef struct sgi_feed_ids {
    uint8_t ids[SGI_FEED_IDS_MAX][SEGUE_STORE_ID_SIZE];
    size_t count;
} sgi_feed_ids;

typedef struct sgi_feed {
    const sgi_mem *mem;
    pthread_mutex_t lock; /* protects the members down to `doubt` */
    sgi_map known;
    /* the operations of `known` as a list; the thread may change the order of the list */
    struct sgi_feed_op_list list;
    sgi_feed_ids grown; /* operations that grew */
    sgi_feed_ids mail;  /* ids of operations for which forwarded commands arrived */
    /* true = commands can also wait for operations that are not in `mail` */
    bool mail_all;
    bool missed;
    bool orphans;
    /* true = the database can have given the same number to two commands, so all waiting
     * commands are delivered again */
    bool retell;
    bool doubt; /* true = the database server may have lost commits */
    pthread_mutex_t wake_lock;
    void (*wake)(void *user);
    void *wake_user;
} sgi_feed;

void sgi_feed_init(sgi_feed *feed, const sgi_mem *mem);
void sgi_feed_free(sgi_feed *feed);

/* ---- known operations; calls of the store only ---- */

sgi_feed_op *sgi_feed_find(sgi_feed *feed, const uint8_t *id);
/* Returns the known operation with this id. If the feed does not know the operation
 * yet, adds it. Returns NULL when out of memory. */
sgi_feed_op *sgi_feed_know(sgi_feed *feed, const uint8_t *id);
void sgi_feed_set_followed(sgi_feed *feed, sgi_feed_op *op, bool on);
/* Removes a known operation if it is not followed and no delivered command waits to be
 * taken. */
void sgi_feed_drop_idle(sgi_feed *feed, sgi_feed_op *op);
/* Notes that the owner has taken the forwarded commands up to number seq. seq UINT64_MAX:
 * all commands were taken, or this instance no longer owns the operation. */
void sgi_feed_taken(sgi_feed *feed, const uint8_t *id, uint64_t seq);
/* Forgets which commands were delivered, so that all waiting commands are delivered
 * again. */
void sgi_feed_forget_delivered(sgi_feed *feed);

/* ---- lists and flags; any thread ---- */

bool sgi_feed_take_id(sgi_feed *feed, sgi_feed_ids *ids, uint8_t *id);
/* Adds an id to the list. When the list is full, empties the list and sets *otherwise. */
void sgi_feed_add_id(sgi_feed *feed, sgi_feed_ids *ids, const uint8_t *id,
                     bool *otherwise);
size_t sgi_feed_count(sgi_feed *feed, const sgi_feed_ids *ids);
bool sgi_feed_take_flag(sgi_feed *feed, bool *flag);
void sgi_feed_set_flag(sgi_feed *feed, bool *flag);
/* Collects up to `most` followed operations that the pass with the number `round` has
 * not handled yet. Returns their number. */
size_t sgi_feed_next_followed(sgi_feed *feed, uint64_t round,
                              uint8_t (*ids)[SEGUE_STORE_ID_SIZE], size_t most);
/* Calls the wake-up callback, if it is set. The caller must not hold the lock. */
void sgi_feed_wake(sgi_feed *feed);
void sgi_feed_set_wake(sgi_feed *feed, void (*wake)(void *user), void *user);

/* ---- delivery ---- */

typedef struct sgi_feed_telling {
    sgi_feed *feed;
    segue_store_news_fn fn;
    void *user;
    bool stopped;
} sgi_feed_telling;

/* Passes one item of news (a change of another instance) to fn. Returns false when fn
 * has stopped the delivery. */
bool sgi_feed_tell(sgi_feed_telling *t, const segue_store_news *news);
/* If *flag is set, clears the flag and delivers the change `kind`, which names no
 * operation. */
void sgi_feed_tell_flag(sgi_feed_telling *t, bool *flag, int32_t kind);
/* Reports to fn which followed operations have grown. left: a function that is called
 * for each operation that is no longer followed. */
void sgi_feed_tell_grown(sgi_feed_telling *t,
                         void (*left)(void *store, const uint8_t *id), void *store);

#endif
