/* Which parameters of which tools a session repeats in headers of tools/call
 * (2026-07-28 basic/transports/streamable-http, "Custom Headers from Tool Parameters").
 * Learnt from every page of tools/list that passes through the session; a tool with no
 * such parameter takes no room. Bounded: what finds no room is called without headers,
 * and the server says so. Lock held. */
#ifndef SGI_TOOL_HEADERS_H
#define SGI_TOOL_HEADERS_H

#include "engine/engine.h"

#define SGI_TOOL_HEADERS_MAX 1000
#define SGI_TOOL_HEADERS_BYTES ((size_t)1024 * 1024)

typedef struct sgi_tool_headers {
    sgi_engine *engine;
    sgi_map tools;
    size_t bytes;
} sgi_tool_headers;

void sgi_tool_headers_init(sgi_tool_headers *headers, sgi_engine *engine);
void sgi_tool_headers_free(sgi_tool_headers *headers);

/* Learns from a result of tools/list; begins: it is the first page, what was known before
 * is forgotten. Tools whose annotations are invalid must not be seen by the application:
 * when there are any, the result without them is appended to out, unless that is NULL,
 * and true returned. Check out->failed then. */
bool sgi_tool_headers_learn(sgi_tool_headers *headers, sgi_json result, bool begins,
                            sgi_buf *out);
/* Appends the headers of a call, packed as name NUL value NUL. */
void sgi_tool_headers_write(const sgi_tool_headers *headers, sgi_str tool,
                            sgi_json arguments, sgi_buf *out);

#endif
