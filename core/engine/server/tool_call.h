/* Functions that the files of tools/call share: tool_call.c starts an operation, rejoin.c
 * finds an operation that an earlier request has started, call_wait.c makes the request
 * wait for the operation, and call_answer.c answers the request. */
#ifndef SGI_TOOL_CALL_H
#define SGI_TOOL_CALL_H

#include "engine/server/call_request.h"

/* Makes the reply wait for its operation: for the creation of a task, if the client can
 * receive a task, otherwise for the end. */
void sgi_tool_call_set_waiter(sgi_reply *reply, sgi_op *op, uint32_t caps);
/* Makes the reply wait until its operation, a lasting call, is stored. */
void sgi_tool_call_wait_stored(sgi_reply *reply, sgi_op *op);
/* Answers with the result of the operation, or with its error, and closes the reply. */
void sgi_call_answer_reply(sgi_reply *reply, sgi_op *op);
/* Begins the operation of a request. The reply waits for the operation. */
void sgi_tool_call_start(const sgi_inbound *in, const sgi_call_request *request);
/* Answers that the call failed for lack of memory, and closes the reply. op may be
 * NULL. */
void sgi_tool_call_give_up(sgi_reply *reply, sgi_op *op);

/* Returns the operation with the request's idempotency key if it is in memory, otherwise
 * NULL. */
sgi_op *sgi_rejoin_find(const sgi_inbound *in, const sgi_call_request *request);
/* Answers a further request with a known key by the same task or the same result. */
void sgi_rejoin_answer(sgi_reply *reply, sgi_op *op, const sgi_call_request *request);
/* Answers the reply from the operation in the store that has the key. Called when a new
 * operation could not be created because of that key. */
void sgi_rejoin_by_key(sgi_reply *reply, sgi_op *op);
/* Handles a request that brings answers to a round of questions. Returns true when it was
 * handled. Returns false when it brings none, or when the round began at another server
 * and the call has to begin here. */
bool sgi_rejoin_retry(const sgi_inbound *in, const sgi_call_request *request);

#endif
