/* Event streams of a task (E, SEP-2694) on the server. A client can resume such a stream.
 * The response to tasks/stream stays open. It first brings the events of the log after
 * the client's cursor, then new events, and at last the empty result. A stream is a
 * source of its conversation. The conversation asks the source for events only when there
 * is room, so the stream sends no faster than its client reads. */
#include "engine/dialect/rows.h"
#include "engine/server/call_report.h"
#include "engine/server/task_form.h"
#include "engine/log/dropping.h"
#include "engine/log/reader.h"
#include "engine/server/task.h"
#include "engine/log/refusal.h"

#include <stdio.h>

typedef struct sgi_event_stream {
    sgi_reader reader;
    sgi_output_source source;
    sgi_conn *conn; /* a counted reference */
    sgi_reply *reply;
    /* 1 + the number of the next event to send; 0 = begin with the earliest retained
     * event */
    uint64_t expect;
    sgi_buf head; /* the text before the changing part of each event */
    sgi_buf tail; /* the text after the changing part of each event */
} sgi_event_stream;

static void end_stream(sgi_event_stream *stream)
{
    sgi_reply *reply = stream->reply;
    const sgi_mem *mem = sgi_engine_mem(reply->engine);
    sgi_output_source_remove(stream->conn, &stream->source);
    sgi_conn_unref(stream->conn);
    sgi_reader_end(&stream->reader);
    sgi_buf_free(&stream->head);
    sgi_buf_free(&stream->tail);
    sgi_reply_close(reply);
    sgi_free(mem, stream, sizeof *stream);
}

/* ---- events ---- */

static const char *event_type(int32_t kind)
{
    switch (kind) {
    case SGI_ENTRY_SEGMENT:
        return "dev.segue.content.partial";
    case SGI_ENTRY_FIELDS:
        return "dev.segue.fields";
    case SGI_ENTRY_REPLACE:
        return "dev.segue.replace";
    default:
        return "dev.segue.status";
    }
}

static void write_segment(const sgi_op *op, sgi_buf *out, const sgi_entry *entry)
{
    sgi_str block;
    uint64_t place;
    bool placed = sgi_entry_read_indexed_block(entry, &block, &place) &&
                  !sgi_op_keeps_segments_apart(op);
    sgi_buf_add_lit(out, "{\"content\":[");
    sgi_buf_add_str(out, block);
    sgi_buf_add_lit(out, "],\"segment\":");
    sgi_buf_add_uint(out, entry->segment);
    if (placed) {
        sgi_buf_add_lit(out, ",\"index\":");
        sgi_buf_add_uint(out, place);
    }
    sgi_buf_add_char(out, '}');
}

/* Writes one event. The text is written without sgi_jw, for speed, because a streaming
 * server spends much of its time in this function. */
static void write_event(sgi_event_stream *stream, sgi_buf *out, const sgi_entry *entry)
{
    const char *type = event_type(entry->kind);
    sgi_buf_add_str(out, sgi_buf_str(&stream->head));
    sgi_buf_add_uint(out, entry->event - 1);
    sgi_buf_add_lit(out, ",\"type\":\"");
    sgi_buf_add(out, type, strlen(type));
    sgi_buf_add_lit(out, "\",\"payload\":");
    size_t payload = out->len;
    if (entry->kind == SGI_ENTRY_SEGMENT) {
        write_segment(stream->reader.op, out, entry);
    } else {
        sgi_buf_add(out, entry->data, entry->len);
    }
    sgi_frame_blank_line_ends(out, payload);
    sgi_buf_add_str(out, sgi_buf_str(&stream->tail));
}

static bool prepare_envelope(sgi_event_stream *stream, const char *task_id)
{
    sgi_buf *head = &stream->head;
    sgi_buf *tail = &stream->tail;
    sgi_buf_add_str(head, sgi_frame_head(stream->conn));
    sgi_buf_add_lit(head, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/event\","
                          "\"params\":{\"taskId\":\"");
    sgi_buf_add(head, task_id, strlen(task_id));
    sgi_buf_add_lit(head, "\",\"seq\":");
    sgi_buf_add_lit(tail, ",\"_meta\":{\"io.modelcontextprotocol/related-task\":"
                          "{\"taskId\":\"");
    sgi_buf_add(tail, task_id, strlen(task_id));
    sgi_buf_add_lit(tail, "\"}}}}");
    sgi_buf_add_str(tail, sgi_frame_tail(stream->conn));
    return !head->failed && !tail->failed;
}

