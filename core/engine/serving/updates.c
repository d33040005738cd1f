/* resources/subscribe and /unsubscribe of the handshake eras, and who hears that a
 * resource has changed: its subscribers alone, each by a mark (marks.h) that is written
 * out when there is room. Changes of lists (subscriptions.c) are written out here too.
 *
 * Over a byte stream the conversation subscribes. Over HTTP the session does, and hears
 * of updates on the stream of its GET; while there is none the marks wait. Those of lists
 * also wait until the client has said that it is initialized. */
#include "engine/serving/grant.h"
#include "engine/serving/wire_session.h"

static sgi_marks **marks_of(sgi_peer *peer)
{
    if (peer->session)
        return &peer->session->marks;
    return peer->is_exchange ? NULL : &peer->marks;
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

/* It may name a resource that is yet to come. */
static segue_status subscribe(const sgi_inbound *in, sgi_str uri)
{
    sgi_marks **marks = marks_of(in->peer);
    if (!marks)
        return SEGUE_E_UNSUPPORTED;
    if (!*marks)
        *marks = sgi_marks_new(&in->peer->server->engine->env);
    return *marks ? sgi_marks_add(*marks, uri) : SEGUE_E_NOMEM;
}

static segue_status unsubscribe(const sgi_inbound *in, sgi_str uri)
{
    sgi_marks **marks = marks_of(in->peer);
    if (marks && *marks)
        sgi_marks_remove(*marks, uri);
    return SEGUE_OK;
}

static void answer(const sgi_inbound *in, segue_status status)
{
    sgi_sending sending;
    if (status == SEGUE_OK) {
        sgi_answer_result(&sending, in, NULL);
        sgi_send_end(&sending);
    } else if (status == SEGUE_E_LIMIT) {
        sgi_limit_told told = sgi_marks_tell(*marks_of(in->peer));
        sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR, told.text, told.data);
    } else if (status == SEGUE_E_NOMEM) {
        sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR, "Out of memory", NULL);
    } else {
        sgi_answer_error(in, SGI_RPC_INVALID_REQUEST,
                         "There is no session to subscribe with", NULL);
    }
}

static void handle(const sgi_inbound *in,
                   segue_status (*change)(const sgi_inbound *in, sgi_str uri))
{
    sgi_buf uri;
    sgi_buf_init(&uri, sgi_engine_mem(in->peer->server->engine));
    bool ok = read_uri(in, &uri);
    /* who may not read it does not learn when it changes */
    if (ok &&
        sgi_item_is_open_to(in, sgi_resource_of(in->peer->server, sgi_buf_str(&uri))))
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

/* ---- telling ---- */

bool sgi_updates_fill(sgi_source *source, size_t room)
{
    sgi_peer *peer = SGI_OWNER(source, sgi_peer, updates);
    size_t before = peer->conn->out.len;
    sgi_marks **marks = marks_of(peer);
    const sgi_mark *mark;
    sgi_sending sending;
    if (peer->handshake->initialized && !sgi_lists_show(peer))
        return false;
    while (marks && peer->conn->out.len - before < room) {
        mark = sgi_marks_next(*marks);
        if (!mark)
            return false;
        sgi_send_notification(&sending, peer->conn, "notifications/resources/updated");
        sgi_jw_member_string(&sending.w, "uri", (sgi_str){mark->uri, mark->len});
        if (!sgi_send_end(&sending))
            return false; /* nobody is there any more */
    }
    return marks != NULL;
}

void sgi_updates_ready(sgi_peer *peer)
{
    sgi_marks **marks = marks_of(peer);
    if ((peer->handshake->initialized && peer->handshake->changed_lists) ||
        (marks && *marks && !TAILQ_EMPTY(&(*marks)->due)))
        sgi_source_ready(peer->conn, &peer->updates);
}

void sgi_updates_begin(sgi_peer *peer)
{
    sgi_peer *told = peer->session ? peer->session->listening : peer;
    peer->handshake->initialized = peer->handshake->version != SGI_VERSION_UNKNOWN;
    if (told)
        sgi_updates_ready(told);
}

void sgi_resource_updated(segue_server *server, sgi_str uri)
{
    sgi_wire_session *session;
    sgi_peer *peer;
    TAILQ_FOREACH(peer, &server->peers, link) {
        if (sgi_marks_set(peer->marks, uri))
            sgi_updates_ready(peer);
        sgi_listens_updated(peer, uri);
    }
    TAILQ_FOREACH(session, &server->sessions_by_use, by_use)
        if (sgi_marks_set(session->marks, uri) && session->listening)
            sgi_updates_ready(session->listening);
}
