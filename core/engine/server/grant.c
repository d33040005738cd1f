/* Over HTTP, a request without a required scope is answered with status 403 and a
 * challenge, in every era (2026-07-28 basic/authorization, "Runtime Insufficient Scope
 * Errors"). The JSON-RPC error also names the scopes, for clients that do not see HTTP,
 * and for the messages of a batch, which share one HTTP status.
 *
 * Over HTTP without authorization no caller has a scope, so an item that requires a scope
 * cannot be used. */
#include "engine/server/grant.h"

#include "wire/scopes.h"

/* ---- making and freeing ---- */

sgi_grant *sgi_grant_new(sgi_engine *engine, sgi_principal *who, sgi_str scopes,
                         int64_t expires_ms)
{
    sgi_grant *grant = sgi_alloc(sgi_engine_mem(engine), sizeof *grant + scopes.n + 1);
    if (!grant)
        return NULL;
    *grant = (sgi_grant){1, engine, who, expires_ms, scopes.n};
    if (scopes.n)
        memcpy(grant->scopes, scopes.p, scopes.n);
    grant->scopes[scopes.n] = 0;
    if (who)
        sgi_principal_ref(who);
    return grant;
}

sgi_grant *sgi_serve_new_grant(segue_server *server, const char *principal,
                               sgi_str scopes, int64_t expires_ms)
{
    sgi_principal *who = sgi_server_get_principal(server, principal);
    if (!who)
        return NULL;
    sgi_grant *grant = sgi_grant_new(server->engine, who, scopes, expires_ms);
    sgi_principal_unref(who);
    return grant;
}

void sgi_grant_ref(sgi_grant *grant)
{
    grant->refs++;
}

void sgi_grant_unref(sgi_grant *grant)
{
    if (!grant || --grant->refs)
        return;
    if (grant->who)
        sgi_principal_unref(grant->who);
    sgi_free(sgi_engine_mem(grant->engine), grant, sizeof *grant + grant->len + 1);
}

sgi_principal *sgi_grant_principal(const sgi_grant *grant)
{
    return grant->who;
}

int64_t sgi_grant_expires(const sgi_grant *grant)
{
    return grant->expires_ms;
}

sgi_str sgi_grant_scopes(const sgi_grant *grant)
{
    return (sgi_str){grant->scopes, grant->len};
}

void sgi_peer_set_grant(sgi_peer *peer, sgi_grant *grant)
{
    if (grant)
        sgi_grant_ref(grant);
    sgi_grant_unref(peer->grant);
    peer->grant = grant;
}

void sgi_op_set_grant_of(sgi_op *op, const sgi_peer *peer)
{
    op->served->is_scoped = peer->is_exchange;
    op->served->grant = peer->grant;
    if (op->served->grant)
        sgi_grant_ref(op->served->grant);
}

/* ---- scopes ---- */

/* Sends an error with the data {"reason":"insufficient_scope","scope":<scopes>}. */
static void answer_refusal(const sgi_inbound *in, sgi_str scopes)
{
    sgi_conn *conn = in->peer->conn;
    sgi_buf data;
    sgi_buf_init(&data, sgi_engine_mem(conn->engine));
    sgi_jw w = sgi_jw_to(&data);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "reason", SGI_STR("insufficient_scope"));
    sgi_jw_member_string(&w, "scope", scopes);
    sgi_jw_close(&w, '}');
    sgi_send_error(conn, in->id, SGI_RPC_INVALID_REQUEST,
                   SGI_STR("The access token lacks a required scope"),
                   data.failed ? (sgi_json){0} : sgi_buf_str(&data));
    sgi_buf_free(&data);
}

bool sgi_peer_may_use_item(const sgi_peer *peer, const sgi_item *item)
{
    sgi_str scopes = sgi_str_of(item ? item->scopes : NULL);
    return !scopes.n || !peer->is_exchange ||
           (peer->grant && sgi_scopes_cover(sgi_grant_scopes(peer->grant), scopes));
}

bool sgi_inbound_may_use_item(const sgi_inbound *in, const sgi_item *item)
{
    sgi_conn *conn = in->peer->conn;
    if (sgi_peer_may_use_item(in->peer, item))
        return true;
    sgi_str scopes = sgi_str_of(item->scopes);
    if (conn->frames == SGI_FRAMES_OPEN && !conn->batches) {
        sgi_text_free(sgi_engine_mem(conn->engine), conn->lacks);
        conn->lacks = sgi_text_dup(sgi_engine_mem(conn->engine), scopes);
        conn->http_status = 403;
    }
    answer_refusal(in, scopes);
    return false;
}

bool sgi_op_has_scope(const sgi_op *op, sgi_str scope)
{
    return !op->served->is_scoped ||
           (op->served->grant &&
            sgi_scopes_have(sgi_grant_scopes(op->served->grant), scope));
}
