/* Further readers of the same task, in other languages: each reads from the first segment
 * while the first reader reads, and must have the same bytes in the end. */
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
        *run[3]; /* interpreter, its option, program; run[0] NULL = there is none */
    player player;
    size_t segments;
    bool started;
    bool done;     /* it has said so */
    char why[256]; /* it went wrong */
} companion;

typedef struct companions {
    companion each[COMPANIONS];
    const char *dir; /* of the run */
} companions;

/* Looks in the environment which there are. dir: of the run, lives as long. */
void companions_init(companions *all, const char *dir);

/* None takes part. */
void companions_dismiss(companions *all);

/* Starts those that there are, once: the state file of the first reader names a task by
 * now. program: the demo. */
void companions_start(companions *all, const char *program, const char *url);

/* Hears what it says; reaps it when its voice has ended. */
void companion_hear(companion *c);

/* Nothing is to be waited for. */
bool companions_are_over(const companions *all);

/* Kills those that are still there. */
void companions_end(companions *all);

/* Says what they have read. False when the text of one is another one. */
bool companions_judge(const companions *all, const text *sent);

#endif
