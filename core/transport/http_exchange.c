/* The side of the application: begins an exchange, and gives it input and news of its
 * connection. The states are in http_exchange_state.h. */
#include "transport/http_exchange.h"

#include <stdio.h>

#include "transport/http_exchange_state.h"

void sgi_http_exchange_unref(segue_exchange *exchange)
{
    if (--exchange->refs)
        return;
    const sgi_mem *mem = sgi_engine_mem(sgi_exchange_engine(exchange));
    exchange->handle.magic = SGI_MAGIC_FREED;
    sgi_text_free(mem, exchange->principal);
    sgi_text_free(mem, exchange->bound);
    sgi_buf_free(&exchange->inbox);
    sgi_buf_free(&exchange->answer.text);
    sgi_buf_free(&exchange->out);
    sgi_free(mem, exchange, sizeof *exchange);
}

/* Frees an exchange that could not be opened. Its context stays with the application. */
static void forget(segue_exchange *exchange)
{
    sgi_serve_free_unused_context(exchange->context);
    sgi_http_exchange_unref(exchange);
}

static segue_exchange *make(segue_listener *listener, const segue_exchange_head *head)
{
    sgi_engine *engine = sgi_runtime_engine(listener->carrier.runtime);
    const sgi_mem *mem = sgi_engine_mem(engine);
    segue_exchange *exchange = sgi_zalloc(mem, sizeof *exchange);
    if (!exchange)
        return NULL;
    exchange->handle = (sgi_handle){SGI_MAGIC_EXCHANGE, engine};
    exchange->link.ops = &sgi_exchange_link_ops;
    exchange->refs = 1;
    exchange->listener = listener;
    exchange->ready.run = sgi_exchange_run_callbacks;
    sgi_buf_init(&exchange->inbox, mem);
    sgi_buf_init(&exchange->answer.text, mem);
    sgi_buf_init(&exchange->out, mem);
    sgi_http_read_peer(head->peer, &exchange->peer);
    exchange->given.secure = exchange->peer.is_tls = head->is_tls != 0;
    exchange->given.local = !head->local || sgi_http_is_local_address(head->local);
    if (head->local)
        exchange->bound = sgi_text_dup(mem, sgi_http_address_in(head->local));
    if (head->context)
        exchange->context =
            sgi_serve_new_context(engine, head->context, head->free_context);
    if (head->principal && *head->principal)
        exchange->principal = sgi_text_dup(mem, sgi_str_of(head->principal));
    exchange->given.bound = sgi_str_of(exchange->bound);
    exchange->given.principal = exchange->principal;
    exchange->given.context = exchange->context;
    exchange->given.take_head = sgi_exchange_take_head;
    if ((!head->local || exchange->bound) && (!head->context || exchange->context) &&
        (!head->principal || !*head->principal || exchange->principal))
        return exchange;
    forget(exchange);
    return NULL;
}

static segue_status refuse(char why[SGI_WHY_SIZE], segue_status status, const char *text)
{
    snprintf(why, SGI_WHY_SIZE, "%s", text);
    return status;
}

static segue_status may_open(const segue_listener *listener,
                             const segue_exchange_head *head, char why[SGI_WHY_SIZE])
{
    if (!listener->by_hand)
        return refuse(why, SEGUE_E_STATE,
                      "the listener has a socket: use one of segue_listener_open");
    if (listener->stage == SGI_LISTENER_SHUT || listener->carrier.retired)
        return refuse(why, SEGUE_E_CLOSED, "the listener is closed");
    if (listener->exchanges >= listener->options.max_connections) {
        sgi_limit limit = {SGI_LIMIT_MAX_CONNECTIONS, listener->options.max_connections};
        sgi_limit_text told =
            sgi_engine_describe_limit(sgi_runtime_engine(listener->carrier.runtime),
                                      "Too many open exchanges", limit, "limit", NULL);
        snprintf(why, SGI_WHY_SIZE, "%.*s", SGI_WHY_SIZE - 1, told.text);
        return SEGUE_E_LIMIT;
    }
    if (head->principal && !sgi_utf8_valid(sgi_str_of(head->principal), NULL))
        return refuse(why, SEGUE_E_INVALID, "the principal is not UTF-8");
    return SEGUE_OK;
}

