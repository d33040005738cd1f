/* A store around another store. This store fails, dies or forgets data when the test says
 * so. It also records what was written, to check how many entries end each operation and
 * that no entry ever changes.
 *
 * Inside the test's process a death is a flag: the store writes nothing more, and `died`
 * tells the world to stop listening. In a server process the death is a real kill -9. */
#ifndef FAULT_STORE_H
#define FAULT_STORE_H

#include <segue/segue_ext.h>

typedef struct fault_store fault_store;

typedef enum fault_where {
    FAULT_NONE,
    FAULT_BEFORE, /* dies before the commit is written */
    FAULT_AFTER,  /* dies when the commit is written, before it is reported */
    FAULT_REFUSE, /* answers `status` for a number of commits and writes nothing */
} fault_where;

/* path: a SQLite file, or NULL for a memory store. Freeing the handle frees both
 * stores. */
fault_store *fault_store_new(const char *path, segue_store **handle);
/* Makes a fault store that runs on a thread of its own, as a SQLite store does. Then
 * output that is sent too early leaves the process before a death. */
fault_store *fault_store_new_blocking(const char *path, segue_store **handle);

/* Plans the death in commit n from now (1 = the next). Only commits with a write of this
 * kind count (0 = any). died: set to 1 at the death; NULL = a real kill. */
void fault_store_die(fault_store *f, fault_where where, int32_t kind, int n, int *died);
/* The next `times` commits answer with the status. */
void fault_store_refuse(fault_store *f, segue_status status, int times);
/* The next `times` commits of the server's key fail. */
void fault_store_refuse_key(fault_store *f, int times);
/* The next search for the server's key finds none, as if another server stored it after
 * that. */
void fault_store_hide_key(fault_store *f);
/* The next `times` reads of a log answer with the status. */
void fault_store_fail_reads(fault_store *f, segue_status status, int times);
/* Reads SEGUE_FAULT of a fixture server: "before:N", "after:N", "before-create:N",
 * "full:N". */
void fault_store_plan(fault_store *f, const char *plan);
/* Opens the same store again, as another process would. */
void fault_store_revive(fault_store *f);
/* Hides the entries up to this sequence number from readers. */
void fault_store_trim(fault_store *f, uint64_t upto);

/* Makes dropped entries stay readable from now on, as in a store that drops entries
 * late. */
void fault_store_keep(fault_store *f);

/* The store takes no newer records and entries than of this format from now on. */
void fault_store_take_records(fault_store *f, int32_t format);

/* Forgets the recorded tasks, so that tasks written so far are not checked any more. */
void fault_store_forget(fault_store *f);
/* Returns the id of the i-th created task; NULL behind the last. */
const char *fault_store_task(const fault_store *f, size_t i);
/* Returns how many entries that end the operation were written for this task. */
int fault_store_finals(const fault_store *f, size_t i);
/* Returns how many entries were written a second time with other bytes. */
int fault_store_changed(const fault_store *f);
int fault_store_commits(const fault_store *f);
/* Return how often the store was asked for an operation (finds), and for entries of an
 * operation (reads). */
int fault_store_finds(const fault_store *f);
int fault_store_reads(const fault_store *f);
int fault_store_drops(const fault_store *f); /* counts writes that drop entries */
/* Return how many operations the store has given to servers, with all claims together and
 * with the largest one. */
int fault_store_claimed(const fault_store *f);
int fault_store_most_claimed(const fault_store *f);
int fault_store_refusals(const fault_store *f);

#endif
