/* Handles, for clients that do not wait for the end of a long call and do not support
 * tasks. Such a client gets a handle instead of the result. Three tools of the proxy take
 * a handle: one returns the result, one returns the status, and one cancels the call. A
 * handle cannot be guessed. It belongs to the principal whose call it was. It is in the
 * memory of this process, and is freed an hour after the end of its call. */
#ifndef PROXY_HANDLE_H
#define PROXY_HANDLE_H

#include "relay.h"

typedef struct handle handle;

/* Adds the three tools to the server. */
void handles_add_tools(proxy *p);
/* Answers the call of a relay with a new handle, unless the client gets a task. Returns
 * the handle, or NULL. */
handle *handle_make(relay *r);
/* Called when the call of the handle has ended. error: NULL = the call has a result. */
void handle_finish(handle *h, const char *result, size_t len, const segue_error *error);
/* Called when the call has failed in the proxy itself. data: a JSON object. */
void handle_fail(handle *h, const char *message, json data);
void handle_note(handle *h, const char *message);
/* Frees all handles. */
void handles_free(proxy *p);

#endif
