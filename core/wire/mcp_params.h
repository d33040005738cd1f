/* Parameters of a tool that its inputSchema asks to repeat in headers, by the annotation
 * x-mcp-header (2026-07-28 basic/transports/streamable-http, "Custom Headers from Tool
 * Parameters"). A client reads them once per tool and drops the tool when it cannot; both
 * sides then find the value of each in the arguments of a call. One thread at a time; no
 * threads of its own. */
#ifndef SGI_MCP_PARAMS_H
#define SGI_MCP_PARAMS_H

#include "wire/json_read.h"

/* Bounds, as a request cannot carry headers without end anyway. */
#define SGI_MCP_MAX_PARAMS 64
#define SGI_MCP_MAX_PARAM_TEXT ((size_t)64 * 1024) /* names and paths, all together */
#define SGI_MCP_MAX_SCHEMA_DEPTH 64                /* schemas within schemas */

typedef enum sgi_mcp_fault {
    SGI_MCP_FAULT_NONE = 0,
    SGI_MCP_FAULT_NAME_KIND, /* the annotation is no string */
    SGI_MCP_FAULT_NAME_EMPTY,
    SGI_MCP_FAULT_NAME_TOKEN, /* not a token of RFC 9110, 5.6.2 */
    SGI_MCP_FAULT_DUPLICATE,  /* but for the case of its letters */
    SGI_MCP_FAULT_TYPE,       /* not on a string, an integer or a boolean */
    SGI_MCP_FAULT_PLACE,      /* not reached by `properties` alone */
    SGI_MCP_FAULT_COUNT,
    SGI_MCP_FAULT_DEPTH,
    SGI_MCP_FAULT_NOMEM
} sgi_mcp_fault;

/* The reason, for the log line about the tool. */
const char *sgi_mcp_fault_text(sgi_mcp_fault fault);

typedef struct sgi_mcp_params {
    sgi_buf items; /* of struct item */
    sgi_buf text;  /* names and paths */
    sgi_str where; /* after a fault: key in the schema that it lies under, escaped */
} sgi_mcp_params;

void sgi_mcp_params_init(sgi_mcp_params *params, const sgi_mem *mem);
void sgi_mcp_params_free(sgi_mcp_params *params);
/* Reads a schema that has passed the reader, instead of what was read before. After a
 * fault there is no parameter. `where` points into the schema, the rest does not. */
sgi_mcp_fault sgi_mcp_params_read(sgi_mcp_params *params, sgi_json schema);
size_t sgi_mcp_params_count(const sgi_mcp_params *params);
/* What follows Mcp-Param- in the name of the header, as the schema has it. */
sgi_str sgi_mcp_params_name(const sgi_mcp_params *params, size_t index);
/* The value of a parameter in the arguments of a call; empty when it is absent. */
sgi_json sgi_mcp_params_value(const sgi_mcp_params *params, size_t index,
                              sgi_json arguments);

#endif