/* Ends the stream with the outcome of the task. A client that has received all events
 * then needs no tasks/get. */
static void send_end(sgi_event_stream *stream)
{
    const sgi_op *op = stream->reader.op;
    sgi_sending sending;
    if (!sgi_reply_begin_result(&sending, stream->reply, "complete"))
        return;
    sgi_jw_key(&sending.w, "_meta");
    sgi_jw_open(&sending.w, '{');
    sgi_jw_key(&sending.w, "dev.segue/final");
    sgi_jw_open(&sending.w, '{');
    sgi_jw_member_string(&sending.w, "status",
                         sgi_str_of(sgi_task_state_name(sgi_op_state(op))));
    sgi_jw_key(&sending.w, "isError");
    sgi_jw_bool(&sending.w, op->head.final == SGI_FINAL_RESULT_IS_ERROR);
    sgi_jw_close(&sending.w, '}');
    sgi_buf_add_char(sending.w.buf, ',');
    sgi_buf_add_str(sending.w.buf, sgi_buf_str(&sgi_op_server(op)->info));
    sgi_jw_close(&sending.w, '}');
    sgi_send_end(&sending);
}

static void send_failure(sgi_event_stream *stream, segue_status status)
{
    sgi_reply_store_error(stream->reply, SGI_UNREADABLE, status);
}

/* Reports to the client that the server no longer has the events between the client's
 * cursor and this event (R-E-3). */
static void send_gone(sgi_event_stream *stream, uint64_t event)
{
    char data[160];
    snprintf(data, sizeof data,
             "{\"reason\":\"events_gone\",\"taskId\":\"%s\",\"earliestSeq\":%llu}",
             stream->reader.op->task_id, (unsigned long long)event - 1);
    sgi_reply_error(stream->reply, SGI_RPC_INTERNAL_ERROR,
                    SGI_STR("Task events are no longer available"), sgi_str_of(data));
}

typedef enum step { STEP_WAIT, STEP_SENT, STEP_END } step;

static step send_next(sgi_event_stream *stream)
{
    sgi_buf *out = &stream->conn->out;
    size_t before = out->len;
    uint64_t earliest = sgi_op_earliest_event(stream->reader.op);
    if (stream->expect && stream->expect < earliest) {
        send_gone(stream, earliest);
        return STEP_END;
    }
    const sgi_entry *entry = sgi_reader_next(&stream->reader);
    if (!entry) {
        if (sgi_reader_at_end(&stream->reader))
            send_end(stream);
        else if (stream->reader.failure)
            send_failure(stream, stream->reader.failure);
        else
            return STEP_WAIT;
        return STEP_END;
    }
    if (entry->event && stream->expect && entry->event > stream->expect) {
        send_gone(stream, entry->event);
        return STEP_END;
    }
    if (entry->event && entry->event >= stream->expect && entry->event >= earliest) {
        write_event(stream, out, entry);
        if (out->failed) {
            /* out of memory: the stream ends before this event, and the client can
             * continue at its cursor */
            sgi_buf_truncate(out, before);
            send_failure(stream, SEGUE_E_NOMEM);
            return STEP_END;
        }
        stream->expect = entry->event + 1;
    }
    sgi_reader_advance(&stream->reader);
    return STEP_SENT;
}

static bool fill(sgi_output_source *source, size_t room)
{
    sgi_event_stream *stream = SGI_OWNER(source, sgi_event_stream, source);
    size_t mark = stream->conn->out.len;
    step done = STEP_SENT;
    while (done == STEP_SENT && stream->conn->out.len - mark < room)
        done = send_next(stream);
    if (done == STEP_END)
        end_stream(stream);
    return done == STEP_SENT;
}

static void more_to_read(sgi_reader *reader)
{
    sgi_event_stream *stream = SGI_OWNER(reader, sgi_event_stream, reader);
    sgi_output_source_queue(stream->conn, &stream->source);
}

static void withdrawn(sgi_reply *reply)
{
    /* the client has cancelled only the stream, and the task continues (R-E-5) */
    end_stream(reply->user);
}

/* ---- the method tasks/stream ---- */

typedef struct opening {
    sgi_reply *reply;
    uint64_t expect;
} opening;

