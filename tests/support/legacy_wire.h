/* A raw client of 2025-11-25 that supports tasks. Its functions correspond to
 * wire_make_task and others for 2026-07-28. */
#ifndef LEGACY_WIRE_H
#define LEGACY_WIRE_H

#include "support/world.h"

#define MODES_ALL                                                                        \
    "{\"tasks\":{\"responses\":{\"modes\":[\"task\",\"immediate\",\"streaming\"]}}}"

/* Capabilities with all response modes, and with support for replaced segments. */
#define MODES_AND_REPLACE                                                                \
    "{\"tasks\":{\"responses\":{\"modes\":[\"task\",\"immediate\",\"streaming\"]}},"     \
    "\"experimental\":{\"dev.segue/replace\":{}}}"

/* Connects and shakes hands; capabilities NULL = {}. */
wire *legacy_connect(world *w, const char *principal, const char *capabilities);
/* Connects and shakes hands with the given revision. */
wire *legacy_connect_as(world *w, const char *principal, const char *version,
                        const char *capabilities);
/* Sends initialize and returns the answer. */
const char *legacy_hello(wire *c, const char *version, const char *capabilities);

/* Sends tools/call with params.task; task: the object, NULL = {}. */
void legacy_ask_task(wire *c, const char *id, const char *tool, const char *arguments,
                     const char *task);
/* Sends tools/call as legacy_ask_task does, and returns the answer. */
const char *legacy_call(wire *c, const char *id, const char *tool, const char *arguments,
                        const char *task);
/* Sends tools/call as legacy_ask_task does, and returns the id of the task. At most 64
 * ids live, each as long as the world's scenario. */
const char *legacy_make_task(wire *c, const char *id, const char *tool,
                             const char *arguments, const char *task);
/* Sends a request about a task; more: members beside taskId. */
void legacy_ask_about(wire *c, const char *id, const char *method, const char *task_id,
                      const char *more);
const char *legacy_task(wire *c, const char *id, const char *method, const char *task_id,
                        const char *more);
/* Repeats tasks/get until the task has this status; time passes in steps of 50 ms. */
const char *legacy_get_until(wire *c, const char *task_id, const char *status);
/* Repeats tasks/get until the question with this key is listed. Questions that a handler
 * asks together are listed one after the other. */
const char *legacy_get_until_asked(wire *c, const char *task_id, const char *key);

#endif
