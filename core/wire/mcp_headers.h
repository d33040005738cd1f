/* Values of a request's body that MCP's Streamable HTTP repeats in headers, so that
 * proxies need not read the body, and the check that header and body agree (2026-07-28
 * basic/transports/streamable-http, "Request Metadata"; R-2557-48 to -50). This code
 * does no I/O and has no state, so any thread may use it.
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

/* Returns the name of the member of params that Mcp-Name repeats for a method, or NULL
 * when Mcp-Name repeats no member for this method. tasks/result is not in the list: a
 * server of 2026-07-28 must answer that it does not know this method, instead of
 * reporting a missing header (R-0-7). */
const char *sgi_mcp_name_member(sgi_str method);

/* ---- values ---- */

/* Appends text, which is valid UTF-8, as the value of Mcp-Name or Mcp-Param-*. An
 * empty text gives an empty value; the header is still sent. */
void sgi_mcp_add_value(sgi_buf *out, sgi_str text);

typedef enum sgi_mcp_write {
    SGI_MCP_WRITTEN = 0, /* the value was appended, unless out->failed is set */
    SGI_MCP_OMIT,        /* the value is absent or null: no header is sent */
    /* the value is an object, an array or a number that is not a safe integer, which
     * no header can carry */
    SGI_MCP_UNFIT
} sgi_mcp_write;

/* Appends a value of the arguments to a header: a string, an integer between -(2^53-1)
 * and 2^53-1 (in decimal), true or false. */
sgi_mcp_write sgi_mcp_add_param(sgi_buf *out, sgi_json value);

typedef enum sgi_mcp_match {
    SGI_MCP_SAME = 0,
    SGI_MCP_DIFFERENT,
    SGI_MCP_MISSING, /* the body has a value, but there is no header */
    /* the header has characters that are not allowed, or invalid base64 */
    SGI_MCP_MALFORMED,
    SGI_MCP_NOMEM
} sgi_mcp_match;

/* Reads the value of a header. *text becomes a view of the header when the value is
 * plain. Otherwise it becomes a view of scratch, which is emptied first. Returns SAME,
 * MALFORMED or NOMEM. */
sgi_mcp_match sgi_mcp_read_value(sgi_str header, sgi_buf *scratch, sgi_str *text);

/* Compares Mcp-Method or MCP-Protocol-Version, which are never base64, with a string of
 * the body. Never returns MISSING or NOMEM. */
sgi_mcp_match sgi_mcp_match_plain(sgi_str header, sgi_json value);
/* Compares Mcp-Name with a string of the body. Allocates memory only for base64. */
sgi_mcp_match sgi_mcp_match_name(sgi_str header, sgi_json value, const sgi_mem *mem);
/* Compares Mcp-Param-* (NULL = not sent) with a value of the arguments (empty =
 * absent). Numbers are compared by value. A header whose value is absent or null in
 * the body is DIFFERENT. When no header can carry the value of the body, the result is
 * never MISSING: the tool itself must refuse the value. */
sgi_mcp_match sgi_mcp_match_param(const sgi_str *header, sgi_json value,
                                  const sgi_mem *mem);

#endif
