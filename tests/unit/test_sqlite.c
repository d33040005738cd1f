/* SQLite stores in one process: reopening a file, files of other programs, writes of
 * another instance, purging in steps, and missing memory for SQLite itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/sqlite_file.h"
#include "support/news_kit.h"
#include "support/sqlite_kit.h"

#include <cmocka.h>

/* Checks that the file cannot be opened, that the error has these words, and that the
 * directory and the open descriptors are unchanged. */
static void expect_untouched(const char *name, const char *words)
{
    char message[200] = "";
    segue_store *store = NULL;
    test_bytes before = test_file_bytes(name);
    int files = test_count_files(test_directory),
        descriptors = test_count_files("/proc/self/fd");
    assert_int_equal(test_sqlite_status(name, &store, message), SEGUE_E_STORE_CORRUPT);
    assert_null(store);
    assert_non_null(strstr(message, words));
    test_bytes after = test_file_bytes(name);
    assert_int_equal(before.n, after.n);
    assert_memory_equal(before.p, after.p, before.n);
    assert_int_equal(test_count_files(test_directory), files);
    assert_int_equal(test_count_files("/proc/self/fd"), descriptors);
    free(before.p);
    free(after.p);
}

/* ---- reopening ---- */

static void reopened_store_has_everything(void **state)
{
    (void)state;
    segue_store *store = test_must_open("db");
    for (uint32_t n = 1; n <= 20; n++) {
        test_must_create(store, n);
        for (uint64_t seq = 1; seq <= n; seq++)
            test_must_append(store, n, seq);
    }
    assert_int_equal(test_commit_one(store, test_write_end(20, 50)), SEGUE_OK);
    sgi_store_unref(store);
    store = test_must_open("db");
    for (uint32_t n = 1; n <= 20; n++) {
        assert_int_equal(test_find(store, n), SEGUE_OK);
        test_assert_log(store, n, n);
    }
    assert_int_equal(test_commit_one(store, test_write_append(7, 8, "x", 1)),
                     SEGUE_E_FENCED);
    assert_int_equal(test_claim_count(store), 19);
    test_must_append(store, 7, 8);
    assert_int_equal(test_claim_count(store), 0);
    sgi_store_unref(store);
}

static void settings_are_those_of_the_options(void **state)
{
    (void)state;
    for (int32_t durability = 0; durability < 2; durability++) {
        segue_store_options options = {.struct_size = sizeof options,
                                       .durability = durability};
        sgi_sqlite_file file;
        assert_int_equal(sgi_sqlite_file_open(&file, test_path("db"), &options, NULL, 0),
                         SEGUE_OK);
        assert_int_equal(test_query_int(file.db, "PRAGMA synchronous"),
                         durability ? 2 : 1);
        assert_int_equal(test_query_int(file.db, "PRAGMA journal_size_limit"), 16 << 20);
        assert_int_equal(test_query_int(file.db, "PRAGMA wal_autocheckpoint"), 1000);
        assert_int_equal(file.turn.busy_ms, 5000);
        sgi_sqlite_file_close(&file);
    }
    const struct {
        segue_store_options options;
        const char *says;
    } bad[] = {
        {{.durability = 2}, "durability is 2: it has to be at most 1"},
        {{.durability = -1}, "durability is -1: it has to be at least 0"},
        {{.busy_timeout_ms = -1}, "busy_timeout_ms is -1: it has to be at least 0"},
        {{.max_principal_bytes = -2},
         "max_principal_bytes is -2: it has to be at least 0"},
    };
    segue_store *store = NULL;
    char message[200];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(sgi_store_sqlite_new(test_path("db"), &bad[i].options, &store,
                                              message, sizeof message),
                         SEGUE_E_INVALID);
        assert_non_null(strstr(message, bad[i].says));
    }
}