/* Makes the connection, with the head of the request. */
static segue_status make_conn(segue_exchange *exchange, const segue_exchange_head *given,
                              char why[SGI_WHY_SIZE])
{
    sgi_http1_head head;
    segue_listener *listener = exchange->listener;
    sgi_http1_head_init(&head, listener->room.mem, &listener->limits);
    const char *problem = sgi_http_fill_head(&head, given);
    sgi_buf_add(&exchange->inbox, given->body, given->body_len);
    segue_status status = SEGUE_OK;
    if (head.fault.status == 503 || exchange->inbox.failed)
        status = refuse(why, SEGUE_E_NOMEM, "out of memory");
    else if (problem)
        status = refuse(why, SEGUE_E_INVALID, problem);
    if (status == SEGUE_OK) {
        exchange->conn = sgi_http_conn_open_by_hand(listener, &exchange->link,
                                                    &exchange->given, &head);
        if (!exchange->conn)
            status = refuse(why, SEGUE_E_NOMEM, "out of memory");
    }
    if (status != SEGUE_OK)
        sgi_http1_head_free(&head);
    return status;
}

segue_status sgi_http_exchange_open(segue_listener *listener,
                                    const segue_exchange_head *head,
                                    const segue_exchange_events *events,
                                    segue_exchange **out, char why[SGI_WHY_SIZE])
{
    segue_status status = may_open(listener, head, why);
    if (status != SEGUE_OK)
        return status;
    segue_exchange *exchange = make(listener, head);
    if (!exchange)
        return refuse(why, SEGUE_E_NOMEM, "out of memory");
    status = make_conn(exchange, head, why);
    if (status != SEGUE_OK) {
        forget(exchange);
        return status;
    }
    listener->exchanges++;
    exchange->refs += 2; /* the connection and the callbacks */
    exchange->events = *events;
    exchange->body = head->is_whole ? BODY_WHOLE : BODY_COMES;
    sgi_exchange_ask_for_work(exchange);
    *out = exchange;
    return SEGUE_OK;
}

/* Checks whether the application may give more of the body. */
static segue_status check_input(const segue_exchange *exchange)
{
    if (exchange->life != LIFE_SERVED)
        return SEGUE_E_CLOSED;
    return exchange->body == BODY_COMES ? SEGUE_OK : SEGUE_E_STATE;
}

segue_status sgi_http_exchange_feed(segue_exchange *exchange, const char *bytes,
                                    size_t len)
{
    size_t before = exchange->inbox.len;
    segue_status status = check_input(exchange);
    if (status != SEGUE_OK)
        return status;
    if (before > sgi_engine_max_queue(sgi_exchange_engine(exchange))) {
        exchange->room = ROOM_OWED;
        return SEGUE_E_WOULD_BLOCK;
    }
    sgi_buf_add(&exchange->inbox, bytes, len);
    if (exchange->inbox.failed) {
        sgi_buf_truncate(&exchange->inbox, before);
        return SEGUE_E_NOMEM;
    }
    sgi_exchange_ask_for_work(exchange);
    return SEGUE_OK;
}

segue_status sgi_http_exchange_end(segue_exchange *exchange)
{
    segue_status status = check_input(exchange);
    if (status != SEGUE_OK)
        return status;
    exchange->body = BODY_WHOLE;
    sgi_exchange_ask_for_work(exchange);
    return SEGUE_OK;
}

segue_status sgi_http_exchange_sent(segue_exchange *exchange, size_t len)
{
    if (len > exchange->given_out)
        return SEGUE_E_INVALID;
    exchange->given_out -= len;
    exchange->owed -= len;
    exchange->sent += len;
    sgi_exchange_go_on(exchange);
    return SEGUE_OK;
}

segue_status sgi_http_exchange_closed(segue_exchange *exchange)
{
    if (!sgi_exchange_is_taking(exchange))
        return SEGUE_E_CLOSED;
    if (exchange->life == LIFE_SERVED) {
        exchange->life = LIFE_LEFT;
        sgi_exchange_ask_for_work(exchange);
    } else {
        exchange->life = LIFE_DROPPED;
        sgi_exchange_queue_callbacks(exchange);
    }
    exchange->status = SEGUE_E_CLOSED;
    return SEGUE_OK;
}
