/* The functions of a shared store. One mutex guards the place. The mutex is held during a
 * wake-up call, because this call never calls the store. */
#include "support/shared_place.h"

#include <stdlib.h>
#include <string.h>

#define PURGE_STEP 2
#define LETTERS_MAX 64

/* ---- the table of functions ---- */

/* Begins a call of the store. Returns SEGUE_E_STORE when the place is out of reach.
 * `leave` ends the call. */
static segue_status enter(shared_store *s)
{
    pthread_mutex_lock(&s->place->lock);
    return s->away || s->dead ? SEGUE_E_STORE : SEGUE_OK;
}

static segue_status leave(shared_store *s, segue_status status)
{
    pthread_mutex_unlock(&s->place->lock);
    return status;
}

static segue_status commit(void *self, const segue_store_write *writes, size_t count)
{
    shared_store *s = self;
    segue_status status = enter(s);
    int fails = !status && s->fail > 0;
    s->fail -= fails;
    if (!status && s->die_in && --s->die_in == 0) {
        if (s->die_late)
            shared_write(s, writes, count);
        s->dead = s->dies = *s->died = 1;
        return leave(s, SEGUE_E_STORE);
    }
    if (!status && (!fails || s->applied))
        status = shared_write(s, writes, count);
    return leave(s, fails ? s->status ? s->status : SEGUE_E_STORE : status);
}

static segue_status find(void *self, const char *task_id, const uint8_t *key,
                         segue_store_record_fn fn, void *user)
{
    shared_store *s = self;
    segue_status status = enter(s);
    if (!status) {
        const shared_op *o = task_id ? shared_find_task(s->place, task_id)
                                     : shared_find_key(s->place, key);
        status = o ? SEGUE_OK : SEGUE_E_NOT_FOUND;
        if (o)
            fn(user, &o->record);
    }
    return leave(s, status);
}

static segue_status read_log(void *self, const uint8_t *id, uint64_t after,
                             segue_store_entry_fn fn, void *user)
{
    shared_store *s = self;
    segue_status status = enter(s);
    const shared_op *o = status ? NULL : shared_find_id(s->place, id);
    for (size_t i = o ? shared_first_after(o, after) : 0; o && i < o->count; i++)
        if (o->entries[i].entry.seq && fn(user, &o->entries[i].entry))
            break;
    return leave(s, o || status ? status : SEGUE_E_NOT_FOUND);
}

static int has_gone(const shared_store *owner, int64_t now)
{
    return !owner || (owner->dead && !owner->leased) ||
           (owner->leased && now - owner->seen_ms > owner->place->lease_ms);
}

static segue_status claim(void *self, segue_store_record_fn fn, void *user)
{
    shared_store *s = self;
    segue_status status = enter(s);
    int64_t now = shared_now(s->place);
    int stopped = status != SEGUE_OK;
    s->seen_ms = status ? s->seen_ms : now;
    for (size_t b = 0; !stopped && b < SHARED_BUCKETS; b++)
        for (shared_op *o = s->place->buckets[SHARED_BY_ID][b]; !stopped && o;
             o = o->next[SHARED_BY_ID]) {
            if (o->record.ended || !has_gone(o->owner, now))
                continue;
            o->owner = s;
            o->told = 0;
            segue_store_record record = o->record;
            if (o->at_risk)
                record.ended = SEGUE_STORE_TORN;
            stopped = fn(user, &record) != 0;
        }
    return leave(s, status);
}

static segue_status purge(void *self, int64_t at_ms, int64_t *next_ms)
{
    shared_store *s = self;
    segue_status status = enter(s);
    int gone = 0;
    *next_ms = INT64_MAX;
    for (size_t b = 0; !status && b < SHARED_BUCKETS; b++) {
        shared_op *next, *o = s->place->buckets[SHARED_BY_ID][b];
        for (; o; o = next) {
            next = o->next[SHARED_BY_ID];
            int64_t due = o->record.purge_ms;
            if (due <= at_ms && due != INT64_MAX && gone < PURGE_STEP) {
                gone++;
                shared_tell_growth(s, o);
                shared_pull(s->place, o);
                shared_free_op(s->place, o);
            } else if (due < *next_ms) {
                *next_ms = due < at_ms ? at_ms : due;
            }
        }
    }
    return leave(s, status);
}

