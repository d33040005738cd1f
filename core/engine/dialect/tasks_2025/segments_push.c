/* Streaming of tasks (S, SEP-1905) by push: sends the segments of a task as further
 * responses to the request that made the task. A push is a source of its conversation, so
 * it sends no faster than its client reads. A response contains all segments that became
 * visible while it was gathered (gather.h), or while the client was not reading.
 *
 * The first response is sent after the handler's first turn (on_call has returned), when
 * the output of this turn is durable. At that moment the server knows whether all
 * segments exist, some of them, or none. */
#include "engine/dialect/tasks_2025/tasks_2025.h"

#include "engine/server/segment_reader.h"
#include "engine/server/gather.h"
#include "engine/response_modes.h"
#include "engine/server/call.h"
#include "engine/server/call_report.h"
#include "engine/server/lasting.h"
#include "engine/server/parked_exchange.h"
#include "engine/log/refusal.h"

typedef struct sgi_push {
    sgi_segment_reader cursor;
    sgi_output_source source;
    sgi_response_pacer gather;
    sgi_conn *conn; /* a counted reference */
    sgi_reply *reply;
    uint64_t sent; /* number of the last segment that was sent */
    bool open;     /* true when the first response may be sent */
    bool begun;    /* true when the first response was sent */
    bool at_end;   /* true when segments may be sent only after the end of the task */
    /* fires when the time to live of an ended task is over while no client reads the
     * stream */
    sgi_timer over;
} sgi_push;

typedef enum step { STEP_WAIT, STEP_SENT, STEP_END } step;

static void more_to_read(sgi_reader *reader);

static void end_push(sgi_push *push)
{
    sgi_reply *reply = push->reply;
    sgi_op *op = push->cursor.reader.op;
    bool begun = push->begun;
    const sgi_mem *mem = sgi_engine_mem(reply->engine);
    sgi_op_ref(op);
    sgi_reply_separate_from_op(reply, op);
    sgi_output_source_remove(push->conn, &push->source);
    sgi_response_pacer_stop(&push->gather);
    sgi_engine_clear_timer(reply->engine, &push->over);
    sgi_conn_unref(push->conn);
    sgi_segment_reader_end(&push->cursor);
    sgi_reply_close(reply);
    sgi_free(mem, push, sizeof *push);
    if (begun)
        /* notifications begin after the last response, so that the notification of the
         * task's end cannot come before that response */
        sgi_tasks_2025_start_notifying(op);
    sgi_op_unref(op);
}

/* ---- responses ---- */

/* True when the request can get only one response. The client then fetches the remaining
 * segments by tasks/result. */
static bool is_single(const sgi_push *push)
{
    return push->conn->no_events || push->conn->unordered;
}

/* Begins a response. end_response decides whether the response is the last one. Over HTTP
 * each response is an event of the stream, unless only one response can be sent. Returns
 * false when the client is no longer connected. */
static bool begin_response(sgi_push *push, sgi_sending *sending, bool with_task)
{
    if (!push->reply->peer)
        return false;
    sgi_send_begin_response(sending, push->conn, sgi_str_of(push->reply->id),
                            is_single(push));
    if (with_task)
        sgi_tasks_2025_write_created(&sending->w, push->cursor.reader.op);
    return true;
}

static void write_meta(sgi_push *push, sgi_sending *sending, bool named, bool complete)
{
    const sgi_op *op = push->cursor.reader.op;
    sgi_buf meta;
    sgi_buf_init(&meta, sgi_engine_mem(op->engine));
    if (named)
        sgi_task_related_meta(&meta, op);
    if (push->cursor.voided) {
        if (meta.len)
            sgi_buf_add_char(&meta, ',');
        sgi_buf_add_lit(&meta, "\"dev.segue/replace\":");
        sgi_buf_add_uint(&meta, push->cursor.voided);
    }
    if (complete || sgi_segments_are_withheld(op))
        sgi_segments_write_error_meta(&meta, op);
    if (complete) {
        sgi_fold_write_fields(&push->cursor.fields, &sending->w, sgi_buf_str(&meta));
    } else if (meta.len) {
        sgi_jw_key(&sending->w, "_meta");
        sgi_jw_open(&sending->w, '{');
        sgi_buf_add_str(sending->w.buf, sgi_buf_str(&meta));
        sgi_jw_close(&sending->w, '}');
    }
    sending->w.buf->failed |= meta.failed;
    sgi_buf_free(&meta);
}

