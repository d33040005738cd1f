/* A transport of the application. The loop thread calls its functions without the
 * lock, one at a time. feed, writable and closed may be called on any thread. They
 * only record the call under the lock, and the loop handles it as SGI_WORK_OWN.
 *
 *     OPEN --closed()--> the fed bytes are read --> LOST --reopen--> OPEN
 *       \--own close: output sent, vtable->close--> CLOSING --closed()--> gone
 *
 * Output: the bytes of `rest` are passed to vtable->send. Bytes that send does not
 * accept wait until the application calls writable(). The application may call
 * writable() while send still runs, so `room` records the call: `room` is cleared
 * before each send and checked after it.
 *
 * Input: feed fills `inbox`. The loop moves the bytes to `reading` and passes them on
 * in pieces while the conversation wants input. When more than max_queue_bytes wait,
 * feed refuses more, and vtable->pause(0) tells the application later when to
 * continue. Otherwise pause is called only when the state changes. */
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
    bool finishing;   /* vtable->close is due once all output is sent */
    bool said_closed; /* the application has called closed() for this connection */
    bool room;        /* the application has called writable() since the last send */
    bool blocked;     /* send accepted fewer bytes than it was given */
    bool sending;     /* vtable->send is running */
    bool paused;      /* the last value with which vtable->pause was called */
    /* segue_transport_feed refused a call since the last check */
    bool refused;
    sgi_buf inbox;
    sgi_buf reading;
    size_t read; /* number of bytes of `reading` that were passed to the conversation */
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

/* Sends the bytes of `rest`. Returns true when all of them were sent. The caller holds
 * the lock; it is released during each send. */
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
        sgi_conn_output(sgi_transport_conn(transport), &c->rest);
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

/* Passes the waiting input to the conversation while the conversation wants input. */
static void read_inbox(custom *c)
{
    sgi_conn *conn = sgi_transport_conn(&c->base);
    bool wanted = sgi_conn_wants_input(conn);
    while (wanted && take_inbox(c)) {
        size_t len = c->reading.len - c->read;
        if (len > FEED_BYTES)
            len = FEED_BYTES;
        size_t at = c->read;
        c->read += len;
        sgi_conn_add_input(conn, c->reading.p + at, len);
        wanted = sgi_conn_wants_input(conn);
    }
    bool full = !wanted || waiting(c) > max_waiting(c);
    if (c->refused && !full)
        c->paused = true; /* the answer of feed has told the application to pause */
    c->refused = false;
    tell_pause(c, full);
}

/* Handles a call of closed(), after all input that was fed before this call is read. */
static void lose(custom *c)
{
    if (c->stage == LOST || c->stage == WAITING)
        return;
    bool closing = c->stage == CLOSING;
    c->stage = LOST;
    c->inbox.len = c->reading.len = c->read = 0;
    c->rest.len = c->sent = 0;
    c->blocked = false;
    sgi_conn_lost(sgi_transport_conn(&c->base),
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
        /* new output may have been queued while send ran */
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
    /* feed may have been called while the conversation started; the loop then handles
     * the fed input in its next turn */
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

/* Frees the application's object. A transport that was never attached is released on
 * its owner's thread. This thread must not record that it is inside a function of a
 * transport, because the record belongs to the loop thread. The lock is released while
 * the application's function runs, so another thread may free the runtime in the
 * meantime; the owner then frees the transport's memory. */
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
    sgi_release(mem, c, sizeof *c);
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
        sgi_release(mem, c, sizeof *c);
    else
        *out = &c->base;
    return status;
}

/* ---- functions for any thread ---- */

/* Checks that the application may call feed, writable or closed now. The caller holds
 * the lock. */
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
    sgi_buf_cut(&c->inbox, before);
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
