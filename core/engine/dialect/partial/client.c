/* Partial results (P, PR 776) on the client: further responses that come before the last
 * response to a plain request, in the versions that begin with `initialize`
 * (core/docs/requirements.md 3). The client asks for further responses with every request
 * whose result has a list. A server may have no memory for a large result at once
 * (R-776-22). The client merges the responses, because the last response contains only
 * the blocks that were not sent before. A request that is resumed under its old id
 * (SEP-975) gets all pieces again, or only the pieces after the last one that it
 * received. When another process resumes the request from a token, the server may no
 * longer have the first pieces. Then the result is incomplete. */
#include "engine/dialect/rows.h"
#include "engine/client/dialects.h"
#include "engine/client/pieces.h"
#include "engine/dialect/partial/merge.h"

#include <stdio.h>

/* The pieces that one request has received. The struct is made when the first piece
 * comes. */
typedef struct partial {
    sgi_cli_dialect_state state;
    sgi_partial_merge merge; /* the merge of all responses so far */
    bool begun;              /* true when at least one response was merged */
    /* number of the segment that the next block of a response becomes */
    uint64_t number;
    int32_t empty; /* number of pieces in a row without content */
    /* segments up to this number are lost: the server no longer has them, and this
     * process never received them */
    uint64_t gone;
    /* number of segments that the process which made the token had delivered */
    uint64_t handled;
} partial;

static partial *part_of(const segue_request *request)
{
    return sgi_cli_dialect_state_find(request, &sgi_cli_partial);
}

/* Returns the merge of the received responses; NULL when no response was merged. */
static sgi_partial_merge *merge_of(const segue_request *request)
{
    partial *part = part_of(request);
    return part && part->begun ? &part->merge : NULL;
}

static void free_state(segue_request *request, sgi_cli_dialect_state *state)
{
    (void)request;
    sgi_partial_merge_free(&((partial *)state)->merge);
}

static void drop(segue_request *request)
{
    sgi_cli_dialect_state_drop(request, &sgi_cli_partial);
}

static partial *begin(segue_request *request)
{
    partial *part = part_of(request);
    const char *list = sgi_result_list_member(request);
    if (part)
        return part;
    part = sgi_cli_dialect_state_find_or_new(request, &sgi_cli_partial);
    if (!part) {
        sgi_cli_pieces_fail(request, SEGUE_E_NOMEM,
                            "out of memory for a piece of the result");
        return NULL;
    }
    sgi_partial_merge_init(&part->merge, &request->engine->env, list ? list : "content");
    part->merge.forgets = request->options.discard;
    return part;
}

static bool is_true(sgi_json value)
{
    return sgi_json_kind_of(value) == SGI_JSON_TRUE;
}

/* Returns the number that a response gives to its first segment; 0 when it gives no
 * number. */
static int64_t first_of(sgi_json result)
{
    int64_t number = 0;
    sgi_json_read_int(sgi_json_get(sgi_json_get(result, "_meta"), "dev.segue/seq"),
                      &number);
    return number;
}

/* ---- asking for pieces ---- */

static sgi_json asked_for(const segue_request *request)
{
    return sgi_json_get(request->own_meta, "allowPartial");
}

/* True when the library itself asks for pieces, because the application's params neither
 * ask for pieces nor refuse them. */
static bool is_added(const segue_request *request)
{
    return !sgi_facts(request->session->version)->is_stateless &&
           !sgi_cli_asks_for_task(request) && !asked_for(request).n &&
           sgi_cli_pieces_are_possible(request, SEGUE_DIALECT_PARTIAL);
}

static void write_meta(const segue_request *request, sgi_buf *out, int64_t id)
{
    (void)id;
    if (is_added(request))
        sgi_buf_add_lit(out, ",\"allowPartial\":true");
}

static bool take_piece(sgi_emitter *emitter, sgi_json result);

/* Prepares an exchange of the call. Each exchange sends its pieces from the first one,
 * and the client skips segments that were delivered before. An exchange that asks for the
 * answer of an earlier exchange is different: it continues the earlier pieces. */
static void offer(segue_request *request, sgi_emitter *emitter)
{
    bool wanted = is_added(request) || is_true(asked_for(request));
    if (!emitter->repeats)
        drop(request);
    if (sgi_facts(request->session->version)->is_stateless || emitter->more)
        return;
    if (wanted || emitter->repeats)
        emitter->more = take_piece;
}

/* ---- numbers of segments ---- */

