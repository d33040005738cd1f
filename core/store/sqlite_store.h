/* What the files of the SQLite store share: its object, its statements, its transactions.
 * sqlite.c writes, sqlite_read.c reads, sqlite_news.c tells what others did,
 * sqlite_upkeep.c claims, evicts and purges, sqlite_statement.c has the SQL,
 * sqlite_file.c opens the file. */
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
    SGI_SQLITE_OTHER_OWNER,
    SGI_SQLITE_ORPHANS,
    SGI_SQLITE_ADOPT,
    SGI_SQLITE_DISOWN,
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
    SGI_SQLITE_LETTERS,
    SGI_SQLITE_LETTERS_BEHIND,
    SGI_SQLITE_LETTERS_OF,
    SGI_SQLITE_LETTER_COUNT,
    SGI_SQLITE_TAKE,
    SGI_SQLITE_OPERATIONS,
    SGI_SQLITE_PAGES,
    SGI_SQLITE_STATEMENTS
} sgi_sqlite_statement;

#define SGI_SQLITE_SLOTS 1024

typedef struct sgi_sqlite_slot {
    uint8_t id[SEGUE_STORE_ID_SIZE];
    int64_t op; /* 0 = empty */
    int64_t owner;
    int64_t last_seq;
    int64_t bytes;  /* of the log; -1 = not known */
    uint64_t epoch; /* of the store when it was filled: an older one may be wrong */
} sgi_sqlite_slot;

/* Numbers of operations. */
typedef struct sgi_sqlite_ops {
    int64_t *ops;
    size_t count;
    size_t cap;
} sgi_sqlite_ops;

typedef struct sgi_sqlite_follow {
    sgi_map_node node;
    TAILQ_ENTRY(sgi_sqlite_follow) link;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    int64_t op;
    int64_t last_key; /* of its log when it was last looked at */
    int64_t owner;
    bool ended;
    bool gone;
    bool claimed; /* since then: others may have written until it was ours */
} sgi_sqlite_follow;

/* What sqlite_news.c knows of the others. */
typedef struct sgi_sqlite_watch {
    void (*ring)(void *user);
    void *bell;
    sgi_map followed;
    TAILQ_HEAD(sgi_sqlite_follow_list, sgi_sqlite_follow) follows;
    int64_t version;       /* of the file when we last looked */
    bool look;             /* there is something, whatever the version says */
    int64_t last_letter;   /* number of the last one that was looked at */
    sgi_sqlite_ops retell; /* claimed since: what waits for them is told once more */
    int64_t retold;        /* number of the last letter to the first of them */
    int64_t orphans_ms;    /* when we last looked for operations without an owner */
    bool orphans_told;
} sgi_sqlite_watch;

typedef struct sgi_sqlite_store {
    sgi_mem mem;
    sgi_sqlite_file file;
    sqlite3_stmt *statements[SGI_SQLITE_STATEMENTS];
    unsigned version;       /* of the data after our last transaction */
    int error;              /* errno after the last step that failed */
    uint64_t epoch;         /* of what the slots know */
    int64_t max_operations; /* of one principal; 0 = any number */
    int64_t max_bytes;
    segue_store_stats stats;
    int64_t stats_ms; /* when they were last looked up */
    int64_t page_size;
    sgi_sqlite_watch watch;
    sgi_sqlite_slot slots[SGI_SQLITE_SLOTS];
} sgi_sqlite_store;

/* ---- statements: codes of SQLite ---- */

int sgi_sqlite_prepare(sgi_sqlite_store *store);
/* sqlite3_step, keeping errno when it fails. */
int sgi_sqlite_step(sgi_sqlite_store *store, sqlite3_stmt *statement);
/* Runs a bound statement that gives no rows. */
int sgi_sqlite_run(sgi_sqlite_store *store, sgi_sqlite_statement which);
int sgi_sqlite_run_with(sgi_sqlite_store *store, sgi_sqlite_statement which, int64_t a);
int sgi_sqlite_run_with_two(sgi_sqlite_store *store, sgi_sqlite_statement which,
                            int64_t a, int64_t b);
