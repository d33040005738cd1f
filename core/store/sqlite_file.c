/* Opening the SQLite file of a store. What is opened here sqlite.c closes through
 * sgi_sqlite_file_close; on failure it is closed here.
 *
 *     open -> check -> (new: create) -> WAL -> number -> in use
 *               \-> not ours, newer, damaged: closed again, not a byte changed
 *
 * Checking reads only: application_id and user_version (our format), and both ends of
 * every tree, which finds a missing table and a ruined root in the time of a few page
 * reads (a full integrity check would read the whole file). The checkpoint that SQLite
 * makes at close is off until the file has passed, since it too would write.
 *
 * Owners. Every instance that opens the file takes a number that was never used before (a
 * counter in the file) and locks the byte of that number in `<path>-owners`. Operations
 * carry the number of the instance that runs them. The kernel drops the lock when the
 * instance goes, however it goes, so a number whose byte is free belongs to nobody any
 * more and never will again: its operations may be claimed, without timeouts and without
 * a way to take a live one's. The locks are those of an open file description
 * (F_OFD_SETLK): two instances in one process are two owners, and closing some other
 * descriptor of the file does not drop them. A byte that is locked although its number is
 * new belongs to the users of a file that was here before: the next number is taken.
 * Number 0 is nobody's. (A child forked without exec shares the lock and keeps it while
 * it lives; exec drops it.)
 *
 * No other descriptor of the database itself may be opened here, not even to look at it:
 * closing it would drop the POSIX locks of every connection this process has to it.
 *
 * Settings. synchronous=NORMAL syncs at checkpoints only, FULL at each commit. A
 * checkpoint after 1000 pages (4 MiB): more gains nothing on one stream (measured to
 * 8000) and a sixth at best on a thousand (4000), and the commit that does it waits
 * longer. journal_size_limit cuts the log back that grew while a long read held the
 * checkpoint up. */
#include "store/sqlite_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define APPLICATION_ID 0x53656775
#define FORMAT 1
#define BUSY_TIMEOUT_MS 5000
#define RETRY_MS 5

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

/* AUTOINCREMENT: the number of a deleted operation is not given out again, so log rows
 * that are still to be removed cannot become somebody else's. */
static const char SCHEMA[] =
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
    "PRAGMA application_id = " TEXT(APPLICATION_ID) ";"
                                                    "PRAGMA user_version = " TEXT(
                                                        FORMAT) ";";

/* Each tree once, and each column once. */
static const char *const TREES[] = {
    "last FROM owners ORDER BY rowid",
    "op, id, task_id, idempotency_key, principal, owner, ended, created, purge, data"
    " FROM operation ORDER BY op",
    "1 FROM operation ORDER BY id",
    "1 FROM operation ORDER BY task_id",
    "1 FROM operation INDEXED BY operation_key WHERE idempotency_key IS NOT NULL"
    " ORDER BY idempotency_key",
    "1 FROM operation INDEXED BY operation_listed WHERE principal >= x''"
    " ORDER BY principal",
    "1 FROM operation INDEXED BY operation_open WHERE ended = 0 ORDER BY owner",
    "1 FROM operation INDEXED BY operation_purge WHERE purge < 9223372036854775807"
    " ORDER BY purge",
    "key, segment, event, kind, at, data FROM log ORDER BY key",
    "op FROM garbage ORDER BY op",
};

typedef struct opening {
    sgi_sqlite_file *file;
    const char *path;
    int64_t busy_ms;
    char *message;
    size_t size;
} opening;

segue_status sgi_sqlite_status(int code, int error)
{
    switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return SEGUE_OK;
    case SQLITE_NOMEM:
        return SEGUE_E_NOMEM;
    case SQLITE_FULL:
        return SEGUE_E_STORE_FULL;
    case SQLITE_TOOBIG:
        return SEGUE_E_TOO_LARGE;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return SEGUE_E_STORE_CORRUPT;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        break;
    default:
        return SEGUE_E_STORE;
    }
    if (code == SQLITE_IOERR_NOMEM)
        return SEGUE_E_NOMEM;
    /* SQLite knows ENOSPC in a plain write only; quotas, size limits and the files it
     * grows by other means come as I/O errors. */
    return error == ENOSPC || error == EDQUOT || error == EFBIG ? SEGUE_E_STORE_FULL
                                                                : SEGUE_E_STORE;
}

