/* Rows per second into the stores, one JSON object per line.
 *
 *     bench_store [directory [seconds]]
 *
 * An entry has 150 bytes. The SQLite store is compared with a bare loop: the same schema,
 * prepared insertion, settings and batches, without Segue. Both run in turn on fresh
 * files, so that a busy machine slows both; figures are medians. With several operations
 * the entries of a batch go to them in turn, which is hard on the tree in both.
 *
 * The memory store is bounded and full: operations end after 10,000 entries and are
 * evicted, as in a server that has run for a while. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#include "store/sqlite_file.h"
#include "support/store_kit.h"
#include "support/test_mem.h"

#define RUNS 5
#define ENTRY_SIZE 150
#define BATCH_MAX 256
#define OPS_MAX 64
#define LOG_MAX 10000

static char path[256];
static double seconds = 0.25;
static char payload[ENTRY_SIZE];

/* The operation that gets the next row, and the row's number there. */
typedef struct cursor {
    uint32_t op;
    uint32_t ops;
    uint64_t seq[OPS_MAX];
} cursor;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void must(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "bench_store: %s failed\n", what);
    exit(1);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, RUNS, sizeof *values, by_value);
    return values[RUNS / 2];
}

static void remove_files(void)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-owners"};
    for (size_t i = 0; i < 4; i++) {
        char name[sizeof path + 8];
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
}

static segue_store *open_fresh(int32_t durability, uint32_t ops)
{
    segue_store_options options = {.struct_size = sizeof options,
                                   .durability = durability};
    segue_store *store = NULL;
    char message[200];
    remove_files();
    if (sgi_store_sqlite_new(path, &options, &store, message, sizeof message)) {
        fprintf(stderr, "%s\n", message);
        exit(1);
    }
    for (uint32_t n = 0; n < ops; n++) {
        test_record r;
        test_record_init(&r, n);
        must(!test_commit_one(store, test_write_create(&r)), "create");
    }
    return store;
}

static double run_store(int32_t durability, size_t batch, uint32_t ops)
{
    static segue_store_write writes[BATCH_MAX];
    segue_store *store = open_fresh(durability, ops);
    cursor at = {.ops = ops};
    long rows = 0;
    double start = now(), took;
    while ((took = now() - start) < seconds) {
        for (size_t i = 0; i < batch; i++, at.op = (at.op + 1) % ops)
            writes[i] = test_write_append(at.op, ++at.seq[at.op], payload, ENTRY_SIZE);
        must(!sgi_store_commit(store, writes, batch), "commit");
        rows += (long)batch;
    }
    sgi_store_unref(store);
    return (double)rows / took;
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement;
    must(!sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL),
         sql);
    return statement;
}

static void step(sqlite3_stmt *statement)
{
    must(sqlite3_step(statement) == SQLITE_DONE, sqlite3_sql(statement));
    sqlite3_reset(statement);
}

static sqlite3 *connect_bare(int32_t durability, uint32_t ops)
{
    sqlite3 *db;
    /* opening and closing the store makes the schema */
    sgi_store_unref(open_fresh(durability, ops));
    must(!sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL),
         "open");
    must(!sqlite3_exec(db,
                       "PRAGMA wal_autocheckpoint = 1000; PRAGMA cache_size = -8192;"
                       "PRAGMA journal_size_limit = 16777216",
                       NULL, NULL, NULL) &&
             !sqlite3_exec(db,
                           durability ? "PRAGMA synchronous = FULL"
                                      : "PRAGMA synchronous = NORMAL",
                           NULL, NULL, NULL),
         "settings");
    return db;
}

