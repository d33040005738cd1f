/* Interrupted operations of this server that wait to run again: until the tool is added
 * that the server does not have (at most for the option tool_wait_ms), or until there is
 * memory for the call. */
#ifndef SGI_WAITING_OPS_H
#define SGI_WAITING_OPS_H

#include "engine/server/server.h"

/* Called when a tool was added: continues or ends the operations that have waited for it.
 * The first tool that can run again lets the server claim operations (tool_wait_ms). */
void sgi_server_on_tool_added(segue_server *server);
/* The operation no longer waits to run. Does nothing if it does not wait. */
void sgi_server_stop_waiting_to_run(sgi_op *op);
/* Gives up the operations that wait to run, so that other servers can continue them. */
void sgi_server_release_waiting(segue_server *server);

#endif
