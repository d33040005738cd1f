/* A transport that the application implements. The loop thread calls the application's
 * functions without the lock, one at a time. Any thread may call feed, writable and
 * closed. These three only record the call under the lock and request the work
 * SGI_WORK_OWN, in which the loop handles the record.
 *
 *     OPEN --closed()--> the fed bytes are read --> LOST --reopen--> OPEN
 *       \--own close: output sent, vtable->close--> CLOSING --closed()--> gone
 *
 * Output: the loop passes the bytes of `rest` to vtable->send. Bytes that send does not
 * accept wait until the application calls writable(). The application may call
 * writable() while send still runs, so the flag `room` records the call: the loop clears
 * `room` before each send and checks it after the send.
 *
 * Input: feed fills `inbox`. The loop moves the bytes to `reading` and passes them on
 * in pieces while the conversation wants input. When more than max_queue_bytes wait,
 * feed refuses further bytes. The loop then calls vtable->pause(0) (continue) when
 * there is room again, even if no pause(1) preceded it. Apart from this case, pause is
 * called only when its argument differs from that of the last call. */
#include "transport/transport.h"

#include "base/thresholds.h"

#define FEED_BYTES SGI_THRESHOLD(custom_feed_bytes)
#define MAX_SEND SGI_THRESHOLD(custom_send_bytes)

typedef enum stage { WAITING = 0, OPEN, LOST, CLOSING } stage;

typedef struct custom {
    segue_transport base;
    segue_transport_vtable vtable;
    void *self;
    stage stage;
    bool finishing;   /* true = vtable->close is called once all output is sent */
    bool said_closed; /* true = the application has called closed() for this connection */
    /* true = the application has called writable() since the last send */
    bool room;
    bool blocked; /* true = the last send accepted fewer bytes than it was given */
    bool sending; /* vtable->send is running */
    bool paused;  /* the value with which vtable->pause was called last */
    /* true = segue_transport_feed has refused bytes since read_inbox ran last */
    bool refused;
    sgi_buf inbox;
    sgi_buf reading;
    /* number of bytes of `reading` that were already passed to the conversation */
    size_t read;
    sgi_buf rest;
    size_t sent;
} custom;

static custom *custom_of(segue_transport *transport)
{
    return SGI_OWNER(transport, custom, base);
}

static segue_runtime *runtime_of(const custom *c)
{
    return sgi_transport_runtime(&c->base);
}

static size_t max_waiting(const custom *c)
{
    return sgi_engine_max_queue(sgi_runtime_engine(runtime_of(c)));
}

static size_t waiting(const custom *c)
{
    return c->inbox.len + (c->reading.len - c->read);
}

/* ---- output ---- */

/* Sends the bytes of `rest`. Returns true when all bytes were sent. The caller holds the
 * lock, which is released during each call of vtable->send. */
static bool send_rest(custom *c)
{
    while (c->sent < c->rest.len) {
        size_t len = c->rest.len - c->sent;
        if (len > MAX_SEND)
            len = MAX_SEND;
        c->room = false;
        c->sending = true;
        sgi_runtime_user_code_begin(runtime_of(c));
        size_t took = c->vtable.send(c->self, c->rest.p + c->sent, len);
        sgi_runtime_user_code_end(runtime_of(c));
        c->sending = false;
        c->sent += took < len ? took : len;
        if (took < len && !c->room) {
            c->blocked = true;
            return false;
        }
    }
    c->rest.len = c->sent = 0;
    return true;
}

static void close_user(custom *c)
{
    if (c->stage != OPEN)
        return;
    c->stage = CLOSING;
    sgi_runtime_user_code_begin(runtime_of(c));
    c->vtable.close(c->self);
    sgi_runtime_user_code_end(runtime_of(c));
}

static void flush(segue_transport *transport)
{
    custom *c = custom_of(transport);
    if (c->stage != OPEN || c->blocked || c->said_closed)
        return;
    if (!c->rest.len)
        sgi_conn_take_output(sgi_transport_conn(transport), &c->rest);
    if (!c->rest.len) {
        if (c->finishing)
            close_user(c);
    } else if (send_rest(c) && c->finishing) {
        sgi_carrier_request_work(&transport->carrier, SGI_WORK_FLUSH);
    }
}

/* ---- input ---- */

static void tell_pause(custom *c, bool paused)
{
    if (c->paused == paused)
        return;
    c->paused = paused;
    if (!c->vtable.pause)
        return;
    sgi_runtime_user_code_begin(runtime_of(c));
    c->vtable.pause(c->self, paused);
    sgi_runtime_user_code_end(runtime_of(c));
}

