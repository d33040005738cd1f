#include "engine/server/waiting_ops.h"

void sgi_server_stop_waiting_to_run(sgi_op *op)
{
    if (!op->served->waits_to_run)
        return;
    op->served->waits_to_run = false;
    LIST_REMOVE(op->served, waiting);
    sgi_engine_clear_timer(op->engine, &op->served->promote);
}
