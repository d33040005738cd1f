/* Further readers of the same task, in other languages. Each reads from the first segment
 * on while the first reader reads, and must have the same bytes in the end. */
#ifndef COMPANION_H
#define COMPANION_H

#include <stdbool.h>
#include <stddef.h>

#include "player.h"
#include "text.h"

enum { COMPANIONS = 2 }; /* Python, Node */

typedef struct companion {
    const char *language;
    const char
        *run[3]; /* interpreter, its option, program; run[0] NULL = this companion does
                  * not exist */
    player player;
    size_t segments;
    bool started;
    bool done;     /* it has reported its end */
    char why[256]; /* what went wrong */
} companion;

typedef struct companions {
    companion each[COMPANIONS];
    const char *dir; /* directory of the run */
} companions;

/* Finds the companions in the environment. dir: directory of the run; it must live as
 * long. */
void companions_init(companions *all, const char *dir);

/* Lets no companion take part. */
void companions_dismiss(companions *all);

/* Starts the companions, once: the state file of the first reader names a task by now.
 * program: the demo. */
void companions_start(companions *all, const char *program, const char *url);

/* Reads the companion's output; reaps the process when its output has ended. */
void companion_hear(companion *c);

/* Returns true when there is no companion to wait for. */
bool companions_are_over(const companions *all);

/* Kills the companions that still run. */
void companions_end(companions *all);

/* Prints what they have read. Returns false when the text of one is wrong. */
bool companions_judge(const companions *all, const text *sent);

#endif