static bool take_inbox(custom *c)
{
    if (c->read < c->reading.len)
        return true;
    sgi_buf filled = c->inbox;
    sgi_buf_reset(&c->reading, max_waiting(c));
    c->inbox = c->reading;
    c->reading = filled;
    c->read = 0;
    return c->reading.len > 0;
}

/* Output does not hold up the last input of a connection that the application has closed:
 * nothing sends that output any more. */
static bool wants_input(const custom *c)
{
    sgi_conn *conn = sgi_transport_conn(&c->base);
    if (c->said_closed)
        sgi_conn_drop_output(conn);
    return sgi_conn_wants_input(conn);
}

/* Passes the waiting input to the conversation while the conversation wants input. */
static void read_inbox(custom *c)
{
    sgi_conn *conn = sgi_transport_conn(&c->base);
    bool wanted = wants_input(c);
    while (wanted && take_inbox(c)) {
        size_t len = c->reading.len - c->read;
        if (len > FEED_BYTES)
            len = FEED_BYTES;
        size_t at = c->read;
        c->read += len;
        sgi_conn_add_input(conn, c->reading.p + at, len);
        wanted = wants_input(c);
    }
    bool full = !wanted || waiting(c) > max_waiting(c);
    if (c->refused && !full)
        /* feed has refused bytes, so the application knows that it has to pause
         * without a call of vtable->pause(1) */
        c->paused = true;
    c->refused = false;
    tell_pause(c, full);
}

/* Handles a call of closed() once all bytes that were fed before that call are read. */
static void lose(custom *c)
{
    if (c->stage == LOST || c->stage == WAITING)
        return;
    bool closing = c->stage == CLOSING;
    c->stage = LOST;
    c->inbox.len = c->reading.len = c->read = 0;
    c->rest.len = c->sent = 0;
    c->blocked = false;
    sgi_conn_on_lost(sgi_transport_conn(&c->base),
                     "the application has closed the transport");
    if (closing || c->finishing || !c->base.carrier.can_reopen)
        sgi_transport_end(&c->base);
}

static void poke(segue_transport *transport)
{
    custom *c = custom_of(transport);
    if (c->stage == OPEN || c->stage == CLOSING)
        read_inbox(c);
    if (c->room && c->blocked) {
        c->blocked = false;
        flush(transport);
        /* new output can have been queued while vtable->send ran */
        sgi_carrier_request_work(&transport->carrier, SGI_WORK_FLUSH);
    }
    if (c->said_closed && (!waiting(c) || c->stage == CLOSING))
        lose(c);
}

/* ---- opening and closing ---- */

static void open_up(custom *c)
{
    c->stage = OPEN;
    c->paused = false;
    sgi_conn_start(sgi_transport_conn(&c->base));
    /* the application can have called feed while the conversation started; the loop
     * handles the fed bytes in its next turn */
    sgi_carrier_request_work(&c->base.carrier, SGI_WORK_OWN);
}

static void start(segue_transport *transport)
{
    custom *c = custom_of(transport);
    sgi_runtime_user_code_begin(runtime_of(c));
    c->vtable.start(c->self, transport);
    sgi_runtime_user_code_end(runtime_of(c));
    open_up(c);
}

static void reopen(segue_transport *transport)
{
    custom *c = custom_of(transport);
    if (c->stage != LOST)
        return;
    c->said_closed = false;
    sgi_runtime_user_code_begin(runtime_of(c));
    int32_t refused = c->vtable.reopen(c->self);
    sgi_runtime_user_code_end(runtime_of(c));
    if (refused)
        sgi_transport_end(transport);
    else
        open_up(c);
}

static void finish(segue_transport *transport)
{
    custom *c = custom_of(transport);
    c->finishing = true;
    if (c->stage == LOST)
        sgi_transport_end(transport);
    else
        flush(transport);
}

/* Frees the application's object. For an attached transport, sgi_runtime_user_code_begin
 * and _end record that the loop thread runs the application's code. For a transport that
 * was never attached, the owner's thread makes the call, so nothing is recorded. The lock
 * is released while the application's function runs, so another thread can free the
 * runtime in the meantime; the owner then frees the transport's memory. */
static void release(segue_transport *transport)
{
    custom *c = custom_of(transport);
    segue_runtime *rt = runtime_of(c);
    void (*free_self)(void *) = c->vtable.free;
    void *self = c->self;
    c->vtable.free = NULL;
    if (!free_self)
        return;
    if (transport->carrier.attached) {
        sgi_runtime_user_code_begin(rt);
        free_self(self);
        sgi_runtime_user_code_end(rt);
    } else {
        sgi_runtime_unlock(rt);
        free_self(self);
        sgi_runtime_lock(rt);
    }
}

