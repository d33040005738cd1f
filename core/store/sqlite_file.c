/* Opens the SQLite file of a store. After a failure this file closes what it has opened;
 * after success sqlite.c closes it with sgi_sqlite_file_close.
 *
 *     open -> check -> WAL -> (new: create, older: upgrade) -> owner number -> in use
 *               \-> foreign, newer, damaged: closed again, not a byte changed
 *
 * The check (sqlite_format.c) only reads. SQLite's checkpoint at close is off until the
 * file has passed the check, because a checkpoint writes.
 *
 * No other descriptor of the database itself may be opened here, not even for reading:
 * closing it would drop the POSIX locks of every connection of this process to the
 * database.
 *
 * Settings, and what they gave when measured (two processors, ext4 on a virtual disk):
 *
 *   journal_mode WAL    readers and the one writer do not wait for each other.
 *   synchronous NORMAL  syncs at checkpoints only: 34,000 commits of one segment a
 *                       second, 260,000 segments in commits of 256.
 *   synchronous FULL    syncs at each commit: 220 of one, 108,000 in commits of 256.
 *                       (EXTRA is for rollback journals; with OFF a power cut would
 *                       damage the file.)
 *   wal_autocheckpoint 1000 (4 MiB): 8000 gains nothing on one stream, 4000 gains at
 *                       most a sixth on a thousand streams. With a larger value, the
 *                       commit that checkpoints waits longer, and NORMAL can lose more
 *                       commits.
 *   journal_size_limit 16 MiB: shrinks a log that grew while a long read delayed the
 *                       checkpoint.
 *   cache_size 8 MiB    holds the inner nodes of the trees of some 100,000 operations.
 *   trusted_schema OFF  a foreign file runs no functions through its schema.
 *   mmap_size 0         not mapped: an I/O error would be a signal, not a status. */
#include "store/sqlite_open.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/limit.h"

#define BUSY_TIMEOUT_MS 5000
#define RETRY_MS 5

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
    /* SQLite reports a full disk only for ENOSPC in a plain write. When a file grows by
     * other means, or reaches a quota or a size limit, SQLite reports an I/O error. */
    return error == ENOSPC || error == EDQUOT || error == EFBIG ? SEGUE_E_STORE_FULL
                                                                : SEGUE_E_STORE;
}

/* ---- failing with a message ---- */

segue_status sgi_sqlite_fail_opening(sgi_sqlite_opening *o, segue_status status,
                                     const char *format, ...)
{
    if (!o->message || !o->size)
        return status;
    int n = snprintf(o->message, o->size, "%s: ", o->path);
    if (n < 0 || (size_t)n >= o->size)
        return status;
    va_list args;
    va_start(args, format);
    sgi_text_vformat(o->message + n, o->size - (size_t)n, format, args);
    va_end(args);
    return status;
}

segue_status sgi_sqlite_fail_opening_by_code(sgi_sqlite_opening *o, int code)
{
    sqlite3 *db = o->file->db;
    segue_status status = sgi_sqlite_status(code, db ? sqlite3_system_errno(db) : 0);
    if ((code & 0xff) == SQLITE_NOTADB)
        return sgi_sqlite_fail_opening(
            o, status, "not a Segue store (the file is not an SQLite database)");
    if (status == SEGUE_E_STORE_CORRUPT)
        return sgi_sqlite_fail_opening(o, status, "damaged: %s", sqlite3_errmsg(db));
    if ((code & 0xff) == SQLITE_BUSY)
        return sgi_sqlite_fail_opening(o, status,
                                       "another process has locked the database");
    return sgi_sqlite_fail_opening(o, status, "%s",
                                   db ? sqlite3_errmsg(db) : sqlite3_errstr(code));
}

/* ---- SQL ---- */

int sgi_sqlite_query_int(sqlite3 *db, const char *sql, int64_t *value)
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

int sgi_sqlite_exec(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

/* ---- opening ---- */

/* Changes the file to WAL mode. *wal becomes true when the file is in WAL mode
 * afterwards. The pragma returns its row before the change is written, so only the end of
 * the statement shows whether the change succeeded. Returns SQLite's code. */
static int change_to_wal(sqlite3 *db, bool *wal)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(db, "PRAGMA journal_mode = WAL", -1, &statement, NULL);
    if (code)
        return code;
    code = sqlite3_step(statement);
    const char *mode =
        code == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : NULL;
    *wal = mode && !strcmp(mode, "wal");
    return sqlite3_finalize(statement);
}

/* Changes the file to WAL mode, which needs exclusive access to the file. SQLite does not
 * wait for exclusive access, so the function repeats the change until busy_ms is over. */
static segue_status set_wal(sgi_sqlite_opening *o)
{
    for (int64_t waited = 0;; waited += RETRY_MS) {
        bool wal = false;
        int code = change_to_wal(o->file->db, &wal);
        if (!code && wal)
            return SEGUE_OK;
        if (!code)
            return sgi_sqlite_fail_opening(
                o, SEGUE_E_STORE,
                "the file system does not support SQLite's write-ahead log");
        if ((code & 0xff) != SQLITE_BUSY || waited >= o->busy_ms)
            return sgi_sqlite_fail_opening_by_code(o, code);
        sqlite3_sleep(RETRY_MS);
    }
}

