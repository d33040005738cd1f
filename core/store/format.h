/* The format of a store that servers of several versions use at the same time.
 *
 * Formats that older servers can ignore are taken when a store is opened. A format that
 * older servers cannot read waits: each server that knows it looks regularly whether an
 * older server lives, and takes the format when none has lived for format_wait_ms. Until
 * then servers write what older servers can read, and older servers can open the store.
 * Afterwards an older server that opens the store is refused with both numbers.
 * core/docs/upgrades.md has the rules.
 *
 * Each owner of a store shows which formats it reads: sqlite_owners.c by a lock,
 * redis_script.c and postgres_schema.c in its name. An owner that does not show it is an
 * older server. */
#ifndef SGI_STORE_FORMAT_H
#define SGI_STORE_FORMAT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct sgi_store_format {
    /* the format of the store when this instance last looked; any thread may read it */
    atomic_int number;
    bool alone; /* the last look found no older server */
    /* since when no look has found an older server; monotonic clock, ms */
    int64_t alone_since_ms;
} sgi_store_format;

/* Records the result of a look. Returns true when the store may take the next format now.
 * older: an older server lives, or this is not known. */
bool sgi_store_format_is_due(sgi_store_format *format, bool older, int64_t now_ms);
/* Starts the wait again, because the store could not take the format. */
void sgi_store_format_wait_again(sgi_store_format *format);
/* Returns the format of records and entries that servers may write now. of_records_2: the
 * first format of the store that has records of format 2. May be called on any thread. */
int32_t sgi_store_format_records(const sgi_store_format *format, int of_records_2);

#endif
