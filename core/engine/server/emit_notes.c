/* Sends progress and log messages of a handler to the client that made the call. The
 * messages use the conversation of the request or of the task. Messages of a lasting call
 * are first written to the log, because its client can leave, come back and ask for them
 * later. When a conversation has too much unsent output, a message of a request waits
 * (late_notes.h), and a message of a task is left out. */
#include "engine/server/call.h"

#include "base/thresholds.h"

#include "engine/server/task_form.h"
#include "wire/json_copy.h"
#include "wire/log_level.h"
#include "engine/server/task_creator.h"
#include "engine/server/lasting.h"
#include "engine/server/late_notes.h"
#include "engine/server/wire_session.h"

#include <math.h>

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

/* Writes the members of a progress or log message into the open params. */
typedef void (*write_note_fn)(sgi_jw *w, const void *what);

static segue_status keep_note(sgi_op *op, sgi_note_kind kind, write_note_fn write,
                              const void *what)
{
    sgi_buf text;
    sgi_buf_init(&text, sgi_engine_mem(op->engine));
    sgi_jw w = sgi_jw_to(&text);
    sgi_begin_notification_members(&w, sgi_note_method(kind));
    write(&w, what);
    sgi_jw_close(&w, '}');
    segue_status status =
        text.failed
            ? SEGUE_E_NOMEM
            : op->served->lasting->form->note(op->served->lasting, sgi_buf_str(&text));
    sgi_buf_free(&text);
    return status;
}

static segue_status send_note(const sgi_op *op, sgi_conn *conn, sgi_note_kind kind,
                              write_note_fn write, const void *what)
{
    sgi_sending sending;
    sgi_send_begin_notification(&sending, conn, sgi_note_method(kind));
    write(&sending.w, what);
    if (op->served->creator)
        sgi_task_write_related(&sending.w, op);
    return sgi_send_end(&sending) ? SEGUE_OK : SEGUE_E_NOMEM;
}

static segue_status let_note_wait(sgi_reply *reply, sgi_note_kind kind,
                                  write_note_fn write, const void *what)
{
    sgi_buf params;
    sgi_buf_init(&params, sgi_engine_mem(reply->engine));
    sgi_jw w = sgi_jw_to(&params);
    sgi_jw_open(&w, '{');
    write(&w, what);
    sgi_jw_close(&w, '}');
    segue_status status = params.failed
                              ? SEGUE_E_NOMEM
                              : sgi_late_note_keep(reply, kind, sgi_buf_str(&params));
    sgi_buf_free(&params);
    return status;
}

/* Messages of a task go to the conversation of its creator, and other messages to that of
 * the open request. Without such a conversation a message is dropped. */
static segue_status tell_note(sgi_op *op, sgi_note_kind kind, write_note_fn write,
                              const void *what)
{
    sgi_reply *reply = op->served->reply;
    if (sgi_op_is_lasting_call(op))
        return keep_note(op, kind, write, what);
    if (op->served->creator) {
        sgi_conn *conn = sgi_task_creator_conn(op);
        return conn ? send_note(op, conn, kind, write, what) : SEGUE_OK;
    }
    if (!reply || !reply->peer)
        return SEGUE_OK;
    if (sgi_conn_is_full(reply->peer->conn))
        return let_note_wait(reply, kind, write, what);
    sgi_late_notes_send(reply);
    return send_note(op, reply->peer->conn, kind, write, what);
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
    return note.token ? tell_note(call->op, SGI_NOTE_PROGRESS, write_progress, &note)
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
               : tell_note(call->op, SGI_NOTE_LOG, write_log, &note);
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
               : tell_note(call->op, SGI_NOTE_LOG, write_params, &params);
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
