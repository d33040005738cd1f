/* The operation of a call of an item other than a tool, and of a list. */
#include "engine/server/call.h"
#include "engine/server/clients.h"
#include "engine/server/grant.h"
#include "engine/server/origin.h"
#include "engine/server/tool_call.h"

sgi_op *sgi_item_call_op_new(const sgi_inbound *in, const sgi_call_request *request,
                             char *own_arguments)
{
    sgi_op *op = sgi_served_op_new(in->peer->server, request->name, in->params);
    if (!op) {
        sgi_text_free(sgi_engine_mem(in->peer->server->engine), own_arguments);
        return NULL;
    }
    op->served->kind = request->kind;
    sgi_served_set_item(op, request->tool);
    op->served->only_objects = !sgi_facts(in->version)->has_any_output;
    op->served->own_arguments = own_arguments;
    op->served->arguments = own_arguments ? sgi_str_of(own_arguments) : (sgi_json){0};
    sgi_budget_set_owner(op, in->peer->who);
    sgi_principal_ref(op->served->who);
    sgi_op_set_grant_of(op, in->peer);
    sgi_op_set_origin_of(op, in->peer);
    op->served->client = sgi_peer_client_number(in->peer);
    op->served->caps = request->caps & ~(uint32_t)SGI_CAP_TASKS;
    return op;
}
