/* What SQLite alone does with the rows of a stream: the same table, settings and bytes as
 * the SQLite store's log, one transaction per batch, nothing else. With TASKS the rows go
 * to this many logs in turn.
 *
 *   bench_insert [--cpu N] [--full] FILE ROWS BATCH [TASKS] */
#include "bench.h"

#include <stdbool.h>

#include <sqlite3.h>

#define SEGMENT "{\"type\":\"text\",\"text\":\"%0150d\"}"

static sqlite3 *open_file(const char *path, bool full)
{
    sqlite3 *db;
    if (sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_exec(
            db,
            "PRAGMA journal_mode = WAL;"
            "PRAGMA wal_autocheckpoint = 1000; PRAGMA journal_size_limit = 16777216;"
            "PRAGMA cache_size = -8192;"
            "CREATE TABLE log (key INTEGER PRIMARY KEY, segment INTEGER NOT NULL,"
            " event INTEGER NOT NULL, kind INTEGER NOT NULL, at INTEGER NOT NULL,"
            " data BLOB NOT NULL)",
            NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(db,
                     full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL",
                     NULL, NULL, NULL) != SQLITE_OK)
        bench_fail("the file cannot be made");
    return db;
}

static void insert(sqlite3_stmt *statement, int64_t key, const char *data, int len)
{
    sqlite3_bind_int64(statement, 1, key);
    sqlite3_bind_int64(statement, 2, key);
    sqlite3_bind_int64(statement, 3, key);
    sqlite3_bind_int64(statement, 4, 1);
    sqlite3_bind_int64(statement, 5, 1790000000000 + key / 1000);
    sqlite3_bind_blob(statement, 6, data, len, SQLITE_STATIC);
    if (sqlite3_step(statement) != SQLITE_DONE)
        bench_fail("a row cannot be written");
    sqlite3_reset(statement);
}

int main(int argc, char **argv)
{
    char data[256];
    sqlite3_stmt *begin;
    sqlite3_stmt *commit;
    sqlite3_stmt *append;
    bench_pin(&argc, &argv);
    bool full = argc > 1 && strcmp(argv[1], "--full") == 0;
    argc -= full;
    argv += full;
    int64_t rows = bench_number(argc, argv, 2, 0);
    int64_t batch = bench_number(argc, argv, 3, 0);
    int64_t tasks = bench_number(argc, argv, 4, 1);
    if (rows < 1 || batch < 1)
        bench_fail("FILE ROWS BATCH");
    int len = snprintf(data, sizeof data, SEGMENT, 0);
    sqlite3 *db = open_file(argv[1], full);
    if (sqlite3_prepare_v2(db, "BEGIN IMMEDIATE", -1, &begin, NULL) ||
        sqlite3_prepare_v2(db, "COMMIT", -1, &commit, NULL) ||
        sqlite3_prepare_v2(db, "INSERT INTO log VALUES (?1, ?2, ?3, ?4, ?5, ?6)", -1,
                           &append, NULL))
        bench_fail("a statement cannot be prepared");
    int64_t from = bench_now_ns();
    for (int64_t row = 0; row < rows;) {
        sqlite3_step(begin);
        sqlite3_reset(begin);
        for (int64_t i = 0; i < batch && row < rows; i++, row++)
            insert(append, (row % tasks + 1) << 26 | (row / tasks + 1), data, len);
        if (sqlite3_step(commit) != SQLITE_DONE)
            bench_fail("a batch cannot be committed");
        sqlite3_reset(commit);
    }
    bench_say("rows_per_s", (double)rows / (double)(bench_now_ns() - from) * 1e9);
    sqlite3_finalize(begin);
    sqlite3_finalize(commit);
    sqlite3_finalize(append);
    sqlite3_close(db);
    return 0;
}
