/* What the files of the SQLite store share: its object, its statements, its transactions.
 * sqlite.c reads and writes, sqlite_upkeep.c claims and purges, sqlite_statement.c has
 * the SQL, sqlite_file.c opens the file. */
#ifndef SGI_SQLITE_STORE_H
#define SGI_SQLITE_STORE_H

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
    SGI_SQLITE_STATEMENTS
} sgi_sqlite_statement;

#define SGI_SQLITE_SLOTS 1024

typedef struct sgi_sqlite_slot {
    uint8_t id[SEGUE_STORE_ID_SIZE];
    int64_t op; /* 0 = empty */
    int64_t last_seq;
} sgi_sqlite_slot;

typedef struct sgi_sqlite_store {
    sgi_mem mem;
    sgi_sqlite_file file;
    sqlite3_stmt *statements[SGI_SQLITE_STATEMENTS];
    unsigned version; /* of the data after our last transaction */
    int error;        /* errno after the last step that failed */
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
/* Empties the slots. */
void sgi_sqlite_forget(sgi_sqlite_store *store);

/* ---- between the files ---- */

/* Shows the row of a bound FIND statement to fn; SEGUE_E_NOT_FOUND when it gives none. */
segue_status sgi_sqlite_show(sgi_sqlite_store *store, sgi_sqlite_statement which,
                             segue_store_record_fn fn, void *user, bool *stop);
/* Removes an operation: its row at once, its log as far as one step goes. */
int sgi_sqlite_remove(sgi_sqlite_store *store, int64_t op);
segue_status sgi_sqlite_claim(void *self, segue_store_record_fn fn, void *user);
segue_status sgi_sqlite_purge(void *self, int64_t now_ms, int64_t *next_ms);

#endif
