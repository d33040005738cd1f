/* The engine's side of a store. The committer has the operations with entries that are
 * not durable, and the requests to the store that wait for an answer (jobs). It never
 * calls the store. The host takes a commit or a job, works on it without the lock, and
 * reports the outcome:
 *     engine marks an operation dirty -> host.store(committer)
 *     host: lock, sgi_committer_take_batch, unlock, commit,
 *           lock, sgi_committer_batch_done, unlock
 *     host: lock, sgi_committer_take_job, unlock, ask, lock, job->done, unlock
 *
 * A commit contains all operations that are dirty when the host takes it (group commit).
 * While it runs, new entries collect for the next commit. */
#ifndef SGI_COMMITTER_H
#define SGI_COMMITTER_H

#include "base/tally.h"
#include "engine/engine.h"
#include "engine/log/account.h"
#include "engine/log/limits.h"

typedef struct sgi_op sgi_op;

/* One entry of an operation's log. An entry never changes. */
typedef struct sgi_entry {
    TAILQ_ENTRY(sgi_entry) link;
    uint64_t seq;     /* position in the log; all entries are numbered 1, 2, 3, ... */
    uint64_t segment; /* number of the segment; 0 = the entry is no segment */
    uint64_t event;   /* 1 + the number of the event; 0 = the entry is no event */
    int64_t at_ms;
    int32_t kind;
    uint32_t len;
    char data[];
} sgi_entry;

TAILQ_HEAD(sgi_entry_list, sgi_entry);

sgi_entry *sgi_entry_new(const sgi_mem *mem, int32_t kind, const char *data, size_t len);
void sgi_entry_free(const sgi_mem *mem, sgi_entry *entry);
/* Reads the content block of a segment, and the index in the list of blocks (place) that
 * the segment names. *place is SGI_NO_PLACE when the index cannot be read. Returns false
 * when the segment names no index, so that its block is appended. */
#define SGI_NO_PLACE UINT64_MAX
bool sgi_entry_read_placed_block(const sgi_entry *entry, sgi_str *block, uint64_t *place);
void sgi_entry_list_free(const sgi_mem *mem, struct sgi_entry_list *list);

/* One commit: the writes, and the operations to which they belong. The struct is used
 * again for each commit. The writes point into entries and records, which stay in memory
 * until sgi_committer_batch_done. */
typedef struct sgi_commit {
    segue_store_write *writes;
    size_t count;
    size_t cap;
    struct sgi_commit_op *ops;
    size_t op_count;
    size_t op_cap;
    uint64_t took_us; /* duration of the commit in microseconds; set by the host */
} sgi_commit;

/* Counts of the commits and writes to a store. The member `store` has the statistics that
 * the store gave after the last commit. */
typedef struct sgi_committer_counts {
    uint64_t commits;
    uint64_t writes;
    uint64_t failures;
    sgi_tally took;
    segue_store_stats store; /* the store's statistics; set by the host after a commit */
} sgi_committer_counts;

typedef enum sgi_job_kind {
    SGI_JOB_FIND = 1, /* finds an operation by task_id, or by key when task_id is NULL */
    /* reads the log of the operation `id` behind position `after`; `follows` takes effect
     * first */
    SGI_JOB_READ,
    SGI_JOB_CLAIM,
    /* deletes the operations whose purge time is at or before now_ms; sets next_ms */
    SGI_JOB_PURGE,
    /* lists operations of the principal `key` that come after (now_ms, task_id), at most
     * max_found */
    SGI_JOB_LIST,
    SGI_JOB_LEAVE, /* ends the reports of the store that the operation `id` has grown */
    /* sends the forwarded command in `command` to the owner of the operation `id` */
    SGI_JOB_POST,
    SGI_JOB_RELEASE, /* lets other servers claim the operation `id` */
    /* does nothing; when it is done, the commits before it are done too */
    SGI_JOB_NOTHING
} sgi_job_kind;

/* A record that was copied out of the store. */
typedef struct sgi_found_record {
    TAILQ_ENTRY(sgi_found_record) link;
    segue_store_record record; /* the record; its pointers point into this block */
    size_t size;
    /* The code that takes the record out of the job owns the next three members (claims
     * in recovery.c). */
    void *user;
    bool busy;
    sgi_map_node by_id;
} sgi_found_record;

