/* Authorization of the fixture client of the conformance suite: its identity for the
 * authorization server of a scenario, and a browser without a window. */
#ifndef CONFORMANCE_CLIENT_AUTH_H
#define CONFORMANCE_CLIENT_AUTH_H

#include <segue/segue.h>

#include <stdbool.h>

/* Prepares a transport that is not attached yet. context_json: MCP_CONFORMANCE_CONTEXT,
 * or NULL. Returns false when that fails. */
bool conformance_authorize(segue_runtime *runtime, segue_transport *transport,
                           const char *scenario, const char *context_json);

#endif
