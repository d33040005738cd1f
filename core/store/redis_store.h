/* The object that the files of the Redis store share. redis.c opens and closes the store,
 * redis_history.c connects and checks whether data were lost, redis_call.c sends
 * commands, redis_commit.c writes, redis_read.c finds, reads and lists, redis_claim.c
 * claims and purges, redis_changes.c delivers news, and redis_watch.c is the thread that
 * receives news and renews the lease. */
#ifndef SGI_REDIS_STORE_H
#define SGI_REDIS_STORE_H

#include <pthread.h>

#include "store/feed.h"
#include "store/format.h"
#include "store/redis_link.h"
#include "store/store.h"
#include "store/writes.h"

#define SGI_REDIS_ME_MAX 40
#define SGI_REDIS_COMMANDS_MAX 64
#define SGI_REDIS_FOLLOW_STEP 64
#define SGI_REDIS_CLAIM_STEP 32
#define SGI_REDIS_ENDS 1024

typedef struct sgi_redis_store {
    sgi_mem mem;
    sgi_redis_url url;
    char keys[SGI_REDIS_PREFIX_MAX + 4]; /* the beginning of every key, "{prefix}:" */
    char me[SGI_REDIS_ME_MAX];           /* the name of this instance as an owner */
    char lease[24];                      /* the length of the lease in ms, as text */
    int64_t lease_ms;
    int64_t timeout_ms;
    int64_t max_operations; /* maximum number of operations per principal; 0 = no limit */
    int64_t max_bytes;
    uint64_t calls; /* number of the last call of a script that changed something */
    sgi_buf loading;
    /* The members down to `end_count` are used only by calls of the vtable, one call at a
     * time. */
    sgi_redis_link link;
    sgi_buf commands;
    /* ids of operations that a claim has passed to its callback and not yet
     * acknowledged */
    uint8_t shown[SGI_REDIS_CLAIM_STEP][SEGUE_STORE_ID_SIZE];
    size_t shown_count; /* number of ids in `shown` */
    int64_t purged;
    int64_t evicted;
    /* a ring buffer with the operations of this instance that ended most recently */
    uint8_t ends[SGI_REDIS_ENDS][SEGUE_STORE_ID_SIZE];
    /* number of operations of this instance that have ended since the store was opened */
    uint64_t end_count;
    /* The news for the listeners. The calls of the vtable and the thread share `feed`;
     * feed.lock protects history, breaks, operations and tried. */
    sgi_store_feed feed;
    /* the history of the server's data at the last check of this instance */
    char history[sizeof((sgi_redis_server_info *)0)->history];
    long long breaks;   /* the break count in Redis at the last check of this instance */
    int64_t operations; /* number of operations in Redis; -1 = unknown */
    /* the thread writes it after the store has opened */
    sgi_store_format format;
    /* Only the thread uses the following members, except where a comment says
     * otherwise. */
    pthread_t thread;
    bool has_thread;
    /* true = the thread's first try to subscribe is over; written under feed.lock;
     * has_tried signals the change */
    bool tried;
    /* the reason why Redis refused the subscription; the thread writes the text before it
     * sets `tried` */
    char refused[160];
    pthread_cond_t has_tried;
    int stop_fd; /* an eventfd that becomes readable when the store closes */
    sgi_redis_link beat;
    sgi_redis_link ear;
    /* the commands of the thread; the buffer never grows, because the thread allocates
     * nothing */
    sgi_buf beat_commands;
} sgi_redis_store;

/* ---- connecting (redis_history.c) ---- */

/* Opens a link that runs scripts (sgi_redis_link_open), and records whether Redis may
 * have lost data. On failure link->fault has the reason. */
segue_status sgi_redis_connect(sgi_redis_store *store, sgi_redis_link *link,
                               int64_t deadline);

/* Remembers that an operation of this instance has ended. */
void sgi_redis_remember_ended_op(sgi_redis_store *store, const uint8_t *id);
/* Releases the operations that ended in this instance lately but are open again in Redis,
 * so that they can be claimed. */
segue_status sgi_redis_release_reopened_ops(sgi_redis_store *store);

