/* Explores all interleavings of events up to a depth, for code that cannot be copied. A
 * state is reached again by repeating its events from the beginning. Paths that end in
 * states of the same hash are continued only once, but all are counted.
 *
 *     explorer_world w = {&mine, begin, enabled, step, hash, finish, drop, name};
 *     explorer_run(&w, &(explorer_limits){.depth = 6}, &report);
 *
 * The outcome must depend only on the events since begin. A hash that ignores a part of
 * the state would make the search incomplete. To find such a hash, set `compare`: the
 * explorer then merges no states, and checks that paths with the same hash continue in
 * the same way (the same events lead to the same hashes). */
#ifndef EXPLORER_H
#define EXPLORER_H

#include <stdbool.h>
#include <stdint.h>

#define EXPLORER_DEPTH 64
#define EXPLORER_EVENTS 32

typedef struct explorer_world {
    void *user;
    void (*begin)(void *user);
    /* Fills in the events that may happen now; returns their number. */
    int (*enabled)(void *user, uint8_t events[EXPLORER_EVENTS]);
    /* Plays one event; fails the test when the outcome is wrong. */
    void (*step)(void *user, uint8_t event);
    uint64_t (*hash)(void *user);
    /* Plays the rest of the path to its end and checks the outcome. */
    void (*finish)(void *user);
    /* Frees everything in its present state. */
    void (*drop)(void *user);
    const char *(*name)(uint8_t event);
} explorer_world;

typedef struct explorer_limits {
    int depth;
    int seconds; /* the time in seconds after which the search stops; 0 = no limit */
    bool compare;
} explorer_limits;

typedef struct explorer_report {
    int depth;        /* last depth that was searched completely */
    double schedules; /* number of paths to the states of that depth, and to earlier
                       * states without further events */
    uint64_t states;  /* number of different states */
    uint64_t steps;   /* number of transitions examined */
    uint64_t judged;  /* number of ends that were checked */
} explorer_report;

/* Runs the search; returns false when memory ran out. */
bool explorer_run(const explorer_world *w, const explorer_limits *limits,
                  explorer_report *report);
/* Replays one path in the form that a failure prints: names with blanks between them.
 * Returns false when an event is not enabled. */
bool explorer_replay(const explorer_world *w, const char *path);
/* Prints the path that led to the current state, for a world that fails. */
void explorer_print(const explorer_world *w);

#endif
