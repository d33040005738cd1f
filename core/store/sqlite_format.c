/* What is in the SQLite file of a store, and since when.
 *
 * Format 1: operations and their logs. Format 2 adds what several processes on one file
 * need, letters to the owner of an operation, and what keeps a principal within bounds:
 * how many operations it has, and how many bytes. Triggers keep both right, whatever
 * statement it was. `bytes` of an operation counts its own data from the start and its
 * log from its end on: a sum kept with each append would be two more pages in every
 * commit.
 *
 * A new file takes every step from format 0 on, an older one those it lacks, in one
 * transaction: whoever is killed in it, or finds the disk full, leaves the file as it
 * was. A library of format 1 refuses what has been brought to format 2, and says so; one
 * that has the file open meanwhile goes on, since all that it writes is still true.
 *
 * Checking reads only: application_id and user_version (our format), and both ends of
 * every tree, which finds a missing table and a ruined root in the time of a few page
 * reads (a full integrity check would read the whole file). */
#include "store/sqlite_open.h"

#include <stdio.h>

#define APPLICATION_ID 0x53656775
#define FORMAT 2

/* AUTOINCREMENT: the number of a deleted operation is not given out again, so log rows
 * that are still to be removed cannot become somebody else's. */
static const char STEP_1[] =
    "CREATE TABLE owners (last INTEGER NOT NULL);"
    "INSERT INTO owners VALUES (0);"
    "CREATE TABLE operation ("
    " op INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id BLOB NOT NULL UNIQUE,"
    " task_id TEXT NOT NULL UNIQUE,"
    " idempotency_key BLOB,"
    " principal BLOB NOT NULL,"
    " owner INTEGER NOT NULL,"
    " ended INTEGER NOT NULL,"
    " created INTEGER NOT NULL,"
    " purge INTEGER NOT NULL,"
    " data BLOB NOT NULL);"
    "CREATE UNIQUE INDEX operation_key ON operation (idempotency_key)"
    " WHERE idempotency_key IS NOT NULL;"
    "CREATE INDEX operation_listed ON operation (principal, created, task_id);"
    "CREATE INDEX operation_open ON operation (owner) WHERE ended = 0;"
    "CREATE INDEX operation_purge ON operation (purge) WHERE purge < 9223372036854775807;"
    "CREATE TABLE log ("
    " key INTEGER PRIMARY KEY,"
    " segment INTEGER NOT NULL,"
    " event INTEGER NOT NULL,"
    " kind INTEGER NOT NULL,"
    " at INTEGER NOT NULL,"
    " data BLOB NOT NULL);"
    "CREATE TABLE garbage (op INTEGER PRIMARY KEY);"
    "PRAGMA application_id = 1399154549;";

/* Numbers of sqlite_file.h as the SQL has them. */
_Static_assert(SGI_SQLITE_SEQ_BITS == 26, "a log key is op << 26 | seq");
_Static_assert(SGI_SQLITE_RECORD_COST == 256 && SGI_SQLITE_ENTRY_COST == 32, "costs");
_Static_assert(APPLICATION_ID == 1399154549, "set by step 1");

static const char STEP_2[] =
    "ALTER TABLE operation ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;"
    "UPDATE operation SET bytes = length(data) + 256 + CASE ended WHEN 0 THEN 0 ELSE"
    " (SELECT coalesce(sum(length(log.data) + 32), 0) FROM log"
    "  WHERE key BETWEEN (op << 26) AND (op << 26) + 67108863) END;"
    "CREATE INDEX operation_ended ON operation (principal) WHERE ended = 1;"
    "CREATE TABLE principal ("
    " principal BLOB PRIMARY KEY,"
    " operations INTEGER NOT NULL,"
    " bytes INTEGER NOT NULL) WITHOUT ROWID;"
    "INSERT INTO principal SELECT principal, count(*), sum(bytes) FROM operation"
    " GROUP BY principal;"
    "CREATE TABLE letter ("
    " number INTEGER PRIMARY KEY AUTOINCREMENT,"
    " op INTEGER NOT NULL,"
    " data BLOB NOT NULL);"
    "CREATE INDEX letter_op ON letter (op);"
    "CREATE TRIGGER operation_added AFTER INSERT ON operation BEGIN"
    " INSERT INTO principal VALUES (new.principal, 1, new.bytes)"
    " ON CONFLICT (principal) DO UPDATE SET operations = operations + 1,"
    " bytes = bytes + excluded.bytes; END;"
    "CREATE TRIGGER operation_ends AFTER UPDATE OF ended ON operation BEGIN"
    " UPDATE principal SET bytes = bytes + new.bytes - old.bytes"
    " WHERE principal = new.principal;"
    " DELETE FROM letter WHERE op = new.op; END;"
    "CREATE TRIGGER operation_goes AFTER DELETE ON operation BEGIN"
    " UPDATE principal SET operations = operations - 1, bytes = bytes - old.bytes"
    " WHERE principal = old.principal;"
    " DELETE FROM principal WHERE principal = old.principal AND operations <= 0;"
    " DELETE FROM letter WHERE op = old.op; END;";

static const char *const STEPS[FORMAT] = {STEP_1, STEP_2};

typedef struct tree {
    int since; /* format */
    const char *select;
} tree;

