/* Ends a request exactly once: with a result, with the server's error, or with an error
 * of this library. With an error the application also gets the part of the result that
 * was received. After the end the request has no exchange under way, and on_complete is
 * due. */
#include "engine/client/server_questions.h"
#include "engine/client/dialects.h"
#include "engine/client/void_members.h"
#include "engine/error.h"

#include <assert.h>

void sgi_request_set_phase(segue_request *request, sgi_phase phase)
{
    static const unsigned from[] = {
        [SGI_PHASE_WAIT] = 0,
        [SGI_PHASE_STAND] = 0,
        [SGI_PHASE_FOLLOW] = 1u << SGI_PHASE_WAIT,
        [SGI_PHASE_DONE] =
            1u << SGI_PHASE_WAIT | 1u << SGI_PHASE_STAND | 1u << SGI_PHASE_FOLLOW,
        [SGI_PHASE_GIVEN_UP] = 1u << SGI_PHASE_DONE,
        [SGI_PHASE_REPORTED] = 1u << SGI_PHASE_DONE | 1u << SGI_PHASE_GIVEN_UP};
    assert(from[phase] & 1u << request->phase);
    (void)from;
    request->phase = phase;
}

static void end(segue_request *request, segue_status status)
{
    sgi_request_set_phase(request, SGI_PHASE_DONE);
    request->status = status;
    if (request->error && request->error->mem && !request->error->view.rpc_code)
        request->error->view.unsent = !request->sent && !request->taken_over;
    sgi_engine_clear_timer(request->engine, &request->deadline);
    sgi_tries_stop(&request->tries);
    sgi_questions_stop_sending_answers(request);
    if (request->calling)
        sgi_emitter_drop(request->calling, false);
    request->calling = NULL;
    if (request->follower)
        request->follower->end(request);
    sgi_server_questions_end(request);
    sgi_request_queue_callbacks(request);
}

static void refuse_list(segue_request *request)
{
    request->error = sgi_error_new(
        sgi_engine_mem(request->engine), SEGUE_E_PROTOCOL, 0,
        sgi_str_of("the member of the result that has to be a list is not an array"),
        (sgi_str){0});
    end(request, SEGUE_E_PROTOCOL);
}

static void end_well(segue_request *request, bool has_list)
{
    if (!sgi_buf_terminate(&request->result) || request->result.failed)
        sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory for the result");
    else if (!has_list)
        refuse_list(request);
    else
        end(request, SEGUE_OK);
}

void sgi_request_finish(segue_request *request, sgi_json result)
{
    if (sgi_request_is_over(request))
        return;
    bool says_shown = request->numbering.voided || request->numbering.joined;
    if (!says_shown || !sgi_result_write_without_void_report(result, &request->result))
        sgi_buf_add_str(&request->result, result);
    end_well(request, sgi_request_look_at_result(request));
}

void sgi_request_finish_with_buffer(segue_request *request, sgi_buf *result,
                                    bool says_error)
{
    if (sgi_request_is_over(request))
        return;
    sgi_buf before = request->result;
    request->result = *result;
    *result = before;
    request->says_error = says_error;
    end_well(request, true);
}

/* Ends the request with an error. what: text that is put before the server's message;
 * NULL = only the server's message. */
static void end_with(segue_request *request, segue_status status, const char *what,
                     sgi_json error)
{
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    int64_t code = 0;
    sgi_buf text;
    sgi_buf_init(&text, mem);
    sgi_json_read_int(sgi_json_get(error, "code"), &code);
    if (what) {
        sgi_buf_add_str(&text, sgi_str_of(what));
        sgi_buf_add_lit(&text, ": ");
    }
    if (!sgi_json_decode_without_nul(sgi_json_get(error, "message"), &text) ||
        text.failed)
        sgi_buf_truncate(&text, 0);
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

/* True for a plain call that the end of its server has cut off, as the error says. The
 * application gets the same error as when the connection was lost. A task, and a call
 * that the application can resume, get the error itself: the store keeps it as their
 * end. */
static bool is_cut_off(const segue_request *request, sgi_json error)
{
    return !request->task_id && !request->task && !sgi_cli_is_resumable(request) &&
           !(request->key.sent && request->key.kept) &&
           (sgi_error_is_unanswered(error) || sgi_error_is_restarted(error));
}

void sgi_request_fail_error(segue_request *request, segue_status status, const char *what,
                            sgi_json error)
{
    if (sgi_request_is_over(request))
        return;
    if (status == SEGUE_E_REMOTE && is_cut_off(request, error)) {
        status = SEGUE_E_DISCONNECTED;
        /* the store has the error as the answer for the key: the key finds no result */
        sgi_text_free(sgi_engine_mem(request->engine), request->key.text);
        request->key = (sgi_idempotency_key){0};
    }
    sgi_received_part_write(request);
    end_with(request, status, what, error);
}

void sgi_request_fail(segue_request *request, segue_status status, const char *text)
{
    if (sgi_request_is_over(request))
        return;
    sgi_received_part_write(request);
    request->error = sgi_error_new(sgi_engine_mem(request->engine), status, 0,
                                   sgi_str_of(text), (sgi_str){0});
    end(request, status);
}

void sgi_request_fail_limit(segue_request *request, segue_status status, const char *what,
                            sgi_limit limit)
{
    sgi_request_fail(
        request, status,
        sgi_engine_describe_limit(request->engine, what, limit, "limit", NULL).text);
}

void sgi_request_fail_too_large(segue_request *request)
{
    sgi_limit limit = {SGI_LIMIT_MAX_RESULT_BYTES,
                       request->session->options.max_result_bytes};
    sgi_limit_text told = sgi_engine_describe_limit(
        request->engine, "the result is too large", limit, "limit",
        request->options.discard
            ? "raise the limit in the session's options"
            : "raise the limit in the session's options, or read the "
              "segments as they come and do not collect them");
    sgi_request_fail(request, SEGUE_E_TOO_LARGE, told.text);
}
