/* Partial results (P) on the server: several responses to one request (PR 776), for a
 * client that has sent allowPartial and speaks a version that begins with `initialize`.
 * Each response except the last has _meta.hasMore. The contents of all responses are
 * concatenated (R-776-7). mergeStrategy can say that a response replaces earlier content
 * (R-776-11). _meta.index is the index of a response's blocks in the final list
 * (R-776-10). */
#include "engine/dialect/rows.h"
#include "engine/server/pieces.h"

/* The segments that one response contains: a run of consecutive segments. */
typedef struct run {
    uint64_t first; /* number of the first segment */
    /* index of the first segment in the list of blocks; the following segments have the
     * next indexes */
    uint64_t place;
    int32_t count;
} run;

/* True when the client may get a piece twice. The client recognizes a repeated piece by
 * its number (C-9). */
static bool may_come_again(const sgi_reply *reply, const sgi_op *op)
{
    return sgi_facts(reply->peer->handshake->version)->has_rounds ||
           reply->peer->session || op->key || op->served->lasting;
}

/* Writes the members of _meta that describe this response. */
static void write_flags(sgi_pieces *pieces, sgi_buf *meta, const run *r, bool last)
{
    const sgi_op *op = pieces->cursor.reader.op;
    bool replaces = pieces->cursor.voided || (pieces->again && !pieces->begun);
    sgi_jw w = sgi_jw_to(meta);
    pieces->cursor.voided = 0;
    if (!last) {
        sgi_jw_key(&w, "hasMore");
        sgi_jw_bool(&w, true);
    }
    if (replaces)
        sgi_jw_member_string(&w, "mergeStrategy", SGI_STR("replace"));
    if (r->count && sgi_op_server(op)->dialects & SGI_DIALECT_PARTIAL_INDEX)
        sgi_jw_member_int(&w, "index", (int64_t)r->place);
    if (r->count && may_come_again(pieces->reply, op))
        sgi_jw_member_int(&w, "dev.segue/seq", (int64_t)r->first);
}

static void write_meta(sgi_pieces *pieces, sgi_jw *w, const run *r, bool last)
{
    sgi_buf meta;
    sgi_buf_init(&meta, sgi_engine_mem(pieces->reply->engine));
    write_flags(pieces, &meta, r, last);
    if (last) {
        sgi_fold_write_fields(&pieces->cursor.fields, w, sgi_buf_str(&meta));
    } else {
        sgi_jw_key(w, "_meta");
        sgi_jw_open(w, '{');
        sgi_buf_add_str(w->buf, sgi_buf_str(&meta));
        sgi_jw_close(w, '}');
    }
    w->buf->failed |= meta.failed;
    sgi_buf_free(&meta);
}

/* Checks whether the segment belongs into the response of this run, and begins the run if
 * it is empty. Returns false when the index of the segment does not follow the last one.
 * The segment then needs another response. */
static bool follows(run *r, const sgi_entry *entry, uint64_t place)
{
    if (!r->count)
        *r = (run){.first = entry->segment, .place = place};
    return place == r->place + (uint64_t)r->count;
}

/* Writes as many segments as fit into one response. Returns which segments were
 * written. */
static run write_segments(sgi_pieces *pieces, sgi_buf *out)
{
    const sgi_entry *entry;
    sgi_str block;
    uint64_t place;
    size_t mark = out->len;
    run r = {0};
    pieces->broken = false;
    while (r.count < SGI_GATHER_SEGMENTS && out->len - mark < SGI_GATHER_BYTES &&
           (entry = sgi_segment_reader_next(&pieces->cursor, !r.count))) {
        sgi_segment_reader_read_indexed_block(&pieces->cursor, entry, &block, &place);
        pieces->broken = !follows(&r, entry, place);
        if (pieces->broken)
            break;
        if (r.count++)
            sgi_buf_add_char(out, ',');
        sgi_buf_add_str(out, block);
        sgi_segment_reader_advance(&pieces->cursor);
    }
    return r;
}

static bool is_result(const sgi_op *op)
{
    return op->head.final == SGI_FINAL_RESULT ||
           op->head.final == SGI_FINAL_RESULT_IS_ERROR;
}

static sgi_pieces_outcome send_piece(sgi_pieces *pieces)
{
    const sgi_op *op = pieces->cursor.reader.op;
    uint64_t before = pieces->cursor.reader.seq;
    sgi_sending sending;
    sgi_jw *w = &sending.w;
    sgi_send_begin_response(&sending, pieces->conn, sgi_str_of(pieces->reply->id), false);
    sgi_jw_key(w, op->served->kind->list);
    sgi_jw_open(w, '[');
    run r = write_segments(pieces, w->buf);
    sgi_jw_close(w, ']');
    bool last =
        pieces->ended && sgi_segment_reader_at_end(&pieces->cursor) && is_result(op);
    if (last && op->head.final == SGI_FINAL_RESULT_IS_ERROR) {
        sgi_jw_key(w, "isError");
        sgi_jw_bool(w, true);
    }
    write_meta(pieces, w, &r, last);
    sending.last = last;
    sgi_pieces_note_position(pieces, pieces->cursor.reader.seq);
    if (!sgi_send_end(&sending)) {
        /* the response was not sent: the old position makes the server send these
         * segments again when the client asks again */
        sgi_pieces_note_position(pieces, before);
        return SGI_PIECES_LOST;
    }
    return last ? SGI_PIECES_LAST : SGI_PIECES_SENT;
}

/* Ends the answer after the last content was sent: sends an empty response without
 * hasMore (R-776-4). */
static void finish(sgi_pieces *pieces)
{
    send_piece(pieces);
}

static const sgi_pieces_ops form = {
    .send = send_piece,
    .finish = finish,
    .frees_consumed = true,
    .is_for_lists = true,
    .gathers = true,
    .lasts = true,
};

/* Returns SGI_SAYS_ALLOW_PARTIAL if the client has sent allowPartial with this call,
 * otherwise 0 (R-776-1). */
static uint32_t says(const sgi_inbound *in, sgi_call_request *request)
{
    sgi_json_kind partial = sgi_json_kind_of(in->partial);
    (void)request;
    if (in->partial.n && partial != SGI_JSON_TRUE && partial != SGI_JSON_FALSE)
        in->peer->server->engine->warnings++;
    return partial == SGI_JSON_TRUE ? SGI_SAYS_ALLOW_PARTIAL : 0;
}

static bool takes(const sgi_inbound *in, const sgi_call_request *request)
{
    (void)in;
    return request->kind->list != NULL;
}

/* True when the dialect sends no index. It then cannot say that a text continues a
 * block. */
static bool keeps_segments_apart(const segue_server *server)
{
    return !(server->dialects & SGI_DIALECT_PARTIAL_INDEX);
}

const sgi_srv_dialect sgi_srv_partial = {
    .name = "P",
    .bit = SGI_DIALECT_P,
    .says = says,
    .takes = takes,
    .keeps_segments_apart = keeps_segments_apart,
    .pieces = &form,
};
