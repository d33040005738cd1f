/* Events of a call are delivered one at a time in a fixed order: the handler itself,
 * cancel, answers to questions, drain, and free_user when the handler's hold and the
 * operation's are both gone. Each is a flag, so nothing queues.
 *
 * The call is counted: the handler's hold (`held`), the operation, and one while events
 * are being delivered. */
#include "engine/serving/call.h"

#include "engine/dialect/response_modes.h"
#include "engine/serving/rounds.h"
#include "engine/serving/task.h"
#include "engine/serving/tool_check.h"

static int32_t deliver(sgi_ready *ready, int32_t budget);

/* Being queued is a reference. */
static void queue(segue_call *call)
{
    if (!call->ready.queued)
        call->refs++;
    sgi_ready_add(call->handle.engine, &call->ready);
}

segue_status sgi_call_start(sgi_op *op, bool again)
{
    sgi_engine *engine = op->engine;
    if (!sgi_op_is_ours(op))
        return SEGUE_E_STATE;
    segue_call *call = sgi_zalloc(sgi_engine_mem(engine), sizeof *call);
    if (!call)
        return SEGUE_E_NOMEM;
    if (again && op->checkpoint) {
        call->resumed_data = sgi_alloc(sgi_engine_mem(engine), op->checkpoint_len);
        if (!call->resumed_data) {
            sgi_release(sgi_engine_mem(engine), call, sizeof *call);
            return SEGUE_E_NOMEM;
        }
        call->resumed_len = op->checkpoint_len;
        memcpy(call->resumed_data, op->checkpoint, op->checkpoint_len);
    }
    call->handle = (sgi_handle){SGI_MAGIC_CALL, engine};
    call->refs = 1;
    call->op = op;
    call->ready.run = deliver;
    call->invoke_due = true;
    call->resumed = again;
    call->resumed_segment = op->next_seg - 1;
    TAILQ_INIT(&call->decoded);
    TAILQ_INIT(&call->closing);
    sgi_op_ref(op);
    op->hold = SGI_HOLD_HERE;
    op->call = call;
    LIST_INSERT_HEAD(&op->server->calls, call, link);
    op->server->call_count++;
    op->server->counts.calls++;
    queue(call);
    return SEGUE_OK;
}

static void free_call(segue_call *call)
{
    const sgi_mem *mem = sgi_engine_mem(call->handle.engine);
    sgi_decoded *decoded, *next;
    SGI_TAILQ_EACH(decoded, &call->decoded, link, next)
        sgi_release(mem, decoded, sizeof *decoded + decoded->len + 1);
    call->handle.magic = SGI_MAGIC_FREED;
    sgi_entry_list_free(mem, &call->closing);
    LIST_REMOVE(call, link);
    call->op->server->call_count--;
    sgi_release(mem, call->resumed_data, call->resumed_len);
    sgi_engine_timer_clear(call->handle.engine, &call->turn);
    sgi_op_unref(call->op);
    sgi_release(mem, call, sizeof *call);
}

static void unref_call(segue_call *call)
{
    if (--call->refs == 0)
        free_call(call);
}

/* ---- its end is checked first ---- */

void sgi_call_close_later(segue_call *call, struct sgi_entry_list *list)
{
    TAILQ_CONCAT(&call->closing, list, link);
    call->is_closing = call->check_due = true;
    queue(call);
}

/* ---- delivery ---- */

static void run_handler(segue_call *call)
{
    sgi_engine *engine = call->handle.engine;
    const segue_item_options *options = &call->op->item->options;
    segue_call_fn handler = call->op->kind == &sgi_call_completion
                                ? options->on_completion
                                : options->on_call;
    call->invoke_due = false;
    if (!sgi_tool_check_arguments(call))
        return;
    call->held = true;
    call->refs++;
    engine->host.retain(engine->host.user);
    sgi_user_begin(engine);
    handler(options->user, call);
    sgi_user_end(engine);
}

