/* A store that several servers share, made as an application makes one: with the public
 * headers alone. What it keeps is a place in memory; each store made on the place is an
 * instance, as if it were in another process: an owner with a lease. */
#ifndef SHARED_STORE_H
#define SHARED_STORE_H

#include <segue/segue_ext.h>

typedef struct shared_place shared_place;
typedef struct shared_store shared_store;

/* It is freed with its last instance and by shared_place_free, whichever is later. clock
 * NULL = real time. */
shared_place *shared_place_new(int64_t lease_ms, int64_t (*clock)(void *), void *user);
void shared_place_free(shared_place *place);

typedef struct shared_options {
    int32_t blocking;
    int32_t unleased; /* its table says nothing of leases */
    const segue_store_options *options;
} shared_options;

segue_status shared_store_new(shared_place *place, const shared_options *options,
                              shared_store **self, segue_store **out);

/* The next `commits` commits answer SEGUE_E_STORE; applied = they are done all the
 * same. */
void shared_store_fail(shared_store *self, int commits, int applied);
/* 1 = it reaches the place no more: everything fails, and its lease lapses. */
void shared_store_away(shared_store *self, int away);

/* ---- what is in the place ---- */

/* Final entries in all logs, and commits that were refused for another owner. */
int shared_place_finals(const shared_place *place);
int shared_place_fenced(const shared_place *place);

#endif
