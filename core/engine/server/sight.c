#include "engine/server/sight.h"

#include "engine/log/reader.h"
#include "engine/server/call.h"
#include "engine/server/inbound.h"
#include "engine/server/task.h"
#include "engine/server/tool_call.h"

/* Returns the item of the application that decides about the list; NULL = there is
 * none. */
static sgi_item *decider_of(segue_server *server, int32_t type)
{
    if (TAILQ_EMPTY(&sgi_items_of_type(server, SEGUE_ITEM_LIST)->items))
        return NULL; /* the usual case, without a look into the map */
    return sgi_item_find(server, SEGUE_ITEM_LIST, sgi_str_of(sgi_list_method(type)));
}

static bool hides(const sgi_item *decider)
{
    return decider && !(decider->options.flags & SEGUE_LIST_SHOWS_ALL);
}

bool sgi_list_is_private(segue_server *server, int32_t type)
{
    return hides(decider_of(server, type));
}

/* ---- the call that asks the application ---- */

/* A request that waits until the application has said what its caller sees. */
typedef struct asking {
    sgi_reply *reply;
    /* the operation of the call, which keeps the params of the request; a counted
     * reference only after the end of the operation */
    sgi_op *op;
    void (*again)(const sgi_inbound *in);
    int32_t type;
    sgi_version version;
    uint32_t caps;
    int32_t log_level;
} asking;

static sgi_str key_of(const asking *a)
{
    return sgi_str_of(a->op->served->item_name);
}

static void free_asking(asking *a)
{
    sgi_free(sgi_engine_mem(a->op->engine), a, sizeof *a);
}

/* Handles the request again. The reply is closed before, because the request is answered
 * on a reply of its own, under the same id. The reply gives up its id first: closing it
 * must not tell a batch that the request gets no answer. */
static void handle_again(asking *a, const sgi_shown *shown)
{
    sgi_reply *reply = a->reply;
    sgi_peer *peer = reply->peer;
    sgi_message message = {.kind = SGI_MESSAGE_REQUEST,
                           .params = {a->op->served->params, a->op->served->params_len}};
    sgi_conn *conn = peer->conn;
    sgi_inbound in;
    sgi_buf id;
    sgi_buf_init(&id, sgi_engine_mem(a->op->engine));
    sgi_buf_add_str(&id, sgi_str_of(reply->id));
    message.id = sgi_buf_str(&id);
    sgi_conn_ref(conn);
    sgi_reply_remove_from_flight(reply);
    reply->state = SGI_REPLY_OUT_OF_TABLE;
    sgi_reply_leave_id_out(reply);
    sgi_reply_add_to_flight(reply, peer->in_flight);
    sgi_reply_close(reply);
    if (id.failed || !sgi_inbound_read(&in, peer, &message)) {
        /* without memory for any answer, the conversation closes, so that the client does
         * not wait */
        sgi_conn_close(conn);
    } else {
        in.version = a->version;
        in.caps = a->caps;
        in.log_level = a->log_level;
        in.shown = shown;
        a->again(&in);
    }
    sgi_buf_free(&id);
    sgi_conn_unref(conn);
}

static void out_of_memory(asking *a)
{
    sgi_tool_call_fail_no_memory(a->reply, NULL);
}

/* Marks the items that are named. An item that was added after the application has
 * answered is not named, so it is not shown. */
static bool mark(const asking *a, sgi_json names, sgi_shown *shown)
{
    segue_server *server = sgi_op_server(a->op);
    sgi_json name;
    sgi_buf text;
    sgi_buf_init(&text, sgi_engine_mem(a->op->engine));
    for (size_t at = 0; sgi_json_next_item(names, &at, &name);) {
        sgi_buf_truncate(&text, 0);
        sgi_json_decode(name, &text);
        sgi_item *item = sgi_item_find(server, a->type, sgi_buf_str(&text));
        if (item)
            item->is_named = true;
        shown->is_all |= shown->key.n && sgi_str_eq(shown->key, sgi_buf_str(&text));
    }
    bool ok = !text.failed;
    sgi_buf_free(&text);
    return ok;
}

/* Collects the order numbers of the named items, in their order. */
static bool collect(const asking *a, sgi_json names, sgi_shown *shown, sgi_buf *orders)
{
    sgi_item *item;
    bool ok = mark(a, names, shown);
    TAILQ_FOREACH(item, &sgi_items_of_type(sgi_op_server(a->op), a->type)->items, link) {
        if (item->is_named)
            sgi_buf_add(orders, (const char *)&item->order, sizeof item->order);
        item->is_named = false;
    }
    return ok && !orders->failed;
}

