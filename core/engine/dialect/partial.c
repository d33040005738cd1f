/* P: several responses to one request (PR 776), to a client of the handshake eras that
 * said allowPartial. All but the last have _meta.hasMore. What they hold is concatenated
 * (R-776-7); what was replaced is said by mergeStrategy (R-776-11), and _meta.index tells
 * where in the final list the blocks of a response stand (R-776-10). */
#include "engine/dialect/pieces.h"

/* The segments of a piece. */
typedef struct run {
    uint64_t first; /* number of the first one; 0 = there is none, */
    uint64_t place; /* ... and where it stands: the others follow it there */
    int32_t count;
} run;

/* What a piece says of itself. */
static void write_flags(sgi_pieces *pieces, sgi_buf *meta, const run *r, bool last)
{
    const sgi_op *op = pieces->cursor.reader.op;
    bool replaces = pieces->cursor.voided || (pieces->again && !pieces->begun);
    sgi_jw w = sgi_jw_on(meta);
    pieces->cursor.voided = 0;
    if (!last) {
        sgi_jw_key(&w, "hasMore");
        sgi_jw_bool(&w, true);
    }
    if (replaces)
        sgi_jw_member_string(&w, "mergeStrategy", SGI_STR("replace"));
    if (r->count && op->server->dialects & SGI_DIALECT_PARTIAL_INDEX)
        sgi_jw_member_int(&w, "index", (int64_t)r->place);
    /* where the same piece may come twice, its number tells (C-9) */
    if (r->count && (pieces->reply->peer->session || op->key || op->resumable))
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

/* False: it goes on in a block that stands elsewhere. */
static bool follows(run *r, const sgi_entry *entry, uint64_t place)
{
    if (!r->count)
        *r = (run){.first = entry->segment, .place = place};
    return place == r->place + (uint64_t)r->count;
}

/* Segments from the next one on, as many as a response takes. */
static run write_segments(sgi_pieces *pieces, sgi_buf *out)
{
    const sgi_entry *entry;
    sgi_str block;
    uint64_t place;
    size_t mark = out->len;
    run r = {0};
    pieces->broken = false;
    while (r.count < SGI_GATHER_SEGMENTS && out->len - mark < SGI_GATHER_BYTES &&
           (entry = sgi_cursor_next(&pieces->cursor, !r.count))) {
        sgi_cursor_placed(&pieces->cursor, entry, &block, &place);
        pieces->broken = !follows(&r, entry, place);
        if (pieces->broken)
            break;
        if (r.count++)
            sgi_buf_add_char(out, ',');
        sgi_buf_add_str(out, block);
        sgi_cursor_advance(&pieces->cursor);
    }
    return r;
}

static bool is_result(const sgi_op *op)
{
    return op->final == SGI_FINAL_RESULT || op->final == SGI_FINAL_RESULT_IS_ERROR;
}

static sgi_pieces_step send_piece(sgi_pieces *pieces)
{
    const sgi_op *op = pieces->cursor.reader.op;
    uint64_t before = pieces->cursor.reader.seq;
    sgi_sending sending;
    sgi_jw *w = &sending.w;
    sgi_send_response(&sending, pieces->conn, sgi_str_of(pieces->reply->id), false);
    sgi_jw_key(w, op->kind->list);
    sgi_jw_open(w, '[');
    run r = write_segments(pieces, w->buf);
    sgi_jw_close(w, ']');
    bool last = pieces->ended && sgi_cursor_at_end(&pieces->cursor) && is_result(op);
    if (last && op->final == SGI_FINAL_RESULT_IS_ERROR) {
        sgi_jw_key(w, "isError");
        sgi_jw_bool(w, true);
    }
    write_meta(pieces, w, &r, last);
    sending.last = last;
    sgi_pieces_mark(pieces, pieces->cursor.reader.seq);
    if (!sgi_send_end(&sending)) {
        sgi_pieces_mark(pieces, before); /* whoever comes again gets it */
        return SGI_PIECES_LOST;
    }
    return last ? SGI_PIECES_LAST : SGI_PIECES_SENT;
}

/* What came last was a piece: an empty response says that it was (R-776-4). */
static void finish(sgi_pieces *pieces)
{
    send_piece(pieces);
}

const sgi_pieces_form sgi_pieces_partial = {send_piece, finish, true, true};

const sgi_dialect sgi_dialect_partial = {.name = "P", .bit = SGI_DIALECT_P};
