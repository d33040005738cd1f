/* The dirty list holds operations with entries that are not durable and no commit under
 * way. An operation is in at most one batch at a time, so its entries reach the store in
 * order. After a failed commit its operations go back to the front of the list and the
 * keeper goes `solo`: one operation per commit until all of them have been tried, so that
 * one bad operation does not end the others (AS-114), nor is put off by what others
 * write. One whose very end cannot be written, or that is put off because a store with
 * leases cannot be reached, waits on the `broken` list (it counts as dirty) and is tried
 * again from time to time; the others do not wait with it. */
#include "engine/log/keeper.h"

#include "engine/log/dropping.h"
#include "engine/log/record.h"
#include "engine/serving/server.h"

#define MAX_BATCH_WRITES 8192
#define RETRY_MS 250

struct sgi_commit_op {
    sgi_op *op;
    uint64_t upto;
    uint64_t dropped[SGI_DROPS];
    uint64_t taken;
    bool releases;
};

sgi_entry *sgi_entry_new(const sgi_mem *mem, int32_t kind, const char *data, size_t len)
{
    sgi_entry *entry = sgi_alloc(mem, sizeof *entry + len);
    if (!entry)
        return NULL;
    *entry = (sgi_entry){.kind = kind, .len = (uint32_t)len};
    if (len)
        memcpy(entry->data, data, len);
    return entry;
}

/* A number that does not fit, or none: SGI_NO_PLACE. */
static uint64_t read_place(const char **p, const char *end)
{
    const char *from = *p;
    uint64_t place = 0;
    for (; *p < end && **p >= '0' && **p <= '9'; (*p)++) {
        if (place > (SGI_NO_PLACE - 10) / 10)
            return SGI_NO_PLACE;
        place = place * 10 + (uint64_t)(**p - '0');
    }
    return *p > from ? place : SGI_NO_PLACE;
}

/* "[place,block]", or the block alone, which is an object. */
bool sgi_entry_placed(const sgi_entry *entry, sgi_str *block, uint64_t *place)
{
    const char *p = entry->data;
    const char *end = p + entry->len;
    *block = (sgi_str){p, entry->len};
    if (!entry->len || *p != '[')
        return false;
    p++;
    *place = read_place(&p, end);
    if (*place != SGI_NO_PLACE && end - p > 2 && *p == ',' && end[-1] == ']')
        *block = (sgi_str){p + 1, (size_t)(end - p) - 2};
    else
        *place = SGI_NO_PLACE;
    return true;
}

void sgi_entry_free(const sgi_mem *mem, sgi_entry *entry)
{
    sgi_release(mem, entry, sizeof *entry + entry->len);
}

void sgi_entry_list_free(const sgi_mem *mem, struct sgi_entry_list *list)
{
    sgi_entry *entry, *next;
    SGI_TAILQ_EACH(entry, list, link, next)
        sgi_entry_free(mem, entry);
    TAILQ_INIT(list);
}

void sgi_keeper_init(sgi_keeper *keeper, sgi_engine *engine)
{
    *keeper = (sgi_keeper){.engine = engine};
    keeper->counts.store = (segue_store_stats){sizeof(segue_store_stats), -1, -1, -1, -1};
    TAILQ_INIT(&keeper->dirty);
    TAILQ_INIT(&keeper->broken);
    TAILQ_INIT(&keeper->jobs);
    TAILQ_INIT(&keeper->letters);
}

void sgi_keeper_free(sgi_keeper *keeper)
{
    sgi_job *job, *next;
    sgi_news_free(&keeper->letters);
    sgi_engine_timer_clear(keeper->engine, &keeper->letters_again);
    sgi_engine_timer_clear(keeper->engine, &keeper->retry);
    sgi_engine_timer_clear(keeper->engine, &keeper->purge);
    SGI_TAILQ_EACH(job, &keeper->jobs, link, next)
        sgi_job_free(job);
    TAILQ_INIT(&keeper->jobs);
}

