/* A second reader of the same task, in Python: it reads from the first segment while the
 * first reader reads, and must have the same bytes in the end. */
#ifndef COMPANION_H
#define COMPANION_H

#include <stdbool.h>
#include <stddef.h>

#include "player.h"
#include "text.h"

typedef struct companion {
    const char *python; /* NULL = there is none */
    const char *dir;    /* of the run */
    player player;
    size_t segments;
    bool started;
    bool done;     /* it has said so */
    char why[256]; /* it went wrong */
} companion;

/* Looks in the environment whether there is one. dir: of the run, lives as long. */
void companion_init(companion *c, const char *dir);

/* Starts it, once, if there is one: the state file of the first reader names a task by
 * now. */
void companion_start(companion *c, const char *url);

/* Hears what it says; reaps it when its voice has ended. */
void companion_hear(companion *c);

/* Nothing is to be waited for. */
bool companion_is_over(const companion *c);

/* Kills it if it is still there. */
void companion_end(companion *c);

/* Says what it has read. False when it took part and its text is another one. */
bool companion_judge(const companion *c, const text *sent);

#endif
