/* A raw client of DRAFT-2026-v1. legacy_wire.h has a raw client of 2025-11-25. */
#ifndef DRAFT_WIRE_H
#define DRAFT_WIRE_H

#include "support/legacy_wire.h"

#define DRAFT "DRAFT-2026-v1"

/* Switches the draft on, for scenarios of a server that speaks it. */
void draft_on(segue_server_options *options);
/* Connects and shakes hands; capabilities NULL = {}. */
wire *draft_connect(world *w, const char *principal, const char *capabilities);
/* Calls a tool whose call becomes a task; returns the task id, which lives as long as the
 * world's scenario (64 ids at most). */
const char *draft_make_task(wire *c, const char *id, const char *tool,
                            const char *arguments);
/* Returns the requestState of an answer, with its quotes. */
const char *draft_state_of(const char *response);

#endif
