/* A PostgreSQL server whose disk is full or fails, which loses power, and whose clock
 * jumps. The server runs with tests/tools/failing_disk.c. The loss of power is judged by
 * what PostgreSQL says that it has flushed: the server is ended as in a crash, and the
 * bytes of its log behind pg_current_wal_flush_lsn() are overwritten with zeros. Data in
 * the tables that are not in the flushed log cannot be on the disk, because PostgreSQL
 * writes no page before its log. label: threads */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/failing_disk.h"
#include "support/news_kit.h"
#include "support/postgres_server.h"
#include "support/store_kit.h"

#include <cmocka.h>

/* The time limit is long, for slow machines. */
#define PATIENCE_MS 120000
#define LASTING_MS 3600000
#define HURRIED_MS 2000
#define WAL_SEGMENT 16777216L /* bytes of a file of the log */
#define SEGMENTS 256          /* files of the log in 4 GiB */
#define MANY 2000             /* more appends than fit into the free room of a table */

static postgres_server *server;
static failing_disk *disk;

static int clear(void **state)
{
    (void)state;
    *disk = (failing_disk){.error = EIO};
    return postgres_server_do(server, "DROP SCHEMA IF EXISTS segue CASCADE; "
                                      "CHECKPOINT") < 0;
}

static segue_store *open_with(const char *options, int64_t timeout_ms, int64_t lease_ms)
{
    char message[300], url[256];
    segue_store *store = NULL;
    segue_store_options times = {
        .struct_size = sizeof times, .timeout_ms = timeout_ms, .lease_ms = lease_ms};
    snprintf(url, sizeof url, "%s%s", postgres_server_unix_url(server), options);
    if (sgi_store_postgres_new(url, &times, &store, message, sizeof message))
        fail_msg("%s", message);
    return store;
}

static segue_store *must_open(void)
{
    return open_with("", PATIENCE_MS, LASTING_MS);
}

static segue_status append(segue_store *store, uint32_t n, uint64_t seq)
{
    char data[TEST_ENTRY_MAX];
    size_t len = test_entry_fill(data, n, seq);
    return test_commit_one(store, test_write_append(n, seq, data, len));
}

static void fail_next(failing_call call, int error, int32_t count)
{
    atomic_store(&disk->error, error);
    atomic_store(&disk->failed[call], 0);
    atomic_store(&disk->left[call], count);
}

/* ---- a full disk ---- */

/* Only what needs room is refused. When there is room again, everything goes on. */
static void full_disk_refuses_and_recovers(void **state)
{
    (void)state;
    segue_store *store = must_open();
    uint64_t last = 1;
    test_must_create(store, 1);
    test_must_create(store, 2);
    test_must_append(store, 1, 1);
    fail_next(FAILING_TABLE_WRITE, ENOSPC, -1);
    segue_status status = SEGUE_OK;
    while (last < MANY && !(status = append(store, 1, last + 1)))
        last++;
    assert_int_equal(status, SEGUE_E_STORE_FULL);
    assert_true(atomic_load(&disk->failed[FAILING_TABLE_WRITE]) > 0);
    test_assert_log(store, 1, last);
    assert_int_equal(append(store, 1, last + 1), SEGUE_E_STORE_FULL);
    assert_int_equal(test_commit_one(store, test_write_end(2, INT64_MAX)), SEGUE_OK);
    fail_next(FAILING_TABLE_WRITE, ENOSPC, 0);
    test_must_append(store, 1, last + 1);
    test_assert_log(store, 1, last + 1);
    assert_int_equal(test_must_find(store, 2).ended, 1);
    sgi_store_unref(store);
}

/* ---- a disk that fails ---- */

static void write_that_fails_is_repeated(void **state)
{
    (void)state;
    segue_store *store = must_open();
    test_must_create(store, 1);
    fail_next(FAILING_TABLE_WRITE, EIO, 3);
    uint64_t last = 0;
    while (last < MANY && atomic_load(&disk->left[FAILING_TABLE_WRITE]) > 0)
        test_must_append(store, 1, ++last);
    assert_int_equal(atomic_load(&disk->failed[FAILING_TABLE_WRITE]), 3);
    test_assert_log(store, 1, last);
    sgi_store_unref(store);
}

