/* Partial results by notifications (PN) on the server: notifications/tools/partial_result
 * (SEP-2998), for a client of 2026-07-28 that declared partialResults and gave a
 * partialResultToken. Each notification has one segment, numbered from 0, and the
 * structuredContent that was set since the previous one. If the call has ended before the
 * last segment is sent, that segment is marked as the last. The result that follows is
 * complete, and only the result is authoritative (R-776-18). */
#include "engine/dialect/rows.h"
#include "engine/server/pieces.h"

static bool begin(sgi_pieces *pieces, sgi_json token)
{
    sgi_buf *head = &pieces->head;
    if (!token.n)
        return true;
    sgi_buf_add_lit(head, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/"
                          "partial_result\",\"params\":{\"partialResultToken\":");
    sgi_buf_add_str(head, token);
    sgi_buf_add_lit(head, ",\"seq\":");
    return !head->failed;
}

static void write_structured(const sgi_pieces *pieces, sgi_buf *out)
{
    sgi_jw w = sgi_jw_to(out);
    w.comma = true;
    sgi_fold_write_field(&pieces->cursor.fields, &w, "structuredContent");
}

static void write_meta(sgi_buf *out, uint64_t voided, const uint64_t *place)
{
    sgi_jw w = sgi_jw_to(out);
    w.comma = true;
    sgi_jw_key(&w, "_meta");
    sgi_jw_open(&w, '{');
    if (voided)
        sgi_jw_member_int(&w, "dev.segue/replace", (int64_t)voided);
    if (place)
        sgi_jw_member_int(&w, "dev.segue/index", (int64_t)*place);
    sgi_jw_close(&w, '}');
}

/* Writes the notification for one segment. The text is written without sgi_jw, for speed,
 * because a streaming server spends much of its time in this function. */
static void write_piece(sgi_pieces *pieces, sgi_buf *out, const sgi_entry *entry)
{
    sgi_str block;
    uint64_t place;
    bool placed =
        sgi_segment_reader_read_indexed_block(&pieces->cursor, entry, &block, &place);
    sgi_buf_add_str(out, sgi_frame_head(pieces->conn));
    sgi_buf_add_str(out, sgi_buf_str(&pieces->head));
    sgi_buf_add_uint(out, entry->segment - 1);
    sgi_buf_add_lit(out, ",\"content\":[");
    size_t payload = out->len;
    sgi_buf_add_str(out, block);
    sgi_buf_add_char(out, ']');
    if (pieces->cursor.structured)
        write_structured(pieces, out);
    sgi_frame_blank_line_ends(out, payload);
    if (pieces->ended && entry->segment + 1 == pieces->cursor.reader.op->head.next_seg)
        sgi_buf_add_lit(out, ",\"final\":true");
    if (pieces->cursor.voided || placed)
        write_meta(out, pieces->cursor.voided, placed ? &place : NULL);
    sgi_buf_add_lit(out, "}}");
    sgi_buf_add_str(out, sgi_frame_tail(pieces->conn));
}

static sgi_pieces_outcome send_piece(sgi_pieces *pieces)
{
    sgi_buf *out = &pieces->conn->out;
    if (!pieces->begun)
        sgi_send_open_event_stream(pieces->conn);
    size_t before = out->len;
    write_piece(pieces, out, sgi_segment_reader_next(&pieces->cursor, true));
    if (out->failed) {
        sgi_buf_truncate(out, before);
        return SGI_PIECES_STOP;
    }
    pieces->cursor.voided = 0;
    pieces->cursor.structured = false;
    sgi_segment_reader_advance(&pieces->cursor);
    return SGI_PIECES_SENT;
}

static const sgi_pieces_ops form = {.begin = begin, .send = send_piece};

static uint32_t says(const sgi_inbound *in, sgi_call_request *request)
{
    (void)request;
    return in->caps & SGI_CAP_PARTIAL && sgi_id_is_usable(in->token)
               ? SGI_SAYS_PARTIAL_RESULTS
               : 0;
}

/* True for tools/call. Only tools/call can have notifications/tools/partial_result. */
static bool takes(const sgi_inbound *in, const sgi_call_request *request)
{
    (void)in;
    return request->kind == &sgi_call_tool;
}

/* True when the client declares that it can get parts of the result of a call
 * (R-776-17). */
static bool hints(const sgi_inbound *in)
{
    return sgi_facts(in->version)->is_stateless && in->caps & SGI_CAP_PARTIAL &&
           in->peer->server->dialects & SGI_DIALECT_PN;
}

const sgi_srv_dialect sgi_srv_partial_result = {
    .name = "PN",
    .bit = SGI_DIALECT_PN,
    .hints = hints,
    .says = says,
    .takes = takes,
    .pieces = &form,
};
