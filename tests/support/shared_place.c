/* Operations are kept in a table with three chains: by id, task id and key. A commit is
 * applied write by write. Each write records how to undo it. When a write is refused, the
 * commit undoes all its writes. Operations that are deleted or taken are freed when all
 * writes are applied. */
#include "support/shared_place.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The first and the last kind of entry that end an operation. */
#define FIRST_FINAL 8
#define LAST_FINAL 11

typedef struct undo {
    int32_t kind;
    shared_op *of;
    int32_t ended;
    int64_t purge_ms;
    uint64_t taken;
} undo;

void *shared_get(void *old, size_t size)
{
    void *p = realloc(old, size + 1);
    if (!p)
        abort();
    return p;
}

/* ---- the table ---- */

static size_t bucket_of(const void *bytes, size_t len)
{
    const unsigned char *b = bytes;
    uint32_t hash = 2166136261u;
    while (len--)
        hash = (hash ^ *b++) * 16777619u;
    return hash % SHARED_BUCKETS;
}

static size_t bucket_in(const segue_store_record *r, int chain)
{
    if (chain == SHARED_BY_ID)
        return bucket_of(r->id, sizeof r->id);
    if (chain == SHARED_BY_TASK)
        return bucket_of(r->task_id, strlen(r->task_id));
    return bucket_of(r->idempotency_key, sizeof r->idempotency_key);
}

shared_op *shared_find_id(const shared_place *p, const uint8_t *id)
{
    shared_op *o = p->buckets[SHARED_BY_ID][bucket_of(id, SEGUE_STORE_ID_SIZE)];
    while (o && memcmp(o->record.id, id, SEGUE_STORE_ID_SIZE) != 0)
        o = o->next[SHARED_BY_ID];
    return o;
}

shared_op *shared_find_task(const shared_place *p, const char *task_id)
{
    shared_op *o = p->buckets[SHARED_BY_TASK][bucket_of(task_id, strlen(task_id))];
    while (o && strcmp(o->record.task_id, task_id) != 0)
        o = o->next[SHARED_BY_TASK];
    return o;
}

shared_op *shared_find_key(const shared_place *p, const uint8_t *key)
{
    shared_op *o = p->buckets[SHARED_BY_KEY][bucket_of(key, SEGUE_STORE_HASH_SIZE)];
    while (o && memcmp(o->record.idempotency_key, key, SEGUE_STORE_HASH_SIZE) != 0)
        o = o->next[SHARED_BY_KEY];
    return o;
}

static void put(shared_place *p, shared_op *o)
{
    for (int chain = 0; chain < SHARED_CHAINS; chain++) {
        if (chain == SHARED_BY_KEY && !o->record.has_key)
            continue;
        shared_op **head = &p->buckets[chain][bucket_in(&o->record, chain)];
        o->next[chain] = *head;
        *head = o;
    }
}

void shared_pull(shared_place *p, const shared_op *o)
{
    for (int chain = 0; chain < SHARED_CHAINS; chain++) {
        if (chain == SHARED_BY_KEY && !o->record.has_key)
            continue;
        shared_op **at = &p->buckets[chain][bucket_in(&o->record, chain)];
        while (*at != o)
            at = &(*at)->next[chain];
        *at = o->next[chain];
    }
}

static void forget_commands(shared_place *p, const shared_op *o, uint64_t upto)
{
    shared_letter *l = TAILQ_FIRST(&p->letters);
    while (l) {
        shared_letter *next = TAILQ_NEXT(l, link);
        if (l->to == o && l->number <= upto) {
            TAILQ_REMOVE(&p->letters, l, link);
            free(l);
        }
        l = next;
    }
}

void shared_free_op(shared_place *p, shared_op *o)
{
    forget_commands(p, o, UINT64_MAX);
    for (size_t i = 0; i < o->count; i++)
        free((char *)o->entries[i].entry.data);
    free(o->entries);
    free(o->texts);
    free(o);
}