/* The first column of the first row of a bound statement; *value is left alone when there
 * is no row. */
int sgi_sqlite_query(sgi_sqlite_store *store, sgi_sqlite_statement which, int64_t *value);
/* Binds the first and the last key that log rows of the operation can have. */
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

segue_status sgi_sqlite_begin(sgi_sqlite_store *store);
/* Commits when status is good, else rolls back; says how it all went. */
segue_status sgi_sqlite_finish(sgi_sqlite_store *store, segue_status status);
/* What the slots know is to be looked up again. */
void sgi_sqlite_forget(sgi_sqlite_store *store);

/* ---- between the files ---- */

int sgi_sqlite_bind_bytes(sqlite3_stmt *statement, int column, const void *bytes,
                          size_t len);
/* SQLite answers NULL for no bytes and also when it has no memory for them; false for
 * the second. */
bool sgi_sqlite_column_bytes(sqlite3_stmt *statement, int column, const char **bytes,
                             size_t *len);
/* The same for a column of that very size. */
bool sgi_sqlite_copy_column(sqlite3_stmt *statement, int column, uint8_t *to,
                            size_t size);
/* A value could not be had: no memory, or not what was stored. */
segue_status sgi_sqlite_unreadable(const sgi_sqlite_store *store);

/* Shows the row of a bound FIND statement to fn; SEGUE_E_NOT_FOUND when it gives none. */
segue_status sgi_sqlite_show(sgi_sqlite_store *store, sgi_sqlite_statement which,
                             segue_store_record_fn fn, void *user, bool *stop);
segue_status sgi_sqlite_find(void *self, const char *task_id,
                             const uint8_t *idempotency_key, segue_store_record_fn fn,
                             void *user);
segue_status sgi_sqlite_read(void *self, const uint8_t *id, uint64_t after,
                             segue_store_entry_fn fn, void *user);
segue_status sgi_sqlite_list(void *self, const uint8_t *principal, int64_t created_ms,
                             const char *task_id, segue_store_record_fn fn, void *user);

/* Removes an operation: its row at once, its log as far as one step goes. */
int sgi_sqlite_remove(sgi_sqlite_store *store, int64_t op);
/* Keeps a principal that got one more operation within its bounds. */
segue_status sgi_sqlite_make_room(sgi_sqlite_store *store, const uint8_t *principal,
                                  int64_t newest);
segue_status sgi_sqlite_claim(void *self, segue_store_record_fn fn, void *user);
segue_status sgi_sqlite_purge(void *self, int64_t now_ms, int64_t *next_ms);
void sgi_sqlite_tell_stats(void *self, segue_store_stats *stats);

bool sgi_sqlite_ops_add(sgi_sqlite_store *store, sgi_sqlite_ops *list, int64_t op);
void sgi_sqlite_ops_free(sgi_sqlite_store *store, sgi_sqlite_ops *list);

void sgi_sqlite_watch_init(sgi_sqlite_store *store);
void sgi_sqlite_watch_free(sgi_sqlite_store *store);
/* These operations are ours now: letters to them are news. */
segue_status sgi_sqlite_watch_claimed(sgi_sqlite_store *store,
                                      const sgi_sqlite_ops *claimed);
void sgi_sqlite_set_bell(void *self, void (*ring)(void *user), void *user);
segue_status sgi_sqlite_follow_log(void *self, const uint8_t *id, int32_t on);
segue_status sgi_sqlite_post(void *self, const uint8_t *id, const char *data, size_t len);
segue_status sgi_sqlite_news(void *self, segue_store_news_fn fn, void *user,
                             int64_t *within_ms);
/* Of CLOCK_MONOTONIC. */
int64_t sgi_sqlite_now_ms(void);

#endif
