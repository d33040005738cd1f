/* Partial results by notifications (PN, SEP-2998) on the client: notifications for a
 * plain call of 2026-07-28 bring parts of its result (core/docs/requirements.md 3). The
 * client asks for these notifications when the application has on_segment. The final
 * result contains all parts, so the client stores parts only for the case of an error.
 * Lost parts are delivered when the result comes. */
#include "engine/dialect/rows.h"
#include "engine/client/dialects.h"
#include "engine/client/pieces.h"

/* The pieces that came by the notifications of one exchange. The struct is made when an
 * exchange asks for such notifications. */
typedef struct piece_notes {
    sgi_cli_dialect_state state;
    int64_t next;    /* number that the next notification has */
    uint64_t count;  /* number of segments that came with this exchange */
    uint64_t blocks; /* number of blocks that the segments of this exchange make */
    int32_t empty;   /* number of pieces in a row without content */
    /* true when pieces are missing or invalid: later pieces are delivered only with the
     * result */
    bool broken;
} piece_notes;

static void drop(segue_request *request)
{
    sgi_cli_dialect_state_drop(request, &sgi_cli_partial_result);
}

/* ---- asking for the notifications ---- */

static bool is_asked_for(const segue_request *request)
{
    return sgi_facts(request->session->version)->is_stateless && request->is_call &&
           sgi_deliver_has_reader(request) &&
           sgi_cli_pieces_are_possible(request, SEGUE_DIALECT_PARTIAL_RESULTS) &&
           !sgi_json_get(request->own_meta, "partialResultToken").n;
}

/* Prepares an exchange of the call. Each exchange sends its pieces from the first one,
 * and the client skips segments that were delivered before. When out of memory, the
 * exchange does not ask for pieces. */
static void offer(segue_request *request, sgi_emitter *emitter)
{
    (void)emitter;
    drop(request);
    if (is_asked_for(request))
        sgi_cli_dialect_state_find_or_new(request, &sgi_cli_partial_result);
}

static void write_meta(const segue_request *request, sgi_buf *out, int64_t id)
{
    if (!sgi_cli_dialect_state_find(request, &sgi_cli_partial_result))
        return;
    sgi_buf_add_lit(out, ",\"partialResultToken\":");
    sgi_buf_add_int(out, id);
}

/* ---- notifications ---- */

/* True for the piece with the next number. After a missing piece the function is false
 * for all later pieces (R-776-18). These pieces are delivered only with the result. */
static bool is_next(segue_request *request, piece_notes *notes, sgi_json seq)
{
    int64_t number;
    if (!sgi_json_read_int(seq, &number) || number < 0 || number >= SGI_COUNT_MAX) {
        request->engine->warnings++;
        return false;
    }
    if (number < notes->next) {
        request->delivery.dropped++; /* this piece is a repetition */
        return false;
    }
    if (number > notes->next) {
        request->delivery.holes += (uint64_t)(number - notes->next);
        notes->broken = true;
    }
    notes->next = number + 1;
    return !notes->broken;
}

/* Checks the size of the stored pieces. If they are too large, ends the request and
 * returns false. */
static bool has_room(segue_request *request)
{
    bool fits = sgi_fold_size(&request->fold) <=
                (size_t)request->session->options.max_result_bytes;
    if (!fits)
        sgi_cli_pieces_fail_too_large(request);
    return fits;
}

/* Stores a delivered piece for the case that the call ends with an error. Without an
 * error, the result contains the piece. Returns false when no more pieces can be
 * delivered, or when the request has ended. */
static bool keep_notified(segue_request *request, piece_notes *notes, uint64_t place,
                          sgi_json block)
{
    if (request->options.discard)
        return true;
    if (sgi_fold_add_indexed_segment(&request->fold, place, block))
        return has_room(request);
    request->engine->warnings++;
    notes->broken = true;
    return false;
}

/* Finds the index of a piece in the list of blocks. A piece without an index is appended.
 * Returns false when the index is invalid. */
static bool find_place(segue_request *request, piece_notes *notes, sgi_json params,
                       uint64_t *place)
{
    int64_t number;
    sgi_json index = sgi_json_get(sgi_json_get(params, "_meta"), "dev.segue/index");
    *place = notes->blocks;
    if (!index.n)
        return true;
    bool ok =
        sgi_json_read_int(index, &number) && number >= 0 && number <= (int64_t)*place;
    if (ok)
        *place = (uint64_t)number;
    notes->broken |= !ok;
    request->engine->warnings += !ok;
    return ok;
}