static void call_host(sgi_keeper *keeper)
{
    keeper->engine->host.store(keeper->engine->host.user, keeper);
}

void sgi_keeper_die(sgi_keeper *keeper)
{
    keeper->dying = true;
    keeper->starved = false;
    TAILQ_CONCAT(&keeper->dirty, &keeper->broken, dirty_link);
    sgi_engine_timer_clear(keeper->engine, &keeper->retry);
    sgi_engine_timer_clear(keeper->engine, &keeper->purge);
    sgi_engine_timer_clear(keeper->engine, &keeper->letters_again);
    call_host(keeper);
}

void sgi_keeper_dirty(sgi_keeper *keeper, sgi_op *op)
{
    if (!sgi_op_is_ours(op) || op->dirty || op->committing)
        return;
    op->dirty = true;
    sgi_op_ref(op);
    TAILQ_INSERT_TAIL(&keeper->dirty, op, dirty_link);
    if (!keeper->starved)
        call_host(keeper);
}

/* ---- batches ---- */

void sgi_commit_free(const sgi_mem *mem, sgi_commit *batch)
{
    sgi_release(mem, batch->writes, batch->cap * sizeof *batch->writes);
    sgi_release(mem, batch->ops, batch->op_cap * sizeof *batch->ops);
    *batch = (sgi_commit){0};
}

static segue_store_write *add_write(const sgi_mem *mem, sgi_commit *batch, int32_t kind,
                                    const sgi_op *op)
{
    if (batch->count == batch->cap) {
        size_t cap = batch->cap ? batch->cap * 2 : 64;
        void *writes = sgi_resize(mem, batch->writes, batch->cap * sizeof *batch->writes,
                                  cap * sizeof *batch->writes);
        if (!writes)
            return NULL;
        batch->writes = writes;
        batch->cap = cap;
    }
    segue_store_write *write = &batch->writes[batch->count++];
    memset(write, 0, sizeof *write);
    write->kind = kind;
    memcpy(write->id, op->id, sizeof write->id);
    return write;
}

static struct sgi_commit_op *add_op(const sgi_mem *mem, sgi_commit *batch, sgi_op *op)
{
    if (batch->op_count == batch->op_cap) {
        size_t cap = batch->op_cap ? batch->op_cap * 2 : 16;
        void *ops = sgi_resize(mem, batch->ops, batch->op_cap * sizeof *batch->ops,
                               cap * sizeof *batch->ops);
        if (!ops)
            return NULL;
        batch->ops = ops;
        batch->op_cap = cap;
    }
    batch->ops[batch->op_count] = (struct sgi_commit_op){.op = op};
    return &batch->ops[batch->op_count++];
}

static bool add_entry(const sgi_mem *mem, sgi_commit *batch, const sgi_op *op,
                      const sgi_entry *entry)
{
    segue_store_write *write = add_write(mem, batch, SEGUE_STORE_APPEND, op);
    if (!write)
        return false;
    write->entry =
        (segue_store_entry){entry->seq,   entry->segment, entry->event, entry->kind,
                            entry->at_ms, entry->data,    entry->len};
    return true;
}

/* Behind all entries, so that the last one is there. */
static bool add_drops(const sgi_mem *mem, sgi_commit *batch, const sgi_op *op,
                      uint64_t upto, uint64_t dropped[SGI_DROPS])
{
    memset(dropped, 0, SGI_DROPS * sizeof *dropped);
    for (int what = 0; what < SGI_DROPS && upto + 1 == op->next_log; what++) {
        segue_store_entry entry = sgi_op_drop_write(op, (sgi_drop)what, upto);
        if (!entry.seq)
            continue;
        segue_store_write *write = add_write(mem, batch, SEGUE_STORE_DROP, op);
        if (!write)
            return false;
        write->entry = entry;
        dropped[what] = op->drop_upto[what];
    }
    return true;
}

