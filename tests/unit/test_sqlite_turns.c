/* Several instances that write to one SQLite file: who has to wait writes next, and the
 * operations of a dead instance are reported at once. label: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/thresholds.h"
#include "support/news_kit.h"
#include "support/sqlite_kit.h"

#include <fcntl.h>
#include <pthread.h>
#include <time.h>

#include <cmocka.h>

#ifdef SGI_KNOBS

#define ROUNDS 20
#define HOUR_MS 3600000

static void pause_shortly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

/* True when an instance has locked the byte of the one that writes next. */
static bool somebody_waits(int owners)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    assert_int_equal(fcntl(owners, F_OFD_GETLK, &lock), 0);
    return lock.l_type != F_UNLCK;
}

typedef struct writer {
    segue_store *store;
    uint32_t op;
    uint64_t seq;
    segue_status status;
    pthread_t thread;
} writer;

static void *write_one(void *user)
{
    writer *w = user;
    w->status = test_commit_one(w->store, test_write_append(w->op, w->seq, "x", 1));
    return NULL;
}

static void start(writer *w)
{
    w->seq++;
    assert_int_equal(pthread_create(&w->thread, NULL, write_one, w), 0);
}

static void join(writer *w)
{
    assert_int_equal(pthread_join(w->thread, NULL), 0);
    assert_int_equal(w->status, SEGUE_OK);
}

static int64_t row_of(sqlite3 *db, const char *sql)
{
    int64_t row = test_query_int(db, sql);
    assert_true(row > 0);
    return row;
}

/* While a third connection has the lock, one writer waits, and then another one comes.
 * A trigger numbers the rows in the order in which they are written. */
static void who_waits_writes_before_who_comes(void **state)
{
    (void)state;
    writer first = {.op = 1}, second = {.op = 2};
    first.store = test_must_open("db");
    second.store = test_must_open("db");
    test_must_create(first.store, 1);
    test_must_create(second.store, 2);
    sqlite3 *db = test_connect("db");
    test_exec(db, "CREATE TABLE written (n INTEGER PRIMARY KEY, key INTEGER);"
                  "CREATE TRIGGER write AFTER INSERT ON log BEGIN"
                  " INSERT INTO written (key) VALUES (new.key); END");
    int owners = open(test_path("db-owners"), O_RDWR | O_CLOEXEC);
    for (int i = 0; i < ROUNDS; i++) {
        test_exec(db, "BEGIN IMMEDIATE");
        start(&first);
        while (!somebody_waits(owners))
            pause_shortly();
        start(&second);
        test_exec(db, "COMMIT");
        join(&first);
        join(&second);
        int64_t one = row_of(db, "SELECT max(n) FROM written WHERE key < 2 << 26");
        int64_t two = row_of(db, "SELECT max(n) FROM written WHERE key > 2 << 26");
        assert_int_equal(one + 1, two);
        assert_false(somebody_waits(owners));
    }
    close(owners);
    sqlite3_close(db);
    sgi_store_unref(first.store);
    sgi_store_unref(second.store);
}

static sgi_threshold_values usual;

static int set_up(void **state)
{
    usual = sgi_thresholds;
    sgi_thresholds.sqlite_yield_ms = HOUR_MS;
    return test_directory_setup(state);
}

static int tear_down(void **state)
{
    (void)state;
    sgi_thresholds = usual;
    return 0;
}

/* The last other instance dies. The next poll finds its operations, although the next
 * search for operations without an owner is not due. */
static void who_is_left_alone_searches_at_once(void **state)
{
    (void)state;
    sgi_thresholds.sqlite_orphans_ms = HOUR_MS;
    segue_store *store = test_must_open("db");
    segue_store *other = test_must_open("db");
    test_ear ear;
    test_must_create(other, 1);
    test_ear_open(&ear, store);
    test_ear_ask(&ear);
    size_t before = ear.count;
    sgi_store_unref(other);
    test_ear_ask(&ear);
    assert_int_equal(ear.count, before + 1);
    assert_int_equal(ear.heard[before].kind, SEGUE_STORE_ORPHANS);
    test_ear_close(&ear);
    sgi_store_unref(store);
}

#endif

/* An instance that has taken its turn and does not write holds nobody up for long. */
static void who_does_not_use_its_turn_is_passed_by(void **state)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    (void)state;
    segue_store *store = test_must_open("db");
    segue_store *other = test_must_open("db");
    int owners = open(test_path("db-owners"), O_RDWR | O_CLOEXEC);
    assert_int_equal(fcntl(owners, F_OFD_SETLK, &lock), 0);
    test_must_create(store, 1);
    for (uint64_t seq = 1; seq <= 100; seq++)
        test_must_append(store, 1, seq);
    test_assert_log(store, 1, 100);
    close(owners);
    sgi_store_unref(store);
    sgi_store_unref(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(who_does_not_use_its_turn_is_passed_by,
                               test_directory_setup),
#ifdef SGI_KNOBS
        cmocka_unit_test_setup_teardown(who_waits_writes_before_who_comes, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(who_is_left_alone_searches_at_once, set_up,
                                        tear_down),
#endif
    };
    if (test_directory_make())
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_directory_remove();
    return failed;
}
