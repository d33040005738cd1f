/* Pieces of the result of a plain call, which come before its end
 * (core/docs/requirements.md 3): further responses in the handshake eras (P),
 * notifications in 2026-07-28 (PN). P's are asked for by every call, as a server may have
 * no room for a large result at once (R-776-22). They are merged, as the last response
 * holds only what was not sent before. PN's are asked for when the application looks at
 * segments. They are kept for an error only, as its result is whole: what was lost on the
 * way is shown when that comes. */
#include "engine/asking/merge.h"
#include "engine/asking/request.h"

/* ---- asking for them ---- */

static bool is_wanted(const segue_request *request, uint32_t dialect)
{
    return request->is_call && !(request->session->options.dialects_off & dialect);
}

void sgi_pieces_prepare(segue_request *request, sgi_emitter *emitter)
{
    sgi_json meta =
        sgi_json_get((sgi_json){request->params, request->params_len}, "_meta");
    bool modern = sgi_version_is_modern(request->session->version);
    bool asked = sgi_json_kind_of(sgi_json_get(meta, "allowPartial")) == SGI_JSON_TRUE;
    request->next_piece = 0; /* they begin anew: those that were shown are counted off */
    request->piece_count = request->piece_blocks = 0;
    request->broken = false;
    request->empty_pieces = 0;
    sgi_pieces_free(request);
    request->adds_token = modern && request->events.on_segment &&
                          is_wanted(request, SEGUE_DIALECT_PARTIAL_RESULTS) &&
                          !sgi_json_get(meta, "partialResultToken").n;
    request->adds_partial = !modern && !request->asks_task && !asked &&
                            is_wanted(request, SEGUE_DIALECT_PARTIAL) &&
                            !sgi_json_get(meta, "allowPartial").n;
    if (!modern && (asked || request->adds_partial) && !emitter->more)
        emitter->more = sgi_pieces_more;
}

void sgi_pieces_write_extra(const segue_request *request, sgi_buf *out, int64_t id)
{
    if (request->adds_partial)
        sgi_buf_add_lit(out, ",\"allowPartial\":true");
    if (request->adds_token) {
        sgi_buf_add_lit(out, ",\"partialResultToken\":");
        sgi_buf_add_int(out, id);
    }
}

/* ---- P ---- */

void sgi_pieces_free(segue_request *request)
{
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    if (request->phase == SGI_PHASE_WAIT) { /* PN's come again, too */
        sgi_fold_free(&request->fold);
        sgi_fold_init(&request->fold, &request->engine->env);
    }
    if (!request->merge)
        return;
    sgi_merge_free(request->merge);
    sgi_release(mem, request->merge, sizeof *request->merge);
    request->merge = NULL;
}

