/* SQLite stores in several processes: writers that are killed, logs that are torn, owners
 * that die or live, several processes on one file, a disk that is full. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "store/sqlite_file.h"
#include "support/sqlite_kit.h"

#include <cmocka.h>

/* ---- crashes ---- */

#define CRASH_OPS 3

/* The writer commits small batches to its three operations for ever and reports each
 * batch in a word: the operation's index and the last durable number. */
static void write_until_killed(int to, int from, uint32_t base)
{
    (void)from;
    segue_store *store = test_child_open();
    uint64_t last[CRASH_OPS] = {0};
    for (uint32_t i = 0; i < CRASH_OPS; i++) {
        test_child_create(store, base + i);
        test_child_say(to, i);
    }
    for (uint32_t round = 0;; round++) {
        uint32_t i = round % CRASH_OPS;
        size_t count = 1 + round * 7 % 13;
        TEST_CHILD_CHECK(test_append_batch(store, base + i, last[i] + 1, count) ==
                         SEGUE_OK);
        last[i] += count;
        test_child_say(to, last[i] << 8 | i);
    }
}

static void spin(unsigned turns)
{
    for (volatile unsigned i = 0; i < turns; i++)
        ;
}

static void killed_writer_loses_nothing_it_acknowledged(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 40; round++) {
        uint32_t base = round * CRASH_OPS;
        uint64_t acked[CRASH_OPS] = {0}, word;
        unsigned created = 0, acks = 0, stop = 1 + round * 5;
        test_child writer = test_child_start(write_until_killed, base);
        while (acks < stop && test_child_hear(&writer, &word))
            acks++, created += !(word >> 8), acked[word & 0xff] = word >> 8;
        assert_int_equal(acks, stop);
        spin(round * 331 % 4000);
        kill(writer.pid, SIGKILL);
        while (test_child_hear(&writer, &word))
            created += !(word >> 8), acked[word & 0xff] = word >> 8;
        assert_int_equal(WTERMSIG(test_child_end(&writer, 0)), SIGKILL);

        segue_store *store = test_must_open("db");
        unsigned found = 0;
        for (uint32_t i = 0; i < CRASH_OPS; i++) {
            if (test_find(store, base + i)) {
                assert_true(i >= created);
                continue;
            }
            found++;
            uint64_t last = test_log_last(store, base + i, 1);
            assert_true(last >= acked[i]);
            assert_true(last <= acked[i] + 13); /* the log has at most the entries of one
                                                 * more commit, which was in progress */
        }
        assert_true(found >= created && found <= created + 1);
        assert_int_equal(test_claim_count(store), found);
        for (uint32_t i = 0; i < found; i++)
            assert_int_equal(test_commit_one(store, test_write_end(base + i, INT64_MAX)),
                             SEGUE_OK);
        sgi_store_unref(store);
    }
}

static void write_and_vanish(int to, int from, uint32_t n)
{
    (void)from;
    segue_store *store = test_child_open();
    test_child_create(store, n);
    for (uint64_t seq = 1; seq <= 90; seq += 3)
        TEST_CHILD_CHECK(test_append_batch(store, n, seq, 3) == SEGUE_OK);
    test_child_say(to, 90);
    kill(getpid(), SIGKILL);
}

/* Returns how much of the log of operation 1 a copy with this write-ahead log still
 * has. */
static uint64_t last_with_wal(const test_bytes *file, const char *wal, size_t len)
{
    test_clear_directory();
    test_write_file("db", file->p, file->n);
    test_write_file("db-wal", wal, len);
    segue_store *store = test_must_open("db");
    uint64_t last = 0;
    if (!test_find(store, 1)) {
        last = test_log_last(store, 1, 1);
        assert_int_equal(last % 3, 0); /* the entries of a commit are in the log all or
                                        * not at all */
        assert_int_equal(test_claim_count(store), 1);
        test_must_append(store, 1, last + 1);
    }
    sgi_store_unref(store);
    return last;
}

