#include "transport/http_client_response.h"

#define ERROR_BODY_MAX ((size_t)64 * 1024)

void sgi_client_response_init(sgi_client_response *response, const sgi_mem *mem,
                              size_t max_message)
{
    *response = (sgi_client_response){0};
    sgi_buf_init(&response->body, mem);
    sgi_buf_init(&response->held, mem);
    sgi_buf_init(&response->fault_text, mem);
    sgi_sse_init(&response->sse, mem, max_message);
}

void sgi_client_response_free(sgi_client_response *response)
{
    sgi_buf_free(&response->body);
    sgi_buf_free(&response->held);
    sgi_buf_free(&response->fault_text);
    sgi_sse_free(&response->sse);
}

void sgi_client_response_begin(sgi_client_response *response)
{
    response->status = 0;
    response->ended = false;
}

bool sgi_client_response_is_fine(const sgi_client_response *response)
{
    return response->status >= 200 && response->status < 300;
}

bool sgi_client_response_add_body(sgi_client_response *response, sgi_str bytes,
                                  size_t max_message)
{
    size_t most = sgi_client_response_is_fine(response) ? max_message : ERROR_BODY_MAX;
    if (bytes.n <= most - response->body.len) {
        sgi_buf_add_str(&response->body, bytes);
        return true;
    }
    sgi_buf_reset(&response->body, 0);
    return false;
}

bool sgi_client_response_hold(sgi_client_response *response, sgi_str bytes)
{
    sgi_buf_add_str(&response->held, bytes);
    if (!response->held.failed)
        return true;
    sgi_buf_reset(&response->held, 0);
    return false;
}

void sgi_client_response_keep_outcome(sgi_client_response *response,
                                      const sgi_fetch_outcome *outcome)
{
    response->ended = true;
    response->fault = outcome->fault;
    sgi_buf_reset(&response->fault_text, 0);
    sgi_buf_add_str(&response->fault_text, sgi_str_of(outcome->text));
}

sgi_fetch_outcome sgi_client_response_take_outcome(sgi_client_response *response,
                                                   sgi_buf *text)
{
    *text = response->fault_text;
    sgi_buf_init(&response->fault_text, text->mem);
    return (sgi_fetch_outcome){response->fault,
                               sgi_buf_terminate(text) ? text->p : "the stream broke"};
}
