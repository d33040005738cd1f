/* Remembers which tools of a server of 2025-11-25 can or must be called as tasks. In this
 * revision the client asks for a task if the tool's execution.taskSupport in tools/list
 * allows tasks. The session reads taskSupport from every page of tools/list that it
 * receives. A tool that is not called as a task takes no memory. The memory is limited. A
 * tool beyond the limit is called without a task. All functions are called with the lock
 * held. */
#ifndef SGI_TOOL_TASKS_H
#define SGI_TOOL_TASKS_H

#include "engine/engine.h"

#define SGI_TOOL_TASKS_MAX 10000
#define SGI_TOOL_TASKS_BYTES ((size_t)1024 * 1024)

typedef struct sgi_tool_tasks {
    sgi_engine *engine;
    sgi_map tools; /* the tools that can be called as tasks */
    size_t bytes;
    /* true when the whole list was read and the server has reported no change since */
    bool whole;
    bool in_turn;    /* true when all pages so far were read in the order of the list */
    uint64_t cursor; /* hash of the cursor with which the next page is requested */
} sgi_tool_tasks;

void sgi_tool_tasks_init(sgi_tool_tasks *tasks, sgi_engine *engine);
void sgi_tool_tasks_free(sgi_tool_tasks *tasks);
/* Drops all tools, because the list of tools has changed or belongs to another server. */
void sgi_tool_tasks_clear(sgi_tool_tasks *tasks);
/* Notes which tools of this page of tools/list can be called as tasks. cursor: the cursor
 * with which the page was requested; empty = the first page. */
void sgi_tool_tasks_learn(sgi_tool_tasks *tasks, sgi_json cursor, sgi_json result);
bool sgi_tool_tasks_allow(const sgi_tool_tasks *tasks, sgi_str tool);

#endif
