/* The inside of shared_store.h: what instances of one place share. shared_place.c has the
 * operations and what a commit does to them, shared_store.c the table of functions. */
#ifndef SHARED_PLACE_H
#define SHARED_PLACE_H

#include "support/shared_store.h"

#include <pthread.h>
#include <sys/queue.h>

#define SHARED_BUCKETS 16384

enum { SHARED_BY_ID, SHARED_BY_TASK, SHARED_BY_KEY, SHARED_CHAINS };

typedef struct shared_op {
    struct shared_op *next[SHARED_CHAINS];
    segue_store_record record; /* its texts are in `texts` */
    char *texts;
    shared_store *owner; /* NULL = nobody */
    segue_store_entry *entries;
    size_t count, cap;
    uint64_t posted; /* letters that ever came */
    uint64_t told;   /* letters that its owner was shown */
    int gone;        /* deleted in the commit under way */
    unsigned made;   /* by which commit of the place */
} shared_op;

typedef struct shared_letter {
    TAILQ_ENTRY(shared_letter) link;
    shared_op *to;
    uint64_t number;
    size_t len;
    char data[];
} shared_letter;

struct shared_place {
    pthread_mutex_t lock;
    int refs;
    shared_op *buckets[SHARED_CHAINS][SHARED_BUCKETS];
    TAILQ_HEAD(, shared_letter) letters;
    LIST_HEAD(, shared_store) all;
    int64_t lease_ms;
    int64_t (*clock)(void *);
    void *clock_user;
    unsigned commits;
    int finals, fenced;
};

typedef struct shared_follow {
    uint8_t id[SEGUE_STORE_ID_SIZE];
    int grew;
} shared_follow;

struct shared_store {
    LIST_ENTRY(shared_store) link;
    shared_place *place;
    int leased;
    int fail, applied, away;
    int64_t seen_ms;
    int lapsed;
    int orphans, doubt; /* to be told */
    shared_follow *follows;
    size_t follow_count;
    void (*ring)(void *user);
    void *ring_user;
};

/* All of these with the lock of the place held. */
void *shared_get(void *old, size_t size);
shared_op *shared_find_id(const shared_place *p, const uint8_t *id);
shared_op *shared_find_task(const shared_place *p, const char *task_id);
shared_op *shared_find_key(const shared_place *p, const uint8_t *key);
/* Out of the table. */
void shared_pull(shared_place *p, const shared_op *o);
void shared_free_op(shared_place *p, shared_op *o);
int64_t shared_now(const shared_place *p);
void shared_ring(const shared_store *s);
void shared_tell_growth(const shared_store *by, const shared_op *o);
void shared_tell_orphans(shared_place *p, const shared_store *except);
segue_status shared_write(shared_store *s, const segue_store_write *writes, size_t count);

#endif
