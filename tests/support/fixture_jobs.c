#include "support/fixture_job.h"

#include <segue/segue.h>
#include <stdlib.h>
#include <string.h>

fixtures *fixtures_new(int64_t (*now_ms)(void *user), void *user)
{
    fixtures *f = calloc(1, sizeof *f);
    f->now_ms = now_ms;
    f->user = user;
    return f;
}

void fixtures_free(fixtures *f)
{
    free(f);
}

int64_t fixture_now(fixtures *f)
{
    return f->now_ms(f->user);
}

void fixture_drop(job *j)
{
    j->ended = 1;
    segue_call_free(j->call);
    j->call = NULL;
}

void fixture_finish(job *j, const char *text)
{
    segue_content *content;
    if (segue_content_new(j->f->runtime, &content) == SEGUE_OK) {
        segue_content_add_text(content, text, strlen(text), NULL);
        segue_call_complete(j->call, content, NULL);
        segue_content_free(content);
    }
    fixture_drop(j);
}

static void on_cancel(void *user, segue_call *call)
{
    job *j = user;
    (void)call;
    j->due_ms = fixture_now(j->f); /* makes the next tick handle the cancel */
}

static void on_drain(void *user, segue_call *call)
{
    job *j = user;
    (void)call;
    j->due_ms = fixture_now(j->f);
}

static void job_gone(void *user)
{
    job *j = user;
    job **at = &j->f->jobs;
    while (*at && *at != j)
        at = &(*at)->next;
    if (*at)
        *at = j->next;
    if (j->call) /* the call is NULL when the runtime has ended under the job */
        segue_call_free(j->call);
    free(j);
}

job *fixture_job(fixtures *f, segue_call *call, void (*step)(job *), int64_t delay_ms)
{
    job *j = calloc(1, sizeof *j);
    segue_call_events events = SEGUE_CALL_EVENTS_INIT;
    j->f = f;
    j->call = call;
    j->step = step;
    j->due_ms = fixture_now(f) + delay_ms;
    j->next = f->jobs;
    f->jobs = j;
    events.user = j;
    events.free_user = job_gone;
    events.on_cancel = on_cancel;
    events.on_drain = on_drain;
    segue_call_watch(call, &events);
    return j;
}

int64_t fixtures_tick(fixtures *f)
{
    int64_t next = -1;
    for (job *j = f->jobs, *following; j; j = following) {
        following = j->next;
        if (j->ended)
            continue;
        if (segue_call_is_cancelled(j->call) && !j->stubborn) {
            fixture_drop(j);
            continue;
        }
        if (j->due_ms <= fixture_now(f))
            j->step(j);
        if (j->ended)
            continue;
        int64_t left = j->due_ms - fixture_now(f);
        left = left < 0 ? 0 : left;
        if (next < 0 || left < next)
            next = left;
    }
    return next;
}

int fixtures_jobs(const fixtures *f)
{
    int count = 0;
    for (const job *j = f->jobs; j; j = j->next)
        count += !j->ended;
    return count;
}

int64_t fixture_int(segue_call *call, const char *name, int64_t standard)
{
    int64_t value = standard;
    segue_call_argument_int(call, name, &value);
    return value;
}

const char *fixture_text(segue_call *call, const char *name, const char *standard)
{
    const char *text = standard;
    segue_call_argument_text(call, name, &text, NULL);
    return text;
}

void fixture_complete(fixtures *f, segue_call *call, const char *text, int is_error)
{
    segue_content *content;
    if (segue_content_new(f->runtime, &content) == SEGUE_OK) {
        segue_content_add_text(content, text, strlen(text), NULL);
        segue_content_set_error(content, is_error);
        segue_call_complete(call, content, NULL);
        segue_content_free(content);
    }
    segue_call_free(call);
}
