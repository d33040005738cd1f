#include "support/fault_store.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/store.h"

#define DYING_MS 10   /* time in which output that is sent too early leaves the process */
#define FIRST_FINAL 8 /* kinds FIRST_FINAL to LAST_FINAL of an entry end an operation */
#define LAST_FINAL 11

typedef struct made {
    uint8_t id[SEGUE_STORE_ID_SIZE];
    char task_id[132];
    uint64_t *hashes; /* hash of entry seq at [seq - 1]; 0 = never written */
    size_t count;
    int finals;
} made;

struct fault_store {
    segue_store *inner;
    char path[128];
    fault_where where;
    int32_t kind;
    int countdown;
    int *died;
    int dead;
    int keeps;
    segue_status status;
    int refuse;
    segue_status read_status;
    int unreadable;
    uint64_t trim;
    int32_t records;
    int keyless, hides_key;
    made *all;
    size_t count;
    int changed, commits, refusals, finds, reads, drops;
    int claimed, most_claimed;
};

/* ---- account ---- */

static uint64_t hash_of(const segue_store_entry *entry)
{
    const unsigned char *data = (const unsigned char *)entry->data;
    uint64_t hash = 14695981039346656037u ^ (uint64_t)entry->kind ^ entry->segment << 8 ^
                    entry->event << 32;
    for (size_t i = 0; i < entry->data_len; i++)
        hash = (hash ^ data[i]) * 1099511628211u;
    return hash | 1;
}

static made *find_made(const fault_store *f, const uint8_t *id)
{
    for (size_t i = f->count; i-- > 0;)
        if (!memcmp(f->all[i].id, id, SEGUE_STORE_ID_SIZE))
            return &f->all[i];
    return NULL;
}

/* A mailbox of a server (engine/server/mailbox.h) is no operation of a client. */
static int is_mailbox(const segue_store_record *record)
{
    int i = 0;
    while (i < SEGUE_STORE_HASH_SIZE && record->principal[i] == 0xff)
        i++;
    return i == SEGUE_STORE_HASH_SIZE;
}

static void note_create(fault_store *f, const segue_store_record *record)
{
    if (is_mailbox(record))
        return;
    f->all = realloc(f->all, (f->count + 1) * sizeof *f->all);
    made *m = &f->all[f->count++];
    memset(m, 0, sizeof *m);
    memcpy(m->id, record->id, sizeof m->id);
    snprintf(m->task_id, sizeof m->task_id, "%s", record->task_id);
}

static void note_entry(fault_store *f, const uint8_t *id, const segue_store_entry *entry)
{
    made *m = find_made(f, id);
    uint64_t hash = hash_of(entry);
    if (!m)
        return;
    m->finals += entry->kind >= FIRST_FINAL && entry->kind <= LAST_FINAL;
    if (entry->seq > m->count) {
        m->hashes = realloc(m->hashes, entry->seq * sizeof *m->hashes);
        memset(m->hashes + m->count, 0, (entry->seq - m->count) * sizeof *m->hashes);
        m->count = entry->seq;
    }
    uint64_t *slot = &m->hashes[entry->seq - 1];
    if (*slot && *slot != hash)
        f->changed++;
    *slot = hash;
}

static void note(fault_store *f, const segue_store_write *writes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (writes[i].kind == SEGUE_STORE_CREATE)
            note_create(f, writes[i].record);
        else if (writes[i].kind == SEGUE_STORE_APPEND)
            note_entry(f, writes[i].id, &writes[i].entry);
        f->drops += writes[i].kind == SEGUE_STORE_DROP;
    }
}

/* ---- faults ---- */

static int holds(const segue_store_write *writes, size_t count, int32_t kind)
{
    for (size_t i = 0; i < count; i++)
        if (!kind || writes[i].kind == kind)
            return 1;
    return 0;
}

static void die(fault_store *f)
{
    f->where = FAULT_NONE;
    if (!f->died) {
        poll(NULL, 0, DYING_MS);
        kill(getpid(), SIGKILL);
    }
    f->dead = 1;
    *f->died = 1;
}

/* Commits all writes except those that drop something. */
static segue_status commit_kept(fault_store *f, const segue_store_write *writes,
                                size_t count)
{
    segue_store_write *some = calloc(count, sizeof *some);
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (writes[i].kind != SEGUE_STORE_DROP)
            some[n++] = writes[i];
    segue_status status = sgi_store_commit(f->inner, some, n);
    free(some);
    return status;
}