/* Ends a response. Returns false when no response follows: this was the last response, or
 * memory ran out. */
static bool end_response(sgi_push *push, sgi_sending *sending, bool complete)
{
    sgi_jw *w = &sending->w;
    sgi_jw_key(w, "isError");
    sgi_jw_bool(w, complete && sgi_segments_end_in_error(push->cursor.reader.op));
    sgi_jw_key(w, "isComplete");
    sgi_jw_bool(w, complete);
    sending->last |= complete;
    push->begun = true;
    sgi_response_pacer_begin_pause(&push->gather);
    push->cursor.voided = 0;
    sgi_lasting_call_note_position(push->reply, push->cursor.reader.seq);
    bool sent = sgi_send_end(sending);
    sgi_tasks_2025_start_notifying(push->cursor.reader.op);
    return sent && !complete && !is_single(push);
}

static void send_error(sgi_push *push)
{
    sgi_reply_store_error(push->reply, SGI_UNREADABLE, push->cursor.reader.failure);
}

static bool send_task_only(sgi_push *push)
{
    sgi_sending sending;
    if (!begin_response(push, &sending, true))
        return false;
    push->begun = true;
    bool sent = sgi_send_end(&sending);
    sgi_tasks_2025_start_notifying(push->cursor.reader.op);
    return sent && !is_single(push);
}

/* ---- the error that ended the call ---- */

/* Adds the error that ended the call as the last segment, so that the list of segments
 * contains the error (R-1905-44). */
static void add_error_segment(const sgi_op *op, sgi_buf *out, bool numbered, bool first)
{
    sgi_buf block;
    if (op->head.final != SGI_FINAL_ERROR)
        return;
    sgi_buf_init(&block, sgi_engine_mem(op->engine));
    sgi_segment_write_error(&block, op);
    if (!first)
        sgi_buf_add_char(out, ',');
    if (numbered && !block.failed)
        sgi_segment_write(out, op->head.next_seg, sgi_buf_str(&block));
    else
        sgi_buf_add_str(out, sgi_buf_str(&block));
    out->failed |= block.failed;
    sgi_buf_free(&block);
}

/* True when the call failed before it made a segment. The error is then sent as a plain
 * result (R-1905-45). A plain result is one response, so the whole log must be in
 * memory. */
static bool made_nothing(const sgi_push *push)
{
    const sgi_op *op = push->cursor.reader.op;
    const sgi_entry *first = TAILQ_FIRST(&op->tail);
    return sgi_segments_are_complete(op) && sgi_segments_end_in_error(op) &&
           !push->sent && first && first->seq == 1 &&
           op->head.next_seg - 1 == op->served->closing_segments &&
           op->served->closing_segments < SGI_GATHER_SEGMENTS &&
           op->head.log_bytes < SGI_GATHER_BYTES / 2;
}

static void send_cut(sgi_push *push)
{
    sgi_sending sending;
    if (!begin_response(push, &sending, !push->begun))
        return;
    sgi_jw_key(&sending.w, "partial-content");
    sgi_jw_open(&sending.w, '[');
    sgi_jw_close(&sending.w, ']');
    write_meta(push, &sending, true, false);
    end_response(push, &sending, true);
}

/* ---- segments ---- */

/* Writes as many of the next segments as fit into one response. Returns the number of
 * written segments. */
static int32_t write_segments(sgi_push *push, sgi_buf *out, bool numbered)
{
    const sgi_entry *entry;
    size_t mark = out->len;
    int32_t count = 0;
    while (count < SGI_GATHER_SEGMENTS && out->len - mark < SGI_GATHER_BYTES &&
           (entry = sgi_segment_reader_next(&push->cursor, !count))) {
        sgi_str block;
        /* the index is not sent, because SEP-1905 has no member for an index
         * (sgi_op_keeps_segments_apart) */
        uint64_t place;
        sgi_entry_read_indexed_block(entry, &block, &place);
        if (count++)
            sgi_buf_add_char(out, ',');
        if (numbered)
            sgi_segment_write(out, entry->segment, block);
        else
            sgi_buf_add_str(out, block);
        push->sent = entry->segment;
        sgi_segment_reader_advance(&push->cursor);
    }
    return count;
}

/* Writes a list of segments. Returns true when the list contains the last segment. */
static bool write_content(sgi_push *push, sgi_jw *w, bool numbered)
{
    sgi_jw_key(w, numbered ? "partial-content" : "content");
    sgi_jw_open(w, '[');
    int32_t count = write_segments(push, w->buf, numbered);
    bool complete = sgi_segment_reader_at_end(&push->cursor);
    if (complete)
        add_error_segment(push->cursor.reader.op, w->buf, numbered, !count);
    sgi_jw_close(w, ']');
    return complete;
}

