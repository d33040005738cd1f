/* A store of your own. The store keeps all data in one array, and counts its commits. A
 * server and a client in this process then run a task on the store.
 *
 * The array has one row for each write, in order. The state of an operation follows from
 * its rows. To undo a commit, the store removes the rows of the commit from the end of
 * the array. So a commit is applied as a whole or not at all. Only `claim` and `purge`
 * remove rows elsewhere, and they never run during a commit. Every search looks at all
 * rows, so a store for more than a few tasks needs an index.
 *
 * The bytes of a row are allocated separately and do not move when the array grows. */
#include <segue/segue.h>
#include <segue/segue_ext.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct row {
    int32_t kind; /* the kind of write: a segue_store_write_kind */
    uint8_t id[SEGUE_STORE_ID_SIZE];
    segue_store_record record; /* only for CREATE; `bytes` has the texts of the record */
    segue_store_entry entry;   /* only for APPEND; `bytes` has the data of the entry */
    /* only for END: the time at which the operation may be deleted */
    int64_t purge_ms;
    char *bytes;
} row;

typedef struct array_store {
    row *rows;
    size_t count;
    size_t cap;
    size_t commits;
} array_store;

/* ---- rows ---- */

static int is_of(const row *r, const uint8_t *id)
{
    return memcmp(r->id, id, sizeof r->id) == 0;
}

/* Returns the CREATE row of an operation, or NULL when the operation does not exist or
 * was deleted. */
static const row *find_created(const array_store *s, const uint8_t *id)
{
    for (size_t i = s->count; i > 0; i--) {
        const row *r = &s->rows[i - 1];
        if (is_of(r, id) && r->kind == SEGUE_STORE_DELETE)
            return NULL;
        if (is_of(r, id) && r->kind == SEGUE_STORE_CREATE)
            return r;
    }
    return NULL;
}

/* Returns the current record of an operation: the record of its CREATE row, changed by
 * its END row. */
static segue_store_record describe(const array_store *s, const row *created)
{
    segue_store_record record = created->record;
    for (const row *r = created + 1; r < s->rows + s->count; r++)
        if (is_of(r, created->id) && r->kind == SEGUE_STORE_END) {
            record.ended = 1;
            record.purge_ms = r->purge_ms;
        }
    return record;
}

static int has_name(const segue_store_record *record, const char *task_id,
                    const uint8_t *key)
{
    if (task_id)
        return strcmp(record->task_id, task_id) == 0;
    return record->has_key &&
           memcmp(record->idempotency_key, key, sizeof record->idempotency_key) == 0;
}

static const row *find_named(const array_store *s, const char *task_id,
                             const uint8_t *key)
{
    for (const row *r = s->rows; r < s->rows + s->count; r++)
        if (r->kind == SEGUE_STORE_CREATE && has_name(&r->record, task_id, key) &&
            find_created(s, r->id) == r)
            return r;
    return NULL;
}

static uint64_t last_seq(const array_store *s, const row *created)
{
    uint64_t seq = 0;
    for (const row *r = created + 1; r < s->rows + s->count; r++)
        if (is_of(r, created->id) && r->kind == SEGUE_STORE_APPEND)
            seq = r->entry.seq;
    return seq;
}

/* Returns whether the operation's server has released the operation. A released operation
 * has exactly one RELEASE row, until the next claim removes the row. */
static int is_loose(const array_store *s, const row *created)
{
    for (const row *r = created + 1; r < s->rows + s->count; r++)
        if (is_of(r, created->id) && r->kind == SEGUE_STORE_RELEASE)
            return 1;
    return 0;
}

static void remove_row(array_store *s, size_t at)
{
    free(s->rows[at].bytes);
    s->count--;
    memmove(&s->rows[at], &s->rows[at + 1], (s->count - at) * sizeof *s->rows);
}

/* ---- commit ---- */

static segue_status add_row(array_store *s, const segue_store_write *write)
{
    const segue_store_record *record = write->record;
    const char *data = record ? record->data : write->entry.data;
    size_t data_len = record ? record->data_len : write->entry.data_len;
    size_t id_len = record ? strlen(record->task_id) + 1 : 0;
    if (s->count == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 64;
        row *rows = realloc(s->rows, cap * sizeof *rows);
        if (!rows)
            return SEGUE_E_NOMEM;
        s->rows = rows;
        s->cap = cap;
    }
    row r = {.kind = write->kind, .entry = write->entry, .purge_ms = write->purge_ms};
    r.bytes = malloc(id_len + data_len + 1);
    if (!r.bytes)
        return SEGUE_E_NOMEM;
    memcpy(r.id, record ? record->id : write->id, sizeof r.id);
    if (data_len)
        memcpy(r.bytes + id_len, data, data_len);
    r.entry.data = r.bytes + id_len;
    if (record) {
        memcpy(r.bytes, record->task_id, id_len);
        r.record = *record;
        r.record.task_id = r.bytes;
        r.record.data = r.bytes + id_len;
    }
    s->rows[s->count++] = r;
    return SEGUE_OK;
}

