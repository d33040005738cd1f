/* The succession of sources. When the configuration is read anew, a source may replace
 * another one. Its items are shown in one step with the end of the items of the other
 * one, so what a list shows can always be called.
 *
 * A source may also take a path from which another source goes to a third path. Then the
 * names are free only when that one is ready, too. Sources that wait for each other, such
 * as two that trade their paths, change in the same step. */
#include "service.h"

/* True when `mover` is the next form of a source whose names are at the path of `s` until
 * the mover is ready at another path. */
static bool waits_for(const source *s, const source *mover)
{
    const source *old = mover->replaces;
    return old && old->service == s->service && mover->service != s->service;
}

static bool waits_for_one_that_is_held(const source *s)
{
    for (const source *other = source_next(s->proxy, NULL); other;
         other = source_next(s->proxy, other))
        if (other->held && waits_for(s, other))
            return true;
    return false;
}

/* Finds out which sources are held: those that still start, and those that wait for one
 * that is held. */
static void find_held(const proxy *p)
{
    bool more = true;
    for (source *s = source_next(p, NULL); s; s = source_next(p, s))
        s->held = s->stage == SOURCE_STARTING;
    while (more) {
        more = false;
        for (source *s = source_next(p, NULL); s; s = source_next(p, s))
            if (!s->held && waits_for_one_that_is_held(s))
                s->held = more = true;
    }
}

static source *find_next_heir(const proxy *p)
{
    source *s = source_next(p, NULL);
    while (s && (s->held || !s->replaces))
        s = source_next(p, s);
    return s;
}

/* Ends the source that was replaced, or the one that cannot replace it. */
static void decide(source *s)
{
    source *old = s->replaces;
    s->replaces = NULL;
    if (s->stage == SOURCE_FAILED)
        source_retire(s, "the server before it goes on instead");
    else
        source_retire(old, "the next one has replaced it; it ends after its calls");
}

void successions_settle(proxy *p)
{
    source *s;
    if (p->stage == PROXY_CHANGING || p->stage == PROXY_ENDING)
        return;
    find_held(p);
    for (s = source_next(p, NULL); s; s = source_next(p, s))
        if (!s->held && s->stage == SOURCE_READY && s->replaces)
            catalog_remove(s->replaces);
    for (s = source_next(p, NULL); s; s = source_next(p, s))
        if (!s->held && s->stage == SOURCE_READY) {
            source_enter(s, SOURCE_OFFERED);
            catalog_show(s);
        }
    while ((s = find_next_heir(p)))
        decide(s);
}
