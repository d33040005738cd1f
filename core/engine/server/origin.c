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
    return origin ? sizeof *origin + origin->len : 0;
}

static size_t bytes_of(const sgi_http_request_head *head)
{
    size_t bytes = 0;
    sgi_str name, value;
    for (size_t i = 0; head->at(head->user, i, &name, &value); i++)
        bytes += name.n + value.n + 2;
    return bytes;
}

/* Returns an origin with room for the headers, and without a header. */
static sgi_origin *make(sgi_engine *engine, sgi_origin *before, size_t bytes)
{
    if (before && before->refs == 1 && before->cap >= bytes &&
        before->cap <= SGI_THRESHOLD(origin_reuse_bytes)) {
        sgi_origin_drop_context(before);
        before->count = before->len = 0;
        return before;
    }
    sgi_origin_unref(before);
    sgi_origin *origin = sgi_alloc(sgi_engine_mem(engine), sizeof *origin + bytes);
    if (origin)
        *origin = (sgi_origin){.refs = 1, .engine = engine, .cap = bytes};
    return origin;
}

static void add(sgi_origin *origin, sgi_str text)
{
    if (text.n)
        memcpy(origin->text + origin->len, text.p, text.n);
    origin->text[origin->len + text.n] = 0;
    origin->len += text.n + 1;
}

static void lower(char *text)
{
    for (; *text; text++)
        if (*text >= 'A' && *text <= 'Z')
            *text = (char)(*text | 0x20);
}

bool sgi_peer_set_origin(sgi_peer *peer, const sgi_http_request_head *head)
{
    sgi_str name, value;
    sgi_origin *before = peer->origin;
    peer->origin = NULL;
    if (!head->at) {
        sgi_origin_unref(before);
        return true;
    }
    sgi_origin *origin = make(peer->server->engine, before, bytes_of(head));
    if (!origin)
        return false;
    for (size_t i = 0; head->at(head->user, i, &name, &value); i++) {
        size_t at = origin->len;
        add(origin, name);
        lower(origin->text + at);
        add(origin, value);
        origin->count++;
    }
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

static sgi_str text_at(const sgi_origin *origin, size_t *at)
{
    sgi_str text = sgi_str_of(origin->text + *at);
    *at += text.n + 1;
    return text;
}

bool sgi_origin_header_at(const sgi_origin *origin, size_t i, sgi_str *name,
                          sgi_str *value)
{
    size_t at = 0;
    if (!origin || i >= origin->count)
        return false;
    for (size_t n = 0; n <= i; n++) {
        *name = text_at(origin, &at);
        *value = text_at(origin, &at);
    }
    return true;
}

bool sgi_origin_header(const sgi_origin *origin, sgi_str name, size_t i, sgi_str *value)
{
    size_t at = 0, seen = 0;
    for (size_t n = 0; origin && n < origin->count; n++) {
        sgi_str here = text_at(origin, &at);
        *value = text_at(origin, &at);
        if (sgi_http1_same_ignoring_case(here, name) && seen++ == i)
            return true;
    }
    return false;
}