/* ---- sending commands (redis_call.c) ---- */

/* Begins the call of a script with `count` arguments in `commands`. The call must be sent
 * on `link`, because each link has its own hashes of the scripts. */
void sgi_redis_begin_script_on(const sgi_redis_store *store, const sgi_redis_link *link,
                               sgi_buf *commands, sgi_redis_script script, size_t count);
/* Begins the call of a script in store->commands. The call must be sent on
 * store->link. */
void sgi_redis_begin_script(sgi_redis_store *store, sgi_redis_script script,
                            size_t count);
/* Begins the call of a script that changes something. The first three arguments of the
 * call are the owner, the call number and the lease. */
void sgi_redis_begin_write_script(sgi_redis_store *store, sgi_redis_script script,
                                  size_t count);
/* Adds a key as an argument of a command: the prefix of the store, the name, and the id
 * (NULL = no id). */
void sgi_redis_arg_key(const sgi_redis_store *store, sgi_buf *commands, const char *name,
                       const uint8_t *id);
/* Sends store->commands, which has `count` complete commands, and waits for the replies.
 * After a lost connection or a temporary error the commands are sent again, until the
 * time limit. SEGUE_OK means that all replies have arrived and none is an error; the
 * caller frees each reply. */
segue_status sgi_redis_execute(sgi_redis_store *store, size_t count,
                               redisReply **replies);
/* Runs one script in store->commands whose reply is a status, as sgi_redis_execute does,
 * and returns this status. */
segue_status sgi_redis_execute_for_status(sgi_redis_store *store);

static inline bool sgi_redis_is_array(const redisReply *reply, size_t least)
{
    return reply && reply->type == REDIS_REPLY_ARRAY && reply->elements >= least;
}

static inline bool sgi_redis_is_text(const redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_STRING;
}

/* ---- numbers as bytes that sort in the order of the numbers ---- */

void sgi_redis_write_sortable_int(uint8_t to[8], int64_t value);
int64_t sgi_redis_read_sortable_int(const char *from);
void sgi_redis_write_sortable_uint(uint8_t to[8], uint64_t value);
uint64_t sgi_redis_read_sortable_uint(const char *from);

/* ---- records in the form of the scripts: {id, rec, ended, purge} ---- */

#define SGI_REDIS_RECORD_HEAD 75

/* Fills *record with views into the reply. Returns false when the reply has no record
 * because the operation was deleted, or when the bytes are not a record. */
bool sgi_redis_fill_record(redisReply *const *shown, segue_store_record *record,
                           char task_id[SGI_STORE_TASK_MAX + 1]);

/* ---- the thread (redis_watch.c) ---- */

bool sgi_redis_watch_start(sgi_redis_store *store);
void sgi_redis_watch_stop(sgi_redis_store *store);

/* ---- the vtable ---- */

segue_status sgi_redis_commit(void *self, const segue_store_write *writes, size_t count);
segue_status sgi_redis_find(void *self, const char *task_id,
                            const uint8_t *idempotency_key, segue_store_record_fn fn,
                            void *user);
segue_status sgi_redis_read(void *self, const uint8_t *id, uint64_t after,
                            segue_store_entry_fn fn, void *user);
segue_status sgi_redis_list(void *self, const uint8_t *principal, int64_t created_ms,
                            const char *task_id, segue_store_record_fn fn, void *user);
segue_status sgi_redis_scan(void *self, uint64_t *place, segue_store_record_fn fn,
                            void *user);
segue_status sgi_redis_claim(void *self, segue_store_record_fn fn, void *user);
segue_status sgi_redis_purge(void *self, int64_t now_ms, int64_t *next_ms);
void sgi_redis_set_wake_callback(void *self, void (*wake)(void *user), void *user);
segue_status sgi_redis_follow(void *self, const uint8_t *id, int32_t on);
segue_status sgi_redis_post_command(void *self, const uint8_t *id, const char *data,
                                    size_t len);
segue_status sgi_redis_read_changes(void *self, segue_store_news_fn fn, void *user,
                                    int64_t *within_ms);

#endif
