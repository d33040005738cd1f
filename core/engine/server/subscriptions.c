/* Handles subscriptions/listen (2026-07-28 basic/patterns/subscriptions). Also sends
 * list_changed to clients that have sent notifications/initialized (versions that begin
 * with `initialize`). A subscription is a source of its conversation; the updates for
 * clients of those versions (updates.c) are another source. A change only sets a mark.
 * When there is room, marked lists, tasks and resources are written in their present
 * state. A slow client can miss states in between, never the last state, and no queue
 * grows.
 *
 * A subscription first looks up the tasks that it names. The acknowledgement is sent
 * after the last look-up. A subscription owns its watches. A watch whose task's result is
 * being folded is freed only when the fold has returned. */
#include "engine/server/task_form.h"
#include "engine/server/clients.h"
#include "engine/log/reader.h"
#include "engine/server/grant.h"
#include "engine/server/task.h"
#include "engine/server/wire_session.h"

#define MAX_TASK_IDS 256

/* The lists whose changes can be reported. A set of lists is a bit set: the bit 1 <<
 * index stands for the list with this index. */
static const struct {
    int32_t type;
    const char *filter;
    const char *method;
} lists[] = {
    {SEGUE_ITEM_TOOL, "toolsListChanged", "notifications/tools/list_changed"},
    {SEGUE_ITEM_RESOURCE, "resourcesListChanged", "notifications/resources/list_changed"},
    {SEGUE_ITEM_PROMPT, "promptsListChanged", "notifications/prompts/list_changed"},
};
enum { LISTS = sizeof lists / sizeof *lists };

typedef struct sgi_listen sgi_listen;

typedef struct task_watch {
    sgi_op_watch watch;
    LIST_ENTRY(task_watch) link;
    /* the subscription to which this watch belongs; NULL = that subscription was freed */
    sgi_listen *listen;
    sgi_op *op; /* a counted reference */
    bool marked;
    bool folding;
} task_watch;

struct sgi_listen {
    LIST_ENTRY(sgi_listen) link;
    sgi_reply *reply;
    sgi_conn *conn; /* a counted reference */
    sgi_output_source source;
    LIST_HEAD(, task_watch) tasks;
    /* number of running look-ups of tasks, plus 1 while further look-ups are being
     * started */
    int32_t looking;
    uint8_t wanted_lists;
    uint8_t marked_lists;
    /* the resources that the subscription names; NULL = no resources */
    sgi_subscribed_uris *uris;
    /* the client as the application sees it (clients.h); NULL = clients are not
     * watched */
    sgi_client *client;
    bool wants_tasks;
    bool acknowledged;
    /* the subscription ended during the look-ups; the last look-up frees it */
    bool unlisted;
};

/* ---- the end of a subscription ---- */

static void free_watch(task_watch *watch)
{
    sgi_op *op = watch->op;
    LIST_REMOVE(&watch->watch, link);
    sgi_free(sgi_engine_mem(op->engine), watch, sizeof *watch);
    sgi_op_unref(op);
}

static void leave_client(sgi_listen *listen)
{
    const sgi_subscribed_uri *uri;
    sgi_client *client = listen->client;
    listen->client = NULL;
    if (client && listen->uris)
        TAILQ_FOREACH(uri, &listen->uris->all, by_age)
            sgi_client_note_subscription(client, (sgi_str){uri->uri, uri->len}, false);
    sgi_client_end_listen(client);
}

static void free_listen(sgi_listen *listen)
{
    const sgi_mem *mem = sgi_engine_mem(listen->reply->engine);
    task_watch *watch;
    while ((watch = LIST_FIRST(&listen->tasks))) {
        LIST_REMOVE(watch, link);
        watch->listen = NULL;
        if (!watch->folding)
            free_watch(watch);
    }
    if (!listen->unlisted)
        LIST_REMOVE(listen, link);
    sgi_output_source_remove(listen->conn, &listen->source);
    sgi_conn_unref(listen->conn);
    sgi_reply_close(listen->reply);
    leave_client(listen);
    sgi_subscribed_uris_free(listen->uris);
    sgi_free(mem, listen, sizeof *listen);
}