/* ---- failing with a message ---- */

__attribute__((format(printf, 3, 4))) static segue_status
fail(opening *o, segue_status status, const char *format, ...)
{
    if (!o->message || !o->size)
        return status;
    int n = snprintf(o->message, o->size, "%s: ", o->path);
    if (n < 0 || (size_t)n >= o->size)
        return status;
    va_list args;
    va_start(args, format);
    vsnprintf(o->message + n, o->size - (size_t)n, format, args);
    va_end(args);
    return status;
}

/* The last call on the connection failed with code. */
static segue_status fail_sqlite(opening *o, int code)
{
    sqlite3 *db = o->file->db;
    segue_status status = sgi_sqlite_status(code, db ? sqlite3_system_errno(db) : 0);
    if ((code & 0xff) == SQLITE_NOTADB)
        return fail(o, status, "not a Segue store (not a database)");
    if (status == SEGUE_E_STORE_CORRUPT)
        return fail(o, status, "damaged: %s", sqlite3_errmsg(db));
    if ((code & 0xff) == SQLITE_BUSY)
        return fail(o, status, "another process holds it locked");
    return fail(o, status, "%s", db ? sqlite3_errmsg(db) : sqlite3_errstr(code));
}

/* ---- checking ---- */

/* Runs one statement; *value receives the first column of its first row. */
static int query_int(sqlite3 *db, const char *sql, int64_t *value)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (code)
        return code;
    code = sqlite3_step(statement);
    if (code == SQLITE_ROW && value)
        *value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

