/* The engine's side of a store: which operations have entries that are not durable yet,
 * and questions to the store that wait for an answer. The keeper never calls the store:
 * the host takes a batch or a job, works on it without the lock, and brings the outcome
 * back.
 *
 *   engine marks an operation dirty -> host.store(keeper)
 *   host:  lock, sgi_keeper_take, unlock, commit, lock, sgi_keeper_done, unlock
 *   host:  lock, sgi_keeper_job,  unlock, ask,    lock, job->done,       unlock
 *
 * All that is dirty when the host takes goes into one commit: that is the group commit,
 * and its window is the commit before it. */
#ifndef SGI_KEEPER_H
#define SGI_KEEPER_H

#include "base/tally.h"
#include "engine/engine.h"

typedef struct sgi_op sgi_op;

/* One entry of an operation's log; immutable. */
typedef struct sgi_entry {
    TAILQ_ENTRY(sgi_entry) link;
    uint64_t seq;     /* 1, 2, 3, ... over all entries */
    uint64_t segment; /* number among segments, 0 = none */
    uint64_t event;   /* number among events + 1, 0 = none */
    int64_t at_ms;
    int32_t kind;
    uint32_t len;
    char data[];
} sgi_entry;

TAILQ_HEAD(sgi_entry_list, sgi_entry);

sgi_entry *sgi_entry_new(const sgi_mem *mem, int32_t kind, const char *data, size_t len);
void sgi_entry_free(const sgi_mem *mem, sgi_entry *entry);
/* Of a segment: its content block, and the place that it says to have in the list of
 * them; SGI_NO_PLACE for one that cannot be read. False: it says none, and stands behind
 * the others. */
#define SGI_NO_PLACE UINT64_MAX
bool sgi_entry_placed(const sgi_entry *entry, sgi_str *block, uint64_t *place);
void sgi_entry_list_free(const sgi_mem *mem, struct sgi_entry_list *list);

/* One commit: the writes, and the operations they came from. Reused from commit to
 * commit; writes point into entries and records that stay put until sgi_keeper_done. */
typedef struct sgi_commit {
    segue_store_write *writes;
    size_t count;
    size_t cap;
    struct sgi_commit_op *ops;
    size_t op_count;
    size_t op_cap;
    uint64_t took_us; /* by the host: how long the store had it */
} sgi_commit;

/* What a store was asked to write, and what it said of itself afterwards. */
typedef struct sgi_keeper_counts {
    uint64_t commits;
    uint64_t writes;
    uint64_t failures;
    sgi_tally took;
    segue_store_stats store; /* by the host, after a commit */
} sgi_keeper_counts;

typedef enum sgi_job_kind {
    SGI_JOB_FIND = 1, /* by task_id, or by key when has_key */
    SGI_JOB_READ,     /* id, after, max_bytes; with `follows`, which comes first */
    SGI_JOB_CLAIM,
    SGI_JOB_PURGE,   /* now_ms -> next_ms */
    SGI_JOB_LIST,    /* of principal key, behind now_ms and task_id, max_found */
    SGI_JOB_LEAVE,   /* id: the store no longer reports growth of this operation */
    SGI_JOB_POST,    /* id, letter */
    SGI_JOB_RELEASE, /* id: it is for others to claim */
    SGI_JOB_NOTHING  /* comes back when the commit before it is known to be done */
} sgi_job_kind;

/* A record copied out of the store. */
typedef struct sgi_found {
    TAILQ_ENTRY(sgi_found) link;
    segue_store_record record; /* its pointers point into this block */
    size_t size;
    void *user; /* of who took it out of the job, as is all that follows */
    bool busy;
    sgi_map_node by_id;
} sgi_found;

TAILQ_HEAD(sgi_found_list, sgi_found);

typedef struct sgi_job {
    TAILQ_ENTRY(sgi_job) link;
    sgi_job_kind kind;
    sgi_keeper *keeper;
    const sgi_mem *mem;
    void (*done)(struct sgi_job *job); /* under the lock; frees the job */
    void *user;
    char *task_id;
    uint8_t key[SEGUE_STORE_HASH_SIZE];
    uint8_t id[SEGUE_STORE_ID_SIZE];
    uint64_t after;
    size_t max_bytes; /* stop after the entry that passes it */
    bool follows;     /* growth from here on is news */
    sgi_buf letter;
    size_t max_found; /* stop after so many records; 0 = all */
    size_t found_count;
    bool lost; /* there was no memory for one more: that with this id */
    int64_t now_ms;
    int64_t next_ms;
    segue_status status;
    struct sgi_found_list found;
    struct sgi_entry_list entries;
    size_t bytes;
} sgi_job;

