/* A store around another one that fails, dies or forgets where it is told, and keeps
 * account of what was written: how many ends each operation has, and that no entry ever
 * changes.
 *
 * In process a death is a flag: nothing is written any more, and `died` tells the world
 * to stop listening. In a process of its own it is a real kill -9. */
#ifndef FAULT_STORE_H
#define FAULT_STORE_H

#include <segue/segue_ext.h>

typedef struct fault_store fault_store;

typedef enum fault_where {
    FAULT_NONE,
    FAULT_BEFORE, /* dies before the commit is written */
    FAULT_AFTER,  /* dies when it is written, before anybody hears of it */
    FAULT_REFUSE, /* answers `status`, as often as told, and writes nothing */
} fault_where;

/* path: a SQLite file, or NULL for a memory store. Who owns the handle frees it all. */
fault_store *fault_store_new(const char *path, segue_store **handle);
/* The same on a thread of its own, as a SQLite store is: what leaves too early gets
 * out. */
fault_store *fault_store_new_blocking(const char *path, segue_store **handle);

/* In commit n from now (1 = the next), counting only those that hold an entry of this
 * kind of write (0 = any). died: set to 1 at death; NULL = a real kill. */
void fault_store_die(fault_store *f, fault_where where, int32_t kind, int n, int *died);
/* The next `times` commits answer with the status. */
void fault_store_refuse(fault_store *f, segue_status status, int times);
/* SEGUE_FAULT of a fixture server: "before:N", "after:N", "before-create:N", "full:N". */
void fault_store_plan(fault_store *f, const char *plan);
/* Another process opens the same store. */
void fault_store_revive(fault_store *f);
/* Entries up to this sequence number are gone when they are read. */
void fault_store_trim(fault_store *f, uint64_t upto);

/* From here on what is dropped stays where it is, as a store may have it. */
void fault_store_keep(fault_store *f);

/* Closes the account: tasks written so far are not spoken of any more. */
void fault_store_forget(fault_store *f);
/* Task ids ever written, in order of creation; NULL behind the last. */
const char *fault_store_task(const fault_store *f, size_t i);
/* How many entries that end an operation were written for it. */
int fault_store_finals(const fault_store *f, size_t i);
/* Entries that were written a second time with other bytes. */
int fault_store_changed(const fault_store *f);
int fault_store_commits(const fault_store *f);
/* How often it was asked for an operation, and for entries of one. */
int fault_store_finds(const fault_store *f);
int fault_store_reads(const fault_store *f);
int fault_store_drops(const fault_store *f); /* writes that drop entries */
int fault_store_refusals(const fault_store *f);

#endif