static void torn_log_opens_with_a_prefix(void **state)
{
    (void)state;
    uint64_t word = 0;
    test_child writer = test_child_start(write_and_vanish, 1);
    assert_true(test_child_hear(&writer, &word));
    test_child_end(&writer, 0);
    test_bytes file = test_file_bytes("db"), wal = test_file_bytes("db-wal");
    uint64_t last, before = 90;
    assert_int_equal(last_with_wal(&file, wal.p, wal.n), 90);
    size_t cuts = 0, steps = 0;
    for (size_t len = wal.n; len > 0; len -= len < 2777 ? len : 2777) {
        last = last_with_wal(&file, wal.p, len);
        assert_true(last <= before);
        cuts += last < before;
        steps++;
        before = last;
    }
    assert_int_equal(before, 0);
    assert_true(cuts > 10 && steps > cuts);
    /* Wrong bytes end the log at the commit before them. */
    for (size_t at = wal.n - 1, i = 0; i < 30; i++, at -= wal.n / 31) {
        wal.p[at] ^= 0x10;
        assert_true(last_with_wal(&file, wal.p, wal.n) < 90);
        wal.p[at] ^= 0x10;
    }
    free(file.p);
    free(wal.p);
}

/* ---- owners ---- */

static void own_and_wait(int to, int from, uint32_t count)
{
    segue_store *store = test_child_open();
    for (uint32_t n = 0; n < count; n++)
        test_child_create(store, n);
    test_child_say(to, count);
    test_child_wait(from);
}

static void tasks_of_a_killed_owner_are_claimed_at_once(void **state)
{
    (void)state;
    uint64_t word;
    test_child owner = test_child_start(own_and_wait, 25);
    assert_true(test_child_hear(&owner, &word));
    segue_store *store = test_must_open("db");
    test_must_create(store, 100);
    for (int i = 0; i < 20; i++)
        assert_int_equal(test_claim_count(store), 0);
    kill(owner.pid, SIGSTOP); /* a stopped process is still the owner */
    assert_int_equal(test_claim_count(store), 0);
    test_child_end(&owner, SIGKILL);
    assert_int_equal(test_claim_count(store), 25);
    assert_int_equal(test_claim_count(store), 0);
    for (uint32_t n = 0; n < 25; n++)
        test_must_append(store, n, 1);
    sgi_store_unref(store);
}

static void two_stores_of_one_process_are_two_owners(void **state)
{
    (void)state;
    segue_store *one = test_must_open("db"), *two = test_must_open("db");
    test_must_create(one, 1);
    test_must_create(two, 2);
    assert_int_equal(test_claim_count(one), 0);
    assert_int_equal(test_claim_count(two), 0);
    /* Only the owner of an operation can release it. */
    assert_int_equal(test_commit_one(two, test_write_simple(SEGUE_STORE_RELEASE, 1)),
                     SEGUE_OK);
    assert_int_equal(test_claim_count(two), 0);
    assert_int_equal(test_commit_one(one, test_write_simple(SEGUE_STORE_RELEASE, 1)),
                     SEGUE_OK);
    assert_int_equal(test_claim_count(two), 1);
    assert_int_equal(test_claim_count(one), 0);
    sgi_store_unref(two);
    assert_int_equal(test_claim_count(one), 2);
    sgi_store_unref(one);
}

/* Each generation dies with unfinished work. Owner numbers are never reused, so the next
 * generation finds the tasks of all dead owners and none of the living one. */
static void owners_of_many_generations(void **state)
{
    (void)state;
    segue_store *living = NULL;
    for (uint32_t round = 0; round < 30; round++) {
        segue_store *store = test_must_open("db");
        assert_int_equal(test_claim_count(store), round);
        test_must_create(store, round);
        sgi_store_unref(store);
    }
    living = test_must_open("db");
    test_must_create(living, 1000);
    assert_int_equal(test_claim_count(living), 30);
    for (uint32_t round = 0; round < 5; round++) {
        segue_store *store = test_must_open("db");
        assert_int_equal(test_claim_count(store), 0);
        sgi_store_unref(store);
    }
    sgi_store_unref(living);
}

