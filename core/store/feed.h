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

#define SGI_STORE_FEED_IDS_MAX 1024

typedef struct sgi_store_feed_op {
    sgi_map_node node;
    TAILQ_ENTRY(sgi_store_feed_op) link;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    bool followed;
    /* number of the last delivered command that the owner has not taken; 0 = no such
     * command */
    uint64_t delivered;
    /* number of the last pass over the followed operations in which the thread handled
     * this operation (see sgi_store_feed_next_followed) */
    uint64_t round;
} sgi_store_feed_op;

TAILQ_HEAD(sgi_store_feed_op_list, sgi_store_feed_op);

/* A set of operation ids. */
typedef struct sgi_store_feed_ids {
    uint8_t ids[SGI_STORE_FEED_IDS_MAX][SEGUE_STORE_ID_SIZE];
    size_t count;
} sgi_store_feed_ids;

typedef struct sgi_store_feed {
    const sgi_mem *mem;
    pthread_mutex_t lock; /* protects the members down to `doubt` */
    sgi_map known;
    /* the operations of `known` as a list; the thread may change the order of the list */
    struct sgi_store_feed_op_list list;
    sgi_store_feed_ids grown; /* operations that grew */
    sgi_store_feed_ids mail;  /* ids of operations for which forwarded commands arrived */
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
} sgi_store_feed;

void sgi_store_feed_init(sgi_store_feed *feed, const sgi_mem *mem);
void sgi_store_feed_free(sgi_store_feed *feed);

/* ---- known operations; calls of the store only ---- */

sgi_store_feed_op *sgi_store_feed_find_op(sgi_store_feed *feed, const uint8_t *id);
/* Returns the feed's record of the operation with this id. If the feed has no record of
 * the operation yet, adds a record. Returns NULL when out of memory. */
sgi_store_feed_op *sgi_store_feed_find_or_add_op(sgi_store_feed *feed, const uint8_t *id);
void sgi_store_feed_set_followed(sgi_store_feed *feed, sgi_store_feed_op *op, bool on);
/* Removes the feed's record of an operation if the operation is not followed and no
 * delivered command waits to be taken. */
void sgi_store_feed_drop_idle_op(sgi_store_feed *feed, sgi_store_feed_op *op);
/* Notes that the owner has taken the forwarded commands up to number seq. seq UINT64_MAX:
 * all commands were taken, or this instance no longer owns the operation. */
void sgi_store_feed_note_taken_commands(sgi_store_feed *feed, const uint8_t *id,
                                        uint64_t seq);
/* Forgets which commands were delivered, so that all waiting commands are delivered
 * again. */
void sgi_store_feed_forget_delivered(sgi_store_feed *feed);

/* ---- lists and flags; any thread ---- */

bool sgi_store_feed_take_id(sgi_store_feed *feed, sgi_store_feed_ids *ids, uint8_t *id);
/* Adds ids to the list, `count` of them one behind the other. When the list is full,
 * empties the list and sets *otherwise. While *otherwise is set, it stands for all ids,
 * and the list stays empty. The ids of one message are added in one call: a reader that
 * takes ids meanwhile does not hide that the message has too many. */
void sgi_store_feed_add_ids(sgi_store_feed *feed, sgi_store_feed_ids *ids,
                            const uint8_t *added, size_t count, bool *otherwise);
void sgi_store_feed_add_id(sgi_store_feed *feed, sgi_store_feed_ids *ids,
                           const uint8_t *id, bool *otherwise);
size_t sgi_store_feed_count_ids(sgi_store_feed *feed, const sgi_store_feed_ids *ids);
bool sgi_store_feed_take_flag(sgi_store_feed *feed, bool *flag);
void sgi_store_feed_set_flag(sgi_store_feed *feed, bool *flag);
/* Collects up to `most` followed operations that the pass with the number `round` has
 * not handled yet. Returns their number. */
size_t sgi_store_feed_next_followed(sgi_store_feed *feed, uint64_t round,
                                    uint8_t (*ids)[SEGUE_STORE_ID_SIZE], size_t most);
/* Calls the wake-up callback, if it is set. The caller must not hold the lock. */
void sgi_store_feed_wake(sgi_store_feed *feed);
void sgi_store_feed_set_wake_callback(sgi_store_feed *feed, void (*wake)(void *user),
                                      void *user);

/* ---- delivery ---- */

typedef struct sgi_store_feed_delivery {
    sgi_store_feed *feed;
    segue_store_news_fn fn;
    void *user;
    bool stopped;
} sgi_store_feed_delivery;

/* Passes one item of news (a change of another instance) to fn. Returns false when fn
 * has stopped the delivery. */
bool sgi_store_feed_deliver(sgi_store_feed_delivery *t, const segue_store_news *news);
/* If *flag is set, clears the flag and delivers the change `kind`, which names no
 * operation. */
void sgi_store_feed_deliver_flag(sgi_store_feed_delivery *t, bool *flag, int32_t kind);
/* Reports to fn which followed operations have grown. left: a function that is called
 * for each operation that is no longer followed. */
void sgi_store_feed_deliver_grown(sgi_store_feed_delivery *t,
                                  void (*left)(void *store, const uint8_t *id),
                                  void *store);

#endif
