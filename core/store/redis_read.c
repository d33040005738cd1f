/* Finds, reads and lists operations in Redis. Long results are fetched in pages, so that
 * neither this process nor Redis holds a whole result. A page of entries begins after an
 * entry number. A page of a list begins after the last record of the previous page. All
 * replies are checked: a reply that does not have the form that this store writes gives
 * SEGUE_E_STORE_CORRUPT. */
#include "store/redis_store.h"

#include <stdlib.h>

#define READ_PAGE 100
#define LIST_PAGE 50
#define ENTRY_HEAD 28

/* ---- records ---- */

bool sgi_redis_fill_record(redisReply *const *shown, segue_store_record *record,
                           char task_id[SGI_STORE_TASK_MAX + 1])
{
    for (int i = 0; i < 4; i++)
        if (!sgi_redis_is_text(shown[i]))
            return false;
    const char *bytes = shown[1]->str;
    if (shown[0]->len != SEGUE_STORE_ID_SIZE || shown[1]->len < SGI_REDIS_RECORD_HEAD ||
        shown[2]->len != 1 || shown[3]->len != 8)
        return false;
    size_t task_len = (size_t)(uint8_t)bytes[73] << 8 | (uint8_t)bytes[74];
    size_t head = SGI_REDIS_RECORD_HEAD + task_len;
    if (task_len > SGI_STORE_TASK_MAX || shown[1]->len < head)
        return false;
    *record = (segue_store_record){.task_id = task_id,
                                   .has_key = bytes[8] == 1,
                                   .ended = *shown[2]->str == '1',
                                   .created_ms = sgi_redis_read_sortable_int(bytes),
                                   .purge_ms = sgi_redis_read_sortable_int(shown[3]->str),
                                   .data = bytes + head,
                                   .data_len = shown[1]->len - head};
    memcpy(record->id, shown[0]->str, SEGUE_STORE_ID_SIZE);
    memcpy(record->idempotency_key, bytes + 9, SEGUE_STORE_HASH_SIZE);
    memcpy(record->principal, bytes + 41, SEGUE_STORE_HASH_SIZE);
    memcpy(task_id, bytes + SGI_REDIS_RECORD_HEAD, task_len);
    task_id[task_len] = 0;
    return true;
}

segue_status sgi_redis_find(void *self, const char *task_id,
                            const uint8_t *idempotency_key, segue_store_record_fn fn,
                            void *user)
{
    sgi_redis_store *store = self;
    redisReply *reply;
    segue_store_record record;
    char text[SGI_STORE_TASK_MAX + 1];
    sgi_buf_reset(&store->commands, SIZE_MAX);
    sgi_redis_begin_script(store, SGI_REDIS_FIND, 2);
    sgi_redis_arg_text(&store->commands, task_id ? "task" : "key");
    if (task_id)
        sgi_redis_arg_text(&store->commands, task_id);
    else
        sgi_redis_arg(&store->commands, idempotency_key, SEGUE_STORE_HASH_SIZE);
    segue_status status = sgi_redis_execute(store, 1, &reply);
    if (status)
        return status;
    if (reply->type == REDIS_REPLY_INTEGER)
        status = (segue_status)reply->integer;
    else if (sgi_redis_is_array(reply, 4) &&
             sgi_redis_fill_record(reply->element, &record, text))
        fn(user, &record);
    else
        status = SEGUE_E_STORE_CORRUPT;
    freeReplyObject(reply);
    return status;
}

/* ---- logs ---- */

static int32_t get_int32(const char *from)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++)
        value = value << 8 | (uint8_t)from[i];
    return (int32_t)value;
}

/* The state of reading a log: the callback, and the number of the last entry that was
 * passed to it. */
typedef struct reading {
    segue_store_entry_fn fn;
    void *user;
    uint64_t last;
    bool stop;
} reading;