static void read_that_fails_is_repeated(void **state)
{
    (void)state;
    segue_store *store = must_open();
    test_must_create(store, 1);
    for (uint64_t seq = 1; seq <= 50; seq++)
        test_must_append(store, 1, seq);
    postgres_server_signal(server, SIGINT); /* nothing of it is in memory afterwards */
    assert_true(postgres_server_again(server));
    assert_int_equal(test_find(store, 1), SEGUE_OK); /* connects */
    fail_next(FAILING_TABLE_READ, EIO, 2);
    test_assert_log(store, 1, 50);
    assert_int_equal(atomic_load(&disk->failed[FAILING_TABLE_READ]), 2);
    sgi_store_unref(store);
}

/* The log of PostgreSQL cannot be written or synced: the server ends all sessions and
 * recovers. The commit is then repeated, and applied once. */
static void log_that_fails_costs_nothing(void **state)
{
    static const failing_call calls[] = {FAILING_LOG_WRITE, FAILING_LOG_WRITE,
                                         FAILING_LOG_SYNC};
    static const int errors[] = {ENOSPC, EIO, EIO};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(clear(state), 0);
        segue_store *store = open_with("&synchronous_commit=on", PATIENCE_MS, LASTING_MS);
        test_must_create(store, 1);
        test_must_append(store, 1, 1);
        fail_next(calls[i], errors[i], 1);
        test_must_append(store, 1, 2);
        assert_int_equal(atomic_load(&disk->failed[calls[i]]), 1);
        test_must_append(store, 1, 3);
        test_assert_log(store, 1, 3);
        assert_int_equal(test_claim_count(store), 0);
        sgi_store_unref(store);
    }
}

/* A disk that does not work again in time: the commit has failed, and what was stored
 * stays. */
static void disk_that_stays_broken_is_told(void **state)
{
    (void)state;
    sgi_store_unref(must_open()); /* makes the tables */
    segue_store *store = open_with("", HURRIED_MS, LASTING_MS);
    test_must_create(store, 1);
    fail_next(FAILING_TABLE_WRITE, EIO, -1);
    uint64_t last = 0;
    segue_status status = SEGUE_OK;
    while (last < MANY && !(status = append(store, 1, last + 1)))
        last++;
    assert_int_equal(status, SEGUE_E_STORE);
    fail_next(FAILING_TABLE_WRITE, EIO, 0);
    assert_int_equal(append(store, 1, last + 1), SEGUE_OK);
    test_assert_log(store, 1, last + 1);
    sgi_store_unref(store);
}

/* ---- a loss of power ---- */

/* Overwrites the log behind the flushed part with zeros. Nothing follows the file that
 * has the end, except files that are still empty. */
static void cut_log(long long file, long long offset)
{
    char path[160];
    static const char zeros[8192];
    struct stat info;
    snprintf(path, sizeof path, "%s/pg_wal/%08X%08X%08X", postgres_server_data(server), 1,
             (unsigned)(file >> 32), (unsigned)file);
    FILE *log = fopen(path, "r+b");
    assert_non_null(log);
    assert_int_equal(fstat(fileno(log), &info), 0);
    assert_int_equal(fseek(log, (long)offset, SEEK_SET), 0);
    for (long long left = info.st_size - offset; left > 0;) {
        size_t n = left < (long long)sizeof zeros ? (size_t)left : sizeof zeros;
        assert_int_equal(fwrite(zeros, 1, n, log), n);
        left -= (long long)n;
    }
    assert_int_equal(fclose(log), 0);
}

static void lose_power(void)
{
    long long flushed =
        postgres_server_do(server, "SELECT pg_current_wal_flush_lsn() - '0/0'");
    assert_true(flushed > 0);
    postgres_server_signal(server, SIGQUIT);
    long long segment = flushed / WAL_SEGMENT;
    cut_log(segment / SEGMENTS << 32 | segment % SEGMENTS, flushed % WAL_SEGMENT);
    assert_true(postgres_server_again(server));
}

static int32_t keep_ended(void *user, const segue_store_record *record)
{
    *(int32_t *)user = record->ended;
    return 0;
}

static segue_status vouch(test_ear *ear, uint32_t n, uint64_t upto)
{
    segue_store_write write = test_write_taken(n, 0);
    write.entry.event = upto;
    return test_commit_by(ear, write);
}

