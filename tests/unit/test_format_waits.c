/* A format that older servers cannot read waits until none of them lives. Until then the
 * store keeps its format, so that an older server can open it, and servers write records
 * and entries of the former format. Afterwards an older server is refused.
 *
 * The older servers of these tests are what an older version of the library leaves in the
 * store: owners that do not show which formats they read.
 * label: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <fcntl.h>

#include <libpq-fe.h>

#include "base/thresholds.h"
#include "store/format.h"
#include "support/news_kit.h"
#include "support/postgres_server.h"
#include "support/redis_server.h"
#include "support/sqlite_kit.h"

#include <cmocka.h>

#define WAIT_MS SGI_THRESHOLD(format_wait_ms)
#define LEASE_MS 100
#define BEATS 3

/* ---- the wait ---- */

static void a_format_waits_for_older_servers(void **state)
{
    sgi_store_format format = {0};
    (void)state;
    assert_false(sgi_store_format_is_due(&format, true, 1000));
    assert_false(sgi_store_format_is_due(&format, false, 2000));
    assert_false(sgi_store_format_is_due(&format, false, 2000 + WAIT_MS - 1));
    assert_true(sgi_store_format_is_due(&format, false, 2000 + WAIT_MS));
}

static void an_older_server_begins_the_wait_again(void **state)
{
    sgi_store_format format = {0};
    (void)state;
    assert_false(sgi_store_format_is_due(&format, false, 0));
    assert_false(sgi_store_format_is_due(&format, true, WAIT_MS));
    assert_false(sgi_store_format_is_due(&format, false, WAIT_MS));
    assert_false(sgi_store_format_is_due(&format, false, 2 * WAIT_MS - 1));
    assert_true(sgi_store_format_is_due(&format, false, 2 * WAIT_MS));
    sgi_store_format_wait_again(&format);
    assert_false(sgi_store_format_is_due(&format, false, 2 * WAIT_MS));
}

#ifdef SGI_KNOBS

/* ---- what the stores share ---- */

static sgi_threshold_values usual;

static int wait_not_at_all(void **state)
{
    (void)state;
    usual = sgi_thresholds;
    sgi_thresholds.format_wait_ms = 0;
    sgi_thresholds.sqlite_orphans_ms = 1;
    return 0;
}

static int wait_as_usual(void **state)
{
    (void)state;
    sgi_thresholds = usual;
    return 0;
}

typedef segue_status (*open_fn)(const char *where, const segue_store_options *options,
                                segue_store **out, char *message, size_t size);

static segue_store *must_open(open_fn open, const char *where)
{
    segue_store_options options = {.struct_size = sizeof options, .lease_ms = LEASE_MS};
    char message[300] = "";
    segue_store *store = NULL;
    if (open(where, &options, &store, message, sizeof message))
        fail_msg("%s: %s", where, message);
    return store;
}

/* What is in a kept file, and what an operation of this test adds. */
static void check_log(segue_store *store)
{
    for (uint32_t n = 1; n <= 12; n++)
        test_assert_log(store, n, n);
}

/* ---- SQLite ---- */

static int lock_owner(const char *name, int64_t number)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)number, .l_len = 1};
    int fd = open(test_path(name), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
    return fd;
}

static void copy_kept(const char *kept, const char *to)
{
    char path[300];
    static char bytes[1024 * 1024];
    snprintf(path, sizeof path, "%s/%s", SEGUE_FILES_DIR, kept);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t len = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    test_write_file(to, bytes, len);
}

/* An older instance becomes an owner with this statement. */
static int become_older_owner(sqlite3 *db, char *message, size_t size)
{
    int code = sqlite3_exec(db, "UPDATE owners SET last = last + 1", NULL, NULL, NULL);
    snprintf(message, size, "%s", sqlite3_errmsg(db));
    return code;
}

static void sqlite_waits_for_older_servers(void **state)
{
    char message[300];
    static test_ear ear;
    (void)state;
    test_clear_directory();
    copy_kept("store_format_2.db", "db");
    int older = lock_owner("db-owners", 4000);
    segue_store *first = must_open(sgi_store_sqlite_new, test_path("db"));
    segue_store *second = must_open(sgi_store_sqlite_new, test_path("db"));
    sqlite3 *db = test_connect("db");
    test_ear_open(&ear, first);
    test_ear_ask(&ear);
    test_ear_close(&ear);
    assert_int_equal(sgi_store_records(first), 1);
    assert_int_equal(test_query_int(db, "PRAGMA user_version"), 2);
    assert_int_equal(become_older_owner(db, message, sizeof message), SQLITE_OK);
    check_log(first);
    close(older);
    test_store_await_newest(first);
    test_store_await_newest(second);
    assert_int_equal(test_query_int(db, "PRAGMA user_version"), 3);
    /* one that has checked the format before */
    assert_int_not_equal(become_older_owner(db, message, sizeof message), SQLITE_OK);
    assert_non_null(strstr(message, "newer version of Segue (format 3)"));
    check_log(second);
    segue_store *third = must_open(sgi_store_sqlite_new, test_path("db"));
    assert_int_equal(sgi_store_records(third), SGI_RECORDS);
    sgi_store_unref(third);
    sqlite3_close(db);
    sgi_store_unref(second);
    sgi_store_unref(first);
}

