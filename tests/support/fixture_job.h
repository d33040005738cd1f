/* What the files of the fixtures share: calls under way, and the tools by what they do.
 * fixtures.c has the table, and tools that answer; fixture_asks.c has those that ask,
 * fixture_streams.c those whose result comes in pieces. */
#ifndef FIXTURE_JOB_H
#define FIXTURE_JOB_H

#include "support/fixtures.h"

typedef struct job {
    struct job *next;
    fixtures *f;
    segue_call *call;
    void (*step)(struct job *job);
    int64_t due_ms;
    int64_t at;    /* segments sent */
    int64_t total; /* segments to send */
    int64_t delay_ms;
    int64_t chunk;
    int64_t bytes;
    int answers;
    int asks;
    char text[128];
    int stubborn;   /* goes on when it is cancelled */
    long signed_by; /* each line tells which process wrote it */
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

/* The time, as the fixtures' owner tells it. */
int64_t fixture_now(fixtures *f);
/* A call that goes on: `step` is due in so many ms. It goes with its call. */
job *fixture_job(fixtures *f, segue_call *call, void (*step)(job *), int64_t delay_ms);
void fixture_drop(job *j);
/* Ends it with a text. */
void fixture_finish(job *j, const char *text);
/* Ends a call, whose job is none. */
void fixture_complete(fixtures *f, segue_call *call, const char *text, int is_error);
/* An argument, or what stands for it. */
int64_t fixture_int(segue_call *call, const char *name, int64_t standard);
const char *fixture_text(segue_call *call, const char *name, const char *standard);

/* Steps. */
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

/* Tools whose result comes in pieces, or that tell how far they are. */
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