/* Gives the operation up, as its owner would that died long ago. */
static void orphan(uint32_t n)
{
    assert_int_equal(postgres_server_do(server,
                                        "UPDATE segue.operation SET owner = NULL "
                                        "WHERE task_id = 'task-%u'",
                                        n),
                     0);
}

/* Commits that wait for the disk are all there, and nobody is in doubt. */
static void power_loss_takes_nothing_that_was_synced(void **state)
{
    (void)state;
    int32_t ended = -1;
    segue_store *store = open_with("&synchronous_commit=on", PATIENCE_MS, LASTING_MS);
    segue_store *dead = open_with("&synchronous_commit=on", PATIENCE_MS, LASTING_MS);
    for (uint32_t n = 1; n <= 3; n++)
        test_must_create(store, n);
    test_must_create(dead, 4);
    for (uint64_t seq = 1; seq <= 20; seq++)
        for (uint32_t n = 1; n <= 3; n++)
            test_must_append(store, n, seq);
    test_must_append(dead, 4, 1);
    long long breaks = postgres_server_do(server, "SELECT breaks FROM segue.history");
    lose_power();
    for (uint32_t n = 1; n <= 3; n++)
        test_assert_log(store, n, 20);
    assert_int_equal(postgres_server_do(server, "SELECT breaks FROM segue.history"),
                     breaks);
    orphan(4);
    assert_int_equal(sgi_store_claim(store, keep_ended, &ended), SEGUE_OK);
    assert_int_equal(ended, SEGUE_STORE_LIVE);
    test_assert_log(store, 4, 1);
    sgi_store_unref(store);
    sgi_store_unref(dead);
}

/* Commits that do not wait are lost, and only the newest ones. Each owner that lives
 * finds out what its operations lack; what belonged to a dead owner is torn. */
static void power_loss_takes_the_newest_commits_and_says_so(void **state)
{
    (void)state;
    int32_t ended = -1;
    test_ear ear;
    segue_store *alive = open_with("&synchronous_commit=off", PATIENCE_MS, LASTING_MS);
    segue_store *dead = open_with("&synchronous_commit=off", PATIENCE_MS, LASTING_MS);
    test_ear_open(&ear, alive);
    for (uint32_t n = 1; n <= 2; n++) {
        test_must_create(alive, n);
        test_must_append(alive, n, 1);
    }
    test_must_create(dead, 3);
    assert_int_equal(postgres_server_do(server, "CHECKPOINT"), 0); /* flushes all */
    test_must_append(alive, 1, 2);
    test_must_create(alive, 4);
    lose_power();
    test_ear_wait(&ear, SEGUE_STORE_DOUBT, 0);
    assert_int_equal(vouch(&ear, 1, 2), SEGUE_E_STATE);
    assert_int_equal(vouch(&ear, 2, 1), SEGUE_OK);
    assert_int_equal(vouch(&ear, 4, 1), SEGUE_E_NOT_FOUND);
    test_assert_log(alive, 1, 1);
    assert_int_equal(append(alive, 1, 3), SEGUE_E_STATE); /* no number is used again */
    test_must_append(alive, 2, 2);
    orphan(3);
    assert_int_equal(sgi_store_claim(alive, keep_ended, &ended), SEGUE_OK);
    assert_int_equal(ended, SEGUE_STORE_TORN);
    test_ear_close(&ear);
    sgi_store_unref(alive);
    sgi_store_unref(dead);
}

/* ---- a clock that jumps ---- */

static void jump_to(int64_t seconds)
{
    atomic_store(&disk->jump_s, seconds);
}

/* The clock of PostgreSQL is set forward: a lease lapses early, and its owner is fenced
 * as if it had been silent. */
static void clock_that_jumps_forward_fences(void **state)
{
    (void)state;
    segue_store *mine = must_open(), *theirs = must_open();
    test_must_create(mine, 1);
    test_must_append(mine, 1, 1);
    assert_int_equal(test_claim_count(theirs), 0);
    jump_to(2 * LASTING_MS / 1000);
    assert_int_equal(test_claim_count(theirs), 1);
    test_must_append(theirs, 1, 2);
    assert_int_equal(append(mine, 1, 3), SEGUE_E_FENCED);
    test_assert_log(mine, 1, 2);
    sgi_store_unref(mine);
    sgi_store_unref(theirs);
}

