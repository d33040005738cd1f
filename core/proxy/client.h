/* The clients of the proxy: what each of them does outside of calls goes to its upstream,
 * and what an upstream sends outside of calls goes to its clients. */
#ifndef PROXY_CLIENT_H
#define PROXY_CLIENT_H

#include "proxy.h"

/* Watches the clients of a service. Called before its server serves. */
bool clients_watch(service *v);
void clients_free(service *v);

/* Returns the text that names the upstream of a client in each source: upstreams with
 * equal keys are one upstream of their source. number: that of a session; 0 = no
 * session. The caller frees the text. Returns NULL when out of memory. */
char *client_key(const proxy *p, uint64_t number, const char *principal);
/* Returns the capabilities that an upstream of one session should see, as JSON, or NULL
 * when the session is not known. The caller frees the text. */
char *client_capabilities(const service *v, uint64_t number);
/* Like client_capabilities, for an upstream that learns with each request what it may
 * ask. Returns NULL when the client of the call is not known any more. */
char *client_call_capabilities(const service *v, const segue_call *call);

/* Returns the lowest level of log messages to ask the upstream for during a call; NULL =
 * the upstream decides. */
const char *client_log_level(const upstream *u, const segue_call *call);
/* Returns the lowest level that a client of the upstream has set; NULL = none has. */
const char *clients_lowest_level(const upstream *u);

/* Lets the subscriptions whose source is not known, or has ended, look for their source
 * again. Called when a source has other resources. */
void clients_subscribe_anew(service *v);

/* Passes on a change of a resource to the clients of the upstream that have subscribed to
 * the resource. */
void clients_updated(const upstream *u, const char *uri);
/* Passes on a log message, the params of notifications/message, to the clients of the
 * upstream that want its level. */
void clients_log(const upstream *u, const char *params, size_t len);
/* Asks a client of the upstream what the upstream asks outside of calls (stray.c). */
void clients_ask(upstream *u, segue_request *request, const char *key, const char *method,
                 const char *params, size_t len);
/* Returns the number of the one client of the upstream that answers questions of this
 * method. Returns 0 when there is no such client, or several. */
uint64_t clients_find_one(const upstream *u, const char *method);

#endif
