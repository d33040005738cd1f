/* Sends progress and log messages of a handler to the client that made the call. The
 * messages use the conversation of the request or of the task. Messages of a lasting call
 * are first written to the log, because its client can leave, come back and ask for them
 * later. */
#include "engine/server/call.h"

#include "base/thresholds.h"

#include "engine/server/task_form.h"
#include "wire/json_copy.h"
#include "wire/log_level.h"
#include "engine/server/task_creator.h"
#include "engine/server/lasting.h"
#include "engine/server/wire_session.h"

#include <math.h>

/* Returns the conversation on which messages of the operation go to the client. For a
 * task of 2025-11-25, this is the conversation of the task creator. For other operations,
 * this is the conversation of the request, while the request is open. Returns NULL when
 * there is no such conversation, or when too much output is unsent. */
static sgi_conn *way_back(const sgi_op *op)
{
    const sgi_reply *reply = op->served->reply;
    if (op->served->creator)
        return sgi_task_creator_conn(op);
    return reply && reply->peer && !sgi_conn_is_full(reply->peer->conn)
               ? reply->peer->conn
               : NULL;
}

static const char *progress_token(const sgi_op *op)
{
    if (sgi_op_is_lasting_call(op))
        return op->served->lasting->progress_token;
    if (op->served->creator)
        return op->served->creator->progress_token;
    return op->served->reply ? op->served->reply->progress_token : NULL;
}

/* The session in which the client is connected decides, if the client has set a level
 * there. */
static int32_t lasting_log_level(const sgi_lasting_call *lasting)
{
    int32_t level = lasting->channel ? sgi_reply_log_level(lasting->channel) : -1;
    return level >= 0 ? level : lasting->log_level;
}

static int32_t log_level(const sgi_op *op)
{
    if (sgi_op_is_lasting_call(op))
        return lasting_log_level(op->served->lasting);
    if (op->served->creator)
        return sgi_task_creator_log_level(op);
    return op->served->reply ? sgi_reply_log_level(op->served->reply) : -1;
}

static segue_status end_note(sgi_sending *sending, const sgi_op *op)
{
    if (op->served->creator)
        sgi_task_write_related(&sending->w, op);
    return sgi_send_end(sending) ? SEGUE_OK : SEGUE_E_NOMEM;
}

/* Writes the members of a progress or log message into the open params. */
typedef void (*write_note_fn)(sgi_jw *w, const void *what);

static segue_status keep_note(sgi_op *op, const char *method, write_note_fn write,
                              const void *what)
{
    sgi_buf text;
    sgi_buf_init(&text, sgi_engine_mem(op->engine));
    sgi_jw w = sgi_jw_to(&text);
    sgi_begin_notification_members(&w, method);
    write(&w, what);
    sgi_jw_close(&w, '}');
    segue_status status =
        text.failed
            ? SEGUE_E_NOMEM
            : op->served->lasting->form->note(op->served->lasting, sgi_buf_str(&text));
    sgi_buf_free(&text);
    return status;
}

static segue_status tell_note(sgi_op *op, const char *method, write_note_fn write,
                              const void *what)
{
    sgi_sending sending;
    if (sgi_op_is_lasting_call(op))
        return keep_note(op, method, write, what);
    sgi_conn *conn = way_back(op);
    if (!conn)
        /* the message is dropped, because a later message has newer information */
        return SEGUE_OK;
    sgi_send_begin_notification(&sending, conn, method);
    write(&sending.w, what);
    return end_note(&sending, op);
}

typedef struct progress_note {
    const char *token, *message;
    double progress, total;
} progress_note;

static void write_progress(sgi_jw *w, const void *what)
{
    const progress_note *note = what;
    sgi_jw_member_raw(w, "progressToken", sgi_str_of(note->token));
    sgi_jw_key(w, "progress");
    sgi_jw_double(w, note->progress);
    if (note->total > 0) {
        sgi_jw_key(w, "total");
        sgi_jw_double(w, note->total);
    }
    if (note->message)
        sgi_jw_member_string(w, "message", sgi_str_of(note->message));
}

