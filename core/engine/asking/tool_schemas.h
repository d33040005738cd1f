/* The outputSchema of tools, as far as tools/list has told of them: what they give is
 * checked against it, where the application has a validator. Learnt from every page that
 * passes through the session; a tool without one takes no room. Bounded: what finds no
 * room is not checked. Lock held. */
#ifndef SGI_TOOL_SCHEMAS_H
#define SGI_TOOL_SCHEMAS_H

#include "engine/engine.h"

#define SGI_TOOL_SCHEMAS_MAX 1000
#define SGI_TOOL_SCHEMAS_BYTES ((size_t)1024 * 1024)

typedef struct sgi_tool_schemas {
    sgi_engine *engine;
    bool on; /* somebody checks */
    sgi_map tools;
    size_t bytes;
} sgi_tool_schemas;

void sgi_tool_schemas_init(sgi_tool_schemas *schemas, sgi_engine *engine, bool on);
void sgi_tool_schemas_free(sgi_tool_schemas *schemas);
/* The list has changed, or is another server's. */
void sgi_tool_schemas_forget(sgi_tool_schemas *schemas);
/* A result of tools/list; begins: it is the first page. */
void sgi_tool_schemas_learn(sgi_tool_schemas *schemas, sgi_json result, bool begins);
/* Empty when there is none, or it is not known. */
sgi_json sgi_tool_schemas_find(const sgi_tool_schemas *schemas, sgi_str tool);

#endif