/* Sorts the newest first. */
static int by_age(const void *a, const void *b)
{
    const segue_store_record *x = &(*(shared_op *const *)a)->record;
    const segue_store_record *y = &(*(shared_op *const *)b)->record;
    if (x->created_ms != y->created_ms)
        return x->created_ms < y->created_ms ? 1 : -1;
    return strcmp(y->task_id, x->task_id);
}

static int comes_behind(const segue_store_record *r, int64_t created_ms,
                        const char *task_id)
{
    if (!task_id)
        return 1;
    return r->created_ms != created_ms ? r->created_ms < created_ms
                                       : strcmp(r->task_id, task_id) < 0;
}

static segue_status list(void *self, const uint8_t *principal, int64_t created_ms,
                         const char *task_id, segue_store_record_fn fn, void *user)
{
    shared_store *s = self;
    segue_status status = enter(s);
    shared_op **all = NULL;
    size_t count = 0;
    for (size_t b = 0; !status && b < SHARED_BUCKETS; b++)
        for (shared_op *o = s->place->buckets[SHARED_BY_ID][b]; o;
             o = o->next[SHARED_BY_ID])
            if (!memcmp(o->record.principal, principal, SEGUE_STORE_HASH_SIZE) &&
                comes_behind(&o->record, created_ms, task_id)) {
                all = shared_get(all, (count + 1) * sizeof *all);
                all[count++] = o;
            }
    if (count)
        qsort(all, count, sizeof *all, by_age);
    for (size_t i = 0; i < count && !fn(user, &all[i]->record); i++)
        ;
    free(all);
    return leave(s, status);
}

/* Passes the operations of one bucket. */
static segue_status scan(void *self, uint64_t *place, segue_store_record_fn fn,
                         void *user)
{
    shared_store *s = self;
    segue_status status = enter(s);
    const shared_op *o = status ? NULL : s->place->buckets[SHARED_BY_ID][*place];
    for (; o && !fn(user, &o->record); o = o->next[SHARED_BY_ID])
        ;
    *place = *place + 1 < SHARED_BUCKETS ? *place + 1 : 0;
    return leave(s, status);
}

/* ---- the change feed ---- */

static void set_wake(void *self, void (*wake)(void *user), void *user)
{
    shared_store *s = self;
    pthread_mutex_lock(&s->place->lock);
    s->wake = wake;
    s->wake_user = user;
    pthread_mutex_unlock(&s->place->lock);
}

static segue_status follow_log(void *self, const uint8_t *id, int32_t on)
{
    shared_store *s = self;
    segue_status status = enter(s);
    size_t i = 0;
    while (i < s->follow_count && memcmp(s->follows[i].id, id, SEGUE_STORE_ID_SIZE) != 0)
        i++;
    if (!status && on && !shared_find_id(s->place, id)) {
        status = SEGUE_E_NOT_FOUND;
    } else if (!status && on && i == s->follow_count) {
        s->follows = shared_get(s->follows, (i + 1) * sizeof *s->follows);
        s->follows[s->follow_count] = (shared_follow){.grew = 0};
        memcpy(s->follows[s->follow_count++].id, id, SEGUE_STORE_ID_SIZE);
    } else if (!status && !on && i < s->follow_count) {
        s->follows[i] = s->follows[--s->follow_count];
    }
    return leave(s, status);
}

static segue_status put_letter(shared_place *p, shared_op *o, const char *data,
                               size_t len)
{
    const shared_letter *other;
    shared_letter *l;
    int waiting = 0;
    TAILQ_FOREACH(other, &p->letters, link)
        waiting += other->to == o;
    if (waiting == LETTERS_MAX)
        return SEGUE_E_LIMIT;
    l = shared_get(NULL, sizeof *l + len);
    *l = (shared_letter){.to = o, .number = ++o->posted, .len = len};
    if (len)
        memcpy(l->data, data, len);
    TAILQ_INSERT_TAIL(&p->letters, l, link);
    if (o->owner)
        shared_wake(o->owner);
    return SEGUE_OK;
}

