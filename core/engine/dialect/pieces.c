#include "engine/dialect/pieces.h"

#include "engine/log/dropping.h"
#include "engine/serving/batch.h"
#include "engine/serving/call.h"
#include "engine/serving/resumable.h"
#include "engine/serving/tool_call.h"

static void more_to_read(sgi_reader *reader);
static void turned(sgi_reply *reply, sgi_op *op);
static void withdrawn(sgi_reply *reply);

static void leave(sgi_reply *reply, sgi_pieces *pieces)
{
    sgi_op *op = pieces->cursor.reader.op;
    if (!op)
        return;
    if (reply->turned == turned)
        reply->turned = NULL;
    if (reply->cancelled == withdrawn)
        reply->cancelled = NULL;
    pieces->open = false;
    sgi_op_ref(op);
    sgi_source_remove(pieces->conn, &pieces->source);
    sgi_gather_end(&pieces->gather);
    sgi_cursor_end(&pieces->cursor);
    op->passes = false;
    if (op->call)
        sgi_call_progressed(op->call); /* nobody holds it up any more */
    sgi_op_unref(op);
}

void sgi_pieces_leave(sgi_reply *reply)
{
    if (reply->pieces)
        leave(reply, reply->pieces);
}

void sgi_pieces_drop(sgi_reply *reply)
{
    sgi_pieces *pieces = reply->pieces;
    const sgi_mem *mem = sgi_engine_mem(reply->engine);
    if (!pieces)
        return;
    reply->pieces = NULL;
    reply->parked = NULL;
    leave(reply, pieces);
    sgi_conn_unref(pieces->conn);
    sgi_buf_free(&pieces->head);
    sgi_release(mem, pieces, sizeof *pieces);
}

/* ---- the end ---- */

/* As if there had been no pieces. */
static void answer(sgi_pieces *pieces)
{
    sgi_reply *reply = pieces->reply;
    sgi_op *op = pieces->cursor.reader.op;
    sgi_op_ref(op);
    if (pieces->resumes)
        sgi_channel_withdraw(pieces);
    sgi_pieces_drop(reply);
    sgi_call_answer(reply, op);
    sgi_op_unref(op);
}

static void close_reply(sgi_pieces *pieces)
{
    sgi_reply *reply = pieces->reply;
    sgi_pieces_drop(reply);
    sgi_reply_close(reply);
}

/* Only a result can lack what was sent before. */
static void finish(sgi_pieces *pieces)
{
    const sgi_op *op = pieces->cursor.reader.op;
    bool is_result =
        op->final == SGI_FINAL_RESULT || op->final == SGI_FINAL_RESULT_IS_ERROR;
    if (!pieces->begun || !pieces->form || !pieces->form->finish || !is_result) {
        answer(pieces);
        return;
    }
    if (pieces->resumes)
        sgi_channel_withdraw(pieces);
    pieces->form->finish(pieces);
    close_reply(pieces);
}

static void fail(sgi_pieces *pieces)
{
    sgi_reply *reply = pieces->reply;
    bool ended = pieces->ended;
    sgi_engine_log(reply->engine, SEGUE_LOG_ERROR, "pieces: the log cannot be read back");
    if (ended) {
        answer(pieces); /* it says the same */
        return;
    }
    if (pieces->resumes) /* nothing else tells what is told on a channel */
        sgi_conn_close(pieces->conn);
    sgi_pieces_drop(reply);
}

/* ---- sending ---- */

/* False: nothing more is there now, or the pieces are gone. */
static bool send_piece(sgi_pieces *pieces)
{
    sgi_op *op = pieces->cursor.reader.op;
    switch (pieces->form->send(pieces)) { /* without a form nothing is shown */
    case SGI_PIECES_SENT:
        pieces->begun = true;
        if (pieces->form->gathers && !pieces->resumes && !pieces->broken)
            sgi_gather_sent(&pieces->gather);
        sgi_op_pass(op, pieces->cursor.reader.seq);
        if (op->passes && op->call)
            sgi_call_progressed(op->call);
        return true;
    case SGI_PIECES_LAST:
        close_reply(pieces);
        return false;
    case SGI_PIECES_LOST:
        pieces->open = false; /* the conversation closes: its loss ends the call */
        return false;
    default:
        if (pieces->ended)
            answer(pieces);
        else
            sgi_pieces_drop(pieces->reply);
        return false;
    }
}

static bool send_next(sgi_pieces *pieces)
{
    if (!pieces->ended && sgi_gather_waits(&pieces->gather, &pieces->cursor.reader))
        return false;
    if (sgi_cursor_next(&pieces->cursor, true))
        return send_piece(pieces);
    if (pieces->cursor.reader.failed)
        fail(pieces);
    else if (pieces->ended && sgi_cursor_at_end(&pieces->cursor))
        finish(pieces);
    return false;
}

static bool fill(sgi_source *source, size_t room)
{
    sgi_pieces *pieces = SGI_OWNER(source, sgi_pieces, source);
    sgi_conn *conn = pieces->conn;
    size_t mark = conn->out.len;
    sgi_conn_ref(conn);
    bool more = true;
    while (more && conn->out.len - mark < room)
        more = send_next(pieces);
    sgi_conn_unref(conn);
    return more;
}

/* Over HTTP nothing is asked for before it is decided what the answer is: so the first
 * piece is not left to the source, and none is sent before the handler's first turn is
 * over. Perhaps all is there then, and one message says it. */