static void withdrawn(sgi_reply *reply)
{
    sgi_listen *listen = reply->user;
    leave_client(listen);
    if (!listen->looking) {
        free_listen(listen);
        return;
    }
    /* removed from the peer's list now, because the peer can be gone when the last
     * look-up frees the subscription */
    LIST_REMOVE(listen, link);
    listen->unlisted = true;
}

static void write_subscription_meta(sgi_jw *w, const sgi_reply *reply)
{
    sgi_jw_key(w, "_meta");
    sgi_jw_open(w, '{');
    sgi_jw_member_raw(w, "io.modelcontextprotocol/subscriptionId", sgi_str_of(reply->id));
    sgi_jw_close(w, '}');
}

void sgi_subscriptions_close(sgi_peer *peer)
{
    sgi_listen *listen, *next;
    sgi_sending sending;
    for (listen = LIST_FIRST(&peer->listens); listen; listen = next) {
        next = LIST_NEXT(listen, link);
        if (sgi_reply_begin_result(&sending, listen->reply, "complete")) {
            write_subscription_meta(&sending.w, listen->reply);
            sgi_send_end(&sending);
        }
        if (!listen->looking)
            free_listen(listen);
    }
}

/* ---- notifications ---- */

static void send_task(task_watch *watch, const sgi_fold *fold)
{
    sgi_sending sending;
    if (!sgi_reply_begin_notification(&sending, watch->listen->reply,
                                      "notifications/tasks"))
        return;
    watch->op->served->dialect->write(&sending.w, watch->op, fold);
    write_subscription_meta(&sending.w, watch->listen->reply);
    sgi_send_end(&sending);
}

static void folded(void *user, sgi_op *op, const sgi_fold *fold, segue_status status)
{
    task_watch *watch = user;
    (void)status;
    watch->folding = false;
    if (!watch->listen)
        free_watch(watch);
    else if (fold)
        send_task(watch, fold);
    else
        sgi_engine_log(
            op->engine, SEGUE_LOG_WARNING,
            "a task's result cannot be read from the store for a subscription");
}

static void show_task(task_watch *watch)
{
    watch->marked = false;
    if (sgi_op_state(watch->op) != SGI_STATE_COMPLETED) {
        send_task(watch, NULL);
    } else if (!watch->folding) {
        watch->folding = true;
        sgi_op_fold(watch->op, folded, watch);
    }
}

static void show_lists(sgi_listen *listen)
{
    sgi_sending sending;
    for (unsigned i = 0; i < LISTS; i++) {
        if (!(listen->marked_lists & 1u << i) ||
            !sgi_reply_begin_notification(&sending, listen->reply, lists[i].method))
            continue;
        write_subscription_meta(&sending.w, listen->reply);
        sgi_send_end(&sending);
    }
    listen->marked_lists = 0;
}

static bool show_resource(sgi_listen *listen)
{
    sgi_sending sending;
    const sgi_subscribed_uri *mark = sgi_subscribed_uris_take_changed(listen->uris);
    if (!mark || !sgi_reply_begin_notification(&sending, listen->reply,
                                               "notifications/resources/updated"))
        return false;
    sgi_jw_member_string(&sending.w, "uri", (sgi_str){mark->uri, mark->len});
    write_subscription_meta(&sending.w, listen->reply);
    sgi_send_end(&sending);
    return true;
}

static bool fill(sgi_output_source *source, size_t room)
{
    sgi_listen *listen = SGI_OWNER(source, sgi_listen, source);
    size_t mark = listen->conn->out.len;
    task_watch *watch, *next;
    show_lists(listen);
    while (show_resource(listen)) {
        if (listen->conn->out.len - mark >= room)
            return true;
    }
    for (watch = LIST_FIRST(&listen->tasks); watch; watch = next) {
        next = LIST_NEXT(watch, link);
        if (!watch->marked)
            continue;
        if (listen->conn->out.len - mark >= room)
            return true;
        show_task(watch);
    }
    return false;
}

