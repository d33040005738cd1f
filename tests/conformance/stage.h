/* What the fixture tools of the conformance server share: how a tool is described and
 * added, and calls that take time. One thread: the loop does input and output, runs
 * handlers, then the due jobs (stage_tick). Public API only.
 *
 * A job is a running call. It belongs to the stage until its free_user runs, which is
 * after its call has ended. Its step runs when it is due and not cancelled. */
#ifndef STAGE_H
#define STAGE_H

#include <segue/segue.h>

typedef struct job job;

typedef struct stage {
    segue_runtime *runtime;
    segue_server *server;
    job *jobs;
} stage;

typedef struct tool {
    const char *json;
    void (*run)(stage *s, segue_call *call);
    int32_t task; /* a segue_task_policy, or TASK_WHEN_DEFERRED */
} tool;

/* The tool may become a task, but only when its handler says so. */
enum { TASK_WHEN_DEFERRED = 100 };

struct job {
    job *next;
    stage *s;
    segue_call *call; /* NULL = the call has ended; the job waits for free_user */
    void (*step)(job *j);
    int64_t due_ms;
    int32_t at; /* number of steps taken, or questions asked */

    /* Questions of a call that asks its client: input_tools.c. */
    const struct question *questions;
    int32_t count;
    int32_t flags;
    int32_t open; /* number of questions without an answer */
    char answers[256];
};

#define TOOL(name, about, schema)                                                        \
    "{\"name\":\"" name "\",\"description\":\"" about "\",\"inputSchema\":" schema "}"
#define NO_ARGUMENTS "{\"type\":\"object\"}"

/* A PNG of one pixel. */
extern const unsigned char red_dot[];
extern const size_t red_dot_size;

segue_status content_tools_add(stage *s);
segue_status items_add(stage *s);
segue_status input_tools_add(stage *s);
segue_status task_tools_add(stage *s);

segue_status stage_add(stage *s, const tool *tools, size_t count);
/* Runs what is due; returns the milliseconds until the next job, or -1. */
int64_t stage_tick(stage *s);

/* Never returns NULL: without memory the program ends. */
segue_content *new_content(stage *s);
/* Both end the call and free it. */
void complete(segue_call *call, segue_content *content);
void complete_text(stage *s, segue_call *call, const char *text, int32_t is_error);

job *job_start(stage *s, segue_call *call, void (*step)(job *j), int64_t delay_ms);
/* Delays the next step by this time. */
void job_wait(job *j, int64_t delay_ms);
/* Takes the call out of the job, so that it can be ended. */
segue_call *job_end(job *j);

#endif
