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

segue_status sgi_op_record_make(sgi_op *op)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_op_record *record = sgi_zalloc(mem, sizeof *record);
    if (!record)
        return SEGUE_E_NOMEM;
    segue_store_record *head = &record->head;
    sgi_buf_init(&record->data, mem);
    sgi_jw w = sgi_jw_to(&record->data);
    sgi_jw_open(&w, '{');
    op->committer->observer->write(op, head, &w);
    if (op->key)
        write_digest(&w, op->key->digest);
    sgi_jw_close(&w, '}');
    if (record->data.failed) {
        sgi_buf_free(&record->data);
        sgi_free(mem, record, sizeof *record);
        return SEGUE_E_NOMEM;
    }
    memcpy(head->id, op->id, sizeof head->id);
    head->task_id = op->task_id;
    head->has_key = op->key != NULL;
    if (op->key)
        memcpy(head->idempotency_key, op->key->key, sizeof head->idempotency_key);
    head->created_ms = op->created_ms;
    head->purge_ms = op->committer->observer->purge_ms(op);
    head->data = record->data.p;
    head->data_len = record->data.len;
    op->record = record;
    return SEGUE_OK;
}

void sgi_op_record_free_written(sgi_op *op)
{
    if (!op->record)
        return;
    sgi_buf_free(&op->record->data);
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
    op->task_id = sgi_text_dup(sgi_engine_mem(engine), sgi_str_of(record->task_id));
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
