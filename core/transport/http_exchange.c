/* An exchange has two sides. The connection of the listener (http_conn.c) uses it as its
 * link, on the loop thread, or while the loop waits on the thread that releases the lock
 * (sgi_carrier.is_free). The application gives input on any thread, and gets the answer
 * in callbacks.
 *
 *   input    inbox --work--> connection, which parses it
 *   output   connection --> out --callbacks--> on_head, on_body, on_end
 *
 * The head of the request is written as HTTP/1.1, because the parser of the listener then
 * checks it like every other head. Framing and headers about a connection are left out:
 * the application's server has handled them. The head of the answer is read back in the
 * same way from the bytes that the connection writes.
 *
 * Output is limited by `owed`: the bytes that were written and that the application has
 * not sent yet. At WINDOW the connection waits, as for a socket that takes no bytes.
 *
 * The exchange has three references: the application's handle, the connection until it
 * closes its link, and the callbacks until on_end has run. */
#include "transport/http_exchange.h"

#include <stdio.h>

#include "base/thresholds.h"
#include "transport/http_conn.h"
#include "transport/http_exchange_text.h"

#define WINDOW SGI_THRESHOLD(exchange_window_bytes)

struct segue_exchange {
    sgi_handle handle; /* the first member */
    sgi_link link;
    int32_t refs;
    segue_listener
        *listener; /* not to be used after the connection has closed its link */
    /* the connection; NULL = it has closed its link */
    sgi_http_conn *conn;
    sgi_http_given given;
    char *principal;
    char *bound;
    sgi_link_peer peer;
    segue_exchange_events events;
    sgi_ready_object ready;

    sgi_buf inbox;
    bool is_whole; /* true = the body is complete */
    bool is_ended; /* true = the connection knows that the body is complete */
    bool unread;   /* true = the connection wants no input now */
    bool refused;  /* true = feed has refused bytes, so on_room is due later */
    bool has_room; /* true = on_room is to be called */

    sgi_buf out;
    bool head_told;
    uint64_t owed;      /* bytes of `out` and of callbacks that are not sent yet */
    uint64_t given_out; /* bytes of callbacks that are not sent yet */
    uint64_t sent;
    bool blocked; /* true = the connection waits until bytes were sent */

    bool is_gone;        /* true = the application has said that its connection is gone */
    bool is_over;        /* true = the connection has closed its link */
    bool is_told;        /* true = on_end has run */
    segue_status status; /* of on_end */
};

static sgi_engine *engine_of(const segue_exchange *exchange)
{
    return exchange->handle.engine;
}

static segue_exchange *exchange_of(const sgi_link *link)
{
    return SGI_OWNER((void *)(uintptr_t)link, segue_exchange, link);
}

static void queue_callbacks(segue_exchange *exchange)
{
    sgi_ready_queue_add(engine_of(exchange), &exchange->ready);
}

static void ask_for_work(segue_exchange *exchange)
{
    sgi_carrier_request_work(&exchange->conn->transport.carrier, SGI_WORK_OWN);
}

void sgi_http_exchange_unref(segue_exchange *exchange)
{
    if (--exchange->refs)
        return;
    const sgi_mem *mem = sgi_engine_mem(engine_of(exchange));
    exchange->handle.magic = SGI_MAGIC_FREED;
    sgi_text_free(mem, exchange->principal);
    sgi_text_free(mem, exchange->bound);
    sgi_buf_free(&exchange->inbox);
    sgi_buf_free(&exchange->out);
    sgi_free(mem, exchange, sizeof *exchange);
}

/* ---- the side of the connection ---- */

/* Ends the exchange for the connection, which must not use its link any more. */
static void end(segue_exchange *exchange, segue_status status)
{
    bool has_head = exchange->head_told || exchange->out.len;
    exchange->conn = NULL;
    exchange->is_over = true;
    exchange->status = has_head ? status : SEGUE_E_CLOSED;
    sgi_buf_free(&exchange->inbox);
    if (status != SEGUE_OK)
        sgi_buf_free(&exchange->out);
    queue_callbacks(exchange);
    sgi_http_exchange_unref(exchange);
}

static bool link_write(sgi_link *link, const char *bytes, size_t len)
{
    segue_exchange *exchange = exchange_of(link);
    sgi_buf_add(&exchange->out, bytes, len);
    if (exchange->out.failed) {
        ask_for_work(exchange); /* which reports the failure */
        return false;
    }
    exchange->owed += len;
    exchange->blocked = exchange->owed >= WINDOW;
    queue_callbacks(exchange);
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
        ask_for_work(exchange);
}

