/* The formats of the stores have numbers, and each format is kept as a file in
 * tests/files. Each kept file is opened, read, written and brought to the present
 * format.
 * A newer format is refused with both numbers. core/docs/upgrades.md says how a file is
 * made: `test_formats --keep DIRECTORY` writes those of the present formats.
 * label: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <hiredis/hiredis.h>
#include <libpq-fe.h>

#include "base/thresholds.h"
#include "support/news_kit.h"
#include "support/postgres_server.h"
#include "support/redis_server.h"
#include "support/sqlite_kit.h"
#include "support/store_kit.h"

#include <cmocka.h>

#define OUR_SQLITE_FORMAT 3
#define OUR_REDIS_FORMAT 2
#define OUR_POSTGRES_FORMAT 2
#define PATIENCE_MS 120000
#define LEASE_MS 1000
#define FILE_MOST (1024 * 1024)

typedef segue_status (*open_fn)(const char *where, const segue_store_options *options,
                                segue_store **out, char *message, size_t size);

#ifdef SGI_KNOBS
#define CAN_BE_BROUGHT 1
#else
#define CAN_BE_BROUGHT 0
#endif

static segue_status open_at(open_fn open, const char *where, segue_store **out,
                            char message[300])
{
    segue_store_options options = {
        .struct_size = sizeof options, .timeout_ms = PATIENCE_MS, .lease_ms = LEASE_MS};
    *out = NULL;
    return open(where, &options, out, message, 300);
}

static segue_store *must_open(open_fn open, const char *where)
{
    char message[300];
    segue_store *store;
    if (open_at(open, where, &store, message))
        fail_msg("%s: %s", where, message);
    return store;
}

/* ---- what a kept file has ---- */

/* Twelve operations with as many entries as their number: 3, 6, 9 and 12 have keys, 2 was
 * released, 10 to 12 have ended, 12 is never purged. The store was then closed. */
static void fill(segue_store *store)
{
    for (uint32_t n = 1; n <= 12; n++) {
        test_record r;
        test_record_init(&r, n);
        if (n % 3 == 0)
            test_record_set_key(&r, n);
        assert_int_equal(test_commit_one(store, test_write_create(&r)), SEGUE_OK);
        for (uint64_t seq = 1; seq <= n; seq++)
            test_must_append(store, n, seq);
        if (n >= 10)
            assert_int_equal(
                test_commit_one(store, test_write_end(n, n < 12 ? 12000 : INT64_MAX)),
                SEGUE_OK);
    }
    assert_int_equal(test_commit_one(store, test_write_simple(SEGUE_STORE_RELEASE, 2)),
                     SEGUE_OK);
}

typedef struct claims {
    size_t count, torn;
} claims;

static int32_t count_claim(void *user, const segue_store_record *record)
{
    claims *c = user;
    c->count++;
    c->torn += record->ended == SEGUE_STORE_TORN;
    return 0;
}

/* Ends an operation with an entry of this number. */
static void end(segue_store *store, uint32_t n, uint64_t seq)
{
    char data[TEST_ENTRY_MAX];
    segue_store_write writes[] = {
        test_write_append(n, seq, data, test_entry_fill(data, n, seq)),
        test_write_end(n, 12000)};
    writes[1].entry.seq = seq;
    assert_int_equal(sgi_store_commit(store, writes, 2), SEGUE_OK);
}

/* Everything is there, and can be gone on with: what may lack its end is only ended.
 * torn: how many of the nine running operations a claim shows as such. */
static void check(segue_store *store, size_t torn)
{
    claims c = {0};
    int64_t next;
    for (uint32_t n = 1; n <= 12; n++) {
        test_assert_log(store, n, n);
        assert_int_equal(test_find(store, n), SEGUE_OK);
        assert_int_equal(test_must_find(store, n).ended, n >= 10);
        assert_int_equal(test_must_find(store, n).has_key, n % 3 == 0);
    }
    assert_int_equal(sgi_store_claim(store, count_claim, &c), SEGUE_OK);
    assert_int_equal(c.count, 9);
    assert_int_equal(c.torn, torn);
    for (uint32_t n = 1; n <= 9; n++)
        end(store, n, torn ? 1000 : n + 1);
    do
        assert_int_equal(sgi_store_purge(store, 12000, &next), SEGUE_OK);
    while (next == 12000);
    for (uint32_t n = 1; n <= 11; n++)
        assert_int_equal(test_find(store, n), SEGUE_E_NOT_FOUND);
    test_assert_log(store, 12, 12);
    test_must_create(store, 13);
    test_must_append(store, 13, 1);
}