static segue_status apply(array_store *s, const segue_store_write *write)
{
    segue_store_write plain = *write;
    const row *created = find_created(s, write->id);
    if (write->kind != SEGUE_STORE_CREATE)
        plain.record = NULL;
    if (write->kind != SEGUE_STORE_APPEND)
        plain.entry = (segue_store_entry){0};
    switch (write->kind) {
    case SEGUE_STORE_CREATE:
        if (!write->record || !write->record->task_id)
            return SEGUE_E_INVALID;
        if (find_created(s, write->record->id) ||
            find_named(s, write->record->task_id, NULL) ||
            (write->record->has_key &&
             find_named(s, NULL, write->record->idempotency_key)))
            return SEGUE_E_EXISTS;
        return add_row(s, &plain);
    case SEGUE_STORE_APPEND:
        if (created && write->entry.seq != last_seq(s, created) + 1)
            return SEGUE_E_STATE;
        return created ? add_row(s, &plain) : SEGUE_E_NOT_FOUND;
    case SEGUE_STORE_END:
        return created ? add_row(s, &plain) : SEGUE_E_NOT_FOUND;
    case SEGUE_STORE_DELETE:
        return created ? add_row(s, &plain) : SEGUE_OK;
    case SEGUE_STORE_RELEASE:
        return created && !is_loose(s, created) ? add_row(s, &plain) : SEGUE_OK;
    case SEGUE_STORE_DROP:
        return SEGUE_OK; /* does nothing, because a store may keep dropped entries */
    default:
        return SEGUE_E_INVALID;
    }
}

static segue_status commit(void *self, const segue_store_write *writes, size_t count)
{
    array_store *s = self;
    size_t before = s->count;
    segue_status status = SEGUE_OK;
    for (size_t i = 0; i < count && status == SEGUE_OK; i++)
        status = apply(s, &writes[i]);
    while (status != SEGUE_OK && s->count > before)
        remove_row(s, s->count - 1);
    s->commits += status == SEGUE_OK;
    return status;
}

/* ---- finding, reading, claiming, purging ---- */

static segue_status find(void *self, const char *task_id, const uint8_t *idempotency_key,
                         segue_store_record_fn fn, void *user)
{
    const array_store *s = self;
    const row *created = find_named(s, task_id, idempotency_key);
    if (!created)
        return SEGUE_E_NOT_FOUND;
    segue_store_record record = describe(s, created);
    fn(user, &record);
    return SEGUE_OK;
}

static segue_status read_log(void *self, const uint8_t *id, uint64_t after,
                             segue_store_entry_fn fn, void *user)
{
    const array_store *s = self;
    const row *created = find_created(s, id);
    if (!created)
        return SEGUE_E_NOT_FOUND;
    for (const row *r = created + 1; r < s->rows + s->count; r++)
        if (is_of(r, id) && r->kind == SEGUE_STORE_APPEND && r->entry.seq > after &&
            fn(user, &r->entry))
            break;
    return SEGUE_OK;
}

/* Claims the operations that a server has released. Operations of a server that has
 * crashed need no claim, because the array lives only as long as the process. */
static segue_status claim(void *self, segue_store_record_fn fn, void *user)
{
    array_store *s = self;
    for (size_t i = 0; i < s->count;) {
        if (s->rows[i].kind != SEGUE_STORE_RELEASE) {
            i++;
            continue;
        }
        const row *created = find_created(s, s->rows[i].id);
        segue_store_record record = {.ended = 1};
        if (created && created < &s->rows[i])
            record = describe(s, created);
        remove_row(s, i);
        if (!record.ended && fn(user, &record))
            break;
    }
    return SEGUE_OK;
}

/* Removes the rows of operations that were deleted or whose purge time has passed. Sets
 * *next_ms to the earliest purge time of the other operations. */
static segue_status purge(void *self, int64_t now_ms, int64_t *next_ms)
{
    array_store *s = self;
    *next_ms = INT64_MAX;
    for (size_t i = 0; i < s->count;) {
        const row *created = find_created(s, s->rows[i].id);
        int there = created && created <= &s->rows[i];
        int64_t due_ms = there ? describe(s, created).purge_ms : INT64_MIN;
        if (created == &s->rows[i] && due_ms <= now_ms && due_ms != INT64_MAX) {
            /* In its next rounds, the loop removes this row and the operation's other
             * rows. */
            s->rows[i].kind = SEGUE_STORE_DELETE;
        } else if (!there) {
            remove_row(s, i);
        } else {
            *next_ms = due_ms < *next_ms ? due_ms : *next_ms;
            i++;
        }
    }
    return SEGUE_OK;
}