/* The account and the faults are about the operations of clients, not about the key that
 * the server keeps in the store when it starts. */
static int is_key(const char *task_id)
{
    return task_id && !strcmp(task_id, "dev.segue/seal-key");
}

static segue_status commit(void *self, const segue_store_write *writes, size_t count)
{
    fault_store *f = self;
    int now = 0;
    if (f->dead)
        return SEGUE_E_STORE;
    if (writes->kind == SEGUE_STORE_CREATE && is_key(writes->record->task_id))
        return f->keyless && f->keyless-- ? SEGUE_E_STORE
                                          : sgi_store_commit(f->inner, writes, count);
    if (f->refuse > 0) {
        f->refuse--;
        f->refusals++;
        return f->status;
    }
    if (f->where != FAULT_NONE && holds(writes, count, f->kind))
        now = --f->countdown == 0;
    if (now && f->where == FAULT_BEFORE) {
        die(f);
        return SEGUE_E_STORE;
    }
    segue_status status = f->keeps ? commit_kept(f, writes, count)
                                   : sgi_store_commit(f->inner, writes, count);
    if (status == SEGUE_OK) {
        f->commits++;
        note(f, writes, count);
    }
    if (now)
        die(f);
    return f->dead ? SEGUE_E_STORE : status;
}

static segue_status find(void *self, const char *task_id, const uint8_t *key,
                         segue_store_record_fn fn, void *user)
{
    fault_store *f = self;
    f->finds += !is_key(task_id);
    if (is_key(task_id) && f->hides_key && f->hides_key--)
        return SEGUE_E_NOT_FOUND;
    return f->dead ? SEGUE_E_STORE : sgi_store_find(f->inner, task_id, key, fn, user);
}

typedef struct trimmed {
    fault_store *f;
    segue_store_entry_fn fn;
    void *user;
} trimmed;

static int32_t pass_entry(void *user, const segue_store_entry *entry)
{
    trimmed *t = user;
    return entry->seq <= t->f->trim ? 0 : t->fn(t->user, entry);
}

static segue_status read_log(void *self, const uint8_t *id, uint64_t after,
                             segue_store_entry_fn fn, void *user)
{
    fault_store *f = self;
    trimmed t = {f, fn, user};
    f->reads++;
    if (f->unreadable && f->unreadable--)
        return f->read_status;
    return f->dead ? SEGUE_E_STORE : sgi_store_read(f->inner, id, after, pass_entry, &t);
}

typedef struct claiming {
    segue_store_record_fn fn;
    void *user;
    int count;
} claiming;

static int32_t pass_claimed(void *user, const segue_store_record *record)
{
    claiming *c = user;
    c->count++;
    return c->fn(c->user, record);
}

static segue_status claim(void *self, segue_store_record_fn fn, void *user)
{
    fault_store *f = self;
    claiming c = {fn, user, 0};
    segue_status status =
        f->dead ? SEGUE_E_STORE : sgi_store_claim(f->inner, pass_claimed, &c);
    f->claimed += c.count;
    if (c.count > f->most_claimed)
        f->most_claimed = c.count;
    return status;
}

static segue_status list(void *self, const uint8_t *principal, int64_t created_ms,
                         const char *task_id, segue_store_record_fn fn, void *user)
{
    fault_store *f = self;
    return f->dead ? SEGUE_E_STORE
                   : sgi_store_list(f->inner, principal, created_ms, task_id, fn, user);
}

static segue_status scan(void *self, uint64_t *place, segue_store_record_fn fn,
                         void *user)
{
    fault_store *f = self;
    return f->dead ? SEGUE_E_STORE : sgi_store_scan_turn(f->inner, place, fn, user);
}

static segue_status purge(void *self, int64_t now_ms, int64_t *next_ms)
{
    fault_store *f = self;
    return f->dead ? SEGUE_E_STORE : sgi_store_purge(f->inner, now_ms, next_ms);
}

void fault_store_forget(fault_store *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->all[i].hashes);
    f->count = 0;
}

static void free_store(void *self)
{
    fault_store *f = self;
    fault_store_forget(f);
    free(f->all);
    sgi_store_unref(f->inner);
    free(f);
}

/* ---- the handle ---- */

