/* Interrupted operations whose tool this server does not have. They wait until the tool
 * is added, at most for the option tool_wait_ms. */
#ifndef SGI_TOOLLESS_H
#define SGI_TOOLLESS_H

#include "engine/server/server.h"

/* Called when a tool was added: continues or ends the operations that have waited for it.
 * The first tool that can run again lets the server claim operations (tool_wait_ms). */
void sgi_server_on_tool_added(segue_server *server);
/* The operation no longer waits for its tool. Does nothing if it does not wait. */
void sgi_server_stop_awaiting_tool(sgi_op *op);
/* Gives up the operations that wait for their tools, so that other servers can continue
 * them. */
void sgi_server_release_toolless(segue_server *server);

#endif
