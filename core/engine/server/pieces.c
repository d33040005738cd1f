#include "engine/server/pieces.h"

#include "engine/log/dropping.h"
#include "engine/conversation/batch.h"
#include "engine/log/refusal.h"
#include "engine/server/call.h"
#include "engine/server/lasting.h"
#include "engine/server/parked_exchange.h"
#include "engine/server/tool_call.h"

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
    sgi_output_source_remove(pieces->conn, &pieces->source);
    sgi_response_pacer_stop(&pieces->gather);
    sgi_segment_reader_end(&pieces->cursor);
    op->frees_consumed = false;
    if (op->served->call)
        /* pieces that were freed make room, so a handler that waits for room can
         * continue */
        sgi_call_on_room(op->served->call);
    sgi_op_unref(op);
}

void sgi_pieces_detach(sgi_reply *reply)
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
    sgi_free(mem, pieces, sizeof *pieces);
}

/* ---- the end of the pieces ---- */

/* Answers the request with the whole result, as if no pieces had been sent. */
static void answer(sgi_pieces *pieces)
{
    sgi_reply *reply = pieces->reply;
    sgi_op *op = pieces->cursor.reader.op;
    sgi_op_ref(op);
    if (pieces->resumes)
        op->served->lasting->form->withdraw(pieces);
    sgi_pieces_drop(reply);
    sgi_call_answer_reply(reply, op);
    sgi_op_unref(op);
}

static void close_reply(sgi_pieces *pieces)
{
    sgi_reply *reply = pieces->reply;
    sgi_pieces_drop(reply);
    sgi_reply_close(reply);
}

/* Ends the pieces and sends the answer. Only the answer of a call that ended with a
 * result can omit the content of the sent pieces. */
static void finish(sgi_pieces *pieces)
{
    const sgi_op *op = pieces->cursor.reader.op;
    bool is_result =
        op->head.final == SGI_FINAL_RESULT || op->head.final == SGI_FINAL_RESULT_IS_ERROR;
    if (!pieces->begun || !pieces->form || !pieces->form->finish || !is_result) {
        answer(pieces);
        return;
    }
    if (pieces->resumes)
        op->served->lasting->form->withdraw(pieces);
    pieces->form->finish(pieces);
    close_reply(pieces);
}

/* True when the store has lost entries. A client that resumes would fail in the same way
 * for ever. */
static bool is_lost(segue_status status)
{
    return status != SEGUE_E_STORE && status != SEGUE_E_NOMEM;
}

static void fail(sgi_pieces *pieces)
{
    sgi_reply *reply = pieces->reply;
    sgi_op *op = pieces->cursor.reader.op;
    segue_status status = pieces->cursor.reader.failure;
    bool ended = pieces->ended;
    /* a client that adds the answer to its pieces must not get the whole result as the
     * answer */
    bool adds = pieces->begun && pieces->form && pieces->form->finish;
    sgi_engine_log(reply->engine, SEGUE_LOG_ERROR,
                   "the pieces of a result cannot be read from the store");
    if (ended && !adds) {
        /* the answer has the whole result, so the client misses nothing */
        answer(pieces);
        return;
    }
    if (pieces->resumes && !(ended && is_lost(status))) {
        /* The client of a lasting call learns of replaced segments only from pieces, so
         * the connection is closed and the client has to resume. */
        sgi_conn_close(pieces->conn);
        if (ended) /* nothing else will end the reply */
            sgi_reply_close(reply);
        else
            sgi_pieces_drop(reply);
        return;
    }
    if (!pieces->resumes && !adds) {
        sgi_pieces_drop(reply);
        return;
    }
    if (pieces->resumes)
        op->served->lasting->form->withdraw(pieces);
    sgi_op_ref(op);
    sgi_reply_separate_from_op(reply, op);
    sgi_pieces_drop(reply);
    sgi_reply_store_error(reply, SGI_UNREADABLE, status);
    sgi_reply_close(reply);
    sgi_op_unref(op);
}

