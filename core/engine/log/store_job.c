#include "engine/log/committer.h"

sgi_store_job *sgi_store_job_new(sgi_committer *committer, sgi_store_job_kind kind,
                                 void (*done)(sgi_store_job *), void *user)
{
    const sgi_mem *mem = sgi_engine_mem(committer->engine);
    sgi_store_job *job = sgi_zalloc(mem, sizeof *job);
    if (!job)
        return NULL;
    job->kind = kind;
    job->committer = committer;
    job->mem = mem;
    sgi_buf_init(&job->command, mem);
    job->done = done;
    job->user = user;
    TAILQ_INIT(&job->found);
    TAILQ_INIT(&job->entries);
    return job;
}

void sgi_store_job_free(sgi_store_job *job)
{
    sgi_found_record *found, *next;
    SGI_TAILQ_EACH(found, &job->found, link, next)
        sgi_free(job->mem, found, found->size);
    sgi_entry_list_free(job->mem, &job->entries);
    sgi_buf_free(&job->command);
    sgi_text_free(job->mem, job->task_id);
    sgi_free(job->mem, job, sizeof *job);
}

int32_t sgi_store_job_add_record(void *user, const segue_store_record *record)
{
    sgi_store_job *job = user;
    size_t id_len = strlen(record->task_id);
    size_t size = sizeof(sgi_found_record) + id_len + 1 + record->data_len + 1;
    sgi_found_record *found = sgi_alloc(job->mem, size);
    if (!found) {
        job->status = SEGUE_E_NOMEM;
        job->lost = true;
        memcpy(job->id, record->id, sizeof job->id);
        return 1;
    }
    *found = (sgi_found_record){0};
    char *text = (char *)(found + 1);
    found->record = *record;
    found->size = size;
    memcpy(text, record->task_id, id_len + 1);
    if (record->data_len)
        memcpy(text + id_len + 1, record->data, record->data_len);
    text[id_len + 1 + record->data_len] = 0;
    found->record.task_id = text;
    found->record.data = text + id_len + 1;
    TAILQ_INSERT_TAIL(&job->found, found, link);
    return ++job->found_count == job->max_found;
}

int32_t sgi_store_job_add_entry(void *user, const segue_store_entry *entry)
{
    sgi_store_job *job = user;
    sgi_entry *copy = sgi_entry_new(job->mem, entry->kind, entry->data, entry->data_len);
    if (!copy) {
        job->status = SEGUE_E_NOMEM;
        return 1;
    }
    copy->seq = entry->seq;
    copy->segment = entry->segment;
    copy->event = entry->event;
    copy->at_ms = entry->at_ms;
    TAILQ_INSERT_TAIL(&job->entries, copy, link);
    job->bytes += entry->data_len;
    return job->bytes >= job->max_bytes;
}
