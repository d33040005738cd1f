/* The stored record is a JSON object, so that a person can read it with the tools of the
 * store. It has the members that the cluster and the server write. If there is an
 * idempotency key, it also has the member "digest". */
#include "engine/log/record.h"

#include "engine/log/observer.h"

static void write_digest(sgi_jw *w, const uint8_t digest[SGI_DIGEST_SIZE])
{
    sgi_jw_key(w, "digest");
    sgi_buf_add_char(w->buf, '"');
    sgi_buf_add_base64(w->buf, digest, SGI_DIGEST_SIZE, true);
    sgi_buf_add_char(w->buf, '"');
    w->comma = true;
}

static char *put(char *at, const char *bytes, size_t len)
{
    if (len)
        memcpy(at, bytes, len);
    at[len] = 0;
    return at + len + 1;
}

/* Makes op->text: the task id, the name that the server keeps with the operation, and the
 * data of the record, each with a NUL behind it. The server then finds its own texts in
 * op->text. */
static const char *make_text(sgi_op *op, sgi_str task_id, sgi_str data)
{
    sgi_str name = op->committer->observer->name(op);
    sgi_shared_text *text =
        sgi_shared_text_new(sgi_engine_mem(op->engine), task_id.n + name.n + data.n + 3);
    if (!text)
        return NULL;
    char *name_at = put(text->bytes, task_id.p, task_id.n);
    char *data_at = put(name_at, name.p, name.n);
    put(data_at, data.p, data.n);
    op->text = text;
    op->task_id = text->bytes;
    if (op->committer->observer->moves(op, name_at, data_at) &&
        op->head.result != &op->start->result) {
        sgi_free(sgi_engine_mem(op->engine), op->start, op->start->size);
        op->start = NULL;
    }
    return data_at;
}

segue_status sgi_op_record_make(sgi_op *op, sgi_str task_id)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_op_record *record = sgi_zalloc(mem, sizeof *record);
    if (!record)
        return SEGUE_E_NOMEM;
    segue_store_record *head = &record->head;
    sgi_buf data;
    sgi_buf_init(&data, mem);
    sgi_jw w = sgi_jw_to(&data);
    sgi_jw_open(&w, '{');
    op->committer->observer->write(op, head, &w);
    if (op->key)
        write_digest(&w, op->key->digest);
    sgi_jw_close(&w, '}');
    head->data_len = data.len;
    head->data = data.failed ? NULL : make_text(op, task_id, sgi_buf_str(&data));
    sgi_buf_free(&data);
    if (!head->data) {
        sgi_free(mem, record, sizeof *record);
        return SEGUE_E_NOMEM;
    }
    memcpy(head->id, op->id, sizeof head->id);
    head->task_id = op->task_id;
    head->shared = op->engine->memory_outlives ? op->text : NULL;
    head->has_key = op->key != NULL;
    if (op->key)
        memcpy(head->idempotency_key, op->key->key, sizeof head->idempotency_key);
    head->created_ms = op->created_ms;
    head->purge_ms = op->committer->observer->purge_ms(op);
    op->record = record;
    return SEGUE_OK;
}

void sgi_op_record_free_written(sgi_op *op)
{
    if (!op->record)
        return;
    sgi_free(sgi_engine_mem(op->engine), op->record, sizeof *op->record);
    op->record = NULL;
}

/* Reads the idempotency key, and the digest of the request that first used the key. */
static segue_status read_key(sgi_op *op, const segue_store_record *record, sgi_json data)
{
    sgi_str text;
    sgi_buf digest;
    segue_status status = SEGUE_E_STORE_CORRUPT;
    if (!record->has_key)
        return SEGUE_OK;
    sgi_buf_init(&digest, sgi_engine_mem(op->engine));
    if (sgi_json_plain_string(sgi_json_get(data, "digest"), &text) &&
        sgi_buf_add_unbase64(&digest, text) && digest.len == SGI_DIGEST_SIZE)
        status =
            sgi_op_set_idempotency_key(op, record->idempotency_key, (uint8_t *)digest.p)
                ? SEGUE_OK
                : SEGUE_E_NOMEM;
    if (digest.failed)
        status = SEGUE_E_NOMEM;
    sgi_buf_free(&digest);
    return status;
}

segue_status sgi_op_new_from_record(sgi_committer *committer,
                                    const segue_store_record *record, sgi_op **out)
{
    sgi_engine *engine = committer->engine;
    sgi_json data;
    sgi_op *op = NULL;
    segue_status status =
        sgi_engine_check_json(engine, record->data, record->data_len, &data, NULL);
    if (status != SEGUE_OK)
        return status == SEGUE_E_NOMEM ? status : SEGUE_E_STORE_CORRUPT;
    status = committer->observer->made(committer, record, data, &op);
    if (status != SEGUE_OK)
        return status;
    memcpy(op->id, record->id, sizeof op->id);
    op->created_ms = op->head.updated_ms = record->created_ms;
    size_t id_size = strlen(record->task_id) + 1;
    op->text = sgi_shared_text_new(sgi_engine_mem(engine), id_size);
    if (op->text)
        op->task_id = memcpy(op->text->bytes, record->task_id, id_size);
    sgi_op_set_stored(op, SGI_STORED_YES);
    sgi_op_set_hold(op, SGI_HOLD_UNREAD);
    status = op->task_id ? read_key(op, record, data) : SEGUE_E_NOMEM;
    if (status != SEGUE_OK) {
        sgi_op_unref(op);
        return status;
    }
    *out = op;
    return SEGUE_OK;
}
