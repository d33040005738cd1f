/* The SQL statements of the store, and how they are run. Statements are prepared once and
 * reset after each use, so no read transaction outlives a call. An open read transaction
 * would keep SQLite from reusing the write-ahead log.
 *
 * The store caches the number, the owner and the last seq of operations that were written
 * to (sgi_sqlite_cached_op). A cached operation is valid while no other connection
 * writes. Each begin of a transaction compares SQLite's data version with the version
 * after this store's last commit. When the versions differ, or after a rollback, each
 * cached operation is looked up again before its next use. The byte count of a cached
 * operation stays valid if its last seq is still the same. */
#include "store/sqlite_store.h"

#include <errno.h>

#define RECORD                                                                           \
    "SELECT id, task_id, idempotency_key, principal, ended, created, purge, data, op"    \
    " FROM operation "

static const char *const SQL[SGI_SQLITE_STATEMENTS] = {
    [SGI_SQLITE_BEGIN] = "BEGIN IMMEDIATE",
    [SGI_SQLITE_COMMIT] = "COMMIT",
    [SGI_SQLITE_ROLLBACK] = "ROLLBACK",
    [SGI_SQLITE_CREATE] =
        "INSERT INTO operation (id, task_id, idempotency_key, principal, owner, ended,"
        " created, purge, data, bytes)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    [SGI_SQLITE_APPEND] = "INSERT INTO log (key, segment, event, kind, at, data)"
                          " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [SGI_SQLITE_END] = "UPDATE operation SET ended = 1, purge = ?2,"
                       " bytes = length(data) + 256 + ?3 WHERE op = ?1",
    [SGI_SQLITE_RELEASE] =
        "UPDATE operation SET owner = 0 WHERE id = ?1 AND ended = 0 AND owner = ?2",
    [SGI_SQLITE_LOOKUP] = "SELECT op, owner, ended FROM operation WHERE id = ?1",
    [SGI_SQLITE_FIRST_KEY] =
        "SELECT key FROM log WHERE key BETWEEN ?1 AND ?2 ORDER BY key LIMIT 1",
    [SGI_SQLITE_LAST_KEY] =
        "SELECT key FROM log WHERE key BETWEEN ?1 AND ?2 ORDER BY key DESC LIMIT 1",
    [SGI_SQLITE_FIND_TASK] = RECORD "WHERE task_id = ?1",
    [SGI_SQLITE_FIND_KEY] = RECORD "WHERE idempotency_key = ?1",
    [SGI_SQLITE_FIND_NUMBER] = RECORD "WHERE op = ?1",
    [SGI_SQLITE_READ] = "SELECT key, segment, event, kind, at, data FROM log"
                        " WHERE key BETWEEN ?1 AND ?2 ORDER BY key",
    [SGI_SQLITE_LIST] = RECORD "WHERE principal = ?1 ORDER BY created DESC, task_id DESC",
    [SGI_SQLITE_LIST_BEHIND] = RECORD "WHERE principal = ?1"
                                      " AND (created, task_id) < (?2, ?3)"
                                      " ORDER BY created DESC, task_id DESC",
    [SGI_SQLITE_SCAN] = RECORD "WHERE op > ?1 ORDER BY op LIMIT ?2",
    [SGI_SQLITE_OTHER_OWNER] =
        "SELECT owner FROM operation WHERE ended = 0 AND owner > ?1"
        " ORDER BY owner LIMIT 1",
    [SGI_SQLITE_ORPHANS] =
        "SELECT op FROM operation WHERE ended = 0 AND owner = ?1 LIMIT ?2",
    [SGI_SQLITE_SET_OWNER] = "UPDATE operation SET owner = ?2 WHERE op = ?1",
    [SGI_SQLITE_DUE] = "SELECT purge, op FROM operation WHERE purge < 9223372036854775807"
                       " ORDER BY purge LIMIT 1",
    [SGI_SQLITE_REMOVE] = "DELETE FROM operation WHERE op = ?1",
    [SGI_SQLITE_REMOVE_LOG] = "DELETE FROM log WHERE key BETWEEN ?1 AND ?2",
    [SGI_SQLITE_DROP] = "DELETE FROM log WHERE key BETWEEN ?1 AND ?2 AND kind = ?3",
    [SGI_SQLITE_LEAVE] = "INSERT INTO garbage (op) VALUES (?1)",
    [SGI_SQLITE_LEFT_OVER] = "SELECT op FROM garbage LIMIT 1",
    [SGI_SQLITE_LOG_BYTES] = "SELECT coalesce(sum(length(data) + 32), 0) FROM log"
                             " WHERE key BETWEEN ?1 AND ?2",
    [SGI_SQLITE_PRINCIPAL] =
        "SELECT operations, bytes FROM principal WHERE principal = ?1",
    [SGI_SQLITE_OLDEST_ENDED] = "SELECT op FROM operation WHERE principal = ?1"
                                " AND ended = 1 AND op <> ?2 ORDER BY op LIMIT 1",
    [SGI_SQLITE_DATA_VERSION] = "PRAGMA data_version",
    [SGI_SQLITE_STATE] =
        "SELECT ended, owner, coalesce((SELECT key FROM log WHERE key BETWEEN ?2 AND ?3"
        " ORDER BY key DESC LIMIT 1), 0) FROM operation WHERE op = ?1",
    [SGI_SQLITE_POST] = "INSERT INTO letter (op, data) VALUES (?1, ?2)",
    [SGI_SQLITE_COMMANDS] = "SELECT 1 FROM letter LIMIT 1",
    [SGI_SQLITE_COMMANDS_BEHIND] =
        "SELECT number, id, owner, letter.data FROM letter"
        " JOIN operation ON operation.op = letter.op WHERE number > ?1 ORDER BY number",
    [SGI_SQLITE_COMMANDS_OF] =
        "SELECT number, id, owner, letter.data FROM letter"
        " JOIN operation ON operation.op = letter.op"
        " WHERE letter.op = ?1 AND number > ?2 AND number <= ?3 ORDER BY number",
    [SGI_SQLITE_COMMAND_COUNT] = "SELECT count(*) FROM letter WHERE op = ?1",
    [SGI_SQLITE_TAKE] = "DELETE FROM letter WHERE op = ?1 AND number <= ?2",
    [SGI_SQLITE_OPERATIONS] = "SELECT coalesce(sum(operations), 0) FROM principal",
    [SGI_SQLITE_PAGES] = "PRAGMA page_count",
    [SGI_SQLITE_LEFT_NOTHING] = "DELETE FROM garbage WHERE op = ?1",
};