static bool show_entry(reading *r, uint64_t seq, const char *packed, size_t len)
{
    if (len < ENTRY_HEAD)
        return false;
    /* entries of the bundle before the first requested entry are skipped */
    if (seq <= r->last)
        return true;
    segue_store_entry entry = {.seq = seq,
                               .kind = get_int32(packed),
                               .segment = sgi_redis_read_sortable_uint(packed + 4),
                               .event = sgi_redis_read_sortable_uint(packed + 12),
                               .at_ms = sgi_redis_read_sortable_int(packed + 20),
                               .data = packed + ENTRY_HEAD,
                               .data_len = len - ENTRY_HEAD};
    r->last = seq;
    r->stop = r->fn(r->user, &entry) != 0;
    return true;
}

/* Reads the length of the part of a bundle at *at, and moves *at to the end of this part.
 * Returns false when the bundle is cut off. */
static bool next_part(const redisReply *bundle, size_t *at, size_t *len)
{
    if (bundle->len - *at < 4)
        return false;
    *len = (uint32_t)get_int32(bundle->str + *at);
    *at += 4;
    if (bundle->len - *at < *len)
        return false;
    *at += *len;
    return true;
}

/* Passes the entries of a bundle to the callback. seq: the number of the bundle's last
 * entry. Returns false when the bundle is malformed. */
static bool show_bundle(reading *r, uint64_t seq, const redisReply *bundle)
{
    uint64_t count = 0;
    size_t len;
    for (size_t at = 0; at < bundle->len; count++)
        if (!next_part(bundle, &at, &len))
            return false;
    if (!count || count > seq)
        return false;
    seq -= count - 1;
    for (size_t at = 0; at < bundle->len && !r->stop; seq++)
        if (!next_part(bundle, &at, &len) ||
            !show_entry(r, seq, bundle->str + at - len, len))
            return false;
    return true;
}

/* Passes the entries of one row of the stream to the callback. A row has the form [id,
 * [field, bytes]]. Returns false when the row is malformed. */
static bool show_row(reading *r, const redisReply *row)
{
    if (!sgi_redis_is_array(row, 2) || !sgi_redis_is_text(row->element[0]) ||
        !sgi_redis_is_array(row->element[1], 2))
        return false;
    const redisReply *field = row->element[1]->element[0];
    const redisReply *packed = row->element[1]->element[1];
    if (!sgi_redis_is_text(field) || !sgi_redis_is_text(packed))
        return false;
    uint64_t seq = strtoull(row->element[0]->str, NULL, 10);
    return *field->str == 'b' ? show_bundle(r, seq, packed)
                              : show_entry(r, seq, packed->str, packed->len);
}

/* Passes the entries of a page to the callback. *more becomes true when another page can
 * follow. */
static segue_status show_page(reading *r, const redisReply *page, bool *more)
{
    *more = false;
    if (!sgi_redis_is_array(page, 0))
        return SEGUE_E_STORE_CORRUPT;
    for (size_t i = 0; i < page->elements && !r->stop; i++)
        if (!show_row(r, page->element[i]))
            return SEGUE_E_STORE_CORRUPT;
    *more = !r->stop && page->elements == READ_PAGE;
    return SEGUE_OK;
}

static void add_range(sgi_redis_store *store, const uint8_t *id, uint64_t after)
{
    sgi_buf *commands = &store->commands;
    char from[32];
    size_t n = sizeof from;
    from[--n] = '0';
    from[--n] = '-';
    for (after++; after || n == sizeof from - 2; after /= 10)
        from[--n] = (char)('0' + after % 10);
    sgi_redis_command_begin(commands, 6);
    sgi_redis_arg_text(commands, "XRANGE");
    sgi_redis_arg_key(store, commands, "log:", id);
    sgi_redis_arg(commands, from + n, sizeof from - n);
    sgi_redis_arg_text(commands, "+");
    sgi_redis_arg_text(commands, "COUNT");
    sgi_redis_arg_int(commands, READ_PAGE);
}

