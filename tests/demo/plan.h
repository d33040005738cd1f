/* The kills and cuts of a run and their times, drawn once from the seed. The time of a
 * step is a number of segments, and the text waits for the steps: so all of them happen,
 * also on a slow machine. */
#ifndef PLAN_H
#define PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum deed {
    KILL_SERVER,
    KILL_CLIENT,
    CUT /* two connections are cut, one in each direction */
} deed;

typedef struct plan_step {
    deed what;
    size_t at;        /* the step waits until this many segments have arrived */
    int64_t delay_ms; /* and then for this time */
} plan_step;

#define PLAN_ROOM 10

/* The steps are done one after the other. */
typedef struct plan {
    plan_step steps[PLAN_ROOM];
    size_t count;
    size_t next;
} plan;

/* Plans two or three kills of the server and one of the client. With cuts there are four
 * pairs of them, the first before anything has arrived. */
void plan_make(plan *p, uint64_t *random, size_t segments, bool cuts);

/* Returns how many lines may be sent when this many segments have arrived: a little more
 * than up to the next step, and never the last line before all steps are done. */
size_t plan_gate(const plan *p, size_t segments, size_t lines);

/* Returns a random number below another one. */
uint64_t plan_draw(uint64_t *random, uint64_t below);

#endif
