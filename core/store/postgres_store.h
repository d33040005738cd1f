/* The object that the files of the PostgreSQL store share. postgres.c opens and closes
 * the store, postgres_format.c brings the schema to the present format,
 * postgres_history.c connects and checks whether data were lost, postgres_call.c runs
 * calls, postgres_commit.c writes, postgres_read.c finds, reads and lists,
 * postgres_claim.c claims and purges, postgres_changes.c delivers news, and
 * postgres_watch.c is the thread that receives news and renews the lease. */
#ifndef SGI_POSTGRES_STORE_H
#define SGI_POSTGRES_STORE_H

#include "store/feed.h"
#include "store/format.h"
#include "store/postgres_link.h"
#include "store/postgres_url.h"
#include "store/store.h"
#include "store/writes.h"

#define SGI_PG_COMMANDS_MAX 64
#define SGI_PG_FOLLOW_STEP 64
#define SGI_PG_CLAIM_STEP 32
#define SGI_PG_ENDS 1024
#define SGI_PG_CHANNEL 64
#define SGI_PG_LIFE 64

typedef struct sgi_pg_store {
    sgi_mem mem;
    sgi_pg_url url;
    /* the name of this instance as an owner: SGI_PG_OWNER_MARK, the newest format that
     * this library reads, random bytes */
    uint8_t me[SEGUE_STORE_ID_SIZE];
    /* value of synchronous_commit for commits; "" = the setting of the server */
    const char *sync;
    /* true = commits must survive a crash of the server, whatever the server's settings
     * are */
    bool full;
    int64_t lease_ms;
    int64_t timeout_ms;
    int64_t max_operations; /* maximum number of operations per principal; 0 = no limit */
    int64_t max_bytes;
    /* The members down to `end_count` are used only by calls of the vtable, one call at a
     * time. */
    uint64_t calls; /* number of the last call that changed something */
    sgi_pg_link link;
    sgi_pg_call call;
    /* ids of operations that a claim has passed to its callback and not yet
     * acknowledged */
    uint8_t shown[SGI_PG_CLAIM_STEP][SEGUE_STORE_ID_SIZE];
    size_t shown_count; /* number of ids in `shown` */
    int64_t purged;
    int64_t evicted;
    /* a ring buffer with the operations of this instance that ended most recently */
    uint8_t ends[SGI_PG_ENDS][SEGUE_STORE_ID_SIZE];
    /* number of operations of this instance that have ended since the store was opened */
    uint64_t end_count;
    /* The calls and the thread share the members down to `has_tried`. */
    sgi_store_feed feed;
    /* the thread looks and sets `number`; the calls only read it */
    sgi_store_format format;
    /* the thread has found that the newest format is due; the next call for news takes
     * it */
    atomic_bool format_is_due;
    /* the token and the break count that the server reported at the last check (break:
     * commits may have been lost); feed.lock protects life, breaks, operations and
     * tried */
    char life[SGI_PG_LIFE];
    int64_t breaks;
    /* approximate number of operations in the database; -1 = unknown */
    int64_t operations;
    bool tried; /* true = the thread's first attempt to listen is over */
    pthread_cond_t has_tried;
    /* Only the thread uses the following members, except `refused` and `refused_as`,
     * which are read after `tried` was set. */
    char refused[SGI_PG_FAULT]; /* the reason why the thread could not listen */
    segue_status refused_as;
    pthread_t thread;
    bool has_thread;
    int stop_fd; /* an eventfd that becomes readable when the store closes */
    sgi_pg_link ear;
    /* the thread's calls; the memory is reserved when the store opens, because the thread
     * allocates nothing */
    sgi_pg_call ear_call;
} sgi_pg_store;

/* ---- the format (postgres_format.c) ---- */

/* Checks the format of the schema, and creates or migrates the tables if needed. Uses
 * store->link, which is open. On failure link.fault has the reason. */
segue_status sgi_pg_prepare_tables(sgi_pg_store *store, int64_t deadline);
/* Gives the schema the newest format, unless an older server lives. When this fails, the
 * thread tries again later. */
void sgi_pg_take_newest_format(sgi_pg_store *store);

/* ---- connecting (postgres_history.c) ---- */

