/* The engine's side of a store. The committer has the operations whose entries are not
 * durable, and the requests to the store that wait for an answer (jobs). The committer
 * never calls the store. The host (the runtime) takes a commit or a job, works on it
 * without the lock, and reports the outcome:
 *     engine marks an operation dirty -> host.store(committer)
 *     host: lock, sgi_committer_fill_commit, unlock, commit,
 *           lock, sgi_committer_on_commit_done, unlock
 *     host: lock, sgi_committer_take_job, unlock, ask, lock, job->done, unlock
 *
 * A commit contains all operations that are dirty when the host takes the commit (group
 * commit). While a commit runs, new entries collect for the next commit. */
#ifndef SGI_COMMITTER_H
#define SGI_COMMITTER_H

#include "base/histogram.h"
#include "base/records.h"
#include "base/tally.h"
#include "engine/engine.h"
#include "engine/log/account.h"
#include "engine/log/entry.h"
#include "engine/log/limits.h"
#include "engine/log/store_job.h"

typedef struct sgi_op sgi_op;

/* One commit: the writes, and the operations to which the writes belong. The struct is
 * used again for each commit. The writes point into entries and records, which stay in
 * memory until sgi_committer_on_commit_done. */
typedef struct sgi_commit {
    segue_store_write *writes;
    size_t count;
    size_t cap;
    struct sgi_commit_op *ops;
    size_t op_count;
    size_t op_cap;
    /* duration of the commit in microseconds; the runtime sets this member */
    uint64_t took_us;
} sgi_commit;

/* Counts of the commits and writes to a store, and the durations of commits. */
typedef struct sgi_committer_counts {
    uint64_t commits;
    uint64_t writes;
    uint64_t failures;
    uint64_t retries; /* number of times that failed writes were tried again */
    /* number of segments that were appended to logs, stored or not, and their size */
    uint64_t segments;
    uint64_t segment_bytes;
    sgi_duration_tally took;
    sgi_histogram durations; /* of commits (sgi_scale_of_commits) */
    sgi_histogram batches;   /* writes in a commit (sgi_scale_of_batches) */
    /* the statistics that the store gave after the last commit; the runtime sets this
     * member */
    segue_store_stats store;
} sgi_committer_counts;

struct sgi_committer {
    sgi_engine *engine;
    /* the functions by which the log reports changes of operations */
    const struct sgi_log_observer *observer;
    /* the cluster that shares operations with other servers; NULL = no cluster */
    struct sgi_cluster *cluster;
    sgi_byte_account *account; /* the account that counts the bytes of all operations */
    sgi_op_limits limits;      /* the limits that apply to each operation */
    sgi_retention_limits retention;
    /* maximum number of bytes of a log that one job reads from the store */
    size_t read_bytes;
    bool closed;     /* the runtime has ended, so nothing is appended to logs any more */
    void *host_user; /* the runtime's pointer that identifies the store */
    TAILQ_HEAD(, sgi_op) dirty;
    /* operations that wait for `retry`, because their end could not be written or because
     * their store has leases and cannot be reached */
    TAILQ_HEAD(, sgi_op) broken;
    TAILQ_HEAD(, sgi_store_job) jobs;
    /* number of operations at the front of the dirty list that each get a separate
     * commit, because their common commit failed */
    size_t solo;
    sgi_timer retry; /* starts another attempt after a failed commit */
    /* there was no memory for a commit, so all operations that have to be written wait
     * for `retry` */
    bool starved;
    /* the store has leases (times for which a silent server stays the owner of its
     * operations); the runtime sets this member */
    bool leased;
    sgi_timer purge;
    bool dying;
    sgi_committer_counts counts;
};

void sgi_committer_init(sgi_committer *committer, sgi_engine *engine,
                        const struct sgi_log_observer *observer);
/* Frees the waiting jobs and stops the timers. The caller ensures that all operations
 * were freed. */
void sgi_committer_free(sgi_committer *committer);

/* Makes a last attempt to write the entries that are not durable yet, because the runtime
 * ends. */
void sgi_committer_shut_down(sgi_committer *committer);

/* ---- functions for the engine ---- */

/* Returns the newest format of records and entries that the store takes
 * (base/records.h). It can become newer while the store is in use. */
int32_t sgi_committer_records(const sgi_committer *committer);

/* Puts an operation on the dirty list, because it must write to the store. Does nothing
 * for an operation that another server runs, and for one that the store does not have and
 * need not create. */
void sgi_committer_mark_dirty(sgi_committer *committer, sgi_op *op);
void sgi_committer_add_job(sgi_committer *committer, sgi_store_job *job);

/* ---- functions for the host ---- */

void sgi_commit_free(const sgi_mem *mem, sgi_commit *batch);
/* Fills the commit with everything that must be written. Returns false when there is
 * nothing to write. The caller holds the lock. */
bool sgi_committer_fill_commit(sgi_committer *committer, sgi_commit *batch);
/* Reports the outcome of a commit. If a commit of several operations has failed, each
 * operation is then tried alone. SEGUE_E_EXISTS means that another operation already has
 * the task id or idempotency key of a new operation. The caller holds the lock. */
void sgi_committer_on_commit_done(sgi_committer *committer, sgi_commit *batch,
                                  segue_status status);
/* Returns the next job and removes the job from the list. Returns NULL when no job waits.
 * The caller holds the lock. */
sgi_store_job *sgi_committer_take_job(sgi_committer *committer);

#endif
