/* The SQLite file of a store: opening, checking and creating it, and the side file that
 * says which of its owners live. sqlite.c has the store itself. */
#ifndef SGI_SQLITE_FILE_H
#define SGI_SQLITE_FILE_H

#include <sqlite3.h>

#include "store/store.h"

typedef struct sgi_sqlite_file {
    sqlite3 *db;
    int owners;    /* descriptor of the side file; -1 = none */
    int64_t owner; /* our number, the byte we hold locked in it; never 0 */
} sgi_sqlite_file;

/* The key of a log row is the operation's number and the entry's: one integer, so that
 * the rows of an operation lie together and an append is a step at the end of a
 * B-tree. */
#define SGI_SQLITE_SEQ_BITS 26
#define SGI_SQLITE_SEQ_MAX ((INT64_C(1) << SGI_SQLITE_SEQ_BITS) - 1)
#define SGI_SQLITE_OP_MAX (INT64_MAX >> SGI_SQLITE_SEQ_BITS)

/* What an operation and an entry count for beside their data. */
#define SGI_SQLITE_RECORD_COST 256
#define SGI_SQLITE_ENTRY_COST 32

/* Opens or creates. A file that cannot be used is left as it was, and message (may be
 * NULL, size bytes) receives a line that says why. On failure nothing needs closing. */
segue_status sgi_sqlite_file_open(sgi_sqlite_file *file, const char *path,
                                  const segue_store_options *options, char *message,
                                  size_t size);
/* All statements must be finalised. */
void sgi_sqlite_file_close(sgi_sqlite_file *file);
/* Whether the instance with that number may still write. Says yes when it cannot tell. */
bool sgi_sqlite_owner_lives(const sgi_sqlite_file *file, int64_t owner);
/* Whether any other instance may write to the file. Says yes when it cannot tell. */
bool sgi_sqlite_others_live(const sgi_sqlite_file *file);
/* What a result code of SQLite means to a caller of the store; error: errno as the
 * failing call left it. */
segue_status sgi_sqlite_status(int code, int error);

#endif
