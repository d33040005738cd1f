/* subscriptions/listen (2026-07-28 basic/patterns/subscriptions) and, in the handshake
 * eras, list_changed to everybody. A subscription is a source of its conversation:
 * changes set marks, and what is marked is written when there is room, in its latest
 * state. So a slow client misses intermediate states, never the last one, and nothing
 * queues.
 *
 * A subscription first looks up every task it was asked for; the acknowledgement goes out
 * when the last answer is in. Watches are owned by their subscription; one whose result
 * is being folded is freed when the fold returns. */
#include "engine/dialect/dialect.h"
#include "engine/log/reader.h"
#include "engine/serving/task.h"
#include "engine/serving/wire_session.h"

#define MAX_TASK_IDS 256

typedef struct sgi_listen sgi_listen;

typedef struct task_watch {
    sgi_watch watch;
    LIST_ENTRY(task_watch) link;
    sgi_listen *listen; /* NULL = the subscription is gone */
    sgi_op *op;         /* counted */
    bool marked;
    bool folding;
} task_watch;

struct sgi_listen {
    LIST_ENTRY(sgi_listen) link;
    sgi_reply *reply;
    sgi_conn *conn; /* counted */
    sgi_source source;
    LIST_HEAD(, task_watch) tasks;
    int32_t looking; /* look-ups under way, and 1 while they are being started */
    bool wants_tools;
    bool wants_tasks;
    bool acknowledged;
    bool tools_marked;
    bool unlisted; /* withdrawn while tasks were looked up */
};

/* ---- the end ---- */

static void free_watch(task_watch *watch)
{
    sgi_op *op = watch->op;
    LIST_REMOVE(&watch->watch, link);
    sgi_release(sgi_engine_mem(op->engine), watch, sizeof *watch);
    sgi_op_unref(op);
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
    sgi_source_remove(listen->conn, &listen->source);
    sgi_conn_unref(listen->conn);
    sgi_reply_close(listen->reply);
    sgi_release(mem, listen, sizeof *listen);
}