static bool streams_already(const sgi_peer *peer, const sgi_op *op)
{
    const sgi_reader *reader;
    TAILQ_FOREACH(reader, &op->readers, link)
        if (reader->ready == more_to_read &&
            SGI_OWNER(reader, sgi_event_stream, reader)->reply->peer == peer)
            return true;
    return false;
}

static void begin_stream(sgi_reply *reply, sgi_op *op, uint64_t expect)
{
    const sgi_mem *mem = sgi_engine_mem(reply->engine);
    sgi_event_stream *stream = sgi_zalloc(mem, sizeof *stream);
    if (!stream) {
        sgi_reply_error(reply, SGI_RPC_INTERNAL_ERROR, SGI_STR("Out of memory"),
                        (sgi_json){0});
        sgi_reply_close(reply);
        return;
    }
    stream->reply = reply;
    stream->expect = expect;
    stream->source.fill = fill;
    stream->conn = reply->peer->conn;
    sgi_conn_ref(stream->conn);
    sgi_send_open_event_stream(stream->conn);
    sgi_buf_init(&stream->head, mem);
    sgi_buf_init(&stream->tail, mem);
    /* event n has the position n + 1 in the log or a later one, so reading begins
     * there */
    sgi_reader_init(&stream->reader, op, expect ? expect - 1 : 0, more_to_read);
    stream->reader.tells = true;
    if (!prepare_envelope(stream, op->task_id)) {
        send_failure(stream, SEGUE_E_NOMEM);
        end_stream(stream);
        return;
    }
    if (expect > 0)
        sgi_call_event_report_resumed(op);
    reply->user = stream;
    reply->cancelled = withdrawn;
    more_to_read(&stream->reader);
}

static void stream_found(void *user, sgi_op *op, segue_status status)
{
    opening *open = user;
    sgi_reply *reply = open->reply;
    uint64_t expect = open->expect;
    sgi_free(sgi_engine_mem(reply->engine), open, sizeof *open);
    op = sgi_task_check_found(reply, op, status, &sgi_srv_tasks_ext);
    if (op && !streams_already(reply->peer, op)) {
        begin_stream(reply, op, expect);
        return;
    }
    if (op)
        sgi_reply_error(reply, SGI_RPC_INVALID_PARAMS,
                        SGI_STR("This connection already has a stream of this task"),
                        (sgi_json){0});
    sgi_reply_close(reply);
}

static void tasks_stream(const sgi_inbound *in)
{
    sgi_str id;
    int64_t after = -1;
    sgi_json cursor = sgi_json_get(in->params, "after");
    if (!sgi_task_read_id(in, &id))
        return;
    if (cursor.n && (!sgi_json_read_int(cursor, &after) || after < 0)) {
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS,
                         "params.after is not a non-negative integer", NULL);
        return;
    }
    sgi_reply *reply = sgi_reply_open(in, true);
    if (!reply)
        return;
    opening *open = sgi_alloc(sgi_engine_mem(reply->engine), sizeof *open);
    if (!open) {
        sgi_reply_error(reply, SGI_RPC_INTERNAL_ERROR, SGI_STR("Out of memory"),
                        (sgi_json){0});
        sgi_reply_close(reply);
        return;
    }
    /* `after` is the number of the last event that the client has. The next event has the
     * number after + 1, and `expect` is 1 + this number. */
    *open = (opening){reply, cursor.n ? (uint64_t)after + 2 : 0};
    sgi_server_find_task(in->peer->server, in->peer->who, id, stream_found, open);
}

static bool serves(const sgi_peer *peer, sgi_version version)
{
    return sgi_facts(version)->has_extensions && peer->server->dialects & SGI_DIALECT_E;
}

static const sgi_method methods[] = {
    {"tasks/stream", SGI_CAP_TASKS, tasks_stream},
    {NULL, 0, NULL},
};

/* The draft announces streams by {"eventStreams":{}} inside the tasks extension. But the
 * published extension is an empty object. A client that checks this does not use tasks
 * when the object has members. So this server announces streams in a separate member
 * (R-E-6). */
const sgi_srv_dialect sgi_srv_task_events = {
    .name = "E",
    .bit = SGI_DIALECT_E,
    .methods = methods,
    .serves = serves,
    .extension = "dev.segue/eventStreams",
};
