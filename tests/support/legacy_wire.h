/* A raw client of 2025-11-25 that has tasks: what wire_make_task and its like are for
 * 2026-07-28. */
#ifndef LEGACY_WIRE_H
#define LEGACY_WIRE_H

#include "support/world.h"

#define MODES_ALL                                                                        \
    "{\"tasks\":{\"responses\":{\"modes\":[\"task\",\"immediate\",\"streaming\"]}}}"

/* ... and takes it that segments are made void. */
#define MODES_AND_REPLACE                                                                \
    "{\"tasks\":{\"responses\":{\"modes\":[\"task\",\"immediate\",\"streaming\"]}},"     \
    "\"experimental\":{\"dev.segue/replace\":{}}}"

/* Connects and shakes hands; capabilities: NULL = {}. */
wire *legacy_connect(world *w, const char *principal, const char *capabilities);
/* The same with a revision of choice. */
wire *legacy_connect_as(world *w, const char *principal, const char *version,
                        const char *capabilities);
/* The answer to initialize alone. */
const char *legacy_hello(wire *c, const char *version, const char *capabilities);

/* tools/call with params.task; task: the object, NULL = {}. */
void legacy_ask_task(wire *c, const char *id, const char *tool, const char *arguments,
                     const char *task);
/* The same, and its answer. */
const char *legacy_call(wire *c, const char *id, const char *tool, const char *arguments,
                        const char *task);
/* The same; returns the id of the task that it is (lives as long as the world's
 * scenario; at most 64 of them). */
const char *legacy_make_task(wire *c, const char *id, const char *tool,
                             const char *arguments, const char *task);
/* Asks something about a task; more: members beside taskId. */
void legacy_ask_about(wire *c, const char *id, const char *method, const char *task_id,
                      const char *more);
const char *legacy_task(wire *c, const char *id, const char *method, const char *task_id,
                        const char *more);
/* tasks/get until the status is as wanted; time passes in steps of 50 ms. */
const char *legacy_get_until(wire *c, const char *task_id, const char *status);

#endif
