/* Runs the demo: starts the client, kills it and its server at random moments, starts it
 * again, and looks at what arrived. */
#ifndef CONDUCTOR_H
#define CONDUCTOR_H

#include <stdint.h>

#include "compare.h"

typedef struct totals {
    unsigned server_kills;
    unsigned client_restarts;
} totals;

/* Prints the last line of the demo. Zero when everything is as it should be: what arrived
 * is what was sent, and there were kills enough to make that worth something. */
int conductor_verdict(const comparison *found, const totals *counts);

/* Returns an exit status. program: the path of this program, which is also the client. */
int conductor_run(const char *program, const char *text_path, uint64_t seed,
                  int duration_ms);

#endif
