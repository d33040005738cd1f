/* Which tools of a server of 2025-11-25 may or must be called as tasks: it is the client
 * that asks for a task there, by what tools/list says of the tool
 * (execution.taskSupport). Learnt from every page that passes through the session; a tool
 * that is called plainly takes no room. Bounded: what finds no room is called plainly.
 * Lock held. */
#ifndef SGI_TOOL_TASKS_H
#define SGI_TOOL_TASKS_H

#include "engine/engine.h"

#define SGI_TOOL_TASKS_MAX 10000
#define SGI_TOOL_TASKS_BYTES ((size_t)1024 * 1024)

typedef struct sgi_tool_tasks {
    sgi_engine *engine;
    sgi_map tools; /* those that may be tasks */
    size_t bytes;
    bool whole;      /* the list was read to its end, and has not changed since */
    bool in_turn;    /* its pages have come in turn, so far, */
    uint64_t cursor; /* ... and go on behind this one: its hash */
} sgi_tool_tasks;

void sgi_tool_tasks_init(sgi_tool_tasks *tasks, sgi_engine *engine);
void sgi_tool_tasks_free(sgi_tool_tasks *tasks);
/* The list has changed, or is another server's. */
void sgi_tool_tasks_forget(sgi_tool_tasks *tasks);
/* A page; cursor: it was asked for with, empty = the first one. */
void sgi_tool_tasks_learn(sgi_tool_tasks *tasks, sgi_json cursor, sgi_json result);
bool sgi_tool_tasks_may(const sgi_tool_tasks *tasks, sgi_str tool);

#endif
