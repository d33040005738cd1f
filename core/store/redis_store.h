/* What the files of the Redis store share. redis.c opens and closes, redis_history.c
 * connects and looks whether something is lost, redis_call.c asks the server,
 * redis_commit.c writes, redis_read.c finds, reads and lists, redis_claim.c claims and
 * purges, redis_news.c tells what others did, redis_watch.c is the thread that listens
 * and keeps this instance alive as an owner. */
#ifndef SGI_REDIS_STORE_H
#define SGI_REDIS_STORE_H

#include <pthread.h>

#include "base/map.h"
#include "store/redis_link.h"
#include "store/store.h"

#define SGI_REDIS_ME_MAX 40
#define SGI_REDIS_NEWS_MAX 1024
#define SGI_REDIS_LETTERS_MAX 64
#define SGI_REDIS_FOLLOW_STEP 64
#define SGI_REDIS_CLAIM_STEP 32
#define SGI_REDIS_ENDS 1024

/* An operation of which this instance remembers something. */
typedef struct sgi_redis_mark {
    sgi_map_node node;
    TAILQ_ENTRY(sgi_redis_mark) link;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    bool followed;
    uint64_t told;  /* its letters up to this number */
    uint64_t round; /* the thread's: when it was last followed anew */
} sgi_redis_mark;

TAILQ_HEAD(sgi_redis_mark_list, sgi_redis_mark);

/* Identifiers of operations, each once. */
typedef struct sgi_redis_ids {
    uint8_t ids[SGI_REDIS_NEWS_MAX][SEGUE_STORE_ID_SIZE];
    size_t count;
} sgi_redis_ids;

typedef struct sgi_redis_store {
    sgi_mem mem;
    sgi_redis_url url;
    char keys[SGI_REDIS_PREFIX_MAX + 4]; /* "{prefix}:" */
    char me[SGI_REDIS_ME_MAX];           /* the owner that this instance is */
    char lease[24];                      /* milliseconds, as text */
    int64_t lease_ms;
    int64_t timeout_ms;
    int64_t max_operations; /* of a principal; 0 = no bound */
    int64_t max_bytes;
    uint64_t calls; /* numbers those that change something */
    sgi_buf loading;
    /* Calls of the vtable, one at a time. */
    sgi_redis_link link;
    sgi_buf commands;
    uint8_t shown[SGI_REDIS_CLAIM_STEP][SEGUE_STORE_ID_SIZE]; /* by a claim, of which */
    size_t shown_count; /* ... the server has not been told yet */
    int64_t purged;
    int64_t evicted;
    uint8_t ends[SGI_REDIS_ENDS][SEGUE_STORE_ID_SIZE]; /* what has ended here lately */
    uint64_t end_count;                                /* ... since it was opened */
    /* Between them and the thread, under lock. */
    pthread_mutex_t lock;
    sgi_map marks;                        /* changed by calls only, */
    struct sgi_redis_mark_list mark_list; /* ... but for the order */
    sgi_redis_ids grown;                  /* what news will tell */
    sgi_redis_ids mail;                   /* what letters came for */
    bool mail_all;                        /* ... and perhaps for others */
    bool missed;
    bool orphans;
    bool retell; /* the server may have lost letters, and given out numbers twice */
    bool doubt;  /* ... and what was committed */
    char history[sizeof((sgi_redis_peer *)0)->history]; /* of its data, when last seen */
    long long breaks;                                   /* ... as counted there */
    int64_t operations;                                 /* -1 = not known */
    pthread_mutex_t bell_lock;
    void (*ring)(void *user);
    void *ring_user;
    /* The thread's. */
    pthread_t thread;
    bool has_thread;
    bool tried; /* it has listened once, or could not: under lock, told by has_tried */
    char refused[160]; /* why it may not listen; written by the thread before that */
    pthread_cond_t has_tried;
    int wake; /* eventfd: readable once the store closes */
    sgi_redis_link beat;
    sgi_redis_link ear;
    sgi_buf beat_commands; /* never grows: the thread allocates nothing */
} sgi_redis_store;

