/* Functions that the files of tools/call share. tool_call.c starts an operation, rejoin.c
 * finds an operation that an earlier request has started, call_wait.c makes the request
 * wait for the operation, and call_answer.c answers the request. */
#ifndef SGI_TOOL_CALL_H
#define SGI_TOOL_CALL_H

#include "engine/server/call_request.h"

/* Makes the reply wait for its operation. If the operation is a task and the client
 * accepts tasks, the reply waits for the creation of the task, otherwise for the end.
 * caps: the capabilities that the client has declared (sgi_cap). */
void sgi_tool_call_set_waiter(sgi_reply *reply, sgi_op *op, uint32_t caps);
/* Makes the reply wait until the creation of its operation is durable. The operation is a
 * lasting call (its client can leave and come back). */
void sgi_tool_call_wait_stored(sgi_reply *reply, sgi_op *op);
/* The same for a reply that joins a lasting call which another request has made. Before
 * the creation is durable, the store can still refuse the call, because its idempotency
 * key belongs to another one. So the reply becomes no channel before. */
void sgi_tool_call_join_when_stored(sgi_reply *reply, sgi_op *op);
/* Sends the result or the error of the operation as the answer on the reply, and closes
 * the reply. */
void sgi_call_answer_reply(sgi_reply *reply, sgi_op *op);
/* Begins the operation of a request and makes the reply of the request wait for it. */
void sgi_tool_call_start(const sgi_inbound *in, const sgi_call_request *request);
/* item_call_op.c: makes the operation of a call of a list, or of an item that is no tool.
 * own_arguments: the arguments as a text that the operation owns from now on; NULL = the
 * arguments are in the params of the request. Returns NULL when out of memory. */
sgi_op *sgi_item_call_op_new(const sgi_inbound *in, const sgi_call_request *request,
                             char *own_arguments);
/* Sends the error "Out of memory" as the answer on the reply, and closes the reply. op:
 * the operation of the call, which is ended; can be NULL. */
void sgi_tool_call_fail_no_memory(sgi_reply *reply, sgi_op *op);

/* Returns the operation in memory that has the request's idempotency key. Returns NULL
 * when no such operation is in memory. */
sgi_op *sgi_rejoin_find_op(const sgi_inbound *in, const sgi_call_request *request);
/* Answers a repeated request with the task or the result of the operation that has the
 * same idempotency key. */
void sgi_rejoin_answer(sgi_reply *reply, sgi_op *op, const sgi_call_request *request);
/* Makes the reply join a call that an earlier request has made: as its channel if its
 * client has gone, otherwise beside the channel. */
void sgi_rejoin_stored(sgi_reply *reply, sgi_op *op, uint32_t caps);
/* A client that has repeated a lasting call gets only the result, perhaps in pieces,
 * while the call has a channel. Called when that may have changed: the channel has gone,
 * the server has taken the call over, or the server has read that the client has left
 * another server. Makes the newest waiting reply the channel, so that its client gets the
 * messages of the call, such as its questions. */
void sgi_rejoin_offer_channel(sgi_op *op);
/* Makes the reply wait for the stored operation that has the idempotency key of `op`.
 * Called when `op` could not be created because the store already has this key. */
void sgi_rejoin_by_key(sgi_reply *reply, sgi_op *op);
/* Handles a request that brings answers to the questions of a round (an answer that asks
 * questions). Returns true when the request was handled. Returns false when the request
 * brings no answers, or when another server made the round, so that the call must begin
 * anew on this server. */
bool sgi_rejoin_round(const sgi_inbound *in, const sgi_call_request *request);

#endif