static void open_inner(fault_store *f)
{
    segue_status status = *f->path
                              ? sgi_store_sqlite_new(f->path, NULL, &f->inner, NULL, 0)
                              : sgi_store_memory_new(NULL, &f->inner);
    if (status != SEGUE_OK) {
        fprintf(stderr, "store: %s\n", segue_status_name(status));
        abort();
    }
}

static int32_t records(void *self)
{
    fault_store *f = self;
    return f->records;
}

static fault_store *make(const char *path, int32_t blocking, segue_store **handle)
{
    fault_store *f = calloc(1, sizeof *f);
    segue_store_vtable vtable = SEGUE_STORE_VTABLE_INIT;
    snprintf(f->path, sizeof f->path, "%s", path ? path : "");
    open_inner(f);
    vtable.blocking = blocking;
    vtable.commit = commit;
    vtable.find = find;
    vtable.read = read_log;
    vtable.claim = claim;
    vtable.purge = purge;
    vtable.free = free_store;
    vtable.list = list;
    vtable.scan = scan;
    vtable.records = records;
    f->records = SGI_RECORDS;
    if (segue_store_custom(&vtable, f, NULL, handle) != SEGUE_OK)
        abort();
    return f;
}

fault_store *fault_store_new(const char *path, segue_store **handle)
{
    return make(path, 0, handle);
}

fault_store *fault_store_new_blocking(const char *path, segue_store **handle)
{
    return make(path, 1, handle);
}

void fault_store_take_records(fault_store *f, int32_t format)
{
    f->records = format;
}

void fault_store_die(fault_store *f, fault_where where, int32_t kind, int n, int *died)
{
    f->where = where;
    f->kind = kind;
    f->countdown = n;
    f->died = died;
}

void fault_store_refuse(fault_store *f, segue_status status, int times)
{
    f->status = status;
    f->refuse = times;
}

void fault_store_plan(fault_store *f, const char *plan)
{
    char where[32] = "";
    int n = 0;
    sscanf(plan, "%31[^:]:%d", where, &n);
    if (!strcmp(where, "before"))
        fault_store_die(f, FAULT_BEFORE, 0, n, NULL);
    else if (!strcmp(where, "after"))
        fault_store_die(f, FAULT_AFTER, 0, n, NULL);
    else if (!strcmp(where, "before-create"))
        fault_store_die(f, FAULT_BEFORE, SEGUE_STORE_CREATE, n, NULL);
    else if (!strcmp(where, "full"))
        fault_store_refuse(f, SEGUE_E_STORE_FULL, n);
}

void fault_store_revive(fault_store *f)
{
    f->dead = 0;
    f->where = FAULT_NONE;
    if (*f->path) {
        sgi_store_unref(f->inner);
        open_inner(f);
        return;
    }
    /* A memory store survives the simulated death, so the operations of the dead process
     * are released here. */
    for (size_t i = 0; i < f->count; i++) {
        segue_store_write release = {.kind = SEGUE_STORE_RELEASE};
        memcpy(release.id, f->all[i].id, sizeof release.id);
        sgi_store_commit(f->inner, &release, 1);
    }
}

void fault_store_keep(fault_store *f)
{
    f->keeps = 1;
}

void fault_store_trim(fault_store *f, uint64_t upto)
{
    f->trim = upto;
}

/* ---- what was written ---- */

const char *fault_store_task(const fault_store *f, size_t i)
{
    return i < f->count ? f->all[i].task_id : NULL;
}

int fault_store_finals(const fault_store *f, size_t i)
{
    return f->all[i].finals;
}

int fault_store_changed(const fault_store *f)
{
    return f->changed;
}

int fault_store_finds(const fault_store *f)
{
    return f->finds;
}

void fault_store_refuse_key(fault_store *f, int times)
{
    f->keyless = times;
}

void fault_store_hide_key(fault_store *f)
{
    f->hides_key = 1;
}

void fault_store_fail_reads(fault_store *f, segue_status status, int times)
{
    f->read_status = status;
    f->unreadable = times;
}

int fault_store_reads(const fault_store *f)
{
    return f->reads;
}

int fault_store_commits(const fault_store *f)
{
    return f->commits;
}

int fault_store_claimed(const fault_store *f)
{
    return f->claimed;
}

int fault_store_most_claimed(const fault_store *f)
{
    return f->most_claimed;
}

int fault_store_drops(const fault_store *f)
{
    return f->drops;
}

int fault_store_refusals(const fault_store *f)
{
    return f->refusals;
}
