/* The parameters of a tool that a client repeats in headers. The tool's inputSchema marks
 * these parameters with x-mcp-header (2026-07-28 basic/transports/streamable-http,
 * "Custom Headers from Tool Parameters"). A client reads the parameters once per tool,
 * and drops the tool when they are invalid. Client and server then find the values of the
 * parameters in the arguments of a call. Only one thread at a time may use an object. */
#ifndef SGI_MCP_PARAMS_H
#define SGI_MCP_PARAMS_H

#include "wire/json_read.h"

/* The limits per tool. They are low, because a request can carry only a limited number of
 * headers. */
#define SGI_MCP_MAX_PARAMS 64
/* maximum bytes of all names and paths together */
#define SGI_MCP_MAX_PARAM_TEXT ((size_t)64 * 1024)
#define SGI_MCP_MAX_SCHEMA_DEPTH 64 /* maximum nesting of schemas */

typedef enum sgi_mcp_fault {
    SGI_MCP_FAULT_NONE = 0,
    SGI_MCP_FAULT_NAME_KIND, /* the value of x-mcp-header is not a string */
    SGI_MCP_FAULT_NAME_EMPTY,
    /* the name has a character that is not allowed in a header name (a token of RFC 9110,
     * 5.6.2) */
    SGI_MCP_FAULT_NAME_TOKEN,
    /* two names are equal, or differ only in upper and lower case */
    SGI_MCP_FAULT_DUPLICATE,
    /* the annotated parameter is not a string, an integer or a boolean */
    SGI_MCP_FAULT_TYPE,
    /* the path to the annotation contains a keyword other than `properties` */
    SGI_MCP_FAULT_PLACE,
    SGI_MCP_FAULT_COUNT,
    SGI_MCP_FAULT_DEPTH,
    SGI_MCP_FAULT_NOMEM
} sgi_mcp_fault;

/* Returns the description of a fault, for the log line about the tool. */
const char *sgi_mcp_fault_text(sgi_mcp_fault fault);

typedef struct sgi_mcp_params {
    sgi_buf items; /* an array of struct item */
    sgi_buf text;  /* the bytes of all names and paths */
    /* after a fault: the key at which the schema is wrong, as a view of the schema with
     * escapes */
    sgi_str where;
} sgi_mcp_params;

void sgi_mcp_params_init(sgi_mcp_params *params, const sgi_mem *mem);
void sgi_mcp_params_free(sgi_mcp_params *params);
/* Reads the schema of a tool. The parameters of this schema replace the parameters that
 * `params` had. After a fault `params` has no parameters. params->where is the only view
 * of the schema that `params` keeps. */
sgi_mcp_fault sgi_mcp_params_read(sgi_mcp_params *params, sgi_json schema);
size_t sgi_mcp_params_count(const sgi_mcp_params *params);
/* Returns the part of the header's name after "Mcp-Param-", as the schema has it. */
sgi_str sgi_mcp_params_name(const sgi_mcp_params *params, size_t index);
/* Returns the value of a parameter in the arguments of a call, or an empty value when the
 * parameter is absent. */
sgi_json sgi_mcp_params_find_argument(const sgi_mcp_params *params, size_t index,
                                      sgi_json arguments);

#endif