static void run_check(segue_call *call)
{
    call->check_due = false;
    sgi_tool_check_result(call);
}

static void run_cancel(segue_call *call)
{
    sgi_engine *engine = call->handle.engine;
    call->cancel_due = false;
    if (!call->events.on_cancel || !call->held)
        return;
    sgi_user_begin(engine);
    call->events.on_cancel(call->events.user, call);
    sgi_user_end(engine);
}

static void run_drain(segue_call *call)
{
    sgi_engine *engine = call->handle.engine;
    call->drain_due = false;
    if (!call->events.on_drain || !call->held)
        return;
    sgi_user_begin(engine);
    call->events.on_drain(call->events.user, call);
    sgi_user_end(engine);
}

/* A question whose answer is durable, or that will never be answered. */
static sgi_input *due_answer(const segue_call *call)
{
    sgi_input *input;
    const sgi_op *op = call->op;
    bool ended =
        sgi_op_has_ended(op) || op->server->stage == SGI_SERVER_DEAD || call->lost;
    TAILQ_FOREACH(input, &op->inputs, link)
        if (input->bound && !input->delivered &&
            ((input->answered && input->answered <= sgi_op_horizon(op)) || ended))
            return input;
    return NULL;
}

static void run_answer(segue_call *call, sgi_input *input)
{
    sgi_engine *engine = call->handle.engine;
    bool ok =
        input->answered && input->answered <= sgi_op_horizon(call->op) && !call->lost;
    segue_status status = input->failed ? SEGUE_E_REMOTE : SEGUE_OK;
    input->delivered = true;
    if (!call->lost)
        sgi_ask_withdraw(input); /* answered in another way, or never will be */
    sgi_user_begin(engine);
    if (call->held)
        input->on_input(input->user, call, ok ? status : SEGUE_E_CANCELLED,
                        ok ? input->answer : NULL, ok ? input->answer_len : 0);
    if (input->free_user)
        input->free_user(input->user);
    sgi_user_end(engine);
}

static bool is_over(const segue_call *call)
{
    return !call->held || call->lost || call->op->server->stage == SGI_SERVER_DEAD;
}

static void run_free_user(segue_call *call)
{
    sgi_engine *engine = call->handle.engine;
    segue_free_fn fn = call->events.free_user;
    call->events.free_user = NULL;
    sgi_user_free(engine, fn, call->events.user);
}

/* Runs one event; false when none is due. */
static bool deliver_one(segue_call *call)
{
    sgi_input *input;
    if (call->invoke_due)
        run_handler(call);
    else if (call->check_due)
        run_check(call);
    else if (call->cancel_due)
        run_cancel(call);
    else if ((input = due_answer(call)))
        run_answer(call, input);
    else if (call->drain_due)
        run_drain(call);
    else if (is_over(call) && call->watched && call->events.free_user)
        run_free_user(call);
    else
        return false;
    return true;
}

/* ---- the first turn ---- */

static bool turn_is_over(const segue_call *call)
{
    return !call->invoke_due && !call->check_due &&
           (!call->holds_turn || is_over(call) || sgi_call_is_over(call));
}

/* The handler has had its first turn: an answer that waits for what it made of it is
 * due. */
static void tell_turned(segue_call *call)
{
    sgi_op *op = call->op;
    sgi_reply *reply = op->reply;
    call->turned = true;
    call->holds_turn = false;
    sgi_engine_timer_clear(call->handle.engine, &call->turn);
    if (reply && reply->turned)
        reply->turned(reply, op);
}

static void turn_takes_too_long(sgi_timer *timer)
{
    sgi_call_end_turn(SGI_OWNER(timer, segue_call, turn));
}