static void locked_number_of_an_older_file_is_skipped(void **state)
{
    (void)state;
    sgi_sqlite_file old, fresh, next;
    assert_int_equal(sgi_sqlite_file_open(&old, test_path("db"), NULL, NULL, 0),
                     SEGUE_OK);
    assert_int_equal(old.owner, 1);
    unlink(test_path("db"));
    unlink(test_path("db-wal"));
    unlink(test_path("db-shm"));
    assert_int_equal(sgi_sqlite_file_open(&fresh, test_path("db"), NULL, NULL, 0),
                     SEGUE_OK);
    assert_int_equal(fresh.owner, 2);
    assert_true(sgi_sqlite_owner_lives(&fresh, 1));
    sgi_sqlite_file_close(&old);
    assert_false(sgi_sqlite_owner_lives(&fresh, 1));
    assert_true(sgi_sqlite_owner_lives(&fresh, 2));
    assert_int_equal(sgi_sqlite_file_open(&next, test_path("db"), NULL, NULL, 0),
                     SEGUE_OK);
    assert_int_equal(next.owner, 3);
    assert_true(sgi_sqlite_owner_lives(&next, 2));
    sgi_sqlite_file_close(&fresh);
    sgi_sqlite_file_close(&next);
}

static int32_t tell_claimed(void *user, const segue_store_record *record)
{
    unsigned n = 0;
    TEST_CHILD_CHECK(sscanf(record->task_id, "task-%u", &n) == 1);
    test_child_say(*(int *)user, n + 1);
    return 0;
}

static void claim_and_wait(int to, int from, uint32_t n)
{
    (void)n;
    segue_store *store = test_child_open();
    TEST_CHILD_CHECK(sgi_store_claim(store, tell_claimed, &to) == SEGUE_OK);
    test_child_say(to, 0);
    test_child_wait(from);
}

static void each_orphan_has_one_heir(void **state)
{
    (void)state;
    enum { COUNT = 200, HEIRS = 4 };
    uint64_t word;
    int claimed[COUNT + 1] = {0};
    test_child owner = test_child_start(own_and_wait, COUNT), heirs[HEIRS];
    assert_true(test_child_hear(&owner, &word));
    test_child_end(&owner, SIGKILL);
    for (int i = 0; i < HEIRS; i++)
        heirs[i] = test_child_start(claim_and_wait, 0);
    for (int i = 0; i < HEIRS; i++)
        while (test_child_hear(&heirs[i], &word) && word)
            claimed[word]++;
    for (int n = 1; n <= COUNT; n++)
        assert_int_equal(claimed[n], 1);
    /* Only this process holds the pipes to the later children open, so all end here. */
    for (int i = 0; i < HEIRS; i++)
        test_child_end(&heirs[i], SIGKILL);
}

static int gate[2];

/* All children start when the last writing end of the gate is closed. */
static void pass_the_gate(int to, int from, uint32_t n)
{
    char byte;
    close(gate[1]);
    TEST_CHILD_CHECK(read(gate[0], &byte, 1) == 0);
    claim_and_wait(to, from, n);
}

static void new_file_opened_by_many_at_once(void **state)
{
    (void)state;
    enum { COUNT = 8 };
    test_child children[COUNT];
    uint64_t word;
    for (int round = 0; round < 12; round++) {
        test_clear_directory();
        assert_int_equal(pipe(gate), 0);
        for (int i = 0; i < COUNT; i++)
            children[i] = test_child_start(pass_the_gate, 0);
        close(gate[0]);
        close(gate[1]);
        for (int i = 0; i < COUNT; i++) {
            assert_true(test_child_hear(&children[i], &word));
            assert_int_equal(word, 0);
        }
        for (int i = 0; i < COUNT; i++)
            test_child_end(&children[i], SIGKILL);
        sqlite3 *db = test_connect("db");
        assert_int_equal(test_query_int(db, "SELECT last FROM owners"), COUNT);
        sqlite3_close(db);
    }
}

/* ---- several writers ---- */

static void append_three_hundred(int to, int from, uint32_t n)
{
    (void)from;
    segue_store *store = test_child_open();
    test_child_create(store, n);
    test_child_say(to, 0);
    for (uint64_t seq = 1; seq <= 300; seq += 2)
        TEST_CHILD_CHECK(test_append_batch(store, n, seq, 2) == SEGUE_OK);
    sgi_store_unref(store);
}

