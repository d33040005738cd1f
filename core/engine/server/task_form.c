#include "engine/server/task_form.h"

#include "engine/response_modes.h"
#include "engine/log/refusal.h"
#include "engine/server/inputs.h"

#include <stdio.h>

/* ---- writing a task ---- */

const char *sgi_task_state_name(sgi_state state)
{
    static const char *const names[] = {"working", "input_required", "completed",
                                        "failed", "cancelled"};
    return names[state];
}

static void write_stamp(sgi_jw *w, const char *name, int64_t wall_ms)
{
    char stamp[SGI_STAMP_SIZE];
    sgi_timestamp_write(wall_ms, stamp);
    sgi_jw_member_string(w, name, sgi_str_of(stamp));
}

/* Writes statusMessage. After the end of the operation, its last message is written only
 * together with the final status. */
static void write_status_message(sgi_jw *w, const sgi_op *op, const char *status)
{
    static const char name[] = "statusMessage";
    bool works = !strcmp(status, sgi_task_state_name(SGI_STATE_WORKING));
    sgi_state state = works ? SGI_STATE_WORKING : sgi_op_state(op);
    const char *message = sgi_op_status_message(op);
    if (state == SGI_STATE_CANCELLED)
        sgi_jw_member_string(w, name, SGI_STR("The task was cancelled by request."));
    else if (state == SGI_STATE_FAILED)
        sgi_jw_member_raw(
            w, name,
            sgi_json_get((sgi_json){op->head.final_data, op->head.final_len}, "message"));
    else if (message)
        sgi_jw_member_string(w, name, sgi_str_of(message));
}

void sgi_task_write(sgi_jw *w, const sgi_op *op, const char *status,
                    const sgi_task_member_names *names)
{
    sgi_jw_member_string(w, "taskId", sgi_str_of(op->task_id));
    sgi_jw_member_string(w, "status", sgi_str_of(status));
    write_status_message(w, op, status);
    write_stamp(w, "createdAt", op->created_ms);
    write_stamp(w, "lastUpdatedAt", op->head.updated_ms);
    sgi_jw_key(w, names->ttl);
    if (op->ttl_ms < 0)
        sgi_jw_null(w);
    else
        sgi_jw_int(w, op->ttl_ms / (names->ttl_unit_ms ? names->ttl_unit_ms : 1));
    sgi_jw_member_int(w, names->poll, op->served->poll_ms);
}

void sgi_task_write_questions(sgi_jw *w, const sgi_op *op)
{
    const sgi_op_question *input;
    sgi_jw_key(w, "inputRequests");
    sgi_jw_open(w, '{');
    TAILQ_FOREACH(input, &op->head.inputs, link)
        if (sgi_op_question_is_open(op, input))
            sgi_question_write_request(w, input);
    sgi_jw_close(w, '}');
}

void sgi_task_write_void_segments(sgi_buf *meta, const sgi_fold *fold)
{
    sgi_jw w = sgi_jw_to(meta);
    w.comma = meta->len > 0;
    if (fold->voided)
        sgi_jw_member_int(&w, SGI_REPLACE, (int64_t)fold->voided);
    if (sgi_fold_has_joined_segments(fold))
        sgi_jw_member_int(&w, SGI_SEGMENTS, (int64_t)fold->segments);
}

void sgi_task_write_result(sgi_jw *w, const sgi_op *op, const sgi_fold *fold)
{
    sgi_buf meta;
    sgi_buf_init(&meta, sgi_engine_mem(op->engine));
    sgi_task_write_void_segments(&meta, fold);
    sgi_fold_write(fold, w, op->head.final == SGI_FINAL_RESULT_IS_ERROR,
                   sgi_buf_str(&meta));
    w->buf->failed |= meta.failed;
    sgi_buf_free(&meta);
}

void sgi_task_write_related(sgi_jw *w, const sgi_op *op)
{
    sgi_jw_key(w, "_meta");
    sgi_jw_open(w, '{');
    sgi_jw_key(w, SGI_RELATED_TASK);
    sgi_jw_open(w, '{');
    sgi_jw_member_string(w, "taskId", sgi_str_of(op->task_id));
    sgi_jw_close(w, '}');
    sgi_jw_close(w, '}');
}