static void name_that_is_no_file_is_refused(void **state)
{
    (void)state;
    char message[200];
    segue_store *store = NULL;
    const char *const names[] = {NULL, "", ":memory:"};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(
            sgi_store_sqlite_new(names[i], NULL, &store, message, sizeof message),
            SEGUE_E_INVALID);
    assert_int_equal(
        sgi_store_sqlite_new(test_directory, NULL, &store, message, sizeof message),
        SEGUE_E_STORE);
    assert_int_equal(test_sqlite_status("no/such/directory", &store, message),
                     SEGUE_E_STORE);
    assert_true(strlen(message) > 0);
    assert_null(store);
    /* A message that does not fit is cut: nothing is written past the end of the
     * buffer. */
    char small[8] = "1234567";
    assert_int_equal(sgi_store_sqlite_new(":memory:", NULL, &store, small, 4),
                     SEGUE_E_INVALID);
    assert_int_equal(strlen(small), 3);
    assert_string_equal(small + 4, "567");
}

static void owners_lie_beside_the_file_a_link_names(void **state)
{
    (void)state;
    assert_int_equal(symlink(test_path("real"), test_path("link")), 0);
    segue_store *store = test_must_open("link");
    assert_int_equal(access(test_path("real-owners"), F_OK), 0);
    test_must_create(store, 1);
    segue_store *other = test_must_open("real");
    assert_int_equal(test_claim_count(other), 0);
    sgi_store_unref(store);
    assert_int_equal(test_claim_count(other), 1);
    sgi_store_unref(other);
}

/* ---- foreign files ---- */

static void newer_format_is_refused(void **state)
{
    (void)state;
    segue_store *store = test_must_open("db");
    test_must_create(store, 1);
    sgi_store_unref(store);
    sqlite3 *db = test_connect("db");
    test_exec(db, "PRAGMA user_version = 99");
    sqlite3_close(db);
    expect_untouched("db", "newer");
}

static void newer_format_keeps_its_log(void **state)
{
    (void)state;
    segue_store *store = test_must_open("db");
    sqlite3 *db = test_connect("db");
    test_exec(db, "PRAGMA user_version = 99");
    test_must_create(store, 1);
    test_bytes file = test_file_bytes("db"), wal = test_file_bytes("db-wal");
    assert_true(wal.n > 0);
    test_write_file("copy", file.p, file.n);
    test_write_file("copy-wal", wal.p, wal.n);
    segue_store *refused = NULL;
    char message[200];
    assert_int_equal(test_sqlite_status("copy", &refused, message),
                     SEGUE_E_STORE_CORRUPT);
    assert_non_null(strstr(message, "newer"));
    test_bytes file_after = test_file_bytes("copy"),
               wal_after = test_file_bytes("copy-wal");
    assert_int_equal(file.n, file_after.n);
    assert_memory_equal(file.p, file_after.p, file.n);
    assert_int_equal(wal.n, wal_after.n);
    assert_memory_equal(wal.p, wal_after.p, wal.n);
    free(file.p);
    free(wal.p);
    free(file_after.p);
    free(wal_after.p);
    sqlite3_close(db);
    sgi_store_unref(store);
}

static void fill_from(const char *name, const char *from)
{
    FILE *file = fopen(from, "rb");
    static char bytes[256 * 1024];
    assert_non_null(file);
    size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(n > 4096 && n < sizeof bytes);
    test_write_file(name, bytes, n);
}

/* The file was made by the library of format 1: twelve operations with as many entries as
 * their number, 3, 6, 9, 12 with keys, 2 released, 10 to 12 ended, and a log of 1,100
 * entries that is being deleted. */
