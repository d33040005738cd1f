/* What the author of a result is told when the result is too large. */
#include "engine/server/emit.h"

/* Returns advice for the error of a result that is too large (R-776-16): what the author
 * can use instead. Only tools and questions can be tasks, and only results with a list
 * can be sent in pieces. Pieces do not save memory in 2026-07-28, where every answer has
 * the whole result. Pieces do not save memory in DRAFT-2026-v1 either: if the handler
 * asks questions later, the call is sent again and its answer needs the pieces. */
static const char *other_ways(const sgi_op *op)
{
    const sgi_reply *reply = op->served->reply;
    const sgi_item *item = op->served->item;
    const sgi_call_kind *kind = op->served->kind;
    bool is_whole = reply && sgi_facts(reply->version)->has_rounds;
    bool is_stranger = reply && reply->peer && reply->peer->stranger;
    bool is_never_task = item && item->options.task == SEGUE_TASK_NEVER;
    if (kind != &sgi_call_tool && !sgi_call_is_question(kind))
        return is_whole || !kind->list ? "raise the limit on the server"
                                       : "ask for it in pieces (allowPartial), or raise "
                                         "the limit on the server";
    if (is_whole && is_never_task)
        return "let the tool run as a task (its option task), or raise the limit on the "
               "server";
    if (is_whole && is_stranger)
        return "authenticate, because only authenticated callers get tasks, or raise "
               "the limit on the server";
    if (is_whole)
        return "declare tasks in the client, so that the call runs as a task, or raise "
               "the limit on the server";
    if (is_stranger || is_never_task)
        return "ask for it in pieces (allowPartial), or raise the limit on the server";
    return "ask for it in pieces (allowPartial) or as a task, or raise the limit on the "
           "server";
}

sgi_limit_text sgi_emit_describe_limit(const sgi_op *op)
{
    if (sgi_op_is_logged(op))
        return sgi_engine_describe_limit(
            op->engine, "The result is larger than the server keeps", op->reached,
            "log_overflow", "raise the limit on the server");
    /* the limit applies only to the unsent part of the result, because sent pieces were
     * freed */
    if (op->frees_consumed)
        return sgi_engine_describe_limit(
            op->engine, "A part of the result is too large", op->reached, "limit",
            "send it in smaller blocks, or raise the limit on the "
            "server");
    return sgi_engine_describe_limit(op->engine, "The result is too large for one answer",
                                     op->reached, "partial_results_required",
                                     other_ways(op));
}