/* ---- Redis ---- */

#define OLDER "77.0a1b2c3d"

/* Returns the time at which a server last renewed its lease. The command has no spaces,
 * which separate arguments. */
static long long last_beat(redis_server *server)
{
    return redis_server_do(
        server,
        "EVAL local\tm=0\tfor\t_,v\tin\tipairs(redis.call('HVALS','{segue}:seen'))"
        "do\tm=math.max(m,tonumber(v))end\treturn\tm 0");
}

static void await_beats(redis_server *server)
{
    for (int i = 0; i < BEATS; i++)
        for (long long before = last_beat(server); last_beat(server) == before;)
            ;
}

static long long redis_format(redis_server *server)
{
    return redis_server_do(server,
                           "EVAL return\ttonumber(redis.call('GET','{segue}:format')) 0");
}

static void redis_waits_for_older_servers(void **state)
{
    redis_server *server;
    (void)state;
    assert_true(redis_server_start(NULL, &server));
    const char *url = redis_server_url(server);
    sgi_store_unref(must_open(sgi_store_redis_new, url));
    assert_true(redis_server_do(server, "SET {segue}:format 1") >= 0);
    assert_int_equal(redis_server_do(server, "HSET {segue}:owners " OLDER " 60000"), 1);
    assert_true(redis_server_do(server, "SET {segue}:lease:" OLDER " 1") >= 0);
    segue_store *first = must_open(sgi_store_redis_new, url);
    segue_store *second = must_open(sgi_store_redis_new, url);
    await_beats(server);
    assert_int_equal(sgi_store_records(first), 1);
    assert_int_equal(redis_format(server), 1);
    assert_int_equal(redis_server_do(server, "DEL {segue}:lease:" OLDER), 1);
    assert_int_equal(redis_server_do(server, "HDEL {segue}:owners " OLDER), 1);
    test_store_await_newest(first);
    test_store_await_newest(second);
    assert_int_equal(redis_format(server), 2);
    sgi_store_unref(second);
    sgi_store_unref(first);
    redis_server_stop(server);
}

/* ---- PostgreSQL ---- */

static long long last_lease(postgres_server *server)
{
    return postgres_server_do(server, "SELECT max(seen) FROM segue.lease");
}

/* Runs a statement that must fail, and checks the error message. */
static void expect_error(postgres_server *server, const char *sql, const char *words)
{
    PGconn *to = PQconnectdb(postgres_server_unix_url(server));
    PGresult *result = PQexec(to, sql);
    assert_int_equal(PQresultStatus(result), PGRES_FATAL_ERROR);
    if (!strstr(PQresultErrorMessage(result), words))
        fail_msg("%s", PQresultErrorMessage(result));
    PQclear(result);
    PQfinish(to);
}

static void postgres_waits_for_older_servers(void **state)
{
    static const char older[] = "INSERT INTO segue.lease VALUES "
                                "('0a1b2c3d-0000-4000-8000-000000000000', 60000, "
                                "segue.now_ms() - 1000)";
    postgres_server *server;
    (void)state;
    assert_true(postgres_server_start(NULL, &server));
    const char *url = postgres_server_unix_url(server);
    sgi_store_unref(must_open(sgi_store_postgres_new, url));
    postgres_server_do(server, "DROP FUNCTION segue.refuse_older CASCADE");
    postgres_server_do(server, "DELETE FROM segue.migration WHERE number = 2");
    assert_int_equal(postgres_server_do(server, "%s", older), 0);
    segue_store *first = must_open(sgi_store_postgres_new, url);
    segue_store *second = must_open(sgi_store_postgres_new, url);
    for (int i = 0; i < BEATS; i++)
        for (long long before = last_lease(server); last_lease(server) == before;)
            ;
    assert_int_equal(sgi_store_records(first), 1);
    assert_int_equal(
        postgres_server_do(server, "SELECT max(number) FROM segue.migration"), 1);
    assert_int_equal(
        postgres_server_do(server, "DELETE FROM segue.lease WHERE ms = 60000"), 0);
    test_store_await_newest(first);
    test_store_await_newest(second);
    assert_int_equal(
        postgres_server_do(server, "SELECT max(number) FROM segue.migration"), 2);
    /* an owner that was away, or has checked the format before */
    expect_error(server, older, "written by a newer version of Segue (format 2)");
    expect_error(server,
                 "INSERT INTO segue.owner (id, done, loose) VALUES "
                 "('0a1b2c3d-0000-4000-8000-000000000000', 0, false)",
                 "written by a newer version of Segue (format 2)");
    sgi_store_unref(second);
    sgi_store_unref(first);
    postgres_server_stop(server);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_format_waits_for_older_servers),
        cmocka_unit_test(an_older_server_begins_the_wait_again),
#ifdef SGI_KNOBS
        cmocka_unit_test_setup_teardown(sqlite_waits_for_older_servers, wait_not_at_all,
                                        wait_as_usual),
        cmocka_unit_test_setup_teardown(redis_waits_for_older_servers, wait_not_at_all,
                                        wait_as_usual),
        cmocka_unit_test_setup_teardown(postgres_waits_for_older_servers, wait_not_at_all,
                                        wait_as_usual),
#endif
    };
    if (test_directory_make())
        return 1;
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    test_directory_remove();
    return failures;
}
