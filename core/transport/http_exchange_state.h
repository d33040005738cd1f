/* The state of an exchange by hand; private to the files of the exchange, and read by
 * nobody else.
 *
 * An exchange has two sides. The connection of the listener (http_conn.c) uses it as its
 * link, on the loop thread, or while the loop waits on the thread that releases the lock
 * (sgi_carrier.is_free). The application gives input on any thread, and gets the answer
 * in callbacks.
 *
 *   input    head, at the beginning --> connection
 *            inbox --work--> connection, which reads the body
 *   output   connection --> answer, out --callbacks--> on_head, on_body, on_end
 *
 * No head is written as text: the request's head is filled from the application's parts
 * (wire/http1_head.h), and the answer's head comes as fields (http_answer.h). Framing and
 * headers about a connection are left out: the application's server has handled them.
 *
 * Output is limited by `owed`: the bytes that were written and that the application has
 * not sent yet. At exchange_window_bytes the connection waits, as for a socket that takes
 * no bytes.
 *
 *   life   SERVED --leave--> LEFT           the application's connection is gone
 *             |end             |end         the connection has closed its link
 *           OVER --leave--> DROPPED
 *             '---------------'--on_end--> TOLD
 *   body   COMES --end--> WHOLE --the connection knows--> ENDED
 *   room   OPEN --feed is refused--> OWED --the inbox is empty--> DUE --on_room--> OPEN
 *   head   NONE --the connection makes it--> MADE --on_head--> GIVEN;  lost: -> NONE
 *
 * The exchange has three references: the application's handle, the connection until it
 * closes its link, and the callbacks until on_end has run. */
#ifndef SGI_HTTP_EXCHANGE_STATE_H
#define SGI_HTTP_EXCHANGE_STATE_H

#include "base/thresholds.h"
#include "transport/http_conn.h"
#include "transport/http_exchange.h"
#include "transport/http_exchange_text.h"

typedef enum exchange_life {
    LIFE_SERVED = 0,
    LIFE_LEFT,    /* the connection has to learn that nobody takes the answer */
    LIFE_OVER,    /* the rest of the output and on_end are due */
    LIFE_DROPPED, /* on_end alone is due */
    LIFE_TOLD
} exchange_life;

typedef enum exchange_body { BODY_COMES = 0, BODY_WHOLE, BODY_ENDED } exchange_body;
typedef enum exchange_room { ROOM_OPEN = 0, ROOM_OWED, ROOM_DUE } exchange_room;
typedef enum exchange_head { HEAD_NONE = 0, HEAD_MADE, HEAD_GIVEN } exchange_head;

struct segue_exchange {
    sgi_handle handle; /* the first member */
    sgi_link link;
    int32_t refs;
    /* not to be used after the connection has closed its link */
    segue_listener *listener;
    /* the connection; NULL = it has closed its link, in LIFE_OVER and later */
    sgi_http_conn *conn;
    sgi_http_given given;
    char *principal;
    char *bound;
    sgi_app_context *context; /* a reference until on_end has run; may be NULL */
    sgi_link_peer peer;
    segue_exchange_events events;
    sgi_ready_object ready;
    exchange_life life;
    segue_status status; /* of on_end */

    sgi_buf inbox;
    exchange_body body;
    exchange_room room;
    bool unread; /* true = the connection wants no input now */

    exchange_head head;
    sgi_http_fields answer;
    sgi_buf out;
    uint64_t owed;      /* bytes of `out` and of callbacks that are not sent yet */
    uint64_t given_out; /* bytes of callbacks that are not sent yet */
    uint64_t sent;
    bool blocked; /* true = the connection waits until bytes were sent */
};

/* In http_exchange_link.c: the side of the connection. */
extern const sgi_link_ops sgi_exchange_link_ops;
void sgi_exchange_take_head(sgi_link *link, const sgi_http_answer_head *head);
/* In http_exchange_answer.c: gives the application what is due. */
int32_t sgi_exchange_run_callbacks(sgi_ready_object *ready, int32_t budget);

static inline sgi_engine *sgi_exchange_engine(const segue_exchange *exchange)
{
    return exchange->handle.engine;
}

static inline void sgi_exchange_queue_callbacks(segue_exchange *exchange)
{
    sgi_ready_queue_add(sgi_exchange_engine(exchange), &exchange->ready);
}

static inline void sgi_exchange_ask_for_work(segue_exchange *exchange)
{
    sgi_carrier_request_work(&exchange->conn->transport.carrier, SGI_WORK_OWN);
}

/* True when the application has to send before more output comes. */
static inline bool sgi_exchange_is_full(const segue_exchange *exchange)
{
    return exchange->owed >= SGI_THRESHOLD(exchange_window_bytes);
}

/* Continues an answer that has waited, if enough of it was sent. */
static inline void sgi_exchange_go_on(segue_exchange *exchange)
{
    if (exchange->conn && exchange->blocked && !sgi_exchange_is_full(exchange))
        sgi_exchange_ask_for_work(exchange);
}

/* True while output may be given to the application. */
static inline bool sgi_exchange_is_taking(const segue_exchange *exchange)
{
    return exchange->life == LIFE_SERVED || exchange->life == LIFE_OVER;
}

static inline bool sgi_exchange_is_output_lost(const segue_exchange *exchange)
{
    return exchange->out.failed || exchange->answer.text.failed;
}

#endif
