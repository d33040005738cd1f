/* The format of a store's SQLite file: its tables and their versions.
 *
 * Format 1 has the operations and their logs. Format 2 adds two things: a table of
 * forwarded commands, which several processes on one file need, and the number of
 * operations and of bytes of each principal, which the limits of a principal need.
 * Triggers keep these two numbers right for every statement. The `bytes` of an operation
 * include its own data from the start, and its log only after its end: updating the sum
 * with each append would write two more pages in every commit. Format 3 is one of records
 * and entries (core/docs/upgrades.md). Its only change of the tables keeps libraries of
 * format 2 from becoming owners: such a library may have checked the format just before.
 *
 * A new file gets all steps from format 0 on; an older file gets the steps up to format 2
 * that it lacks. All steps run in one transaction, so the file stays unchanged if a
 * process is killed during the upgrade, or if the disk is full. A library of format 1
 * refuses a file of format 2 with a message. A process of format 1 that has the file open
 * during the upgrade continues, because everything that it writes is still valid.
 *
 * Processes of format 2 cannot read what format 3 has. So an older file gets step 3 when
 * none of them has lived for a time (format.h).
 *
 * The check of a file only reads: application_id, user_version (the format) and both ends
 * of every tree. These few page reads find a missing table and a damaged root; a full
 * integrity check would read the whole file. */
#include "store/sqlite_open.h"

#include <stdio.h>

#define APPLICATION_ID 0x53656775

/* The SQL of format 1. AUTOINCREMENT ensures that the number of a deleted operation is
 * not used again. Therefore log rows that wait for their removal never belong to another
 * operation. */
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

/* The SQL text contains these constants of sqlite_file.h as numbers. */
_Static_assert(SGI_SQLITE_SEQ_BITS == 26, "a log key is op << 26 | seq");
_Static_assert(SGI_SQLITE_RECORD_COST == 256 && SGI_SQLITE_ENTRY_COST == 32,
               "SQL of the upgrades adds them");
_Static_assert(APPLICATION_ID == 1399154549, "STEP_1 writes this number");

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

/* An owner of format 3 sets `reads` while it takes its number. */
static const char STEP_3[] =
    "ALTER TABLE owners ADD COLUMN reads INTEGER NOT NULL DEFAULT 0;"
    "CREATE TRIGGER owner_reads BEFORE UPDATE OF last ON owners WHEN old.reads < 3 BEGIN"
    " SELECT RAISE(ABORT, 'written by a newer version of Segue (format 3)'); END;";

static const char *const STEPS[SGI_SQLITE_FORMAT] = {STEP_1, STEP_2, STEP_3};

typedef struct tree {
    int since; /* the first format that has the tree */
    const char *select;
} tree;

/* One query for every tree (table or index). Together the queries read every column
 * once. */
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
    {3, "reads FROM owners ORDER BY rowid"},
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
            /* SQLite reports a missing table, index or column as SQLITE_ERROR */
            if (code == SQLITE_ERROR)
                return sgi_sqlite_fail_opening(o, SEGUE_E_STORE_CORRUPT, "damaged: %s",
                                               sqlite3_errmsg(o->file->db));
            if (code)
                return sgi_sqlite_fail_opening_by_code(o, code);
        }
    }
    return SEGUE_OK;
}

segue_status sgi_sqlite_read_format(sgi_sqlite_opening *o)
{
    int code = sgi_sqlite_query_int(o->file->db, "PRAGMA user_version", &o->format);
    if (code)
        return sgi_sqlite_fail_opening_by_code(o, code);
    if (o->format > SGI_SQLITE_FORMAT)
        return sgi_sqlite_fail_opening(
            o, SEGUE_E_STORE_CORRUPT,
            "written by a newer version of Segue (format %lld, this "
            "version reads up to %d)",
            (long long)o->format, SGI_SQLITE_FORMAT);
    return SEGUE_OK;
}

/* Reads the format into o->format. Must run inside a transaction, so that no other
 * process creates the tables between two of the queries. */
