/* Counting only: no queue and no waiting. What a limit refuses is answered at once, and
 * counted (stats.h). An operation on a store is never failed by the limit of bytes: what
 * is durable leaves memory, so its producer is made to wait instead (sgi_op_is_full). */
#include "engine/serving/budget.h"

#include "engine/serving/peer.h"

static bool is_over(const sgi_use *use, int64_t max_requests, int64_t max_bytes)
{
    return use->requests >= max_requests || use->bytes >= (size_t)max_bytes;
}

const char *sgi_budget_refuses(const sgi_peer *peer, int32_t *http_status)
{
    const segue_server_options *o = &peer->server->options;
    if (is_over(&peer->who->use, o->max_principal_requests, o->max_principal_bytes)) {
        *http_status = 429;
        return "You have too many requests in flight";
    }
    if (is_over(&peer->server->use, o->max_server_requests, o->max_server_bytes)) {
        *http_status = 503;
        return "The server has too many requests in flight";
    }
    return NULL;
}

void sgi_budget_request(const sgi_peer *peer, int32_t step)
{
    peer->server->use.requests += step;
    peer->who->use.requests += step;
}

void sgi_budget_own(sgi_op *op, struct sgi_principal *who)
{
    op->who = who;
    who->use.bytes += op->held;
}

bool sgi_budget_allows(const sgi_op *op, size_t bytes)
{
    const segue_server_options *o = &op->server->options;
    return op->server->use.bytes + bytes <= (size_t)o->max_server_bytes &&
           (!op->who || op->who->use.bytes + bytes <= (size_t)o->max_principal_bytes);
}

void sgi_budget_hold(sgi_op *op, size_t bytes)
{
    op->held += bytes;
    op->server->use.bytes += bytes;
    if (op->who)
        op->who->use.bytes += bytes;
}

void sgi_budget_let(sgi_op *op, size_t bytes)
{
    op->held -= bytes;
    op->server->use.bytes -= bytes;
    if (op->who)
        op->who->use.bytes -= bytes;
}
