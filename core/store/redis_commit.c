/* Writes to Redis. A commit is one call of one script, which first checks all writes and
 * then applies all of them. Therefore no other client sees half a commit.
 *
 * Redis serves no other client while a script runs, so a call is limited to PART_WRITES
 * writes and PART_BYTES bytes. A larger commit is split into several calls; all writes to
 * one operation stay in the same call and in their order. Therefore a large commit is
 * atomic for each operation but not as a whole. When a later call fails, the writes of
 * the earlier calls stay. When the commit is repeated, the script finds these writes and
 * does not write them twice.
 *
 * A write has four arguments: kind, id, and two that depend on the kind (see `apply` in
 * redis_script_commit.c). Small entries of one operation with consecutive numbers are
 * sent as one bundle. A bundle is one entry of the Redis stream, because most of the cost
 * of a commit is the cost per stream entry. When a repeated bundle starts with entries
 * that exist already, the script answers SPLIT, and then all entries are sent one by
 * one. */
#include "store/redis_store.h"

#include <stdio.h>
#include <stdlib.h>

#define PART_WRITES 4096
#define PART_BYTES ((size_t)16 * 1024 * 1024)
/* the maximum size of one operation in bytes, well below the limit of Redis */
#define OPERATION_BYTES ((size_t)256 * 1024 * 1024)
#define COMMANDS_KEPT ((size_t)256 * 1024)

#define ENTRY_HEAD 28
#define WRITE_ARGS 4

#define BUNDLE_MAX 64
#define BUNDLE_BYTES 8192
#define SPLIT (-1001)

/* ---- numbers ---- */

void sgi_redis_write_sortable_uint(uint8_t to[8], uint64_t value)
{
    for (int i = 7; i >= 0; i--, value >>= 8)
        to[i] = (uint8_t)value;
}

uint64_t sgi_redis_read_sortable_uint(const char *from)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | (uint8_t)from[i];
    return value;
}

void sgi_redis_write_sortable_int(uint8_t to[8], int64_t value)
{
    sgi_redis_write_sortable_uint(to, (uint64_t)value ^ UINT64_C(1) << 63);
}

int64_t sgi_redis_read_sortable_int(const char *from)
{
    return (int64_t)(sgi_redis_read_sortable_uint(from) ^ UINT64_C(1) << 63);
}

static void put_int32(uint8_t to[4], int32_t value)
{
    for (int i = 3; i >= 0; i--, value >>= 8)
        to[i] = (uint8_t)value;
}

/* ---- one write ---- */

static void add_create(sgi_buf *commands, const segue_store_record *record)
{
    uint8_t how[9], head[SGI_REDIS_RECORD_HEAD] = {0};
    size_t task_len = strlen(record->task_id);
    sgi_redis_write_sortable_int(how, record->purge_ms);
    how[8] = record->ended ? '1' : '0';
    sgi_redis_arg(commands, how, sizeof how);
    sgi_redis_write_sortable_int(head, record->created_ms);
    if (record->has_key) {
        head[8] = 1;
        memcpy(head + 9, record->idempotency_key, SEGUE_STORE_HASH_SIZE);
    }
    memcpy(head + 41, record->principal, SEGUE_STORE_HASH_SIZE);
    head[73] = (uint8_t)(task_len >> 8);
    head[74] = (uint8_t)task_len;
    sgi_redis_arg_begin(commands, sizeof head + task_len + record->data_len);
    sgi_buf_add(commands, head, sizeof head);
    sgi_buf_add(commands, record->task_id, task_len);
    sgi_buf_add(commands, record->data, record->data_len);
    sgi_redis_arg_end(commands);
}

static void add_packed(sgi_buf *commands, const segue_store_entry *entry)
{
    uint8_t head[ENTRY_HEAD];
    put_int32(head, entry->kind);
    sgi_redis_write_sortable_uint(head + 4, entry->segment);
    sgi_redis_write_sortable_uint(head + 12, entry->event);
    sgi_redis_write_sortable_int(head + 20, entry->at_ms);
    sgi_buf_add(commands, head, sizeof head);
    sgi_buf_add(commands, entry->data, entry->data_len);
}

