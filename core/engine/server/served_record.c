/* The JSON that the server writes into the stored record of an operation:
 * {"params","tool","question"?,"caps","task","restartable"?,"dialect","streams","ttl",
 * "poll","by","scopes","session","trace"}. "restartable" is for tools that look into the
 * store. "by" is the name of the owner, if the owner has a name. "scopes" are the scopes
 * that the owner's token had when the operation was made; a run after a restart has the
 * same rights. The token itself is not stored. "session" is the mark of the wire session
 * that made the operation, if the owner has no name (session_mark.h). "trace" is the
 * trace of the HTTP request, unless the params have one. */
#include "engine/server/served.h"

#include "engine/server/call_trace.h"
#include "engine/server/dialects.h"
#include "engine/log/dropping.h"
#include "engine/server/grant.h"
#include "engine/server/lasting.h"
#include "engine/server/session_mark.h"

/* number of bytes that usually suffice for all members except params */
#define REST_ROOM 256

/* A number that the record does not have is 0. */
void sgi_served_write_record(const sgi_op *op, segue_store_record *head, sgi_jw *w)
{
    sgi_buf_reserve(w->buf, op->served->params_len + REST_ROOM);
    sgi_jw_member_raw(w, "params", (sgi_str){op->served->params, op->served->params_len});
    sgi_jw_member_string(w, "tool", sgi_str_of(op->served->item_name));
    if (sgi_call_is_question(op->served->kind))
        sgi_jw_member_int(w, "question", 1);
    if (op->served->caps)
        sgi_jw_member_int(w, "caps", op->served->caps);
    if (op->head.tasking)
        sgi_jw_member_int(w, "task", op->head.tasking);
    if (op->head.tasking && op->served->item &&
        op->served->item->options.flags & SEGUE_TOOL_RESTARTABLE)
        sgi_jw_member_int(w, "restartable", 1);
    if (op->served->dialect)
        sgi_jw_member_string(w, "dialect", sgi_str_of(op->served->dialect->name));
    if (op->served->streams)
        sgi_jw_member_int(w, "streams", 1);
    sgi_jw_member_int(w, "ttl", op->ttl_ms);
    if (op->served->poll_ms)
        sgi_jw_member_int(w, "poll", op->served->poll_ms);
    if (op->served->who->name && sgi_utf8_valid(sgi_str_of(op->served->who->name), NULL))
        sgi_jw_member_string(w, "by", sgi_str_of(op->served->who->name));
    if (op->served->is_scoped)
        sgi_jw_member_string(w, "scopes",
                             op->served->grant ? sgi_grant_scopes(op->served->grant)
                                               : SGI_STR(""));
    if (op->served->lasting)
        op->served->lasting->form->write(op->served->lasting, w);
    sgi_op_session_write(op, w);
    sgi_op_trace_write(op, w);
    memcpy(head->principal, op->served->who->digest, sizeof head->principal);
}

sgi_str sgi_served_name(const sgi_op *op)
{
    return sgi_str_of(op->served->item_name);
}

/* The params are the first member of the record. */
bool sgi_served_moves_texts(sgi_op *op, const char *name, const char *data)
{
    sgi_served_op_data *served = op->served;
    const char *params = data + sizeof "{\"params\":" - 1;
    if (served->call)
        return false; /* its handler may have pointers to them */
    if (served->arguments.n && !served->own_arguments)
        served->arguments.p = params + (served->arguments.p - served->params);
    served->params = params;
    served->item_name = name;
    return true;
}

static int64_t number(sgi_json object, const char *name)
{
    int64_t value = 0;
    sgi_json_read_int(sgi_json_get(object, name), &value);
    return value;
}

static sgi_tasking tasking(sgi_json data)
{
    int64_t value = number(data, "task");
    return value == SGI_TASKING_YES || value == SGI_TASKING_MAY ? (sgi_tasking)value
                                                                : SGI_TASKING_NO;
}

/* Reads the name and the scopes of the owner ("by", "scopes"). Returns false when out of
 * memory. */
