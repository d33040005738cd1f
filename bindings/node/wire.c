/* Transports of JavaScript's own (transportCustom). The library calls the table on its
 * I/O thread, which must not meet JavaScript: each call leaves a note in the side queue,
 * and runtimeDispatch returns it as an event. What JavaScript says comes by a Wire, which
 * TRANSPORT_START hands over and which stays safe to use when the transport is gone.
 *
 *   transport   set by start, cleared by free; looked at under the mutex, which is held
 *               while the library is called, so that it cannot go in between
 *   queued      bytes handed to JavaScript that it has not yet said it took: at most
 *               MAX_QUEUED, beyond which send takes nothing
 *   refused     send took less than it was given: transportTook has to ring
 *
 * The wire is held by the table (until free) and by the value in JavaScript. */
#include "addon.h"

#include <stdlib.h>

#define MAX_QUEUED ((size_t)1024 * 1024)

struct sgnode_wire {
    _Atomic int refs;
    pthread_mutex_t mutex;
    segue_transport *transport;
    sgnode_user *user;
    sgnode_host *host;
    size_t queued;
    bool refused;
};

void sgnode_wire_free(void *opaque)
{
    sgnode_wire *wire = opaque;
    if (atomic_fetch_sub(&wire->refs, 1) != 1)
        return;
    pthread_mutex_destroy(&wire->mutex);
    free(wire);
}

napi_value sgnode_wire_show(sgnode_user *user)
{
    atomic_fetch_add(&user->wire->refs, 1);
    return sgnode_wrap(user->host->self, SGNODE_WIRE, user->wire, user->host);
}

/* ---- the table; any thread ---- */

static void note(sgnode_wire *wire, int kind, int64_t number)
{
    sgnode_side_put(wire->host, kind, wire->user, number, NULL, 0);
}

static void start(void *self, segue_transport *transport)
{
    sgnode_wire *wire = self;
    pthread_mutex_lock(&wire->mutex);
    wire->transport = transport;
    pthread_mutex_unlock(&wire->mutex);
    note(wire, SGNODE_TRANSPORT_START, 0);
}

static size_t send_bytes(void *self, const char *bytes, size_t len)
{
    sgnode_wire *wire = self;
    pthread_mutex_lock(&wire->mutex);
    size_t room = MAX_QUEUED - wire->queued;
    size_t took = len < room ? len : room;
    if (took &&
        !sgnode_side_put(wire->host, SGNODE_TRANSPORT_SEND, wire->user, 0, bytes, took))
        took = 0;
    wire->queued += took;
    wire->refused |= took < len;
    pthread_mutex_unlock(&wire->mutex);
    return took;
}

static void close_wire(void *self)
{
    note(self, SGNODE_TRANSPORT_CLOSE, 0);
}

static void pause_wire(void *self, int32_t paused)
{
    note(self, SGNODE_TRANSPORT_PAUSE, paused);
}

static int32_t reopen_wire(void *self)
{
    note(self, SGNODE_TRANSPORT_REOPEN, 0);
    return 0;
}

static void free_wire(void *self)
{
    sgnode_wire *wire = self;
    pthread_mutex_lock(&wire->mutex);
    wire->transport = NULL;
    pthread_mutex_unlock(&wire->mutex);
    note(wire, SGNODE_TRANSPORT_FREE, 0); /* the user goes with this event */
    sgnode_wire_free(wire);
}

/* ---- JavaScript's side ---- */

static sgnode_wire *make_wire(sgnode_frame *frame, sgnode_host *host, napi_value handler)
{
    sgnode_user *user;
    if (!sgnode_user_new(frame, host, handler, &user))
        return NULL;
    sgnode_wire *wire = calloc(1, sizeof *wire);
    if (!wire) {
        sgnode_user_free(user);
        sgnode_throw(frame, SEGUE_E_NOMEM);
        return NULL;
    }
    wire->refs = 1;
    wire->user = user;
    wire->host = host;
    user->wire = wire;
    pthread_mutex_init(&wire->mutex, NULL);
    return wire;
}

