/* Functions of HTTP exchanges by hand. */
#include "api/guard.h"
#include "engine/error.h"
#include "transport/http_exchange.h"

static bool is_text(const char *text, size_t len)
{
    return text || !len;
}

/* Copies the headers, with the length of each text. Returns NULL with a status when the
 * headers or texts are missing, or memory is short. */
static segue_http_field *copy_headers(const sgi_mem *mem, const segue_exchange_head *head,
                                      segue_status *status)
{
    size_t count = head->header_count;
    *status = SEGUE_E_INVALID;
    if (count >= SIZE_MAX / sizeof(segue_http_field) || (count && !head->headers))
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (!is_text(head->headers[i].name, head->headers[i].name_len) ||
            !is_text(head->headers[i].value, head->headers[i].value_len))
            return NULL;
    segue_http_field *copy = sgi_alloc(mem, (count + 1) * sizeof *copy);
    if (!copy)
        *status = SEGUE_E_NOMEM;
    for (size_t i = 0; copy && i < count; i++) {
        copy[i] = head->headers[i];
        copy[i].name_len = sgi_given_len(copy[i].name, copy[i].name_len);
        copy[i].value_len = sgi_given_len(copy[i].value, copy[i].value_len);
    }
    return copy;
}

/* Checks the structs of the caller, which have their newest form. */
static segue_status check(const segue_exchange_head *head,
                          const segue_exchange_events *events)
{
    bool is_good = head->method && head->target && events->on_head && events->on_body &&
                   events->on_end && is_text(head->body, head->body_len);
    return is_good ? SEGUE_OK : SEGUE_E_INVALID;
}

static segue_status open_exchange(segue_listener *listener, segue_exchange_head *head,
                                  const segue_exchange_events *events,
                                  segue_exchange **out, char why[SGI_WHY_SIZE])
{
    segue_status status;
    segue_runtime *runtime = listener->carrier.runtime;
    const sgi_mem *mem = sgi_engine_mem(sgi_runtime_engine(runtime));
    size_t size = (head->header_count + 1) * sizeof(segue_http_field);
    segue_http_field *headers = copy_headers(mem, head, &status);
    if (!headers)
        return status;
    head->headers = headers;
    head->body_len = sgi_given_len(head->body, head->body_len);
    sgi_runtime_lock(runtime);
    status = sgi_http_exchange_open(listener, head, events, out, why);
    if (status == SEGUE_OK)
        sgi_handle_note_given(*out);
    sgi_runtime_unlock(runtime);
    sgi_free(mem, headers, size);
    return status;
}

segue_status segue_exchange_open(segue_listener *listener,
                                 const segue_exchange_head *head,
                                 const segue_exchange_events *events,
                                 segue_exchange **out, segue_error **error)
{
    segue_exchange_head full;
    segue_exchange_events table;
    char why[SGI_WHY_SIZE] = "";
    if (!listener || listener->carrier.magic != SGI_MAGIC_LISTENER || !head || !events ||
        !out)
        return SEGUE_E_INVALID;
    segue_runtime *runtime = listener->carrier.runtime;
    segue_status status = sgi_check_reentrancy(SGI_FN_segue_exchange_open, runtime);
    if (status == SEGUE_OK)
        status = sgi_copy_struct_in(&full, sizeof full, head);
    if (status == SEGUE_OK)
        status = sgi_copy_struct_in(&table, sizeof table, events);
    if (status == SEGUE_OK)
        status = check(&full, &table);
    if (status != SEGUE_OK)
        return status;
    status = open_exchange(listener, &full, &table, out, why);
    return status == SEGUE_OK
               ? status
               : sgi_error_return(error, sgi_engine_mem(sgi_runtime_engine(runtime)),
                                  status, "%s", why);
}

segue_status segue_exchange_feed(segue_exchange *exchange, const char *bytes, size_t len)
{
    if (len && !bytes)
        return SEGUE_E_INVALID;
    segue_status status =
        sgi_enter(SGI_FN_segue_exchange_feed, exchange, SGI_MAGIC_EXCHANGE);
    if (status != SEGUE_OK)
        return status;
    status = sgi_http_exchange_feed(exchange, bytes, sgi_given_len(bytes, len));
    sgi_leave(exchange);
    return status;
}

segue_status segue_exchange_end(segue_exchange *exchange)
{
    segue_status status =
        sgi_enter(SGI_FN_segue_exchange_end, exchange, SGI_MAGIC_EXCHANGE);
    if (status != SEGUE_OK)
        return status;
    status = sgi_http_exchange_end(exchange);
    sgi_leave(exchange);
    return status;
}

segue_status segue_exchange_sent(segue_exchange *exchange, size_t len)
{
    segue_status status =
        sgi_enter(SGI_FN_segue_exchange_sent, exchange, SGI_MAGIC_EXCHANGE);
    if (status != SEGUE_OK)
        return status;
    status = sgi_http_exchange_sent(exchange, len);
    sgi_leave(exchange);
    return status;
}

segue_status segue_exchange_closed(segue_exchange *exchange)
{
    segue_status status =
        sgi_enter(SGI_FN_segue_exchange_closed, exchange, SGI_MAGIC_EXCHANGE);
    if (status != SEGUE_OK)
        return status;
    status = sgi_http_exchange_closed(exchange);
    sgi_leave(exchange);
    return status;
}

void segue_exchange_free(segue_exchange *exchange)
{
    if (sgi_enter(SGI_FN_segue_exchange_free, exchange, SGI_MAGIC_EXCHANGE) != SEGUE_OK)
        return;
    segue_runtime *runtime = sgi_handle_runtime(exchange);
    sgi_engine *engine = ((const sgi_handle *)(const void *)exchange)->engine;
    sgi_http_exchange_unref(exchange);
    sgi_handle_note_freed(engine);
    sgi_runtime_unlock(runtime);
}
