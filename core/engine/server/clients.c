/* A client object lives until the application knows that the client has ended. The
 * conversation or the wire session points to the object while it lasts; the object points
 * back only to what it needs to send messages. */
#include "engine/server/clients.h"

#include "engine/server/call.h"
#include "engine/server/wire_session.h"
#include "wire/json_copy.h"
#include "wire/log_level.h"

/* One resource to which a client has subscribed, or had. */
typedef struct subscription {
    sgi_map_node node;
    TAILQ_ENTRY(subscription) link; /* in the list `due`; only while `is_due` is true */
    int32_t count;                  /* number of subscriptions of the client */
    bool told;                      /* the application knows of the subscription */
    bool is_due;
    size_t len;
    char uri[];
} subscription;

struct sgi_client {
    uint64_t number;
    sgi_map_node node;
    segue_server *server; /* a counted reference */
    sgi_principal *who;   /* a counted reference */
    /* the conversation over a byte stream, or of the request subscriptions/listen; NULL =
     * the client has a wire session, or has ended */
    sgi_peer *peer;
    sgi_wire_session *session;
    bool is_listen;
    bool ended;
    char *info; /* the JSON text that on_open gets */
    sgi_ready_object ready;
    bool open_due, level_due, roots_due;
    bool open_told;
    sgi_map subscriptions;
    TAILQ_HEAD(, subscription) due;
    /* the operations of calls to the client (sgi_client_call) */
    LIST_HEAD(, sgi_served_op_data) calls;
};

static sgi_handshake *handshake_of(const sgi_client *client)
{
    return client->session ? &client->session->handshake
           : client->peer  ? client->peer->handshake
                           : NULL;
}

static void queue(sgi_client *client)
{
    sgi_ready_queue_add(client->server->engine, &client->ready);
}

static sgi_client *find(const segue_server *server, uint64_t number)
{
    sgi_map_node *node = sgi_map_find(&server->clients.by_number,
                                      (sgi_str){(const char *)&number, sizeof number});
    return node ? SGI_OWNER(node, sgi_client, node) : NULL;
}

/* ---- subscriptions ---- */

static subscription *find_subscription(const sgi_client *client, sgi_str uri)
{
    sgi_map_node *node = sgi_map_find(&client->subscriptions, uri);
    return node ? SGI_OWNER(node, subscription, node) : NULL;
}

static subscription *make_subscription(sgi_client *client, sgi_str uri)
{
    const sgi_mem *mem = sgi_engine_mem(client->server->engine);
    subscription *made = sgi_zalloc(mem, sizeof *made + uri.n + 1);
    if (!made)
        return NULL; /* out of memory: the application does not learn of it */
    made->len = uri.n;
    memcpy(made->uri, uri.p, uri.n);
    sgi_map_put(&client->subscriptions, &made->node, (sgi_str){made->uri, made->len});
    return made;
}

static void set_due(sgi_client *client, subscription *s, bool due)
{
    if (s->is_due == due)
        return;
    s->is_due = due;
    if (due)
        TAILQ_INSERT_TAIL(&client->due, s, link);
    else
        TAILQ_REMOVE(&client->due, s, link);
}

static void drop_subscription(sgi_client *client, subscription *s)
{
    set_due(client, s, false);
    sgi_map_remove(&client->subscriptions, &s->node);
    sgi_free(sgi_engine_mem(client->server->engine), s, sizeof *s + s->len + 1);
}

void sgi_client_note_subscription(sgi_client *client, sgi_str uri, bool subscribed)
{
    subscription *s = client ? find_subscription(client, uri) : NULL;
    if (!client || client->ended || (!s && !subscribed))
        return;
    if (!s)
        s = make_subscription(client, uri);
    if (!s)
        return;
    s->count += subscribed ? 1 : -1;
    set_due(client, s, s->told != (s->count > 0));
    if (s->count <= 0 && !s->told)
        drop_subscription(client, s);
    queue(client);
}

/* ---- telling the application ---- */

