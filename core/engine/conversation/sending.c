/* A message is written directly into the output, inside its frame. When the message is
 * complete, `finish` sends the message, stores it for a batch, or removes it because
 * memory ran out. The frames of a body and of an event stream differ, so the first
 * message of an HTTP exchange also decides the form of the answer. */
#include "engine/conversation/sending.h"

#include "base/limit.h"
#include "engine/conversation/batch.h"
#include "engine/conversation/replay.h"

/* number of bytes that the output buffer of an exchange keeps while the exchange has no
 * connection */
#define PARKED_ROOM 1024

/* ---- frames ---- */

sgi_str sgi_frame_head(const sgi_conn *conn)
{
    return conn->frames == SGI_FRAMES_EVENTS ? SGI_STR("data: ") : (sgi_str){0};
}

sgi_str sgi_frame_tail(const sgi_conn *conn)
{
    if (conn->frames == SGI_FRAMES_EVENTS)
        return SGI_STR("\n\n");
    return conn->frames == SGI_FRAMES_LINES ? SGI_STR("\n") : (sgi_str){0};
}

void sgi_frame_blank_line_ends(sgi_buf *out, size_t from)
{
    static const char ends[] = {'\n', '\r'};
    if (!out->p)
        return; /* memory ran out, so the output has no complete message to change */
    for (size_t i = 0; i < sizeof ends; i++) {
        char *at = out->p + from;
        char *stop = out->p + out->len;
        while (at < stop && (at = memchr(at, ends[i], (size_t)(stop - at))))
            *at++ = ' ';
    }
}

void sgi_send_open_event_stream(sgi_conn *conn)
{
    size_t mark = conn->out.len;
    if (conn->frames != SGI_FRAMES_OPEN || conn->no_events || !conn->up)
        return;
    conn->frames = SGI_FRAMES_EVENTS;
    if (conn->replay && conn->replay->primes)
        sgi_replay_write_priming_event(conn->replay, &conn->out);
    if (conn->out.failed)
        /* without memory for the first event, the stream begins without an event id */
        sgi_buf_truncate(&conn->out, mark);
    sgi_batch_send_collected(conn);
    sgi_conn_notify_output(conn);
}

void sgi_send_end_without_answer(sgi_conn *conn)
{
    sgi_send_open_event_stream(conn);
    if (conn->frames == SGI_FRAMES_OPEN) {
        conn->frames = SGI_FRAMES_BODY;
        conn->http_status = 202;
    }
    conn->answered = true;
    sgi_conn_notify_output(conn);
}

static void begin_event(sgi_conn *conn)
{
    if (conn->frames == SGI_FRAMES_EVENTS && conn->replay &&
        !sgi_replay_id_follows_event(conn->replay))
        sgi_replay_write_next_id(conn->replay, &conn->out);
    sgi_buf_add_str(&conn->out, sgi_frame_head(conn));
}

static void end_event(sgi_conn *conn)
{
    if (conn->frames == SGI_FRAMES_EVENTS && conn->replay &&
        sgi_replay_id_follows_event(conn->replay)) {
        sgi_buf_add_char(&conn->out, '\n');
        sgi_replay_write_next_id(conn->replay, &conn->out);
        sgi_buf_add_char(&conn->out, '\n');
    } else {
        sgi_buf_add_str(&conn->out, sgi_frame_tail(conn));
    }
}

static void begin(sgi_sending *sending, sgi_conn *conn, bool last)
{
    sending->conn = conn;
    sending->last = last;
    sending->kept = sending->is_note = false;
    sending->id = (sgi_str){0};
    if (conn->frames == SGI_FRAMES_OPEN) {
        if (!last)
            sgi_send_open_event_stream(conn);
        /* an answer of a batch does not decide the form, because it waits for the other
         * answers */
        else if (!conn->batches)
            conn->frames = SGI_FRAMES_BODY;
    }
    sending->mark = conn->out.len;
    conn->params_at = 0;
    begin_event(conn);
    sending->body = conn->out.len;
    sending->w = sgi_jw_to(&conn->out);
}