static void free_store(void *self)
{
    array_store *s = self;
    while (s->count)
        remove_row(s, s->count - 1);
    free(s->rows);
    free(s);
}

static segue_status array_store_new(array_store **self, segue_store **out)
{
    segue_store_vtable vtable = SEGUE_STORE_VTABLE_INIT;
    array_store *s = calloc(1, sizeof *s);
    if (!s)
        return SEGUE_E_NOMEM;
    vtable.forgets = 1; /* true, because the array lives only as long as the process */
    vtable.commit = commit;
    vtable.find = find;
    vtable.read = read_log;
    vtable.claim = claim;
    vtable.purge = purge;
    vtable.free = free_store;
    segue_status status = segue_store_custom(&vtable, s, NULL, out);
    if (status == SEGUE_OK)
        *self = s;
    else
        free(s);
    return status;
}

/* ---- a server and a client that use the store ---- */

static void count(void *user, segue_call *call)
{
    segue_status status = SEGUE_OK;
    (void)user;
    for (int i = 1; i <= 3 && status == SEGUE_OK; i++) {
        char text[32];
        int len = snprintf(text, sizeof text, "segment %d", i);
        status = segue_call_send_text(call, text, (size_t)len, NULL);
    }
    if (status == SEGUE_OK)
        segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static segue_status serve(segue_runtime *runtime, segue_store *store,
                          segue_transport *transport)
{
    static const char json[] =
        "{\"name\":\"count\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    segue_item_options item = SEGUE_ITEM_OPTIONS_INIT;
    segue_server *server;
    options.store = store;
    item.on_call = count;
    item.task = SEGUE_TASK_MUST;
    segue_status status = segue_server_new(runtime, &options, &server, NULL);
    if (status != SEGUE_OK)
        return status;
    status =
        segue_server_add(server, SEGUE_ITEM_TOOL, json, sizeof json - 1, &item, NULL);
    if (status == SEGUE_OK)
        status = segue_server_attach(server, transport, NULL);
    segue_server_free(server);
    return status;
}

static void print_segment(void *user, segue_request *request,
                          const segue_segment *segment)
{
    (void)user;
    (void)request;
    printf("%s\n", segue_segment_text(segment, NULL));
}

static void stop(void *user, segue_request *request, segue_status status,
                 const char *json, size_t len, const segue_error *error)
{
    (void)request;
    (void)json;
    (void)len;
    if (status != SEGUE_OK)
        fprintf(stderr, "%s\n", segue_error_read(error)->message);
    segue_runtime_stop(user);
}

static segue_status ask(segue_runtime *runtime, segue_transport *transport)
{
    static const char params[] = "{\"name\":\"count\"}";
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    segue_session *session;
    events.user = runtime;
    events.on_segment = print_segment;
    events.on_complete = stop;
    segue_status status =
        segue_session_open(runtime, transport, NULL, NULL, &session, NULL);
    if (status != SEGUE_OK)
        return status;
    status = segue_request_start(session, "tools/call", params, sizeof params - 1, NULL,
                                 &events, NULL, NULL);
    if (status == SEGUE_OK)
        status = segue_runtime_run(runtime);
    segue_session_free(session);
    return status;
}

static void print_counts(const array_store *s)
{
    size_t operations = 0, entries = 0, ended = 0;
    for (size_t i = 0; i < s->count; i++) {
        operations += s->rows[i].kind == SEGUE_STORE_CREATE;
        entries += s->rows[i].kind == SEGUE_STORE_APPEND;
        ended += s->rows[i].kind == SEGUE_STORE_END;
    }
    printf("kept: %zu operation, %zu ended, %zu entries, %zu commits\n", operations,
           ended, entries, s->commits);
}

int main(void)
{
    segue_runtime *runtime = NULL;
    segue_store *store = NULL;
    array_store *self = NULL;
    segue_transport *near_end = NULL, *far_end = NULL;
    segue_status status = segue_runtime_new(NULL, &runtime, NULL);
    if (status == SEGUE_OK)
        status = array_store_new(&self, &store);
    if (status == SEGUE_OK)
        status = segue_transport_pair(runtime, &near_end, &far_end);
    if (status == SEGUE_OK)
        status = serve(runtime, store, far_end);
    if (status == SEGUE_OK)
        status = ask(runtime, near_end);
    segue_runtime_free(runtime);
    if (status == SEGUE_OK)
        /* The store still exists here, because the handle `store` keeps the store. */
        print_counts(self);
    else
        fprintf(stderr, "%s\n", segue_status_name(status));
    segue_store_free(store);
    return status == SEGUE_OK ? 0 : 1;
}
