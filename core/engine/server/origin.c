/* Every POST over HTTP gives its peer an origin, because only the message says whether
 * it makes a call. A peer therefore uses the memory of its last origin again, as long as
 * no call has it. */
#include "engine/server/origin.h"

#include "base/thresholds.h"
#include "wire/http1_text.h"

/* ---- the context of the application ---- */

struct sgi_app_context {
    int32_t refs;
    sgi_engine *engine;
    sgi_ready_object ready;
    void *user;
    segue_free_fn free_user;
};

static int32_t end_context(sgi_ready_object *ready, int32_t budget)
{
    sgi_app_context *context = SGI_OWNER(ready, sgi_app_context, ready);
    sgi_engine *engine = context->engine;
    segue_free_fn free_user = context->free_user;
    void *user = context->user;
    (void)budget;
    sgi_free(sgi_engine_mem(engine), context, sizeof *context);
    return sgi_user_data_free(engine, free_user, user);
}

sgi_app_context *sgi_serve_new_context(sgi_engine *engine, void *user,
                                       segue_free_fn free_user)
{
    sgi_app_context *context = sgi_zalloc(sgi_engine_mem(engine), sizeof *context);
    if (!context)
        return NULL;
    context->refs = 1;
    context->engine = engine;
    context->ready.run = end_context;
    context->user = user;
    context->free_user = free_user;
    return context;
}

void sgi_serve_unref_context(sgi_app_context *context)
{
    if (context && --context->refs == 0)
        sgi_ready_queue_add(context->engine, &context->ready);
}

void sgi_serve_free_unused_context(sgi_app_context *context)
{
    if (context)
        sgi_free(sgi_engine_mem(context->engine), context, sizeof *context);
}

void *sgi_app_context_user(const sgi_app_context *context)
{
    return context->user;
}

/* ---- making and freeing ---- */

void sgi_origin_unref(sgi_origin *origin)
{
    if (!origin || --origin->refs)
        return;
    sgi_serve_unref_context(origin->context);
    sgi_free(sgi_engine_mem(origin->engine), origin, sizeof *origin + origin->cap);
}

void sgi_origin_drop_context(sgi_origin *origin)
{
    if (!origin)
        return;
    sgi_serve_unref_context(origin->context);
    origin->context = NULL;
}

size_t sgi_origin_size(const sgi_origin *origin)
{
    return origin ? sizeof *origin + origin->headers->size : 0;
}

/* Returns an origin with room for a copy of `cap` bytes, without a context. */
static sgi_origin *make(sgi_engine *engine, sgi_origin *before, size_t cap)
{
    if (before && before->refs == 1 && before->cap >= cap &&
        before->cap <= SGI_THRESHOLD(origin_reuse_bytes)) {
        sgi_origin_drop_context(before);
        return before;
    }
    sgi_origin_unref(before);
    sgi_origin *origin = sgi_alloc(sgi_engine_mem(engine), sizeof *origin + cap);
    if (!origin)
        return NULL;
    *origin = (sgi_origin){.refs = 1,
                           .engine = engine,
                           .headers = (sgi_http1_copy *)(origin + 1),
                           .cap = cap};
    return origin;
}

bool sgi_peer_set_origin(sgi_peer *peer, const sgi_http_request_head *head)
{
    sgi_origin *before = peer->origin;
    peer->origin = NULL;
    if (!head->all) {
        sgi_origin_unref(before);
        return true;
    }
    sgi_origin *origin =
        make(peer->server->engine, before, sgi_http1_copy_size(head->all));
    if (!origin)
        return false;
    sgi_http1_copy_fill(origin->headers, head->all);
    origin->context = head->context;
    if (origin->context)
        origin->context->refs++;
    peer->origin = origin;
    return true;
}

void sgi_peer_take_origin(sgi_peer *peer, sgi_peer *from)
{
    peer->origin = from->origin;
    from->origin = NULL;
}

void sgi_op_set_origin_of(sgi_op *op, const sgi_peer *peer)
{
    op->served->origin = peer->origin;
    if (!peer->origin)
        return;
    peer->origin->refs++;
    sgi_op_hold_bytes(op, sgi_origin_size(peer->origin));
}

/* ---- reading ---- */

bool sgi_origin_header_at(sgi_origin *origin, size_t i, sgi_str *name, sgi_str *value)
{
    return origin && sgi_http1_copy_header_at(origin->headers, i, name, value);
}

bool sgi_origin_header(sgi_origin *origin, sgi_str name, size_t i, sgi_str *value)
{
    sgi_str here;
    size_t seen = 0;
    for (size_t n = 0; sgi_origin_header_at(origin, n, &here, value); n++)
        if (sgi_http1_same_ignoring_case(here, name) && seen++ == i)
            return true;
    return false;
}
