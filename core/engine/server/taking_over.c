/* Continues or ends an unfinished operation of an earlier process, or of another server
 * that has gone. */
#include "engine/error.h"
#include "engine/server/call.h"
#include "engine/server/mailbox.h"
#include "engine/server/lasting.h"
#include "engine/server/task.h"
#include "engine/server/tool_call.h"

/* Ends the operation with an error. If memory is short, messages that only a returning
 * client could get are dropped first. */
static void give_up(sgi_op *op)
{
    const char *text = op->torn ? "The store has lost the end of the operation's log"
                                : "Server restarted";
    sgi_str data = op->torn ? SGI_STR("{\"reason\":\"store_torn\"}")
                            : SGI_STR("{\"reason\":\"server_restarted\"}");
    if ((!op->torn && !sgi_op_is_lasting_call(op)) ||
        sgi_op_fail(op, SGI_ENTRY_ERROR, SGI_RPC_INTERNAL_ERROR, sgi_str_of(text),
                    data) != SEGUE_OK)
        sgi_op_end_internal_error(op, text);
}

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
        bool restartable =
            op->served->item && op->served->item->options.flags & SEGUE_TOOL_RESTARTABLE;
        sgi_op_server(op)->counts.taken_over++;
        if (sgi_op_is_task(op) || lasting) {
            op->served->who->live_tasks++;
            op->served->counted = true;
        }
        if (op->torn)
            sgi_op_skip_lost_entries(op);
        if (expired)
            sgi_server_expire(op);
        else if (op->torn || !restartable || sgi_call_start(op, true) != SEGUE_OK)
            give_up(op);
        else
            sgi_server_start_ttl(op);
        if (lasting) {
            sgi_rejoin_offer_channel(op);
            lasting->form->taken_over(lasting);
        }
    }
}
