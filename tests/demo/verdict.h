/* Decides whether the demo has shown what it must show. */
#ifndef VERDICT_H
#define VERDICT_H

#include <stdbool.h>

#include "compare.h"

typedef struct totals {
    bool http;     /* over stdio nothing can be cut */
    unsigned cuts; /* cuts that the proxy counted: connections that were carrying
                    * something */
    unsigned server_kills;
    unsigned client_restarts;
} totals;

/* Prints what is missing and the last line of the demo. Returns zero when everything is
 * right: what arrived equals what was sent, and there were enough kills and cuts to prove
 * something. */
int verdict(const comparison *found, const totals *counts);

#endif