static void free_client(sgi_client *client)
{
    segue_server *server = client->server;
    sgi_map_node *node;
    while ((node = sgi_map_any_node(&client->subscriptions)))
        drop_subscription(client, SGI_OWNER(node, subscription, node));
    sgi_map_free(&client->subscriptions);
    sgi_text_free(sgi_engine_mem(server->engine), client->info);
    sgi_principal_unref(client->who);
    sgi_free(sgi_engine_mem(server->engine), client, sizeof *client);
    sgi_server_unref(server);
}

static void tell_open(sgi_client *client)
{
    const segue_client_events *events = &client->server->clients.events;
    const char *principal = client->who->name ? client->who->name : "";
    client->open_due = false;
    client->open_told = true;
    if (!events->on_open)
        return;
    sgi_user_code_begin(client->server->engine);
    events->on_open(events->user, client->number, principal, client->info,
                    strlen(client->info));
    sgi_user_code_end(client->server->engine);
}

static void tell_level(sgi_client *client)
{
    const segue_client_events *events = &client->server->clients.events;
    const sgi_handshake *handshake = handshake_of(client);
    client->level_due = false;
    if (!events->on_level || !handshake || handshake->log_level < 0)
        return;
    const char *level = sgi_log_level_name(handshake->log_level);
    sgi_user_code_begin(client->server->engine);
    events->on_level(events->user, client->number, level);
    sgi_user_code_end(client->server->engine);
}

static void tell_roots(sgi_client *client)
{
    const segue_client_events *events = &client->server->clients.events;
    client->roots_due = false;
    if (!events->on_roots_changed)
        return;
    sgi_user_code_begin(client->server->engine);
    events->on_roots_changed(events->user, client->number);
    sgi_user_code_end(client->server->engine);
}

/* The subscription leaves the map while the application gets its URI if it has ended, so
 * that the client can subscribe again at the same time. */
static void tell_subscription(sgi_client *client, subscription *s)
{
    const segue_client_events *events = &client->server->clients.events;
    sgi_engine *engine = client->server->engine;
    char *uri = sgi_text_dup(sgi_engine_mem(engine), (sgi_str){s->uri, s->len});
    bool subscribed = s->count > 0;
    set_due(client, s, false);
    s->told = subscribed;
    if (!subscribed)
        drop_subscription(client, s);
    if (!uri || !events->on_subscription) {
        sgi_text_free(sgi_engine_mem(engine), uri);
        return;
    }
    sgi_user_code_begin(engine);
    events->on_subscription(events->user, client->number, uri, subscribed);
    sgi_user_code_end(engine);
    sgi_text_free(sgi_engine_mem(engine), uri);
}

static void tell_closed(sgi_client *client)
{
    const segue_client_events *events = &client->server->clients.events;
    if (!events->on_closed || !client->open_told)
        return;
    sgi_user_code_begin(client->server->engine);
    events->on_closed(events->user, client->number);
    sgi_user_code_end(client->server->engine);
}

static int32_t deliver(sgi_ready_object *ready, int32_t budget)
{
    sgi_client *client = SGI_OWNER(ready, sgi_client, ready);
    int32_t ran = 0;
    for (; ran < budget && !client->ended; ran++) {
        if (client->open_due)
            tell_open(client);
        else if (client->level_due)
            tell_level(client);
        else if (!TAILQ_EMPTY(&client->due))
            tell_subscription(client, TAILQ_FIRST(&client->due));
        else if (client->roots_due)
            tell_roots(client);
        else
            return ran;
    }
    if (!client->ended || ran == budget) {
        queue(client);
        return ran;
    }
    tell_closed(client);
    /* the application may have caused another event of the client meanwhile */
    sgi_ready_queue_remove(client->server->engine, &client->ready);
    free_client(client);
    return ran + 1;
}

/* ---- the beginning and the end ---- */

segue_status sgi_clients_watch(segue_server *server, const segue_client_events *events)
{
    if (server->clients.watched)
        return sgi_refuse(server->engine, SEGUE_E_EXISTS,
                          "the clients of the server are watched already");
    if (server->stage != SGI_SERVER_NEW)
        return sgi_refuse(server->engine, SEGUE_E_STATE,
                          "watch the clients before the server serves the first one");
    server->clients.watched = true;
    server->clients.events = *events;
    return SEGUE_OK;
}