/* Only the response modes of a task wait for a turn. */
segue_status sgi_call_hold_turn(segue_call *call)
{
    const sgi_op *op = call->op;
    bool matters = op->modes & (SGI_MODE_IMMEDIATE | SGI_MODE_STREAMING);
    if (!matters || call->resumed || call->turned || sgi_call_is_over(call))
        return SEGUE_E_STATE;
    call->holds_turn = true;
    sgi_engine_timer(op->engine, &call->turn, op->server->options.first_turn_ms,
                     turn_takes_too_long);
    return SEGUE_OK;
}

void sgi_call_end_turn(segue_call *call)
{
    if (call->holds_turn)
        tell_turned(call);
}

static void ask_client(sgi_op *op)
{
    sgi_op_ref(op);
    sgi_round_send(op);
    sgi_asks_send(op);
    sgi_op_unref(op);
}

static int32_t deliver(sgi_ready *ready, int32_t budget)
{
    segue_call *call = SGI_OWNER(ready, segue_call, ready);
    int32_t ran = 0;
    while (ran < budget && deliver_one(call))
        ran++;
    if (!call->turned && turn_is_over(call))
        tell_turned(call);
    if (ran == budget)
        queue(call);
    else
        ask_client(call->op); /* what was asked meanwhile goes out together */
    unref_call(call);
    return ran;
}

void sgi_call_look(segue_call *call)
{
    queue(call);
}

void sgi_call_cancel(segue_call *call)
{
    if (call->cancelled)
        return;
    call->cancelled = true;
    call->cancel_due = true;
    queue(call);
}

void sgi_call_die(segue_call *call)
{
    call->invoke_due = call->check_due = false;
    sgi_call_cancel(call);
    queue(call);
}

void sgi_call_lose(segue_call *call)
{
    call->lost = true;
    sgi_call_die(call);
    sgi_call_let_go(call);
}

void sgi_call_progressed(segue_call *call)
{
    if (call->wants_drain && !sgi_op_is_full(call->op)) {
        call->wants_drain = false;
        call->drain_due = true;
    }
    if (call->drain_due || due_answer(call) || sgi_round_is_due(call->op) ||
        sgi_asks_are_due(call->op))
        queue(call);
}

void sgi_call_let_go(segue_call *call)
{
    call->op->call = NULL;
    if (call->holds_turn)
        queue(call);
    unref_call(call);
}

/* Of a server that was closed nobody will hear more: what it has given up is let go in
 * the store, like all the rest when it dies. That holds for a task, and for a call that
 * somebody can come back to at the next server: with a token, or with a key. */
static bool is_left(const segue_call *call)
{
    const segue_server *server = call->op->server;
    return server->stage >= SGI_SERVER_CLOSED && call->op->known &&
           (call->op->is_task || server->idempotency);
}

static void let_go_in_store(segue_call *call)
{
    call->lost = true;
    if (!call->op->is_task)
        sgi_call_cut(call->op);
    sgi_server_op_release(call->op);
}

void sgi_call_free(segue_call *call)
{
    if (!sgi_call_is_over(call) && is_left(call)) {
        let_go_in_store(call);
    } else if (!sgi_call_is_over(call)) {
        sgi_op_give_up(call->op, "The handler gave up without a result");
    }
    call->held = false;
    call->handle.magic = SGI_MAGIC_FREED;
    if ((call->watched && call->events.free_user) || due_answer(call))
        queue(call);
    sgi_call_end_turn(call);
    unref_call(call);
}

segue_status sgi_call_watch(segue_call *call, const segue_call_events *events)
{
    if (call->watched)
        return SEGUE_E_STATE;
    call->watched = true;
    call->events = *events;
    if (call->cancelled) {
        call->cancel_due = true;
        queue(call);
    }
    return SEGUE_OK;
}

segue_status sgi_call_resumed(const segue_call *call, uint64_t *last_segment,
                              const void **data, size_t *len)
{
    if (!call->resumed)
        return SEGUE_E_NOT_FOUND;
    if (last_segment)
        *last_segment = call->resumed_segment;
    if (data)
        *data = call->resumed_data;
    if (len)
        *len = call->resumed_len;
    return SEGUE_OK;
}
