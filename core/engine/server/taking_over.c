/* Continues or ends an unfinished operation of an earlier process, or of another server
 * that has gone. */
#include "engine/error.h"
#include "base/thresholds.h"
#include "engine/cluster/recovery.h"
#include "engine/server/call.h"
#include "engine/server/call_report.h"
#include "engine/server/mailbox.h"
#include "engine/server/lasting.h"
#include "engine/server/task.h"
#include "engine/server/tool_call.h"
#include "engine/server/waiting_ops.h"
#include "wire/ending.h"

#define AGAIN_MS SGI_THRESHOLD(claim_again_ms)

/* Ends the operation with an error. If memory is short, messages that only a returning
 * client could get are dropped first. */
static void give_up(sgi_op *op)
{
    const char *text = op->torn ? "The store has lost the end of the operation's log"
                                : SGI_RESTARTED_TEXT;
    sgi_str data =
        op->torn ? SGI_STR("{\"reason\":\"store_torn\"}") : SGI_STR(SGI_RESTARTED_DATA);
    if (sgi_op_fail(op, SGI_ENTRY_ERROR, SGI_RPC_INTERNAL_ERROR, sgi_str_of(text),
                    data) != SEGUE_OK)
        sgi_op_end_internal_error(op, text);
}

/* ---- operations that wait ---- */

/* The operation has no handler, so its timer `promote` is free until it runs. A server
 * that is closed begins nothing any more, so it leaves the operation to other servers. */
static void wait_to_run(sgi_op *op, int64_t ms, void (*over)(sgi_timer *timer))
{
    segue_server *server = sgi_op_server(op);
    op->served->waits_to_run = true;
    LIST_INSERT_HEAD(&server->calls.waiting, op->served, waiting);
    sgi_server_start_ttl(op);
    sgi_engine_set_timer(op->engine, &op->served->promote, ms, over);
    if (server->stage >= SGI_SERVER_CLOSED)
        sgi_server_op_release(op);
}

static void run_again(sgi_op *op);

static void try_again(sgi_timer *timer)
{
    sgi_op *op = SGI_OWNER(timer, sgi_served_op_data, promote)->shared.op;
    sgi_op_ref(op);
    sgi_server_stop_waiting_to_run(op);
    if (!sgi_op_has_ended(op))
        run_again(op);
    sgi_op_unref(op);
}

/* Runs the tool again if it may run twice. Without memory for the call, makes another
 * attempt later: the tool has promised that its calls survive. */
static void run_again(sgi_op *op)
{
    const sgi_item *item = op->served->item;
    bool restartable = item && item->options.flags & SEGUE_TOOL_RESTARTABLE;
    segue_status status =
        op->torn || !restartable ? SEGUE_E_UNSUPPORTED : sgi_call_start(op, true);
    if (status == SEGUE_OK)
        sgi_server_start_ttl(op);
    else if (status == SEGUE_E_NOMEM)
        wait_to_run(op, AGAIN_MS, try_again);
    else
        give_up(op);
}

/* ---- operations whose tool the server does not have ---- */

static bool may_await_tool(const sgi_op *op)
{
    return sgi_op_server(op)->options.tool_wait_ms > 0 && !op->torn &&
           op->served->kind == &sgi_call_tool && !op->served->item;
}

static void wait_is_over(sgi_timer *timer)
{
    sgi_op *op = SGI_OWNER(timer, sgi_served_op_data, promote)->shared.op;
    sgi_op_ref(op);
    sgi_server_stop_waiting_to_run(op);
    if (!sgi_op_has_ended(op))
        give_up(op);
    sgi_op_unref(op);
}

static sgi_op *find_awaiting(const segue_server *server, const char *name)
{
    const sgi_served_op_data *served;
    LIST_FOREACH(served, &server->calls.waiting, waiting)
        if (!served->item && !strcmp(served->item_name, name))
            return served->shared.op;
    return NULL;
}

/* Finds a tool that was added after the operation came into memory. */
static void find_tool(sgi_op *op)
{
    if (op->served->kind == &sgi_call_tool)
        sgi_served_set_item(op, sgi_item_find(sgi_op_server(op), SEGUE_ITEM_TOOL,
                                              sgi_str_of(op->served->item_name)));
}

void sgi_server_on_tool_added(segue_server *server)
{
    sgi_op *op;
    sgi_item *tool =
        TAILQ_LAST(&sgi_items_of_type(server, SEGUE_ITEM_TOOL)->items, sgi_item_list);
    while ((op = find_awaiting(server, tool->key))) {
        sgi_op_ref(op);
        sgi_server_stop_waiting_to_run(op);
        sgi_served_set_item(op, tool);
        if (!sgi_op_has_ended(op))
            run_again(op);
        sgi_op_unref(op);
    }
    if (tool->options.flags & SEGUE_TOOL_RESTARTABLE)
        sgi_recover_begin_claims(&server->cluster);
}

/* ---- taking over ---- */

/* Decides whether the operation continues on this server. The operation ends when its
 * time to live passed while no server ran it, when its tool was removed or must not run
 * twice, or when the store has lost the last entries of its log: the handler cannot make
 * these entries again under the same numbers. */
void sgi_server_on_op_taken_over(sgi_op *op)
{
    sgi_lasting_call *lasting = op->served->lasting;
    if (sgi_op_is_mailbox(op)) {
        sgi_mailbox_delete_claimed(op);
    } else if (!sgi_op_has_ended(op)) {
        bool expired = sgi_op_expiry(op) <= sgi_wall_now(&op->engine->env) ||
                       (sgi_op_is_lasting_call(op) && lasting->form->is_over(lasting));
        sgi_op_ref(op); /* a server that is closed may drop the last other reference */
        if (!op->served->item)
            find_tool(op);
        sgi_op_server(op)->counts.taken_over++;
        if (sgi_op_is_task(op) || lasting) {
            op->served->who->live_tasks++;
            op->served->counted = true;
        }
        if (op->torn)
            sgi_op_skip_lost_entries(op);
        sgi_call_event_report(op, SGI_EVENT_call_taken_over);
        if (expired)
            sgi_server_expire(op);
        else if (may_await_tool(op))
            wait_to_run(op, sgi_op_server(op)->options.tool_wait_ms, wait_is_over);
        else
            run_again(op);
        if (lasting) {
            sgi_rejoin_offer_channel(op);
            lasting->form->taken_over(lasting);
        }
        sgi_op_unref(op);
    }
}
