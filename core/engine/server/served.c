#include "engine/server/served.h"

#include "engine/server/dialects.h"

static void put(char *at, sgi_str text)
{
    if (text.n)
        memcpy(at, text.p, text.n);
    at[text.n] = 0;
}

sgi_op *sgi_served_op_new(segue_server *server, sgi_str item_name, sgi_str params)
{
    sgi_op *op = sgi_op_new(&server->committer, params.n + 1 + item_name.n + 1);
    if (!op)
        return NULL;
    sgi_served_op_data *served = (sgi_served_op_data *)(op + 1);
    op->served = served;
    op->shared = &served->shared;
    served->shared.op = op;
    served->kind = &sgi_call_tool;
    sgi_server_ref(server);
    char *texts = op->start->texts;
    served->params_len = params.n;
    served->params = texts;
    served->item_name = texts + params.n + 1;
    put(texts, params);
    put(texts + params.n + 1, item_name);
    sgi_op_hold_bytes(op, params.n);
    return op;
}

void sgi_served_set_item(sgi_op *op, sgi_item *item)
{
    bool has_output = item && item->has_output;
    op->served->item = item;
    op->output = SGI_OUTPUT_NONE;
    if (item)
        sgi_item_ref(item);
    if (has_output)
        op->output =
            sgi_op_server(op)->options.on_validate ? SGI_OUTPUT_KEPT : SGI_OUTPUT_THERE;
}

sgi_json sgi_op_arguments(const sgi_op *op)
{
    const sgi_served_op_data *served = op->served;
    if (served->arguments.n)
        return served->arguments;
    return sgi_json_get((sgi_json){served->params, served->params_len}, "arguments");
}

/* True when every segment becomes a separate block of the result. SEP-1905 and some other
 * dialects cannot say that a text continues a block, so a client that merges their
 * segments has one block for each segment. The result must have the same blocks. */
bool sgi_op_keeps_segments_apart(const sgi_op *op)
{
    return op->served->streams || sgi_op_server(op)->keeps_segments_apart;
}

/* Sets how segments and fields are merged into the result. When an MCP server gets the
 * answer of a host in segments, it merges the segments without change (R-1905-34), so the
 * result must be merged in the same way. */
void sgi_served_configure_fold(const sgi_op *op, sgi_fold *fold)
{
    const sgi_served_op_data *served = op->served;
    fold->list = served->kind->list;
    fold->is_message = served->kind->is_message && !served->streams;
    fold->only_objects = served->only_objects;
    fold->keeps_segments = sgi_op_keeps_segments_apart(op);
}