static bool read_caller(sgi_op *op, sgi_json data)
{
    sgi_buf text;
    sgi_buf_init(&text, sgi_engine_mem(op->engine));
    bool ok = true;
    if (sgi_json_decode(sgi_json_get(data, "by"), &text))
        ok = sgi_principal_set_name(op->served->who, sgi_buf_str(&text));
    sgi_buf_truncate(&text, 0);
    op->served->is_scoped = sgi_json_decode(sgi_json_get(data, "scopes"), &text);
    if (ok && op->served->is_scoped && text.len) {
        op->served->grant =
            sgi_grant_new(op->engine, NULL, sgi_buf_str(&text), INT64_MAX);
        ok = op->served->grant != NULL;
    }
    ok = ok && !text.failed;
    sgi_buf_free(&text);
    return ok;
}

/* Sets the kind of an operation that answers a question. The item name of such an
 * operation is the method of the question, for example elicitation/create. */
static void read_kind(sgi_op *op, sgi_json data)
{
    const sgi_call_kind *kind = sgi_question_kind(sgi_str_of(op->served->item_name));
    if (!kind || !number(data, "question"))
        return;
    op->served->kind = kind;
    op->served->arguments = (sgi_json){op->served->params, op->served->params_len};
}

/* Sets the owner of the operation. Returns false when out of memory. */
static bool read_owner(sgi_op *op, const segue_store_record *record)
{
    sgi_principal *who = sgi_principal_find_or_new(&sgi_op_server(op)->principals,
                                                   op->engine, record->principal);
    if (who)
        sgi_budget_set_owner(op, who);
    return who;
}

static segue_status fill(sgi_op *op, const segue_store_record *record, sgi_json data)
{
    sgi_str name;
    sgi_served_op_data *served = op->served;
    read_kind(op, data);
    if (!read_owner(op, record) || !read_caller(op, data) ||
        !sgi_op_session_read(op, data) || !sgi_op_trace_read(op, data))
        return SEGUE_E_NOMEM;
    served->caps = (uint32_t)number(data, "caps");
    op->head.tasking = tasking(data);
    served->streams = number(data, "streams") != 0;
    if (sgi_json_plain_string(sgi_json_get(data, "dialect"), &name))
        served->dialect = sgi_srv_dialect_named(name);
    if (!sgi_lasting_call_read(op, data))
        return SEGUE_E_STORE_CORRUPT;
    served->only_objects =
        served->lasting || (served->dialect && !sgi_srv_is_modern(served->dialect));
    op->ttl_ms = number(data, "ttl");
    served->poll_ms = number(data, "poll");
    if (op->head.tasking != SGI_TASKING_NO && served->dialect && served->dialect->retains)
        sgi_op_limit_retained_events(op);
    sgi_served_set_item(op, sgi_item_find(sgi_op_server(op),
                                          sgi_call_is_question(served->kind)
                                              ? SEGUE_ITEM_QUESTION
                                              : SEGUE_ITEM_TOOL,
                                          sgi_str_of(served->item_name)));
    return SEGUE_OK;
}

segue_status sgi_served_op_from_record(sgi_committer *committer,
                                       const segue_store_record *record, sgi_json data,
                                       sgi_op **out)
{
    segue_server *server = SGI_OWNER(committer, segue_server, committer);
    segue_status status;
    sgi_buf name;
    sgi_buf_init(&name, sgi_engine_mem(server->engine));
    sgi_op *op = NULL;
    sgi_json params = sgi_json_get(data, "params");
    if (!sgi_json_decode(sgi_json_get(data, "tool"), &name) ||
        sgi_json_kind_of(params) != SGI_JSON_OBJECT)
        status = SEGUE_E_STORE_CORRUPT;
    else if (name.failed || !(op = sgi_served_op_new(server, sgi_buf_str(&name), params)))
        status = SEGUE_E_NOMEM;
    else
        status = fill(op, record, data);
    sgi_buf_free(&name);
    if (status == SEGUE_OK)
        *out = op;
    else if (op)
        sgi_op_unref(op);
    return status;
}

bool sgi_record_may_be_listed(sgi_engine *engine, const segue_store_record *record,
                              const sgi_srv_dialect *dialect,
                              const sgi_session_mark *asked)
{
    sgi_json data;
    if (sgi_engine_check_json(engine, record->data, record->data_len, &data, NULL) !=
            SEGUE_OK ||
        tasking(data) == SGI_TASKING_NO ||
        !sgi_json_string_is(sgi_json_get(data, "dialect"), sgi_str_of(dialect->name)))
        return false;
    return sgi_session_mark_fits(asked, sgi_session_mark_of_record(data));
}
