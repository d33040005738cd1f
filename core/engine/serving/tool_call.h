/* Between the files of tools/call: tool_call.c starts an operation and answers for it,
 * rejoin.c finds one that was started before. */
#ifndef SGI_TOOL_CALL_H
#define SGI_TOOL_CALL_H

#include "engine/serving/call_request.h"

/* The reply waits for an operation that somebody asked for: for its creation when it is a
 * task that this client can take, else for its end. */
void sgi_tool_call_wait(sgi_reply *reply, sgi_op *op, uint32_t caps);
/* Answers with the result, or what came instead; closes the reply. */
void sgi_call_answer(sgi_reply *reply, sgi_op *op);
/* Begins the operation of a request that was decided on; its reply waits for it. */
void sgi_tool_call_start(const sgi_inbound *in, const sgi_call_request *request);
/* Nothing came of it for lack of memory; op may be NULL. Closes the reply. */
void sgi_tool_call_give_up(sgi_reply *reply, sgi_op *op);

/* The operation with the request's idempotency key, if it is in memory; else NULL. */
sgi_op *sgi_rejoin_find(const sgi_inbound *in, const sgi_call_request *request);
/* A second request with a key that is known: the same task, or the same answer. */
void sgi_rejoin_known(sgi_reply *reply, sgi_op *op, const sgi_call_request *request);
/* Its key was found in the store when it was to be created. */
void sgi_rejoin_by_key(sgi_reply *reply, sgi_op *op);
/* Is it a request with answers to a round of questions? Then it was taken care of, unless
 * the round was one of another server: false, and its call is to begin here. */
bool sgi_rejoin_retry(const sgi_inbound *in, const sgi_call_request *request);

#endif