sgi_str sgi_task_related_meta(sgi_buf *out, const sgi_op *op)
{
    sgi_buf_truncate(out, 0);
    sgi_buf_add_lit(out, "\"" SGI_RELATED_TASK "\":{\"taskId\":\"");
    sgi_buf_add_str(out, sgi_str_of(op->task_id));
    sgi_buf_add_lit(out, "\"}");
    return sgi_buf_str(out);
}

/* ---- finding a task ---- */

bool sgi_task_read_id(const sgi_inbound *in, sgi_str *id)
{
    sgi_json value = sgi_json_get(in->params, "taskId");
    if (sgi_json_kind_of(value) != SGI_JSON_STRING) {
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS, "params.taskId is not a string",
                         NULL);
        return false;
    }
    if (!sgi_json_plain_string(value, id))
        /* an id with escapes is not decoded: it matches no task, because ids of this
         * server have no escapes */
        *id = value;
    return true;
}

bool sgi_task_is_visible(const sgi_peer *peer, const sgi_op *op,
                         const sgi_srv_dialect *dialect)
{
    return op && sgi_op_is_task(op) && sgi_op_is_created(op) &&
           op->head.task_seq <= sgi_op_horizon(op) && op->served->who == peer->who &&
           op->served->dialect == dialect;
}

/* True when the store has not confirmed yet that it has the task. The client knows the
 * task, so another server has read it in the store. */
static bool is_unconfirmed(const sgi_peer *peer, const sgi_op *op,
                           const sgi_srv_dialect *dialect)
{
    return op && sgi_op_is_task(op) && op->served->who == peer->who &&
           op->served->dialect == dialect;
}

sgi_op *sgi_task_check_found(sgi_reply *reply, sgi_op *op, segue_status status,
                             const sgi_srv_dialect *dialect)
{
    if (!reply->peer)
        return NULL;
    if (op && sgi_task_is_visible(reply->peer, op, dialect))
        return op;
    if (!op && status != SEGUE_E_NOT_FOUND)
        sgi_reply_store_error(reply, SGI_UNREADABLE, status);
    else if (is_unconfirmed(reply->peer, op, dialect))
        sgi_reply_store_error(reply, SGI_UNREADABLE, SEGUE_E_STORE);
    else if (op && sgi_facts(reply->version)->has_extensions &&
             !sgi_srv_is_modern(dialect) && sgi_srv_is_modern(op->served->dialect) &&
             sgi_task_is_visible(reply->peer, op, op->served->dialect))
        /* the task belongs to this client, and the client has not declared the tasks
         * extension */
        sgi_reply_tasks_not_declared(reply);
    else
        sgi_answer_not_found(reply, SGI_TASK_NOT_FOUND);
    return NULL;
}

/* ---- answering with an error ---- */

#define MISSING "Missing required client capability"
#define MISSING_DATA                                                                     \
    "{\"requiredCapabilities\":{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}}"

void sgi_answer_tasks_not_declared(const sgi_inbound *in)
{
    sgi_answer_error(in, SGI_RPC_MISSING_CAPABILITY, MISSING, MISSING_DATA);
}

void sgi_reply_tasks_not_declared(sgi_reply *reply)
{
    sgi_reply_error(reply, SGI_RPC_MISSING_CAPABILITY, SGI_STR(MISSING),
                    SGI_STR(MISSING_DATA));
}

void sgi_task_refuse_cancel(sgi_reply *reply, const char *status)
{
    char text[96];
    snprintf(text, sizeof text, "Cannot cancel task: already in terminal status '%s'",
             status);
    sgi_reply_error(reply, SGI_RPC_INVALID_PARAMS, sgi_str_of(text), (sgi_json){0});
}

void sgi_task_answer_unreadable(sgi_reply *reply, segue_status status)
{
    sgi_reply_store_error(reply, SGI_UNREADABLE, status);
}
