/* Functions that the files of tools/call share: tool_call.c starts an operation, rejoin.c
 * finds an operation that an earlier request has started, call_wait.c makes the request
 * wait for the operation, and call_answer.c answers the request. */
#ifndef SGI_TOOL_CALL_H
#define SGI_TOOL_CALL_H

#include "engine/server/call_request.h"

/* Makes the reply wait for its operation: for the creation of the task, if the call is a
 * task that the client can receive, otherwise for the end. caps: what the client has
 * declared (sgi_cap). */
void sgi_tool_call_set_waiter(sgi_reply *reply, sgi_op *op, uint32_t caps);
/* Makes the reply wait until its operation, a lasting call, is stored. */
void sgi_tool_call_wait_stored(sgi_reply *reply, sgi_op *op);
/* Answers with the result of the operation, or with its error, and closes the reply. */
void sgi_call_answer_reply(sgi_reply *reply, sgi_op *op);
/* Begins the operation of a request. The reply waits for the operation. */
void sgi_tool_call_start(const sgi_inbound *in, const sgi_call_request *request);
/* Answers that there was no memory for the call, and closes the reply. op: the operation,
 * which is ended; may be NULL. */
void sgi_tool_call_give_up(sgi_reply *reply, sgi_op *op);

/* Returns the operation in memory that has the request's idempotency key; NULL when there
 * is none. */
sgi_op *sgi_rejoin_find(const sgi_inbound *in, const sgi_call_request *request);
/* Answers a repeated request with the task or the result of the operation that has the
 * same key. */
void sgi_rejoin_answer(sgi_reply *reply, sgi_op *op, const sgi_call_request *request);
/* Makes the reply wait for the stored operation that has the key. Called when a new
 * operation could not be created because of this key. */
void sgi_rejoin_by_key(sgi_reply *reply, sgi_op *op);
/* Handles a request that brings answers to a round of questions. Returns true when the
 * request was handled. Returns false when it brings no answers, or when another server
 * made the round, so that the call has to begin at this server. */
bool sgi_rejoin_retry(const sgi_inbound *in, const sgi_call_request *request);

#endif