int sgi_sqlite_prepare(sgi_sqlite_store *store)
{
    for (size_t i = 0; i < SGI_SQLITE_STATEMENTS; i++) {
        int code =
            sqlite3_prepare_v3(store->file.db, SQL[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &store->statements[i], NULL);
        if (code)
            return code;
    }
    return SQLITE_OK;
}

/* Runs sqlite3_step and stores errno in store->error when the step fails.
 * sqlite3_system_errno cannot be used: a failed commit does not set it (seen with SQLite
 * 3.40), so its value can belong to an earlier call. */
int sgi_sqlite_step(sgi_sqlite_store *store, sqlite3_stmt *statement)
{
    errno = 0;
    int code = sqlite3_step(statement);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        store->error = errno;
    return code;
}

int sgi_sqlite_run(sgi_sqlite_store *store, sgi_sqlite_statement which)
{
    sqlite3_stmt *statement = store->statements[which];
    int code = sgi_sqlite_step(store, statement);
    sqlite3_reset(statement);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

int sgi_sqlite_run_with(sgi_sqlite_store *store, sgi_sqlite_statement which, int64_t a)
{
    sqlite3_bind_int64(store->statements[which], 1, a);
    return sgi_sqlite_run(store, which);
}

int sgi_sqlite_run_with_two(sgi_sqlite_store *store, sgi_sqlite_statement which,
                            int64_t a, int64_t b)
{
    sqlite3_bind_int64(store->statements[which], 2, b);
    return sgi_sqlite_run_with(store, which, a);
}

int sgi_sqlite_query(sgi_sqlite_store *store, sgi_sqlite_statement which, int64_t *value)
{
    sqlite3_stmt *statement = store->statements[which];
    int code = sgi_sqlite_step(store, statement);
    if (code == SQLITE_ROW)
        *value = sqlite3_column_int64(statement, 0);
    sqlite3_reset(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

void sgi_sqlite_bind_range(sgi_sqlite_store *store, sgi_sqlite_statement which,
                           int64_t op)
{
    sqlite3_bind_int64(store->statements[which], 1, sgi_sqlite_key(op, 1));
    sqlite3_bind_int64(store->statements[which], 2,
                       sgi_sqlite_key(op, SGI_SQLITE_SEQ_MAX));
}

/* ---- transactions ---- */

void sgi_sqlite_invalidate_cached_ops(sgi_sqlite_store *store)
{
    store->epoch++;
}

static unsigned data_version(sgi_sqlite_store *store)
{
    unsigned version = 0;
    sqlite3_file_control(store->file.db, "main", SQLITE_FCNTL_DATA_VERSION, &version);
    return version;
}

segue_status sgi_sqlite_begin_transaction(sgi_sqlite_store *store)
{
    sgi_sqlite_turn_begin(&store->file);
    int code = sgi_sqlite_run(store, SGI_SQLITE_BEGIN);
    sgi_sqlite_turn_end(&store->file);
    if ((code & 0xff) == SQLITE_BUSY)
        return SEGUE_E_TIMEOUT;
    if (code)
        return sgi_sqlite_status_of(store, code);
    if (data_version(store) != store->version)
        sgi_sqlite_invalidate_cached_ops(store);
    return SEGUE_OK;
}

segue_status sgi_sqlite_end_transaction(sgi_sqlite_store *store, segue_status status)
{
    if (!status) {
        int code = sgi_sqlite_run(store, SGI_SQLITE_COMMIT);
        status = sgi_sqlite_status_of(store, code);
    }
    if (!status) {
        store->version = data_version(store);
        return SEGUE_OK;
    }
    sgi_sqlite_invalidate_cached_ops(store);
    /* after some errors SQLite has rolled the transaction back by itself */
    if (!sqlite3_get_autocommit(store->file.db))
        sgi_sqlite_run(store, SGI_SQLITE_ROLLBACK);
    /* The disk is full, but the contents of the write-ahead log may fit into pages that
     * the database already has. After this checkpoint SQLite writes the log from its
     * beginning again, which frees space. */
    if (status == SEGUE_E_STORE_FULL)
        sqlite3_wal_checkpoint_v2(store->file.db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL,
                                  NULL);
    return status;
}