/* ---- connecting (redis_history.c) ---- */

/* As sgi_redis_link_open, for one that runs scripts; notes what became of the data. */
segue_status sgi_redis_connect(sgi_redis_store *store, sgi_redis_link *link,
                               int64_t deadline);

/* An operation of ours has ended: remembered for the next. */
void sgi_redis_note_end(sgi_redis_store *store, const uint8_t *id);
/* Lets go of what has ended here and is alive there again, so that it is claimed. */
segue_status sgi_redis_recall_ends(sgi_redis_store *store);

/* ---- asking (redis_call.c) ---- */

/* Begins the call of a script with so many arguments, for that link. */
void sgi_redis_call_on(const sgi_redis_store *store, const sgi_redis_link *link,
                       sgi_buf *commands, sgi_redis_script script, size_t count);
/* The same on the connection of the calls. */
void sgi_redis_call(sgi_redis_store *store, sgi_redis_script script, size_t count);
/* The same for one that changes something: who, number and lease are its first. */
void sgi_redis_change(sgi_redis_store *store, sgi_redis_script script, size_t count);
/* A key: the prefix, a name, an id (may be NULL). */
void sgi_redis_key(const sgi_redis_store *store, sgi_buf *commands, const char *name,
                   const uint8_t *id);
/* Sends store->commands, which are `count` whole ones, and waits for the replies. What is
 * lost on the way is asked again until the time limit is over. SEGUE_OK: replies are all
 * there, none an error, each to be freed. */
segue_status sgi_redis_ask(sgi_redis_store *store, size_t count, redisReply **replies);
/* One script that answers with a status. */
segue_status sgi_redis_ask_status(sgi_redis_store *store);

static inline bool sgi_redis_is_array(const redisReply *reply, size_t least)
{
    return reply && reply->type == REDIS_REPLY_ARRAY && reply->elements >= least;
}

static inline bool sgi_redis_is_text(const redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_STRING;
}

/* ---- numbers whose bytes sort as they do ---- */

void sgi_redis_put_int(uint8_t to[8], int64_t value);
int64_t sgi_redis_get_int(const char *from);
void sgi_redis_put_uint(uint8_t to[8], uint64_t value);
uint64_t sgi_redis_get_uint(const char *from);

/* ---- records: {id, rec, ended, purge} as scripts show them ---- */

#define SGI_REDIS_RECORD_HEAD 75
#define SGI_REDIS_TASK_MAX 1024

/* False when it is gone (no bytes) or not a record. Views into the reply. */
bool sgi_redis_fill_record(redisReply *const *shown, segue_store_record *record,
                           char task_id[SGI_REDIS_TASK_MAX + 1]);

/* ---- marks and news (redis_news.c) ---- */

sgi_redis_mark *sgi_redis_mark_of(sgi_redis_store *store, const uint8_t *id);
/* The letters up to seq are nobody's business any more, or (UINT64_MAX) all of them. */
void sgi_redis_letters_gone(sgi_redis_store *store, const uint8_t *id, uint64_t seq);
void sgi_redis_marks_free(sgi_redis_store *store);
bool sgi_redis_ids_add(sgi_redis_ids *list, const uint8_t *id);
/* Sets it under the lock. */
void sgi_redis_set_flag(sgi_redis_store *store, bool *flag);
/* Rings, from any thread; never with `lock` held. */
void sgi_redis_ring(sgi_redis_store *store);

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
segue_status sgi_redis_claim(void *self, segue_store_record_fn fn, void *user);
segue_status sgi_redis_purge(void *self, int64_t now_ms, int64_t *next_ms);
void sgi_redis_set_bell(void *self, void (*ring)(void *user), void *user);
segue_status sgi_redis_follow(void *self, const uint8_t *id, int32_t on);
segue_status sgi_redis_post(void *self, const uint8_t *id, const char *data, size_t len);
segue_status sgi_redis_news(void *self, segue_store_news_fn fn, void *user,
                            int64_t *within_ms);

#endif
