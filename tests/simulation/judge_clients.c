/* Judges what the processes of clients do: how often they start a server, and what they
 * know of the resource that they watch. */
#include "judge_state.h"

#include <stdlib.h>
#include <string.h>

#define STARTS_MS 10000

static judge_client *client_of(judge *j, const char *name)
{
    judge_client *c = j->clients;
    while (c && strcmp(c->name, name) != 0)
        c = c->next;
    if (!c) {
        c = calloc(1, sizeof *c);
        judge_copy(c->name, sizeof c->name, name);
        c->next = j->clients;
        j->clients = c;
    }
    return c;
}

static const char *on_start(judge *j, judge_client *c, const judge_words *l)
{
    uint64_t most = judge_number(l, "most");
    if (j->now_ms - c->first_start_ms > STARTS_MS) {
        c->first_start_ms = j->now_ms;
        c->starts = 0;
    }
    if (++c->starts > most && most)
        return judge_wrong(j, "pauses: %s starts its server %d times in %d ms", c->name,
                           (int)c->starts, (int)(j->now_ms - c->first_start_ms));
    return NULL;
}

const char *judge_on_client(judge *j, const judge_words *l)
{
    return on_start(j, client_of(j, l->a), l);
}

void judge_free_clients(judge *j)
{
    while (j->clients) {
        judge_client *c = j->clients;
        j->clients = c->next;
        free(c);
    }
}