static void file_of_format_one_is_brought_up_to_date(void **state)
{
    (void)state;
    fill_from("db", SEGUE_FILES_DIR "/store_format_1.db");
    segue_store *store = test_must_open("db");
    for (uint32_t n = 1; n <= 12; n++) {
        test_assert_log(store, n, n);
        assert_int_equal(test_find(store, n), SEGUE_OK);
        assert_int_equal(test_must_find(store, n).ended, n >= 10);
        assert_int_equal(test_must_find(store, n).has_key, n % 3 == 0);
    }
    sqlite3 *db = test_connect("db");
    assert_int_equal(test_query_int(db, "PRAGMA user_version"), 2);
    assert_int_equal(test_query_int(db, "SELECT sum(operations) FROM principal"), 12);
    assert_int_equal(test_query_int(db, "SELECT sum(bytes) FROM principal"),
                     test_query_int(db, "SELECT (SELECT sum(length(data) + 256) FROM"
                                        " operation) + (SELECT sum(length(data) + 32)"
                                        " FROM log WHERE key >> 26 IN (SELECT op FROM"
                                        " operation WHERE ended = 1))"));
    sqlite3_close(db);
    assert_int_equal(test_claim_count(store), 9);
    for (uint32_t n = 1; n <= 9; n++) {
        test_must_append(store, n, n + 1);
        assert_int_equal(test_commit_one(store, test_write_end(n, 5)), SEGUE_OK);
    }
    int64_t next;
    do
        assert_int_equal(sgi_store_purge(store, 12000, &next), SEGUE_OK);
    while (next == 12000);
    assert_int_equal(next, INT64_MAX);
    sgi_store_unref(store);
    db = test_connect("db");
    assert_int_equal(test_query_int(db, "SELECT count(*) FROM log"), 12);
    assert_int_equal(test_query_int(db, "SELECT operations FROM principal"), 1);
    assert_int_equal(test_query_int(db, "SELECT bytes FROM principal"),
                     test_query_int(db, "SELECT sum(length(data) + 32) + (SELECT"
                                        " sum(length(data) + 256) FROM operation)"
                                        " FROM log"));
    sqlite3_close(db);
}

/* The upgrade is one transaction: when the disk is full or the process dies, the file
 * stays unchanged, and the next attempt can start. */
static void upgrade_happens_whole_or_not_at_all(void **state)
{
    (void)state;
    char message[200] = "";
    segue_store *store = NULL;
    fill_from("db", SEGUE_FILES_DIR "/store_format_1.db");
    sqlite3 *db = test_connect("db");
    /* The last object that the upgrade makes exists already. */
    test_exec(db,
              "CREATE TRIGGER operation_goes AFTER DELETE ON log BEGIN SELECT 1; END");
    sqlite3_close(db);
    assert_int_equal(test_sqlite_status("db", &store, message), SEGUE_E_STORE);
    assert_non_null(strstr(message, "operation_goes"));
    db = test_connect("db");
    assert_int_equal(test_query_int(db, "PRAGMA user_version"), 1);
    assert_int_equal(test_query_int(db, "SELECT count(*) FROM sqlite_master WHERE name"
                                        " IN ('letter', 'principal')"),
                     0);
    test_exec(db, "DROP TRIGGER operation_goes");
    sqlite3_close(db);
    store = test_must_open("db");
    test_assert_log(store, 12, 12);
    sgi_store_unref(store);
}

static void database_of_another_program_is_refused(void **state)
{
    (void)state;
    sqlite3 *db = test_connect("rollback");
    test_exec(db, "CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')");
    sqlite3_close(db);
    expect_untouched("rollback", "another program");
    db = test_connect("wal");
    test_exec(db, "PRAGMA journal_mode = WAL; CREATE TABLE notes (text)");
    sqlite3_close(db);
    expect_untouched("wal", "another program");
    db = test_connect("empty");
    test_exec(db, "PRAGMA user_version = 1");
    sqlite3_close(db);
    expect_untouched("empty", "another program");
}

static void garbage_is_refused(void **state)
{
    (void)state;
    char junk[10000];
    for (size_t i = 0; i < sizeof junk; i++)
        junk[i] = (char)(i * 7 % 251);
    test_write_file("db", junk, sizeof junk);
    expect_untouched("db", "not a Segue store");
    test_write_file("db", "hello", 5);
    expect_untouched("db", "not a Segue store");
    test_write_file("db", "", 0); /* An empty file is opened as a new store. */
    segue_store *store = test_must_open("db");
    test_must_create(store, 1);
    sgi_store_unref(store);
}