/* Counts the blocks in the responses of one exchange, because each block becomes one
 * segment. The count gives each segment its number. A block whose segment was delivered
 * before is skipped. If the server numbers its segments (C-9), the count begins with the
 * server's number. */
typedef struct numbering {
    segue_request *request;
    uint64_t number; /* number of the segment that the next block becomes */
} numbering;

static void show_block(void *user, uint64_t index, sgi_json block)
{
    numbering *at = user;
    segue_request *request = at->request;
    uint64_t number = at->number++;
    if (number < request->numbering.next)
        return;
    request->numbering.next = number + 1;
    sgi_tries_reset(&request->tries);
    sgi_deliver_indexed_segment(request, number, 0, index, block);
}

static numbering begin_numbering(segue_request *request, sgi_json result)
{
    sgi_json meta = sgi_json_get(result, "_meta");
    const sgi_partial_merge *merge = merge_of(request);
    sgi_deliver_void_segments_of_result(request, meta);
    numbering at = {request,
                    merge ? part_of(request)->number : request->numbering.voided + 1};
    int64_t number = first_of(result);
    bool numbered = number > 0 && number < SGI_COUNT_MAX;
    if (numbered)
        at.number = (uint64_t)number;
    if (sgi_json_string_is(sgi_json_get(meta, "mergeStrategy"), SGI_STR("replace")) &&
        at.number >= request->numbering.next)
        sgi_deliver_void_segments(request, at.number - 1);
    if (numbered && merge && number < merge->next)
        /* the merge skips the blocks that it has, so counting continues at the first new
         * block */
        at.number = (uint64_t)merge->next;
    return at;
}

/* True when pieces before this response are missing. The caller then treats the answer as
 * lost. */
static bool skips(const segue_request *request, sgi_json result)
{
    int64_t number = first_of(result);
    const sgi_partial_merge *merge = merge_of(request);
    return merge && merge->next && number > merge->next && number < SGI_COUNT_MAX;
}

static void lose(segue_request *request)
{
    static const sgi_outcome lost = {
        .kind = SGI_OUTCOME_LOST,
        .why = "the server sent its answer again and left out a part"};
    if (request->calling)
        sgi_emitter_drop(request->calling, false);
    request->calling = NULL;
    sgi_request_take_outcome(request, &lost);
}

/* ---- a result that is not whole ---- */

static bool lacks(const segue_request *request, sgi_json result)
{
    return request->taken_over && first_of(result) > 1;
}

/* Notes that the first pieces went to the process that made the token and are missing
 * here. Indexes in this response are counted from the first block after the missing
 * pieces. */
static void note_lack(segue_request *request, sgi_json result)
{
    partial *part = part_of(request);
    if (!lacks(request, result))
        return;
    sgi_json_read_int(sgi_json_get(sgi_json_get(result, "_meta"), "index"),
                      &part->merge.base);
    part->merge.lacks = true;
    part->gone = (uint64_t)first_of(result) - 1;
    part->handled = request->delivery.segment;
}

/* Ends the request with an error and an incomplete result, because the server no longer
 * has the missing segments. The text advises to call without the token, because another
 * request from the same token would fail in the same way. */
static void fail_partial(segue_request *request, const partial *part)
{
    char text[240];
    size_t n = (size_t)snprintf(text, sizeof text,
                                "segments 1 to %llu are no longer available here or at "
                                "the server, so the result is incomplete",
                                (unsigned long long)part->gone);
    if (part->gone > part->handled)
        n += (size_t)snprintf(
            text + n, sizeof text - n, ", and segments %llu to %llu did not come",
            (unsigned long long)part->handled + 1, (unsigned long long)part->gone);
    snprintf(text + n, sizeof text - n, ": repeat the call without the token");
    sgi_request_fail(request, SEGUE_E_INCOMPLETE, text);
}

/* ---- responses ---- */

/* Merges a response and delivers its segments. Returns false when the response has ended
 * the request. */