static segue_status post(void *self, const uint8_t *id, const char *data, size_t len)
{
    shared_store *s = self;
    segue_status status = enter(s);
    shared_op *o = status ? NULL : shared_find_id(s->place, id);
    if (!status && !o)
        status = SEGUE_E_NOT_FOUND;
    else if (o && o->record.ended)
        status = SEGUE_E_TERMINAL;
    else if (o)
        status = put_letter(s->place, o, data, len);
    return leave(s, status);
}

static int has_orphans(const shared_place *p, int64_t now)
{
    for (size_t b = 0; b < SHARED_BUCKETS; b++)
        for (const shared_op *o = p->buckets[SHARED_BY_ID][b]; o;
             o = o->next[SHARED_BY_ID])
            if (!o->record.ended && has_gone(o->owner, now))
                return 1;
    return 0;
}

/* An owner whose lease has lapsed may write and die before it renews its lease: so stores
 * look again and again, as Redis and PostgreSQL do. */
static void look_for_lapsed(shared_store *s, int64_t now)
{
    shared_store *other;
    int any = 0;
    s->seen_ms = now;
    s->doubt |= s->lapsed; /* other stores may own the operations now */
    s->lapsed = 0;
    LIST_FOREACH(other, &s->place->all, link) {
        any |= has_gone(other, now);
        if (!other->lapsed && has_gone(other, now)) {
            other->lapsed = 1;
            shared_tell_orphans(s->place, other);
        }
    }
    s->orphans |= any && has_orphans(s->place, now);
}

static int tell(shared_store *s, segue_store_news_fn fn, void *user)
{
    shared_letter *l;
    if (s->orphans && fn(user, &(segue_store_news){.kind = SEGUE_STORE_ORPHANS}))
        return 1;
    s->orphans = 0;
    if (s->doubt && fn(user, &(segue_store_news){.kind = SEGUE_STORE_DOUBT}))
        return 1;
    s->doubt = 0;
    for (size_t i = 0; i < s->follow_count; i++) {
        segue_store_news grew = {.kind = SEGUE_STORE_GREW};
        memcpy(grew.id, s->follows[i].id, sizeof grew.id);
        if (s->follows[i].grew && fn(user, &grew))
            return 1;
        s->follows[i].grew = 0;
    }
    TAILQ_FOREACH(l, &s->place->letters, link) {
        segue_store_news news = {.kind = SEGUE_STORE_LETTER,
                                 .number = l->number,
                                 .data = l->data,
                                 .data_len = l->len};
        if (l->to->owner != s || l->number <= l->to->told)
            continue;
        memcpy(news.id, l->to->record.id, sizeof news.id);
        if (fn(user, &news))
            return 1;
        l->to->told = l->number;
    }
    return 0;
}

static segue_status news(void *self, segue_store_news_fn fn, void *user,
                         int64_t *within_ms)
{
    shared_store *s = self;
    segue_status status = enter(s);
    *within_ms = s->place->lease_ms / 3;
    if (!status) {
        look_for_lapsed(s, shared_now(s->place));
        tell(s, fn, user);
    }
    return leave(s, status);
}

/* ---- places and instances ---- */

