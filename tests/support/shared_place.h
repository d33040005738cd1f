/* The inside of shared_store.h: the data that stores on one place share. shared_place.c
 * has the operations and applies commits to them; shared_store.c has the table of
 * functions. */
#ifndef SHARED_PLACE_H
#define SHARED_PLACE_H

#include "support/shared_store.h"

#include <pthread.h>
#include <sys/queue.h>

#define SHARED_BUCKETS 1024

enum { SHARED_BY_ID, SHARED_BY_TASK, SHARED_BY_KEY, SHARED_CHAINS };

typedef struct shared_entry {
    uint64_t seq;            /* its place in the log */
    int64_t written_ms;      /* when it was written */
    segue_store_entry entry; /* its seq is 0 once it was dropped */
} shared_entry;

typedef struct shared_op {
    struct shared_op *next[SHARED_CHAINS];
    segue_store_record record; /* its texts are in `texts` */
    char *texts;
    shared_store *owner;   /* NULL = no owner */
    shared_entry *entries; /* in the order of seq; an entry that was lost is not there */
    size_t count, cap;
    int64_t made_ms, ended_ms, live_purge_ms;
    uint64_t behind; /* in a commit that ends the operation: entries before may be lost */
    int at_risk;     /* the last entries may be lost, and the owner has not checked */
    uint64_t posted; /* number of forwarded commands so far */
    uint64_t told;   /* number of forwarded commands that its owner was shown */
    int gone;        /* deleted in the commit under way */
    unsigned made;   /* number of the commit of the place that made the operation */
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
    int drops; /* entries that nobody needs are removed */
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
    segue_status status;  /* status of the commits that fail; 0 = SEGUE_E_STORE */
    int dies;             /* the store is not closed: its lease has to lapse */
    int dead;             /* its process is gone */
    int die_in, die_late; /* the process dies at this commit, before or after it */
    int *died;
    int64_t seen_ms;
    int lapsed;
    int orphans, doubt; /* changes still to be reported to the listeners */
    shared_follow *follows;
    size_t follow_count;
    void (*wake)(void *user);
    void *wake_user;
};

/* The caller of these functions holds the lock of the place. */
void *shared_get(void *old, size_t size);
shared_op *shared_find_id(const shared_place *p, const uint8_t *id);
shared_op *shared_find_task(const shared_place *p, const char *task_id);
shared_op *shared_find_key(const shared_place *p, const uint8_t *key);
/* Removes the operation from the table. */
void shared_pull(shared_place *p, const shared_op *o);
void shared_free_op(shared_place *p, shared_op *o);
int64_t shared_now(const shared_place *p);
void shared_wake(const shared_store *s);
void shared_tell_growth(const shared_store *by, const shared_op *o);
void shared_tell_orphans(shared_place *p, const shared_store *except);
/* Returns the index of the first entry after seq. */
size_t shared_first_after(const shared_op *o, uint64_t seq);
segue_status shared_write(shared_store *s, const segue_store_write *writes, size_t count);

#endif