/* Creates a new file that only its owner can read and write, because the file will
 * contain inputs and results of tasks. SQLite would create a file that everybody can
 * read. (SQLite gives its side files the same permissions as the file.) The file is
 * created under another name and then renamed: this process may have the database open,
 * and closing a descriptor of the database would drop the locks that SQLite holds on it
 * (fcntl(2)). When the function fails, SQLite creates the file. */
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
    /* musl 1.2.5 has no renameat2 */
    if (syscall(SYS_renameat2, AT_FDCWD, made, AT_FDCWD, path, RENAME_NOREPLACE) != 0)
        unlink(made);
}

static segue_status connect_file(sgi_sqlite_opening *o)
{
    sgi_sqlite_file *file = o->file;
    make_private(o->path);
    int code = sqlite3_open_v2(o->path, &file->db,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
                                   SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE,
                               NULL);
    if (code)
        return sgi_sqlite_fail_opening_by_code(o, code);
    sqlite3_extended_result_codes(file->db, 1);
    sqlite3_busy_timeout(file->db, o->busy_ms > INT_MAX ? INT_MAX : (int)o->busy_ms);
    sqlite3_db_config(file->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (sqlite3_db_readonly(file->db, "main") == 1)
        return sgi_sqlite_fail_opening(o, SEGUE_E_STORE, "the file is not writable");
    code = sgi_sqlite_exec(file->db, "PRAGMA trusted_schema = OFF");
    return code ? sgi_sqlite_fail_opening_by_code(o, code) : SEGUE_OK;
}

static segue_status apply_settings(sgi_sqlite_opening *o, int32_t durability)
{
    int code = sgi_sqlite_exec(o->file->db, durability == SEGUE_DURABILITY_FULL
                                                ? "PRAGMA synchronous = FULL"
                                                : "PRAGMA synchronous = NORMAL");
    if (!code)
        code = sgi_sqlite_exec(o->file->db, "PRAGMA wal_autocheckpoint = 1000;"
                                            "PRAGMA journal_size_limit = 16777216;"
                                            "PRAGMA cache_size = -8192");
    return code ? sgi_sqlite_fail_opening_by_code(o, code) : SEGUE_OK;
}

/* ---- the steps of opening ---- */

static segue_status open_checked(sgi_sqlite_opening *o)
{
    segue_status status = sgi_sqlite_check_format(o);
    if (status)
        return status;
    sqlite3_db_config(o->file->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    status = set_wal(o);
    return status ? status : sgi_sqlite_upgrade(o);
}

/* True when a write-ahead log that is not empty lies beside the file. */
static bool has_wal(sqlite3 *db)
{
    char wal[PATH_MAX];
    struct stat info;
    int n = snprintf(wal, sizeof wal, "%s-wal", sqlite3_db_filename(db, "main"));
    return n > 0 && (size_t)n < sizeof wal && !stat(wal, &info) && info.st_size > 0;
}

/* Checks the numbers of the options. Returns false when a number is out of its range;
 * `why` then names the number and its range. */
static bool check_numbers(const segue_store_options *o, char *why, size_t size)
{
    const sgi_range numbers[] = {
        {"durability", o->durability, SEGUE_DURABILITY_NORMAL, SEGUE_DURABILITY_FULL},
        {"busy_timeout_ms", o->busy_timeout_ms, 0, INT64_MAX},
        {"max_principal_operations", o->max_principal_operations, 0, INT64_MAX},
        {"max_principal_bytes", o->max_principal_bytes, 0, INT64_MAX},
    };
    return sgi_ranges_check(numbers, sizeof numbers / sizeof *numbers, why, size);
}

segue_status sgi_sqlite_file_open(sgi_sqlite_file *file, const char *path,
                                  const segue_store_options *options, char *message,
                                  size_t size)
{
    sgi_sqlite_opening o = {.file = file,
                            .path = path ? path : "",
                            .busy_ms = BUSY_TIMEOUT_MS,
                            .message = message,
                            .size = size};
    char why[SGI_RANGE_TOLD];
    int32_t durability = options ? options->durability : SEGUE_DURABILITY_NORMAL;
    *file = (sgi_sqlite_file){.owners = -1};
    if (!path || !*path || !strcmp(path, ":memory:"))
        return sgi_sqlite_fail_opening(&o, SEGUE_E_INVALID,
                                       "the store needs a file name");
    if (options && !check_numbers(options, why, sizeof why))
        return sgi_sqlite_fail_opening(&o, SEGUE_E_INVALID, "%s", why);
    if (options && options->busy_timeout_ms)
        o.busy_ms = options->busy_timeout_ms;
    segue_status status = connect_file(&o);
    bool wal = !status && has_wal(file->db);
    if (!status)
        status = open_checked(&o);
    if (!status)
        status = apply_settings(&o, durability);
    if (!status)
        status = sgi_sqlite_become_owner(&o);
    if (!status)
        sgi_sqlite_turn_init(file, o.busy_ms);
    if (status) {
        /* The refused file must stay as it was. SQLite's checkpoint at close removes
         * the write-ahead log. If the log was missing or empty, the checkpoint only
         * removes the empty log that reading the file has created. If the log had
         * contents, the checkpoint would write them into the file, so it is switched
         * off. */
        if (file->db && !wal)
            sqlite3_db_config(file->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
        sgi_sqlite_file_close(file);
    }
    return status;
}

void sgi_sqlite_file_close(sgi_sqlite_file *file)
{
    /* The database is closed first, because this instance must keep its owner lock as
     * long as the database is open. */
    sqlite3_close(file->db);
    if (file->owners >= 0)
        close(file->owners);
    *file = (sgi_sqlite_file){.owners = -1};
}