static char *read_kept(const char *name, size_t *len)
{
    char path[300];
    static char bytes[FILE_MOST];
    snprintf(path, sizeof path, "%s/%s", SEGUE_FILES_DIR, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("this format has no kept file: %s", path);
    *len = fread(bytes, 1, sizeof bytes - 1, file);
    assert_true(feof(file));
    fclose(file);
    bytes[*len] = 0;
    return bytes;
}

/* Gives the store the newest format. Without older servers only its wait is between, so
 * only builds whose wait can be set do this. */
static void bring_up_to_date(segue_store *store)
{
#ifdef SGI_KNOBS
    test_store_await_newest(store);
#endif
    (void)store;
}

static void expect_refused(open_fn open, const char *where, const char *words)
{
    char message[300] = "";
    segue_store *store;
    assert_int_equal(open_at(open, where, &store, message), SEGUE_E_STORE_CORRUPT);
    assert_null(store);
    if (!strstr(message, words))
        fail_msg("%s", message);
}

/* ---- SQLite ---- */

static void kept_sqlite_files_are_opened(void **state)
{
    (void)state;
    for (int number = 1; number <= OUR_SQLITE_FORMAT; number++) {
        char name[40];
        size_t len;
        test_clear_directory();
        snprintf(name, sizeof name, "store_format_%d.db", number);
        const char *bytes = read_kept(name, &len);
        test_write_file("db", bytes, len);
        segue_store *store = must_open(sgi_store_sqlite_new, test_path("db"));
        check(store, 0);
        bring_up_to_date(store);
        sgi_store_unref(store);
        sqlite3 *db = test_connect("db");
        assert_int_equal(test_query_int(db, "PRAGMA user_version"),
                         number == OUR_SQLITE_FORMAT || CAN_BE_BROUGHT
                             ? OUR_SQLITE_FORMAT
                             : OUR_SQLITE_FORMAT - 1);
        sqlite3_close(db);
        sgi_store_unref(must_open(sgi_store_sqlite_new, test_path("db")));
    }
}

static void newer_sqlite_file_is_refused(void **state)
{
    (void)state;
    test_clear_directory();
    sgi_store_unref(must_open(sgi_store_sqlite_new, test_path("db")));
    sqlite3 *db = test_connect("db");
    test_exec(db, "PRAGMA user_version = 77");
    sqlite3_close(db);
    expect_refused(sgi_store_sqlite_new, test_path("db"),
                   "newer version of Segue (format 77, this version reads up to 3)");
}

/* ---- Redis ---- */

/* Sends a file of commands, as Redis keeps it. */
static void send_commands(redis_server *server, const char *bytes, size_t len)
{
    redisContext *to = redisConnect("127.0.0.1", redis_server_port(server));
    assert_true(to && !to->err);
    assert_int_equal(redisAppendFormattedCommand(to, bytes, len), REDIS_OK);
    redisReply *reply = NULL;
    redisAppendCommand(to, "ECHO end");
    for (bool end = false; !end; freeReplyObject(reply)) {
        assert_int_equal(redisGetReply(to, (void **)&reply), REDIS_OK);
        if (reply->type == REDIS_REPLY_ERROR)
            fail_msg("%s", reply->str);
        end = reply->type == REDIS_REPLY_STRING && !strcmp(reply->str, "end");
    }
    redisFree(to);
}

static void kept_redis_commands_are_opened(void **state)
{
    (void)state;
    for (int number = 1; number <= OUR_REDIS_FORMAT; number++) {
        char name[40];
        size_t len;
        redis_server *server;
        assert_true(redis_server_start(NULL, &server));
        snprintf(name, sizeof name, "redis_format_%d.aof", number);
        const char *bytes = read_kept(name, &len);
        send_commands(server, bytes, len);
        segue_store *store = must_open(sgi_store_redis_new, redis_server_url(server));
        check(store, 9);
        bring_up_to_date(store);
        sgi_store_unref(store);
        sgi_store_unref(must_open(sgi_store_redis_new, redis_server_url(server)));
        redis_server_stop(server);
    }
}

static void newer_redis_data_are_refused(void **state)
{
    (void)state;
    redis_server *server;
    assert_true(redis_server_start(NULL, &server));
    sgi_store_unref(must_open(sgi_store_redis_new, redis_server_url(server)));
    assert_true(redis_server_do(server, "SET {segue}:format 77") >= 0);
    expect_refused(sgi_store_redis_new, redis_server_url(server),
                   "newer version of Segue (format 77, this version reads up to 2)");
    redis_server_stop(server);
}

/* ---- PostgreSQL ---- */

/* Runs the SQL text of a dump. */
static void restore(postgres_server *server, const char *sql)
{
    PGconn *to = PQconnectdb(postgres_server_unix_url(server));
    PGresult *result = PQexec(to, sql);
    if (PQresultStatus(result) == PGRES_FATAL_ERROR)
        fail_msg("%s", PQresultErrorMessage(result));
    PQclear(result);
    PQfinish(to);
}

/* The server of the dump is another one: what runs may lack its end. */
static void kept_postgres_dumps_are_opened(void **state)
{
    (void)state;
    postgres_server *server;
    assert_true(postgres_server_start(NULL, &server));
    for (int number = 1; number <= OUR_POSTGRES_FORMAT; number++) {
        char name[40];
        size_t len;
        postgres_server_do(server, "DROP SCHEMA IF EXISTS segue CASCADE");
        snprintf(name, sizeof name, "postgres_format_%d.sql", number);
        restore(server, read_kept(name, &len));
        segue_store *store =
            must_open(sgi_store_postgres_new, postgres_server_unix_url(server));
        check(store, 9);
        bring_up_to_date(store);
        sgi_store_unref(store);
        assert_int_equal(
            postgres_server_do(server, "SELECT max(number) FROM segue.migration"),
            CAN_BE_BROUGHT ? OUR_POSTGRES_FORMAT : number);
        sgi_store_unref(
            must_open(sgi_store_postgres_new, postgres_server_unix_url(server)));
    }
    postgres_server_stop(server);
}

static void newer_postgres_schema_is_refused(void **state)
{
    (void)state;
    postgres_server *server;
    assert_true(postgres_server_start(NULL, &server));
    const char *url = postgres_server_unix_url(server);
    sgi_store_unref(must_open(sgi_store_postgres_new, url));
    postgres_server_do(server, "INSERT INTO segue.migration (number) VALUES (77)");
    expect_refused(sgi_store_postgres_new, url,
                   "newer version of Segue (format 77, this version reads up to 2)");
    postgres_server_stop(server);
}

/* ---- making the files ---- */

static bool shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

static bool shell(const char *format, ...)
{
    char command[1000];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    return system(command) == 0;
}

static void keep_store(open_fn open, const char *where)
{
    segue_store *store = must_open(open, where);
    fill(store);
    sgi_store_unref(store);
}

static void keep_sqlite(const char *directory)
{
    keep_store(sgi_store_sqlite_new, test_path("db"));
    assert_true(shell("cp %s %s/store_format_%d.db", test_path("db"), directory,
                      OUR_SQLITE_FORMAT));
}

static void keep_redis(const char *directory)
{
    redis_server *server;
    assert_true(redis_server_start(NULL, &server));
    keep_store(sgi_store_redis_new, redis_server_url(server));
    redis_server_do(server, "CONFIG SET aof-use-rdb-preamble no");
    redis_server_do(server, "CONFIG SET appendonly yes");
    while (redis_server_info(server, "aof_rewrite_in_progress") ||
           redis_server_info(server, "aof_rewrite_scheduled"))
        ;
    assert_true(shell("cp %s/appendonlydir/*.base.aof %s/redis_format_%d.aof",
                      redis_server_directory(server), directory, OUR_REDIS_FORMAT));
    redis_server_stop(server);
}

/* The lines that begin with a backslash are for psql alone. */
static void keep_postgres(const char *directory)
{
    postgres_server *server;
    assert_true(postgres_server_start(NULL, &server));
    keep_store(sgi_store_postgres_new, postgres_server_unix_url(server));
    assert_true(
        shell("pg_dump --inserts --no-owner --no-privileges --schema=segue '%s' | "
              "grep -v '^[\\]' > %s/postgres_format_%d.sql",
              postgres_server_unix_url(server), directory, OUR_POSTGRES_FORMAT));
    postgres_server_stop(server);
}

static const char *keep_in;

static void keep_all(void **state)
{
    (void)state;
    keep_sqlite(keep_in);
    keep_redis(keep_in);
    keep_postgres(keep_in);
}

int main(int count, char **words)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_sqlite_files_are_opened),
        cmocka_unit_test(newer_sqlite_file_is_refused),
        cmocka_unit_test(kept_redis_commands_are_opened),
        cmocka_unit_test(newer_redis_data_are_refused),
        cmocka_unit_test(kept_postgres_dumps_are_opened),
        cmocka_unit_test(newer_postgres_schema_is_refused),
    };
    const struct CMUnitTest keeping[] = {cmocka_unit_test(keep_all)};
    if (test_directory_make())
        return 1;
#ifdef SGI_KNOBS
    sgi_thresholds.format_wait_ms = 0;
#endif
    keep_in = count == 3 && !strcmp(words[1], "--keep") ? words[2] : NULL;
    int failures = keep_in ? cmocka_run_group_tests(keeping, NULL, NULL)
                           : cmocka_run_group_tests(tests, NULL, NULL);
    test_directory_remove();
    return failures;
}
