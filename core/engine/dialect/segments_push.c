/* S, push: the segments of a task as further responses to the request that made it. A
 * source of its conversation, like every stream: as fast as its client reads, and what is
 * there goes out together, so that a batch is what was made visible while it gathered
 * (gather.h), or what one read of the client takes.
 *
 * The first response waits until the handler has had its first turn and what it said is
 * durable: then it is known whether all is there, something, or nothing. */
#include "engine/dialect/tasks_2025.h"

#include "engine/dialect/cursor.h"
#include "engine/dialect/gather.h"
#include "engine/dialect/response_modes.h"
#include "engine/serving/call.h"
#include "engine/serving/resumable.h"
#include "engine/refusal.h"

typedef struct sgi_push {
    sgi_cursor cursor;
    sgi_source source;
    sgi_gather gather;
    sgi_conn *conn; /* counted */
    sgi_reply *reply;
    uint64_t sent; /* number of the last segment sent */
    bool open;     /* the first response is due */
    bool begun;    /* ... and was sent */
    bool at_end;   /* the segments wait for the end */
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
    sgi_call_unhook(reply, op);
    sgi_source_remove(push->conn, &push->source);
    sgi_gather_end(&push->gather);
    sgi_conn_unref(push->conn);
    sgi_cursor_end(&push->cursor);
    sgi_reply_close(reply);
    sgi_release(mem, push, sizeof *push);
    if (begun)
        sgi_tasks_2025_told(op); /* of its end, after the last response */
    sgi_op_unref(op);
}

/* ---- responses ---- */

/* There is one response, and the rest is asked for. */
static bool is_single(const sgi_push *push)
{
    return push->conn->no_events || push->conn->apart;
}

/* Whether a response is the last is decided at its end. Over HTTP each response is an
 * event of the stream, unless there can be only one response. */
static bool begin_response(sgi_push *push, sgi_sending *sending, bool with_task)
{
    if (!push->reply->peer)
        return false;
    sgi_send_response(sending, push->conn, sgi_str_of(push->reply->id), is_single(push));
    if (with_task)
        sgi_tasks_2025_write_created(&sending->w, push->cursor.reader.op);
    return true;
}

/* The error that ended the call, for clients of this library: the segments only have its
 * text. */
static void add_error(sgi_buf *meta, const sgi_op *op)
{
    if (op->final != SGI_FINAL_ERROR && op->final != SGI_FINAL_EXPIRED)
        return;
    if (meta->len)
        sgi_buf_add_char(meta, ',');
    sgi_buf_add_lit(meta, "\"dev.segue/error\":");
    sgi_buf_add(meta, op->final_data, op->final_len);
}

