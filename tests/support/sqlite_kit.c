/* Files and child processes for tests of the SQLite store. A child inherits the pipes of
 * earlier children, so closing a pipe does not end a waiting child while other children
 * live. Such a child gets a signal. */
#include "support/sqlite_kit.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cmocka.h>

char test_directory[] = "/tmp/segue-sqlite-XXXXXX";

int test_directory_make(void)
{
    return mkdtemp(test_directory) ? 0 : -1;
}

void test_directory_remove(void)
{
    test_clear_directory();
    rmdir(test_directory);
}

const char *test_path(const char *name)
{
    static char paths[4][96];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", test_directory, name);
    return path;
}

void test_clear_directory(void)
{
    DIR *dir = opendir(test_directory);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
}

int test_directory_setup(void **state)
{
    (void)state;
    test_clear_directory();
    return 0;
}

segue_status test_sqlite_status(const char *name, segue_store **out, char *message)
{
    return sgi_store_sqlite_new(test_path(name), NULL, out, message, 200);
}

segue_store *test_must_open(const char *name)
{
    char message[200];
    segue_store *store = NULL;
    if (test_sqlite_status(name, &store, message))
        fail_msg("%s", message);
    return store;
}

sqlite3 *test_connect(const char *name)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(test_path(name), &db), SQLITE_OK);
    return db;
}

void test_exec(sqlite3 *db, const char *sql)
{
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
}

int64_t test_query_int(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

/* ---- files ---- */

test_bytes test_file_bytes(const char *name)
{
    test_bytes b = {NULL, 0};
    FILE *file = fopen(test_path(name), "rb");
    if (!file)
        return b;
    fseek(file, 0, SEEK_END);
    b.n = (size_t)ftell(file);
    rewind(file);
    b.p = malloc(b.n + 1);
    assert_non_null(b.p);
    assert_int_equal(fread(b.p, 1, b.n, file), b.n);
    fclose(file);
    return b;
}

void test_write_file(const char *name, const char *p, size_t n)
{
    FILE *file = fopen(test_path(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(p, 1, n, file), n);
    fclose(file);
}

int test_count_files(const char *where)
{
    int count = 0;
    DIR *dir = opendir(where);
    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

/* ---- children ---- */

test_child test_child_start(void (*work)(int to, int from, uint32_t n), uint32_t n)
{
    int out[2], in[2];
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        close(out[0]);
        close(in[1]);
        work(out[1], in[0], n);
        _exit(0);
    }
    close(out[1]);
    close(in[0]);
    return (test_child){pid, out[0], in[1]};
}

bool test_child_hear(const test_child *c, uint64_t *word)
{
    ssize_t n = read(c->from, word, sizeof *word);
    assert_true(n == 0 || n == (ssize_t)sizeof *word);
    return n != 0;
}

void test_child_say(int to, uint64_t word)
{
    TEST_CHILD_CHECK(write(to, &word, sizeof word) == (ssize_t)sizeof word);
}

/* Returns the wait status. */
int test_child_end(test_child *c, int signal_number)
{
    int status;
    if (signal_number)
        kill(c->pid, signal_number);
    close(c->to);
    assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
    close(c->from);
    return status;
}

segue_store *test_child_open(void)
{
    char message[200];
    segue_store *store = NULL;
    segue_status status = test_sqlite_status("db", &store, message);
    if (status)
        fprintf(stderr, "child: %s\n", message);
    TEST_CHILD_CHECK(!status);
    return store;
}

void test_child_create(segue_store *store, uint32_t n)
{
    test_record r;
    test_record_init(&r, n);
    TEST_CHILD_CHECK(test_commit_one(store, test_write_create(&r)) == SEGUE_OK);
}

/* Commits `count` entries from `seq` on in one commit. */
segue_status test_append_batch(segue_store *store, uint32_t n, uint64_t seq, size_t count)
{
    static char data[64][TEST_ENTRY_MAX];
    segue_store_write writes[64];
    for (size_t i = 0; i < count; i++) {
        size_t len = test_entry_fill(data[i], n, seq + i);
        writes[i] = test_write_append(n, seq + i, data[i], len);
    }
    return sgi_store_commit(store, writes, count);
}

/* Waits until the parent closes its pipe; the store stays open during this wait. */
void test_child_wait(int from)
{
    char byte;
    while (read(from, &byte, 1) > 0)
        ;
}
