/* Two connected ends in one runtime. An end passes its output to the other end while
 * the other end wants input. Output that the other end does not want yet stays at the
 * sender; when the other end resumes reading, the sender continues. A call of the engine
 * never passes output on: the loop passes it on, a limited amount per turn.
 *
 *     NEW -- attach --> open -- own close: after the output is passed on --> gone
 *                         \---- the other end is gone: lost -----------------/
 *
 * `other` is NULL when the other end is gone; the pointers of both ends are cleared
 * under the lock. */
#include "transport/transport.h"

#include "base/thresholds.h"

#define FEED_BYTES SGI_THRESHOLD(pair_feed_bytes)
#define RUN_BYTES SGI_THRESHOLD(pair_run_bytes)

typedef struct pair_end {
    segue_transport base;
    struct pair_end *other;
    bool open;
    bool closing;
    /* output of the conversation; the bytes from position `at` on were not passed on
     * yet */
    sgi_buf rest;
    size_t at;
} pair_end;

static pair_end *end_of(segue_transport *transport)
{
    return SGI_OWNER(transport, pair_end, base);
}

/* Fetches output from the conversation if `rest` is empty. Returns true when there is
 * output to pass on. */
static bool take_output(pair_end *from)
{
    if (from->at < from->rest.len)
        return true;
    from->rest.len = from->at = 0;
    sgi_conn_take_output(sgi_transport_conn(&from->base), &from->rest);
    return from->rest.len > 0;
}

static void hand_over(pair_end *from, pair_end *to)
{
    size_t len = from->rest.len - from->at;
    if (len > FEED_BYTES)
        len = FEED_BYTES;
    const char *bytes = from->rest.p + from->at;
    from->at += len;
    sgi_conn_add_input(sgi_transport_conn(&to->base), bytes, len);
}

static void pump(segue_transport *transport)
{
    pair_end *from = end_of(transport);
    pair_end *to = from->other;
    size_t run = 0;
    if (!from->open || !to || !to->open)
        return;
    while (take_output(from)) {
        if (!sgi_conn_wants_input(sgi_transport_conn(&to->base)))
            return;
        if (run >= RUN_BYTES) {
            sgi_carrier_request_work(&transport->carrier, SGI_WORK_FLUSH);
            return;
        }
        size_t before = from->at;
        hand_over(from, to);
        run += from->at - before;
    }
    if (from->closing)
        sgi_transport_end(transport);
}

static void start(segue_transport *transport)
{
    pair_end *end = end_of(transport);
    end->open = true;
    sgi_conn_start(sgi_transport_conn(transport));
    if (!end->other)
        sgi_carrier_request_work(&transport->carrier, SGI_WORK_OWN);
    else if (end->other->open)
        sgi_carrier_request_work(&end->other->base.carrier, SGI_WORK_FLUSH);
}

static void resume(segue_transport *transport)
{
    pair_end *end = end_of(transport);
    if (end->other)
        pump(&end->other->base);
}

static void poke(segue_transport *transport)
{
    pair_end *end = end_of(transport);
    if (end->other || !end->open)
        return;
    sgi_conn_on_lost(sgi_transport_conn(transport), "the other end was closed");
    sgi_transport_end(transport);
}

static void finish(segue_transport *transport)
{
    pair_end *end = end_of(transport);
    end->closing = true;
    if (end->other && end->other->base.carrier.attached)
        /* if the other end has not started yet, it fetches the output when it starts */
        pump(transport);
    else
        /* the other end is gone or was not attached, so nothing can take the output */
        sgi_transport_end(transport);
}

static void release(segue_transport *transport)
{
    pair_end *end = end_of(transport);
    pair_end *other = end->other;
    end->open = false;
    end->other = NULL;
    if (!other)
        return;
    other->other = NULL;
    sgi_carrier_request_work(&other->base.carrier, SGI_WORK_OWN);
}

static void destroy(segue_transport *transport)
{
    pair_end *end = end_of(transport);
    const sgi_mem *mem = sgi_engine_mem(sgi_runtime_engine(transport->carrier.runtime));
    sgi_buf_free(&end->rest);
    sgi_free(mem, end, sizeof *end);
}

static const sgi_transport_ops ops = {
    .start = start,
    .resume = resume,
    .poke = poke,
    .flush = pump,
    .close = finish,
    .release = release,
    .destroy = destroy,
};

segue_status sgi_transport_pair(segue_runtime *rt, segue_transport **a,
                                segue_transport **b)
{
    const sgi_mem *mem = sgi_engine_mem(sgi_runtime_engine(rt));
    pair_end *left = sgi_zalloc(mem, sizeof *left);
    pair_end *right = sgi_zalloc(mem, sizeof *right);
    segue_status status = left && right ? SEGUE_OK : SEGUE_E_NOMEM;
    if (status == SEGUE_OK) {
        sgi_buf_init(&left->rest, mem);
        sgi_buf_init(&right->rest, mem);
        status = sgi_transport_init(&left->base, rt, &ops, false, SGI_LINGER_MS);
    }
    if (status == SEGUE_OK) {
        status = sgi_transport_init(&right->base, rt, &ops, false, SGI_LINGER_MS);
        if (status != SEGUE_OK) {
            sgi_transport_free(&left->base);
            left = NULL;
        }
    }
    if (status != SEGUE_OK) {
        sgi_free(mem, left, sizeof *left);
        sgi_free(mem, right, sizeof *right);
        return status;
    }
    left->other = right;
    right->other = left;
    *a = &left->base;
    *b = &right->base;
    return SEGUE_OK;
}
