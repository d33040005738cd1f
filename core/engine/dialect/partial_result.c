/* PN: notifications/tools/partial_result beside the request (SEP-2998), to a client of
 * 2026-07-28 that declared partialResults and gave a partialResultToken. One segment
 * each, numbered from 0, with the structuredContent that was set since the one before.
 * The last segment says that it is, where the call has ended before it is sent. The
 * result that follows is whole, and alone the truth (R-776-18). */
#include "engine/dialect/pieces.h"

static void write_structured(const sgi_pieces *pieces, sgi_buf *out)
{
    sgi_jw w = sgi_jw_on(out);
    w.comma = true;
    sgi_fold_write_field(&pieces->cursor.fields, &w, "structuredContent");
}

static void write_meta(sgi_buf *out, uint64_t voided, const uint64_t *place)
{
    sgi_jw w = sgi_jw_on(out);
    w.comma = true;
    sgi_jw_key(&w, "_meta");
    sgi_jw_open(&w, '{');
    if (voided)
        sgi_jw_member_int(&w, "dev.segue/replace", (int64_t)voided);
    if (place)
        sgi_jw_member_int(&w, "dev.segue/index", (int64_t)*place);
    sgi_jw_close(&w, '}');
}

/* Composed by hand: this is a hot path of a streaming server. */
static void write_piece(sgi_pieces *pieces, sgi_buf *out, const sgi_entry *entry)
{
    sgi_str block;
    uint64_t place;
    bool placed = sgi_cursor_placed(&pieces->cursor, entry, &block, &place);
    sgi_buf_add_str(out, sgi_frame_head(pieces->conn));
    sgi_buf_add_str(out, sgi_buf_str(&pieces->head));
    sgi_buf_add_uint(out, entry->segment - 1);
    sgi_buf_add_lit(out, ",\"content\":[");
    size_t payload = out->len;
    sgi_buf_add_str(out, block);
    sgi_buf_add_char(out, ']');
    if (pieces->cursor.structured)
        write_structured(pieces, out);
    sgi_frame_flatten(out, payload);
    if (pieces->ended && entry->segment + 1 == pieces->cursor.reader.op->next_seg)
        sgi_buf_add_lit(out, ",\"final\":true");
    if (pieces->cursor.voided || placed)
        write_meta(out, pieces->cursor.voided, placed ? &place : NULL);
    sgi_buf_add_lit(out, "}}");
    sgi_buf_add_str(out, sgi_frame_tail(pieces->conn));
}

static sgi_pieces_step send_piece(sgi_pieces *pieces)
{
    sgi_buf *out = &pieces->conn->out;
    if (!pieces->begun)
        sgi_send_open_events(pieces->conn);
    size_t before = out->len;
    write_piece(pieces, out, sgi_cursor_next(&pieces->cursor, true));
    if (out->failed) {
        sgi_buf_cut(out, before);
        return SGI_PIECES_STOP;
    }
    pieces->cursor.voided = 0;
    pieces->cursor.structured = false;
    sgi_cursor_advance(&pieces->cursor);
    return SGI_PIECES_SENT;
}

const sgi_pieces_form sgi_pieces_partial_result = {send_piece, NULL, false, false};

const sgi_dialect sgi_dialect_partial_result = {.name = "PN", .bit = SGI_DIALECT_PN};
