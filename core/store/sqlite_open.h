/* The state that three files share while a SQLite store opens. sqlite_file.c runs the
 * steps; sqlite_format.c checks, creates and upgrades the tables; sqlite_owners.c takes
 * an owner number in the side file. */
#ifndef SGI_SQLITE_OPEN_H
#define SGI_SQLITE_OPEN_H

#include "store/sqlite_file.h"

typedef struct sgi_sqlite_opening {
    sgi_sqlite_file *file;
    const char *path;
    int64_t busy_ms;
    char *message;
    size_t size;
    /* the format of the file when it was last read; 0 = the file was empty */
    int64_t format;
} sgi_sqlite_opening;

/* Writes the error message and returns `status`. */
__attribute__((format(printf, 3, 4))) segue_status
sgi_sqlite_fail_opening(sgi_sqlite_opening *o, segue_status status, const char *format,
                        ...);
/* Writes the error message for a call of SQLite that failed with `code`. Returns the
 * store's status for this code. */
segue_status sgi_sqlite_fail_opening_by_code(sgi_sqlite_opening *o, int code);

/* Runs one statement and returns SQLite's code. *value (may be NULL) receives the first
 * column of the first row. */
int sgi_sqlite_query_int(sqlite3 *db, const char *sql, int64_t *value);
int sgi_sqlite_exec(sqlite3 *db, const char *sql);

/* Checks the file without writing to it. o->format receives the format of the file. */
segue_status sgi_sqlite_check_format(sgi_sqlite_opening *o);
/* Reads the number of the format into o->format, and refuses the format of a newer
 * library. */
segue_status sgi_sqlite_read_format(sgi_sqlite_opening *o);
/* Creates the tables in the newest format, or gives a file of an older format the formats
 * that older servers can ignore, in one transaction. */
segue_status sgi_sqlite_upgrade(sgi_sqlite_opening *o);
/* Opens the side file and takes an owner number for this instance. */
segue_status sgi_sqlite_become_owner(sgi_sqlite_opening *o);
/* Lets the connection wait for locks, each at most busy_ms. The side file is open. */
void sgi_sqlite_turn_init(sgi_sqlite_file *file, int64_t busy_ms);
/* Locks or unlocks the byte in the side file that names the instance that writes next.
 * Returns true when this instance has the lock afterwards. */
bool sgi_sqlite_lock_turn(const sgi_sqlite_file *file, bool on);
/* True when another instance has this lock. */
bool sgi_sqlite_turn_is_taken(const sgi_sqlite_file *file);
/* True when an instance lives that cannot read this format, or when the locks cannot be
 * read. */
bool sgi_sqlite_older_lives(const sgi_sqlite_file *file, int format);

#endif
