/* Remembers which parameters of which tools a session has to repeat in headers of
 * tools/call (2026-07-28 basic/transports/streamable-http, "Custom Headers from Tool
 * Parameters"). The session reads the parameters from every page of tools/list that it
 * receives. A tool without such parameters takes no memory. The memory is limited. A tool
 * beyond the limit is called without headers, and the server refuses the call. All
 * functions are called with the lock held. */
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

/* Reads a result of tools/list. begins: the result is the first page, so all older
 * entries are dropped. Tools with invalid annotations are hidden from the application.
 * Returns true when the result has such tools. If `out` is not NULL, the function then
 * also appends the result without these tools to `out`. The caller checks out->failed. */
bool sgi_tool_headers_learn(sgi_tool_headers *headers, sgi_json result, bool begins,
                            sgi_buf *out);
/* Appends the headers for a call of this tool, packed as name NUL value NUL. */
void sgi_tool_headers_write(const sgi_tool_headers *headers, sgi_str tool,
                            sgi_json arguments, sgi_buf *out);

#endif
