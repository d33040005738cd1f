#include "conformance/stage.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- tools ---- */

typedef struct entry {
    stage *s;
    const tool *t;
} entry;

static void run_tool(void *user, segue_call *call)
{
    const entry *e = user;
    e->t->run(e->s, call);
}

segue_status stage_add(stage *s, const tool *tools, size_t count)
{
    segue_status status = SEGUE_OK;
    for (size_t i = 0; status == SEGUE_OK && i < count; i++) {
        segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
        entry *e = malloc(sizeof *e);
        if (!e)
            return SEGUE_E_NOMEM;
        *e = (entry){s, &tools[i]};
        options.user = e;
        options.free_user = free;
        options.on_call = run_tool;
        options.task = tools[i].task;
        if (tools[i].task == TASK_WHEN_DEFERRED) {
            options.task = SEGUE_TASK_MAY;
            options.promote_after_ms = (int64_t)24 * 3600 * 1000;
        }
        status = segue_server_add(s->server, SEGUE_ITEM_TOOL, tools[i].json,
                                  strlen(tools[i].json), &options, NULL);
        if (status != SEGUE_OK)
            free(e);
    }
    return status;
}

segue_content *new_content(stage *s)
{
    segue_content *content = NULL;
    if (segue_content_new(s->runtime, &content) != SEGUE_OK)
        abort();
    return content;
}

void complete(segue_call *call, segue_content *content)
{
    segue_call_complete(call, content, NULL);
    segue_content_free(content);
    segue_call_free(call);
}

void complete_text(stage *s, segue_call *call, const char *text, int32_t is_error)
{
    segue_content *content = new_content(s);
    segue_content_add_text(content, text, strlen(text), NULL);
    segue_content_set_error(content, is_error);
    complete(call, content);
}

/* ---- jobs ---- */

static void job_gone(void *user)
{
    job *j = user;
    job **at = &j->s->jobs;
    while (*at != j)
        at = &(*at)->next;
    *at = j->next;
    if (j->call) /* the call is NULL when the runtime has ended under the job */
        segue_call_free(j->call);
    free(j);
}

/* Makes the job due: the next tick sees that the call is cancelled. */
static void wake(void *user, segue_call *call)
{
    (void)call;
    job_wait(user, 0);
}

job *job_start(stage *s, segue_call *call, void (*step)(job *j), int64_t delay_ms)
{
    segue_call_events events = SEGUE_CALL_EVENTS_INIT;
    job *j = calloc(1, sizeof *j);
    if (!j)
        abort();
    j->s = s;
    j->call = call;
    j->step = step;
    job_wait(j, delay_ms);
    j->next = s->jobs;
    s->jobs = j;
    events.user = j;
    events.free_user = job_gone;
    events.on_cancel = wake;
    segue_call_watch(call, &events);
    return j;
}

void job_wait(job *j, int64_t delay_ms)
{
    j->due_ms = now_ms() + delay_ms;
}

segue_call *job_end(job *j)
{
    segue_call *call = j->call;
    j->call = NULL;
    return call;
}

int64_t stage_tick(stage *s)
{
    int64_t next = -1;
    for (job *j = s->jobs; j; j = j->next) {
        if (j->call && segue_call_is_cancelled(j->call))
            segue_call_free(job_end(j));
        if (j->call && j->due_ms <= now_ms())
            j->step(j);
        if (!j->call)
            continue;
        int64_t left = j->due_ms - now_ms();
        left = left < 0 ? 0 : left;
        if (next < 0 || left < next)
            next = left;
    }
    return next;
}