segue_status sgi_call_progress(segue_call *call, double progress, double total,
                               const char *message)
{
    progress_note note = {progress_token(call->op), message, progress, total};
    if (!isfinite(progress) || !isfinite(total))
        return sgi_refuse(call->handle.engine, SEGUE_E_INVALID,
                          "progress or total is not a finite number");
    if (message && !sgi_utf8_valid(sgi_str_of(message), NULL))
        return sgi_refuse(call->handle.engine, SEGUE_E_INVALID,
                          "the message of the progress is not UTF-8");
    if (sgi_call_is_over(call))
        return sgi_call_refuse_ended(call);
    return note.token
               ? tell_note(call->op, "notifications/progress", write_progress, &note)
               : SEGUE_OK;
}

typedef struct log_note {
    const char *level;
    sgi_json data;
} log_note;

static void write_log(sgi_jw *w, const void *what)
{
    const log_note *note = what;
    sgi_jw_member_string(w, "level", sgi_str_of(note->level));
    sgi_jw_member_raw(w, "data", note->data);
}

segue_status sgi_call_log(segue_call *call, const char *level, const char *json,
                          size_t len)
{
    log_note note = {level, {0}};
    int32_t rank = sgi_log_level_parse(sgi_str_of(level));
    if (rank < 0)
        return sgi_refuse(call->handle.engine, SEGUE_E_INVALID,
                          "the level has to be debug, info, notice, warning, error, "
                          "critical, alert or emergency");
    segue_status status =
        sgi_engine_check_json(call->handle.engine, json, len, &note.data, NULL);
    if (status != SEGUE_OK)
        return status;
    if (sgi_call_is_over(call))
        return sgi_call_refuse_ended(call);
    int32_t wanted = log_level(call->op);
    return wanted < 0 || rank < wanted
               ? SEGUE_OK
               : tell_note(call->op, "notifications/message", write_log, &note);
}

/* ---- log messages from another server ---- */

/* Writes the params of a log message that another server sent. The member _meta is left
 * out, because _meta belongs to the conversation with that server. */
static void write_params(sgi_jw *w, const void *what)
{
    const sgi_json *params = what;
    sgi_jw_copy_members(w, *params, SGI_JSON_NAMES("_meta"));
}

segue_status sgi_call_log_json(segue_call *call, const char *json, size_t len)
{
    sgi_json params = {0};
    segue_status status =
        sgi_engine_check_json(call->handle.engine, json, len, &params, NULL);
    if (status != SEGUE_OK)
        return status;
    int32_t rank = sgi_log_level_parse_json(sgi_json_get(params, "level"));
    if (rank < 0 || !sgi_json_get(params, "data").n)
        return sgi_refuse(call->handle.engine, SEGUE_E_INVALID,
                          "a log message must have a \"level\" and \"data\"");
    if (sgi_call_is_over(call))
        return sgi_call_refuse_ended(call);
    int32_t wanted = log_level(call->op);
    return wanted < 0 || rank < wanted
               ? SEGUE_OK
               : tell_note(call->op, "notifications/message", write_params, &params);
}

int32_t sgi_call_log_level(const segue_call *call)
{
    return log_level(call->op);
}

#define COME_AGAIN_MS SGI_THRESHOLD(come_again_ms)

segue_status sgi_call_hang_up(segue_call *call, int64_t retry_ms)
{
    const sgi_reply *reply = call->op->served->reply;
    if (sgi_call_is_over(call))
        return sgi_call_refuse_ended(call);
    if (!reply || !reply->peer)
        return sgi_refuse(
            call->handle.engine, SEGUE_E_UNSUPPORTED,
            "the call is not answered by an event stream that its client can resume");
    return sgi_wire_session_hang_up(reply->peer, retry_ms ? retry_ms : COME_AGAIN_MS);
}
