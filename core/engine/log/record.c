/* {"tool","question"?,"params","caps","task","dialect","streams","ttl","poll","by",
 * "scopes","digest"?}: JSON, so that a person with the store's own tools can read what a
 * task was. "by" is who made it, if he has a name, "scopes" what his token granted then:
 * a run after a restart goes on with what it was allowed, the token itself is not
 * kept. */
#include "engine/log/record.h"

#include "engine/dialect/dialect.h"
#include "engine/log/dropping.h"
#include "engine/serving/grant.h"
#include "engine/serving/resumable.h"

#define REST_ROOM 256 /* for what stands beside the params, mostly */

static void write_digest(sgi_jw *w, const uint8_t digest[SGI_DIGEST_SIZE])
{
    sgi_jw_key(w, "digest");
    sgi_buf_add_char(w->buf, '"');
    sgi_buf_add_base64(w->buf, digest, SGI_DIGEST_SIZE, true);
    sgi_buf_add_char(w->buf, '"');
    w->comma = true;
}

segue_status sgi_record_write(sgi_op *op)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_record *record = sgi_zalloc(mem, sizeof *record);
    if (!record)
        return SEGUE_E_NOMEM;
    sgi_buf_init(&record->data, mem);
    sgi_buf_reserve(&record->data, op->params_len + REST_ROOM);
    sgi_jw w = sgi_jw_on(&record->data);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "tool", sgi_str_of(op->item_name));
    if (sgi_call_is_question(op->kind))
        sgi_jw_member_int(&w, "question", 1);
    sgi_jw_member_raw(&w, "params", (sgi_str){op->params, op->params_len});
    sgi_jw_member_int(&w, "caps", op->caps);
    sgi_jw_member_int(&w, "task", op->is_task);
    if (op->dialect)
        sgi_jw_member_string(&w, "dialect", sgi_str_of(op->dialect->name));
    sgi_jw_member_int(&w, "streams", op->streams);
    sgi_jw_member_int(&w, "ttl", op->ttl_ms);
    sgi_jw_member_int(&w, "poll", op->poll_ms);
    if (op->who->name && sgi_utf8_valid(sgi_str_of(op->who->name), NULL))
        sgi_jw_member_string(&w, "by", sgi_str_of(op->who->name));
    if (op->is_scoped)
        sgi_jw_member_string(&w, "scopes",
                             op->grant ? sgi_grant_scopes(op->grant) : SGI_STR(""));
    sgi_resumable_write(op, &w);
    if (op->key)
        write_digest(&w, op->key->digest);
    sgi_jw_close(&w, '}');
    if (record->data.failed) {
        sgi_buf_free(&record->data);
        sgi_release(mem, record, sizeof *record);
        return SEGUE_E_NOMEM;
    }
    segue_store_record *head = &record->head;
    memcpy(head->id, op->id, sizeof head->id);
    head->task_id = op->task_id;
    head->has_key = op->key != NULL;
    if (op->key)
        memcpy(head->idempotency_key, op->key->key, sizeof head->idempotency_key);
    memcpy(head->principal, op->who->digest, sizeof head->principal);
    head->created_ms = op->created_ms;
    head->purge_ms = sgi_server_purge_time(op);
    head->data = record->data.p;
    head->data_len = record->data.len;
    op->record = record;
    return SEGUE_OK;
}

void sgi_record_written(sgi_op *op)
{
    if (!op->record)
        return;
    sgi_buf_free(&op->record->data);
    sgi_release(sgi_engine_mem(op->engine), op->record, sizeof *op->record);
    op->record = NULL;
}

static int64_t number(sgi_json object, const char *name)
{
    int64_t value = 0;
    sgi_json_int(sgi_json_get(object, name), &value);
    return value;
}

/* The key, with what it stands for. */
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
        status = sgi_op_set_key(op, record->idempotency_key, (uint8_t *)digest.p)
                     ? SEGUE_OK
                     : SEGUE_E_NOMEM;
    if (digest.failed)
        status = SEGUE_E_NOMEM;
    sgi_buf_free(&digest);
    return status;
}