static void add_entry(sgi_buf *commands, const segue_store_entry *entry)
{
    sgi_redis_arg_begin(commands, ENTRY_HEAD + entry->data_len);
    add_packed(commands, entry);
    sgi_redis_arg_end(commands);
}

static void add_number(sgi_buf *commands, uint64_t value)
{
    char text[24];
    size_t n = sizeof text;
    do
        text[--n] = (char)('0' + value % 10);
    while (value /= 10);
    sgi_redis_arg(commands, text + n, sizeof text - n);
}

/* Adds a number as a text argument. The number 0, which means "unknown", becomes an empty
 * argument. */
static void add_known(sgi_buf *commands, uint64_t number)
{
    if (number)
        add_number(commands, number);
    else
        sgi_redis_arg(commands, "", 0);
}

static void add_write(sgi_buf *commands, const segue_store_write *write)
{
    /* the letter by which the script knows each kind of write; there is no kind 0 */
    static const char letters[] = " CAEDRXT";
    uint8_t bytes[8];
    sgi_redis_arg(commands, &letters[write->kind], 1);
    sgi_redis_arg(commands, sgi_store_write_id(write), SEGUE_STORE_ID_SIZE);
    switch (write->kind) {
    case SEGUE_STORE_CREATE:
        add_create(commands, write->record);
        return;
    case SEGUE_STORE_APPEND:
        add_number(commands, write->entry.seq);
        add_entry(commands, &write->entry);
        return;
    case SEGUE_STORE_END:
        sgi_redis_write_sortable_int(bytes, write->purge_ms);
        sgi_redis_arg(commands, bytes, sizeof bytes);
        add_known(commands, write->entry.seq);
        return;
    case SEGUE_STORE_DROP:
        put_int32(bytes, write->entry.kind);
        sgi_redis_arg(commands, bytes, 4);
        add_number(commands, write->entry.seq);
        return;
    case SEGUE_STORE_TAKEN:
        add_number(commands, write->entry.seq);
        add_known(commands, write->entry.event);
        return;
    default:
        sgi_redis_arg(commands, "", 0);
        break;
    }
    sgi_redis_arg(commands, "", 0);
}

/* ---- one script call ---- */

/* The writes of one call. order: NULL = the first `count` elements of `writes`; otherwise
 * the elements with the indexes order[0] to order[count - 1]. */
typedef struct part {
    const segue_store_write *writes;
    const size_t *order;
    size_t count;
    bool split; /* true = all entries are sent one by one, and none in a bundle */
} part;

static const segue_store_write *nth(const part *p, size_t i)
{
    return &p->writes[p->order ? p->order[i] : i];
}

/* Updates what this instance remembers after a call was applied: forgets forwarded
 * commands that the writes have removed, and remembers operations that ended. */
static void note_done(sgi_redis_store *store, const part *p)
{
    for (size_t i = 0; i < p->count; i++) {
        const segue_store_write *write = nth(p, i);
        if (write->kind == SEGUE_STORE_END)
            sgi_redis_remember_ended_op(store, write->id);
        if (write->kind == SEGUE_STORE_TAKEN)
            sgi_store_feed_note_taken_commands(&store->feed, write->id, write->entry.seq);
        else if (write->kind == SEGUE_STORE_END || write->kind == SEGUE_STORE_DELETE ||
                 write->kind == SEGUE_STORE_RELEASE)
            sgi_store_feed_note_taken_commands(&store->feed, write->id, UINT64_MAX);
    }
}

static size_t bundled(const segue_store_write *write)
{
    return 4 + ENTRY_HEAD + write->entry.data_len;
}

/* Returns how many writes from index i on form one bundle; 1 = the write i is sent alone.
 * *bytes receives the size of the bundle. */
