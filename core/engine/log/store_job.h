/* A store job: a request to the store that is answered later. The committer keeps the
 * jobs until the host takes them (committer.h). */
#ifndef SGI_STORE_JOB_H
#define SGI_STORE_JOB_H

#include "engine/engine.h"
#include "engine/log/entry.h"

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
    /* finds an operation by task_id; if the store has none, makes one that has ended and
     * is never purged, and finds it: with the data `command`, the principal `key`, the
     * id `id` and the time now_ms */
    SGI_STORE_JOB_KEEP,
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

sgi_store_job *sgi_store_job_new(sgi_committer *committer, sgi_store_job_kind kind,
                                 void (*done)(sgi_store_job *), void *user);
void sgi_store_job_free(sgi_store_job *job);
/* Callbacks for the store, which calls them without the lock. They copy a record or an
 * entry into the job. user: the sgi_store_job. Both return 1 when the store must stop. */
int32_t sgi_store_job_add_record(void *user, const segue_store_record *record);
int32_t sgi_store_job_add_entry(void *user, const segue_store_entry *entry);

#endif
