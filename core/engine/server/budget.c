/* Checks the limits of requests in flight and of bytes in memory. A request over a limit
 * is refused at once and counted in the statistics (stats.h); no request waits in a
 * queue. The limit of bytes never ends a stored operation, because the durable entries of
 * the operation leave memory. Instead, the handler of a stored operation has to wait
 * (sgi_op_handler_must_wait) as soon as half of the limit is used. So a task that writes
 * faster than its store leaves room for other requests of the same principal. */
#include "engine/server/budget.h"

#include "engine/server/peer.h"

const char *sgi_budget_find_refusal(const sgi_peer *peer, bool begins,
                                    int32_t *http_status, sgi_limit *limit)
{
    const segue_server_options *o = &peer->server->options;
    const sgi_usage *own = &peer->who->use, *all = &peer->server->use;
    *http_status = 429;
    if (own->requests >= o->max_principal_requests) {
        *limit = (sgi_limit){SGI_LIMIT_MAX_PRINCIPAL_REQUESTS, o->max_principal_requests};
        return "You have too many requests in flight";
    }
    if (begins && own->account.bytes >= (size_t)o->max_principal_bytes) {
        *limit = (sgi_limit){SGI_LIMIT_MAX_PRINCIPAL_BYTES, o->max_principal_bytes};
        return "Your requests in flight hold too many bytes";
    }
    *http_status = 503;
    if (all->requests >= o->max_server_requests) {
        *limit = (sgi_limit){SGI_LIMIT_MAX_SERVER_REQUESTS, o->max_server_requests};
        return "The server is handling too many requests";
    }
    if (begins && all->account.bytes >= (size_t)o->max_server_bytes) {
        *limit = (sgi_limit){SGI_LIMIT_MAX_SERVER_BYTES, o->max_server_bytes};
        return "The requests that the server is handling hold too many bytes";
    }
    *http_status = 0;
    return NULL;
}

void sgi_budget_count_request(const sgi_peer *peer, int32_t step)
{
    peer->server->use.requests += step;
    peer->who->use.requests += step;
}

void sgi_budget_count_stream(const sgi_peer *peer, int32_t step)
{
    peer->server->use.streams += step;
    peer->who->use.streams += step;
    if (step > 0)
        peer->server->counts.streams++;
}

void sgi_budget_set_owner(sgi_op *op, struct sgi_principal *who)
{
    segue_server *server = sgi_op_server(op);
    sgi_byte_account *account = &who->use.account;
    op->served->who = who;
    account->above = &server->use.account;
    account->limit =
        (sgi_limit){SGI_LIMIT_MAX_PRINCIPAL_BYTES, server->options.max_principal_bytes};
    account->bytes += op->held;
    op->account = account;
}