/* Returns the event that begins in the output at position `from`. */
static sgi_str event_from(const sgi_conn *conn, size_t from)
{
    return (sgi_str){conn->out.p + from, conn->out.len - from};
}

/* Stores a short error in place of an answer that is too large for the replay. A client
 * that asks for the answer again then gets this error and does not wait forever. */
static void keep_stand_in(const sgi_sending *sending)
{
    sgi_conn *conn = sending->conn;
    size_t end = conn->out.len;
    sgi_limit_text told = sgi_engine_describe_limit(
        conn->engine, "The answer is too large to be sent again",
        (sgi_limit){SGI_LIMIT_MAX_REPLAY_BYTES, (int64_t)conn->replay->most},
        "answer_gone", NULL);
    begin_event(conn);
    sgi_write_rpc_error(&conn->out, sending->id, SGI_RPC_INTERNAL_ERROR,
                        sgi_str_of(told.text), sgi_str_of(told.data));
    end_event(conn);
    sgi_replay_keep(conn->replay,
                    event_from(conn, conn->out.failed ? sending->mark : end), false);
    sgi_buf_truncate(&conn->out, end);
}

/* Stores the complete event, so that the client can resume the stream. While the client
 * is not connected, the event is only stored and not sent. */
static void keep(const sgi_sending *sending)
{
    sgi_conn *conn = sending->conn;
    sgi_str event = event_from(conn, sending->mark);
    if (conn->frames == SGI_FRAMES_EVENTS && sending->last &&
        event.n > conn->replay->most)
        keep_stand_in(sending);
    else if (conn->frames == SGI_FRAMES_EVENTS)
        sgi_replay_keep(conn->replay, event, sending->is_note);
    if (!conn->transport)
        sgi_buf_reset(&conn->out, PARKED_ROOM);
    else if (conn->parting)
        sgi_buf_truncate(&conn->out, sending->mark);
}

/* Removes the message from the output, because there is no peer, no memory or no event
 * stream for the message. Returns true if only the event stream is missing, because this
 * is not an error. */
static bool undo(sgi_sending *sending)
{
    sgi_conn *conn = sending->conn;
    bool failed = conn->out.failed;
    sgi_buf_truncate(&conn->out, sending->mark);
    if (failed) {
        sgi_engine_log(conn->engine, SEGUE_LOG_ERROR,
                       "out of memory for a message: the conversation is closed");
        sgi_conn_close(conn);
    }
    return !failed && conn->up && conn->frames == SGI_FRAMES_OPEN;
}

/* Stores the answer to a request of a batch until all answers of the batch are collected.
 * Returns false when out of memory or without a peer. */
static bool collect(sgi_sending *sending, sgi_batch_answer *batch)
{
    sgi_conn *conn = sending->conn;
    size_t most = conn->engine->max_message;
    if (conn->out.failed || !conn->up)
        return undo(sending);
    if (conn->out.len - sending->body + conn->batch_bytes > most) {
        sgi_limit_text told = sgi_engine_describe_limit(
            conn->engine, "The answers of the batch are together too large",
            (sgi_limit){SGI_LIMIT_MAX_MESSAGE_BYTES, (int64_t)most}, "limit", NULL);
        sgi_buf_truncate(&conn->out, sending->body);
        sgi_write_rpc_error(&conn->out, sending->id, SGI_RPC_INTERNAL_ERROR,
                            sgi_str_of(told.text), sgi_str_of(told.data));
    }
    if (conn->out.failed ||
        !sgi_batch_keep_answer(conn, batch, event_from(conn, sending->body))) {
        conn->out.failed = true;
        return undo(sending);
    }
    sgi_buf_truncate(&conn->out, sending->mark);
    sgi_batch_note_answered(conn, batch, sending->id);
    return true;
}

