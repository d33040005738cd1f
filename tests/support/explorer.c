/* The search goes level by level, so the first wrong path that it finds is one of the
 * shortest wrong paths. A level is a list of states. Each state has one path to it and
 * the number of all its paths. The next level is made by applying each enabled event to
 * each state. States of different levels are not merged. So the hash of a state must
 * include the number of its events; otherwise the state is examined once per level.
 *
 * States are identified by 64 bits. With a million states the chance that two have the
 * same hash is one in thirty million. */
#include "support/explorer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct node {
    uint64_t hash;
    uint64_t onward; /* with `compare`: hash of the states that its events lead to */
    double paths;
    uint8_t path[EXPLORER_DEPTH];
} node;

typedef struct level {
    node *nodes;
    size_t count, room;
    uint32_t *slots; /* index + 1 by hash; 0 = free slot */
    size_t slot_count;
} level;

static uint8_t now[EXPLORER_DEPTH]; /* the path of the current state */
static int now_count;

void explorer_print(const explorer_world *w)
{
    fprintf(stderr, "SEGUE_PATH=\"");
    for (int i = 0; i < now_count; i++)
        fprintf(stderr, "%s%s", i ? " " : "", w->name(now[i]));
    fprintf(stderr, "\"\n");
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

/* ---- levels ---- */

static void level_free(level *l)
{
    free(l->nodes);
    free(l->slots);
    *l = (level){0};
}

static uint32_t *slot_of(const level *l, uint64_t hash)
{
    size_t at = mix(0, hash) & (l->slot_count - 1);
    while (l->slots[at] && l->nodes[l->slots[at] - 1].hash != hash)
        at = (at + 1) & (l->slot_count - 1);
    return &l->slots[at];
}

static bool level_grow(level *l)
{
    size_t room = l->room ? l->room * 2 : 1024;
    node *nodes = realloc(l->nodes, room * sizeof *nodes);
    if (nodes)
        l->nodes = nodes;
    uint32_t *slots = nodes ? calloc(room * 2, sizeof *slots) : NULL;
    if (!slots)
        return false;
    free(l->slots);
    l->slots = slots;
    l->slot_count = room * 2;
    l->room = room;
    for (size_t i = 0; i < l->count; i++) {
        uint32_t *slot = slot_of(l, l->nodes[i].hash);
        if (!*slot)
            *slot = (uint32_t)i + 1;
    }
    return true;
}

static node *level_find(const level *l, uint64_t hash)
{
    uint32_t *slot = l->slot_count ? slot_of(l, hash) : NULL;
    return slot && *slot ? &l->nodes[*slot - 1] : NULL;
}

static bool level_add(level *l, uint64_t hash, double paths)
{
    if (l->count == l->room && !level_grow(l))
        return false;
    node *n = &l->nodes[l->count++];
    *n = (node){.hash = hash, .paths = paths};
    memcpy(n->path, now, (size_t)now_count);
    uint32_t *slot = slot_of(l, hash);
    if (!*slot)
        *slot = (uint32_t)l->count;
    return true;
}

/* ---- the search ---- */

typedef struct search {
    const explorer_world *w;
    const explorer_limits *limits;
    explorer_report *report;
    level here, next;
    time_t end;
} search;

static void take(const explorer_world *w, uint8_t event)
{
    now[now_count++] = event;
    w->step(w->user, event);
}

static void go_to(const explorer_world *w, const uint8_t *path, int depth)
{
    now_count = 0;
    w->begin(w->user);
    for (int i = 0; i < depth; i++)
        take(w, path[i]);
}

/* Notes the state after a step. If the state is new, its path is also played to the end
 * and judged. */
static bool arrive(search *s, double paths, uint64_t *hash)
{
    const explorer_world *w = s->w;
    *hash = w->hash(w->user);
    node *known = s->limits->compare ? NULL : level_find(&s->next, *hash);
    s->report->steps++;
    if (known) {
        known->paths += paths;
        w->drop(w->user);
        return true;
    }
    s->report->states += level_find(&s->next, *hash) == NULL;
    s->report->judged++;
    bool fits = level_add(&s->next, *hash, paths);
    w->finish(w->user);
    return fits;
}

static bool expand(search *s, size_t i, int depth)
{
    const explorer_world *w = s->w;
    uint8_t path[EXPLORER_DEPTH], events[EXPLORER_EVENTS];
    double paths = s->here.nodes[i].paths;
    uint64_t onward = 0, hash;
    memcpy(path, s->here.nodes[i].path, sizeof path);
    go_to(w, path, depth);
    int count = w->enabled(w->user, events);
    if (!count) {
        s->report->schedules += paths;
        w->drop(w->user);
    }
    for (int e = 0; e < count; e++) {
        if (e)
            go_to(w, path, depth);
        take(w, events[e]);
        if (!arrive(s, paths, &hash))
            return false;
        onward = mix(mix(onward, events[e]), hash);
    }
    s->here.nodes[i].onward = onward;
    return true;
}

/* Checks that states with the same hash continue in the same way. */
static void compare(search *s, int depth)
{
    for (size_t i = 0; s->limits->compare && i < s->here.count; i++) {
        const node *n = &s->here.nodes[i];
        const node *first = level_find(&s->here, n->hash);
        if (first->onward == n->onward)
            continue;
        memcpy(now, first->path, sizeof now);
        now_count = depth;
        fprintf(stderr, "taken for the same, and going on differently:\n");
        explorer_print(s->w);
        memcpy(now, n->path, sizeof now);
        explorer_print(s->w);
        abort();
    }
}

static bool is_late(const search *s)
{
    return s->limits->seconds && time(NULL) >= s->end;
}

bool explorer_run(const explorer_world *w, const explorer_limits *limits,
                  explorer_report *report)
{
    search s = {.w = w, .limits = limits, .report = report};
    uint64_t hash;
    double stuck = 0;
    *report = (explorer_report){0};
    s.end = time(NULL) + limits->seconds;
    go_to(w, NULL, 0);
    bool ok = arrive(&s, 1, &hash);
    for (int depth = 0; ok && depth < limits->depth && !is_late(&s); depth++) {
        bool whole = true;
        level_free(&s.here);
        s.here = s.next;
        s.next = (level){0};
        stuck = report->schedules;
        for (size_t i = 0; ok && whole && i < s.here.count; i++) {
            ok = expand(&s, i, depth);
            whole = !is_late(&s) || i + 1 == s.here.count;
        }
        if (!whole || !ok)
            break;
        compare(&s, depth);
        stuck = report->schedules;
        report->depth = depth + 1;
    }
    const level *last = report->depth && s.next.count ? &s.next : &s.here;
    report->schedules = stuck;
    for (size_t i = 0; i < last->count; i++)
        report->schedules += last->nodes[i].paths;
    level_free(&s.here);
    level_free(&s.next);
    return ok;
}

bool explorer_replay(const explorer_world *w, const char *path)
{
    uint8_t events[EXPLORER_EVENTS];
    go_to(w, NULL, 0);
    while (*path) {
        size_t n = strcspn(path, " ");
        int count = w->enabled(w->user, events), i = 0;
        while (i < count && (strlen(w->name(events[i])) != n ||
                             memcmp(w->name(events[i]), path, n) != 0))
            i++;
        if (i == count)
            return false;
        take(w, events[i]);
        path += n + (path[n] == ' ');
    }
    w->finish(w->user);
    return true;
}
