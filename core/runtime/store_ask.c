/* Asks a store what a job of a committer wants to know, without the lock. */
#include "runtime/store_queue.h"

#include <string.h>

/* Reads a log. If the job follows the log, following starts before the read, so that
 * entries that are added during the read are reported. */
static segue_status read_log(segue_store *store, sgi_store_listener *by,
                             sgi_store_job *job)
{
    segue_status status = SEGUE_OK;
    if (job->follows)
        status = sgi_store_follow(by, job->id, true);
    return status == SEGUE_OK
               ? sgi_store_read(store, job->id, job->after, sgi_store_job_add_entry, job)
               : status;
}

static segue_status release(sgi_store_listener *by, const sgi_store_job *job)
{
    segue_store_write write = {.kind = SEGUE_STORE_RELEASE};
    memcpy(write.id, job->id, sizeof write.id);
    return sgi_store_commit_by(by, &write, 1);
}

static segue_status find_task(segue_store *store, sgi_store_job *job)
{
    return sgi_store_find(store, job->task_id, NULL, sgi_store_job_add_record, job);
}

/* Another server may make the operation at the same time. The first one counts. */
static segue_status keep(segue_store *store, sgi_store_listener *by, sgi_store_job *job)
{
    segue_store_record record = {.task_id = job->task_id,
                                 .created_ms = job->now_ms,
                                 .purge_ms = INT64_MAX,
                                 .data = job->command.p,
                                 .data_len = job->command.len};
    segue_store_write writes[] = {
        {.kind = SEGUE_STORE_CREATE, .record = &record},
        {.kind = SEGUE_STORE_END, .purge_ms = INT64_MAX},
    };
    segue_status status = find_task(store, job);
    if (status != SEGUE_E_NOT_FOUND)
        return status;
    memcpy(record.id, job->id, sizeof record.id);
    memcpy(record.principal, job->key, sizeof record.principal);
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++)
        memcpy(writes[i].id, job->id, sizeof writes[i].id);
    status = sgi_store_commit_by(by, writes, sizeof writes / sizeof *writes);
    return status == SEGUE_OK || status == SEGUE_E_EXISTS ? find_task(store, job)
                                                          : status;
}

segue_status sgi_store_queue_ask(segue_store *store, sgi_store_listener *by,
                                 sgi_store_job *job)
{
    switch (job->kind) {
    case SGI_STORE_JOB_FIND:
        return job->task_id
                   ? find_task(store, job)
                   : sgi_store_find(store, NULL, job->key, sgi_store_job_add_record, job);
    case SGI_STORE_JOB_READ:
        return read_log(store, by, job);
    case SGI_STORE_JOB_CLAIM:
        return sgi_store_claim(store, sgi_store_job_add_record, job);
    case SGI_STORE_JOB_PURGE:
        return sgi_store_purge(store, job->now_ms, &job->next_ms);
    case SGI_STORE_JOB_LIST:
        return sgi_store_list(store, job->key, job->now_ms, job->task_id,
                              sgi_store_job_add_record, job);
    case SGI_STORE_JOB_LEAVE:
        return sgi_store_follow(by, job->id, false);
    case SGI_STORE_JOB_POST:
        return sgi_store_post_command(by, job->id, job->command.p, job->command.len);
    case SGI_STORE_JOB_RELEASE:
        return release(by, job);
    case SGI_STORE_JOB_KEEP:
        return keep(store, by, job);
    case SGI_STORE_JOB_NOTHING:
        return SEGUE_OK;
    }
    return SEGUE_E_INVALID;
}