static int run_sql(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static segue_status check_trees(opening *o)
{
    for (size_t i = 0; i < sizeof TREES / sizeof *TREES; i++) {
        for (int end = 0; end < 2; end++) {
            char sql[200];
            snprintf(sql, sizeof sql, "SELECT %s%s LIMIT 1", TREES[i],
                     end ? " DESC" : "");
            int code = query_int(o->file->db, sql, NULL);
            if (code == SQLITE_ERROR) /* a table, index or column is missing */
                return fail(o, SEGUE_E_STORE_CORRUPT, "damaged: %s",
                            sqlite3_errmsg(o->file->db));
            if (code)
                return fail_sqlite(o, code);
        }
    }
    return SEGUE_OK;
}

/* Inside a transaction, so that nobody creates between two of the questions. */
static segue_status check_format(opening *o, bool *fresh)
{
    sqlite3 *db = o->file->db;
    int64_t objects = 0, application = 0, format = 0, last = -1;
    int code = query_int(db, "SELECT count(*) FROM sqlite_master", &objects);
    if (!code)
        code = query_int(db, "PRAGMA application_id", &application);
    if (!code)
        code = query_int(db, "PRAGMA user_version", &format);
    if (code)
        return fail_sqlite(o, code);
    *fresh = !objects && !application && !format;
    if (*fresh)
        return SEGUE_OK;
    if (application != APPLICATION_ID)
        return fail(o, SEGUE_E_STORE_CORRUPT,
                    "not a Segue store (a database of another program)");
    if (format > FORMAT)
        return fail(o, SEGUE_E_STORE_CORRUPT,
                    "written by a newer version (format %lld, this one reads %d)",
                    (long long)format, FORMAT);
    if (format != FORMAT)
        return fail(o, SEGUE_E_STORE_CORRUPT, "damaged: format %lld", (long long)format);
    segue_status status = check_trees(o);
    if (status)
        return status;
    code = query_int(db, "SELECT last FROM owners", &last);
    if (code)
        return fail_sqlite(o, code);
    return last >= 0 ? SEGUE_OK
                     : fail(o, SEGUE_E_STORE_CORRUPT, "damaged: no owner counter");
}

static segue_status check_file(opening *o, bool create, bool *fresh)
{
    int code = run_sql(o->file->db, create ? "BEGIN IMMEDIATE" : "BEGIN");
    if (code)
        return fail_sqlite(o, code);
    segue_status status = check_format(o, fresh);
    if (!status && *fresh && create) {
        code = run_sql(o->file->db, SCHEMA);
        status = code ? fail_sqlite(o, code) : SEGUE_OK;
    }
    if (!status) {
        code = run_sql(o->file->db, "COMMIT");
        status = code ? fail_sqlite(o, code) : SEGUE_OK;
    }
    if (!sqlite3_get_autocommit(o->file->db))
        run_sql(o->file->db, "ROLLBACK");
    return status;
}

/* ---- opening ---- */

/* The change to WAL needs the file alone and does not wait for that by itself. */
static segue_status set_wal(opening *o)
{
    for (int64_t waited = 0;; waited += RETRY_MS) {
        sqlite3_stmt *statement;
        int code = sqlite3_prepare_v2(o->file->db, "PRAGMA journal_mode = WAL", -1,
                                      &statement, NULL);
        if (code)
            return fail_sqlite(o, code);
        code = sqlite3_step(statement);
        const char *mode =
            code == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : NULL;
        bool ok = mode && !strcmp(mode, "wal");
        sqlite3_finalize(statement);
        if (ok)
            return SEGUE_OK;
        if (code == SQLITE_ROW)
            return fail(o, SEGUE_E_STORE, "the file system cannot do a write-ahead log");
        if ((code & 0xff) != SQLITE_BUSY || waited >= o->busy_ms)
            return fail_sqlite(o, code);
        sqlite3_sleep(RETRY_MS);
    }
}

/* A file that is new is its owner's alone, as what tasks were given and what they gave is
 * in it: SQLite would let everybody read it, and gives what it puts beside a file the
 * file's permissions. It is made elsewhere and moved here, so that no descriptor of the
 * database is ever closed. Where that cannot be done SQLite makes it. */
static void make_private(const char *path)
{
    struct stat info;
    char made[PATH_MAX];
    int n = snprintf(made, sizeof made, "%s-XXXXXX", path);
    if (!lstat(path, &info) || errno != ENOENT || n < 0 || (size_t)n >= sizeof made)
        return;
    int fd = mkostemp(made, O_CLOEXEC);
    if (fd < 0)
        return;
    close(fd);
    if (renameat2(AT_FDCWD, made, AT_FDCWD, path, RENAME_NOREPLACE) != 0)
        unlink(made);
}

static segue_status connect_file(opening *o)
{
    sgi_sqlite_file *file = o->file;
    make_private(o->path);
    int code = sqlite3_open_v2(o->path, &file->db,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
                                   SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE,
                               NULL);
    if (code)
        return fail_sqlite(o, code);
    sqlite3_extended_result_codes(file->db, 1);
    sqlite3_busy_timeout(file->db, o->busy_ms > INT_MAX ? INT_MAX : (int)o->busy_ms);
    sqlite3_db_config(file->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (sqlite3_db_readonly(file->db, "main") == 1)
        return fail(o, SEGUE_E_STORE, "the file cannot be written");
    code = run_sql(file->db, "PRAGMA trusted_schema = OFF");
    return code ? fail_sqlite(o, code) : SEGUE_OK;
}

static segue_status apply_settings(opening *o, int32_t durability)
{
    int code = run_sql(o->file->db, durability == SEGUE_DURABILITY_FULL
                                        ? "PRAGMA synchronous = FULL"
                                        : "PRAGMA synchronous = NORMAL");
    if (!code)
        code = run_sql(o->file->db, "PRAGMA wal_autocheckpoint = 1000;"
                                    "PRAGMA journal_size_limit = 16777216;"
                                    "PRAGMA cache_size = -8192");
    return code ? fail_sqlite(o, code) : SEGUE_OK;
}

/* ---- owners ---- */

static int lock_byte(int descriptor, int command, int64_t byte, short *type)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};
    int result = fcntl(descriptor, command, &lock);
    *type = lock.l_type;
    return result;
}

bool sgi_sqlite_owner_lives(const sgi_sqlite_file *file, int64_t owner)
{
    short type;
    if (!owner)
        return false;
    if (owner == file->owner || lock_byte(file->owners, F_OFD_GETLK, owner, &type))
        return true;
    return type != F_UNLCK;
}

/* Beside the database as SQLite resolved it, with its permissions: whoever may write one
 * must be able to lock in the other. */