/* ---- sending pieces ---- */

/* Sends one piece. Returns false when no more can be sent now, or when the pieces were
 * freed. */
static bool send_piece(sgi_pieces *pieces)
{
    sgi_op *op = pieces->cursor.reader.op;
    /* form is not NULL: pieces without a form are never open */
    switch (pieces->form->send(pieces)) {
    case SGI_PIECES_SENT:
        pieces->begun = true;
        if (pieces->form->gathers && !pieces->resumes && !pieces->broken)
            sgi_response_pacer_begin_pause(&pieces->gather);
        sgi_op_free_consumed_entries(op, pieces->cursor.reader.seq);
        if (op->frees_consumed && op->served->call)
            sgi_call_on_room(op->served->call);
        return true;
    case SGI_PIECES_LAST:
        close_reply(pieces);
        return false;
    case SGI_PIECES_LOST:
        /* the conversation closes because memory ran out, and its end also ends the
         * call */
        pieces->open = false;
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
    const sgi_op *op = pieces->cursor.reader.op;
    if (!pieces->ended &&
        sgi_response_pacer_must_wait(&pieces->gather, &pieces->cursor.reader))
        return false;
    if (sgi_segment_reader_next(&pieces->cursor, true))
        return send_piece(pieces);
    if (pieces->cursor.reader.failure)
        fail(pieces);
    else if (pieces->ended && sgi_segment_reader_at_end(&pieces->cursor))
        finish(pieces);
    else if (op->frees_consumed && op->served->call)
        /* entries that are no segments were read, so they wait for nobody */
        sgi_call_on_room(op->served->call);
    return false;
}

static bool fill(sgi_output_source *source, size_t room)
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

/* Sends a piece when there are entries to read. The first piece is sent at once, because
 * over HTTP a source can send only after a first message has decided the form of the
 * response. During the handler's first turn (until on_call returns) no piece is sent: if
 * the whole result is ready at the end of the turn, one message is enough. */
static void more_to_read(sgi_reader *reader)
{
    sgi_pieces *pieces = SGI_OWNER(reader, sgi_pieces, cursor.reader);
    sgi_conn *conn = pieces->conn;
    if (!pieces->open)
        return;
    if (conn->frames != SGI_FRAMES_OPEN ||
        (sgi_conn_transport(conn) && send_next(pieces)))
        /* queued even while the client is away, because the client can come back */
        sgi_output_source_queue(conn, &pieces->source);
}

void sgi_pieces_continue(sgi_reply *reply)
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

/* True when the transport left the exchange before an event with an id was sent. No
 * client can resume such an exchange, so the answer need not wait for a client. */
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
        sgi_reader_pause(&pieces->cursor.reader);
    else if (pieces->ended)
        answer(pieces);
    else
        sgi_pieces_drop(reply);
}

/* ---- making and freeing ---- */

void sgi_pieces_note_position(const sgi_pieces *pieces, uint64_t seq)
{
    sgi_lasting_call_note_position(pieces->reply, seq);
}

bool sgi_pieces_are_allowed(const sgi_conn *conn, sgi_str id)
{
    return !conn->no_events && !sgi_batch_of_request(conn, id);
}

/* Makes the pieces of a reply. Returns NULL when out of memory. */
static sgi_pieces *make(sgi_reply *reply, const sgi_pieces_ops *form)
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
    sgi_response_pacer_init(&pieces->gather, pieces->conn, &pieces->source);
    sgi_buf_init(&pieces->head, mem);
    reply->pieces = pieces;
    reply->parked = parked;
    return pieces;
}

static void look_at(sgi_pieces *pieces, sgi_op *op)
{
    sgi_segment_reader_init(&pieces->cursor, op, more_to_read);
    pieces->cursor.reader.conn = pieces->conn;
}

