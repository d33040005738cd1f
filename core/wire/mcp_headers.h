/* MCP's Streamable HTTP repeats values of a request's body in headers, so that proxies
 * need not read the body. This file writes and reads these headers, and checks that
 * header and body agree (2026-07-28 basic/transports/streamable-http, "Request Metadata";
 * R-2557-48 to -50: clients send Mcp-Method and Mcp-Name, and servers refuse values that
 * differ). The functions do no input or output and have no state, so any thread may call
 * them.
 *
 * A value that cannot be sent as header text, or that looks like an encoded value, is
 * sent as =?base64?...?= (its UTF-8, standard alphabet, padded). Reading is strict: a
 * value that two readers could understand differently is malformed. */
#ifndef SGI_MCP_HEADERS_H
#define SGI_MCP_HEADERS_H

#include "wire/json_read.h"

#define SGI_MCP_VERSION_HEADER "MCP-Protocol-Version"
#define SGI_MCP_METHOD_HEADER "Mcp-Method"
#define SGI_MCP_NAME_HEADER "Mcp-Name"
#define SGI_MCP_PARAM_PREFIX "Mcp-Param-"

/* Returns the name of the member of params that the header Mcp-Name repeats for a method,
 * or NULL when Mcp-Name repeats no member. The result for tasks/result is NULL: a server
 * of 2026-07-28 must answer that it does not know this method (R-0-7), instead of
 * reporting a missing header. */
const char *sgi_mcp_name_member(sgi_str method);

/* ---- values ---- */

/* Appends a text as the value of Mcp-Name or Mcp-Param-*. text: valid UTF-8. An empty
 * text gives an empty value; the header is still sent. */
void sgi_mcp_add_header_value(sgi_buf *out, sgi_str text);

typedef enum sgi_mcp_write {
    SGI_MCP_WRITTEN = 0, /* the value was appended, unless out->failed is set */
    SGI_MCP_OMIT,        /* the value is absent or null, so no header is sent */
    /* no header can carry the value: it is an object, an array, or a number that is not a
     * safe integer */
    SGI_MCP_UNFIT
} sgi_mcp_write;

/* Appends a value of the arguments to a header: a string, an integer between -(2^53-1)
 * and 2^53-1 (in decimal), true or false. */
sgi_mcp_write sgi_mcp_add_param_value(sgi_buf *out, sgi_json value);

typedef enum sgi_mcp_match {
    SGI_MCP_SAME = 0,
    SGI_MCP_DIFFERENT,
    SGI_MCP_MISSING, /* the body has a value, but the header is missing */
    /* the header has invalid base64, or characters that are not allowed */
    SGI_MCP_MALFORMED,
    SGI_MCP_NOMEM
} sgi_mcp_match;

/* Reads the value of a header. *text becomes a view of the header when the value is
 * plain. Otherwise *text becomes a view of `scratch`, which is emptied first. Returns
 * SAME, MALFORMED or NOMEM. */
sgi_mcp_match sgi_mcp_read_header_value(sgi_str header, sgi_buf *scratch, sgi_str *text);

/* Compares the header Mcp-Method or MCP-Protocol-Version with a string of the body. These
 * two headers are never base64. Never returns MISSING or NOMEM. */
sgi_mcp_match sgi_mcp_match_plain(sgi_str header, sgi_json value);
/* Compares the header Mcp-Name with a string of the body. Allocates memory only for
 * base64. */
sgi_mcp_match sgi_mcp_match_name(sgi_str header, sgi_json value, const sgi_mem *mem);
/* Compares the header Mcp-Param-* (NULL = not sent) with a value of the arguments (empty
 * = absent). Numbers are compared by value. If the header is sent although the value is
 * absent or null, the result is DIFFERENT. If no header can carry the value, the result
 * is never MISSING: the tool itself must refuse the value. */
sgi_mcp_match sgi_mcp_match_param(const sgi_str *header, sgi_json value,
                                  const sgi_mem *mem);

#endif