static void unref_place(shared_place *p)
{
    pthread_mutex_lock(&p->lock);
    int left = --p->refs;
    pthread_mutex_unlock(&p->lock);
    if (left)
        return;
    for (size_t b = 0; b < SHARED_BUCKETS; b++)
        while (p->buckets[SHARED_BY_ID][b]) {
            shared_op *o = p->buckets[SHARED_BY_ID][b];
            shared_pull(p, o);
            shared_free_op(p, o);
        }
    while (!LIST_EMPTY(&p->all)) {
        shared_store *ghost = LIST_FIRST(&p->all);
        LIST_REMOVE(ghost, link);
        free(ghost);
    }
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static void free_store(void *self)
{
    shared_store *s = self;
    shared_place *p = s->place;
    if (s->dies && s->leased) {
        free(s->follows);
        s->follows = NULL;
        s->follow_count = 0;
        unref_place(p);
        return;
    }
    pthread_mutex_lock(&p->lock);
    if (s->leased) {
        /* its name stays in its operations: whoever has not claimed them is fenced */
        s->leased = 0;
        s->dead = s->lapsed = 1;
        s->wake = NULL;
        shared_tell_orphans(p, s);
        free(s->follows);
        s->follows = NULL;
        s->follow_count = 0;
        pthread_mutex_unlock(&p->lock);
        unref_place(p);
        return;
    }
    LIST_REMOVE(s, link);
    for (size_t b = 0; b < SHARED_BUCKETS; b++)
        for (shared_op *o = p->buckets[SHARED_BY_ID][b]; o; o = o->next[SHARED_BY_ID])
            if (o->owner == s)
                o->owner = NULL;
    shared_tell_orphans(p, s);
    pthread_mutex_unlock(&p->lock);
    free(s->follows);
    free(s);
    unref_place(p);
}

shared_place *shared_place_new(int64_t lease_ms, int64_t (*clock)(void *), void *user)
{
    shared_place *p = calloc(1, sizeof *p);
    if (!p)
        abort();
    p->refs = 1;
    p->lease_ms = lease_ms;
    p->clock = clock;
    p->clock_user = user;
    pthread_mutex_init(&p->lock, NULL);
    TAILQ_INIT(&p->letters);
    LIST_INIT(&p->all);
    return p;
}

void shared_place_free(shared_place *place)
{
    unref_place(place);
}

segue_status shared_store_new(shared_place *place, const shared_options *options,
                              shared_store **self, segue_store **out)
{
    segue_store_vtable table = SEGUE_STORE_VTABLE_INIT;
    shared_store *s = shared_get(NULL, sizeof *s);
    *s = (shared_store){.place = place, .leased = !options->unleased};
    table.blocking = options->blocking;
    table.leased = !options->unleased;
    table.commit = commit;
    table.find = find;
    table.read = read_log;
    table.claim = claim;
    table.purge = purge;
    table.free = free_store;
    table.list = list;
    table.scan = scan;
    table.set_wake = set_wake;
    table.follow = follow_log;
    table.post = post;
    table.news = news;
    pthread_mutex_lock(&place->lock);
    s->seen_ms = shared_now(place);
    place->refs++;
    LIST_INSERT_HEAD(&place->all, s, link);
    pthread_mutex_unlock(&place->lock);
    segue_status status = segue_store_custom(&table, s, options->options, out);
    if (status != SEGUE_OK)
        free_store(s); /* a failed call takes over no argument */
    else if (self)
        *self = s;
    return status;
}

void shared_store_fail(shared_store *self, int commits, int applied)
{
    pthread_mutex_lock(&self->place->lock);
    self->fail = commits;
    self->applied = applied;
    self->status = SEGUE_OK;
    pthread_mutex_unlock(&self->place->lock);
}

void shared_store_refuse(shared_store *self, int commits, segue_status status)
{
    pthread_mutex_lock(&self->place->lock);
    self->fail = commits;
    self->applied = 0;
    self->status = status;
    pthread_mutex_unlock(&self->place->lock);
}

void shared_store_die(shared_store *self)
{
    pthread_mutex_lock(&self->place->lock);
    self->dead = 1;
    self->dies = 1;
    pthread_mutex_unlock(&self->place->lock);
}

void shared_store_die_at(shared_store *self, int countdown, int late, int *died)
{
    pthread_mutex_lock(&self->place->lock);
    self->die_in = countdown;
    self->die_late = late;
    self->died = died;
    pthread_mutex_unlock(&self->place->lock);
}

void shared_place_drop(shared_place *place)
{
    place->drops = 1;
}

void shared_store_away(shared_store *self, int away)
{
    pthread_mutex_lock(&self->place->lock);
    self->away = away;
    pthread_mutex_unlock(&self->place->lock);
}

int shared_place_finals(const shared_place *place)
{
    return place->finals;
}

int shared_place_fenced(const shared_place *place)
{
    return place->fenced;
}
