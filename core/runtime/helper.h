/* The helper of a runtime: one thread for jobs that may block and that no call waits for,
 * such as looking into a store for the task board. The thread starts with the first job
 * and ends with the runtime. At most SGI_THRESHOLD(helper_jobs_max) jobs wait. */
#ifndef SGI_HELPER_H
#define SGI_HELPER_H

#include <stdbool.h>

#include <segue/segue.h>
#include <sys/queue.h>

typedef struct sgi_helper_job {
    STAILQ_ENTRY(sgi_helper_job) link;
    /* runs on the helper's thread, without the lock */
    void (*run)(struct sgi_helper_job *job);
    /* Called with the lock, once, after `run`, or in its place when the runtime is freed
     * first. The job then belongs to its owner again. */
    void (*done)(struct sgi_helper_job *job);
} sgi_helper_job;

/* Queues a job. Returns false when too many jobs wait, or when the thread cannot be
 * started; the job is then not queued. The caller holds the lock. */
bool sgi_runtime_help(segue_runtime *rt, sgi_helper_job *job);

#endif