static void task_changed(sgi_op_watch *base, sgi_op *op)
{
    task_watch *watch = SGI_OWNER(base, task_watch, watch);
    (void)op;
    if (!watch->listen)
        return;
    watch->marked = true;
    if (watch->listen->acknowledged)
        sgi_output_source_queue(watch->listen->conn, &watch->listen->source);
}

static void mark_listen(sgi_listen *listen)
{
    if (listen->acknowledged)
        sgi_output_source_queue(listen->conn, &listen->source);
}

static void mark_handshake(sgi_handshake *handshake, unsigned list)
{
    handshake->changed_lists =
        (uint8_t)(handshake->changed_lists | (handshake->lists & 1u << list));
}

bool sgi_lists_report_changes(sgi_peer *peer)
{
    sgi_sending sending;
    sgi_handshake *handshake = peer->handshake;
    for (unsigned i = 0; i < LISTS; i++) {
        if (!(handshake->changed_lists & 1u << i))
            continue;
        sgi_send_begin_notification(&sending, peer->conn, lists[i].method);
        if (!sgi_send_end(&sending))
            return false;
        handshake->changed_lists = (uint8_t)(handshake->changed_lists & ~(1u << i));
    }
    return true;
}

static unsigned list_of(int32_t type)
{
    unsigned list = 0;
    if (type == SEGUE_ITEM_RESOURCE_TEMPLATE)
        /* a change of templates is reported as a change of the list of resources */
        type = SEGUE_ITEM_RESOURCE;
    while (lists[list].type != type)
        list++;
    return list;
}

void sgi_items_report_changed(segue_server *server, int32_t type)
{
    sgi_wire_session *session;
    sgi_peer *peer;
    sgi_listen *listen;
    if (type == SEGUE_ITEM_QUESTION)
        return; /* questions are in no list, so there is no change to report */
    unsigned list = list_of(type);
    TAILQ_FOREACH(session, &server->sessions.by_use, by_use) {
        mark_handshake(&session->handshake, list);
        if (session->listening)
            sgi_updates_send_missed(session->listening);
    }
    TAILQ_FOREACH(peer, &server->peers, link) {
        if (!peer->is_exchange) {
            mark_handshake(peer->handshake, list);
            sgi_updates_send_missed(peer);
        }
        LIST_FOREACH(listen, &peer->listens, link) {
            if (!(listen->wanted_lists & 1u << list))
                continue;
            listen->marked_lists = (uint8_t)(listen->marked_lists | 1u << list);
            mark_listen(listen);
        }
    }
}

uint8_t sgi_lists_served(const segue_server *server)
{
    unsigned set = 0;
    for (unsigned i = 0; i < LISTS; i++)
        if (sgi_items_served(server, lists[i].type))
            set |= 1u << i;
    return (uint8_t)set;
}

void sgi_subscriptions_report_update(sgi_peer *peer, sgi_str uri)
{
    sgi_listen *listen;
    LIST_FOREACH(listen, &peer->listens, link)
        if (sgi_subscribed_uris_mark_changed(listen->uris, uri))
            mark_listen(listen);
}

/* ---- the method subscriptions/listen ---- */

static void write_resources(sgi_jw *w, const sgi_subscribed_uris *uris)
{
    const sgi_subscribed_uri *mark;
    sgi_jw_key(w, "resourceSubscriptions");
    sgi_jw_open(w, '[');
    TAILQ_FOREACH(mark, &uris->all, by_age)
        sgi_jw_string(w, (sgi_str){mark->uri, mark->len});
    sgi_jw_close(w, ']');
}

static void acknowledge(sgi_listen *listen)
{
    sgi_sending sending;
    const task_watch *watch;
    if (!sgi_reply_begin_notification(&sending, listen->reply,
                                      "notifications/subscriptions/acknowledged")) {
        free_listen(listen);
        return;
    }
    sgi_jw_key(&sending.w, "notifications");
    sgi_jw_open(&sending.w, '{');
    for (unsigned i = 0; i < LISTS; i++)
        if (listen->wanted_lists & 1u << i)
            sgi_jw_member_raw(&sending.w, lists[i].filter, SGI_STR("true"));
    if (listen->uris)
        write_resources(&sending.w, listen->uris);
    if (listen->wants_tasks) {
        sgi_jw_key(&sending.w, "taskIds");
        sgi_jw_open(&sending.w, '[');
        LIST_FOREACH(watch, &listen->tasks, link)
            sgi_jw_string(&sending.w, sgi_str_of(watch->op->task_id));
        sgi_jw_close(&sending.w, ']');
    }
    sgi_jw_close(&sending.w, '}');
    write_subscription_meta(&sending.w, listen->reply);
    sgi_send_end(&sending);
    listen->acknowledged = true;
    sgi_output_source_queue(listen->conn, &listen->source);
}

