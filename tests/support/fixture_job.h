/* What the files of the fixtures share: running calls (jobs) and the tools. fixtures.c
 * has the table and the tools that answer at once. fixture_asks.c has the tools that ask
 * questions, and fixture_streams.c the tools whose result comes in pieces. */
#ifndef FIXTURE_JOB_H
#define FIXTURE_JOB_H

#include "support/fixtures.h"

typedef struct job {
    struct job *next;
    fixtures *f;
    segue_call *call;
    void (*step)(struct job *job);
    int64_t due_ms;
    int64_t at;    /* number of segments sent */
    int64_t total; /* number of segments to send */
    int64_t delay_ms;
    int64_t chunk;
    int64_t bytes;
    int answers;
    int asks;
    char text[128];
    int stubborn;   /* 1 = the job continues after a cancel */
    long signed_by; /* process id that is added to each line; 0 = none */
    int ended;
} job;

typedef struct tool_row {
    const char *json;
    void (*run)(fixtures *f, segue_call *call);
    int32_t flags;
    int32_t task;
    int32_t poll_ms;
    int32_t promote_ms;
    int32_t ttl_ms;
} tool_row;

#define MAX_TOOLS 48

typedef struct tool_user {
    fixtures *f;
    const tool_row *row;
    int runs;
    char name[64];
} tool_user;

struct fixtures {
    int64_t (*now_ms)(void *user);
    void *user;
    segue_runtime *runtime;
    job *jobs;
    tool_user tools[MAX_TOOLS];
    int tool_count;
};

/* Returns the time from the clock that the owner of the fixtures gave. */
int64_t fixture_now(fixtures *f);
/* Makes a job for a call that continues after its handler: `step` runs in `delay`
 * milliseconds. The job is freed with its call. */
job *fixture_job(fixtures *f, segue_call *call, void (*step)(job *), int64_t delay_ms);
void fixture_drop(job *j);
/* Ends the job with a text. */
void fixture_finish(job *j, const char *text);
/* Ends a call that has no job. */
void fixture_complete(fixtures *f, segue_call *call, const char *text, int is_error);
/* Returns an argument of the call, or the standard value when it is missing. */
int64_t fixture_int(segue_call *call, const char *name, int64_t standard);
const char *fixture_text(segue_call *call, const char *name, const char *standard);

/* Steps that several tools use. */
void fixture_step_finish(job *j);
void fixture_step_tool_error(job *j);
void fixture_step_wait(job *j);

/* Tools that ask. */
void fixture_confirm_delete(fixtures *f, segue_call *call);
void fixture_multi_input(fixtures *f, segue_call *call);
void fixture_ask_in_turn(fixtures *f, segue_call *call);
void fixture_ask_hastily(fixtures *f, segue_call *call);
void fixture_ask_and_defer(fixtures *f, segue_call *call);
void fixture_tool_with_task(fixtures *f, segue_call *call);

/* Tools whose result comes in pieces, or that report progress. */
void fixture_story(fixtures *f, segue_call *call);
void fixture_signed_story(fixtures *f, segue_call *call);
void fixture_fail_after(fixtures *f, segue_call *call);
void fixture_crash_after(fixtures *f, segue_call *call);
void fixture_two_texts(fixtures *f, segue_call *call);
void fixture_big(fixtures *f, segue_call *call);
void fixture_chatty(fixtures *f, segue_call *call);
void fixture_chatty_task(fixtures *f, segue_call *call);
void fixture_reporter(fixtures *f, segue_call *call);
void fixture_fields(fixtures *f, segue_call *call);
void fixture_fresh_start(fixtures *f, segue_call *call);
void fixture_film(fixtures *f, segue_call *call);
void fixture_checkpoint(fixtures *f, segue_call *call);
void fixture_give_up(fixtures *f, segue_call *call);

#endif