TAILQ_HEAD(sgi_found_record_list, sgi_found_record);

typedef struct sgi_job {
    TAILQ_ENTRY(sgi_job) link;
    sgi_job_kind kind;
    sgi_committer *committer;
    const sgi_mem *mem;
    /* called under the lock when the job is done; frees the job */
    void (*done)(struct sgi_job *job);
    void *user;
    char *task_id;
    uint8_t key[SEGUE_STORE_HASH_SIZE];
    uint8_t id[SEGUE_STORE_ID_SIZE];
    uint64_t after;
    /* reading stops after the entry with which this number of bytes is exceeded */
    size_t max_bytes;
    /* from now on the change feed of the store reports that the operation has grown */
    bool follows;
    sgi_buf command;
    size_t max_found; /* reading stops after this number of records; 0 = no limit */
    size_t found_count;
    /* there was no memory for one of the records; `id` is the id of its operation */
    bool lost;
    int64_t now_ms;
    int64_t next_ms;
    segue_status status;
    struct sgi_found_record_list found;
    struct sgi_entry_list entries;
    size_t bytes;
} sgi_job;

struct sgi_committer {
    sgi_engine *engine;
    /* functions that are called when operations of this committer change */
    const struct sgi_log_observer *observer;
    /* the cluster that shares operations with other servers, or NULL */
    struct sgi_cluster *cluster;
    sgi_account *account; /* counts the bytes of all operations */
    sgi_limits limits;    /* the limits of each operation */
    sgi_retention_limits retention;
    /* number of bytes of a log that one job reads back from the store */
    size_t read_bytes;
    bool closed;     /* the runtime is gone, and nothing is appended to logs any more */
    void *host_user; /* the host's value that identifies the store */
    TAILQ_HEAD(, sgi_op) dirty;
    /* operations whose end could not be written or whose store (with leases) cannot be
     * reached; they wait for `retry` */
    TAILQ_HEAD(, sgi_op) broken;
    TAILQ_HEAD(, sgi_job) jobs;
    /* number of operations that still get a commit of their own after a common commit has
     * failed */
    size_t solo;
    sgi_timer retry; /* starts a new attempt after a failed commit */
    /* there was no memory for a commit, so all dirty operations wait for `retry` */
    bool starved;
    /* the store has leases; set by the host, used by write_lost */
    bool leased;
    sgi_timer purge;
    bool dying;
    sgi_committer_counts counts;
};

void sgi_committer_init(sgi_committer *committer, sgi_engine *engine,
                        const struct sgi_log_observer *observer);
/* Frees the jobs that wait. All operations must have been freed. */
void sgi_committer_free(sgi_committer *committer);

/* Tries once more to write the dirty operations, and then gives up, because the runtime
 * ends. */
void sgi_committer_shut_down(sgi_committer *committer);

/* ---- functions for the engine ---- */

/* Puts an operation that has something to write on the dirty list. Does nothing for an
 * operation that another server runs. */
void sgi_committer_mark_dirty(sgi_committer *committer, sgi_op *op);
sgi_job *sgi_job_new(sgi_committer *committer, sgi_job_kind kind, void (*done)(sgi_job *),
                     void *user);
void sgi_job_free(sgi_job *job);
void sgi_committer_add_job(sgi_committer *committer, sgi_job *job);

/* ---- functions for the host ---- */

void sgi_commit_free(const sgi_mem *mem, sgi_commit *batch);
/* Fills the commit with everything that has to be written. Returns false when no
 * operation is dirty. Called with the lock held. */
bool sgi_committer_take_batch(sgi_committer *committer, sgi_commit *batch);
/* Reports the outcome of a commit. If a commit of several operations has failed, each of
 * them is tried alone. SEGUE_E_EXISTS: another operation already has the task id or
 * idempotency key of a new operation. Called with the lock held. */
void sgi_committer_batch_done(sgi_committer *committer, sgi_commit *batch,
                              segue_status status);
/* Returns the next job and removes it from the list; NULL when there is none. Called with
 * the lock held. */
sgi_job *sgi_committer_take_job(sgi_committer *committer);
/* Callbacks for the store, called without the lock. They copy a record or an entry into
 * the job (user). */
int32_t sgi_job_record(void *user, const segue_store_record *record);
int32_t sgi_job_entry(void *user, const segue_store_entry *entry);

#endif