/* With what they led to, or behind it. Its end has them forgotten anyway. */
static bool add_taken(const sgi_mem *mem, sgi_commit *batch, struct sgi_commit_op *row,
                      uint64_t upto)
{
    const sgi_op *op = row->op;
    row->taken = op->letters_told;
    if ((op->letters_taken == op->letters_told && !op->doubted) || sgi_op_has_ended(op) ||
        upto + 1 < op->next_log)
        return true;
    segue_store_write *write = add_write(mem, batch, SEGUE_STORE_TAKEN, op);
    if (!write)
        return false;
    write->entry.seq = row->taken = op->letters_taken;
    write->entry.event = upto;
    return true;
}

/* Adds all that the op has to write; false when out of memory (the batch is as
 * before). */
static bool add_all(const sgi_mem *mem, sgi_commit *batch, sgi_op *op)
{
    size_t before = batch->count;
    segue_store_write *write;
    struct sgi_commit_op *row = add_op(mem, batch, op);
    if (!row)
        return false;
    bool ok = true;
    if (!op->created) {
        write = add_write(mem, batch, SEGUE_STORE_CREATE, op);
        ok = write != NULL;
    }
    uint64_t upto = op->durable;
    for (sgi_entry *entry = op->pending; ok && entry; entry = TAILQ_NEXT(entry, link)) {
        ok = add_entry(mem, batch, op, entry);
        upto = entry->seq;
        if (batch->count > MAX_BATCH_WRITES && TAILQ_NEXT(entry, link))
            break;
    }
    bool ends = sgi_op_has_ended(op) && upto >= op->final_seq;
    if (ok && ends && op->durable < op->final_seq) {
        write = add_write(mem, batch, SEGUE_STORE_END, op);
        ok = write != NULL;
        if (ok)
            write->purge_ms = sgi_server_purge_time(op);
        if (ok && op->torn)
            write->entry.seq = op->behind_hole;
    }
    ok = ok && add_drops(mem, batch, op, upto, row->dropped) &&
         add_taken(mem, batch, row, upto);
    bool releases = op->releasing && !sgi_op_has_ended(op) && upto + 1 == op->next_log;
    if (ok && releases)
        ok = add_write(mem, batch, SEGUE_STORE_RELEASE, op) != NULL;
    if (ok && op->deleting && upto + 1 == op->next_log)
        ok = add_write(mem, batch, SEGUE_STORE_DELETE, op) != NULL;
    if (!ok) {
        batch->count = before;
        batch->op_count--;
        return false;
    }
    row->upto = upto;
    row->releases = releases;
    return true;
}

/* Records are looked up last: the writes array does not move any more. */
static void link_records(sgi_commit *batch)
{
    size_t at = 0;
    for (size_t i = 0; i < batch->count; i++) {
        segue_store_write *write = &batch->writes[i];
        if (write->kind != SEGUE_STORE_CREATE)
            continue;
        while (memcmp(batch->ops[at].op->id, write->id, sizeof write->id) != 0)
            at++;
        write->record = &batch->ops[at].op->record->head;
    }
}

static void retry_now(sgi_timer *timer)
{
    sgi_keeper *keeper = SGI_OWNER(timer, sgi_keeper, retry);
    keeper->starved = false;
    TAILQ_CONCAT(&keeper->dirty, &keeper->broken, dirty_link);
    call_host(keeper);
}

/* False when nothing will say that the time has come. */
static bool retry_later(sgi_keeper *keeper)
{
    if (!keeper->retry.slot && !keeper->dying)
        sgi_engine_timer(keeper->engine, &keeper->retry, RETRY_MS, retry_now);
    return keeper->retry.slot != 0;
}

/* The runtime goes away and there is no memory for a batch: nobody tries again. */
static void give_up(sgi_keeper *keeper)
{
    sgi_op *op;
    while ((op = TAILQ_FIRST(&keeper->dirty))) {
        TAILQ_REMOVE(&keeper->dirty, op, dirty_link);
        op->dirty = false;
        sgi_op_unref(op);
    }
}