static void processes_append_while_another_reads(void **state)
{
    (void)state;
    uint64_t word, last[2] = {0};
    test_child writers[2];
    for (uint32_t i = 0; i < 2; i++)
        writers[i] = test_child_start(append_three_hundred, i);
    for (uint32_t i = 0; i < 2; i++)
        assert_true(test_child_hear(&writers[i], &word));
    segue_store *store = test_must_open("db");
    while (last[0] < 300 || last[1] < 300)
        for (uint32_t i = 0; i < 2; i++) {
            uint64_t now = test_log_last(store, i, 1);
            assert_true(now >= last[i]);
            assert_int_equal(now % 2, 0);
            last[i] = now;
        }
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(test_child_end(&writers[i], 0), 0);
    sgi_store_unref(store);
}

/* ---- no room on the disk ---- */

static void limit_files(rlim_t bytes_max)
{
    struct rlimit limit;
    TEST_CHILD_CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = bytes_max;
    TEST_CHILD_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

static int32_t keep_seq(void *user, const segue_store_entry *entry)
{
    *(uint64_t *)user = entry->seq;
    return 0;
}

static uint64_t child_last(segue_store *store, uint32_t n)
{
    uint8_t id[SEGUE_STORE_ID_SIZE];
    uint64_t last = 0;
    test_store_id(id, n);
    TEST_CHILD_CHECK(sgi_store_read(store, id, 0, keep_seq, &last) == SEGUE_OK);
    return last;
}

static void fill_the_disk(int to, int from, uint32_t n)
{
    (void)from;
    signal(SIGXFSZ, SIG_IGN);
    segue_store *store = test_child_open();
    test_child_create(store, n);
    test_child_create(store, n + 1);
    limit_files(400 * 1024);
    uint64_t last = 0;
    for (int refused = 0; refused < 5;) {
        TEST_CHILD_CHECK(last < 100000);
        segue_status status = test_append_batch(store, n, last + 1, 20);
        TEST_CHILD_CHECK(status == SEGUE_OK || status == SEGUE_E_STORE_FULL);
        if (status)
            refused++;
        else
            last += 20;
        if (status)
            TEST_CHILD_CHECK(child_last(store, n) == last);
    }
    TEST_CHILD_CHECK(last > 100);
    TEST_CHILD_CHECK(test_append_batch(store, n + 1, 1, 64) == SEGUE_E_STORE_FULL);
    limit_files(RLIM_INFINITY);
    TEST_CHILD_CHECK(test_append_batch(store, n + 1, 1, 64) == SEGUE_OK);
    TEST_CHILD_CHECK(test_append_batch(store, n, last + 1, 20) == SEGUE_OK);
    TEST_CHILD_CHECK(child_last(store, n) == last + 20);
    test_child_say(to, last + 20);
    sgi_store_unref(store);
}

static void full_disk_refuses_and_recovers(void **state) /* AS-114. */
{
    (void)state;
    uint64_t last = 0;
    test_child writer = test_child_start(fill_the_disk, 1);
    bool heard = test_child_hear(&writer, &last);
    assert_int_equal(test_child_end(&writer, 0), 0);
    assert_true(heard);
    segue_store *store = test_must_open("db");
    test_assert_log(store, 1, last);
    test_assert_log(store, 2, 64);
    sgi_store_unref(store);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test_setup(killed_writer_loses_nothing_it_acknowledged,
                               test_directory_setup),
        cmocka_unit_test_setup(torn_log_opens_with_a_prefix, test_directory_setup),
        cmocka_unit_test_setup(tasks_of_a_killed_owner_are_claimed_at_once,
                               test_directory_setup),
        cmocka_unit_test_setup(two_stores_of_one_process_are_two_owners,
                               test_directory_setup),
        cmocka_unit_test_setup(owners_of_many_generations, test_directory_setup),
        cmocka_unit_test_setup(locked_number_of_an_older_file_is_skipped,
                               test_directory_setup),
        cmocka_unit_test_setup(each_orphan_has_one_heir, test_directory_setup),
        cmocka_unit_test_setup(new_file_opened_by_many_at_once, test_directory_setup),
        cmocka_unit_test_setup(processes_append_while_another_reads,
                               test_directory_setup),
        cmocka_unit_test_setup(full_disk_refuses_and_recovers, test_directory_setup),
    };
    if (test_directory_make())
        return 1;
    int failures = cmocka_run_group_tests_name("sqlite_crash", cases, NULL, NULL);
    test_directory_remove();
    return failures ? 1 : 0;
}