static napi_value transport_custom(sgnode_frame *frame)
{
    segue_transport_vtable table;
    segue_transport *transport;
    sgnode_host *host;
    bool reopen;
    segue_runtime *runtime =
        sgnode_unwrap_of(frame, frame->arg[0], SGNODE_RUNTIME, &host);
    if (!runtime || !sgnode_flag(frame, frame->arg[2], &reopen))
        return NULL;
    sgnode_wire *wire = make_wire(frame, host, frame->arg[1]);
    if (!wire)
        return NULL;
    segue_struct_init(&table, sizeof table, SEGUE_STRUCT_TRANSPORT_VTABLE);
    table.start = start;
    table.send = send_bytes;
    table.close = close_wire;
    table.pause = pause_wire;
    table.reopen = reopen ? reopen_wire : NULL;
    table.free = free_wire;
    segue_status status = segue_transport_custom(runtime, &table, wire, &transport);
    if (status == SEGUE_OK)
        return sgnode_wrap(frame->self, SGNODE_TRANSPORT, transport, host);
    sgnode_user_free(wire->user);
    sgnode_wire_free(wire);
    return sgnode_throw(frame, status);
}

/* Calls the library while the transport is there. */
typedef segue_status (*tell_fn)(segue_transport *transport, const char *bytes,
                                size_t len);

static segue_status tell_feed(segue_transport *transport, const char *bytes, size_t len)
{
    return segue_transport_feed(transport, bytes, len);
}

static segue_status tell_writable(segue_transport *transport, const char *bytes,
                                  size_t len)
{
    (void)bytes;
    (void)len;
    return segue_transport_writable(transport);
}

static segue_status tell_closed(segue_transport *transport, const char *bytes, size_t len)
{
    (void)bytes;
    (void)len;
    return segue_transport_closed(transport);
}

static segue_status tell(sgnode_wire *wire, tell_fn fn, const char *bytes, size_t len)
{
    pthread_mutex_lock(&wire->mutex);
    segue_status status =
        wire->transport ? fn(wire->transport, bytes, len) : SEGUE_E_CLOSED;
    pthread_mutex_unlock(&wire->mutex);
    return status;
}

static napi_value transport_feed(sgnode_frame *frame)
{
    const char *bytes;
    size_t len;
    sgnode_wire *wire = sgnode_unwrap(frame, frame->arg[0], SGNODE_WIRE);
    if (!wire || !sgnode_view(frame, frame->arg[1], false, &bytes, &len))
        return NULL;
    return sgnode_sent(frame, tell(wire, tell_feed, bytes, len));
}

static napi_value transport_took(sgnode_frame *frame)
{
    int64_t count;
    sgnode_wire *wire = sgnode_unwrap(frame, frame->arg[0], SGNODE_WIRE);
    if (!wire || !sgnode_int64(frame, frame->arg[1], 0, &count))
        return NULL;
    pthread_mutex_lock(&wire->mutex);
    bool good = count >= 0 && (size_t)count <= wire->queued;
    if (good)
        wire->queued -= (size_t)count;
    bool ring = good && wire->refused && wire->queued <= MAX_QUEUED / 2;
    if (ring)
        wire->refused = false;
    pthread_mutex_unlock(&wire->mutex);
    if (!good)
        return sgnode_throw(frame, SEGUE_E_INVALID);
    if (ring)
        tell(wire, tell_writable, NULL, 0); /* one that is gone needs no bell */
    return NULL;
}

static napi_value transport_writable(sgnode_frame *frame)
{
    sgnode_wire *wire = sgnode_unwrap(frame, frame->arg[0], SGNODE_WIRE);
    return wire ? sgnode_done(frame, tell(wire, tell_writable, NULL, 0)) : NULL;
}

static napi_value transport_closed(sgnode_frame *frame)
{
    sgnode_wire *wire = sgnode_unwrap(frame, frame->arg[0], SGNODE_WIRE);
    return wire ? sgnode_done(frame, tell(wire, tell_closed, NULL, 0)) : NULL;
}

const sgnode_row sgnode_wire_rows[] = {
    {"transportCustom", transport_custom}, {"transportFeed", transport_feed},
    {"transportTook", transport_took},     {"transportWritable", transport_writable},
    {"transportClosed", transport_closed}, {NULL, NULL},
};
