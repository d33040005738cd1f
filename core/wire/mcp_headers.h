/* What Streamable HTTP of MCP repeats in headers, so that those in between need not read
 * the body, and how it is checked (2026-07-28 basic/transports/streamable-http, "Request
 * Metadata"; R-2557-48 to -50). Sans-IO, without state: for any thread.
 *
 * A value that is not safe as text of a header, or that looks like what it would become,
 * travels as =?base64?...?= (its UTF-8, standard alphabet, padded). Reading is strict:
 * what two readers could understand differently is malformed. */
#ifndef SGI_MCP_HEADERS_H
#define SGI_MCP_HEADERS_H

#include "wire/json_read.h"

#define SGI_MCP_VERSION_HEADER "MCP-Protocol-Version"
#define SGI_MCP_METHOD_HEADER "Mcp-Method"
#define SGI_MCP_NAME_HEADER "Mcp-Name"
#define SGI_MCP_PARAM_PREFIX "Mcp-Param-"

/* The member of params that Mcp-Name repeats for a method; NULL when the method has none.
 * Not tasks/result: who speaks 2026-07-28 does not know it, and says so rather than
 * that a header is missing (R-0-7). */
const char *sgi_mcp_name_member(sgi_str method);

/* ---- values ---- */

/* Appends text, which is valid UTF-8, as the value of Mcp-Name or Mcp-Param-*. An empty
 * text is an empty value: the header is sent all the same. */
void sgi_mcp_add_value(sgi_buf *out, sgi_str text);

typedef enum sgi_mcp_write {
    SGI_MCP_WRITTEN = 0, /* unless out->failed */
    SGI_MCP_OMIT,        /* absent or null: no header */
    SGI_MCP_UNFIT        /* an object, an array, or a number that is no safe integer */
} sgi_mcp_write;

/* The same for a value of the arguments: a string, an integer within 2^53-1 (in decimal,
 * however it is written), true or false. */
sgi_mcp_write sgi_mcp_add_param(sgi_buf *out, sgi_json value);

typedef enum sgi_mcp_match {
    SGI_MCP_SAME = 0,
    SGI_MCP_DIFFERENT,
    SGI_MCP_MISSING,   /* no header, and the body has a value */
    SGI_MCP_MALFORMED, /* characters no header may have, or a form that is not base64 */
    SGI_MCP_NOMEM
} sgi_mcp_match;

/* Reads a value: *text is part of the header when it is plain, else stands in scratch,
 * which is emptied first. SAME, MALFORMED or NOMEM. */
sgi_mcp_match sgi_mcp_read_value(sgi_str header, sgi_buf *scratch, sgi_str *text);

/* Compares Mcp-Method or MCP-Protocol-Version, which know no base64, with a string of the
 * body. Never MISSING or NOMEM. */
sgi_mcp_match sgi_mcp_match_plain(sgi_str header, sgi_json value);
/* Compares Mcp-Name with a string of the body. Allocates for base64 only. */
sgi_mcp_match sgi_mcp_match_name(sgi_str header, sgi_json value, const sgi_mem *mem);
/* Compares Mcp-Param-* (NULL = not sent) with a value of the arguments (empty = absent).
 * Numbers are compared by value. A header for what is absent or null is DIFFERENT; what
 * cannot be a header is not MISSING, its kind is for the tool to refuse. */
sgi_mcp_match sgi_mcp_match_param(const sgi_str *header, sgi_json value,
                                  const sgi_mem *mem);

#endif