static step send_segments(sgi_push *push)
{
    sgi_sending sending;
    bool numbered = !made_nothing(push);
    /* One response never has both the task and `content`, because clients would read it
     * as a plain task (R-1905-52). */
    bool with_task = !push->begun && numbered;
    if (!begin_response(push, &sending, with_task))
        return STEP_END;
    bool complete = write_content(push, &sending.w, numbered);
    write_meta(push, &sending, !with_task, complete);
    return end_response(push, &sending, complete) ? STEP_SENT : STEP_END;
}

static step send_next(sgi_push *push)
{
    if (sgi_response_pacer_must_wait(&push->gather, &push->cursor.reader))
        return STEP_WAIT;
    bool waits = push->at_end && !sgi_segments_are_complete(push->cursor.reader.op);
    if (!waits && (sgi_segment_reader_next(&push->cursor, true) ||
                   sgi_segment_reader_at_end(&push->cursor)))
        return send_segments(push);
    if (push->cursor.reader.failure) {
        send_error(push);
        return STEP_END;
    }
    return push->begun || send_task_only(push) ? STEP_WAIT : STEP_END;
}

static bool fill(sgi_output_source *source, size_t room)
{
    sgi_push *push = SGI_OWNER(source, sgi_push, source);
    size_t mark = push->conn->out.len;
    step done = STEP_SENT;
    while (done == STEP_SENT && push->conn->out.len - mark < room)
        done = send_next(push);
    if (done == STEP_END)
        end_push(push);
    return done == STEP_SENT;
}

/* True when the exchange lost its transport before an event with an id was sent. The
 * client then cannot resume the exchange. */
static bool is_deserted(const sgi_push *push)
{
    return !sgi_conn_transport(push->conn) && push->conn->frames == SGI_FRAMES_OPEN;
}

static void time_is_over(sgi_timer *timer)
{
    SGI_OWNER(timer, sgi_push, over)->reply->spare = true;
}

/* Notes that the task has ended. If no transport carries the stream, starts the timer
 * that makes the reply spare (it may be dropped) when the task's time to live is over.
 * The client may have read the rest from another server. It then never comes back here,
 * and this server does not learn that it has the rest. */
static void await_time_over(sgi_push *push)
{
    const sgi_op *op = push->cursor.reader.op;
    push->reply->complete = sgi_segments_are_complete(op);
    if (sgi_conn_transport(push->conn) || !push->reply->complete)
        return;
    if (push->reply->peer)
        sgi_parked_note_rest(push->reply->peer);
    int64_t at = sgi_server_purge_time(op);
    if (at < INT64_MAX)
        sgi_engine_set_timer(op->engine, &push->over,
                             sgi_time_sub(at, sgi_wall_now(&op->engine->env)),
                             time_is_over);
}

static void more_to_read(sgi_reader *reader)
{
    sgi_push *push = SGI_OWNER(reader, sgi_push, cursor.reader);
    await_time_over(push);
    if (sgi_segments_are_withheld(reader->op)) {
        /* The last response is sent at once, so that it comes before the notification
         * that the task was cancelled or has expired. */
        send_cut(push);
        end_push(push);
    } else if (push->open && is_deserted(push)) {
        send_task_only(push);
        end_push(push);
    } else if (push->open) {
        sgi_output_source_queue(push->conn, &push->source);
    }
}

/* ---- beginning ---- */

static void withdrawn(sgi_reply *reply)
{
    sgi_push *push = reply->user;
    /* the client has cancelled only the stream, and the task continues */
    end_push(push);
}

static void parked(sgi_reply *reply)
{
    sgi_push *push = reply->user;
    sgi_reader_pause(&push->cursor.reader);
    await_time_over(push);
}

static void said_is_durable(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
    sgi_push *push = reply->user;
    /* the status is not needed: a failed write ends the task, and the client gets this
     * end */
    (void)status;
    push->open = true;
    /* The first response is sent here and not by the source. Over HTTP the source is
     * asked only when the form of the answer is decided, and the first response decides
     * the form. */
    if (sgi_segments_are_withheld(op))
        more_to_read(&push->cursor.reader);
    else if (send_next(push) == STEP_END)
        end_push(push);
    else
        sgi_output_source_queue(push->conn, &push->source);
}

