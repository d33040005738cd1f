/* The object that the files of the SQLite store share, with its statements and
 * transactions. sqlite.c writes, sqlite_read.c reads, sqlite_changes.c reports what other
 * instances did, sqlite_upkeep.c claims, evicts and purges, sqlite_statement.c has the
 * SQL, and sqlite_file.c opens the file. */
#ifndef SGI_SQLITE_STORE_H
#define SGI_SQLITE_STORE_H

#include "base/map.h"
#include "store/sqlite_file.h"

typedef enum sgi_sqlite_statement {
    SGI_SQLITE_BEGIN,
    SGI_SQLITE_COMMIT,
    SGI_SQLITE_ROLLBACK,
    SGI_SQLITE_CREATE,
    SGI_SQLITE_APPEND,
    SGI_SQLITE_END,
    SGI_SQLITE_RELEASE,
    SGI_SQLITE_LOOKUP,
    SGI_SQLITE_FIRST_KEY,
    SGI_SQLITE_LAST_KEY,
    SGI_SQLITE_FIND_TASK,
    SGI_SQLITE_FIND_KEY,
    SGI_SQLITE_FIND_NUMBER,
    SGI_SQLITE_READ,
    SGI_SQLITE_LIST,
    SGI_SQLITE_LIST_BEHIND,
    SGI_SQLITE_SCAN,
    SGI_SQLITE_OTHER_OWNER,
    SGI_SQLITE_ORPHANS,
    SGI_SQLITE_SET_OWNER,
    SGI_SQLITE_DUE,
    SGI_SQLITE_REMOVE,
    SGI_SQLITE_REMOVE_LOG,
    SGI_SQLITE_DROP,
    SGI_SQLITE_LEAVE,
    SGI_SQLITE_LEFT_OVER,
    SGI_SQLITE_LEFT_NOTHING,
    SGI_SQLITE_LOG_BYTES,
    SGI_SQLITE_PRINCIPAL,
    SGI_SQLITE_OLDEST_ENDED,
    SGI_SQLITE_DATA_VERSION,
    SGI_SQLITE_STATE,
    SGI_SQLITE_POST,
    SGI_SQLITE_COMMANDS,
    SGI_SQLITE_COMMANDS_BEHIND,
    SGI_SQLITE_COMMANDS_OF,
    SGI_SQLITE_COMMAND_COUNT,
    SGI_SQLITE_TAKE,
    SGI_SQLITE_OPERATIONS,
    SGI_SQLITE_PAGES,
    SGI_SQLITE_STATEMENTS
} sgi_sqlite_statement;

#define SGI_SQLITE_CACHED_OPS 1024

typedef struct sgi_sqlite_cached_op {
    uint8_t id[SEGUE_STORE_ID_SIZE];
    /* number of the operation in the database; 0 = this cache entry is empty */
    int64_t op;
    int64_t owner;
    int64_t last_seq;
    int64_t bytes; /* number of bytes of the operation's log; -1 = unknown */
    /* the value of store->epoch when this cache entry was filled; an entry with an older
     * epoch is looked up again before use */
    uint64_t epoch;
} sgi_sqlite_cached_op;

/* A list of operation numbers. */
typedef struct sgi_sqlite_op_list {
    int64_t *ops;
    size_t count;
    size_t cap;
} sgi_sqlite_op_list;

typedef struct sgi_sqlite_followed_op {
    sgi_map_node node;
    TAILQ_ENTRY(sgi_sqlite_followed_op) link;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    int64_t op;
    /* the key of the operation's newest log row when the operation was last examined */
    int64_t last_key;
    int64_t owner;
    bool ended;
    bool gone;
    /* true = this instance claimed the operation after it was last examined, so other
     * instances can have written to it before the claim */
    bool claimed;
} sgi_sqlite_followed_op;

/* The state of polling for changes that other instances made. */
typedef struct sgi_sqlite_watch {
    void (*wake)(void *user);
    void *wake_user;
    sgi_map followed;
    TAILQ_HEAD(sgi_sqlite_followed_op_list, sgi_sqlite_followed_op) follows;
    int64_t version; /* SQLite's data version at the last poll */
    /* true = the next poll searches for changes even if the data version is unchanged */
    bool look;
    /* number of the last forwarded command that a poll has examined */
    int64_t last_command;
    /* operations that were claimed lately, whose waiting forwarded commands are delivered
     * again */
    sgi_sqlite_op_list retell;
    /* number of the last forwarded command that was delivered again for the first
     * operation of `retell` */
    int64_t redelivered;
    /* the time of the last search for operations without a living owner; monotonic clock,
     * ms */
    int64_t orphans_ms;
    bool others; /* true = another instance lived at the last poll */
    bool orphans_reported;
} sgi_sqlite_watch;

typedef struct sgi_sqlite_store {
    sgi_mem mem;
    sgi_sqlite_file file;
    sqlite3_stmt *statements[SGI_SQLITE_STATEMENTS];
    unsigned version; /* SQLite's data version after the last transaction of this store */
    int error;        /* the value of errno after the last failed step */
    /* the current epoch of the cached operations; a cached operation that was looked up
     * in an older epoch is not valid */
    uint64_t epoch;
    int64_t max_operations; /* maximum number of operations per principal; 0 = no limit */
    int64_t max_bytes;
    segue_store_stats stats;
    /* the time at which `stats` was last read from the file; monotonic clock, ms */
    int64_t stats_ms;
    int64_t page_size;
    sgi_sqlite_watch watch;
    sgi_sqlite_cached_op slots[SGI_SQLITE_CACHED_OPS];
} sgi_sqlite_store;