static void write_meta(sgi_push *push, sgi_sending *sending, bool named, bool complete)
{
    const sgi_op *op = push->cursor.reader.op;
    sgi_buf meta;
    sgi_buf_init(&meta, sgi_engine_mem(op->engine));
    if (named)
        sgi_related_task(&meta, op);
    if (push->cursor.voided) {
        if (meta.len)
            sgi_buf_add_char(&meta, ',');
        sgi_buf_add_lit(&meta, "\"dev.segue/replace\":");
        sgi_buf_add_uint(&meta, push->cursor.voided);
    }
    if (complete || sgi_segments_are_cut(op))
        add_error(&meta, op);
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

/* Without what could not be sent, for lack of memory, there is no next one. */
static bool end_response(sgi_push *push, sgi_sending *sending, bool complete)
{
    sgi_jw *w = &sending->w;
    sgi_jw_key(w, "isError");
    sgi_jw_bool(w, complete && sgi_segments_failed(push->cursor.reader.op));
    sgi_jw_key(w, "isComplete");
    sgi_jw_bool(w, complete);
    sending->last |= complete;
    push->begun = true;
    sgi_gather_sent(&push->gather);
    push->cursor.voided = 0;
    sgi_resumable_mark(push->reply, push->cursor.reader.seq);
    bool sent = sgi_send_end(sending);
    sgi_tasks_2025_told(push->cursor.reader.op);
    return sent && !complete && !is_single(push);
}

static void send_error(sgi_push *push)
{
    sgi_reply_refuse(push->reply, SGI_UNREADABLE, SEGUE_E_STORE);
}

static bool send_task_only(sgi_push *push)
{
    sgi_sending sending;
    if (!begin_response(push, &sending, true))
        return false;
    push->begun = true;
    bool sent = sgi_send_end(&sending);
    sgi_tasks_2025_told(push->cursor.reader.op);
    return sent && !is_single(push);
}

/* ---- the end ---- */

/* The error that ended the call is a segment more, so that it is in the place where the
 * others are (R-1905-44). */
static void add_error_segment(const sgi_op *op, sgi_buf *out, bool numbered, bool first)
{
    sgi_buf block;
    if (op->final != SGI_FINAL_ERROR)
        return;
    sgi_buf_init(&block, sgi_engine_mem(op->engine));
    sgi_segment_of_error(&block, op);
    if (!first)
        sgi_buf_add_char(out, ',');
    if (numbered && !block.failed)
        sgi_segment_write(out, op->next_seg, sgi_buf_str(&block));
    else
        sgi_buf_add_str(out, sgi_buf_str(&block));
    out->failed |= block.failed;
    sgi_buf_free(&block);
}

/* Failed before it made anything: told as the result itself (R-1905-45). */
static bool made_nothing(const sgi_push *push)
{
    const sgi_op *op = push->cursor.reader.op;
    return sgi_segments_are_all(op) && sgi_segments_failed(op) && !push->sent &&
           op->next_seg - 1 == op->closing_segments &&
           op->closing_segments < SGI_GATHER_SEGMENTS &&
           op->log_bytes < SGI_GATHER_BYTES / 2;
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

/* Writes segments from the next one on: as many as a response takes. */
static int32_t write_segments(sgi_push *push, sgi_buf *out, bool numbered)
{
    const sgi_entry *entry;
    size_t mark = out->len;
    int32_t count = 0;
    while (count < SGI_GATHER_SEGMENTS && out->len - mark < SGI_GATHER_BYTES &&
           (entry = sgi_cursor_next(&push->cursor, !count))) {
        sgi_str block;
        uint64_t place; /* S has no word for it: sgi_op_keeps_apart */
        sgi_entry_placed(entry, &block, &place);
        if (count++)
            sgi_buf_add_char(out, ',');
        if (numbered)
            sgi_segment_write(out, entry->segment, block);
        else
            sgi_buf_add_str(out, block);
        push->sent = entry->segment;
        sgi_cursor_advance(&push->cursor);
    }
    return count;
}

/* True when nothing is left behind it. */
static bool write_content(sgi_push *push, sgi_jw *w, bool numbered)
{
    sgi_jw_key(w, numbered ? "partial-content" : "content");
    sgi_jw_open(w, '[');
    int32_t count = write_segments(push, w->buf, numbered);
    bool complete = sgi_cursor_at_end(&push->cursor);
    if (complete)
        add_error_segment(push->cursor.reader.op, w->buf, numbered, !count);
    sgi_jw_close(w, ']');
    return complete;
}

static step send_segments(sgi_push *push)
{
    sgi_sending sending;
    bool numbered = !made_nothing(push);
    /* content beside a task would read as a task (R-1905-52) */
    bool with_task = !push->begun && numbered;
    if (!begin_response(push, &sending, with_task))
        return STEP_END;
    bool complete = write_content(push, &sending.w, numbered);
    write_meta(push, &sending, !with_task, complete);
    return end_response(push, &sending, complete) ? STEP_SENT : STEP_END;
}

static step send_next(sgi_push *push)
{
    if (sgi_gather_waits(&push->gather, &push->cursor.reader))
        return STEP_WAIT;
    bool waits = push->at_end && !sgi_segments_are_all(push->cursor.reader.op);
    if (!waits &&
        (sgi_cursor_next(&push->cursor, true) || sgi_cursor_at_end(&push->cursor)))
        return send_segments(push);
    if (push->cursor.reader.failed) {
        send_error(push);
        return STEP_END;
    }
    return push->begun || send_task_only(push) ? STEP_WAIT : STEP_END;
}

static bool fill(sgi_source *source, size_t room)
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

/* An exchange that was left before it had an event to name: nobody can come back to
 * it. */
static bool is_deserted(const sgi_push *push)
{
    return !sgi_conn_transport(push->conn) && push->conn->frames == SGI_FRAMES_OPEN;
}

static void more_to_read(sgi_reader *reader)
{
    sgi_push *push = SGI_OWNER(reader, sgi_push, cursor.reader);
    if (sgi_segments_are_cut(reader->op)) {
        /* at once: nothing may follow it, and it comes before what its cause is told */
        send_cut(push);
        end_push(push);
    } else if (push->open && is_deserted(push)) {
        send_task_only(push);
        end_push(push);
    } else if (push->open) {
        sgi_source_ready(push->conn, &push->source);
    }
}

/* ---- beginning ---- */

static void withdrawn(sgi_reply *reply)
{
    sgi_push *push = reply->user;
    end_push(push); /* the stream ends, the task goes on */
}

static void parked(sgi_reply *reply)
{
    sgi_push *push = reply->user;
    sgi_reader_rest(&push->cursor.reader);
}

static void said_is_durable(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
    sgi_push *push = reply->user;
    (void)status; /* what could not be stored has ended the task, and that is told */
    push->open = true;
    /* not left to the source: over HTTP nothing is asked for before it is decided what
     * the answer is */
    if (sgi_segments_are_cut(op))
        more_to_read(&push->cursor.reader);
    else if (send_next(push) == STEP_END)
        end_push(push);
    else
        sgi_source_ready(push->conn, &push->source);
}

static void turned(sgi_reply *reply, sgi_op *op)
{
    reply->turned = NULL;
    reply->waiter.fire = said_is_durable;
    sgi_op_wait(op, &reply->waiter, op->next_log - 1);
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
    if (sgi_reply_result(&sending, reply, NULL)) {
        sgi_tasks_2025_write_created(&sending.w, op);
        sgi_send_end(&sending);
        sgi_tasks_2025_told(op);
    }
    sgi_reply_close(reply);
}

static void begin(sgi_reply *reply, sgi_op *op, uint64_t from)
{
    const sgi_mem *mem = sgi_engine_mem(reply->engine);
    if (op->server->dialects & SGI_DIALECT_ONE_RESPONSE) {
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
    sgi_gather_init(&push->gather, push->conn, &push->source);
    push->at_end = !(op->item && op->item->options.flags & SEGUE_TOOL_INCREMENTAL);
    sgi_cursor_init(&push->cursor, op, more_to_read);
    push->cursor.from = from;
    op->server->counts.resumes += from > 0;
    push->begun = from > 0;
    push->sent = from > 0; /* which one does not matter any more */
    reply->user = push;
    reply->cancelled = withdrawn;
    reply->parked = parked;
    push->cursor.reader.conn = push->conn;
    if (!op->reply)
        op->reply = reply; /* progress goes with the segments */
    if (op->call && !op->call->turned && op->reply == reply)
        reply->turned = turned;
    else
        turned(reply, op);
}

void sgi_push_begin(sgi_reply *reply, sgi_op *op)
{
    begin(reply, op, 0);
}

void sgi_push_resume(sgi_reply *reply, sgi_op *op)
{
    begin(reply, op, op->resumable->confirmed);
}

bool sgi_push_is_open(const sgi_op *op)
{
    const sgi_reader *reader;
    TAILQ_FOREACH(reader, &op->readers, link)
        if (reader->ready == more_to_read)
            return true;
    return false;
}

const sgi_reply *sgi_push_reading(const sgi_op *op, const sgi_reply *before)
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

bool sgi_push_is_owed(const sgi_op *op, const sgi_peer *peer)
{
    const sgi_reader *reader;
    if (peer->is_exchange)
        return false; /* two exchanges have no order between them */
    TAILQ_FOREACH(reader, &op->readers, link)
        if (reader->ready == more_to_read &&
            SGI_OWNER(reader, sgi_push, cursor.reader)->reply->peer == peer)
            return true;
    return false;
}
