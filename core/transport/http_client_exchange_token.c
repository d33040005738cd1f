/* A client exchange that waits for an access token: before its first sending, or after
 * the server has refused its token. Many exchanges can wait for the same token. A refused
 * request had no effect on the server, so the client sends the request again with a new
 * token.
 *
 * FLOWS_MAX limits the authorization flows that one request waits for after refusals. A
 * server can ask for one scope and then for another scope, but not without end. While a
 * request waits for a token, its time limit in the engine is suspended, because the user
 * can be slow. A request fails for good only when authorization is refused. When the
 * authorization server cannot be reached, the client sends the request again, as often as
 * the session may reconnect. */
#include "transport/http_client_exchange.h"

#define FLOWS_MAX 3

bool sgi_client_exchange_wants_token(sgi_client_exchange *exchange)
{
    sgi_http_auth *auth = exchange->client->auth;
    if (!auth)
        return false;
    bool wait = sgi_flow_before_request(sgi_http_auth_flow(auth)) == SGI_FLOW_WAIT;
    exchange->waits_for_token = wait;
    sgi_exchange_set_held(exchange->conn, wait);
    if (wait)
        sgi_http_auth_do_next_step(auth);
    return wait;
}

void sgi_client_exchange_on_token_accepted(sgi_client_exchange *exchange)
{
    sgi_http_auth *auth = exchange->client->auth;
    if (!auth)
        return;
    exchange->flows = 0;
    if (exchange->response.status < 300)
        sgi_flow_on_token_accepted(sgi_http_auth_flow(auth), exchange->token);
}

static void shut_out(sgi_client_exchange *exchange, const char *why)
{
    sgi_exchange_set_held(exchange->conn, false);
    sgi_exchange_on_access_refused(exchange->conn, exchange->response.status, why);
    sgi_client_exchange_drop(exchange, why);
}

/* Handles a request whose authorization flow ended without a token. Ends the request if
 * the authorization server refused, and otherwise sends the request again later. */
static void turn_away(sgi_client_exchange *exchange, segue_status status, const char *why)
{
    if (status == SEGUE_E_UNAUTHORIZED)
        shut_out(exchange, why);
    else
        sgi_client_exchange_put_off(exchange, why);
}

bool sgi_client_exchange_retry_with_new_token(sgi_client_exchange *exchange)
{
    sgi_http_auth *auth = exchange->client->auth;
    if (!auth || (exchange->response.status != 401 && exchange->response.status != 403))
        return false;
    sgi_flow *flow = sgi_http_auth_flow(auth);
    if (exchange->flows == FLOWS_MAX) {
        shut_out(exchange, "the server refuses every new access token");
        return true;
    }
    switch (sgi_flow_on_token_refused(flow, exchange->response.status,
                                      sgi_buf_str(&exchange->challenge),
                                      exchange->token)) {
    case SGI_FLOW_OTHER:
        return false;
    case SGI_FLOW_NO:
        turn_away(exchange, sgi_flow_status(flow), sgi_flow_failure_text(flow));
        return true;
    case SGI_FLOW_GO:
        exchange->flows++;
        sgi_buf_reset(&exchange->response.body, 0);
        sgi_client_exchange_send_when_ready(exchange);
        return true;
    case SGI_FLOW_WAIT:
        exchange->flows++;
        sgi_buf_reset(&exchange->response.body, 0);
        exchange->waits_for_token = true;
        sgi_exchange_set_held(exchange->conn, true);
        sgi_http_auth_do_next_step(auth);
        return true;
    }
    return false;
}

static sgi_client_exchange *next_waiting(sgi_http_client *client)
{
    sgi_client_exchange *exchange;
    TAILQ_FOREACH(exchange, &client->exchanges, link)
        if (exchange->waits_for_token)
            return exchange;
    return NULL;
}

void sgi_client_exchanges_on_token_flow_ended(sgi_http_client *client)
{
    sgi_client_exchange *exchange;
    sgi_flow *flow = sgi_http_auth_flow(client->auth);
    segue_status status = sgi_flow_status(flow);
    char why[SGI_FLOW_WHY_SIZE];
    memcpy(why, sgi_flow_failure_text(flow), sizeof why);
    while ((exchange = next_waiting(client))) {
        exchange->waits_for_token = false;
        if (status != SEGUE_OK)
            turn_away(exchange, status, why);
        else
            sgi_client_exchange_send_when_ready(exchange);
        if (sgi_flow_next_need(flow) != SGI_FLOW_NOTHING)
            /* a new authorization flow has begun; the remaining requests wait for this
             * flow */
            return;
    }
}