/* What somebody else did, copied out of the store. */
typedef struct sgi_news {
    TAILQ_ENTRY(sgi_news) link;
    const sgi_mem *mem;
    segue_store_news what; /* its data stands behind */
    char data[];
} sgi_news;

TAILQ_HEAD(sgi_news_list, sgi_news);

/* Letters that cannot be dealt with yet: when there are so many, or so many bytes of
 * them, no more are taken from the store. */
#define SGI_LETTERS_WAIT_MAX 1024
#define SGI_LETTERS_WAIT_BYTES ((size_t)64 * 1024 * 1024)

/* What one look brought. */
typedef struct sgi_paper {
    const sgi_mem *mem;
    struct sgi_news_list list;
    size_t count;
    size_t letters, letter_bytes; /* with those that wait in the keeper */
} sgi_paper;

struct sgi_keeper {
    sgi_engine *engine;
    void *host_user; /* the host's: which store this is */
    TAILQ_HEAD(, sgi_op) dirty;
    TAILQ_HEAD(, sgi_op) broken; /* their end could not be written: wait for the retry */
    TAILQ_HEAD(, sgi_job) jobs;
    struct sgi_news_list letters; /* that cannot be dealt with yet; see news.c */
    size_t letter_count;
    size_t letter_bytes;
    sgi_timer letters_again;
    size_t solo; /* so many operations are tried one by one: a commit of several failed */
    sgi_timer retry; /* after a commit that failed */
    bool starved;    /* no memory for a batch: all wait for the retry */
    bool leased;     /* the host's: its store says so; see write_lost */
    sgi_timer purge;
    bool dying;
    sgi_keeper_counts counts;
};

void sgi_keeper_init(sgi_keeper *keeper, sgi_engine *engine);
/* Drops what waits; operations must be gone. */
void sgi_keeper_free(sgi_keeper *keeper);

/* The runtime goes away: what is dirty is tried once more and then given up. */
void sgi_keeper_die(sgi_keeper *keeper);

/* ---- for the engine ---- */

/* It has something to write. One that is not ours is not written, whatever it has. */
void sgi_keeper_dirty(sgi_keeper *keeper, sgi_op *op);
sgi_job *sgi_job_new(sgi_keeper *keeper, sgi_job_kind kind, void (*done)(sgi_job *),
                     void *user);
void sgi_job_free(sgi_job *job);
void sgi_keeper_ask(sgi_keeper *keeper, sgi_job *job);

/* ---- for the host ---- */

void sgi_commit_free(const sgi_mem *mem, sgi_commit *batch);
/* Lock held. Fills the batch; false when nothing is dirty. */
bool sgi_keeper_take(sgi_keeper *keeper, sgi_commit *batch);
/* Lock held. Says how the commit went; SEGUE_E_EXISTS fails the creations alone. */
void sgi_keeper_done(sgi_keeper *keeper, sgi_commit *batch, segue_status status);
/* Lock held. Takes the next job out; NULL when there is none. */
sgi_job *sgi_keeper_job(sgi_keeper *keeper);
/* No lock. Callbacks for the store; they collect into the job (user = the job). */
int32_t sgi_job_record(void *user, const segue_store_record *record);
int32_t sgi_job_entry(void *user, const segue_store_entry *entry);
/* Lock held. An empty one, for the next look. */
void sgi_paper_open(sgi_paper *paper, const sgi_keeper *keeper);
/* No lock. For news of the store (user = an sgi_paper): takes some of it; 1 = no more
 * now. */
int32_t sgi_paper_take(void *user, const segue_store_news *news);
/* Lock held. Deals with it and frees it. */
void sgi_keeper_tell(sgi_keeper *keeper, sgi_paper *paper);
void sgi_news_free(struct sgi_news_list *list);
/* Lock held. What became of those that waited: operations have been taken over. */
void sgi_letters_deal(sgi_keeper *keeper);

#endif