static bool finish(sgi_sending *sending)
{
    sgi_conn *conn = sending->conn;
    sgi_batch_answer *batch = NULL;
    sgi_frame_blank_line_ends(&conn->out, sending->body);
    if (conn->batches && sending->last && !sending->kept)
        batch = sgi_batch_of_request(conn, sending->id);
    if (batch && conn->frames != SGI_FRAMES_EVENTS)
        return collect(sending, batch);
    end_event(conn);
    if (conn->out.failed || !conn->up || conn->answered ||
        conn->frames == SGI_FRAMES_OPEN)
        return undo(sending);
    if (sending->last || sending->id.n)
        conn->caused_bytes += conn->out.len - sending->mark;
    if (conn->replay)
        keep(sending);
    if (batch)
        sgi_batch_note_answered(conn, batch, sending->id);
    else if (sending->last && conn->frames != SGI_FRAMES_LINES && !conn->batches)
        conn->answered = true;
    if (conn->replay && !conn->transport && conn->role->kept)
        /* The role can drop stored events now, also the events of this exchange. */
        conn->role->kept(conn->self);
    sgi_conn_notify_output(conn);
    return true;
}

/* ---- messages ---- */

static void open_message(sgi_sending *sending, sgi_conn *conn, bool last)
{
    begin(sending, conn, last);
    sgi_buf_add_lit(&conn->out, "{\"jsonrpc\":\"2.0\"");
    sending->w.comma = true;
}

void sgi_send_begin_response(sgi_sending *sending, sgi_conn *conn, sgi_str id, bool last)
{
    open_message(sending, conn, last);
    sending->id = id;
    sgi_buf_add_lit(&conn->out, ",\"id\":");
    sgi_buf_add_str(&conn->out, id);
    sgi_buf_add_lit(&conn->out, ",\"result\":{");
    sending->w.comma = false;
    sending->depth = 2;
}

void sgi_send_begin_result(sgi_sending *sending, sgi_conn *conn, sgi_str id,
                           const char *result_type)
{
    sgi_send_begin_response(sending, conn, id, true);
    if (!result_type)
        return;
    sgi_buf_add_lit(&conn->out, "\"resultType\":\"");
    sgi_buf_add_str(&conn->out, sgi_str_of(result_type));
    sgi_buf_add_char(&conn->out, '"');
    sending->w.comma = true;
}

static void open_params(sgi_sending *sending)
{
    sgi_jw_key(&sending->w, "params");
    sending->conn->params_at = sending->conn->out.len;
    sgi_jw_open(&sending->w, '{');
    sending->depth = 2;
}

void sgi_send_begin_notification(sgi_sending *sending, sgi_conn *conn, const char *method)
{
    open_message(sending, conn, false);
    sending->is_note = true;
    sgi_jw_member_string(&sending->w, "method", sgi_str_of(method));
    open_params(sending);
}

/* the parts of the members around the method */
#define MEMBERS_HEAD "\"method\":\""
#define MEMBERS_MIDDLE "\",\"params\":"

void sgi_begin_notification_members(sgi_jw *w, const char *method)
{
    sgi_buf_add_lit(w->buf, MEMBERS_HEAD);
    sgi_buf_add_str(w->buf, sgi_str_of(method));
    sgi_buf_add_lit(w->buf, MEMBERS_MIDDLE);
    sgi_jw_open(w, '{');
}

bool sgi_read_notification_members(sgi_str members, const char *method, sgi_json *params)
{
    bool is_method = sgi_str_skip(&members, sgi_str_of(MEMBERS_HEAD)) &&
                     sgi_str_skip(&members, sgi_str_of(method)) &&
                     sgi_str_skip(&members, sgi_str_of(MEMBERS_MIDDLE));
    if (is_method)
        *params = members;
    return is_method;
}

void sgi_send_notification_members(sgi_conn *conn, sgi_str members)
{
    sgi_sending sending;
    open_message(&sending, conn, false);
    sending.is_note = true;
    sgi_buf_add_char(&conn->out, ',');
    sgi_buf_add_str(&conn->out, members);
    sending.depth = 1;
    sgi_send_end(&sending);
}