static double run_bare(int32_t durability, size_t batch, uint32_t ops)
{
    sqlite3 *db = connect_bare(durability, ops);
    sqlite3_stmt *begin = prepare(db, "BEGIN IMMEDIATE");
    sqlite3_stmt *commit = prepare(db, "COMMIT");
    sqlite3_stmt *insert =
        prepare(db, "INSERT INTO log (key, segment, event, kind, at, data)"
                    " VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
    cursor at = {.ops = ops};
    long rows = 0;
    double start = now(), took;
    while ((took = now() - start) < seconds) {
        step(begin);
        for (size_t i = 0; i < batch; i++, at.op = (at.op + 1) % ops) {
            int64_t seq = (int64_t)++at.seq[at.op];
            sqlite3_bind_int64(insert, 1,
                               (int64_t)(at.op + 1) << SGI_SQLITE_SEQ_BITS | seq);
            sqlite3_bind_int64(insert, 2, seq * 2);
            sqlite3_bind_int64(insert, 3, seq * 3);
            sqlite3_bind_int64(insert, 4, seq % 7 - 1);
            sqlite3_bind_int64(insert, 5, seq - 2);
            sqlite3_bind_blob(insert, 6, payload, ENTRY_SIZE, SQLITE_STATIC);
            step(insert);
        }
        step(commit);
        rows += (long)batch;
    }
    sqlite3_finalize(begin);
    sqlite3_finalize(commit);
    sqlite3_finalize(insert);
    sqlite3_close(db);
    return (double)rows / took;
}

static void bench_sqlite(int32_t durability, size_t batch, uint32_t ops)
{
    double ours[RUNS], bare[RUNS];
    for (int i = 0; i < RUNS; i++) { /* they take turns in being first */
        if (i % 2)
            ours[i] = run_store(durability, batch, ops);
        bare[i] = run_bare(durability, batch, ops);
        if (i % 2 == 0)
            ours[i] = run_store(durability, batch, ops);
    }
    double rate = median(ours), bare_rate = median(bare);
    printf(
        "{\"bench\":\"store\",\"store\":\"sqlite\",\"durability\":\"%s\",\"batch\":%zu,"
        "\"operations\":%u,\"rows_per_s\":%.0f,\"bare_rows_per_s\":%.0f,\"ratio\":%.3f,"
        "\"runs\":%d}\n",
        durability ? "full" : "normal", batch, ops, rate, bare_rate, rate / bare_rate,
        RUNS);
    fflush(stdout);
}

static double run_memory(size_t batch)
{
    static segue_store_write writes[BATCH_MAX];
    segue_store_options options = {.struct_size = sizeof options, .max_bytes = 64 << 20};
    segue_store *store = NULL;
    must(!sgi_store_memory_new(&options, &store), "open");
    uint32_t n = 0;
    uint64_t seq = LOG_MAX;
    long rows = 0;
    double start = now(), took;
    while ((took = now() - start) < seconds) {
        if (seq + batch > LOG_MAX) {
            test_record r;
            if (n)
                must(!test_commit_one(store, test_write_end(n, INT64_MAX)), "end");
            test_record_init(&r, ++n);
            must(!test_commit_one(store, test_write_create(&r)), "create");
            seq = 0;
        }
        for (size_t i = 0; i < batch; i++)
            writes[i] = test_write_append(n, ++seq, payload, ENTRY_SIZE);
        must(!sgi_store_commit(store, writes, batch), "commit");
        rows += (long)batch;
    }
    sgi_store_unref(store);
    return (double)rows / took;
}

static void bench_memory(size_t batch)
{
    double rates[RUNS];
    for (int i = 0; i < RUNS; i++)
        rates[i] = run_memory(batch);
    printf("{\"bench\":\"store\",\"store\":\"memory\",\"batch\":%zu,\"rows_per_s\":%.0f,"
           "\"runs\":%d}\n",
           batch, median(rates), RUNS);
    fflush(stdout);
}

/* Measures a task that waits: a record with 180 bytes and two entries of 60. */
static void bench_parked(void)
{
    enum { COUNT = 100000 };
    test_mem tm;
    test_mem_init(&tm);
    segue_store_options options = {.struct_size = sizeof options, .allocator = &tm.mem};
    segue_store *store = NULL;
    must(!sgi_store_memory_new(&options, &store), "open");
    char data[180] = {0};
    for (uint32_t n = 0; n < COUNT; n++) {
        test_record r;
        test_record_init(&r, n);
        r.record.data = data;
        r.record.data_len = sizeof data;
        segue_store_write writes[] = {test_write_create(&r),
                                      test_write_append(n, 1, data, 60),
                                      test_write_append(n, 2, data, 60)};
        must(!sgi_store_commit(store, writes, 3), "commit");
    }
    printf("{\"bench\":\"store\",\"store\":\"memory\",\"parked_tasks\":%d,"
           "\"bytes_per_task\":%zu}\n",
           COUNT, (tm.live + 16 * tm.blocks) / COUNT);
    sgi_store_unref(store);
}

int main(int argc, char **argv)
{
    static const size_t batches[] = {1, 16, 256};
    snprintf(path, sizeof path, "%s/bench_store.db", argc > 1 ? argv[1] : ".");
    if (argc > 2)
        seconds = atof(argv[2]);
    for (size_t batch = 1; batch <= BATCH_MAX; batch *= 4)
        bench_memory(batch);
    bench_parked();
    for (int32_t durability = 0; durability < 2; durability++)
        for (size_t i = 0; i < 3; i++)
            bench_sqlite(durability, batches[i], 1);
    for (size_t i = 0; i < 3; i++)
        bench_sqlite(SEGUE_DURABILITY_NORMAL, batches[i], OPS_MAX);
    remove_files();
    return 0;
}