static bool take_block(segue_request *request, piece_notes *notes, uint64_t place,
                       sgi_json block)
{
    if (!keep_notified(request, notes, place, block))
        return false;
    if (place == notes->blocks)
        notes->blocks++;
    if (++notes->count >= request->numbering.next) {
        sgi_tries_reset(&request->tries);
        sgi_deliver_indexed_segment(request, request->numbering.next++, 0, place, block);
    }
    return true;
}

/* Stores structuredContent. A later value replaces an earlier one (R-776-17). */
static bool keep_structured(segue_request *request, sgi_json params)
{
    sgi_json_member member;
    for (size_t at = 0; sgi_json_next_member(params, &at, &member);)
        if (sgi_json_key_is(&member, "structuredContent"))
            sgi_fields_add_member(&request->fold.fields, &member, member.value);
    return has_room(request);
}

static void forget_notified(segue_request *request, piece_notes *notes)
{
    sgi_fold_drop_replaced(&request->fold, request->fold.segments);
    notes->blocks = 0;
}

static void take_replacement(segue_request *request, piece_notes *notes, sgi_json params)
{
    int64_t voided;
    sgi_json meta = sgi_json_get(params, "_meta");
    if (!sgi_json_read_int(sgi_json_get(meta, "dev.segue/replace"), &voided) ||
        voided <= 0)
        return;
    if ((uint64_t)voided <= notes->count)
        forget_notified(request, notes);
    if ((uint64_t)voided < request->numbering.next)
        sgi_deliver_void_segments(request, (uint64_t)voided);
}

static void take_piece(segue_request *request, piece_notes *notes, sgi_json params)
{
    sgi_json content = sgi_json_get(params, "content");
    sgi_json structured = sgi_json_get(params, "structuredContent");
    sgi_json block;
    uint64_t place;
    if (!sgi_cli_pieces_note_received(request, &notes->empty, content, structured) ||
        !is_next(request, notes, sgi_json_get(params, "seq")))
        return;
    if (content.n && sgi_json_kind_of(content) != SGI_JSON_ARRAY) {
        request->engine->warnings++;
        notes->broken = true;
        return;
    }
    take_replacement(request, notes, params);
    if (!find_place(request, notes, params, &place))
        return;
    for (size_t at = 0; content.n && sgi_json_next_item(content, &at, &block);) {
        if (!take_block(request, notes, place++, block))
            return;
    }
    if (structured.n && !keep_structured(request, params))
        return;
    bool is_final = sgi_json_kind_of(sgi_json_get(params, "final")) == SGI_JSON_TRUE;
    /* After a full inbox or the last piece, `broken` stops the delivery of further
     * pieces. The result contains them. */
    notes->broken |= !sgi_cli_pieces_pause_when_full(request) || is_final;
}

static bool notified(segue_session *session, sgi_str method, const sgi_message *msg,
                     bool *taken)
{
    if (!sgi_str_eq(method, SGI_STR("notifications/tools/partial_result")))
        return false;
    segue_request *request = sgi_requests_find_by_progress_token(
        session, sgi_json_get(msg->params, "partialResultToken"));
    piece_notes *notes =
        request ? sgi_cli_dialect_state_find(request, &sgi_cli_partial_result) : NULL;
    if (notes && request->calling)
        take_piece(request, notes, msg->params);
    else
        /* no running request has this partialResultToken, so the piece is dropped
         * (R-776-19) */
        session->engine->warnings++;
    *taken = true;
    return true;
}

static bool declares(const segue_session *session)
{
    return !(session->options.dialects_off & SEGUE_DIALECT_PARTIAL_RESULTS);
}

static const sgi_cli_session_hooks session_hooks = {
    .modern_capability = "partialResults",
    .declares = declares,
};

const sgi_cli_dialect sgi_cli_partial_result = {
    .name = "partial results",
    .session_hooks = &session_hooks,
    .state_size = sizeof(piece_notes),
    .offer = offer,
    .write_meta = write_meta,
    .notified = notified,
    .became_task = drop,
};
