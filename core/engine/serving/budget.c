/* Counting only: no queue and no waiting. What a limit refuses is answered at once, and
 * counted (stats.h). An operation on a store is never failed by the limit of bytes: what
 * is durable leaves memory, so its producer is made to wait instead (sgi_op_is_full).
 * It waits from half of the limit on, so that a task which writes faster than its store
 * does not keep its own caller's requests out. */
#include "engine/serving/budget.h"

#include "engine/serving/peer.h"

const char *sgi_budget_refuses(const sgi_peer *peer, bool begins, int32_t *http_status)
{
    const segue_server_options *o = &peer->server->options;
    const sgi_use *own = &peer->who->use, *all = &peer->server->use;
    const char *of_own = NULL, *of_all = NULL;
    if (own->requests >= o->max_principal_requests)
        of_own = "You have too many requests in flight";
    else if (begins && own->bytes >= (size_t)o->max_principal_bytes)
        of_own = "Your requests in flight hold too many bytes";
    else if (all->requests >= o->max_server_requests)
        of_all = "The server has too many requests in flight";
    else if (begins && all->bytes >= (size_t)o->max_server_bytes)
        of_all = "The server's requests in flight hold too many bytes";
    if (of_own || of_all)
        *http_status = of_own ? 429 : 503;
    return of_own ? of_own : of_all;
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