void sgi_pieces_new_if_negotiated(sgi_reply *reply, const sgi_call_request *request)
{
    reply->tells_void = request->pieces != NULL;
    if (!request->pieces ||
        !sgi_pieces_are_allowed(reply->peer->conn, sgi_str_of(reply->id)))
        return;
    sgi_pieces *pieces = make(reply, request->pieces);
    if (pieces && pieces->form->begin && !pieces->form->begin(pieces, request->token))
        sgi_pieces_drop(reply);
}

/* True when the memory of sent pieces can be freed, because no later request can ask for
 * them. Since DRAFT-2026-v1 a later request can ask: for the task that the call becomes,
 * or with answers to the questions of the call. */
static bool may_pass(const sgi_pieces *pieces, const sgi_op *op)
{
    return pieces->form->frees_consumed && !sgi_op_is_logged(op) &&
           !sgi_facts(pieces->reply->version)->has_rounds;
}

void sgi_pieces_begin(sgi_reply *reply, sgi_op *op, bool again)
{
    sgi_pieces *pieces = reply->pieces;
    if (!pieces)
        return;
    if (!reply->peer || !sgi_op_log_has_whole_result(op) || is_deserted(pieces)) {
        sgi_pieces_drop(reply);
        return;
    }
    look_at(pieces, op);
    pieces->again = again;
    op->frees_consumed = may_pass(pieces, op);
    if (!again && op->served->call && !op->served->call->turned)
        reply->turned = turned;
    else
        turned(reply, op);
}

/* Begins to send the messages of a lasting call. form: the form of the pieces; NULL = the
 * client gets only the whole result. has: see sgi_pieces_resume. */
static void send_messages(sgi_reply *reply, sgi_op *op, const sgi_pieces_ops *form,
                          const uint64_t *has)
{
    const sgi_lasting_call *lasting = op->served->lasting;
    sgi_pieces_drop(reply);
    sgi_pieces *pieces = make(reply, form);
    if (!pieces) {
        sgi_engine_log(op->engine, SEGUE_LOG_ERROR,
                       "out of memory: the connection of a client that resumes a call is "
                       "closed, and the client can resume the call again");
        sgi_conn_close(reply->peer->conn);
        return;
    }
    look_at(pieces, op);
    reply->tells_void = form != NULL;
    pieces->resumes = pieces->open = true;
    pieces->cursor.from = lasting->confirmed;
    pieces->cursor.mute = !form;
    pieces->cursor.other = lasting->form->send;
    if (has) {
        pieces->cursor.counts = true;
        pieces->cursor.has = pieces->cursor.shown = *has;
    }
    /* `begun` is true when the client already has some segments, or when the log no
     * longer has the whole result. Otherwise the answer must have the whole result. */
    pieces->begun = form && (has ? *has > 0 || !sgi_op_log_has_whole_result(op)
                                 : lasting->confirmed > 0);
    more_to_read(&pieces->cursor.reader);
}

void sgi_pieces_resume(sgi_reply *reply, sgi_op *op, const uint64_t *has)
{
    send_messages(reply, op, op->served->lasting->pieces, has);
}

void sgi_pieces_repeat(sgi_reply *reply, sgi_op *op)
{
    const sgi_pieces *own = reply->pieces;
    uint64_t has = own ? own->cursor.shown : 0;
    /* a request can want pieces and have none, when they could not begin */
    const sgi_pieces_ops *wanted = reply->tells_void ? op->served->lasting->pieces : NULL;
    send_messages(reply, op, own ? own->form : wanted, &has);
}

static void withdrawn(sgi_reply *reply)
{
    close_reply(reply->pieces);
}

void sgi_pieces_finish_reply(sgi_reply *reply)
{
    sgi_pieces *pieces = reply->pieces;
    pieces->ended = reply->complete = true;
    if (reply->peer)
        sgi_parked_note_rest(reply->peer);
    reply->cancelled = withdrawn;
    if (!reply->peer)
        close_reply(pieces);
    else if (!pieces->begun && !pieces->resumes)
        answer(pieces); /* no piece was sent, so one message carries the whole result */
    else
        more_to_read(&pieces->cursor.reader);
}