const char *sgi_pieces_list(const segue_request *request)
{
    static const char *const lists[][2] = {
        {"tools/call", "content"},
        {"resources/read", "contents"},
        {"prompts/get", "messages"},
        {"tools/list", "tools"},
        {"resources/list", "resources"},
        {"resources/templates/list", "resourceTemplates"},
        {"prompts/list", "prompts"}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (!strcmp(request->method, lists[i][0]))
            return lists[i][1];
    return NULL;
}

static bool begin_merge(segue_request *request)
{
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    const char *list = sgi_pieces_list(request);
    if (!request->merge) {
        request->merge = sgi_alloc(mem, sizeof *request->merge);
        if (request->merge)
            sgi_merge_init(request->merge, &request->engine->env,
                           list ? list : "content");
        if (request->merge)
            request->merge->forgets = request->options.discard;
    }
    return request->merge != NULL;
}

/* Numbers go on from one response of an exchange to the next; where the server tells
 * them, a piece that comes again is known by its own (C-9). */
typedef struct numbering {
    segue_request *request;
    uint64_t number; /* of the next block */
} numbering;

static void show_block(void *user, uint64_t index, sgi_json block)
{
    numbering *at = user;
    segue_request *request = at->request;
    uint64_t number = at->number++;
    if (number < request->next_segment)
        return;
    request->next_segment = number + 1;
    sgi_tries_good(&request->tries);
    sgi_deliver_piece(request, number, 0, index, block);
}

static numbering begin_numbering(segue_request *request, sgi_json result)
{
    sgi_json meta = sgi_json_get(result, "_meta");
    sgi_deliver_told_void(request, result);
    numbering at = {request,
                    request->merge ? request->next_segment : request->void_segments + 1};
    int64_t told;
    bool numbered = sgi_json_int(sgi_json_get(meta, "dev.segue/seq"), &told) &&
                    told > 0 && told < SGI_COUNT_MAX;
    if (numbered)
        at.number = (uint64_t)told;
    if (sgi_json_string_is(sgi_json_get(meta, "mergeStrategy"), SGI_STR("replace")) &&
        at.number >= request->next_segment)
        sgi_deliver_void(request, at.number - 1);
    if (numbered && request->merge && told < request->merge->next)
        at.number = (uint64_t)request->merge->next; /* those before are not taken */
    return at;
}

static void drop_exchange(segue_request *request)
{
    if (request->calling)
        sgi_emitter_drop(request->calling, true);
    request->calling = NULL;
}

static void refuse(segue_request *request, segue_status status, const char *why)
{
    drop_exchange(request);
    sgi_request_fail(request, status, why);
}

static void refuse_size(segue_request *request)
{
    drop_exchange(request);
    sgi_request_fail_size(request);
}

static void refuse_limit(segue_request *request, const char *what, sgi_limit limit)
{
    refuse(request, SEGUE_E_LIMIT, sgi_limit_tell(what, limit, "limit").text);
}

/* Parts of the answer did not come, though it goes on behind them: as if it had been cut
 * off there. */
static bool skips(const segue_request *request, sgi_json result)
{
    int64_t told;
    const sgi_merge *merge = request->merge;
    return merge && merge->next &&
           sgi_json_int(sgi_json_get(sgi_json_get(result, "_meta"), "dev.segue/seq"),
                        &told) &&
           told > merge->next && told < SGI_COUNT_MAX;
}

static void lose(segue_request *request)
{
    static const sgi_outcome lost = {
        .kind = SGI_OUTCOME_LOST,
        .why = "the server left out a part of the answer when it sent it again"};
    if (request->calling)
        sgi_emitter_drop(request->calling, false);
    request->calling = NULL;
    sgi_request_take(request, &lost);
}

/* False: the request has ended. */
static bool take_response(segue_request *request, sgi_json result)
{
    size_t limit = (size_t)request->session->options.max_result_bytes;
    numbering at = begin_numbering(request, result);
    bool begins = !request->merge;
    if (!begin_merge(request)) {
        refuse(request, SEGUE_E_NOMEM, "out of memory for a piece of the result");
        return false;
    }
    sgi_merge *merge = request->merge;
    if (begins)
        sgi_resume_begin_merge(request, result);
    uint32_t warnings = merge->warnings;
    sgi_merged merged = sgi_merge_take(merge, result, show_block, &at);
    request->engine->warnings += merge->warnings - warnings;
    if (merged == SGI_MERGE_NOMEM)
        refuse(request, SEGUE_E_NOMEM, "out of memory for a piece of the result");
    else if (merged == SGI_MERGE_WRONG)
        refuse(request, SEGUE_E_PROTOCOL, merge->wrong);
    else if (merged == SGI_MERGE_LIMIT && merge->full)
        refuse_limit(request, "the result has too many blocks",
                     (sgi_limit){"max_blocks", (int64_t)merge->max_blocks});
    else if (merged == SGI_MERGE_LIMIT)
        refuse_limit(request, "the result has too many fields",
                     (sgi_limit){"max_fields", SGI_FIELDS_MAX});
    else if (merge->bytes > limit || sgi_fold_size(&merge->fields) > limit - merge->bytes)
        refuse_size(request);
    return request->phase != SGI_PHASE_DONE;
}

static bool is_true(sgi_json value)
{
    return sgi_json_kind_of(value) == SGI_JSON_TRUE;
}

static bool has_more(sgi_json result)
{
    return is_true(sgi_json_get(sgi_json_get(result, "_meta"), "hasMore"));
}

/* An exchange of its own waits for the application, however long that takes. A pipe that
 * others share waits for callbacks, but not for credit: false when no more of it should
 * be taken. P goes on: it is bounded with its result, and has nowhere else to come. */
static bool keep_pace(segue_request *request)
{
    if (!sgi_deliver_is_full(request))
        return true;
    if (!request->credit && !request->session->conn->exchanging)
        return false;
    sgi_deliver_hold(request);
    return true;
}

/* One that has no content is no sign of life: the time limit goes on, and there are not
 * very many in a row (R-776-29). False: the request has ended. */
static bool is_alive(segue_request *request, sgi_json list, sgi_json structured)
{
    sgi_json block;
    size_t at = 0;
    int32_t most = request->session->max_empty_pieces;
    bool has_content = structured.n || (sgi_json_kind_of(list) == SGI_JSON_ARRAY &&
                                        sgi_json_next_item(list, &at, &block));
    if (has_content) {
        request->empty_pieces = 0;
        if (request->calling)
            sgi_emitter_touch(request->calling);
    } else if (++request->empty_pieces > most) {
        refuse_limit(request, "too many pieces of the result in a row have no content",
                     (sgi_limit){"max_empty_pieces", most});
        return false;
    }
    return true;
}

bool sgi_pieces_more(sgi_emitter *emitter, sgi_json result)
{
    segue_request *request = emitter->request;
    const char *list = sgi_pieces_list(request);
    if (!has_more(result))
        return false;
    if (!is_alive(request, sgi_json_get(result, list ? list : "content"),
                  sgi_json_get(result, "structuredContent")))
        return true;
    if (is_true(sgi_json_get(result, "isError")))
        request->engine->warnings++; /* only the last may say that (R-776-5) */
    if (skips(request, result))
        lose(request);
    else if (take_response(request, result))
        keep_pace(request);
    return true;
}

void sgi_pieces_finish(segue_request *request, sgi_json result)
{
    sgi_buf merged;
    if (skips(request, result)) {
        lose(request);
        return;
    }
    if (!take_response(request, result))
        return;
    sgi_buf_init(&merged, sgi_engine_mem(request->engine));
    sgi_jw w = sgi_jw_on(&merged);
    sgi_jw_open(&w, '{');
    sgi_merge_write(request->merge, &w);
    sgi_jw_close(&w, '}');
    if (merged.failed)
        sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory for the result");
    else if (request->gone)
        sgi_resume_fail_partial(request);
    else
        sgi_request_finish(request, sgi_buf_str(&merged));
    sgi_buf_free(&merged);
}

/* ---- PN ---- */

/* One that comes behind a hole is not shown before what is missing (R-776-18): all that
 * follows is shown with the result. */
static bool is_next(segue_request *request, sgi_json seq)
{
    int64_t number;
    if (!sgi_json_int(seq, &number) || number < 0 || number >= SGI_COUNT_MAX) {
        request->engine->warnings++;
        return false;
    }
    if (number > request->next_piece) {
        request->holes += (uint64_t)(number - request->next_piece);
        request->broken = true;
    } else if (number < request->next_piece) {
        request->dropped++; /* a repeat */
        return false;
    }
    request->next_piece = number + 1;
    return !request->broken;
}

/* False: the request has ended. */
static bool has_room(segue_request *request)
{
    bool fits = sgi_fold_size(&request->fold) <=
                (size_t)request->session->options.max_result_bytes;
    if (!fits)
        refuse_size(request);
    return fits;
}

/* What was shown is kept for the error that the call may end in; its result has it, too.
 * False: nothing more of it is shown, or the request has ended. */
static bool keep_notified(segue_request *request, uint64_t place, sgi_json block)
{
    if (request->options.discard)
        return true;
    if (sgi_fold_placed(&request->fold, place, block))
        return has_room(request);
    request->engine->warnings++;
    request->broken = true;
    return false;
}

/* Where a piece stands in the list: behind the others, if it does not say. False: what it
 * says is no place. */
static bool find_place(segue_request *request, sgi_json params, uint64_t *place)
{
    int64_t told;
    sgi_json index = sgi_json_get(sgi_json_get(params, "_meta"), "dev.segue/index");
    *place = request->piece_blocks;
    if (!index.n)
        return true;
    bool ok = sgi_json_int(index, &told) && told >= 0 && told <= (int64_t)*place;
    if (ok)
        *place = (uint64_t)told;
    request->broken |= !ok;
    request->engine->warnings += !ok;
    return ok;
}

static bool take_block(segue_request *request, uint64_t place, sgi_json block)
{
    if (!keep_notified(request, place, block))
        return false;
    if (place == request->piece_blocks)
        request->piece_blocks++;
    if (++request->piece_count >= request->next_segment) {
        sgi_tries_good(&request->tries);
        sgi_deliver_piece(request, request->next_segment++, 0, place, block);
    }
    return true;
}

/* Of several the last one counts (R-776-17). */
static bool keep_structured(segue_request *request, sgi_json params)
{
    sgi_json_member member;
    for (size_t at = 0; sgi_json_next_member(params, &at, &member);)
        if (sgi_json_key_is(&member, "structuredContent"))
            sgi_fields_put(&request->fold.fields, &member, member.value);
    return has_room(request);
}

static void forget_notified(segue_request *request)
{
    sgi_fold_replace(&request->fold, request->fold.segments);
    request->piece_blocks = 0;
}

static void take_replacement(segue_request *request, sgi_json params)
{
    int64_t voided;
    sgi_json meta = sgi_json_get(params, "_meta");
    if (!sgi_json_int(sgi_json_get(meta, "dev.segue/replace"), &voided) || voided <= 0)
        return;
    if ((uint64_t)voided <= request->piece_count)
        forget_notified(request);
    if ((uint64_t)voided < request->next_segment)
        sgi_deliver_void(request, (uint64_t)voided);
}

void sgi_pieces_notified(segue_request *request, sgi_json params)
{
    sgi_json content = sgi_json_get(params, "content");
    sgi_json structured = sgi_json_get(params, "structuredContent");
    sgi_json block;
    uint64_t place;
    if (!is_alive(request, content, structured) ||
        !is_next(request, sgi_json_get(params, "seq")))
        return;
    if (content.n && sgi_json_kind_of(content) != SGI_JSON_ARRAY) {
        request->engine->warnings++;
        request->broken = true;
        return;
    }
    take_replacement(request, params);
    if (!find_place(request, params, &place))
        return;
    for (size_t at = 0; content.n && sgi_json_next_item(content, &at, &block);) {
        if (!take_block(request, place++, block))
            return;
    }
    if (structured.n && !keep_structured(request, params))
        return;
    /* what follows comes with the result */
    if (!keep_pace(request) || is_true(sgi_json_get(params, "final")))
        request->broken = true;
}
