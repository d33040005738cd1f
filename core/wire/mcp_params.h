/* The parameters of a tool that a client repeats in headers. The tool's inputSchema
 * marks these parameters with x-mcp-header (2026-07-28
 * basic/transports/streamable-http, "Custom Headers from Tool Parameters"). A client
 * reads the parameters once per tool and drops the tool when they are invalid. Client
 * and server then find the values of the parameters in the arguments of a call. One
 * thread at a time uses an object. */
#ifndef SGI_MCP_PARAMS_H
#define SGI_MCP_PARAMS_H

#include "wire/json_read.h"

/* Limits per tool. They are low, because a request can carry only so many headers. */
#define SGI_MCP_MAX_PARAMS 64
#define SGI_MCP_MAX_PARAM_TEXT ((size_t)64 * 1024) /* bytes of all names and paths */
#define SGI_MCP_MAX_SCHEMA_DEPTH 64                /* maximum nesting of schemas */

typedef enum sgi_mcp_fault {
    SGI_MCP_FAULT_NONE = 0,
    SGI_MCP_FAULT_NAME_KIND, /* the annotation is not a string */
    SGI_MCP_FAULT_NAME_EMPTY,
    SGI_MCP_FAULT_NAME_TOKEN, /* the name has a character that a token of RFC 9110,
                               * 5.6.2 cannot have */
    SGI_MCP_FAULT_DUPLICATE,  /* two names are equal if the case of their letters is
                               * ignored */
    SGI_MCP_FAULT_TYPE,  /* the annotation is not on a string, an integer or a boolean */
    SGI_MCP_FAULT_PLACE, /* a keyword other than `properties` leads to the annotation */
    SGI_MCP_FAULT_COUNT,
    SGI_MCP_FAULT_DEPTH,
    SGI_MCP_FAULT_NOMEM
} sgi_mcp_fault;

/* Returns the text of a fault, for the log line about the tool. */
const char *sgi_mcp_fault_text(sgi_mcp_fault fault);

typedef struct sgi_mcp_params {
    sgi_buf items; /* an array of struct item */
    sgi_buf text;  /* the bytes of all names and paths */
    /* after a fault: the key in the schema at which the fault is, as a view with
     * escapes */
    sgi_str where;
} sgi_mcp_params;

void sgi_mcp_params_init(sgi_mcp_params *params, const sgi_mem *mem);
void sgi_mcp_params_free(sgi_mcp_params *params);
/* Reads an accepted schema and replaces the parameters of the schema that was read
 * last. After a fault there are no parameters. Only `where` points into the schema. */
sgi_mcp_fault sgi_mcp_params_read(sgi_mcp_params *params, sgi_json schema);
size_t sgi_mcp_params_count(const sgi_mcp_params *params);
/* Returns the header's name after "Mcp-Param-", as the schema has it. */
sgi_str sgi_mcp_params_name(const sgi_mcp_params *params, size_t index);
/* Returns the value of a parameter in the arguments of a call, or an empty value when
 * the parameter is absent. */
sgi_json sgi_mcp_params_value(const sgi_mcp_params *params, size_t index,
                              sgi_json arguments);

#endif
