/* resources/subscribe and resources/unsubscribe, in versions that begin with
 * `initialize`. A change of a resource is reported only to its subscribers. The change
 * sets a mark (subscribed_uris.h); a notification is written for the mark when there is
 * room. This file also writes the notifications about changed lists (subscriptions.c).
 *
 * Over a byte stream the conversation has the subscriptions. Over HTTP the session has
 * the subscriptions and gets updates on its GET stream; without a GET stream the marks
 * wait. Marks of lists also wait until the client has sent notifications/initialized. */
#include "engine/server/clients.h"
#include "engine/server/grant.h"
#include "engine/server/wire_session.h"

static sgi_subscribed_uris **subscribed_uris_of(sgi_peer *peer)
{
    if (peer->session)
        return &peer->session->uris;
    return peer->is_exchange ? NULL : &peer->uris;
}

/* ---- subscribing ---- */

static bool read_uri(const sgi_inbound *in, sgi_buf *uri)
{
    sgi_json value = sgi_json_get(in->params, "uri");
    bool ok = sgi_json_decode(value, uri);
    if (uri->failed)
        sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR, "Out of memory", NULL);
    else if (!ok || !uri->len || uri->len > SGI_URI_MAX || memchr(uri->p, 0, uri->len))
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS,
                         "params.uri is not a URI of at most 8192 bytes", NULL);
    else
        return true;
    return false;
}

/* Subscribes to a URI, even if no resource with this URI exists yet. */
static segue_status subscribe(const sgi_inbound *in, sgi_str uri)
{
    sgi_subscribed_uris **uris = subscribed_uris_of(in->peer);
    if (!uris)
        return SEGUE_E_UNSUPPORTED;
    if (!*uris)
        *uris = sgi_subscribed_uris_new(&in->peer->server->engine->env);
    if (!*uris)
        return SEGUE_E_NOMEM;
    size_t before = (*uris)->by_uri.count;
    segue_status status = sgi_subscribed_uris_add(*uris, uri);
    if ((*uris)->by_uri.count > before)
        sgi_client_note_subscription(in->peer->handshake->client, uri, true);
    return status;
}

static segue_status unsubscribe(const sgi_inbound *in, sgi_str uri)
{
    sgi_subscribed_uris **uris = subscribed_uris_of(in->peer);
    if (!uris || !*uris)
        return SEGUE_OK;
    size_t before = (*uris)->by_uri.count;
    sgi_subscribed_uris_remove(*uris, uri);
    if ((*uris)->by_uri.count < before)
        sgi_client_note_subscription(in->peer->handshake->client, uri, false);
    return SEGUE_OK;
}

static void answer(const sgi_inbound *in, segue_status status)
{
    sgi_sending sending;
    if (status == SEGUE_OK) {
        sgi_answer_begin_result(&sending, in, NULL);
        sgi_send_end(&sending);
    } else if (status == SEGUE_E_LIMIT) {
        sgi_limit_text told = sgi_subscribed_uris_describe_limit(
            *subscribed_uris_of(in->peer), in->peer->server->engine);
        sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR, told.text, told.data);
    } else if (status == SEGUE_E_NOMEM) {
        sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR, "Out of memory", NULL);
    } else {
        sgi_answer_error(in, SGI_RPC_INVALID_REQUEST,
                         "resources/subscribe needs a session", NULL);
    }
}

static void handle(const sgi_inbound *in,
                   segue_status (*change)(const sgi_inbound *in, sgi_str uri))
{
    sgi_buf uri;
    sgi_buf_init(&uri, sgi_engine_mem(in->peer->server->engine));
    bool ok = read_uri(in, &uri);
    /* The request of a caller that may not read the resource is refused, so this caller
     * gets no updates about the resource. */
    if (ok && sgi_inbound_may_use_item(
                  in, sgi_resource_find(in->peer->server, sgi_buf_str(&uri))))
        answer(in, change(in, sgi_buf_str(&uri)));
    sgi_buf_free(&uri);
}

void sgi_resources_subscribe(const sgi_inbound *in)
{
    handle(in, subscribe);
}

void sgi_resources_unsubscribe(const sgi_inbound *in)
{
    handle(in, unsubscribe);
}

/* ---- sending updates ---- */

bool sgi_updates_fill(sgi_output_source *source, size_t room)
{
    sgi_peer *peer = SGI_OWNER(source, sgi_peer, updates);
    size_t before = peer->conn->out.len;
    sgi_subscribed_uris **uris = subscribed_uris_of(peer);
    const sgi_subscribed_uri *mark;
    sgi_sending sending;
    if (peer->handshake->initialized && !sgi_lists_report_changes(peer))
        return false;
    while (uris && peer->conn->out.len - before < room) {
        mark = sgi_subscribed_uris_take_changed(*uris);
        if (!mark)
            return false;
        sgi_send_begin_notification(&sending, peer->conn,
                                    "notifications/resources/updated");
        sgi_jw_member_string(&sending.w, "uri", (sgi_str){mark->uri, mark->len});
        if (!sgi_send_end(&sending))
            return false; /* the client has gone, so no more updates can be sent */
    }
    return uris != NULL;
}

void sgi_updates_send_missed(sgi_peer *peer)
{
    sgi_subscribed_uris **uris = subscribed_uris_of(peer);
    if ((peer->handshake->initialized && peer->handshake->changed_lists) ||
        (uris && *uris && !TAILQ_EMPTY(&(*uris)->due)))
        sgi_output_source_queue(peer->conn, &peer->updates);
}

void sgi_updates_repeat(sgi_peer *peer)
{
    sgi_subscribed_uris **uris = subscribed_uris_of(peer);
    if (uris)
        sgi_subscribed_uris_mark_all_changed(*uris);
    peer->handshake->changed_lists |= peer->handshake->lists;
    sgi_updates_send_missed(peer);
}

void sgi_updates_allow(sgi_peer *peer)
{
    sgi_peer *told = peer->session ? peer->session->listening : peer;
    peer->handshake->initialized = peer->handshake->version != SGI_VERSION_UNKNOWN;
    if (told)
        sgi_updates_send_missed(told);
}

void sgi_resource_report_updated(segue_server *server, sgi_str uri)
{
    sgi_wire_session *session;
    sgi_peer *peer;
    TAILQ_FOREACH(peer, &server->peers, link) {
        if (sgi_subscribed_uris_mark_changed(peer->uris, uri))
            sgi_updates_send_missed(peer);
        sgi_subscriptions_report_update(peer, uri);
    }
    TAILQ_FOREACH(session, &server->sessions.by_use, by_use)
        if (sgi_subscribed_uris_mark_changed(session->uris, uri) && session->listening)
            sgi_updates_send_missed(session->listening);
}
