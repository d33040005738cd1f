/* A raw client of DRAFT-2026-v1: what legacy_wire.h is for 2025-11-25. */
#ifndef DRAFT_WIRE_H
#define DRAFT_WIRE_H

#include "support/legacy_wire.h"

#define DRAFT "DRAFT-2026-v1"

/* For the scenarios of a server that speaks it. */
void draft_on(segue_server_options *options);
/* Connects and shakes hands; capabilities: NULL = {}. */
wire *draft_connect(world *w, const char *principal, const char *capabilities);
/* Calls a tool, which becomes a task; returns its id (lives as long as the world's
 * scenario; at most 64 of them). */
const char *draft_make_task(wire *c, const char *id, const char *tool,
                            const char *arguments);
/* The requestState of an answer, with its quotes. */
const char *draft_state_of(const char *response);

#endif