/* Makes a client. session or peer: what the client is; the other is NULL. info: owned by
 * the client from now on, also when the function fails; NULL = out of memory. */
static sgi_client *make_client(sgi_principal *who, sgi_wire_session *session,
                               sgi_peer *peer, segue_server *server, char *info)
{
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    sgi_client *client = info ? sgi_zalloc(mem, sizeof *client) : NULL;
    if (!client) {
        sgi_text_free(mem, info);
        return NULL;
    }
    client->info = info;
    client->number = ++server->clients.last_number;
    client->server = server;
    sgi_server_ref(server);
    client->who = who;
    sgi_principal_ref(client->who);
    client->session = session;
    client->peer = peer;
    client->ready.run = deliver;
    client->open_due = true;
    sgi_map_init(&client->subscriptions, &server->engine->env);
    TAILQ_INIT(&client->due);
    LIST_INIT(&client->calls);
    sgi_map_put(&server->clients.by_number, &client->node,
                (sgi_str){(const char *)&client->number, sizeof client->number});
    queue(client);
    return client;
}

static sgi_client *make_client_of(const sgi_inbound *in, bool is_listen)
{
    sgi_peer *peer = in->peer;
    sgi_wire_session *session = is_listen ? NULL : peer->session;
    sgi_client *client =
        make_client(peer->who, session, session ? NULL : peer, peer->server,
                    sgi_client_info_of_request(in, is_listen));
    if (client)
        client->is_listen = is_listen;
    return client;
}

void sgi_client_begin(const sgi_inbound *in)
{
    sgi_peer *peer = in->peer;
    if (!peer->server->clients.watched || peer->handshake->client || peer->is_host ||
        (peer->is_exchange && !peer->session))
        return;
    peer->handshake->client = make_client_of(in, false);
}

void sgi_client_begin_session(sgi_wire_session *session)
{
    segue_server *server = session->server;
    if (server->clients.watched)
        session->handshake.client = make_client(session->who, session, NULL, server,
                                                sgi_client_info_of_session(session));
}

sgi_client *sgi_client_begin_listen(const sgi_inbound *in)
{
    if (!in->peer->server->clients.watched)
        return NULL;
    return in->peer->is_exchange ? make_client_of(in, true) : in->peer->handshake->client;
}

void sgi_client_end(sgi_client *client)
{
    sgi_served_op_data *call;
    if (!client || client->ended)
        return;
    client->ended = true;
    client->peer = NULL;
    client->session = NULL;
    sgi_map_remove(&client->server->clients.by_number, &client->node);
    while ((call = LIST_FIRST(&client->calls))) {
        sgi_op *op = call->shared.op;
        sgi_op_ref(op);
        sgi_client_forget_op(op);
        if (sgi_op_end(op, SGI_ENTRY_CANCELLED, SGI_STR("{}")) == SEGUE_E_NOMEM)
            sgi_op_end_internal_error(op, "Out of memory");
        sgi_op_unref(op);
    }
    queue(client);
}

void sgi_client_end_listen(sgi_client *client)
{
    if (client && client->is_listen)
        sgi_client_end(client);
}

void sgi_client_note_level(sgi_client *client)
{
    if (!client || client->ended)
        return;
    client->level_due = true;
    queue(client);
}

void sgi_client_note_roots(sgi_client *client)
{
    if (!client || client->ended)
        return;
    client->roots_due = true;
    queue(client);
}

void sgi_client_note_reading(sgi_client *client)
{
    sgi_served_op_data *call, *next;
    if (!client)
        return;
    for (call = LIST_FIRST(&client->calls); call; call = next) {
        next = LIST_NEXT(call, by_client);
        sgi_question_requests_send_soon(call->shared.op);
    }
}

uint64_t sgi_peer_client_number(const sgi_peer *peer)
{
    return peer->handshake->client ? peer->handshake->client->number : 0;
}

/* ---- messages of the application ---- */

static segue_status refuse_number(segue_server *server, uint64_t number)
{
    return sgi_refuse(server->engine, SEGUE_E_NOT_FOUND,
                      "no client has the number %llu, or it has gone",
                      (unsigned long long)number);
}

