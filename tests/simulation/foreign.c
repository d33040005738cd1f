/* What servers of others do, and ours does not. The messages of our server are changed on
 * their way to the client.
 *
 * A log with a gap: a task never shows one of its segments, neither in a stream nor when
 * its client asks again. Only the whole result has it. A client can notice the gap only
 * by a later segment, so each call has one. */
#include "simulation/sim.h"

#include <stdio.h>
#include <string.h>

static bool has(const char *text, size_t n, const char *what)
{
    return memmem(text, n, what, strlen(what)) != NULL;
}

/* Returns the byte behind the object that begins at `at`. */
static const char *behind_object(const char *at, const char *end)
{
    int depth = 0;
    bool quoted = false;
    for (; at < end; at++) {
        if (*at == '\\') {
            at++;
        } else if (*at == '"') {
            quoted = !quoted;
        } else if (!quoted) {
            depth += (*at == '{') - (*at == '}');
            if (!depth)
                return at + 1;
        }
    }
    return end;
}

/* Removes the object that begins with `start` from its list. */
static size_t remove_object(char *text, size_t n, const char *start)
{
    char *at = memmem(text, n, start, strlen(start));
    if (!at)
        return n;
    char *end = text + n;
    const char *behind = behind_object(at, end);
    if (*behind == ',')
        behind++;
    else if (at[-1] == ',')
        at--;
    memmove(at, behind, (size_t)(end - behind));
    return n - (size_t)(behind - at);
}

int sim_gap(const sim *s)
{
    int least = COMPOSITION_BLOCKS;
    for (int i = 0; i < sim_planned(s, SIM_calls); i++)
        if (s->apps[i].program.block_count < least)
            least = s->apps[i].program.block_count;
    return sim_planned(s, SIM_gap) && least > 1
               ? 1 + (int)(sim_planned(s, SIM_gap) % (least - 1))
               : 0;
}

size_t sim_leave_gap(const sim *s, char *text, size_t n)
{
    char start[40];
    int gap = s->gap;
    if (!gap)
        return n;
    if (has(text, n, "\"notifications/tasks/event\"")) {
        snprintf(start, sizeof start, "],\"segment\":%d}", gap);
        return has(text, n, start) ? 0 : n;
    }
    snprintf(start, sizeof start, "{\"seqNr\":%d,", gap);
    return has(text, n, "\"partial-content\":[") ? remove_object(text, n, start) : n;
}
