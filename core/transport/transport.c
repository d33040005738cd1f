/* The part that all transports have in common: creating, attaching and ending a
 * transport, and passing the loop's work to the kind of transport.
 *
 * The loop's work is a set of bits. Handling one bit can end the transport, so each step
 * first checks the state. The memory of an ended transport lives until the end of the
 * turn. A transport reports its end to its conversation in two steps: it calls
 * sgi_conn_on_lost with the reason, if there is a reason, and then sgi_conn_detach.
 * Afterwards the transport must not use the conversation. */
#include "transport/transport.h"

#include <stdio.h>

static bool is_attached(const segue_transport *transport)
{
    return transport->state == SGI_TRANSPORT_ATTACHED;
}

static void step(segue_transport *transport, uint32_t work, uint32_t bit,
                 void (*fn)(segue_transport *))
{
    if ((work & bit) && fn && is_attached(transport))
        fn(transport);
}

static void do_work(sgi_carrier *carrier, uint32_t work)
{
    segue_transport *transport = SGI_OWNER(carrier, segue_transport, carrier);
    const sgi_transport_ops *ops = transport->ops;
    step(transport, work, SGI_WORK_START, ops->start);
    step(transport, work, SGI_WORK_REOPEN, ops->reopen);
    step(transport, work, SGI_WORK_RESUME, ops->resume);
    step(transport, work, SGI_WORK_OWN, ops->poke);
    step(transport, work, SGI_WORK_QUIET, ops->quiet);
    step(transport, work, SGI_WORK_FLUSH, ops->flush);
    step(transport, work, SGI_WORK_CLOSE, ops->close);
}

static void abandon(sgi_carrier *carrier)
{
    segue_transport *transport = SGI_OWNER(carrier, segue_transport, carrier);
    if (is_attached(transport)) {
        sgi_transport_end(transport);
        return;
    }
    transport->state = SGI_TRANSPORT_CLOSED;
    transport->ops->release(transport);
}

static void destroy(sgi_carrier *carrier)
{
    segue_transport *transport = SGI_OWNER(carrier, segue_transport, carrier);
    carrier->magic = 0;
    transport->ops->destroy(transport);
}

static bool flush_here(sgi_carrier *carrier)
{
    segue_transport *transport = SGI_OWNER(carrier, segue_transport, carrier);
    const sgi_transport_ops *ops = transport->ops;
    return ops->flush_here && is_attached(transport) && ops->flush_here(transport);
}

static const sgi_carrier_ops carrier_ops = {
    .work = do_work, .flush_here = flush_here, .abandon = abandon, .destroy = destroy};

segue_status sgi_transport_init(segue_transport *transport, segue_runtime *rt,
                                const sgi_transport_ops *ops, bool can_reopen,
                                int64_t grace_ms)
{
    segue_status status = SEGUE_E_CLOSED;
    transport->ops = ops;
    transport->carrier.magic = SGI_MAGIC_TRANSPORT;
    transport->carrier.ops = &carrier_ops;
    transport->carrier.can_reopen = can_reopen;
    transport->carrier.grace_ms = grace_ms;
    sgi_runtime_lock(rt);
    if (sgi_runtime_is_open(rt)) {
        sgi_carrier_add(rt, &transport->carrier);
        status = SEGUE_OK;
    }
    sgi_runtime_unlock(rt);
    return status;
}

segue_status sgi_transport_attach(segue_transport *transport, sgi_conn *conn)
{
    if (!sgi_runtime_is_open(transport->carrier.runtime))
        return SEGUE_E_CLOSED;
    if (transport->state != SGI_TRANSPORT_NEW)
        return SEGUE_E_STATE;
    transport->state = SGI_TRANSPORT_ATTACHED;
    transport->carrier.conn = conn;
    transport->carrier.attached = true;
    sgi_carrier_request_work(&transport->carrier, SGI_WORK_START);
    return SEGUE_OK;
}

bool sgi_transport_can_reopen(const segue_transport *transport)
{
    return transport->carrier.can_reopen;
}

void sgi_transport_detach(segue_transport *transport)
{
    sgi_conn *conn = transport->carrier.conn;
    transport->carrier.conn = NULL;
    if (conn)
        sgi_conn_detach(conn);
}

void sgi_transport_end(segue_transport *transport)
{
    if (!is_attached(transport))
        return;
    sgi_transport_detach(transport);
    transport->state = SGI_TRANSPORT_CLOSED;
    sgi_carrier_retire(&transport->carrier);
    transport->ops->release(transport);
}

void sgi_transport_free(segue_transport *transport)
{
    if (!transport)
        return;
    segue_runtime *rt = transport->carrier.runtime;
    sgi_runtime_lock(rt);
    if (!is_attached(transport)) {
        if (transport->state == SGI_TRANSPORT_NEW)
            transport->ops->release(transport);
        sgi_carrier_drop(&transport->carrier);
    }
    sgi_runtime_unlock(rt);
}

/* strerror_r of glibc returns the text. That of other C libraries writes it into room. */
const char *sgi_transport_describe(int fault, char *room, size_t size)
{
#ifdef __GLIBC__
    return strerror_r(fault, room, size);
#else
    return strerror_r(fault, room, size) ? "unknown reason" : room;
#endif
}

void sgi_transport_explain(char why[SGI_WHY_SIZE], const char *what, int fault)
{
    char text[96];
    snprintf(why, SGI_WHY_SIZE, "%s: %s", what,
             sgi_transport_describe(fault, text, sizeof text));
}