/* Waits until the living owners have renewed their leases this many times. */
static void await_beats(int count)
{
    for (long long before, at; count > 0; count--) {
        before = postgres_server_do(server, "SELECT sum(seen)::bigint FROM segue.lease");
        do
            at = postgres_server_do(server, "SELECT sum(seen)::bigint FROM segue.lease");
        while (at == before);
    }
}

/* The clock of PostgreSQL is set back by more than a lease after an owner died. Its
 * operations wait for one lease by the new clock, not until the old time comes again. */
static void clock_that_jumps_back_does_not_prolong_leases(void **state)
{
    (void)state;
    jump_to(5 * LASTING_MS / 1000);
    segue_store *dead = must_open();
    test_must_create(dead, 1);
    jump_to(2 * LASTING_MS / 1000);
    segue_store *alive = open_with("", PATIENCE_MS, 600);
    await_beats(2);
    assert_int_equal(test_claim_count(alive), 0);
    jump_to(4 * LASTING_MS / 1000);
    assert_int_equal(test_claim_count(alive), 1);
    sgi_store_unref(alive);
    sgi_store_unref(dead);
}

/* ---- the server ---- */

/* PostgreSQL runs as another user, who may be unable to read the directory of the build.
 * So the library is copied to a place that every user can read. */
static bool copy_library(const char *to)
{
    struct stat about;
    int in = open(SEGUE_FAILING_DISK_LIBRARY, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    bool ok = in >= 0 && out >= 0 && !fstat(in, &about) && !fchmod(out, 0755);
    while (ok && about.st_size > 0) {
        ssize_t copied = sendfile(out, in, NULL, (size_t)about.st_size);
        ok = copied > 0;
        about.st_size -= copied;
    }
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    return ok;
}

typedef struct place {
    char directory[32], page[48], library[48];
} place;

static bool begin(place *p)
{
    strcpy(p->directory, "/tmp/segue-disk-XXXXXX");
    if (!mkdtemp(p->directory) || chmod(p->directory, 0755))
        return false;
    snprintf(p->page, sizeof p->page, "%s/page", p->directory);
    snprintf(p->library, sizeof p->library, "%s/library.so", p->directory);
    int fd = open(p->page, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 || fchmod(fd, 0666) || ftruncate(fd, sizeof *disk) ||
        !copy_library(p->library))
        return false;
    void *memory = mmap(NULL, sizeof *disk, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (memory == MAP_FAILED)
        return false;
    disk = memory;
    setenv("SEGUE_FAILING_DISK", p->page, 1);
    setenv("LD_PRELOAD", p->library, 1);
    return true;
}

static void end(const place *p)
{
    unlink(p->page);
    unlink(p->library);
    rmdir(p->directory);
}

int main(void)
{
    static const char *const extra[] = {"-c", "fsync=on",
                                        "-c", "wal_writer_delay=10s",
                                        "-c", "wal_sync_method=fdatasync",
                                        "-c", "autovacuum=off",
                                        NULL};
    const struct CMUnitTest cases[] = {
        cmocka_unit_test_setup(full_disk_refuses_and_recovers, clear),
        cmocka_unit_test_setup(write_that_fails_is_repeated, clear),
        cmocka_unit_test_setup(read_that_fails_is_repeated, clear),
        cmocka_unit_test(log_that_fails_costs_nothing),
        cmocka_unit_test_setup(disk_that_stays_broken_is_told, clear),
        cmocka_unit_test_setup(power_loss_takes_nothing_that_was_synced, clear),
        cmocka_unit_test_setup(power_loss_takes_the_newest_commits_and_says_so, clear),
        cmocka_unit_test_setup(clock_that_jumps_forward_fences, clear),
        cmocka_unit_test_setup(clock_that_jumps_back_does_not_prolong_leases, clear),
    };
    place p;
    if (!begin(&p) || !postgres_server_start(extra, &server)) {
        end(&p);
        return 1;
    }
    int failures = cmocka_run_group_tests(cases, NULL, NULL);
    postgres_server_stop(server);
    end(&p);
    return failures;
}