/* Each tree once, and each column once. */
static const tree TREES[] = {
    {1, "last FROM owners ORDER BY rowid"},
    {1, "op, id, task_id, idempotency_key, principal, owner, ended, created, purge, data"
        " FROM operation ORDER BY op"},
    {1, "1 FROM operation ORDER BY id"},
    {1, "1 FROM operation ORDER BY task_id"},
    {1, "1 FROM operation INDEXED BY operation_key WHERE idempotency_key IS NOT NULL"
        " ORDER BY idempotency_key"},
    {1, "1 FROM operation INDEXED BY operation_listed WHERE principal >= x''"
        " ORDER BY principal"},
    {1, "1 FROM operation INDEXED BY operation_open WHERE ended = 0 ORDER BY owner"},
    {1, "1 FROM operation INDEXED BY operation_purge WHERE purge < 9223372036854775807"
        " ORDER BY purge"},
    {1, "key, segment, event, kind, at, data FROM log ORDER BY key"},
    {1, "op FROM garbage ORDER BY op"},
    {2, "bytes FROM operation ORDER BY op"},
    {2, "1 FROM operation INDEXED BY operation_ended WHERE ended = 1 ORDER BY principal"},
    {2, "principal, operations, bytes FROM principal ORDER BY principal"},
    {2, "number, op, data FROM letter ORDER BY number"},
    {2, "1 FROM letter INDEXED BY letter_op ORDER BY op"},
};

static segue_status check_trees(sgi_sqlite_opening *o)
{
    for (size_t i = 0; i < sizeof TREES / sizeof *TREES; i++) {
        if (TREES[i].since > o->format)
            continue;
        for (int end = 0; end < 2; end++) {
            char sql[200];
            snprintf(sql, sizeof sql, "SELECT %s%s LIMIT 1", TREES[i].select,
                     end ? " DESC" : "");
            int code = sgi_sqlite_query_int(o->file->db, sql, NULL);
            if (code == SQLITE_ERROR) /* a table, index or column is missing */
                return sgi_sqlite_fail(o, SEGUE_E_STORE_CORRUPT, "damaged: %s",
                                       sqlite3_errmsg(o->file->db));
            if (code)
                return sgi_sqlite_fail_code(o, code);
        }
    }
    return SEGUE_OK;
}

/* Inside a transaction, so that nobody creates between two of the questions. */
static segue_status look_at_format(sgi_sqlite_opening *o)
{
    sqlite3 *db = o->file->db;
    int64_t objects = 0, application = 0, format = 0, last = -1;
    int code = sgi_sqlite_query_int(db, "SELECT count(*) FROM sqlite_master", &objects);
    if (!code)
        code = sgi_sqlite_query_int(db, "PRAGMA application_id", &application);
    if (!code)
        code = sgi_sqlite_query_int(db, "PRAGMA user_version", &format);
    if (code)
        return sgi_sqlite_fail_code(o, code);
    o->format = 0;
    if (!objects && !application && !format)
        return SEGUE_OK;
    if (application != APPLICATION_ID)
        return sgi_sqlite_fail(o, SEGUE_E_STORE_CORRUPT,
                               "not a Segue store (a database of another program)");
    if (format > FORMAT)
        return sgi_sqlite_fail(
            o, SEGUE_E_STORE_CORRUPT,
            "written by a newer version (format %lld, this one reads %d)",
            (long long)format, FORMAT);
    if (format < 1)
        return sgi_sqlite_fail(o, SEGUE_E_STORE_CORRUPT, "damaged: format %lld",
                               (long long)format);
    o->format = format;
    segue_status status = check_trees(o);
    if (status)
        return status;
    code = sgi_sqlite_query_int(db, "SELECT last FROM owners", &last);
    if (code)
        return sgi_sqlite_fail_code(o, code);
    return last >= 0
               ? SEGUE_OK
               : sgi_sqlite_fail(o, SEGUE_E_STORE_CORRUPT, "damaged: no owner counter");
}

static segue_status take_steps(sgi_sqlite_opening *o)
{
    int code = SQLITE_OK;
    char sql[64];
    for (int64_t i = o->format; i < FORMAT && !code; i++)
        code = sgi_sqlite_exec(o->file->db, STEPS[i]);
    snprintf(sql, sizeof sql, "PRAGMA user_version = %d", FORMAT);
    if (!code)
        code = sgi_sqlite_exec(o->file->db, sql);
    return code ? sgi_sqlite_fail_code(o, code) : SEGUE_OK;
}

static segue_status in_transaction(sgi_sqlite_opening *o, bool write)
{
    int code = sgi_sqlite_exec(o->file->db, write ? "BEGIN IMMEDIATE" : "BEGIN");
    if (code)
        return sgi_sqlite_fail_code(o, code);
    segue_status status = look_at_format(o);
    if (!status && write)
        status = take_steps(o);
    if (!status) {
        code = sgi_sqlite_exec(o->file->db, "COMMIT");
        status = code ? sgi_sqlite_fail_code(o, code) : SEGUE_OK;
    }
    if (!sqlite3_get_autocommit(o->file->db))
        sgi_sqlite_exec(o->file->db, "ROLLBACK");
    return status;
}

segue_status sgi_sqlite_check_format(sgi_sqlite_opening *o)
{
    return in_transaction(o, false);
}

segue_status sgi_sqlite_upgrade(sgi_sqlite_opening *o)
{
    return o->format == FORMAT ? SEGUE_OK : in_transaction(o, true);
}