static segue_status look_at_format(sgi_sqlite_opening *o)
{
    sqlite3 *db = o->file->db;
    int64_t objects = 0, application = 0, last = -1;
    int code = sgi_sqlite_query_int(db, "SELECT count(*) FROM sqlite_master", &objects);
    if (!code)
        code = sgi_sqlite_query_int(db, "PRAGMA application_id", &application);
    if (!code)
        code = sgi_sqlite_query_int(db, "PRAGMA user_version", &o->format);
    if (code)
        return sgi_sqlite_fail_opening_by_code(o, code);
    if (!objects && !application && !o->format)
        return SEGUE_OK;
    if (application != APPLICATION_ID)
        return sgi_sqlite_fail_opening(
            o, SEGUE_E_STORE_CORRUPT,
            "not a Segue store (the database belongs to another program)");
    segue_status status = sgi_sqlite_read_format(o);
    if (status)
        return status;
    if (o->format < 1)
        return sgi_sqlite_fail_opening(o, SEGUE_E_STORE_CORRUPT, "damaged: format %lld",
                                       (long long)o->format);
    status = check_trees(o);
    if (status)
        return status;
    code = sgi_sqlite_query_int(db, "SELECT last FROM owners", &last);
    if (code)
        return sgi_sqlite_fail_opening_by_code(o, code);
    return last >= 0 ? SEGUE_OK
                     : sgi_sqlite_fail_opening(o, SEGUE_E_STORE_CORRUPT,
                                               "damaged: the owner counter is missing");
}

/* Takes the steps from one format to another. Returns SQLite's code. */
static int take_steps(sqlite3 *db, int64_t from, int64_t to)
{
    int code = SQLITE_OK;
    char sql[64];
    for (int64_t i = from; i < to && !code; i++)
        code = sgi_sqlite_exec(db, STEPS[i]);
    snprintf(sql, sizeof sql, "PRAGMA user_version = %d", (int)to);
    return code ? code : sgi_sqlite_exec(db, sql);
}

static segue_status take_steps_at_once(sgi_sqlite_opening *o)
{
    int64_t to = o->format ? SGI_SQLITE_FORMAT_AT_ONCE : SGI_SQLITE_FORMAT;
    if (o->format >= to)
        return SEGUE_OK;
    int code = take_steps(o->file->db, o->format, to);
    o->format = to;
    return code ? sgi_sqlite_fail_opening_by_code(o, code) : SEGUE_OK;
}

static segue_status in_transaction(sgi_sqlite_opening *o, bool write)
{
    int code = sgi_sqlite_exec(o->file->db, write ? "BEGIN IMMEDIATE" : "BEGIN");
    if (code)
        return sgi_sqlite_fail_opening_by_code(o, code);
    segue_status status = look_at_format(o);
    if (!status && write)
        status = take_steps_at_once(o);
    if (!status) {
        code = sgi_sqlite_exec(o->file->db, "COMMIT");
        status = code ? sgi_sqlite_fail_opening_by_code(o, code) : SEGUE_OK;
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
    return o->format >= SGI_SQLITE_FORMAT_AT_ONCE ? SEGUE_OK : in_transaction(o, true);
}

/* ---- the format that older instances cannot read ---- */

/* Gives the file the newest format, unless an older instance has come meanwhile. An
 * instance that comes later is refused, because an instance takes its number and its lock
 * in one transaction. Returns SQLite's code. */
static int take_newest(sgi_sqlite_file *file)
{
    int64_t format = 0;
    int code = sgi_sqlite_exec(file->db, "BEGIN IMMEDIATE");
    if (!code)
        code = sgi_sqlite_query_int(file->db, "PRAGMA user_version", &format);
    if (!code && format < SGI_SQLITE_FORMAT &&
        !sgi_sqlite_older_lives(file, SGI_SQLITE_FORMAT)) {
        code = take_steps(file->db, format, SGI_SQLITE_FORMAT);
        format = SGI_SQLITE_FORMAT;
    }
    if (!code)
        code = sgi_sqlite_exec(file->db, "COMMIT");
    if (!sqlite3_get_autocommit(file->db))
        sgi_sqlite_exec(file->db, "ROLLBACK");
    if (!code)
        atomic_store(&file->format.number, (int)format);
    return code;
}

void sgi_sqlite_look_at_format(sgi_sqlite_file *file, int64_t now_ms)
{
    int64_t format = 0;
    if (atomic_load(&file->format.number) >= SGI_SQLITE_FORMAT ||
        sgi_sqlite_query_int(file->db, "PRAGMA user_version", &format))
        return;
    atomic_store(&file->format.number, (int)format);
    if (format >= SGI_SQLITE_FORMAT ||
        !sgi_store_format_is_due(&file->format,
                                 sgi_sqlite_older_lives(file, SGI_SQLITE_FORMAT), now_ms))
        return;
    if (take_newest(file) || atomic_load(&file->format.number) < SGI_SQLITE_FORMAT)
        sgi_store_format_wait_again(&file->format);
}
