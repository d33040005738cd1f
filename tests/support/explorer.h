/* All interleavings of events up to a depth, over code that cannot be copied: a state is
 * had again by doing what led to it again from the beginning. Paths that end in states
 * of the same hash are gone on with once; how many there are is counted all the same.
 *
 *     explorer_world w = {&mine, begin, enabled, step, hash, finish, drop, name};
 *     explorer_run(&w, &(explorer_limits){.depth = 6}, &report);
 *
 * Nothing that happens may depend on anything but the events since begin. What is merged
 * by a hash that forgets something would be a hole in the search, so with `compare` set
 * nothing is merged, and paths that end in the same hash are held to go on alike: the
 * same events, each to the same hash. */
#ifndef EXPLORER_H
#define EXPLORER_H

#include <stdbool.h>
#include <stdint.h>

#define EXPLORER_DEPTH 64
#define EXPLORER_EVENTS 32

typedef struct explorer_world {
    void *user;
    void (*begin)(void *user);
    /* Which events may happen now; how many. */
    int (*enabled)(void *user, uint8_t events[EXPLORER_EVENTS]);
    /* Fails the test when what comes of it is wrong. */
    void (*step)(void *user, uint8_t event);
    uint64_t (*hash)(void *user);
    /* Lets all come to its end, and judges it. */
    void (*finish)(void *user);
    /* Lets go of everything as it is. */
    void (*drop)(void *user);
    const char *(*name)(uint8_t event);
} explorer_world;

typedef struct explorer_limits {
    int depth;
    int seconds; /* 0 = none: a level is not begun, nor gone on with, after so long */
    bool compare;
} explorer_limits;

typedef struct explorer_report {
    int depth;        /* that was reached with all there is */
    double schedules; /* paths to the states of that depth, and to those before that
                           have no event left */
    uint64_t states;  /* distinct ones */
    uint64_t steps;   /* transitions that were looked at */
    uint64_t judged;  /* ends */
} explorer_report;

/* False when memory ran out. */
bool explorer_run(const explorer_world *w, const explorer_limits *limits,
                  explorer_report *report);
/* One path, as a failure prints it: names with blanks between. False when an event is not
 * enabled. */
bool explorer_replay(const explorer_world *w, const char *path);
/* For a world that fails: the path that led here. */
void explorer_print(const explorer_world *w);

#endif