static size_t run_of(const part *p, size_t i, size_t *bytes)
{
    const segue_store_write *first = nth(p, i);
    size_t n = 1;
    if (p->split || first->kind != SEGUE_STORE_APPEND)
        return 1;
    *bytes = bundled(first);
    for (; n < BUNDLE_MAX && i + n < p->count && *bytes <= BUNDLE_BYTES; n++) {
        const segue_store_write *next = nth(p, i + n);
        if (next->kind != SEGUE_STORE_APPEND || next->entry.seq != first->entry.seq + n ||
            memcmp(next->id, first->id, SEGUE_STORE_ID_SIZE) != 0 ||
            *bytes + bundled(next) > BUNDLE_BYTES)
            break;
        *bytes += bundled(next);
    }
    return n;
}

static void add_bundle(sgi_buf *commands, const part *p, size_t i, size_t n, size_t bytes)
{
    char numbers[48];
    const segue_store_write *first = nth(p, i);
    int len = snprintf(numbers, sizeof numbers, "%llu:%zu",
                       (unsigned long long)first->entry.seq, n);
    sgi_redis_arg_text(commands, "B");
    sgi_redis_arg(commands, first->id, SEGUE_STORE_ID_SIZE);
    sgi_redis_arg(commands, numbers, (size_t)len);
    sgi_redis_arg_begin(commands, bytes);
    for (size_t k = i; k < i + n; k++) {
        const segue_store_entry *entry = &nth(p, k)->entry;
        uint8_t size[4];
        put_int32(size, (int32_t)(ENTRY_HEAD + entry->data_len));
        sgi_buf_add(commands, size, sizeof size);
        add_packed(commands, entry);
    }
    sgi_redis_arg_end(commands);
}

/* Adds four arguments for each single write and for each bundle. Returns the number of
 * single writes and bundles. commands: NULL = only count them. If `found` is not NULL,
 * *found receives the index in `p` of the first write of the single write or bundle
 * with the number `at`. */
static size_t add_writes(sgi_buf *commands, const part *p, size_t at, size_t *found)
{
    size_t count = 0, bytes = 0;
    for (size_t i = 0, n; i < p->count; i += n, count++) {
        n = run_of(p, i, &bytes);
        if (found && count == at)
            *found = i;
        if (commands && n > 1)
            add_bundle(commands, p, i, n, bytes);
        else if (commands)
            add_write(commands, nth(p, i));
    }
    return count;
}

static void add_commit(sgi_redis_store *store, const part *p)
{
    bool grows = false;
    size_t size = 256;
    for (size_t i = 0; i < p->count; i++) {
        int32_t kind = nth(p, i)->kind;
        grows = grows || kind == SEGUE_STORE_CREATE || kind == SEGUE_STORE_APPEND;
        size += sgi_store_write_bytes(nth(p, i));
    }
    sgi_buf_reset(&store->commands, COMMANDS_KEPT);
    sgi_buf_reserve(&store->commands, size);
    sgi_redis_begin_write_script(store, SGI_REDIS_COMMIT,
                                 3 + WRITE_ARGS * add_writes(NULL, p, 0, NULL));
    sgi_redis_arg_text(&store->commands, grows ? "1" : "0");
    sgi_redis_arg_int(&store->commands, store->max_operations);
    sgi_redis_arg_int(&store->commands, store->max_bytes);
    add_writes(&store->commands, p, 0, NULL);
}

static segue_status send_part(sgi_redis_store *store, const part *p)
{
    redisReply *reply;
    add_commit(store, p);
    segue_status status = sgi_redis_execute(store, 1, &reply);
    if (status)
        return status;
    size_t at = 0, first = 0;
    status = SEGUE_E_STORE_CORRUPT;
    if (sgi_redis_is_array(reply, 3) && reply->element[0]->type == REDIS_REPLY_INTEGER) {
        status = (segue_status)reply->element[0]->integer;
        at = (size_t)reply->element[1]->integer;
        store->evicted += reply->element[2]->integer;
    }
    freeReplyObject(reply);
    if (status == SPLIT && !p->split)
        return send_part(store, &(part){p->writes, p->order, p->count, true});
    if (status == SEGUE_OK) {
        note_done(store, p);
    } else if (status == SEGUE_E_FENCED) {
        add_writes(NULL, p, at, &first);
        sgi_store_feed_note_taken_commands(&store->feed,
                                           sgi_store_write_id(nth(p, first)), UINT64_MAX);
    }
    return status;
}