segue_status sgi_redis_read(void *self, const uint8_t *id, uint64_t after,
                            segue_store_entry_fn fn, void *user)
{
    sgi_redis_store *store = self;
    bool more = true;
    /* No stream id comes after UINT64_MAX, so `after` must be lower. Since no entry has
     * the number UINT64_MAX, the result stays the same. */
    reading r = {.fn = fn, .user = user, .last = after < UINT64_MAX ? after : after - 1};
    while (more) {
        redisReply *replies[2];
        sgi_buf_reset(&store->commands, SIZE_MAX);
        sgi_redis_command_begin(&store->commands, 2);
        sgi_redis_arg_text(&store->commands, "EXISTS");
        sgi_redis_arg_key(store, &store->commands, "op:", id);
        add_range(store, id, r.last);
        segue_status status = sgi_redis_execute(store, 2, replies);
        if (status)
            return status;
        if (replies[0]->type != REDIS_REPLY_INTEGER || !replies[0]->integer)
            status = SEGUE_E_NOT_FOUND;
        else
            status = show_page(&r, replies[1], &more);
        freeReplyObject(replies[0]);
        freeReplyObject(replies[1]);
        if (status)
            return status;
    }
    return SEGUE_OK;
}

/* ---- lists of operations ---- */

/* The position at which the next page of a list begins. */
typedef struct list_end {
    char bytes[1 + 8 + SGI_STORE_TASK_MAX + 1 + SEGUE_STORE_ID_SIZE];
    size_t len;
} list_end;

static void set_end(list_end *end, const void *bytes, size_t len)
{
    end->bytes[0] = '(';
    memcpy(end->bytes + 1, bytes, len);
    end->len = 1 + len;
}

/* Passes the records of a page to fn. *end receives the position of the last passed
 * record. *more becomes true when another page can follow. */
static segue_status show_list(const redisReply *page, list_end *end, bool *more,
                              segue_store_record_fn fn, void *user)
{
    segue_store_record record;
    char text[SGI_STORE_TASK_MAX + 1];
    *more = false;
    if (!sgi_redis_is_array(page, 0))
        return SEGUE_E_STORE_CORRUPT;
    for (size_t i = 0; i < page->elements; i++) {
        const redisReply *row = page->element[i];
        if (!sgi_redis_is_array(row, 5) || !sgi_redis_is_text(row->element[0]) ||
            row->element[0]->len >= sizeof end->bytes ||
            !sgi_redis_fill_record(row->element + 1, &record, text))
            return SEGUE_E_STORE_CORRUPT;
        if (fn(user, &record))
            return SEGUE_OK;
        set_end(end, row->element[0]->str, row->element[0]->len);
    }
    *more = page->elements == LIST_PAGE;
    return SEGUE_OK;
}

segue_status sgi_redis_list(void *self, const uint8_t *principal, int64_t created_ms,
                            const char *task_id, segue_store_record_fn fn, void *user)
{
    sgi_redis_store *store = self;
    segue_status status = SEGUE_OK;
    list_end end = {.bytes = "+", .len = 1};
    if (task_id) {
        char place[8 + SGI_STORE_TASK_MAX + 1];
        /* with the NUL at its end, the position comes before every entry that has this
         * task id */
        size_t len = strlen(task_id) + 1;
        if (len > SGI_STORE_TASK_MAX + 1)
            return SEGUE_E_INVALID;
        sgi_redis_write_sortable_int((uint8_t *)place, created_ms);
        memcpy(place + 8, task_id, len);
        set_end(&end, place, 8 + len);
    }
    for (bool more = true; more && !status;) {
        redisReply *reply;
        sgi_buf_reset(&store->commands, SIZE_MAX);
        sgi_redis_begin_script(store, SGI_REDIS_LIST, 3);
        sgi_redis_arg(&store->commands, principal, SEGUE_STORE_HASH_SIZE);
        sgi_redis_arg(&store->commands, end.bytes, end.len);
        sgi_redis_arg_int(&store->commands, LIST_PAGE);
        status = sgi_redis_execute(store, 1, &reply);
        if (!status) {
            status = show_list(reply, &end, &more, fn, user);
            freeReplyObject(reply);
        }
    }
    return status;
}
