/* Handles, for clients that do not wait for the end of a long call and do not support
 * tasks. Such a client gets a handle instead of the result. The proxy has three tools
 * that take a handle: one returns the result, one returns the status, and one cancels the
 * call.
 *
 * A handle is the id of a task of the proxy's own server. It cannot be guessed, belongs
 * to the principal that made the call, and is in the store. So another proxy on the same
 * store knows it, too. */
#ifndef PROXY_HANDLE_H
#define PROXY_HANDLE_H

#include "relay.h"

/* Adds the three tools that take a handle to the server of a service. */
void handles_add_tools(service *v);
/* Answers the calls that wait for the result of a handle: it still runs. Called before
 * the server of the service closes. */
void handles_end(service *v);
/* Turns the call of a relay (a client's call and its request to an upstream) into a task
 * that belongs to the call's principal, and answers the call with the id of the task. The
 * request to the upstream goes on. When no task can be made, the call goes on as
 * before. */
void handle_begin(relay *r);
/* When the call is one that handle_begin has made, lets a relay go on with it and returns
 * true. */
bool handle_adopt(const item *i, segue_call *call);
/* Returns the principal of the proxy's conversation with its own server over this
 * transport, once; NULL when the transport is that of a client. The address of a
 * transport that has ended may be that of a client's transport later, so it counts only
 * once. */
const char *handle_take_principal(service *v, const segue_transport *transport);

#endif