/* ---- commits that need several calls ---- */

/* A write, and the index of the first write to the operation to which it belongs. */
typedef struct ranked {
    const void *id; /* of the operation */
    size_t at, first;
} ranked;

static int by_number(size_t a, size_t b)
{
    return (a > b) - (a < b);
}

static int by_id(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    int order = memcmp(x->id, y->id, SEGUE_STORE_ID_SIZE);
    return order ? order : by_number(x->at, y->at);
}

static int by_first(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->first != y->first ? by_number(x->first, y->first) : by_number(x->at, y->at);
}

/* Sorts the writes by operation, and sets `order` to their indices. The operations stay
 * in the order of their first writes. first[i] is the index of the first write to the
 * operation of write i. There is no qsort_r: musl has it only from 1.2.3 on. */
static void group(const segue_store_write *writes, size_t count, ranked *sorted,
                  size_t *order, size_t *first)
{
    for (size_t i = 0; i < count; i++)
        sorted[i] = (ranked){sgi_store_write_id(&writes[i]), i, i};
    qsort(sorted, count, sizeof *sorted, by_id);
    for (size_t i = 1; i < count; i++) {
        if (!memcmp(sorted[i].id, sorted[i - 1].id, SEGUE_STORE_ID_SIZE))
            sorted[i].first = sorted[i - 1].first;
    }
    qsort(sorted, count, sizeof *sorted, by_first);
    for (size_t i = 0; i < count; i++) {
        order[i] = sorted[i].at;
        first[sorted[i].at] = sorted[i].first;
    }
}

static segue_status send_groups(sgi_redis_store *store, part p, const size_t *first)
{
    size_t begin = 0, bytes = 0;
    for (size_t i = 0; i < p.count;) {
        size_t end = i, more = 0;
        for (; end < p.count && first[p.order[end]] == first[p.order[i]]; end++)
            more += sgi_store_write_bytes(nth(&p, end));
        if (more > OPERATION_BYTES)
            return SEGUE_E_TOO_LARGE;
        if (i > begin && (bytes + more > PART_BYTES || end - begin > PART_WRITES)) {
            segue_status status =
                send_part(store, &(part){p.writes, p.order + begin, i - begin, false});
            if (status)
                return status;
            begin = i;
            bytes = 0;
        }
        bytes += more;
        i = end;
    }
    return send_part(store, &(part){p.writes, p.order + begin, p.count - begin, false});
}

static segue_status send_many(sgi_redis_store *store, const part *p)
{
    size_t bytes = p->count * (sizeof(ranked) + 2 * sizeof(size_t));
    ranked *sorted = sgi_alloc(&store->mem, bytes);
    if (!sorted)
        return SEGUE_E_NOMEM;
    size_t *order = (size_t *)(sorted + p->count);
    size_t *first = order + p->count;
    group(p->writes, p->count, sorted, order, first);
    segue_status status =
        send_groups(store, (part){p->writes, order, p->count, false}, first);
    sgi_free(&store->mem, sorted, bytes);
    return status;
}

segue_status sgi_redis_commit(void *self, const segue_store_write *writes, size_t count)
{
    sgi_redis_store *store = self;
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        segue_status status = sgi_store_write_check(&writes[i]);
        if (status)
            return status;
        bytes += sgi_store_write_bytes(&writes[i]);
    }
    part all = {writes, NULL, count, false};
    return count <= PART_WRITES && bytes <= PART_BYTES ? send_part(store, &all)
                                                       : send_many(store, &all);
}