bool sgi_keeper_take(sgi_keeper *keeper, sgi_commit *batch)
{
    const sgi_mem *mem = sgi_engine_mem(keeper->engine);
    sgi_op *op;
    batch->count = batch->op_count = 0;
    if (keeper->starved)
        return false;
    while ((op = TAILQ_FIRST(&keeper->dirty)) && batch->count < MAX_BATCH_WRITES) {
        if (!add_all(mem, batch, op)) {
            if (!batch->op_count && keeper->dying)
                give_up(keeper);
            else if (!batch->op_count)
                keeper->starved = retry_later(keeper);
            break;
        }
        TAILQ_REMOVE(&keeper->dirty, op, dirty_link);
        op->dirty = false;
        op->committing = true;
        if (keeper->solo) {
            keeper->solo--;
            break;
        }
    }
    link_records(batch);
    return batch->op_count > 0;
}

static void write_done(sgi_keeper *keeper, const struct sgi_commit_op *row)
{
    sgi_op *op = row->op;
    if (!op->created)
        sgi_record_written(op);
    op->created = true;
    if (row->releases || sgi_op_has_ended(op))
        op->releasing = false;
    if (row->upto + 1 == op->next_log)
        op->deleting = op->doubted = false;
    op->letters_told = row->taken;
    bool more = op->letters_taken > op->letters_told && !sgi_op_has_ended(op);
    for (int what = 0; what < SGI_DROPS; what++) {
        sgi_op_drop_written(op, (sgi_drop)what, row->dropped[what]);
        more |= sgi_op_drop_write(op, (sgi_drop)what, row->upto).seq > 0;
    }
    sgi_op_durable(op, row->upto);
    if (op->pending || op->releasing || op->deleting || more)
        sgi_keeper_dirty(keeper, op);
}

/* It is written later, by whatever it takes. */
static bool put_off(sgi_keeper *keeper, sgi_op *op)
{
    if (!retry_later(keeper))
        return false;
    op->dirty = true;
    sgi_op_ref(op);
    TAILQ_INSERT_TAIL(&keeper->broken, op, dirty_link);
    return true;
}

/* While a store with leases cannot be reached, another server may go on with the
 * operation: an end that is not in the store is not told, and when it is there again the
 * commit goes through or is fenced. The same for a creation, which may be in the store
 * all the same: told that it is not, nobody would run it, nor anybody claim it. */
static void write_lost(sgi_keeper *keeper, sgi_op *op, segue_status status)
{
    bool again = op->store_broken;
    if (keeper->dying)
        return;
    if (status == SEGUE_E_FENCED) {
        sgi_op_fenced(op);
        return;
    }
    if (status == SEGUE_E_STORE && keeper->leased && put_off(keeper, op))
        return;
    op->doubted = false;
    if (status == SEGUE_E_NOT_FOUND && again)
        return; /* nobody has it any more, so nobody waits for its end */
    if (status != SEGUE_E_STATE && op->created && !op->pending && !again &&
        !op->releasing && !op->deleting) {
        sgi_op_drop_failed(op); /* there was nothing else to write */
        return;
    }
    sgi_op_write_failed(op, status);
    if (!(again && put_off(keeper, op)) && op->pending)
        sgi_keeper_dirty(keeper, op);
}

/* A commit of several failed: the reference of the batch becomes that of the list. */
static void try_each(sgi_keeper *keeper, sgi_commit *batch)
{
    for (size_t i = batch->op_count; i-- > 0;) {
        sgi_op *op = batch->ops[i].op;
        op->committing = false;
        op->dirty = true;
        TAILQ_INSERT_HEAD(&keeper->dirty, op, dirty_link);
    }
    keeper->solo = batch->op_count;
}

static void count(sgi_keeper *keeper, const sgi_commit *batch, segue_status status)
{
    keeper->counts.commits++;
    keeper->counts.writes += status == SEGUE_OK ? batch->count : 0;
    keeper->counts.failures += status != SEGUE_OK;
    sgi_tally_add(&keeper->counts.took, batch->took_us);
}