static void look_up_done(sgi_listen *listen)
{
    if (--listen->looking == 0)
        acknowledge(listen);
}

static bool watches(const sgi_listen *listen, const sgi_op *op)
{
    const task_watch *watch;
    LIST_FOREACH(watch, &listen->tasks, link)
        if (watch->op == op)
            return true;
    return false;
}

static void task_found(void *user, sgi_op *op, segue_status status)
{
    sgi_listen *listen = user;
    sgi_peer *peer = listen->reply->peer;
    task_watch *watch = NULL;
    (void)status;
    const sgi_srv_dialect *dialect = op ? op->served->dialect : NULL;
    bool is_visible =
        peer && dialect && dialect->is_watched && sgi_task_is_visible(peer, op, dialect);
    if (is_visible && !watches(listen, op)) {
        watch = sgi_zalloc(sgi_engine_mem(op->engine), sizeof *watch);
    } else if (peer && !is_visible) {
        /* A task that the client cannot see is left out without an error. The failed
         * look-up is counted, so that a client cannot guess task ids by subscriptions. */
        sgi_principal_count_miss(peer->who, peer->server->options.lookups_per_second);
    }
    if (watch) {
        watch->op = op;
        sgi_op_ref(op);
        watch->listen = listen;
        /* sends the present state of the task as the first notification (R-2557-45) */
        watch->marked = true;
        watch->watch.changed = task_changed;
        LIST_INSERT_HEAD(&op->watches, &watch->watch, link);
        LIST_INSERT_HEAD(&listen->tasks, watch, link);
    }
    look_up_done(listen);
}

/* True when the array is missing, or when it has at most `most` items and all are
 * strings. */
static bool are_texts(sgi_json array, int32_t most)
{
    sgi_json item;
    int32_t count = 0;
    if (array.n && sgi_json_kind_of(array) != SGI_JSON_ARRAY)
        return false;
    for (size_t at = 0; array.n && sgi_json_next_item(array, &at, &item);)
        if (sgi_json_kind_of(item) != SGI_JSON_STRING || ++count > most)
            return false;
    return true;
}

static bool check_filter(const sgi_inbound *in, sgi_json filter, sgi_json ids)
{
    if (sgi_json_kind_of(filter) != SGI_JSON_OBJECT || !are_texts(ids, MAX_TASK_IDS) ||
        !are_texts(sgi_json_get(filter, "resourceSubscriptions"),
                   SGI_SUBSCRIBED_URIS_MAX))
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS,
                         "params.notifications is not a valid filter", NULL);
    else if (ids.n && !(in->caps & SGI_CAP_TASKS))
        sgi_answer_tasks_not_declared(in);
    else
        return true;
    return false;
}

/* Adds the resources that a subscription names. Texts that are not URIs, and resources
 * that the caller may not read, are left out without an error. */
static segue_status mark_resources(sgi_listen *listen, sgi_json uris)
{
    const sgi_peer *peer = listen->reply->peer;
    sgi_engine *engine = listen->reply->engine;
    segue_status status = SEGUE_OK;
    sgi_json item;
    sgi_buf uri;
    listen->uris = sgi_subscribed_uris_new(&engine->env);
    if (!listen->uris)
        return SEGUE_E_NOMEM;
    sgi_buf_init(&uri, sgi_engine_mem(engine));
    for (size_t at = 0; status == SEGUE_OK && sgi_json_next_item(uris, &at, &item);) {
        sgi_buf_reset(&uri, SGI_URI_MAX);
        sgi_json_decode(item, &uri);
        if (uri.failed)
            status = SEGUE_E_NOMEM;
        else if (uri.len && uri.len <= SGI_URI_MAX && !memchr(uri.p, 0, uri.len) &&
                 sgi_peer_may_use_item(
                     peer, sgi_resource_find(peer->server, sgi_buf_str(&uri))))
            status = sgi_subscribed_uris_add(listen->uris, sgi_buf_str(&uri));
    }
    sgi_buf_free(&uri);
    return status;
}

