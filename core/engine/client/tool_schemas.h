/* Remembers the outputSchema of each tool. If the application has a validator, the output
 * of a tool is checked against the tool's schema. The session reads schemas from every
 * page of tools/list that it receives. A tool without a schema takes no memory. The
 * memory is limited. The output of a tool beyond the limit is not checked. All functions
 * are called with the lock held. */
#ifndef SGI_TOOL_SCHEMAS_H
#define SGI_TOOL_SCHEMAS_H

#include "engine/engine.h"

#define SGI_TOOL_SCHEMAS_MAX 1000
#define SGI_TOOL_SCHEMAS_BYTES ((size_t)1024 * 1024)

typedef struct sgi_tool_schemas {
    sgi_engine *engine;
    bool on; /* true when the application has a validator, so that schemas are stored */
    sgi_map tools;
    size_t bytes;
} sgi_tool_schemas;

void sgi_tool_schemas_init(sgi_tool_schemas *schemas, sgi_engine *engine, bool on);
void sgi_tool_schemas_free(sgi_tool_schemas *schemas);
/* Drops all schemas, because the list of tools has changed or belongs to another
 * server. */
void sgi_tool_schemas_clear(sgi_tool_schemas *schemas);
/* Reads the schemas in a result of tools/list. begins: the result is the first page, so
 * all older schemas are dropped. */
void sgi_tool_schemas_learn(sgi_tool_schemas *schemas, sgi_json result, bool begins);
/* Returns the schema of a tool; empty when the tool has no schema or is not known. */
sgi_json sgi_tool_schemas_find(const sgi_tool_schemas *schemas, sgi_str tool);

#endif