static void more_to_read(sgi_reader *reader)
{
    sgi_pieces *pieces = SGI_OWNER(reader, sgi_pieces, cursor.reader);
    sgi_conn *conn = pieces->conn;
    if (!pieces->open)
        return;
    if (conn->frames != SGI_FRAMES_OPEN ||
        (sgi_conn_transport(conn) && send_next(pieces)))
        sgi_source_ready(conn, &pieces->source); /* also of one who may come back */
}

void sgi_pieces_wake(sgi_reply *reply)
{
    if (reply->pieces)
        more_to_read(&reply->pieces->cursor.reader);
}

static void turned(sgi_reply *reply, sgi_op *op)
{
    (void)op;
    reply->turned = NULL;
    reply->pieces->open = true;
    more_to_read(&reply->pieces->cursor.reader);
}

/* An exchange that was left before it had an event to name: nobody can come back to it,
 * and nothing is to wait for that. */
static bool is_deserted(const sgi_pieces *pieces)
{
    return !sgi_conn_transport(pieces->conn) && pieces->conn->frames == SGI_FRAMES_OPEN;
}

static void parked(sgi_reply *reply)
{
    sgi_pieces *pieces = reply->pieces;
    if (!pieces->cursor.reader.op)
        return;
    if (!is_deserted(pieces) || pieces->resumes)
        sgi_reader_rest(&pieces->cursor.reader);
    else if (pieces->ended)
        answer(pieces);
    else
        sgi_pieces_drop(reply);
}

/* ---- beginning and ending ---- */

void sgi_pieces_mark(const sgi_pieces *pieces, uint64_t seq)
{
    sgi_resumable_mark(pieces->reply, seq);
}

static bool takes_pieces(const sgi_reply *reply)
{
    const sgi_conn *conn = reply->peer->conn;
    return !conn->no_events && !sgi_batch_of(conn, sgi_str_of(reply->id));
}

static bool write_head(sgi_pieces *pieces, sgi_json token)
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

/* NULL when out of memory. */
static sgi_pieces *make(sgi_reply *reply, const sgi_pieces_form *form)
{
    const sgi_mem *mem = sgi_engine_mem(reply->engine);
    sgi_pieces *pieces = sgi_zalloc(mem, sizeof *pieces);
    if (!pieces)
        return NULL;
    pieces->form = form;
    pieces->reply = reply;
    pieces->source.fill = fill;
    pieces->conn = reply->peer->conn;
    sgi_conn_ref(pieces->conn);
    sgi_gather_init(&pieces->gather, pieces->conn, &pieces->source);
    sgi_buf_init(&pieces->head, mem);
    reply->pieces = pieces;
    reply->parked = parked;
    return pieces;
}

static void look_at(sgi_pieces *pieces, sgi_op *op)
{
    sgi_cursor_init(&pieces->cursor, op, more_to_read);
    pieces->cursor.reader.conn = pieces->conn;
}

void sgi_pieces_want(sgi_reply *reply, const sgi_call_request *request)
{
    reply->tells_void = request->pieces != NULL;
    if (!request->pieces || !takes_pieces(reply))
        return;
    sgi_pieces *pieces = make(reply, request->pieces);
    if (pieces && !write_head(pieces, request->token))
        sgi_pieces_drop(reply);
}

void sgi_pieces_of(sgi_reply *reply, sgi_op *op, bool again)
{
    sgi_pieces *pieces = reply->pieces;
    if (!pieces)
        return;
    if (!reply->peer || !sgi_op_is_whole(op) || is_deserted(pieces)) {
        sgi_pieces_drop(reply);
        return;
    }
    look_at(pieces, op);
    pieces->again = again;
    op->passes = pieces->form->passes && !op->logged && !(op->caps & SGI_CAP_TASKS);
    if (!again && op->call && !op->call->turned)
        reply->turned = turned;
    else
        turned(reply, op);
}

void sgi_pieces_resume(sgi_reply *reply, sgi_op *op, const uint64_t *has)
{
    const sgi_resumable *r = op->resumable;
    sgi_pieces_drop(reply);
    sgi_pieces *pieces = make(reply, r->partial ? &sgi_pieces_partial : NULL);
    if (!pieces) {
        sgi_engine_log(op->engine, SEGUE_LOG_ERROR, "out of memory for a channel");
        sgi_conn_close(reply->peer->conn);
        return;
    }
    look_at(pieces, op);
    reply->tells_void = r->partial;
    pieces->resumes = pieces->open = true;
    pieces->cursor.from = r->confirmed;
    pieces->cursor.mute = !r->partial;
    pieces->cursor.other = sgi_channel_send;
    if (has) {
        pieces->cursor.counts = true;
        pieces->cursor.has = *has;
    }
    /* else the answer is whole, as if there had been no pieces */
    pieces->begun =
        r->partial && (has ? *has > 0 || !sgi_op_is_whole(op) : r->confirmed > 0);
    more_to_read(&pieces->cursor.reader);
}

static void withdrawn(sgi_reply *reply)
{
    close_reply(reply->pieces);
}

void sgi_pieces_end(sgi_reply *reply)
{
    sgi_pieces *pieces = reply->pieces;
    pieces->ended = true;
    reply->cancelled = withdrawn;
    if (!reply->peer)
        close_reply(pieces);
    else if (!pieces->begun && !pieces->resumes)
        answer(pieces); /* one message says it */
    else
        more_to_read(&pieces->cursor.reader);
}
