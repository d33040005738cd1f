/* Handles, for clients that do not wait for the end of a long call and do not support
 * tasks. Such a client gets a handle instead of the result. The proxy has three tools
 * that take a handle: one returns the result, one returns the status, and one cancels the
 * call. A handle cannot be guessed, and belongs to the principal that made the call.
 * Handles are in the memory of this process. A handle is freed an hour after the end of
 * its call. */
#ifndef PROXY_HANDLE_H
#define PROXY_HANDLE_H

#include "relay.h"

typedef struct handle handle;

/* Adds the three tools that take a handle to the server. */
void handles_add_tools(proxy *p);
/* Answers the call of a relay (a client's call and its request to an upstream) with a
 * new handle. Returns NULL, and does not answer, when the client gets a task or no
 * handle can be made. */
handle *handle_make(relay *r);
/* Called when the call of the handle has ended at the upstream. error NULL: the call has
 * a result. */
void handle_finish(handle *h, const char *result, size_t len, const segue_error *error);
/* Called when the call has failed in the proxy itself. data: a JSON object, the data of
 * the error. */
void handle_fail(handle *h, const char *message, json data);
void handle_note(handle *h, const char *message);
/* Frees all handles. */
void handles_free(proxy *p);

#endif