int64_t shared_now(const shared_place *p)
{
    struct timespec now;
    if (p->clock)
        return p->clock(p->clock_user);
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- telling ---- */

void shared_wake(const shared_store *s)
{
    if (s->wake)
        s->wake(s->wake_user);
}

void shared_tell_growth(const shared_store *by, const shared_op *o)
{
    shared_store *s;
    LIST_FOREACH(s, &by->place->all, link)
        for (size_t i = 0; s != by && i < s->follow_count; i++)
            if (!memcmp(s->follows[i].id, o->record.id, SEGUE_STORE_ID_SIZE)) {
                s->follows[i].grew = 1;
                shared_wake(s);
            }
}

void shared_tell_orphans(shared_place *p, const shared_store *except)
{
    shared_store *s;
    LIST_FOREACH(s, &p->all, link)
        if (s != except) {
            s->orphans = 1;
            shared_wake(s);
        }
}

/* ---- commit ---- */

static int same_bytes(const char *a, size_t a_len, const char *b, size_t b_len)
{
    return a_len == b_len && (!a_len || !memcmp(a, b, a_len));
}

static int same_record(const segue_store_record *a, const segue_store_record *b)
{
    return !strcmp(a->task_id, b->task_id) && a->created_ms == b->created_ms &&
           a->has_key == b->has_key &&
           (!a->has_key ||
            !memcmp(a->idempotency_key, b->idempotency_key, sizeof a->idempotency_key)) &&
           !memcmp(a->principal, b->principal, sizeof a->principal) &&
           same_bytes(a->data, a->data_len, b->data, b->data_len);
}

static segue_status create(shared_store *s, const segue_store_record *record, undo *u)
{
    shared_place *p = s->place;
    if (!record || !record->task_id)
        return SEGUE_E_INVALID;
    shared_op *o = shared_find_id(p, record->id);
    if (o && o->made != p->commits && same_record(&o->record, record)) {
        u->kind = 0;
        return o->owner && o->owner != s ? SEGUE_E_FENCED : SEGUE_OK;
    }
    if (o || shared_find_task(p, record->task_id) ||
        (record->has_key && shared_find_key(p, record->idempotency_key)))
        return SEGUE_E_EXISTS;
    size_t id_len = strlen(record->task_id) + 1;
    o = u->of = shared_get(NULL, sizeof *o);
    *o = (shared_op){.record = *record,
                     .owner = s,
                     .made = p->commits,
                     .made_ms = shared_now(p),
                     .live_purge_ms = record->purge_ms};
    o->texts = shared_get(NULL, id_len + record->data_len);
    memcpy(o->texts, record->task_id, id_len);
    if (record->data_len)
        memcpy(o->texts + id_len, record->data, record->data_len);
    o->record.task_id = o->texts;
    o->record.data = o->texts + id_len;
    put(p, o);
    return SEGUE_OK;
}

size_t shared_first_after(const shared_op *o, uint64_t seq)
{
    size_t low = 0, high = o->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (o->entries[middle].seq <= seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint64_t last_seq(const shared_op *o)
{
    return o->count ? o->entries[o->count - 1].seq : 0;
}

/* Is this the entry that the log has at its seq? */
static int same_entry(const shared_op *o, const segue_store_entry *entry)
{
    size_t i = shared_first_after(o, entry->seq - 1);
    if (i == o->count || o->entries[i].seq != entry->seq)
        return 0;
    const segue_store_entry *old = &o->entries[i].entry;
    return old->kind == entry->kind && old->segment == entry->segment &&
           old->event == entry->event && old->at_ms == entry->at_ms &&
           same_bytes(old->data, old->data_len, entry->data, entry->data_len);
}

static segue_status append(shared_op *o, const segue_store_entry *entry, int64_t now,
                           undo *u)
{
    if (entry->seq && entry->seq <= last_seq(o)) {
        u->kind = 0;
        return same_entry(o, entry) ? SEGUE_OK : SEGUE_E_STATE;
    }
    if (!entry->seq || (entry->seq != last_seq(o) + 1 && entry->seq != o->behind))
        return SEGUE_E_STATE;
    if (o->count == o->cap) {
        o->cap = o->cap ? o->cap * 2 : 8;
        o->entries = shared_get(o->entries, o->cap * sizeof *o->entries);
    }
    char *data = shared_get(NULL, entry->data_len);
    if (entry->data_len)
        memcpy(data, entry->data, entry->data_len);
    o->entries[o->count] = (shared_entry){entry->seq, now, *entry};
    o->entries[o->count++].entry.data = data;
    return SEGUE_OK;
}

static segue_status apply(shared_store *s, const segue_store_write *w, undo *u)
{
    *u = (undo){.kind = w->kind};
    if (w->kind == SEGUE_STORE_CREATE)
        return create(s, w->record, u);
    if (w->kind < SEGUE_STORE_CREATE || w->kind > SEGUE_STORE_TAKEN)
        return SEGUE_E_INVALID;
    shared_op *o = u->of = shared_find_id(s->place, w->id);
    if (!o) {
        u->kind = 0;
        int needed = w->kind == SEGUE_STORE_APPEND || w->kind == SEGUE_STORE_END ||
                     w->kind == SEGUE_STORE_TAKEN;
        return needed ? SEGUE_E_NOT_FOUND : SEGUE_OK;
    }
    u->ended = o->record.ended;
    u->purge_ms = o->record.purge_ms;
    if (w->kind == SEGUE_STORE_DELETE) {
        shared_pull(s->place, o);
        return SEGUE_OK;
    }
    if (w->kind == SEGUE_STORE_RELEASE) {
        if (o->owner != s || o->record.ended)
            u->kind = 0;
        else
            o->owner = NULL;
        return SEGUE_OK;
    }
    if (o->owner && o->owner != s)
        return SEGUE_E_FENCED;
    if (w->kind == SEGUE_STORE_END) {
        o->record.ended = SEGUE_STORE_ENDED;
        o->record.purge_ms = w->purge_ms;
        o->ended_ms = shared_now(s->place);
    }
    u->taken = w->entry.seq;
    if (w->kind == SEGUE_STORE_TAKEN && w->entry.event > last_seq(o))
        return SEGUE_E_STATE;
    if (o->at_risk && w->kind == SEGUE_STORE_TAKEN)
        o->at_risk = w->entry.event != last_seq(o);
    return w->kind == SEGUE_STORE_APPEND ? append(o, &w->entry, shared_now(s->place), u)
                                         : SEGUE_OK;
}

static void take_back(shared_store *s, const undo *u)
{
    shared_op *o = u->of;
    if (u->kind == SEGUE_STORE_CREATE) {
        shared_pull(s->place, o);
        shared_free_op(s->place, o);
    } else if (u->kind == SEGUE_STORE_APPEND) {
        free((char *)o->entries[--o->count].entry.data);
    } else if (u->kind == SEGUE_STORE_END) {
        o->record.ended = u->ended;
        o->record.purge_ms = u->purge_ms;
    } else if (u->kind == SEGUE_STORE_DELETE) {
        put(s->place, o);
    } else if (u->kind == SEGUE_STORE_RELEASE) {
        o->owner = s;
    }
}

static void settle(shared_store *s, const undo *u)
{
    shared_op *o = u->of;
    if (u->kind == SEGUE_STORE_APPEND || u->kind == SEGUE_STORE_END ||
        u->kind == SEGUE_STORE_DELETE)
        shared_tell_growth(s, o);
    if (u->kind == SEGUE_STORE_TAKEN)
        forget_commands(s->place, o, u->taken);
    else if (u->kind == SEGUE_STORE_END)
        forget_commands(s->place, o, UINT64_MAX);
    else if (u->kind == SEGUE_STORE_RELEASE)
        shared_tell_orphans(s->place, NULL);
}

/* Removes entries that nobody needs; never the last one. */
static void drop(shared_op *o, const segue_store_entry *upto)
{
    size_t end = shared_first_after(o, upto->seq);
    for (size_t i = 0; i < end && i + 1 < o->count; i++) {
        segue_store_entry *e = &o->entries[i].entry;
        if (e->seq && e->kind == upto->kind) {
            free((char *)e->data);
            *e = (segue_store_entry){0};
        }
    }
}

static void note_holes(const shared_place *p, const segue_store_write *writes,
                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        shared_op *o =
            writes[i].kind == SEGUE_STORE_END ? shared_find_id(p, writes[i].id) : NULL;
        if (o)
            o->behind = writes[i].entry.seq;
    }
}

static void lose_tail(shared_place *p, shared_op *o, int64_t since_ms)
{
    while (o->count && o->entries[o->count - 1].written_ms > since_ms)
        free((char *)o->entries[--o->count].entry.data);
    if (o->record.ended && o->ended_ms > since_ms) {
        o->record.ended = SEGUE_STORE_LIVE;
        o->record.purge_ms = o->live_purge_ms;
        o->owner = NULL;
        shared_tell_orphans(p, NULL);
    }
    o->at_risk = !o->record.ended;
}

void shared_place_lose(shared_place *p, int64_t ms)
{
    int64_t since_ms = shared_now(p) - ms;
    shared_store *s;
    pthread_mutex_lock(&p->lock);
    for (size_t b = 0; b < SHARED_BUCKETS; b++) {
        shared_op *next, *o = p->buckets[SHARED_BY_ID][b];
        for (; o; o = next) {
            next = o->next[SHARED_BY_ID];
            if (o->made_ms <= since_ms) {
                lose_tail(p, o, since_ms);
                continue;
            }
            shared_pull(p, o);
            shared_free_op(p, o);
        }
    }
    LIST_FOREACH(s, &p->all, link) {
        s->doubt = 1;
        shared_wake(s);
    }
    pthread_mutex_unlock(&p->lock);
}

segue_status shared_write(shared_store *s, const segue_store_write *writes, size_t count)
{
    undo *notes = shared_get(NULL, count * sizeof *notes);
    segue_status status = SEGUE_OK;
    size_t n = 0;
    s->place->commits++;
    note_holes(s->place, writes, count);
    for (; n < count && status == SEGUE_OK; n++)
        status = apply(s, &writes[n], &notes[n]);
    if (status != SEGUE_OK) {
        for (n--; n-- > 0;)
            take_back(s, &notes[n]);
        s->place->fenced += status == SEGUE_E_FENCED;
    } else {
        for (size_t i = 0; i < n; i++)
            settle(s, &notes[i]);
        for (size_t i = 0; i < n && s->place->drops; i++)
            if (notes[i].kind == SEGUE_STORE_DROP)
                drop(notes[i].of, &writes[i].entry);
        for (size_t i = 0; i < n; i++) {
            int32_t kind = notes[i].kind == SEGUE_STORE_APPEND ? writes[i].entry.kind : 0;
            s->place->finals += kind >= FIRST_FINAL && kind <= LAST_FINAL;
        }
        for (size_t i = 0; i < n; i++)
            if (notes[i].kind == SEGUE_STORE_DELETE)
                shared_free_op(s->place, notes[i].of);
    }
    free(notes);
    return status;
}