static void link_close(sgi_link *link)
{
    segue_exchange *exchange = exchange_of(link);
    end(exchange, exchange->out.failed ? SEGUE_E_CLOSED : SEGUE_OK);
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
    if (exchange->conn && exchange->is_whole && !exchange->is_ended &&
        !exchange->inbox.len) {
        exchange->is_ended = true;
        events->ended(exchange->conn);
    }
    if (exchange->conn && exchange->refused && !exchange->inbox.len) {
        exchange->refused = false;
        exchange->has_room = true;
        queue_callbacks(exchange);
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
    if (exchange->is_gone || exchange->out.failed) {
        end(exchange, SEGUE_E_CLOSED);
        events->closed(conn, exchange->is_gone ? "the application's connection is gone"
                                               : "out of memory");
    } else if (exchange->listener->is_open) {
        if (exchange->blocked && exchange->owed < WINDOW) {
            exchange->blocked = false;
            events->writable(conn);
        }
        give_input(exchange);
    }
    sgi_http_exchange_unref(exchange);
}

static const sgi_link_ops ops = {
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

/* ---- callbacks ---- */

/* Gives the head at the beginning of the output, and the rest of the output. */
static void tell_head(segue_exchange *exchange, sgi_buf *out)
{
    sgi_http_read_head head;
    const segue_exchange_events *events = &exchange->events;
    sgi_str body = sgi_http_read_answer_head(out, &head);
    exchange->owed -= out->len - body.n;
    exchange->given_out = body.n;
    exchange->head_told = true;
    if (exchange->conn && exchange->blocked && exchange->owed < WINDOW)
        ask_for_work(exchange);
    sgi_user_code_begin(engine_of(exchange));
    events->on_head(events->user, exchange, head.status, head.fields, head.count, body.p,
                    body.n);
    sgi_user_code_end(engine_of(exchange));
}

static void tell_body(segue_exchange *exchange, const sgi_buf *out)
{
    const segue_exchange_events *events = &exchange->events;
    exchange->given_out += out->len;
    sgi_user_code_begin(engine_of(exchange));
    events->on_body(events->user, exchange, out->p, out->len);
    sgi_user_code_end(engine_of(exchange));
}

/* Gives the output to the application. */
static void give_output(segue_exchange *exchange)
{
    sgi_buf out = exchange->out;
    sgi_buf_init(&exchange->out, out.mem);
    if (exchange->head_told)
        tell_body(exchange, &out);
    else
        tell_head(exchange, &out);
    sgi_buf_free(&out);
}

static int32_t tell_room(segue_exchange *exchange)
{
    const segue_exchange_events *events = &exchange->events;
    exchange->has_room = false;
    if (!events->on_room)
        return 0;
    sgi_user_code_begin(engine_of(exchange));
    events->on_room(events->user, exchange);
    sgi_user_code_end(engine_of(exchange));
    return 1;
}

static int32_t tell_end(segue_exchange *exchange)
{
    const segue_exchange_events *events = &exchange->events;
    exchange->is_told = true;
    sgi_user_code_begin(engine_of(exchange));
    events->on_end(events->user, exchange, exchange->status);
    sgi_user_code_end(engine_of(exchange));
    return 1 + sgi_user_data_free(engine_of(exchange), events->free_user, events->user);
}

static int32_t run_callbacks(sgi_ready_object *ready, int32_t budget)
{
    segue_exchange *exchange = SGI_OWNER(ready, segue_exchange, ready);
    int32_t ran = 0;
    (void)budget;
    if (exchange->is_told)
        return 0;
    for (; exchange->out.len && !exchange->out.failed && !exchange->is_gone; ran++)
        give_output(exchange);
    if (exchange->has_room && exchange->conn && !exchange->is_gone)
        ran += tell_room(exchange);
    if (!exchange->is_over || (exchange->out.len && !exchange->is_gone))
        return ran;
    sgi_ready_queue_remove(engine_of(exchange), &exchange->ready);
    ran += tell_end(exchange);
    sgi_http_exchange_unref(exchange);
    return ran;
}

/* ---- the side of the application ---- */

static segue_exchange *make(segue_listener *listener, const segue_exchange_head *head)
{
    sgi_engine *engine = sgi_runtime_engine(listener->carrier.runtime);
    const sgi_mem *mem = sgi_engine_mem(engine);
    segue_exchange *exchange = sgi_zalloc(mem, sizeof *exchange);
    if (!exchange)
        return NULL;
    exchange->handle = (sgi_handle){SGI_MAGIC_EXCHANGE, engine};
    exchange->link.ops = &ops;
    exchange->refs = 1;
    exchange->listener = listener;
    exchange->ready.run = run_callbacks;
    sgi_buf_init(&exchange->inbox, mem);
    sgi_buf_init(&exchange->out, mem);
    sgi_http_read_peer(head->peer, &exchange->peer);
    exchange->given.secure = exchange->peer.is_tls = head->is_tls != 0;
    exchange->given.local = !head->local || sgi_http_is_local_address(head->local);
    if (head->local)
        exchange->bound = sgi_text_dup(mem, sgi_http_address_in(head->local));
    if (head->principal && *head->principal)
        exchange->principal = sgi_text_dup(mem, sgi_str_of(head->principal));
    exchange->given.bound = sgi_str_of(exchange->bound);
    exchange->given.principal = exchange->principal;
    if ((!head->local || exchange->bound) &&
        (!head->principal || !*head->principal || exchange->principal))
        return exchange;
    sgi_http_exchange_unref(exchange);
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
        snprintf(why, SGI_WHY_SIZE, "Too many open exchanges: max_connections is %d",
                 listener->options.max_connections);
        return SEGUE_E_LIMIT;
    }
    if (head->principal && !sgi_utf8_valid(sgi_str_of(head->principal), NULL))
        return refuse(why, SEGUE_E_INVALID, "the principal is not UTF-8");
    return SEGUE_OK;
}

/* Writes the request into the inbox. */
static segue_status write_request(segue_exchange *exchange,
                                  const segue_exchange_head *head, char why[SGI_WHY_SIZE])
{
    const char *problem = sgi_http_write_request_head(&exchange->inbox, head);
    sgi_buf_add(&exchange->inbox, head->body, head->body_len);
    if (exchange->inbox.failed)
        return refuse(why, SEGUE_E_NOMEM, "out of memory");
    return problem ? refuse(why, SEGUE_E_INVALID, problem) : SEGUE_OK;
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
    status = write_request(exchange, head, why);
    if (status == SEGUE_OK) {
        exchange->conn =
            sgi_http_conn_open_by_hand(listener, &exchange->link, &exchange->given);
        if (!exchange->conn)
            status = refuse(why, SEGUE_E_NOMEM, "out of memory");
    }
    if (status != SEGUE_OK) {
        sgi_http_exchange_unref(exchange);
        return status;
    }
    listener->exchanges++;
    exchange->refs += 2; /* the connection and the callbacks */
    exchange->events = *events;
    exchange->is_whole = head->is_whole != 0;
    ask_for_work(exchange);
    *out = exchange;
    return SEGUE_OK;
}

/* Checks whether the application may give more of the body. */
static segue_status check_input(const segue_exchange *exchange)
{
    if (!exchange->conn || exchange->is_gone)
        return SEGUE_E_CLOSED;
    return exchange->is_whole ? SEGUE_E_STATE : SEGUE_OK;
}

segue_status sgi_http_exchange_feed(segue_exchange *exchange, const char *bytes,
                                    size_t len)
{
    size_t before = exchange->inbox.len;
    segue_status status = check_input(exchange);
    if (status != SEGUE_OK)
        return status;
    if (before > sgi_engine_max_queue(engine_of(exchange))) {
        exchange->refused = true;
        return SEGUE_E_WOULD_BLOCK;
    }
    sgi_buf_add(&exchange->inbox, bytes, len);
    if (exchange->inbox.failed) {
        sgi_buf_truncate(&exchange->inbox, before);
        return SEGUE_E_NOMEM;
    }
    ask_for_work(exchange);
    return SEGUE_OK;
}

segue_status sgi_http_exchange_end(segue_exchange *exchange)
{
    segue_status status = check_input(exchange);
    if (status != SEGUE_OK)
        return status;
    exchange->is_whole = true;
    ask_for_work(exchange);
    return SEGUE_OK;
}

segue_status sgi_http_exchange_sent(segue_exchange *exchange, size_t len)
{
    if (len > exchange->given_out)
        return SEGUE_E_INVALID;
    exchange->given_out -= len;
    exchange->owed -= len;
    exchange->sent += len;
    if (exchange->conn && exchange->blocked && exchange->owed < WINDOW)
        ask_for_work(exchange);
    return SEGUE_OK;
}

segue_status sgi_http_exchange_closed(segue_exchange *exchange)
{
    if (exchange->is_gone || exchange->is_told)
        return SEGUE_E_CLOSED;
    exchange->is_gone = true;
    exchange->status = SEGUE_E_CLOSED;
    if (exchange->conn)
        ask_for_work(exchange);
    else
        queue_callbacks(exchange);
    return SEGUE_OK;
}
