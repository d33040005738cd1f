/* Runs the commands that other servers forward to the owner of an operation; see
 * cluster/forwarding.h. */
#ifndef SGI_COMMANDS_H
#define SGI_COMMANDS_H

#include "engine/log/op.h"

/* Runs a forwarded command. Returns SEGUE_E_NOMEM when the command must be run again
 * later. */
segue_status sgi_forwarded_command_run(sgi_op *op, sgi_str command);
/* True when the client's request to cancel is answered as soon as the forwarded command
 * is durable. */
bool sgi_command_is_answered_when_durable(const sgi_op *op);

#endif