static void turned(sgi_reply *reply, sgi_op *op)
{
    reply->turned = NULL;
    reply->waiter.fire = said_is_durable;
    sgi_op_wait_until_visible(op, &reply->waiter, op->head.next_log - 1);
}

static void begin_without_memory(sgi_reply *reply)
{
    sgi_reply_error(reply, SGI_RPC_INTERNAL_ERROR, SGI_STR("Out of memory"),
                    (sgi_json){0});
    sgi_reply_close(reply);
}

static void answer_task_only(sgi_reply *reply, sgi_op *op)
{
    sgi_sending sending;
    if (sgi_reply_begin_result(&sending, reply, NULL)) {
        sgi_tasks_2025_write_created(&sending.w, op);
        sgi_send_end(&sending);
        sgi_tasks_2025_start_notifying(op);
    }
    sgi_reply_close(reply);
}

static void begin(sgi_reply *reply, sgi_op *op, uint64_t from)
{
    const sgi_mem *mem = sgi_engine_mem(reply->engine);
    if (sgi_op_server(op)->dialects & SGI_DIALECT_ONE_RESPONSE) {
        answer_task_only(reply, op);
        return;
    }
    sgi_push *push = sgi_zalloc(mem, sizeof *push);
    if (!push) {
        begin_without_memory(reply);
        return;
    }
    push->reply = reply;
    push->source.fill = fill;
    push->conn = reply->peer->conn;
    sgi_conn_ref(push->conn);
    sgi_response_pacer_init(&push->gather, push->conn, &push->source);
    push->at_end =
        !(op->served->item && op->served->item->options.flags & SEGUE_TOOL_INCREMENTAL);
    sgi_segment_reader_init(&push->cursor, op, more_to_read);
    push->cursor.from = from;
    if (from > 0)
        sgi_call_event_report_resumed(op);
    push->begun = from > 0;
    /* of `sent`, later code uses only whether it is 0 */
    push->sent = from > 0;
    reply->user = push;
    reply->cancelled = withdrawn;
    reply->parked = parked;
    push->cursor.reader.conn = push->conn;
    if (!op->served->reply)
        /* progress of the call is sent on this reply, because it gets the segments */
        op->served->reply = reply;
    if (op->served->call && !op->served->call->turned && op->served->reply == reply)
        reply->turned = turned;
    else
        turned(reply, op);
}

void sgi_segments_push_begin(sgi_reply *reply, sgi_op *op)
{
    begin(reply, op, 0);
}

void sgi_segments_push_resume(sgi_reply *reply, sgi_op *op)
{
    begin(reply, op, op->served->lasting->confirmed);
}

void sgi_segments_push_mark_spare(const sgi_op *op, const sgi_wire_session *session)
{
    const sgi_reader *reader;
    TAILQ_FOREACH(reader, &op->readers, link) {
        if (reader->ready != more_to_read)
            continue;
        sgi_reply *reply = SGI_OWNER(reader, sgi_push, cursor.reader)->reply;
        if (session && reply->peer && reply->peer->session == session)
            reply->spare = true;
    }
}

bool sgi_segments_push_is_open(const sgi_op *op)
{
    const sgi_reader *reader;
    TAILQ_FOREACH(reader, &op->readers, link)
        if (reader->ready == more_to_read)
            return true;
    return false;
}

const sgi_reply *sgi_segments_push_next_reply(const sgi_op *op, const sgi_reply *before)
{
    const sgi_push *last = before ? before->user : NULL;
    const sgi_reader *reader =
        last ? TAILQ_NEXT(&last->cursor.reader, link) : TAILQ_FIRST(&op->readers);
    for (; reader; reader = TAILQ_NEXT(reader, link)) {
        const sgi_push *push = SGI_OWNER(reader, sgi_push, cursor.reader);
        if (reader->ready == more_to_read && push->begun && push->reply->peer)
            return push->reply;
    }
    return NULL;
}

bool sgi_segments_push_is_unfinished(const sgi_op *op, const sgi_peer *peer)
{
    const sgi_reader *reader;
    if (peer->is_exchange)
        /* HTTP exchanges have no order among each other, so no message has to wait for
         * another exchange */
        return false;
    TAILQ_FOREACH(reader, &op->readers, link)
        if (reader->ready == more_to_read &&
            SGI_OWNER(reader, sgi_push, cursor.reader)->reply->peer == peer)
            return true;
    return false;
}
