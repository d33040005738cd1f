#include "verdict.h"

#include <stdio.h>

#define LEAST_CUTS 5
#define LEAST_SERVER_KILLS 2
#define LEAST_CLIENT_RESTARTS 1

static bool too_few(const char *what, unsigned count, unsigned least)
{
    if (count < least)
        printf("went wrong: %u %s, at least %u are wanted\n", count, what, least);
    return count < least;
}

int verdict(const comparison *found, const totals *counts)
{
    bool ok = found->same_bytes && !found->lost && !found->duplicated && !found->altered;
    if (too_few("cuts", counts->cuts, counts->http ? LEAST_CUTS : 0))
        ok = false;
    if (too_few("server kills", counts->server_kills, LEAST_SERVER_KILLS))
        ok = false;
    if (too_few("client restarts", counts->client_restarts, LEAST_CLIENT_RESTARTS))
        ok = false;
    printf("demo %s: %zu segments, %u cuts, %u server kills, %u client restarts, "
           "%zu lost, %zu duplicated, %zu altered\n",
           ok ? "ok" : "FAILED", found->segments, counts->cuts, counts->server_kills,
           counts->client_restarts, found->lost, found->duplicated, found->altered);
    return ok ? 0 : 1;
}
