/* Counting only: no queue and no waiting. What a limit refuses is answered at once, and
 * counted (stats.h). An operation on a store is never failed by the limit of bytes: what
 * is durable leaves memory, so its producer is made to wait instead (sgi_op_is_full).
 * It waits from half of the limit on, so that a task which writes faster than its store
 * does not keep its own caller's requests out. */
#include "engine/serving/budget.h"

#include "engine/serving/peer.h"

const char *sgi_budget_refuses(const sgi_peer *peer, bool begins, int32_t *http_status,
                               sgi_limit *limit)
{
    const segue_server_options *o = &peer->server->options;
    const sgi_use *own = &peer->who->use, *all = &peer->server->use;
    *http_status = 429;
    if (own->requests >= o->max_principal_requests) {
        *limit = (sgi_limit){"max_principal_requests", o->max_principal_requests};
        return "You have too many requests in flight";
    }
    if (begins && own->bytes >= (size_t)o->max_principal_bytes) {
        *limit = (sgi_limit){"max_principal_bytes", o->max_principal_bytes};
        return "Your requests in flight hold too many bytes";
    }
    *http_status = 503;
    if (all->requests >= o->max_server_requests) {
        *limit = (sgi_limit){"max_server_requests", o->max_server_requests};
        return "The server has too many requests in flight";
    }
    if (begins && all->bytes >= (size_t)o->max_server_bytes) {
        *limit = (sgi_limit){"max_server_bytes", o->max_server_bytes};
        return "The server's requests in flight hold too many bytes";
    }
    *http_status = 0;
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

bool sgi_budget_allows(const sgi_op *op, size_t bytes, sgi_limit *limit)
{
    const segue_server_options *o = &op->server->options;
    if (op->server->use.bytes + bytes > (size_t)o->max_server_bytes) {
        *limit = (sgi_limit){"max_server_bytes", o->max_server_bytes};
        return false;
    }
    *limit = (sgi_limit){"max_principal_bytes", o->max_principal_bytes};
    return !op->who || op->who->use.bytes + bytes <= (size_t)o->max_principal_bytes;
}

bool sgi_budget_slows(const sgi_op *op)
{
    const segue_server_options *o = &op->server->options;
    return op->server->use.bytes >= (size_t)o->max_server_bytes / 2 ||
           (op->who && op->who->use.bytes >= (size_t)o->max_principal_bytes / 2);
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