/* Makes a file with enough data that every tree has several pages. */
static void make_filled_file(void)
{
    segue_store *store = test_must_open("good");
    for (uint32_t n = 0; n < 300; n++) {
        test_record r;
        test_record_init(&r, n);
        test_record_set_key(&r, n);
        r.record.purge_ms = n % 2 ? (int64_t)n : INT64_MAX;
        assert_int_equal(test_commit_one(store, test_write_create(&r)), SEGUE_OK);
        assert_int_equal(test_append_batch(store, n, 1, 10), SEGUE_OK);
    }
    sgi_store_unref(store);
}

static void damaged_tree_is_refused(void **state)
{
    (void)state;
    make_filled_file();
    test_bytes good = test_file_bytes("good");
    sqlite3 *db = test_connect("good");
    size_t page_size = (size_t)test_query_int(db, "PRAGMA page_size");
    int64_t roots =
        test_query_int(db, "SELECT count(*) FROM sqlite_master WHERE rootpage > 0");
    assert_true(roots >= 9);
    for (int64_t i = 0; i < roots; i++) {
        char sql[120];
        snprintf(sql, sizeof sql,
                 "SELECT rootpage FROM sqlite_master WHERE rootpage > 0"
                 " AND name != 'sqlite_sequence' ORDER BY rootpage LIMIT 1 OFFSET %d",
                 (int)(i % (roots - 1)));
        size_t root = (size_t)test_query_int(db, sql);
        test_bytes bad = {malloc(good.n), good.n};
        assert_non_null(bad.p);
        memcpy(bad.p, good.p, good.n);
        memset(bad.p + (root - 1) * page_size, 0x5a, page_size);
        test_write_file("bad", bad.p, bad.n);
        expect_untouched("bad", "damaged");
        free(bad.p);
    }
    sqlite3_close(db);
    test_write_file("bad", good.p, good.n / 2 / page_size * page_size);
    expect_untouched("bad", "damaged");
    free(good.p);
}

static int32_t ignore_entry(void *user, const segue_store_entry *entry)
{
    (void)user;
    (void)entry;
    return 0;
}

/* Damage that the check at open cannot see is reported by the first call that reads the
 * damaged part. */
static void damage_inside_a_tree_is_said_when_met(void **state)
{
    (void)state;
    make_filled_file();
    sqlite3 *db = test_connect("good");
    size_t page_size = (size_t)test_query_int(db, "PRAGMA page_size");
    sqlite3_close(db);
    test_bytes good = test_file_bytes("good");
    int corrupt = 0;
    for (size_t at = page_size; at < good.n; at += 3 * page_size) {
        char *bad = malloc(good.n), message[200];
        segue_store *store = NULL;
        assert_non_null(bad);
        memcpy(bad, good.p, good.n);
        memset(bad + at, 0x5a, page_size);
        test_write_file("bad", bad, good.n);
        free(bad);
        segue_status status = test_sqlite_status("bad", &store, message);
        for (uint32_t n = 0; n < 300 && !status; n++) {
            uint8_t id[SEGUE_STORE_ID_SIZE];
            test_store_id(id, n);
            status = sgi_store_read(store, id, 0, ignore_entry, NULL);
        }
        assert_true(status == SEGUE_OK || status == SEGUE_E_STORE_CORRUPT);
        corrupt += store && status;
        sgi_store_unref(store);
    }
    assert_true(corrupt > 5);
    free(good.p);
}

static void record_of_the_wrong_shape_is_damage(void **state)
{
    (void)state;
    segue_store *store = test_must_open("db");
    sqlite3 *db = test_connect("db");
    test_must_create(store, 1);
    test_exec(db, "UPDATE operation SET principal = x'0102'");
    assert_int_equal(test_find(store, 1), SEGUE_E_STORE_CORRUPT);
    test_exec(db, "UPDATE operation SET principal = zeroblob(33)");
    assert_int_equal(test_find(store, 1), SEGUE_E_STORE_CORRUPT);
    sqlite3_close(db);
    sgi_store_unref(store);
}

/* A claim hands over all operations but the unreadable one, and says that there is
 * one. */
