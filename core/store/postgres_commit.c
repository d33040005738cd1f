/* Writes to PostgreSQL. A commit is one call of one SQL function, which gets all writes
 * as arrays (postgres_functions_commit.c). Each commit therefore needs one statement and
 * one round trip, however many writes it has. */
#include "store/postgres_store.h"

/* the maximum size of a commit in bytes; an array of PostgreSQL must be smaller than 1
 * GiB */
#define COMMIT_BYTES ((size_t)512 * 1024 * 1024)
/* the highest entry number that the fast path of the SQL function accepts */
#define PLAIN_SEQ_MOST (UINT64_C(1) << 53)

static const char COMMIT[] = "SELECT @.commit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, "
                             "$11, $12, $13, $14, $15, $16, $17)";

/* Returns the number as an int64_t, which the SQL functions use. A number that is too
 * large becomes INT64_MAX. */
static int64_t bounded(uint64_t number)
{
    return number < INT64_MAX ? (int64_t)number : INT64_MAX;
}

typedef struct arrays {
    sgi_buf *kinds, *ids, *seqs, *segments, *events, *types, *times, *datas;
    sgi_buf *tasks, *keys, *principals;
    size_t creates;
} arrays;

static void add_create(arrays *a, const segue_store_record *record)
{
    sgi_pg_add_int64(a->seqs, record->created_ms);
    sgi_pg_add_int64(a->segments, record->purge_ms);
    sgi_pg_add_int64(a->events, record->ended != 0);
    sgi_pg_add_int32(a->types, 0);
    sgi_pg_add_int64(a->times, 0);
    sgi_pg_add_bytes(a->datas, record->data, record->data_len);
    sgi_pg_add_bytes(a->tasks, record->task_id, strlen(record->task_id));
    sgi_pg_add_bytes(a->keys, record->idempotency_key,
                     record->has_key ? SEGUE_STORE_HASH_SIZE : SIZE_MAX);
    sgi_pg_add_bytes(a->principals, record->principal, SEGUE_STORE_HASH_SIZE);
    a->creates++;
}

static void add_write(arrays *a, const segue_store_write *write)
{
    const segue_store_entry *entry = &write->entry;
    bool append = write->kind == SEGUE_STORE_APPEND;
    sgi_pg_add_int16(a->kinds, (int16_t)write->kind);
    sgi_pg_add_bytes(a->ids, sgi_store_write_id(write), SEGUE_STORE_ID_SIZE);
    if (write->kind == SEGUE_STORE_CREATE) {
        add_create(a, write->record);
        return;
    }
    sgi_pg_add_int64(a->seqs, bounded(entry->seq));
    sgi_pg_add_int64(a->segments, write->kind == SEGUE_STORE_END
                                      ? write->purge_ms
                                      : (int64_t)entry->segment);
    sgi_pg_add_int64(a->events, append ? (int64_t)entry->event : bounded(entry->event));
    sgi_pg_add_int32(a->types, entry->kind);
    sgi_pg_add_int64(a->times, entry->at_ms);
    sgi_pg_add_bytes(a->datas, entry->data, append ? entry->data_len : 0);
}

static void begin_arrays(sgi_pg_call *call, arrays *a)
{
    *a = (arrays){.kinds = sgi_pg_array_begin(call, SGI_PG_INT2S)};
    a->ids = sgi_pg_array_begin(call, SGI_PG_IDS);
    a->seqs = sgi_pg_array_begin(call, SGI_PG_INT8S);
    a->segments = sgi_pg_array_begin(call, SGI_PG_INT8S);
    a->events = sgi_pg_array_begin(call, SGI_PG_INT8S);
    a->types = sgi_pg_array_begin(call, SGI_PG_INT4S);
    a->times = sgi_pg_array_begin(call, SGI_PG_INT8S);
    a->datas = sgi_pg_array_begin(call, SGI_PG_BYTES);
    a->tasks = sgi_pg_array_begin(call, SGI_PG_BYTES);
    a->keys = sgi_pg_array_begin(call, SGI_PG_BYTES);
    a->principals = sgi_pg_array_begin(call, SGI_PG_BYTES);
}

static void end_arrays(arrays *a, size_t count)
{
    sgi_buf *per_write[] = {a->kinds,  a->ids,   a->seqs,  a->segments,
                            a->events, a->types, a->times, a->datas};
    sgi_buf *per_create[] = {a->tasks, a->keys, a->principals};
    for (size_t i = 0; i < sizeof per_write / sizeof *per_write; i++)
        sgi_pg_array_end(per_write[i], count);
    for (size_t i = 0; i < sizeof per_create / sizeof *per_create; i++)
        sgi_pg_array_end(per_create[i], a->creates);
}

static void add_commit(sgi_pg_store *store, const segue_store_write *writes, size_t count)
{
    sgi_pg_call *call = &store->call;
    arrays a;
    bool plain = true;
    for (size_t i = 0; i < count; i++)
        plain = plain && writes[i].kind == SEGUE_STORE_APPEND &&
                writes[i].entry.seq < PLAIN_SEQ_MOST;
    sgi_pg_begin_write_call(store, COMMIT);
    sgi_pg_arg_text(call, store->sync);
    sgi_pg_arg_bool(call, plain);
    sgi_pg_arg_int64(call, store->max_operations);
    sgi_pg_arg_int64(call, store->max_bytes);
    begin_arrays(call, &a);
    for (size_t i = 0; i < count; i++)
        add_write(&a, &writes[i]);
    end_arrays(&a, count);
}

/* Updates what this instance remembers after a commit: forgets forwarded commands that
 * the writes have removed, and remembers operations that ended. */
static void note_done(sgi_pg_store *store, const segue_store_write *writes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const segue_store_write *write = &writes[i];
        if (write->kind == SEGUE_STORE_END)
            sgi_pg_remember_ended_op(store, write->id);
        if (write->kind == SEGUE_STORE_TAKEN)
            sgi_store_feed_note_taken_commands(&store->feed, write->id, write->entry.seq);
        else if (write->kind == SEGUE_STORE_END || write->kind == SEGUE_STORE_DELETE ||
                 write->kind == SEGUE_STORE_RELEASE)
            sgi_store_feed_note_taken_commands(&store->feed, write->id, UINT64_MAX);
    }
}

segue_status sgi_pg_commit(void *self, const segue_store_write *writes, size_t count)
{
    sgi_pg_store *store = self;
    PGresult *result;
    size_t bytes = 0, at = 0;
    for (size_t i = 0; i < count; i++) {
        segue_status status = sgi_store_write_check(&writes[i]);
        if (status)
            return status;
        bytes += sgi_store_write_bytes(&writes[i]);
    }
    if (bytes > COMMIT_BYTES)
        return SEGUE_E_TOO_LARGE;
    add_commit(store, writes, count);
    segue_status status = sgi_pg_execute(store, &result, &at);
    if (!status) {
        store->evicted += sgi_pg_get_int64(result, 0, 0);
        sgi_pq.PQclear(result);
        note_done(store, writes, count);
    } else if (status == SEGUE_E_FENCED && at < count) {
        sgi_store_feed_note_taken_commands(&store->feed, sgi_store_write_id(&writes[at]),
                                           UINT64_MAX);
    }
    return status;
}
