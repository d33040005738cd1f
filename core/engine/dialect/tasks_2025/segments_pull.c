/* Streaming of tasks (S, SEP-1905) by pull: the client asks for segments by tasks/result
 * with lastSeqNr. The answer never waits for the task (R-1905-30). One response contains
 * the segments that are visible at this moment. Segments that are not in memory are read
 * from the store. */
#include "engine/dialect/tasks_2025/tasks_2025.h"

#include "base/thresholds.h"
#include <stdio.h>

/* The largest number of bytes of segments in one response. The client requests the
 * remaining segments by another tasks/result. */
#define FETCH_BYTES SGI_THRESHOLD(fetch_bytes)

typedef struct sgi_pull {
    sgi_reader reader;
    sgi_reply *reply;
    uint64_t next; /* number of the next segment to send */
    sgi_buf segments;
    sgi_fold fields;
    uint64_t voided; /* segments up to this number are void */
    bool full;
    /* true when the end of the task is visible, so that the answer can be the last one */
    bool whole;
    /* true while segments are read; prevents that a chunk which arrives at once starts a
     * second reading */
    bool running;
} sgi_pull;

static void end_fetch(sgi_pull *fetch)
{
    sgi_reply *reply = fetch->reply;
    const sgi_mem *mem = sgi_engine_mem(reply->engine);
    sgi_reader_end(&fetch->reader);
    sgi_buf_free(&fetch->segments);
    sgi_fold_free(&fetch->fields);
    sgi_reply_close(reply);
    sgi_free(mem, fetch, sizeof *fetch);
}

static void withdrawn(sgi_reply *reply)
{
    end_fetch(reply->user);
}

/* ---- the answer ---- */

static void answer_gone(sgi_pull *fetch, uint64_t earliest)
{
    char data[80];
    snprintf(data, sizeof data, "{\"reason\":\"segments_gone\",\"earliestSeqNr\":%llu}",
             (unsigned long long)earliest);
    sgi_reply_error(fetch->reply, SGI_RPC_INTERNAL_ERROR,
                    SGI_STR("Segments are no longer available"), sgi_str_of(data));
}

static void add(sgi_pull *fetch, uint64_t number, sgi_str block)
{
    if (fetch->segments.len)
        sgi_buf_add_char(&fetch->segments, ',');
    sgi_segment_write(&fetch->segments, number, block);
}

static void add_error(sgi_pull *fetch)
{
    const sgi_op *op = fetch->reader.op;
    sgi_buf block;
    if (op->head.final != SGI_FINAL_ERROR || op->head.next_seg < fetch->next)
        return;
    sgi_buf_init(&block, sgi_engine_mem(op->engine));
    sgi_segment_write_error(&block, op);
    if (!block.failed)
        add(fetch, op->head.next_seg, sgi_buf_str(&block));
    fetch->segments.failed |= block.failed;
    sgi_buf_free(&block);
}

static void write_meta(const sgi_pull *fetch, sgi_sending *sending, bool complete)
{
    const sgi_op *op = fetch->reader.op;
    sgi_buf meta;
    sgi_buf_init(&meta, sgi_engine_mem(op->engine));
    sgi_task_related_meta(&meta, op);
    if (fetch->voided) {
        sgi_buf_add_lit(&meta, ",\"dev.segue/replace\":");
        sgi_buf_add_uint(&meta, fetch->voided);
    }
    if (complete) {
        sgi_segments_write_error_meta(&meta, op);
        sgi_fold_write_fields(&fetch->fields, &sending->w, sgi_buf_str(&meta));
    } else {
        sgi_jw_key(&sending->w, "_meta");
        sgi_jw_open(&sending->w, '{');
        sgi_buf_add_str(sending->w.buf, sgi_buf_str(&meta));
        sgi_jw_close(&sending->w, '}');
    }
    sending->w.buf->failed |= meta.failed;
    sgi_buf_free(&meta);
}

