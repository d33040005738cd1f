/* Changes an existing operation: its status, and its end. */
#include "engine/server/task.h"

#include "engine/cluster/forwarding.h"
#include "engine/server/call.h"

static void write_status(sgi_buf *out, const char *status, sgi_str message)
{
    sgi_jw w = sgi_jw_to(out);
    sgi_jw_open(&w, '{');
    if (status)
        sgi_jw_member_string(&w, "status", sgi_str_of(status));
    if (message.p)
        sgi_jw_member_string(&w, "statusMessage", message);
    sgi_jw_close(&w, '}');
}

segue_status sgi_task_append_status(sgi_op *op, const char *status, sgi_str message)
{
    sgi_buf payload;
    sgi_buf_init(&payload, sgi_engine_mem(op->engine));
    write_status(&payload, status, message);
    segue_status result =
        payload.failed ? SEGUE_E_NOMEM
                       : sgi_op_append(op, SGI_ENTRY_STATUS, sgi_buf_str(&payload));
    sgi_buf_free(&payload);
    return result;
}

/* ---- the end ---- */

void sgi_task_stop_handler(sgi_op *op, segue_status status)
{
    if (op->served->call && (status == SEGUE_OK || status == SEGUE_E_NOMEM))
        sgi_call_cancel(op->served->call);
}

segue_status sgi_task_cancel(sgi_op *op)
{
    if (sgi_op_runs_elsewhere(op))
        return sgi_op_has_ended(op) ? SEGUE_OK : sgi_forward_cancel(op);
    /* A reference for this function: the call that ends here can hold the last other
     * reference to the operation. */
    sgi_op_ref(op);
    sgi_task_stop_handler(op, sgi_op_end(op, SGI_ENTRY_CANCELLED, SGI_STR("{}")));
    sgi_op_unref(op);
    return SEGUE_OK;
}

bool sgi_task_is_unstoppable(const sgi_op *op)
{
    return op->served->item && op->served->item->options.flags & SEGUE_TOOL_UNSTOPPABLE;
}

void sgi_task_expire(sgi_op *op)
{
    sgi_op_ref(op);
    sgi_task_stop_handler(op, sgi_op_fail(op, SGI_ENTRY_EXPIRED, SGI_RPC_INTERNAL_ERROR,
                                          SGI_STR("Task TTL expired"), (sgi_json){0}));
    sgi_op_unref(op);
}