static void answer(asking *a, sgi_json names)
{
    sgi_shown shown = {.type = a->type, .key = key_of(a), .is_all = !names.n};
    const sgi_item *decider = decider_of(sgi_op_server(a->op), a->type);
    sgi_buf orders;
    sgi_buf_init(&orders, sgi_engine_mem(a->op->engine));
    if (!hides(decider))
        shown.is_all = true;
    if (!shown.is_all && !collect(a, names, &shown, &orders)) {
        out_of_memory(a);
    } else {
        shown.count = orders.len / sizeof *shown.orders;
        shown.orders = (const uint64_t *)(const void *)orders.p;
        handle_again(a, &shown);
    }
    sgi_buf_free(&orders);
}

/* Reads the field "shown" of the answer. Returns false when out of memory. */
static bool read_names(const sgi_fold *fold, sgi_buf *text, sgi_json *names)
{
    sgi_fields_walk walk = {0};
    sgi_jw w = sgi_jw_to(text);
    sgi_jw_open(&w, '{');
    while (sgi_fields_next(&fold->fields, &walk))
        if (sgi_fields_current_is(&walk, "shown"))
            sgi_fields_current_write(&walk, &w);
    sgi_jw_close(&w, '}');
    *names = sgi_json_get(sgi_buf_str(text), "shown");
    return !text->failed;
}

static void folded(void *user, sgi_op *op, const sgi_fold *fold, segue_status status)
{
    asking *a = user;
    sgi_json names;
    sgi_buf text;
    sgi_buf_init(&text, sgi_engine_mem(op->engine));
    if (!fold) {
        sgi_reply_store_error(a->reply, SGI_UNREADABLE, status);
        sgi_reply_close(a->reply);
    } else if (read_names(fold, &text, &names)) {
        answer(a, names);
    } else {
        out_of_memory(a);
    }
    sgi_buf_free(&text);
    free_asking(a);
    sgi_op_unref(op);
}

static bool is_answer(const sgi_op *op)
{
    return op->head.final == SGI_FINAL_RESULT ||
           op->head.final == SGI_FINAL_RESULT_IS_ERROR;
}

static void asked(sgi_reply *reply, sgi_op *op, segue_status status)
{
    asking *a = reply->user;
    sgi_reply_separate_from_op(reply, op);
    if (status == SEGUE_OK && reply->peer && is_answer(op)) {
        sgi_op_ref(op);
        sgi_op_fold(op, folded, a);
        return;
    }
    free_asking(a);
    if (status != SEGUE_OK) {
        sgi_reply_store_error(reply, SGI_UNSTORED, status);
        sgi_reply_close(reply);
    } else if (reply->peer) {
        sgi_call_answer_reply(reply, op); /* the error of the handler */
    } else {
        sgi_reply_close(reply);
    }
}

static void withdrawn(sgi_reply *reply)
{
    const asking *a = reply->user;
    a->op->served->reply = NULL;
    sgi_task_cancel(a->op);
}

static void ask(const sgi_inbound *in, int32_t type, sgi_item *decider, sgi_str key,
                void (*again)(const sgi_inbound *in))
{
    const sgi_call_request request = {
        .kind = &sgi_call_list, .name = key, .tool = decider};
    const sgi_mem *mem = sgi_engine_mem(in->peer->server->engine);
    sgi_reply *reply = sgi_reply_open_call(in);
    if (!reply)
        return;
    asking *a = sgi_zalloc(mem, sizeof *a);
    sgi_op *op = a ? sgi_item_call_op_new(in, &request, NULL) : NULL;
    if (!op || sgi_call_start(op, false) != SEGUE_OK) {
        sgi_tool_call_fail_no_memory(reply, op);
        if (a)
            sgi_free(mem, a, sizeof *a);
    } else {
        *a = (asking){.reply = reply,
                      .op = op,
                      .again = again,
                      .type = type,
                      .version = in->version,
                      .caps = in->caps,
                      .log_level = in->log_level};
        reply->user = a;
        reply->cancelled = withdrawn;
        op->served->reply = reply;
        sgi_reply_await_end(reply, op, asked);
    }
    if (op)
        sgi_op_unref(op); /* its call has a reference until the handler has ended */
}

/* ---- requests ---- */

sgi_sight sgi_item_sight(const sgi_inbound *in, const sgi_item *item,
                         void (*again)(const sgi_inbound *in))
{
    if (!item)
        return SGI_HIDDEN;
    sgi_item *decider = decider_of(in->peer->server, item->type);
    const sgi_shown *shown = in->shown;
    if (!hides(decider))
        return SGI_SHOWN;
    if (shown && shown->type == item->type &&
        sgi_str_eq(shown->key, sgi_str_of(item->key)))
        return shown->is_all ? SGI_SHOWN : SGI_HIDDEN;
    ask(in, item->type, decider, sgi_str_of(item->key), again);
    return SGI_SIGHT_LATER;
}

bool sgi_list_is_decided(const sgi_inbound *in, int32_t type,
                         void (*again)(const sgi_inbound *in))
{
    sgi_item *decider = decider_of(in->peer->server, type);
    if (!decider || in->shown)
        return true;
    ask(in, type, decider, (sgi_str){0}, again);
    return false;
}