static void unreadable_record_holds_up_no_claim(void **state)
{
    size_t count;
    (void)state;
    segue_store *store = test_must_open("db");
    for (uint32_t n = 1; n <= 5; n++)
        test_must_create(store, n);
    sgi_store_unref(store);
    sqlite3 *db = test_connect("db");
    test_exec(db, "UPDATE operation SET principal = x'0102' "
                  "WHERE op = (SELECT op FROM operation ORDER BY op LIMIT 1 OFFSET 1)");
    sqlite3_close(db);
    store = test_must_open("db");
    assert_int_equal(test_claim_status(store, &count), SEGUE_E_STORE_CORRUPT);
    assert_int_equal(count, 4);
    assert_int_equal(test_claim_count(store), 0);
    sgi_store_unref(store);
}

static void missing_table_or_counter_is_refused(void **state)
{
    (void)state;
    const char *const harm[] = {"DROP TABLE log",
                                "DROP TABLE garbage",
                                "DROP INDEX operation_open",
                                "DELETE FROM owners",
                                "DROP INDEX operation_listed",
                                "ALTER TABLE operation DROP COLUMN data",
                                "PRAGMA user_version = 0"};
    for (size_t i = 0; i < sizeof harm / sizeof *harm; i++) {
        test_clear_directory();
        sgi_store_unref(test_must_open("db"));
        sqlite3 *db = test_connect("db");
        test_exec(db, harm[i]);
        sqlite3_close(db);
        expect_untouched("db", "damaged");
    }
}

/* ---- several instances ---- */

static void must_release(segue_store *store, uint32_t n)
{
    assert_int_equal(test_commit_one(store, test_write_simple(SEGUE_STORE_RELEASE, n)),
                     SEGUE_OK);
}

/* When another store has written to an operation, the state of the operation in this
 * store's cache is void. Both stores may write to operations without an owner. */
/* A store that is alone rarely checks for other instances, but notices one that writes
 * first soon enough. */
static void new_instance_is_looked_for_now_and_then(void **state)
{
    (void)state;
    test_ear ear;
    segue_store *a = test_must_open("db");
    test_ear_open(&ear, a);
    assert_in_range(test_ear_ask(&ear), 100, 250);
    segue_store *b = test_must_open("db");
    assert_in_range(test_ear_ask(&ear), 1, 10);
    sgi_store_unref(b);
    assert_in_range(test_ear_ask(&ear), 100, 250);
    test_ear_close(&ear);
    sgi_store_unref(a);
}

static void write_of_another_instance_is_noticed(void **state)
{
    (void)state;
    char data[TEST_ENTRY_MAX];
    segue_store *one = test_must_open("db"), *two = test_must_open("db");
    test_must_create(one, 1);
    test_must_append(one, 1, 1);
    must_release(one, 1);
    test_must_append(two, 1, 2);
    size_t len = test_entry_fill(data, 1, 2);
    assert_int_equal(test_commit_one(one, test_write_append(1, 2, data, len)),
                     SEGUE_E_STATE);
    test_must_append(one, 1, 3);
    test_must_append(one, 1, 4);
    assert_int_equal(test_log_last(two, 1, 1), 4); /* store `two` reads between the writes
                                                    * of `one` */
    test_must_append(one, 1, 5);
    test_must_append(two, 1, 6);
    assert_int_equal(test_commit_one(two, test_write_simple(SEGUE_STORE_DELETE, 1)),
                     SEGUE_OK);
    len = test_entry_fill(data, 1, 6);
    assert_int_equal(test_commit_one(one, test_write_append(1, 6, data, len)),
                     SEGUE_E_NOT_FOUND);
    test_must_create(two, 1);
    must_release(two, 1);
    test_must_append(one, 1, 1);
    int64_t next;
    assert_int_equal(test_commit_one(one, test_write_end(1, 5)), SEGUE_OK);
    assert_int_equal(sgi_store_purge(two, 5, &next), SEGUE_OK);
    assert_int_equal(test_commit_one(one, test_write_append(1, 2, "x", 1)),
                     SEGUE_E_NOT_FOUND);
    sgi_store_unref(one);
    sgi_store_unref(two);
}

