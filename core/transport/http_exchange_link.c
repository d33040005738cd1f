/* The side of the connection: the exchange is its link. */
#include "transport/http_exchange_state.h"

static segue_exchange *exchange_of(const sgi_link *link)
{
    return SGI_OWNER((void *)(uintptr_t)link, segue_exchange, link);
}

static void drop_output(segue_exchange *exchange)
{
    if (exchange->head == HEAD_MADE)
        exchange->head = HEAD_NONE;
    sgi_buf_free(&exchange->answer.text);
    sgi_buf_free(&exchange->out);
}

/* Ends the exchange for the connection, which must not use its link any more. */
static void end(segue_exchange *exchange, segue_status status)
{
    bool is_left = exchange->life == LIFE_LEFT;
    exchange->conn = NULL;
    exchange->life = is_left ? LIFE_DROPPED : LIFE_OVER;
    exchange->status = is_left || exchange->head == HEAD_NONE ? SEGUE_E_CLOSED : status;
    sgi_buf_free(&exchange->inbox);
    if (status != SEGUE_OK)
        drop_output(exchange);
    sgi_exchange_queue_callbacks(exchange);
    sgi_http_exchange_unref(exchange);
}

/* Has the failure of memory for output reported. */
static bool report_loss(segue_exchange *exchange)
{
    if (!sgi_exchange_is_output_lost(exchange))
        return false;
    sgi_exchange_ask_for_work(exchange);
    return true;
}

void sgi_exchange_take_head(sgi_link *link, const sgi_http_answer_head *head)
{
    segue_exchange *exchange = exchange_of(link);
    sgi_http_list_head(&exchange->answer, head);
    exchange->head = HEAD_MADE;
    if (!report_loss(exchange))
        sgi_exchange_queue_callbacks(exchange);
}

static bool link_write(sgi_link *link, const char *bytes, size_t len)
{
    segue_exchange *exchange = exchange_of(link);
    sgi_buf_add(&exchange->out, bytes, len);
    if (report_loss(exchange))
        return false;
    exchange->owed += len;
    exchange->blocked = sgi_exchange_is_full(exchange);
    sgi_exchange_queue_callbacks(exchange);
    return !exchange->blocked;
}

static uint64_t link_output_progress(const sgi_link *link)
{
    return exchange_of(link)->sent;
}

static void link_set_reading(sgi_link *link, bool on)
{
    segue_exchange *exchange = exchange_of(link);
    exchange->unread = !on;
    if (on)
        sgi_exchange_ask_for_work(exchange);
}

static void link_close(sgi_link *link)
{
    segue_exchange *exchange = exchange_of(link);
    end(exchange, sgi_exchange_is_output_lost(exchange) ? SEGUE_E_CLOSED : SEGUE_OK);
}

static void link_abort(sgi_link *link)
{
    end(exchange_of(link), SEGUE_E_CLOSED);
}

static void link_get_peer(const sgi_link *link, sgi_link_peer *peer)
{
    *peer = exchange_of(link)->peer;
}

static bool link_add_cert_subject(const sgi_link *link, sgi_buf *into)
{
    (void)link;
    (void)into;
    return false;
}

static bool link_is_ready(const sgi_link *link)
{
    (void)link;
    return true;
}

/* Gives the waiting input to the connection. */
static void give_input(segue_exchange *exchange)
{
    const sgi_link_events *events = &sgi_http_conn_link_events;
    while (exchange->conn && !exchange->unread && exchange->inbox.len) {
        /* the application can feed more while the connection handles these bytes */
        sgi_buf bytes = exchange->inbox;
        sgi_buf_init(&exchange->inbox, bytes.mem);
        events->bytes(exchange->conn, bytes.p, bytes.len);
        sgi_buf_free(&bytes);
    }
    if (exchange->conn && exchange->body == BODY_WHOLE && !exchange->inbox.len) {
        exchange->body = BODY_ENDED;
        events->ended(exchange->conn);
    }
    if (exchange->conn && exchange->room == ROOM_OWED && !exchange->inbox.len) {
        exchange->room = ROOM_DUE;
        sgi_exchange_queue_callbacks(exchange);
    }
}

/* Does what the application has asked for, on the thread that does the work of the
 * connection. */
static void link_work(sgi_link *link)
{
    segue_exchange *exchange = exchange_of(link);
    const sgi_link_events *events = &sgi_http_conn_link_events;
    sgi_http_conn *conn = exchange->conn;
    exchange->refs++;
    if (exchange->life == LIFE_LEFT || sgi_exchange_is_output_lost(exchange)) {
        end(exchange, SEGUE_E_CLOSED);
        events->closed(conn, exchange->life == LIFE_DROPPED
                                 ? "the application's connection is gone"
                                 : "out of memory");
    } else if (exchange->listener->is_open) {
        if (exchange->blocked && !sgi_exchange_is_full(exchange)) {
            exchange->blocked = false;
            events->writable(conn);
        }
        give_input(exchange);
    }
    sgi_http_exchange_unref(exchange);
}

const sgi_link_ops sgi_exchange_link_ops = {
    .write = link_write,
    .output_progress = link_output_progress,
    .set_reading = link_set_reading,
    .close = link_close,
    .abort = link_abort,
    .get_peer = link_get_peer,
    .add_cert_subject = link_add_cert_subject,
    .is_ready = link_is_ready,
    .work = link_work,
};