/* False when out of memory. */
static bool read_caller(sgi_op *op, sgi_json data)
{
    sgi_buf text;
    sgi_buf_init(&text, sgi_engine_mem(op->engine));
    bool ok = true;
    if (sgi_json_decode(sgi_json_get(data, "by"), &text))
        ok = sgi_principal_set_name(op->who, sgi_buf_str(&text));
    sgi_buf_cut(&text, 0);
    op->is_scoped = sgi_json_decode(sgi_json_get(data, "scopes"), &text);
    if (ok && op->is_scoped && text.len) {
        op->grant = sgi_grant_new(op->engine, NULL, sgi_buf_str(&text), INT64_MAX);
        ok = op->grant != NULL;
    }
    ok = ok && !text.failed;
    sgi_buf_free(&text);
    return ok;
}

/* Not a tool's name but the method of a question. */
static void read_kind(sgi_op *op, sgi_json data)
{
    const sgi_call_kind *kind = sgi_question_kind(sgi_str_of(op->item_name));
    if (!kind || !number(data, "question"))
        return;
    op->kind = kind;
    op->arguments = (sgi_json){op->params, op->params_len};
}

static segue_status fill(sgi_op *op, const segue_store_record *record, sgi_json data)
{
    sgi_str name;
    read_kind(op, data);
    op->task_id = sgi_text_dup(sgi_engine_mem(op->engine), sgi_str_of(record->task_id));
    sgi_principal *who =
        sgi_principal_get(&op->server->principals, op->engine, record->principal);
    if (who)
        sgi_budget_own(op, who);
    if (!op->task_id || !op->who || !read_caller(op, data))
        return SEGUE_E_NOMEM;
    memcpy(op->id, record->id, sizeof op->id);
    op->created_ms = op->updated_ms = record->created_ms;
    op->caps = (uint32_t)number(data, "caps");
    op->is_task = number(data, "task") != 0;
    op->streams = number(data, "streams") != 0;
    if (sgi_json_plain_string(sgi_json_get(data, "dialect"), &name))
        op->dialect = sgi_dialect_named(name);
    if (!sgi_resumable_read(op, data))
        return SEGUE_E_STORE_CORRUPT;
    op->only_objects =
        op->resumable || (op->dialect && !(op->dialect->bit & SGI_DIALECTS_MODERN));
    op->ttl_ms = number(data, "ttl");
    op->poll_ms = number(data, "poll");
    if (op->is_task && op->dialect == &sgi_dialect_tasks_ext)
        sgi_op_retain(op);
    op->logged = op->created = true;
    return read_key(op, record, data);
}

bool sgi_record_is_of(sgi_engine *engine, const segue_store_record *record,
                      const sgi_dialect *dialect)
{
    sgi_json data;
    return sgi_engine_json(engine, record->data, record->data_len, &data, NULL) ==
               SEGUE_OK &&
           number(data, "task") != 0 &&
           sgi_json_string_is(sgi_json_get(data, "dialect"), sgi_str_of(dialect->name));
}

segue_status sgi_record_read(segue_server *server, const segue_store_record *record,
                             sgi_op **out)
{
    sgi_engine *engine = server->engine;
    sgi_json data;
    segue_status status =
        sgi_engine_json(engine, record->data, record->data_len, &data, NULL);
    if (status != SEGUE_OK)
        return status == SEGUE_E_NOMEM ? status : SEGUE_E_STORE_CORRUPT;
    sgi_buf name;
    sgi_buf_init(&name, sgi_engine_mem(engine));
    sgi_op *op = NULL;
    sgi_json params = sgi_json_get(data, "params");
    if (!sgi_json_decode(sgi_json_get(data, "tool"), &name) ||
        sgi_json_kind_of(params) != SGI_JSON_OBJECT)
        status = SEGUE_E_STORE_CORRUPT;
    else if (name.failed || !(op = sgi_op_new(server, sgi_buf_str(&name), params)))
        status = SEGUE_E_NOMEM;
    else
        status = fill(op, record, data);
    if (op)
        op->hold = SGI_HOLD_UNREAD;
    sgi_buf_free(&name);
    if (status != SEGUE_OK) {
        if (op)
            sgi_op_unref(op);
        return status;
    }
    *out = op;
    return SEGUE_OK;
}