/* ---- statements; they return SQLite's codes ---- */

int sgi_sqlite_prepare(sgi_sqlite_store *store);
/* Runs sqlite3_step and stores errno in store->error when the step fails. */
int sgi_sqlite_step(sgi_sqlite_store *store, sqlite3_stmt *statement);
/* Runs a bound statement that returns no rows. */
int sgi_sqlite_run(sgi_sqlite_store *store, sgi_sqlite_statement which);
int sgi_sqlite_run_with(sgi_sqlite_store *store, sgi_sqlite_statement which, int64_t a);
int sgi_sqlite_run_with_two(sgi_sqlite_store *store, sgi_sqlite_statement which,
                            int64_t a, int64_t b);
/* Reads the first column of the first row that a bound statement finds. *value stays
 * unchanged when the statement finds no row. */
int sgi_sqlite_query(sgi_sqlite_store *store, sgi_sqlite_statement which, int64_t *value);
/* Binds the lowest and the highest possible key of the operation's log rows to a
 * statement. */
void sgi_sqlite_bind_range(sgi_sqlite_store *store, sgi_sqlite_statement which,
                           int64_t op);

static inline segue_status sgi_sqlite_status_of(const sgi_sqlite_store *store, int code)
{
    return code ? sgi_sqlite_status(code, store->error) : SEGUE_OK;
}

static inline int64_t sgi_sqlite_key(int64_t op, int64_t seq)
{
    return op << SGI_SQLITE_SEQ_BITS | seq;
}

/* ---- transactions ---- */

segue_status sgi_sqlite_begin_transaction(sgi_sqlite_store *store);
/* Ends the transaction: commits when `status` is SEGUE_OK, and rolls back otherwise.
 * Returns `status`, or the error of the commit. */
segue_status sgi_sqlite_end_transaction(sgi_sqlite_store *store, segue_status status);
/* Makes all cached operations invalid, so that each of them is looked up again before its
 * next use. */
void sgi_sqlite_invalidate_cached_ops(sgi_sqlite_store *store);

/* ---- functions that the files share ---- */

int sgi_sqlite_bind_bytes(sqlite3_stmt *statement, int column, const void *bytes,
                          size_t len);
/* Reads a column of bytes. Returns false when out of memory. (SQLite returns NULL also
 * for an empty value; the function distinguishes the two cases.) */
bool sgi_sqlite_column_bytes(sqlite3_stmt *statement, int column, const char **bytes,
                             size_t *len);
/* Copies a column of exactly `size` bytes to `to`. Returns false when the column has
 * another size. */
bool sgi_sqlite_copy_column(sqlite3_stmt *statement, int column, uint8_t *to,
                            size_t size);
/* Returns the status for a column that could not be read: out of memory, or a corrupt
 * value. */
segue_status sgi_sqlite_unreadable_status(const sgi_sqlite_store *store);

/* Passes the row that a bound FIND statement finds to fn. Returns SEGUE_E_NOT_FOUND when
 * the statement finds no row. */
segue_status sgi_sqlite_pass_record(sgi_sqlite_store *store, sgi_sqlite_statement which,
                                    segue_store_record_fn fn, void *user, bool *stop);
segue_status sgi_sqlite_find(void *self, const char *task_id,
                             const uint8_t *idempotency_key, segue_store_record_fn fn,
                             void *user);
segue_status sgi_sqlite_read(void *self, const uint8_t *id, uint64_t after,
                             segue_store_entry_fn fn, void *user);
segue_status sgi_sqlite_list(void *self, const uint8_t *principal, int64_t created_ms,
                             const char *task_id, segue_store_record_fn fn, void *user);
segue_status sgi_sqlite_scan(void *self, uint64_t *place, segue_store_record_fn fn,
                             void *user);

/* Removes an operation: its row at once, and as many of its log rows as one step allows.
 * Returns SQLite's code. */
int sgi_sqlite_remove_op(sgi_sqlite_store *store, int64_t op);
/* Evicts ended operations of a principal, so that the principal stays within its limits
 * after it got the new operation `newest`. */
segue_status sgi_sqlite_evict_ended_ops(sgi_sqlite_store *store, const uint8_t *principal,
                                        int64_t newest);
segue_status sgi_sqlite_claim(void *self, segue_store_record_fn fn, void *user);
segue_status sgi_sqlite_purge(void *self, int64_t now_ms, int64_t *next_ms);
segue_status sgi_sqlite_compact(void *self);
void sgi_sqlite_get_stats(void *self, segue_store_stats *stats);

bool sgi_sqlite_op_list_add(sgi_sqlite_store *store, sgi_sqlite_op_list *list,
                            int64_t op);
void sgi_sqlite_op_list_free(sgi_sqlite_store *store, sgi_sqlite_op_list *list);

void sgi_sqlite_watch_init(sgi_sqlite_store *store);
void sgi_sqlite_watch_free(sgi_sqlite_store *store);
/* Records newly claimed operations, so that their waiting forwarded commands are
 * delivered again. */
segue_status sgi_sqlite_redeliver_commands(sgi_sqlite_store *store,
                                           const sgi_sqlite_op_list *claimed);
void sgi_sqlite_set_wake_callback(void *self, void (*wake)(void *user), void *user);
segue_status sgi_sqlite_follow_log(void *self, const uint8_t *id, int32_t on);
segue_status sgi_sqlite_post_command(void *self, const uint8_t *id, const char *data,
                                     size_t len);
segue_status sgi_sqlite_read_changes(void *self, segue_store_news_fn fn, void *user,
                                     int64_t *within_ms);

#endif
