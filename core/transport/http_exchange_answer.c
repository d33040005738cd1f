/* The answer of an exchange, given to the application in callbacks. */
#include "transport/http_exchange_state.h"

/* True when a callback with output is due. */
static bool has_output(const segue_exchange *exchange)
{
    return sgi_exchange_is_taking(exchange) && !sgi_exchange_is_output_lost(exchange) &&
           (exchange->head == HEAD_MADE || exchange->out.len);
}

/* Gives the head, and the body as far as it is there. The head leaves the exchange first,
 * because the exchange can end during the callback. */
static void tell_head(segue_exchange *exchange, const sgi_buf *out)
{
    segue_http_field fields[SGI_HTTP_FIELDS];
    sgi_http_fields answer = exchange->answer;
    const segue_exchange_events *events = &exchange->events;
    sgi_buf_init(&exchange->answer.text, answer.text.mem);
    exchange->head = HEAD_GIVEN;
    sgi_http_show_fields(&answer, fields);
    sgi_user_code_begin(sgi_exchange_engine(exchange));
    events->on_head(events->user, exchange, answer.status, fields, answer.count,
                    out->len ? out->p : "", out->len);
    sgi_user_code_end(sgi_exchange_engine(exchange));
    sgi_buf_free(&answer.text);
}

static void tell_body(segue_exchange *exchange, const sgi_buf *out)
{
    const segue_exchange_events *events = &exchange->events;
    sgi_user_code_begin(sgi_exchange_engine(exchange));
    events->on_body(events->user, exchange, out->p, out->len);
    sgi_user_code_end(sgi_exchange_engine(exchange));
}

/* Gives the output to the application. */
static void give_output(segue_exchange *exchange)
{
    sgi_buf out = exchange->out;
    sgi_buf_init(&exchange->out, out.mem);
    exchange->given_out += out.len;
    if (exchange->head == HEAD_MADE)
        tell_head(exchange, &out);
    else
        tell_body(exchange, &out);
    sgi_buf_free(&out);
}

static int32_t tell_room(segue_exchange *exchange)
{
    const segue_exchange_events *events = &exchange->events;
    exchange->room = ROOM_OPEN;
    if (!events->on_room)
        return 0;
    sgi_user_code_begin(sgi_exchange_engine(exchange));
    events->on_room(events->user, exchange);
    sgi_user_code_end(sgi_exchange_engine(exchange));
    return 1;
}

static int32_t tell_end(segue_exchange *exchange)
{
    const segue_exchange_events *events = &exchange->events;
    exchange->life = LIFE_TOLD;
    sgi_user_code_begin(sgi_exchange_engine(exchange));
    events->on_end(events->user, exchange, exchange->status);
    sgi_user_code_end(sgi_exchange_engine(exchange));
    return 1 + sgi_user_data_free(sgi_exchange_engine(exchange), events->free_user,
                                  events->user);
}

int32_t sgi_exchange_run_callbacks(sgi_ready_object *ready, int32_t budget)
{
    segue_exchange *exchange = SGI_OWNER(ready, segue_exchange, ready);
    int32_t ran = 0;
    (void)budget;
    if (exchange->life == LIFE_TOLD)
        return 0;
    for (; has_output(exchange); ran++)
        give_output(exchange);
    if (exchange->room == ROOM_DUE && exchange->life == LIFE_SERVED)
        ran += tell_room(exchange);
    if (exchange->life != LIFE_OVER && exchange->life != LIFE_DROPPED)
        return ran;
    sgi_ready_queue_remove(sgi_exchange_engine(exchange), &exchange->ready);
    ran += tell_end(exchange);
    sgi_serve_unref_context(exchange->context);
    exchange->context = NULL;
    sgi_http_exchange_unref(exchange);
    return ran;
}
