/* A directory for the SQLite files of a test program, and child processes that work on
 * them.
 *
 * A child is forked while this process has no store open, because locks of SQLite and of
 * owners must not be shared. The child reports over a pipe and never returns to the
 * runner. A child uses TEST_CHILD_CHECK instead of cmocka's asserts. */
#ifndef SQLITE_KIT_H
#define SQLITE_KIT_H

#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

#include <sqlite3.h>

#include "support/store_kit.h"

/* ---- files ---- */

/* Makes the directory; returns 0 when it was made. main calls this function at its start,
 * and test_directory_remove at its end. */
int test_directory_make(void);
void test_directory_remove(void);
int test_directory_setup(void **state); /* a cmocka setup function: empties the
                                         * directory */
void test_clear_directory(void);
extern char test_directory[];
/* Returns the path of a file in the directory. The texts of the last four calls stay
 * valid. */
const char *test_path(const char *name);
int test_count_files(const char *where);

typedef struct test_bytes {
    char *p;
    size_t n;
} test_bytes;

/* Reads a file. The caller frees p of the result, which is NULL when there is no such
 * file. */
test_bytes test_file_bytes(const char *name);
void test_write_file(const char *name, const char *p, size_t n);

/* ---- stores and bare connections to files in it ---- */

/* message: 200 bytes. */
segue_status test_sqlite_status(const char *name, segue_store **out, char *message);
segue_store *test_must_open(const char *name);
sqlite3 *test_connect(const char *name);
void test_exec(sqlite3 *db, const char *sql);
int64_t test_query_int(sqlite3 *db, const char *sql);
/* Commits `count` (at most 64) entries from `seq` on in one commit. */
segue_status test_append_batch(segue_store *store, uint32_t n, uint64_t seq,
                               size_t count);

/* ---- children ---- */

typedef struct test_child {
    pid_t pid;
    int from; /* pipe from the child: its words */
    int to;   /* pipe to the child: closing it lets the child end */
} test_child;

/* Runs work(to, from, n) in a child; `to` and `from` are the child's ends of the
 * pipes. */
test_child test_child_start(void (*work)(int to, int from, uint32_t n), uint32_t n);
/* Reads the next word of the child; returns false when the child is gone. */
bool test_child_hear(const test_child *child, uint64_t *word);
/* Sends the signal (0 = none), lets the child end, and returns its wait status. */
int test_child_end(test_child *child, int signal_number);

/* Functions for the child: */
void test_child_say(int to, uint64_t word);
void test_child_wait(int from);     /* waits until the child may end */
segue_store *test_child_open(void); /* opens the file "db" */
void test_child_create(segue_store *store, uint32_t n);

#define TEST_CHILD_CHECK(condition)                                                      \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "child, %s:%d: %s\n", __FILE__, __LINE__, #condition);       \
            _exit(1);                                                                    \
        }                                                                                \
    } while (0)

#endif
