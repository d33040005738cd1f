/* What the files that open a SQLite store share: sqlite_file.c goes the way, and on it
 * sqlite_format.c checks, makes and brings up to date what is in the file, and
 * sqlite_owners.c takes a number in the file beside it. */
#ifndef SGI_SQLITE_OPEN_H
#define SGI_SQLITE_OPEN_H

#include "store/sqlite_file.h"

typedef struct sgi_sqlite_opening {
    sgi_sqlite_file *file;
    const char *path;
    int64_t busy_ms;
    char *message;
    size_t size;
    int64_t format; /* as it was found; 0 = there was nothing */
} sgi_sqlite_opening;

/* Both write the message and return the status. */
__attribute__((format(printf, 3, 4))) segue_status
sgi_sqlite_fail(sgi_sqlite_opening *o, segue_status status, const char *format, ...);
/* The last call on the connection failed with code. */
segue_status sgi_sqlite_fail_code(sgi_sqlite_opening *o, int code);

/* Codes of SQLite. Runs one statement; *value (may be NULL) receives the first column of
 * its first row. */
int sgi_sqlite_query_int(sqlite3 *db, const char *sql, int64_t *value);
int sgi_sqlite_exec(sqlite3 *db, const char *sql);

/* Reads only; o->format receives the format. */
segue_status sgi_sqlite_check_format(sgi_sqlite_opening *o);
/* Brings the file to our format, from nothing or from an older one. */
segue_status sgi_sqlite_upgrade(sgi_sqlite_opening *o);
/* Opens the side file and takes a number of our own. */
segue_status sgi_sqlite_become_owner(sgi_sqlite_opening *o);

#endif
