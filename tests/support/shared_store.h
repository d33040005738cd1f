/* A store that several servers share, made with the public headers alone, as an
 * application would make one. The data is in memory, in a place. Each store on a place
 * acts like a store of another process: it is an owner with a lease. */
#ifndef SHARED_STORE_H
#define SHARED_STORE_H

#include <segue/segue_ext.h>

typedef struct shared_place shared_place;
typedef struct shared_store shared_store;

/* Makes a place. shared_place_free and the last store on the place free it together.
 * clock NULL = real time. */
shared_place *shared_place_new(int64_t lease_ms, int64_t (*clock)(void *), void *user);
void shared_place_free(shared_place *place);

typedef struct shared_options {
    int32_t blocking;
    int32_t unleased; /* 1 = the function table of the store has no lease functions */
    const segue_store_options *options;
} shared_options;

segue_status shared_store_new(shared_place *place, const shared_options *options,
                              shared_store **self, segue_store **out);

/* Makes the next `commits` commits return SEGUE_E_STORE. applied: 1 = these commits take
 * effect nevertheless. */
void shared_store_fail(shared_store *self, int commits, int applied);
/* Cuts the store off from its place (away = 1): every call fails, and the lease of the
 * store lapses. */
void shared_store_away(shared_store *self, int away);

/* Makes the next `commits` commits return this status without effect. */
void shared_store_refuse(shared_store *self, int commits, segue_status status);
/* The process of the store dies: every call fails from now on. When the store is freed,
 * nobody can claim its operations before its lease has lapsed. */
void shared_store_die(shared_store *self);
/* The process dies at the countdown-th commit from now, late: 1 = after the commit was
 * applied. *died is set then. */
void shared_store_die_at(shared_store *self, int countdown, int late, int *died);
/* From now on entries that nobody needs are removed (SEGUE_STORE_DROP). */
void shared_place_drop(shared_place *place);
/* Loses what was written in the last `ms`, as a store does that confirms writes before
 * they are on two machines or on a disk. */
void shared_place_lose(shared_place *place, int64_t ms);

/* ---- what is in the place ---- */

/* Return the number of final entries in all logs, and of commits that were refused
 * because of another owner. */
int shared_place_finals(const shared_place *place);
int shared_place_fenced(const shared_place *place);

#endif