segue_status sgi_client_report_update(segue_server *server, uint64_t number, sgi_str uri)
{
    const sgi_client *client = find(server, number);
    if (!client)
        return refuse_number(server, number);
    if (client->session) {
        if (sgi_subscribed_uris_mark_changed(client->session->uris, uri) &&
            client->session->listening)
            sgi_updates_send_missed(client->session->listening);
        return SEGUE_OK;
    }
    if (sgi_subscribed_uris_mark_changed(client->peer->uris, uri))
        sgi_updates_send_missed(client->peer);
    sgi_subscriptions_report_update(client->peer, uri);
    return SEGUE_OK;
}

/* Returns the conversation for messages outside of calls. Returns NULL when the client
 * reads no such conversation now. */
static sgi_conn *way_to(const sgi_client *client)
{
    if (client->session)
        return sgi_question_target_session_stream(client->session);
    return client->peer && !client->is_listen &&
                   sgi_question_target_is_open(client->peer->conn)
               ? client->peer->conn
               : NULL;
}

segue_status sgi_client_log(segue_server *server, uint64_t number, const char *json,
                            size_t len)
{
    const sgi_client *client = find(server, number);
    sgi_json params = {0};
    sgi_sending sending;
    segue_status status = sgi_engine_check_json(server->engine, json, len, &params, NULL);
    if (status != SEGUE_OK)
        return status;
    int32_t rank = sgi_log_level_parse_json(sgi_json_get(params, "level"));
    if (rank < 0 || !sgi_json_get(params, "data").n)
        return sgi_refuse(server->engine, SEGUE_E_INVALID,
                          "a log message must have a \"level\" and \"data\"");
    if (!client)
        return refuse_number(server, number);
    const sgi_handshake *handshake = handshake_of(client);
    sgi_conn *conn = way_to(client);
    if (!conn || sgi_conn_is_full(conn) || !handshake->initialized ||
        handshake->log_level < 0 || rank < handshake->log_level)
        return SEGUE_OK; /* the client does not want, or cannot get, the message now */
    sgi_send_begin_notification(&sending, conn, "notifications/message");
    sgi_jw_copy_members(&sending.w, params, SGI_JSON_NAMES("_meta"));
    return sgi_send_end(&sending) ? SEGUE_OK : SEGUE_E_NOMEM;
}

bool sgi_client_question_target(const sgi_client *client, sgi_question_target *found)
{
    const sgi_handshake *handshake = handshake_of(client);
    sgi_conn *conn = way_to(client);
    if (!conn || !handshake->initialized)
        return false;
    *found = (sgi_question_target){client->session ? &client->session->questions
                                                   : client->peer->questions,
                                   conn, handshake->caps, handshake->modes};
    return true;
}

void sgi_client_forget_op(sgi_op *op)
{
    if (!op->served->asks)
        return;
    op->served->asks = NULL;
    LIST_REMOVE(op->served, by_client);
}

segue_status sgi_client_call(segue_server *server, uint64_t number, segue_call **out)
{
    sgi_engine *engine = server->engine;
    sgi_client *client = find(server, number);
    if (!client)
        return refuse_number(server, number);
    const sgi_handshake *handshake = handshake_of(client);
    if (client->is_listen || handshake->version == SGI_VERSION_UNKNOWN)
        return sgi_refuse(engine, SEGUE_E_UNSUPPORTED,
                          "in 2026-07-28 a server asks only during a request");
    sgi_op *op = sgi_served_op_new(server, (sgi_str){"", 0}, SGI_STR("{}"));
    if (!op)
        return SEGUE_E_NOMEM;
    sgi_budget_set_owner(op, client->who);
    sgi_principal_ref(client->who);
    op->served->caps = handshake->caps;
    op->served->client = number;
    op->served->asks = client;
    LIST_INSERT_HEAD(&client->calls, op->served, by_client);
    segue_status status = sgi_call_start(op, false);
    if (status == SEGUE_OK) {
        segue_call *call = op->served->call;
        call->invoke_due = false; /* the application has the call already */
        call->turned = call->held = true;
        call->refs++;
        engine->host.retain(engine->host.user);
        *out = call;
    }
    sgi_op_unref(op);
    return status;
}