static void locked_file_fails_after_the_timeout_and_recovers(void **state)
{
    (void)state;
    segue_store_options options = {.struct_size = sizeof options, .busy_timeout_ms = 10};
    segue_store *store = NULL;
    int64_t next;
    assert_int_equal(sgi_store_sqlite_new(test_path("db"), &options, &store, NULL, 0),
                     SEGUE_OK);
    test_must_create(store, 1);
    test_must_append(store, 1, 1);
    sqlite3 *db = test_connect("db");
    test_exec(db, "BEGIN IMMEDIATE");
    assert_int_equal(test_commit_one(store, test_write_append(1, 2, "x", 1)),
                     SEGUE_E_TIMEOUT);
    assert_int_equal(sgi_store_claim(store, NULL, NULL), SEGUE_E_TIMEOUT);
    test_assert_log(store, 1, 1); /* a reader does not wait for the lock */
    assert_int_equal(sgi_store_purge(store, 1, &next),
                     SEGUE_OK); /* a purge with nothing to do does not wait for the
                                 * lock */
    segue_store *other = NULL;
    char message[200] = "";
    assert_int_equal(
        sgi_store_sqlite_new(test_path("db"), &options, &other, message, sizeof message),
        SEGUE_E_STORE);
    assert_non_null(strstr(message, "locked"));
    test_exec(db, "ROLLBACK");
    sqlite3_close(db);
    test_must_append(store, 1, 2);
    test_assert_log(store, 1, 2);
    sgi_store_unref(store);
}

/* ---- purging ---- */

static void purge_removes_at_most_a_thousand_rows(void **state)
{
    (void)state;
    segue_store *store = test_must_open("db");
    int64_t next, rows = 2700, left;
    sqlite3 *db = test_connect("db");
    test_must_create(store, 1);
    for (uint64_t seq = 1; seq <= 2700; seq += 60)
        assert_int_equal(test_append_batch(store, 1, seq, 60), SEGUE_OK);
    assert_int_equal(test_commit_one(store, test_write_end(1, 10)), SEGUE_OK);
    test_must_create(store, 2);
    assert_int_equal(test_append_batch(store, 2, 1, 5), SEGUE_OK);
    for (int step = 0; rows > 0; step++) {
        assert_true(step < 4);
        assert_int_equal(sgi_store_purge(store, 10, &next), SEGUE_OK);
        /* The operation is gone after the first step. */
        assert_int_equal(test_find(store, 1), SEGUE_E_NOT_FOUND);
        left = test_query_int(db, "SELECT count(*) FROM log") - 5;
        assert_true(left < rows && rows - left <= 1000);
        assert_int_equal(next, left ? 10 : INT64_MAX);
        rows = left;
        /* A store that is opened later goes on with the purge. */
        sgi_store_unref(store);
        store = test_must_open("db");
    }
    assert_int_equal(test_query_int(db, "SELECT count(*) FROM garbage"), 0);
    test_assert_log(store, 2, 5);
    sqlite3_close(db);
    sgi_store_unref(store);
}

/* Entries were dropped, so the first thousand numbers have holes. The operation is
 * removed because it has expired, or because it is deleted. */
static void a_log_with_holes_is_removed_whole(void **state)
{
    (void)state;
    for (int form = 0; form < 4; form++) {
        test_clear_directory();
        segue_store *store = test_must_open("db");
        sqlite3 *db = test_connect("db");
        bool wide = form & 1, deletes = form & 2;
        int64_t next = 0, rows;
        test_must_create(store, 1);
        for (uint64_t seq = 1; seq <= 2700; seq += 60)
            assert_int_equal(test_append_batch(store, 1, seq, 60), SEGUE_OK);
        segue_store_write drop = test_write_simple(SEGUE_STORE_DROP, 1);
        for (drop.entry.kind = 0; drop.entry.kind < (wide ? 6 : 1); drop.entry.kind++) {
            drop.entry.seq = 900;
            assert_int_equal(test_commit_one(store, drop), SEGUE_OK);
        }
        rows = test_query_int(db, "SELECT count(*) FROM log");
        assert_in_range(rows, 1800, 2699);
        segue_store_write end =
            deletes ? test_write_simple(SEGUE_STORE_DELETE, 1) : test_write_end(1, 10);
        assert_int_equal(test_commit_one(store, end), SEGUE_OK);
        for (int step = 0; step < 4 && next != INT64_MAX; step++)
            assert_int_equal(sgi_store_purge(store, 10, &next), SEGUE_OK);
        assert_int_equal(next, INT64_MAX);
        assert_int_equal(test_query_int(db, "SELECT count(*) FROM log"), 0);
        assert_int_equal(test_query_int(db, "SELECT count(*) FROM garbage"), 0);
        sqlite3_close(db);
        sgi_store_unref(store);
    }
}