static segue_status open_owners(opening *o)
{
    const char *database = sqlite3_db_filename(o->file->db, "main");
    char path[PATH_MAX];
    struct stat info;
    int n = snprintf(path, sizeof path, "%s-owners", database);
    if (n < 0 || (size_t)n >= sizeof path)
        return fail(o, SEGUE_E_STORE, "the name is too long");
    mode_t mode = stat(database, &info) ? 0600 : info.st_mode & 0666;
    o->file->owners = open(path, O_RDWR | O_CREAT | O_CLOEXEC, mode);
    if (o->file->owners < 0)
        return fail(o, errno == ENOSPC ? SEGUE_E_STORE_FULL : SEGUE_E_STORE,
                    "cannot open %s: %s", path, strerror(errno));
    return SEGUE_OK;
}

static segue_status next_number(opening *o, int64_t *number)
{
    int code = run_sql(o->file->db, "UPDATE owners SET last = last + 1");
    if (!code)
        code = query_int(o->file->db, "SELECT last FROM owners", number);
    return code ? fail_sqlite(o, code) : SEGUE_OK;
}

static segue_status take_number(opening *o)
{
    for (;;) {
        int64_t number = 0;
        short type;
        segue_status status = next_number(o, &number);
        if (status)
            return status;
        if (!lock_byte(o->file->owners, F_OFD_SETLK, number, &type)) {
            o->file->owner = number;
            return SEGUE_OK;
        }
        if (errno != EAGAIN && errno != EACCES)
            return fail(o, SEGUE_E_STORE, "cannot lock: %s", strerror(errno));
    }
}

static segue_status become_owner(opening *o)
{
    segue_status status = open_owners(o);
    if (status)
        return status;
    int code = run_sql(o->file->db, "BEGIN IMMEDIATE");
    if (code)
        return fail_sqlite(o, code);
    status = take_number(o);
    if (!status && (code = run_sql(o->file->db, "COMMIT")))
        status = fail_sqlite(o, code);
    if (!sqlite3_get_autocommit(o->file->db))
        run_sql(o->file->db, "ROLLBACK");
    return status;
}

/* ---- the whole of it ---- */

static segue_status open_checked(opening *o)
{
    bool fresh = false;
    segue_status status = check_file(o, false, &fresh);
    if (status)
        return status;
    sqlite3_db_config(o->file->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    status = set_wal(o);
    return status || !fresh ? status : check_file(o, true, &fresh);
}

/* Whether a write-ahead log with something in it lies beside the file. */
static bool has_wal(sqlite3 *db)
{
    char wal[PATH_MAX];
    struct stat info;
    int n = snprintf(wal, sizeof wal, "%s-wal", sqlite3_db_filename(db, "main"));
    return n > 0 && (size_t)n < sizeof wal && !stat(wal, &info) && info.st_size > 0;
}

segue_status sgi_sqlite_file_open(sgi_sqlite_file *file, const char *path,
                                  const segue_store_options *options, char *message,
                                  size_t size)
{
    opening o = {file, path ? path : "", BUSY_TIMEOUT_MS, message, size};
    int32_t durability = options ? options->durability : SEGUE_DURABILITY_NORMAL;
    *file = (sgi_sqlite_file){.owners = -1};
    if (!path || !*path || !strcmp(path, ":memory:"))
        return fail(&o, SEGUE_E_INVALID, "a file name is needed");
    if (durability < SEGUE_DURABILITY_NORMAL || durability > SEGUE_DURABILITY_FULL ||
        (options && options->busy_timeout_ms < 0))
        return fail(&o, SEGUE_E_INVALID, "unknown durability or negative timeout");
    if (options && options->busy_timeout_ms)
        o.busy_ms = options->busy_timeout_ms;
    segue_status status = connect_file(&o);
    bool wal = !status && has_wal(file->db);
    if (!status)
        status = open_checked(&o);
    if (!status)
        status = apply_settings(&o, durability);
    if (!status)
        status = become_owner(&o);
    if (status) {
        /* Reading a file in WAL mode makes an empty log; a checkpoint of that one writes
         * nothing and takes it away again. */
        if (file->db && !wal)
            sqlite3_db_config(file->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
        sgi_sqlite_file_close(file);
    }
    return status;
}

void sgi_sqlite_file_close(sgi_sqlite_file *file)
{
    /* The database first: while it is open, our operations are ours. */
    sqlite3_close(file->db);
    if (file->owners >= 0)
        close(file->owners);
    *file = (sgi_sqlite_file){.owners = -1};
}
