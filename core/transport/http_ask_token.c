/* A request that needs a token waits for it, before it goes and when the server has
 * refused it; many wait for the same one. With the token it goes again, for what a server
 * refuses so it has not done.
 *
 * A request waits for FLOWS_MAX flows because it was refused: a server may want one scope
 * and then another, but not forever. Meanwhile its time in the engine stands still: it is
 * the user who is slow. Only a refusal ends it for good: where the authorization server
 * is out of reach it comes again, as often and as long as it may reconnect. */
#include "transport/http_ask.h"

#define FLOWS_MAX 3

bool sgi_http_ask_wants_token(sgi_http_ask *ask)
{
    sgi_http_auth *auth = ask->client->auth;
    if (!auth)
        return false;
    bool wait = sgi_flow_prepare(sgi_http_auth_flow(auth)) == SGI_FLOW_WAIT;
    ask->waits_for_token = wait;
    sgi_ask_hold(ask->conn, wait);
    if (wait)
        sgi_http_auth_drive(auth);
    return wait;
}

void sgi_http_ask_admitted(sgi_http_ask *ask)
{
    sgi_http_auth *auth = ask->client->auth;
    if (!auth)
        return;
    ask->flows = 0;
    if (ask->status < 300)
        sgi_flow_accepted(sgi_http_auth_flow(auth), ask->token);
}

static void shut_out(sgi_http_ask *ask, const char *why)
{
    sgi_ask_hold(ask->conn, false);
    sgi_ask_unauthorized(ask->conn, ask->status, why);
    sgi_http_ask_drop(ask, why);
}

/* The flow has ended without a token. */
static void turn_away(sgi_http_ask *ask, segue_status status, const char *why)
{
    if (status == SEGUE_E_UNAUTHORIZED)
        shut_out(ask, why);
    else
        sgi_http_ask_put_off(ask, why);
}

bool sgi_http_ask_renew(sgi_http_ask *ask)
{
    sgi_http_auth *auth = ask->client->auth;
    if (!auth || (ask->status != 401 && ask->status != 403))
        return false;
    sgi_flow *flow = sgi_http_auth_flow(auth);
    if (ask->flows == FLOWS_MAX) {
        shut_out(ask, "the server refuses each token anew");
        return true;
    }
    switch (
        sgi_flow_refused(flow, ask->status, sgi_buf_str(&ask->challenge), ask->token)) {
    case SGI_FLOW_OTHER:
        return false;
    case SGI_FLOW_NO:
        turn_away(ask, sgi_flow_status(flow), sgi_flow_why(flow));
        return true;
    case SGI_FLOW_GO:
        ask->flows++;
        sgi_buf_reset(&ask->body, 0);
        sgi_http_ask_depart(ask);
        return true;
    case SGI_FLOW_WAIT:
        ask->flows++;
        sgi_buf_reset(&ask->body, 0);
        ask->waits_for_token = true;
        sgi_ask_hold(ask->conn, true);
        sgi_http_auth_drive(auth);
        return true;
    }
    return false;
}

static sgi_http_ask *next_waiting(sgi_http_client *client)
{
    sgi_http_ask *ask;
    TAILQ_FOREACH(ask, &client->asks, link)
        if (ask->waits_for_token)
            return ask;
    return NULL;
}

void sgi_http_ask_admit(sgi_http_client *client)
{
    sgi_http_ask *ask;
    sgi_flow *flow = sgi_http_auth_flow(client->auth);
    segue_status status = sgi_flow_status(flow);
    char why[SGI_FLOW_WHY_SIZE];
    memcpy(why, sgi_flow_why(flow), sizeof why);
    while ((ask = next_waiting(client))) {
        ask->waits_for_token = false;
        if (status != SEGUE_OK)
            turn_away(ask, status, why);
        else
            sgi_http_ask_depart(ask);
        if (sgi_flow_next(flow) != SGI_FLOW_NOTHING)
            return; /* the next flow has begun; who still waits, waits for that */
    }
}