static void answer(sgi_pull *fetch)
{
    sgi_sending sending;
    bool complete = fetch->whole && !fetch->full && sgi_reader_at_end(&fetch->reader);
    if (complete)
        add_error(fetch);
    if (fetch->segments.failed || sgi_fold_failed(&fetch->fields)) {
        sgi_reply_error(fetch->reply, SGI_RPC_INTERNAL_ERROR, SGI_STR("Out of memory"),
                        (sgi_json){0});
        return;
    }
    if (!sgi_reply_begin_result(&sending, fetch->reply, NULL))
        return;
    sgi_jw_key(&sending.w, "partial-content");
    sgi_jw_open(&sending.w, '[');
    sgi_buf_add_str(sending.w.buf, sgi_buf_str(&fetch->segments));
    sgi_jw_close(&sending.w, ']');
    write_meta(fetch, &sending, complete);
    sgi_jw_key(&sending.w, "isError");
    sgi_jw_bool(&sending.w, complete && sgi_segments_end_in_error(fetch->reader.op));
    sgi_jw_key(&sending.w, "isComplete");
    sgi_jw_bool(&sending.w, complete);
    sgi_send_end(&sending);
}

/* ---- reading the segments ---- */

/* Adds a segment to the answer. Returns false when the store no longer has the segment
 * that the client asked for. The answer then says so. */
static bool take_segment(sgi_pull *fetch, const sgi_entry *entry)
{
    if (entry->segment < fetch->next)
        return true;
    if (entry->segment > fetch->next) {
        answer_gone(fetch, entry->segment);
        return false;
    }
    sgi_str block;
    /* the index is not sent, because SEP-1905 has no member for an index
     * (sgi_op_keeps_segments_apart) */
    uint64_t place;
    sgi_entry_read_indexed_block(entry, &block, &place);
    add(fetch, entry->segment, block);
    fetch->next++;
    return true;
}

static bool take(sgi_pull *fetch, const sgi_entry *entry)
{
    if (entry->kind == SGI_ENTRY_SEGMENT)
        return take_segment(fetch, entry);
    if (entry->kind == SGI_ENTRY_FIELDS) {
        sgi_fold_add_fields(&fetch->fields, (sgi_str){entry->data, entry->len});
    } else if (entry->kind == SGI_ENTRY_REPLACE) {
        sgi_fold_drop_replaced(&fetch->fields, entry->segment);
        fetch->voided = entry->segment;
    }
    return true;
}

static void read_more(sgi_reader *reader)
{
    sgi_pull *fetch = SGI_OWNER(reader, sgi_pull, reader);
    const sgi_entry *entry;
    bool there = true;
    if (fetch->running)
        return;
    fetch->running = true;
    while (there && !fetch->full && (entry = sgi_reader_next(reader))) {
        there = take(fetch, entry);
        if (there)
            sgi_reader_advance(reader);
        fetch->full = fetch->segments.len >= FETCH_BYTES;
    }
    fetch->running = false;
    if (there && !fetch->full && reader->job)
        /* a chunk is being read from the store, and its arrival calls this function
         * again */
        return;
    if (there && reader->failure)
        sgi_task_answer_unreadable(fetch->reply, reader->failure);
    else if (there)
        answer(fetch);
    end_fetch(fetch);
}

void sgi_segments_answer_pull(sgi_reply *reply, sgi_op *op, uint64_t after)
{
    const sgi_mem *mem = sgi_engine_mem(reply->engine);
    uint64_t newest = op->head.next_log - 1;
    if (sgi_answer_if_rate_limited(reply))
        return;
    sgi_pull *fetch = sgi_zalloc(mem, sizeof *fetch);
    if (!fetch) {
        sgi_reply_error(reply, SGI_RPC_INTERNAL_ERROR, SGI_STR("Out of memory"),
                        (sgi_json){0});
        sgi_reply_close(reply);
        return;
    }
    sgi_op_server(op)->counts.repaired++;
    fetch->reply = reply;
    fetch->next = after + 1;
    fetch->whole = sgi_segments_are_complete(op);
    sgi_buf_init(&fetch->segments, mem);
    sgi_fold_init(&fetch->fields, &op->engine->env);
    fetch->fields.only_objects = op->served->only_objects;
    reply->user = fetch;
    reply->cancelled = withdrawn;
    /* Segment n has the position n in the log or a later one, so reading can begin there.
     * The last response also needs the fields, which may have an earlier position. */
    uint64_t from = after < newest ? after : newest;
    if (fetch->whole && op->head.result->first_fields &&
        op->head.result->first_fields <= from)
        from = op->head.result->first_fields - 1;
    sgi_reader_init(&fetch->reader, op, from, read_more);
    fetch->reader.tells = true;
    read_more(&fetch->reader);
}