void sgi_send_begin_request_with_id(sgi_sending *sending, sgi_conn *conn, sgi_json id,
                                    sgi_str method)
{
    open_message(sending, conn, false);
    sgi_jw_member_raw(&sending->w, "id", id);
    sgi_jw_member_string(&sending->w, "method", method);
    open_params(sending);
}

void sgi_send_begin_request(sgi_sending *sending, sgi_conn *conn, int64_t id,
                            sgi_str method)
{
    open_message(sending, conn, false);
    sgi_jw_member_int(&sending->w, "id", id);
    sgi_jw_member_string(&sending->w, "method", method);
    open_params(sending);
}

bool sgi_send_end(sgi_sending *sending)
{
    for (; sending->depth > 0; sending->depth--)
        sgi_jw_close(&sending->w, '}');
    return finish(sending);
}

void sgi_send_message_text(sgi_conn *conn, sgi_str message)
{
    sgi_sending sending;
    begin(&sending, conn, false);
    sgi_buf_add_str(&conn->out, message);
    finish(&sending);
}

/* Returns the HTTP status for an error that is the only message of the answer (R-0-4). */
static int32_t status_of(const sgi_conn *conn, int64_t code)
{
    if (code == SGI_RPC_PARSE_ERROR || code == SGI_RPC_INVALID_REQUEST ||
        code == SGI_RPC_HEADER_MISMATCH)
        return 400;
    if (!conn->stateless)
        return 200;
    if (code == SGI_RPC_METHOD_NOT_FOUND)
        return 404;
    return code == SGI_RPC_MISSING_CAPABILITY || code == SGI_RPC_UNSUPPORTED_VERSION
               ? 400
               : 200;
}

static void set_status(sgi_conn *conn, int64_t code)
{
    if (conn->frames == SGI_FRAMES_BODY && !conn->answered && !conn->http_status)
        conn->http_status = status_of(conn, code);
}

void sgi_send_error(sgi_conn *conn, sgi_str id, int32_t code, sgi_str message,
                    sgi_json data)
{
    sgi_sending sending;
    begin(&sending, conn, true);
    sending.id = id;
    set_status(conn, code);
    sgi_write_rpc_error(&conn->out, id, code, message, data);
    finish(&sending);
}

bool sgi_send_error_object(sgi_conn *conn, sgi_str id, sgi_json error)
{
    sgi_sending sending;
    int64_t code = 0;
    open_message(&sending, conn, true);
    sending.id = id;
    sgi_json_read_int(sgi_json_get(error, "code"), &code);
    if (conn->stateless)
        /* in versions before 2026-07-28, the HTTP status does not depend on the error */
        set_status(conn, code);
    sgi_jw_member_raw(&sending.w, "id", id);
    sgi_jw_member_raw(&sending.w, "error", error);
    sending.depth = 1;
    return sgi_send_end(&sending);
}

/* ---- batches ---- */

static void begin_kept(sgi_sending *sending, sgi_conn *conn)
{
    begin(sending, conn, true);
    sending->kept = true;
}

void sgi_send_batch_array(sgi_conn *conn, sgi_str messages)
{
    sgi_sending sending;
    begin_kept(&sending, conn);
    sgi_buf_add_char(&conn->out, '[');
    size_t from = conn->out.len;
    /* the messages, without the newline after the last message */
    sgi_buf_add(&conn->out, messages.p, messages.n - 1);
    if (!conn->out.failed) {
        char *at = conn->out.p + from;
        char *stop = conn->out.p + conn->out.len;
        while ((at = memchr(at, '\n', (size_t)(stop - at))))
            *at++ = ',';
    }
    sgi_buf_add_char(&conn->out, ']');
    finish(&sending);
}

void sgi_send_batch_answer(sgi_conn *conn, sgi_str message)
{
    sgi_sending sending;
    begin_kept(&sending, conn);
    sending.id = sgi_json_get(message, "id");
    sgi_buf_add_str(&conn->out, message);
    finish(&sending);
}