static bool take_response(segue_request *request, sgi_json result)
{
    size_t limit = (size_t)request->session->options.max_result_bytes;
    numbering at = begin_numbering(request, result);
    partial *part = begin(request);
    if (!part)
        return false;
    sgi_partial_merge *merge = &part->merge;
    if (!part->begun)
        note_lack(request, result);
    part->begun = true;
    uint32_t warnings = merge->warnings;
    sgi_merged merged = sgi_partial_merge_add(merge, result, show_block, &at);
    part->number = at.number;
    request->engine->warnings += merge->warnings - warnings;
    if (merged == SGI_MERGE_NOMEM)
        sgi_cli_pieces_fail(request, SEGUE_E_NOMEM,
                            "out of memory for a piece of the result");
    else if (merged == SGI_MERGE_WRONG)
        sgi_cli_pieces_fail(request, SEGUE_E_PROTOCOL, merge->wrong);
    else if (merged == SGI_MERGE_LIMIT && merge->full)
        sgi_cli_pieces_fail_limit(
            request, "the result has too many blocks",
            (sgi_limit){SGI_LIMIT_MAX_BLOCKS, (int64_t)merge->max_blocks});
    else if (merged == SGI_MERGE_LIMIT)
        sgi_cli_pieces_fail_limit(request, "the result has too many fields",
                                  (sgi_limit){SGI_LIMIT_MAX_FIELDS, SGI_FIELDS_MAX});
    else if (merge->bytes > limit || sgi_fold_size(&merge->fields) > limit - merge->bytes)
        sgi_cli_pieces_fail_too_large(request);
    return !sgi_request_is_over(request);
}

static bool has_more(sgi_json result)
{
    return is_true(sgi_json_get(sgi_json_get(result, "_meta"), "hasMore"));
}

/* Handles one of several responses. Returns false for the last one. A server may repeat
 * its answer from the first piece; the merge drops repeated pieces. A pipe carries
 * several requests, so it is read even when the application takes no more segments (has
 * given no credit). The client cannot fetch pieces again, so the size of the pieces that
 * wait for credit is limited. */
static bool take_piece(sgi_emitter *emitter, sgi_json result)
{
    segue_request *request = emitter->request;
    const char *list = sgi_result_list_member(request);
    if (emitter->repeats && first_of(result) == 1) {
        sgi_received_part_set_aside(request);
        drop(request);
    }
    if (!has_more(result))
        return false;
    partial *part = begin(request);
    if (!part || !sgi_cli_pieces_note_received(
                     request, &part->empty, sgi_json_get(result, list ? list : "content"),
                     sgi_json_get(result, "structuredContent")))
        return true;
    /* only the last response may report an error (R-776-5) */
    if (is_true(sgi_json_get(result, "isError")))
        request->engine->warnings++;
    if (skips(request, result))
        lose(request);
    else if (take_response(request, result) && !sgi_cli_pieces_pause_when_full(request))
        sgi_cli_pieces_check_waiting_size(request);
    return true;
}

static void finish(segue_request *request, sgi_json result)
{
    sgi_buf merged;
    if (skips(request, result)) {
        lose(request);
        return;
    }
    if (!take_response(request, result))
        return;
    const partial *part = part_of(request);
    sgi_buf_init(&merged, sgi_engine_mem(request->engine));
    sgi_jw w = sgi_jw_to(&merged);
    sgi_jw_open(&w, '{');
    sgi_partial_merge_write(&part->merge, &w);
    sgi_jw_close(&w, '}');
    if (merged.failed) {
        sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory for the result");
    } else if (part->gone) {
        fail_partial(request, part);
    } else {
        sgi_request_store_listed_tools(request, sgi_buf_str(&merged));
        sgi_request_finish(request, sgi_buf_str(&merged));
    }
    sgi_buf_free(&merged);
}

/* Handles the last response, or the only response. */
static bool answer(segue_request *request, const sgi_result *result)
{
    if (!merge_of(request) && !lacks(request, result->json))
        return false;
    finish(request, result->json);
    return true;
}

/* ---- the dialect's table ---- */

static bool has_received(const segue_request *request)
{
    return merge_of(request) != NULL;
}

static void write_received(const segue_request *request, sgi_jw *w)
{
    sgi_partial_merge_write(merge_of(request), w);
}

/* Returns the number of the last segment that arrived without a gap before it. A resumed
 * request sends this number to the server, and the server sends the segments after it. */
static int64_t received_up_to(const segue_request *request)
{
    const sgi_partial_merge *merge = merge_of(request);
    return merge ? merge->next - 1 : 0;
}

const sgi_cli_dialect sgi_cli_partial = {
    .name = "partial",
    .state_size = sizeof(partial),
    .free_state = free_state,
    .offer = offer,
    .write_meta = write_meta,
    .answer = answer,
    /* a call that has become a task gets no more pieces (R-776-20), and the task's result
     * contains all pieces */
    .became_task = drop,
    .has_received = has_received,
    .write_received = write_received,
    .received_up_to = received_up_to,
};