void sgi_keeper_done(sgi_keeper *keeper, sgi_commit *batch, segue_status status)
{
    count(keeper, batch, status);
    segue_server *server = batch->op_count ? batch->ops[0].op->server : NULL;
    if (server)
        sgi_server_ref(server); /* the last operation may be the last that holds it */
    if (status != SEGUE_OK && batch->op_count > 1) {
        try_each(keeper, batch);
        batch->op_count = 0;
    }
    for (size_t i = 0; i < batch->op_count; i++) {
        sgi_op *op = batch->ops[i].op;
        op->committing = false;
        if (status == SEGUE_OK)
            write_done(keeper, &batch->ops[i]);
        else
            write_lost(keeper, op, status);
        sgi_op_unref(op);
    }
    batch->count = batch->op_count = 0;
    if (!TAILQ_EMPTY(&keeper->dirty) && !keeper->starved)
        call_host(keeper);
    if (server)
        sgi_server_unref(server);
}

/* ---- jobs ---- */

sgi_job *sgi_job_new(sgi_keeper *keeper, sgi_job_kind kind, void (*done)(sgi_job *),
                     void *user)
{
    const sgi_mem *mem = sgi_engine_mem(keeper->engine);
    sgi_job *job = sgi_zalloc(mem, sizeof *job);
    if (!job)
        return NULL;
    job->kind = kind;
    job->keeper = keeper;
    job->mem = mem;
    sgi_buf_init(&job->letter, mem);
    job->done = done;
    job->user = user;
    TAILQ_INIT(&job->found);
    TAILQ_INIT(&job->entries);
    return job;
}

void sgi_job_free(sgi_job *job)
{
    sgi_found *found, *next;
    SGI_TAILQ_EACH(found, &job->found, link, next)
        sgi_release(job->mem, found, found->size);
    sgi_entry_list_free(job->mem, &job->entries);
    sgi_buf_free(&job->letter);
    sgi_text_free(job->mem, job->task_id);
    sgi_release(job->mem, job, sizeof *job);
}

void sgi_keeper_ask(sgi_keeper *keeper, sgi_job *job)
{
    TAILQ_INSERT_TAIL(&keeper->jobs, job, link);
    call_host(keeper);
}

sgi_job *sgi_keeper_job(sgi_keeper *keeper)
{
    sgi_job *job = TAILQ_FIRST(&keeper->jobs);
    if (job)
        TAILQ_REMOVE(&keeper->jobs, job, link);
    return job;
}

int32_t sgi_job_record(void *user, const segue_store_record *record)
{
    sgi_job *job = user;
    size_t id_len = strlen(record->task_id);
    size_t size = sizeof(sgi_found) + id_len + 1 + record->data_len + 1;
    sgi_found *found = sgi_alloc(job->mem, size);
    if (!found) {
        job->status = SEGUE_E_NOMEM;
        job->lost = true;
        memcpy(job->id, record->id, sizeof job->id);
        return 1;
    }
    *found = (sgi_found){0};
    char *text = (char *)(found + 1);
    found->record = *record;
    found->size = size;
    memcpy(text, record->task_id, id_len + 1);
    if (record->data_len)
        memcpy(text + id_len + 1, record->data, record->data_len);
    text[id_len + 1 + record->data_len] = 0;
    found->record.task_id = text;
    found->record.data = text + id_len + 1;
    TAILQ_INSERT_TAIL(&job->found, found, link);
    return ++job->found_count == job->max_found;
}

int32_t sgi_job_entry(void *user, const segue_store_entry *entry)
{
    sgi_job *job = user;
    sgi_entry *copy = sgi_entry_new(job->mem, entry->kind, entry->data, entry->data_len);
    if (!copy) {
        job->status = SEGUE_E_NOMEM;
        return 1;
    }
    copy->seq = entry->seq;
    copy->segment = entry->segment;
    copy->event = entry->event;
    copy->at_ms = entry->at_ms;
    TAILQ_INSERT_TAIL(&job->entries, copy, link);
    job->bytes += entry->data_len;
    return job->bytes >= job->max_bytes;
}
