#include "engine/server/toolless.h"

void sgi_server_stop_awaiting_tool(sgi_op *op)
{
    if (!op->served->awaits_tool)
        return;
    op->served->awaits_tool = false;
    LIST_REMOVE(op->served, toolless);
    sgi_engine_clear_timer(op->engine, &op->served->promote);
}
