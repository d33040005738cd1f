/* Whether the demo has shown what it is there to show. */
#ifndef VERDICT_H
#define VERDICT_H

#include <stdbool.h>

#include "compare.h"

typedef struct totals {
    bool http;     /* over stdio there is nothing to cut */
    unsigned cuts; /* counted by the proxy: connections that were carrying something */
    unsigned server_kills;
    unsigned client_restarts;
} totals;

/* Prints what is missing and the last line of the demo. Zero when everything is as it
 * should be: what arrived is what was sent, and there were kills and cuts enough to make
 * that worth something. */
int verdict(const comparison *found, const totals *counts);

#endif