/* Records whether the server of a new connection may have lost data. On failure the
 * function closes the connection, and link->fault has the reason. */
segue_status sgi_pg_note_if_data_was_lost(sgi_pg_store *store, sgi_pg_link *link,
                                          int64_t deadline);
/* Opens a connection that runs calls: does sgi_pg_link_open, then
 * sgi_pg_note_if_data_was_lost. */
segue_status sgi_pg_connect(sgi_pg_store *store, sgi_pg_link *link, int64_t deadline);
/* Stores the token of the table `life` and the break count that the server reports. A
 * change sets `doubt` and `retell`. */
void sgi_pg_note_server_token(sgi_pg_store *store, const char *life, size_t len,
                              int64_t breaks);

/* Remembers that an operation of this instance has ended. */
void sgi_pg_remember_ended_op(sgi_pg_store *store, const uint8_t *id);
/* Releases the operations that ended in this instance lately but are open again in the
 * database, so that they can be claimed. */
segue_status sgi_pg_release_ended_ops(sgi_pg_store *store);

/* ---- calls (postgres_call.c) ---- */

/* Begins a call in store->call. sql: the statement, with "@" for the name of the
 * schema. */
void sgi_pg_begin_call(sgi_pg_store *store, const char *sql);
/* Begins a call that changes something. The first two arguments of the call are the owner
 * and the call number. */
void sgi_pg_begin_write_call(sgi_pg_store *store, const char *sql);
/* Runs store->call. After a lost connection or a temporary error the call is repeated
 * until the time limit. SEGUE_OK means that *result is no error; the caller frees
 * *result. When the server refuses one write of a commit, *at (may be NULL) receives the
 * number of this write, counted from 0. */
segue_status sgi_pg_execute(sgi_pg_store *store, PGresult **result, size_t *at);
/* Runs store->call as sgi_pg_execute does, and frees the result, which is not needed. */
segue_status sgi_pg_execute_without_result(sgi_pg_store *store);
/* Returns the store's status for a result that is an error of the database server. */
segue_status sgi_pg_status_of(const PGresult *result);
/* Stores the message of an error result in link->fault. */
void sgi_pg_keep_fault(sgi_pg_link *link, const PGresult *result);

/* ---- the thread (postgres_watch.c) ---- */

bool sgi_pg_watch_start(sgi_pg_store *store);
void sgi_pg_watch_stop(sgi_pg_store *store);

/* ---- the vtable ---- */

/* The columns of a record, in the order in which sgi_pg_fill_record reads them. */
#define SGI_PG_RECORD                                                                    \
    "id, task_id, idempotency_key, principal, ended, created, purge, data"
#define SGI_PG_RECORD_COLUMNS 8

/* Fills *record with views into the result. Returns false when the values of the row are
 * not a record. */
bool sgi_pg_fill_record(const PGresult *result, int row, segue_store_record *record,
                        char task_id[SGI_STORE_TASK_MAX + 1]);

segue_status sgi_pg_commit(void *self, const segue_store_write *writes, size_t count);
segue_status sgi_pg_find(void *self, const char *task_id, const uint8_t *idempotency_key,
                         segue_store_record_fn fn, void *user);
segue_status sgi_pg_read(void *self, const uint8_t *id, uint64_t after,
                         segue_store_entry_fn fn, void *user);
segue_status sgi_pg_list(void *self, const uint8_t *principal, int64_t created_ms,
                         const char *task_id, segue_store_record_fn fn, void *user);
segue_status sgi_pg_scan(void *self, uint64_t *place, segue_store_record_fn fn,
                         void *user);
segue_status sgi_pg_claim(void *self, segue_store_record_fn fn, void *user);
segue_status sgi_pg_purge(void *self, int64_t now_ms, int64_t *next_ms);
void sgi_pg_set_wake(void *self, void (*wake)(void *user), void *user);
segue_status sgi_pg_follow(void *self, const uint8_t *id, int32_t on);
segue_status sgi_pg_post_command(void *self, const uint8_t *id, const char *data,
                                 size_t len);
segue_status sgi_pg_read_changes(void *self, segue_store_news_fn fn, void *user,
                                 int64_t *within_ms);

#endif
