#include "engine/client/pieces.h"

bool sgi_cli_pieces_are_possible(const segue_request *request, uint32_t dialect)
{
    return sgi_result_list_member(request) &&
           !(request->session->options.dialects_off & dialect);
}

static void drop_exchange(segue_request *request)
{
    if (request->calling)
        sgi_emitter_drop(request->calling, true);
    request->calling = NULL;
}

void sgi_cli_pieces_fail(segue_request *request, segue_status status, const char *why)
{
    drop_exchange(request);
    sgi_request_fail(request, status, why);
}

void sgi_cli_pieces_fail_too_large(segue_request *request)
{
    drop_exchange(request);
    sgi_request_fail_too_large(request);
}

void sgi_cli_pieces_fail_limit(segue_request *request, const char *what, sgi_limit limit)
{
    sgi_cli_pieces_fail(
        request, SEGUE_E_LIMIT,
        sgi_engine_describe_limit(request->engine, what, limit, "limit", NULL).text);
}

bool sgi_cli_pieces_check_waiting_size(segue_request *request)
{
    sgi_limit limit = {SGI_LIMIT_MAX_RESULT_BYTES,
                       request->session->options.max_result_bytes};
    if (sgi_deliver_waiting_bytes(request) <= (size_t)limit.value)
        return true;
    sgi_cli_pieces_fail(request, SEGUE_E_TOO_LARGE,
                        sgi_engine_describe_limit(
                            request->engine,
                            "the segments that wait for credit are too large", limit,
                            "limit",
                            "grant credit sooner, or raise the limit in the session's "
                            "options")
                            .text);
    return false;
}

bool sgi_cli_pieces_pause_when_full(segue_request *request)
{
    if (!sgi_inbox_is_full(request))
        return true;
    if (!request->delivery.credit && !request->session->conn->exchanging)
        return false;
    sgi_deliver_stop_input(request);
    return true;
}

bool sgi_cli_pieces_note_received(segue_request *request, int32_t *empty, sgi_json list,
                                  sgi_json structured)
{
    sgi_json block;
    size_t at = 0;
    int32_t most = request->session->max_empty_pieces;
    bool has_content = structured.n || (sgi_json_kind_of(list) == SGI_JSON_ARRAY &&
                                        sgi_json_next_item(list, &at, &block));
    if (has_content) {
        *empty = 0;
        if (request->calling)
            sgi_emitter_note_sign_of_life(request->calling);
    } else if (++*empty > most) {
        sgi_cli_pieces_fail_limit(
            request, "too many pieces of the result in a row have no content",
            (sgi_limit){SGI_LIMIT_MAX_EMPTY_PIECES, most});
        return false;
    }
    return true;
}
