/* How a request ends: once, with a result, with the server's error, or with ours, which
 * takes along what was received until then. Then nothing of it is under way any more, and
 * on_complete is due. */
#include "engine/asking/asked.h"
#include "engine/asking/merge.h"
#include "engine/asking/request.h"
#include "engine/asking/response_2025.h"

static void end(segue_request *request, segue_status status)
{
    request->phase = SGI_PHASE_DONE;
    request->status = status;
    sgi_engine_timer_clear(request->engine, &request->deadline);
    sgi_tries_stop(&request->tries);
    sgi_tries_stop(&request->stream_tries);
    sgi_questions_rest(request);
    if (request->calling)
        sgi_emitter_drop(request->calling, false);
    request->calling = NULL;
    sgi_follow_end(request);
    sgi_asked_end(request);
    sgi_deliver_queue(request);
}

static void end_well(segue_request *request)
{
    if (sgi_buf_terminate(&request->result) && !request->result.failed)
        end(request, SEGUE_OK);
    else
        sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory for the result");
}

void sgi_request_finish(segue_request *request, sgi_json result)
{
    if (request->phase == SGI_PHASE_DONE)
        return;
    bool says_shown = request->void_segments || request->joined;
    if (!says_shown || !sgi_response_drop_void(result, &request->result))
        sgi_buf_add_str(&request->result, result);
    end_well(request);
}

void sgi_request_finish_by(segue_request *request, sgi_buf *result)
{
    if (request->phase == SGI_PHASE_DONE)
        return;
    sgi_buf before = request->result;
    request->result = *result;
    *result = before;
    end_well(request);
}

/* what: stands before what the server says; NULL = nothing does. */
static void end_with(segue_request *request, segue_status status, const char *what,
                     sgi_json error)
{
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    int64_t code = 0;
    sgi_buf text;
    sgi_buf_init(&text, mem);
    sgi_json_int(sgi_json_get(error, "code"), &code);
    if (what) {
        sgi_buf_add_str(&text, sgi_str_of(what));
        sgi_buf_add_lit(&text, ": ");
    }
    if (!sgi_json_decode_shown(sgi_json_get(error, "message"), &text) || text.failed)
        sgi_buf_cut(&text, 0);
    request->error = sgi_error_new(
        mem, status, code >= INT32_MIN && code <= INT32_MAX ? (int32_t)code : 0,
        sgi_buf_str(&text), sgi_json_get(error, "data"));
    sgi_buf_free(&text);
    end(request, status);
}

void sgi_request_finish_error(segue_request *request, const char *what, sgi_json error)
{
    sgi_request_fail_error(request, SEGUE_E_REMOTE, what, error);
}

/* What was received so far, merged, goes with the error. */
static void keep_received(segue_request *request)
{
    if (!request->merge && !request->fold.count &&
        sgi_fields_is_empty(&request->fold.fields))
        return;
    sgi_jw w = sgi_jw_on(&request->result);
    sgi_buf_cut(&request->result, 0);
    sgi_jw_open(&w, '{');
    if (request->merge)
        sgi_merge_write(request->merge, &w);
    else
        sgi_fold_write(&request->fold, &w, false, (sgi_str){0});
    sgi_jw_close(&w, '}');
    if (!sgi_buf_terminate(&request->result) || request->result.failed)
        sgi_buf_reset(&request->result, 0);
}

void sgi_request_fail_error(segue_request *request, segue_status status, const char *what,
                            sgi_json error)
{
    if (request->phase == SGI_PHASE_DONE)
        return;
    keep_received(request);
    end_with(request, status, what, error);
}

void sgi_request_fail(segue_request *request, segue_status status, const char *text)
{
    if (request->phase == SGI_PHASE_DONE)
        return;
    keep_received(request);
    request->error = sgi_error_new(sgi_engine_mem(request->engine), status, 0,
                                   sgi_str_of(text), (sgi_str){0});
    end(request, status);
}

void sgi_request_fail_limit(segue_request *request, segue_status status, const char *what,
                            sgi_limit limit)
{
    sgi_request_fail(request, status, sgi_limit_tell(what, limit, "limit").text);
}

void sgi_request_fail_size(segue_request *request)
{
    sgi_limit limit = {"max_result_bytes", request->session->options.max_result_bytes};
    sgi_limit_told told =
        sgi_limit_advise("the result is too large", limit, "limit",
                         request->options.discard
                             ? "raise the limit in the session's options"
                             : "raise the limit in the session's options, or read the "
                               "segments as they come and do not collect them");
    sgi_request_fail(request, SEGUE_E_TOO_LARGE, told.text);
}