static void many_small_operations_are_purged_in_steps(void **state)
{
    (void)state;
    segue_store *store = test_must_open("db");
    sqlite3 *db = test_connect("db");
    int64_t next, before = 1500;
    for (uint32_t n = 0; n < 1500; n++) {
        test_record r;
        test_record_init(&r, n);
        r.record.purge_ms = 3;
        assert_int_equal(test_commit_one(store, test_write_create(&r)), SEGUE_OK);
    }
    while (before) {
        assert_int_equal(sgi_store_purge(store, 3, &next), SEGUE_OK);
        int64_t left = test_query_int(db, "SELECT count(*) FROM operation");
        assert_true(before - left <= 1000 && left < before);
        assert_int_equal(next, left ? 3 : INT64_MAX);
        before = left;
    }
    sqlite3_close(db);
    sgi_store_unref(store);
}

/* ---- no memory for SQLite ---- */

static sqlite3_mem_methods plain_memory;
static long calls_to_failure; /* the number of calls up to the one that fails; 0 = none
                               * fails */

static bool is_refused(void)
{
    return calls_to_failure > 0 && --calls_to_failure == 0;
}

static void *failing_malloc(int size)
{
    return is_refused() ? NULL : plain_memory.xMalloc(size);
}

static void *failing_realloc(void *ptr, int size)
{
    return is_refused() ? NULL : plain_memory.xRealloc(ptr, size);
}

static void refuse_sqlite_memory_on_demand(void)
{
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &plain_memory);
    sqlite3_mem_methods methods = plain_memory;
    methods.xMalloc = failing_malloc;
    methods.xRealloc = failing_realloc;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
    /* Without this setting, small blocks come from a reserve of the connection and never
     * fail. */
    sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0);
}

static void commit_without_memory_changes_nothing(void **state)
{
    (void)state;
    segue_store *store = test_must_open("db");
    static char big[40000];
    int failures = 0;
    for (uint32_t n = 1; n < 1000; n++) {
        test_record r;
        test_record_init(&r, n);
        segue_store_write writes[] = {test_write_create(&r),
                                      test_write_append(n, 1, big, sizeof big),
                                      test_write_end(n, 5)};
        calls_to_failure = n;
        segue_status status = sgi_store_commit(store, writes, 3);
        bool unreached = calls_to_failure > 0;
        calls_to_failure = 0;
        assert_true(status == SEGUE_OK || status == SEGUE_E_NOMEM);
        assert_int_equal(test_find(store, n), status ? SEGUE_E_NOT_FOUND : SEGUE_OK);
        if (status) {
            failures++;
            assert_int_equal(sgi_store_commit(store, writes, 3), SEGUE_OK);
        }
        if (unreached)
            break;
    }
    assert_true(failures > 2);
    sgi_store_unref(store);
}

static void opening_without_memory_leaves_nothing_open(void **state)
{
    (void)state;
    int failures = 0, descriptors = test_count_files("/proc/self/fd");
    for (long at = 1; at < 5000; at += 1 + at / 20) {
        segue_store *store = NULL;
        char message[200];
        calls_to_failure = at;
        segue_status status = test_sqlite_status("db", &store, message);
        bool unreached = calls_to_failure > 0;
        calls_to_failure = 0;
        failures += status == SEGUE_E_NOMEM;
        if (!status)
            sgi_store_unref(store);
        assert_int_equal(test_count_files("/proc/self/fd"), descriptors);
        if (unreached)
            break;
    }
    assert_true(failures > 10);
    sgi_store_unref(test_must_open("db"));
}