static void withdrawn(sgi_reply *reply)
{
    sgi_listen *listen = reply->user;
    if (!listen->looking) {
        free_listen(listen);
        return;
    }
    /* the last look-up does; by then the peer may be gone */
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

void sgi_listens_close(sgi_peer *peer)
{
    sgi_listen *listen, *next;
    sgi_sending sending;
    for (listen = LIST_FIRST(&peer->listens); listen; listen = next) {
        next = LIST_NEXT(listen, link);
        if (sgi_reply_result(&sending, listen->reply, "complete")) {
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
    if (!sgi_reply_notification(&sending, watch->listen->reply, "notifications/tasks"))
        return;
    sgi_tasks_ext_write(&sending.w, watch->op, fold);
    write_subscription_meta(&sending.w, watch->listen->reply);
    sgi_send_end(&sending);
}

static void folded(void *user, sgi_op *op, const sgi_fold *fold)
{
    task_watch *watch = user;
    watch->folding = false;
    if (!watch->listen)
        free_watch(watch);
    else if (fold)
        send_task(watch, fold);
    else
        sgi_engine_log(op->engine, SEGUE_LOG_WARNING,
                       "a task's result cannot be read back for a subscription");
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

static bool fill(sgi_source *source, size_t room)
{
    sgi_listen *listen = SGI_OWNER(source, sgi_listen, source);
    size_t mark = listen->conn->out.len;
    sgi_sending sending;
    task_watch *watch, *next;
    if (listen->tools_marked &&
        sgi_reply_notification(&sending, listen->reply,
                               "notifications/tools/list_changed")) {
        listen->tools_marked = false;
        write_subscription_meta(&sending.w, listen->reply);
        sgi_send_end(&sending);
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

static void task_changed(sgi_watch *base, sgi_op *op)
{
    task_watch *watch = SGI_OWNER(base, task_watch, watch);
    (void)op;
    if (!watch->listen)
        return;
    watch->marked = true;
    if (watch->listen->acknowledged)
        sgi_source_ready(watch->listen->conn, &watch->listen->source);
}

static void tell_legacy(sgi_peer *peer)
{
    sgi_sending sending;
    if (!peer->handshake->initialized ||
        (peer->is_exchange && !(peer->session && peer == peer->session->listening)))
        return;
    sgi_send_notification(&sending, peer->conn, "notifications/tools/list_changed");
    sgi_send_end(&sending);
}

void sgi_tools_changed(segue_server *server)
{
    sgi_peer *peer;
    sgi_listen *listen;
    TAILQ_FOREACH(peer, &server->peers, link) {
        tell_legacy(peer);
        LIST_FOREACH(listen, &peer->listens, link) {
            if (!listen->wants_tools)
                continue;
            listen->tools_marked = true;
            if (listen->acknowledged)
                sgi_source_ready(listen->conn, &listen->source);
        }
    }
}

/* ---- the request ---- */

static void acknowledge(sgi_listen *listen)
{
    sgi_sending sending;
    const task_watch *watch;
    if (!sgi_reply_notification(&sending, listen->reply,
                                "notifications/subscriptions/acknowledged")) {
        free_listen(listen);
        return;
    }
    sgi_jw_key(&sending.w, "notifications");
    sgi_jw_open(&sending.w, '{');
    if (listen->wants_tools) {
        sgi_jw_key(&sending.w, "toolsListChanged");
        sgi_jw_bool(&sending.w, true);
    }
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
    sgi_source_ready(listen->conn, &listen->source);
}

static void look_up_done(sgi_listen *listen)
{
    if (--listen->looking == 0)
        acknowledge(listen);
}

static void task_found(void *user, sgi_op *op, segue_status status)
{
    sgi_listen *listen = user;
    sgi_peer *peer = listen->reply->peer;
    task_watch *watch = NULL;
    (void)status;
    if (peer && sgi_task_is_visible(peer, op, &sgi_dialect_tasks_ext)) {
        watch = sgi_zalloc(sgi_engine_mem(op->engine), sizeof *watch);
    } else if (peer) {
        /* left out silently, but counted: a subscription is no way to guess ids */
        sgi_principal_miss(peer->who, peer->server->options.lookups_per_second);
    }
    if (watch) {
        watch->op = op;
        sgi_op_ref(op);
        watch->listen = listen;
        watch->marked = true; /* the state of now is shown once (R-2557-45) */
        watch->watch.changed = task_changed;
        LIST_INSERT_HEAD(&op->watches, &watch->watch, link);
        LIST_INSERT_HEAD(&listen->tasks, watch, link);
    }
    look_up_done(listen);
}

static bool check_filter(const sgi_inbound *in, sgi_json filter, sgi_json ids)
{
    sgi_json id;
    int32_t count = 0;
    bool ok = sgi_json_kind_of(filter) == SGI_JSON_OBJECT &&
              (!ids.n || sgi_json_kind_of(ids) == SGI_JSON_ARRAY);
    for (size_t at = 0; ok && ids.n && sgi_json_next_item(ids, &at, &id);)
        ok = sgi_json_kind_of(id) == SGI_JSON_STRING && ++count <= MAX_TASK_IDS;
    if (!ok)
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS,
                         "params.notifications is not a valid filter", NULL);
    else if (ids.n && !(in->caps & SGI_CAP_TASKS))
        sgi_answer_missing_tasks(in);
    else
        return true;
    return false;
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

void sgi_subscriptions_listen(const sgi_inbound *in)
{
    sgi_json filter = sgi_json_get(in->params, "notifications");
    sgi_json ids = sgi_json_get(filter, "taskIds");
    sgi_json id;
    sgi_str text;
    if (!check_filter(in, filter, ids))
        return;
    sgi_reply *reply = sgi_reply_open(in, true);
    sgi_listen *listen = reply ? new_listen(reply) : NULL;
    if (!listen)
        return;
    listen->wants_tasks = ids.n > 0;
    listen->wants_tools =
        sgi_json_kind_of(sgi_json_get(filter, "toolsListChanged")) == SGI_JSON_TRUE;
    for (size_t at = 0; ids.n && sgi_json_next_item(ids, &at, &id);) {
        listen->looking++;
        if (!sgi_json_plain_string(id, &text))
            text = id; /* with its quotes: no id of ours */
        sgi_server_find_task(in->peer->server, text, task_found, listen);
    }
    look_up_done(listen);
}
