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

#include "base/records.h"
#include "base/tally.h"
#include "engine/engine.h"
#include "engine/log/account.h"
#include "engine/log/limits.h"

typedef struct sgi_op sgi_op;

/* One entry of an operation's log. An entry never changes. */
typedef struct sgi_entry {
    TAILQ_ENTRY(sgi_entry) link;
    /* position in the log; the entries of a log are numbered 1, 2, 3, ... */
    uint64_t seq;
    uint64_t segment; /* number of the segment; 0 = the entry is not a segment */
    uint64_t event;   /* 1 + the number of the event; 0 = the entry is not an event */
    int64_t at_ms;
    int32_t kind;
    uint32_t len;
    char data[];
} sgi_entry;

TAILQ_HEAD(sgi_entry_list, sgi_entry);

sgi_entry *sgi_entry_new(const sgi_mem *mem, int32_t kind, const char *data, size_t len);
void sgi_entry_free(const sgi_mem *mem, sgi_entry *entry);
/* Reads the content block of a segment, and sets *place to the index in the list of
 * blocks that the segment names. *place is SGI_NO_PLACE when the index cannot be read.
 * Returns false when the segment names no index; its block is then appended to the
 * list. */
#define SGI_NO_PLACE UINT64_MAX
bool sgi_entry_read_indexed_block(const sgi_entry *entry, sgi_str *block,
                                  uint64_t *place);
void sgi_entry_list_free(const sgi_mem *mem, struct sgi_entry_list *list);

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
    sgi_duration_tally took;
    /* the statistics that the store gave after the last commit; the runtime sets this
     * member */
    segue_store_stats store;
} sgi_committer_counts;

typedef enum sgi_store_job_kind {
    /* finds an operation by task_id; if task_id is NULL, by `key` */
    SGI_STORE_JOB_FIND = 1,
    /* reads the log of the operation `id` behind position `after`; `follows` takes effect
     * before the read */
    SGI_STORE_JOB_READ,
    SGI_STORE_JOB_CLAIM,
    /* deletes the operations whose purge time is now_ms or earlier; sets next_ms */
    SGI_STORE_JOB_PURGE,
    /* lists operations of the principal `key` that come after (now_ms, task_id);
     * max_found is the maximum number */
    SGI_STORE_JOB_LIST,
    /* asks the store not to report growth of the operation `id` any more */
    SGI_STORE_JOB_LEAVE,
    /* sends the forwarded command in `command` to the owner of the operation `id` */
    SGI_STORE_JOB_POST,
    SGI_STORE_JOB_RELEASE, /* lets other servers claim the operation `id` */
    /* does nothing; when this job is done, the commits before it are also done */
    SGI_STORE_JOB_NOTHING
} sgi_store_job_kind;

/* A record that was copied from the store. */
typedef struct sgi_found_record {
    TAILQ_ENTRY(sgi_found_record) link;
    /* the copied record; the pointers in it point into this memory block */
    segue_store_record record;
    size_t size;
    /* The next three members are for the code that takes the record out of the job
     * (claims in recovery.c). */
    void *user;
    bool busy;
    sgi_map_node by_id;
} sgi_found_record;

TAILQ_HEAD(sgi_found_record_list, sgi_found_record);

typedef struct sgi_store_job {
    TAILQ_ENTRY(sgi_store_job) link;
    sgi_store_job_kind kind;
    sgi_committer *committer;
    const sgi_mem *mem;
    /* called under the lock when the job is done; must free the job */
    void (*done)(struct sgi_store_job *job);
    void *user;
    char *task_id;
    uint8_t key[SEGUE_STORE_HASH_SIZE];
    uint8_t id[SEGUE_STORE_ID_SIZE];
    uint64_t after;
    /* reading stops after the entry with which the read bytes reach this number */
    size_t max_bytes;
    /* the store must report growth of the operation in its change feed from now on */
    bool follows;
    sgi_buf command;
    size_t max_found; /* maximum number of records to read; 0 = no limit */
    size_t found_count;
    /* there was no memory for a record; `id` is the id of the record's operation */
    bool lost;
    int64_t now_ms;
    int64_t next_ms;
    segue_status status;
    struct sgi_found_record_list found;
    struct sgi_entry_list entries;
    size_t bytes;
} sgi_store_job;

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
 * for an operation that another server runs. */
void sgi_committer_mark_dirty(sgi_committer *committer, sgi_op *op);
sgi_store_job *sgi_store_job_new(sgi_committer *committer, sgi_store_job_kind kind,
                                 void (*done)(sgi_store_job *), void *user);
void sgi_store_job_free(sgi_store_job *job);
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
/* Callbacks for the store, which calls them without the lock. They copy a record or an
 * entry into the job. user: the sgi_store_job. Both return 1 when the store must stop. */
int32_t sgi_store_job_add_record(void *user, const segue_store_record *record);
int32_t sgi_store_job_add_entry(void *user, const segue_store_entry *entry);

#endif
