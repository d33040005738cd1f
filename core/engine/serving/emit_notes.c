/* Progress and log messages of a handler, to whoever made the call: on the way that its
 * request, or its task, has back to the client. Those of a request that can be resumed go
 * into the log first, as its client may come for them later. */
#include "engine/serving/call.h"

#include "engine/dialect/tasks_2025.h"
#include "engine/log_level.h"
#include "engine/serving/origin.h"
#include "engine/serving/resumable.h"
#include "engine/serving/wire_session.h"

#include <math.h>

/* By its request while that is open; a task of 2025-11-25 has the way of its own. NULL:
 * nobody hears it, or too much is unsent. */
static sgi_conn *way_back(const sgi_op *op)
{
    const sgi_reply *reply = op->reply;
    if (op->origin)
        return sgi_origin_conn(op);
    return reply && reply->peer && !sgi_conn_is_full(reply->peer->conn)
               ? reply->peer->conn
               : NULL;
}

/* Its messages go into the log: a client that comes again gets them (SEP-975). */
static bool is_kept(const sgi_op *op)
{
    return op->resumable && !op->is_task;
}

static const char *progress_token(const sgi_op *op)
{
    if (is_kept(op))
        return op->resumable->progress_token;
    if (op->origin)
        return op->origin->progress_token;
    return op->reply ? op->reply->progress_token : NULL;
}

static int32_t log_level(const sgi_op *op)
{
    if (is_kept(op))
        return op->resumable->log_level;
    if (op->origin)
        return sgi_origin_log_level(op);
    return op->reply ? op->reply->log_level : -1;
}

static segue_status end_note(sgi_sending *sending, const sgi_op *op)
{
    if (op->origin)
        sgi_tasks_2025_write_related(&sending->w, op);
    return sgi_send_end(sending) ? SEGUE_OK : SEGUE_E_NOMEM;
}

/* What of a message differs from one to the next, into its params, which are open. */
typedef void (*write_note_fn)(sgi_jw *w, const void *what);

static segue_status keep_note(sgi_op *op, const char *method, write_note_fn write,
                              const void *what)
{
    sgi_buf text;
    sgi_buf_init(&text, sgi_engine_mem(op->engine));
    sgi_jw w = sgi_jw_on(&text);
    sgi_jw_member_string(&w, "method", sgi_str_of(method));
    sgi_jw_key(&w, "params");
    sgi_jw_open(&w, '{');
    write(&w, what);
    sgi_jw_close(&w, '}');
    segue_status status =
        text.failed ? SEGUE_E_NOMEM : sgi_resumable_note(op, sgi_buf_str(&text));
    sgi_buf_free(&text);
    return status;
}

static segue_status tell_note(sgi_op *op, const char *method, write_note_fn write,
                              const void *what)
{
    sgi_sending sending;
    if (is_kept(op))
        return keep_note(op, method, write, what);
    sgi_conn *conn = way_back(op);
    if (!conn)
        return SEGUE_OK; /* the next one says more */
    sgi_send_notification(&sending, conn, method);
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
    if (!isfinite(progress) || !isfinite(total) ||
        (message && !sgi_utf8_valid(sgi_str_of(message), NULL)))
        return sgi_refuse(call->handle.engine, SEGUE_E_INVALID,
                          "a number is not finite, or the message is not UTF-8");
    if (sgi_call_is_over(call))
        return sgi_call_over(call);
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
    int32_t rank = sgi_log_level(sgi_str_of(level));
    if (rank < 0)
        return sgi_refuse(call->handle.engine, SEGUE_E_INVALID,
                          "the level is none of debug, info, notice, warning, error, "
                          "critical, alert, emergency");
    segue_status status =
        sgi_engine_json(call->handle.engine, json, len, &note.data, NULL);
    if (status != SEGUE_OK)
        return status;
    if (sgi_call_is_over(call))
        return sgi_call_over(call);
    int32_t wanted = log_level(call->op);
    return wanted < 0 || rank < wanted
               ? SEGUE_OK
               : tell_note(call->op, "notifications/message", write_log, &note);
}

#define COME_AGAIN_MS 1000

segue_status sgi_call_hang_up(segue_call *call, int64_t retry_ms)
{
    const sgi_reply *reply = call->op->reply;
    if (sgi_call_is_over(call))
        return sgi_call_over(call);
    if (!reply || !reply->peer)
        return sgi_refuse(call->handle.engine, SEGUE_E_UNSUPPORTED,
                          "the call has no event stream that its client could come back "
                          "to");
    return sgi_wire_session_hang_up(reply->peer, retry_ms ? retry_ms : COME_AGAIN_MS);
}
