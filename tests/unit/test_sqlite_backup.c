/* A SQLite store that is copied while it is written to, and how large its write-ahead log
 * gets during a long read. label: threads */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "support/sqlite_kit.h"

/* ---- backup ---- */

enum { LOGS = 4, COPIES = 6 };

typedef struct writer {
    pthread_t thread;
    segue_store *store;
    atomic_bool stop;
    atomic_ulong acked; /* a lower bound of the acknowledged entries in each log */
    _Atomic segue_status status;
} writer;

/* A commit puts one entry into each log, so in a copy all logs have one length. cmocka's
 * asserts belong to the main thread, so this function only reports. */
static void *write_on(void *arg)
{
    writer *w = arg;
    static char data[LOGS][TEST_ENTRY_MAX];
    for (uint64_t seq = 1; !w->stop && !w->status; seq++) {
        segue_store_write writes[LOGS];
        for (uint32_t n = 0; n < LOGS; n++)
            writes[n] =
                test_write_append(n, seq, data[n], test_entry_fill(data[n], n, seq));
        w->status = sgi_store_commit(w->store, writes, LOGS);
        if (!w->status)
            w->acked = seq;
    }
    return NULL;
}

static void vacuum_into(const char *name)
{
    char sql[300];
    sqlite3 *db = test_connect("db");
    snprintf(sql, sizeof sql, "VACUUM INTO '%s'", test_path(name));
    test_exec(db, sql);
    sqlite3_close(db);
}

/* Does what `sqlite3 FILE .backup` does: copies pages in steps, and restarts after a
 * write from outside; at last it copies in one step. */
static void back_up(const char *name)
{
    sqlite3 *db = test_connect("db"), *copy = test_connect(name);
    sqlite3_backup *backup = sqlite3_backup_init(copy, "main", db, "main");
    assert_non_null(backup);
    for (int i = 0; i < 3; i++)
        assert_int_equal(sqlite3_backup_step(backup, 1), SQLITE_OK);
    assert_int_equal(sqlite3_backup_step(backup, -1), SQLITE_DONE);
    assert_int_equal(sqlite3_backup_finish(backup), SQLITE_OK);
    sqlite3_close(copy);
    sqlite3_close(db);
}

static void copies_made_while_writing_are_whole(void **state)
{
    (void)state;
    writer w = {.store = test_must_open("db")};
    for (uint32_t n = 0; n < LOGS; n++)
        test_must_create(w.store, n);
    assert_int_equal(pthread_create(&w.thread, NULL, write_on, &w), 0);
    unsigned long before[COPIES], after[COPIES];
    char name[24];
    for (int i = 0; i < COPIES; i++) {
        while (w.acked < (unsigned long)(i + 1) * 20 && !w.status)
            sched_yield();
        snprintf(name, sizeof name, "copy-%d", i);
        before[i] = w.acked;
        (i % 2 ? back_up : vacuum_into)(name);
        after[i] = w.acked;
    }
    w.stop = true;
    pthread_join(w.thread, NULL);
    assert_int_equal(w.status, SEGUE_OK);
    for (int i = 0; i < COPIES; i++) {
        snprintf(name, sizeof name, "copy-%d", i);
        segue_store *copy = test_must_open(name);
        uint64_t last = test_log_last(copy, 0, 1);
        assert_true(last >= before[i] && last <= after[i] + 1);
        for (uint32_t n = 0; n < LOGS; n++)
            test_assert_log(copy, n, last);
        /* The owners of the operations do not hold their locks in the copy, so all
         * operations can be claimed. */
        assert_int_equal(test_claim_count(copy), LOGS);
        test_must_append(copy, 0, last + 1);
        sgi_store_unref(copy);
    }
    test_assert_log(w.store, 0, w.acked);
    sgi_store_unref(w.store);
}

/* ---- the write-ahead log ---- */

static int64_t log_size(void)
{
    struct stat info;
    return stat(test_path("db-wal"), &info) ? 0 : (int64_t)info.st_size;
}

static void append_mebibytes(segue_store *store, uint64_t *seq, int count)
{
    static char mebibyte[1 << 20];
    for (int i = 0; i < count; i++)
        assert_int_equal(test_commit_one(store, test_write_append(1, ++*seq, mebibyte,
                                                                  sizeof mebibyte)),
                         SEGUE_OK);
}

static void log_that_grew_is_cut_back(void **state)
{
    (void)state;
    segue_store *store = test_must_open("db");
    uint64_t seq = 0;
    test_must_create(store, 1);
    append_mebibytes(store, &seq, 40);
    assert_true(log_size() < 12 << 20); /* the write-ahead log restarts after a checkpoint
                                         * at 4 MiB */
    sqlite3 *reader = test_connect("db");
    test_exec(reader, "BEGIN");
    test_query_int(reader, "SELECT count(*) FROM log");
    append_mebibytes(store, &seq, 40);
    assert_true(log_size() > 32 << 20); /* the log cannot restart while a reader needs the
                                         * old pages */
    sqlite3_close(reader);
    append_mebibytes(store, &seq, 12);
    assert_true(log_size() <= 16 << 20);
    sgi_store_unref(store);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test_setup(copies_made_while_writing_are_whole, test_directory_setup),
        cmocka_unit_test_setup(log_that_grew_is_cut_back, test_directory_setup),
    };
    if (test_directory_make())
        return 1;
    int failures = cmocka_run_group_tests(cases, NULL, NULL);
    test_directory_remove();
    return failures ? 1 : 0;
}
