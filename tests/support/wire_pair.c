/* Wires in this process. The test itself is the transport, and passes the bytes directly
 * to the server. */
#include "support/world_inside.h"

#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static void on_start(void *self, segue_transport *transport)
{
    (void)self;
    (void)transport;
}

static size_t on_send(void *self, const char *bytes, size_t len)
{
    wire *c = self;
    if (c->stalled)
        return 0;
    wire_received(c, bytes, len);
    return len;
}

static void on_close(void *self)
{
    wire *c = self;
    c->closed = 1;
    segue_transport_closed(c->transport);
}

static void on_gone(void *self)
{
    wire *c = self;
    c->detached = 1;
}

static void connect(wire *c)
{
    segue_transport_vtable vtable = SEGUE_TRANSPORT_VTABLE_INIT;
    vtable.start = on_start;
    vtable.send = on_send;
    vtable.close = on_close;
    vtable.free = on_gone;
    assert_int_equal(segue_transport_custom(c->w->runtime, &vtable, c, &c->transport),
                     SEGUE_OK);
    assert_int_equal(segue_server_attach(c->w->server, c->transport, NULL), SEGUE_OK);
    world_run(c->w);
}

static void cut(wire *c)
{
    if (!c->detached) /* otherwise the other side has ended and freed the transport */
        segue_transport_closed(c->transport);
    world_run(c->w);
    c->closed = 1;
}

static void stall(wire *c)
{
    if (!c->stalled && !c->closed) /* a closed transport is freed soon */
        segue_transport_writable(c->transport);
}

static void feed(wire *c, const char *bytes, size_t len)
{
    assert_int_equal(segue_transport_feed(c->transport, bytes, len), SEGUE_OK);
}

static void send_line(wire *c, const char *text, size_t len)
{
    world *w = c->w;
    for (size_t at = 0; at < len;) {
        size_t n = len - at;
        if (w->drive == WORLD_BYTES && len < 4096)
            n = 1;
        else if (w->drive == WORLD_RANDOM)
            n = 1 + world_chance(w, 64);
        if (n > len - at)
            n = len - at;
        feed(c, text + at, n);
        at += n;
        if (w->drive != WORLD_WHOLE && world_chance(w, 8) == 0)
            segue_runtime_dispatch(w->runtime, 0, 0, NULL);
    }
}

static int look(wire *c)
{
    (void)c;
    return 0;
}

/* Sets the pointer to NULL, because a later transport may have the same address. */
static void lose(wire *c)
{
    if (!c->w->runtime)
        c->transport = NULL;
    c->detached = 1;
}

static void nothing(wire *c)
{
    (void)c;
}

const wire_ops wire_pair = {connect, cut, stall, send_line, feed, look, lose, nothing};