static void give_up(sgi_listen *listen, segue_status status)
{
    if (status == SEGUE_E_LIMIT) {
        sgi_limit_text told = sgi_subscribed_uris_describe_limit(
            listen->uris, listen->reply->peer->server->engine);
        sgi_reply_error(listen->reply, SGI_RPC_INTERNAL_ERROR, sgi_str_of(told.text),
                        sgi_str_of(told.data));
    } else {
        sgi_reply_error(listen->reply, SGI_RPC_INTERNAL_ERROR, SGI_STR("Out of memory"),
                        (sgi_json){0});
    }
    free_listen(listen);
}

static uint8_t wanted_lists(const segue_server *server, sgi_json filter)
{
    unsigned set = 0;
    for (unsigned i = 0; i < LISTS; i++)
        if (sgi_json_kind_of(sgi_json_get(filter, lists[i].filter)) == SGI_JSON_TRUE)
            set |= 1u << i;
    return (uint8_t)(set & sgi_lists_served(server));
}

static sgi_listen *new_listen(sgi_reply *reply)
{
    sgi_peer *peer = reply->peer;
    sgi_listen *listen = sgi_zalloc(sgi_engine_mem(reply->engine), sizeof *listen);
    if (!listen) {
        sgi_reply_error(reply, SGI_RPC_INTERNAL_ERROR, SGI_STR("Out of memory"),
                        (sgi_json){0});
        sgi_reply_close(reply);
        return NULL;
    }
    listen->reply = reply;
    listen->conn = peer->conn;
    sgi_conn_ref(listen->conn);
    listen->source.fill = fill;
    listen->looking = 1;
    LIST_INIT(&listen->tasks);
    LIST_INSERT_HEAD(&peer->listens, listen, link);
    reply->user = listen;
    reply->cancelled = withdrawn;
    return listen;
}

/* Tells the application which resources the subscription names. */
static void join_client(sgi_listen *listen, const sgi_inbound *in)
{
    const sgi_subscribed_uri *uri;
    listen->client = sgi_client_begin_listen(in);
    if (listen->uris)
        TAILQ_FOREACH(uri, &listen->uris->all, by_age)
            sgi_client_note_subscription(listen->client, (sgi_str){uri->uri, uri->len},
                                         true);
}

void sgi_subscriptions_listen(const sgi_inbound *in)
{
    sgi_json filter = sgi_json_get(in->params, "notifications");
    sgi_json ids = sgi_json_get(filter, "taskIds");
    sgi_json uris = sgi_json_get(filter, "resourceSubscriptions");
    sgi_json id;
    sgi_str text;
    if (!check_filter(in, filter, ids) || sgi_refuse_when_ending(in))
        return;
    sgi_reply *reply = sgi_reply_open(in, true);
    sgi_listen *listen = reply ? new_listen(reply) : NULL;
    if (!listen)
        return;
    listen->wants_tasks = ids.n > 0;
    listen->wanted_lists = wanted_lists(in->peer->server, filter);
    segue_status status = SEGUE_OK;
    if (uris.n && sgi_items_served(in->peer->server, SEGUE_ITEM_RESOURCE))
        status = mark_resources(listen, uris);
    if (status != SEGUE_OK) {
        give_up(listen, status);
        return;
    }
    join_client(listen, in);
    for (size_t at = 0; ids.n && sgi_json_next_item(ids, &at, &id);) {
        listen->looking++;
        if (!sgi_json_plain_string(id, &text))
            /* a text with quotes or escapes matches no task, because the task ids of this
             * server have no such characters */
            text = id;
        sgi_server_find_task(in->peer->server, in->peer->who, text, task_found, listen);
    }
    look_up_done(listen);
}