static void destroy(segue_transport *transport)
{
    custom *c = custom_of(transport);
    const sgi_mem *mem = sgi_engine_mem(sgi_runtime_engine(runtime_of(c)));
    sgi_buf_free(&c->inbox);
    sgi_buf_free(&c->reading);
    sgi_buf_free(&c->rest);
    sgi_free(mem, c, sizeof *c);
}

static const sgi_transport_ops ops = {
    .start = start,
    .reopen = reopen,
    .resume = poke,
    .poke = poke,
    .flush = flush,
    .close = finish,
    .release = release,
    .destroy = destroy,
};

segue_status sgi_transport_custom(segue_runtime *rt, const segue_transport_vtable *vtable,
                                  void *self, segue_transport **out)
{
    const sgi_mem *mem = sgi_engine_mem(sgi_runtime_engine(rt));
    if (!vtable->start || !vtable->send || !vtable->close)
        return SEGUE_E_INVALID;
    custom *c = sgi_zalloc(mem, sizeof *c);
    if (!c)
        return SEGUE_E_NOMEM;
    c->vtable = *vtable;
    c->self = self;
    sgi_buf_init(&c->inbox, mem);
    sgi_buf_init(&c->reading, mem);
    sgi_buf_init(&c->rest, mem);
    segue_status status =
        sgi_transport_init(&c->base, rt, &ops, vtable->reopen != NULL, SGI_LINGER_MS);
    if (status != SEGUE_OK)
        sgi_free(mem, c, sizeof *c);
    else
        *out = &c->base;
    return status;
}

/* ---- functions for any thread ---- */

/* Checks whether the application may call feed, writable or closed now. Returns
 * SEGUE_E_STATE before the transport is attached, and SEGUE_E_CLOSED after its end. The
 * caller holds the lock. */
static segue_status check_call(const custom *c)
{
    if (c->base.state == SGI_TRANSPORT_NEW)
        return SEGUE_E_STATE;
    bool closed = c->base.state == SGI_TRANSPORT_CLOSED || c->said_closed;
    return closed ? SEGUE_E_CLOSED : SEGUE_OK;
}

static segue_status put_in_inbox(custom *c, const char *bytes, size_t len)
{
    size_t before = c->inbox.len;
    if (waiting(c) > max_waiting(c)) {
        c->refused = true;
        return SEGUE_E_WOULD_BLOCK;
    }
    sgi_buf_add(&c->inbox, bytes, len);
    if (!c->inbox.failed)
        return SEGUE_OK;
    sgi_buf_truncate(&c->inbox, before);
    return SEGUE_E_NOMEM;
}

segue_status sgi_transport_feed(segue_transport *transport, const char *bytes, size_t len)
{
    if (transport->ops != &ops || (len && !bytes))
        return SEGUE_E_INVALID;
    custom *c = custom_of(transport);
    segue_runtime *rt = runtime_of(c);
    sgi_runtime_lock(rt);
    segue_status status = check_call(c);
    if (status == SEGUE_OK)
        status = put_in_inbox(c, bytes, len);
    if (status == SEGUE_OK)
        sgi_carrier_request_work(&transport->carrier, SGI_WORK_OWN);
    sgi_runtime_unlock(rt);
    return status;
}

segue_status sgi_transport_writable(segue_transport *transport)
{
    if (transport->ops != &ops)
        return SEGUE_E_INVALID;
    custom *c = custom_of(transport);
    segue_runtime *rt = runtime_of(c);
    sgi_runtime_lock(rt);
    segue_status status = check_call(c);
    if (status == SEGUE_OK) {
        c->room = true;
        if (!c->sending)
            sgi_carrier_request_work(&transport->carrier, SGI_WORK_OWN);
    }
    sgi_runtime_unlock(rt);
    return status;
}

segue_status sgi_transport_closed(segue_transport *transport)
{
    if (transport->ops != &ops)
        return SEGUE_E_INVALID;
    custom *c = custom_of(transport);
    segue_runtime *rt = runtime_of(c);
    sgi_runtime_lock(rt);
    segue_status status = check_call(c);
    if (status == SEGUE_OK) {
        c->said_closed = true;
        sgi_carrier_request_work(&transport->carrier, SGI_WORK_OWN);
    }
    sgi_runtime_unlock(rt);
    return status;
}
