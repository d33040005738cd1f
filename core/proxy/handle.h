/* Handles: what a host gets that does not wait for the end of a call and knows no tasks.
 * Three tools of the proxy take a handle: one gives the result, one the status, one
 * cancels. A handle cannot be guessed and belongs to the principal whose call it was. It
 * is in the memory of this process, and lives an hour after the end of its call. */
#ifndef PROXY_HANDLE_H
#define PROXY_HANDLE_H

#include "relay.h"

typedef struct handle handle;

/* Adds the three tools to the server. */
void handles_add_tools(proxy *p);
/* Answers the call of a relay with a new handle, unless the client gets a task. Returns
 * the handle, or NULL. */
handle *handle_make(relay *r);
/* The call of the handle has ended. error: NULL = with a result. */
void handle_finish(handle *h, const char *result, size_t len, const segue_error *error);
/* The call has failed in the proxy. data: an object. */
void handle_fail(handle *h, const char *message, json data);
void handle_note(handle *h, const char *message);
/* Frees the handles that are left. */
void handles_free(proxy *p);

#endif