static int32_t count_bytes(void *user, const segue_store_entry *entry)
{
    *(size_t *)user += entry->data_len;
    return 0;
}

static void reading_without_memory_says_so(void **state)
{
    (void)state;
    segue_store *store = test_must_open("db");
    static char big[300000];
    uint8_t id[SEGUE_STORE_ID_SIZE];
    int failures = 0;
    test_store_id(id, 1);
    test_must_create(store, 1);
    for (uint64_t seq = 1; seq <= 3; seq++)
        assert_int_equal(
            test_commit_one(store, test_write_append(1, seq, big, sizeof big)), SEGUE_OK);
    for (long at = 1; at < 1000; at++) {
        size_t seen = 0;
        calls_to_failure = at;
        segue_status status = sgi_store_read(store, id, 0, count_bytes, &seen);
        bool unreached = calls_to_failure > 0;
        calls_to_failure = 0;
        assert_true(status == SEGUE_OK || status == SEGUE_E_NOMEM);
        assert_int_equal(seen % sizeof big, 0); /* every entry is whole */
        assert_true(status || seen == 3 * sizeof big);
        failures += status != SEGUE_OK;
        if (unreached)
            break;
    }
    assert_true(failures > 0);
    sgi_store_unref(store);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test_setup(reopened_store_has_everything, test_directory_setup),
        cmocka_unit_test_setup(settings_are_those_of_the_options, test_directory_setup),
        cmocka_unit_test_setup(name_that_is_no_file_is_refused, test_directory_setup),
        cmocka_unit_test_setup(owners_lie_beside_the_file_a_link_names,
                               test_directory_setup),
        cmocka_unit_test_setup(newer_format_is_refused, test_directory_setup),
        cmocka_unit_test_setup(file_of_format_one_is_brought_up_to_date,
                               test_directory_setup),
        cmocka_unit_test_setup(upgrade_happens_whole_or_not_at_all, test_directory_setup),
        cmocka_unit_test_setup(newer_format_keeps_its_log, test_directory_setup),
        cmocka_unit_test_setup(database_of_another_program_is_refused,
                               test_directory_setup),
        cmocka_unit_test_setup(garbage_is_refused, test_directory_setup),
        cmocka_unit_test_setup(damaged_tree_is_refused, test_directory_setup),
        cmocka_unit_test_setup(damage_inside_a_tree_is_said_when_met,
                               test_directory_setup),
        cmocka_unit_test_setup(record_of_the_wrong_shape_is_damage, test_directory_setup),
        cmocka_unit_test_setup(unreadable_record_holds_up_no_claim, test_directory_setup),
        cmocka_unit_test_setup(missing_table_or_counter_is_refused, test_directory_setup),
        cmocka_unit_test_setup(new_instance_is_looked_for_now_and_then,
                               test_directory_setup),
        cmocka_unit_test_setup(write_of_another_instance_is_noticed,
                               test_directory_setup),
        cmocka_unit_test_setup(locked_file_fails_after_the_timeout_and_recovers,
                               test_directory_setup),
        cmocka_unit_test_setup(purge_removes_at_most_a_thousand_rows,
                               test_directory_setup),
        cmocka_unit_test_setup(a_log_with_holes_is_removed_whole, test_directory_setup),
        cmocka_unit_test_setup(many_small_operations_are_purged_in_steps,
                               test_directory_setup),
        cmocka_unit_test_setup(commit_without_memory_changes_nothing,
                               test_directory_setup),
        cmocka_unit_test_setup(opening_without_memory_leaves_nothing_open,
                               test_directory_setup),
        cmocka_unit_test_setup(reading_without_memory_says_so, test_directory_setup),
    };
    refuse_sqlite_memory_on_demand();
    if (test_directory_make())
        return 1;
    int failures = cmocka_run_group_tests_name("sqlite", cases, NULL, NULL);
    test_directory_remove();
    return failures ? 1 : 0;
}
