/* The SQLite file of a store: opening, checking and creating the file, and the side file
 * that shows which owners of the store are alive. The store itself is in sqlite.c. */
#ifndef SGI_SQLITE_FILE_H
#define SGI_SQLITE_FILE_H

#include <sqlite3.h>

#include "store/format.h"
#include "store/store.h"

/* The waiting of an instance for its turn to write (sqlite_turn.c). */
typedef struct sgi_sqlite_turn {
    int64_t busy_ms;  /* the longest time in ms for which a lock is awaited */
    int64_t since_ms; /* the time since which a lock is awaited; monotonic clock, ms */
    bool begins;      /* true = a transaction is about to begin */
    bool held;        /* true = this instance is the one that writes next */
    /* until this time, an instance that does not use its turn is passed by */
    int64_t passes_until_ms;
} sgi_sqlite_turn;

typedef struct sgi_sqlite_file {
    sqlite3 *db;
    int owners; /* the descriptor of the side file; -1 = not open */
    /* the owner number of this instance, never 0; this instance has locked the byte with
     * this number in the side file */
    int64_t owner;
    sgi_sqlite_turn turn;
    sgi_store_format format;
} sgi_sqlite_file;

/* The newest format that this library reads and writes. */
#define SGI_SQLITE_FORMAT 3
/* The newest format that is taken when a file is opened. Older servers can ignore it. */
#define SGI_SQLITE_FORMAT_AT_ONCE 2
/* The format from which on records and entries have format 2 (core/docs/upgrades.md). */
#define SGI_SQLITE_FORMAT_OF_RECORDS_2 3

/* The key of a log row is one integer: the number of the operation in its high bits,
 * the number of the entry in its low bits. Therefore the rows of an operation lie
 * together, and an append adds a row at the end of the operation's range in the
 * B-tree. */
#define SGI_SQLITE_SEQ_BITS 26
#define SGI_SQLITE_SEQ_MAX ((INT64_C(1) << SGI_SQLITE_SEQ_BITS) - 1)
#define SGI_SQLITE_OP_MAX (INT64_MAX >> SGI_SQLITE_SEQ_BITS)

/* The bytes that each operation and each entry count in addition to their data. */
#define SGI_SQLITE_RECORD_COST 256
#define SGI_SQLITE_ENTRY_COST 32

/* Opens or creates the file. A file that cannot be used is not changed. On failure
 * `message` (may be NULL; has `size` bytes) receives one line with the reason, and the
 * caller need not close anything. */
segue_status sgi_sqlite_file_open(sgi_sqlite_file *file, const char *path,
                                  const segue_store_options *options, char *message,
                                  size_t size);
/* Closes the file. The caller has finalised all statements. */
void sgi_sqlite_file_close(sgi_sqlite_file *file);
/* True when the instance with this owner number can still write to the file, or when its
 * lock cannot be read. */
bool sgi_sqlite_owner_lives(const sgi_sqlite_file *file, int64_t owner);
/* True when any other instance can write to the file, or when the locks cannot be
 * read. */
bool sgi_sqlite_others_live(const sgi_sqlite_file *file);
/* Called before and after a transaction is begun. An instance that has waited longer may
 * begin first. */
void sgi_sqlite_turn_begin(sgi_sqlite_file *file);
void sgi_sqlite_turn_end(sgi_sqlite_file *file);
/* Looks whether the file has a newer format than at the last look. Gives it the newest
 * format when no older instance has lived for format_wait_ms. now_ms: monotonic clock. */
void sgi_sqlite_look_at_format(sgi_sqlite_file *file, int64_t now_ms);
/* Returns the time of CLOCK_MONOTONIC in ms. */
int64_t sgi_sqlite_now_ms(void);
/* Returns the store's status for a result code of SQLite. error: the value of errno after
 * the failed call. */
segue_status sgi_sqlite_status(int code, int error);

#endif
