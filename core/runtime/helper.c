/* The thread takes one job after the other. The runtime's lock protects the queue. */
#include "runtime/helper.h"

#include <signal.h>

#include "base/thresholds.h"
#include "runtime/state.h"

static void *run_helper(void *user)
{
    segue_runtime *rt = user;
    sgi_helper *helper = &rt->helper;
    sgi_runtime_lock(rt);
    while (!helper->is_closing) {
        sgi_helper_job *job = STAILQ_FIRST(&helper->jobs);
        if (!job) {
            sgi_loop_wake_threads(rt);
            pthread_cond_wait(&helper->wanted, &rt->mutex);
            continue;
        }
        STAILQ_REMOVE_HEAD(&helper->jobs, link);
        helper->waiting--;
        sgi_runtime_unlock(rt);
        job->run(job);
        sgi_runtime_lock(rt);
        job->done(job);
    }
    sgi_runtime_unlock(rt);
    return NULL;
}

static bool start(segue_runtime *rt)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int fault = pthread_create(&rt->helper.thread, NULL, run_helper, rt);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return fault == 0;
}

void sgi_helper_init(segue_runtime *rt)
{
    STAILQ_INIT(&rt->helper.jobs);
    pthread_cond_init(&rt->helper.wanted, NULL);
}

bool sgi_runtime_help(segue_runtime *rt, sgi_helper_job *job)
{
    sgi_helper *helper = &rt->helper;
    if (helper->is_closing || helper->waiting >= SGI_THRESHOLD(helper_jobs_max))
        return false;
    if (!helper->is_started && !start(rt))
        return false;
    helper->is_started = true;
    STAILQ_INSERT_TAIL(&helper->jobs, job, link);
    helper->waiting++;
    pthread_cond_signal(&helper->wanted);
    return true;
}

void sgi_helper_close(segue_runtime *rt)
{
    sgi_helper *helper = &rt->helper;
    sgi_helper_job *job;
    helper->is_closing = true;
    if (helper->is_started) {
        pthread_cond_signal(&helper->wanted);
        sgi_runtime_unlock(rt);
        pthread_join(helper->thread, NULL);
        sgi_runtime_lock(rt);
    }
    while ((job = STAILQ_FIRST(&helper->jobs))) {
        STAILQ_REMOVE_HEAD(&helper->jobs, link);
        job->done(job);
    }
}
