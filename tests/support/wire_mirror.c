#include "support/wire_mirror.h"

#include <string.h>

#include "wire/json_read.h"
#include "wire/mcp_headers.h"

#include <stdlib.h>

#define MODERN "2026-07-28"
#define MAX_BYTES ((size_t)64 * 1024 * 1024)

static int32_t no_chance(void *user, void *bytes, size_t len)
{
    (void)user;
    memset(bytes, 7, len);
    return 0;
}

/* Returns an empty span when the line is no JSON. */
static sgi_json message_of(const char *line, size_t len)
{
    segue_hooks hooks = {.random = no_chance};
    sgi_env env = {&sgi_mem_libc, &hooks};
    sgi_json_reader reader;
    sgi_str text = {line, len};
    sgi_json_reader_init(&reader, &env, MAX_BYTES, 512);
    bool ok = len && sgi_json_read(&reader, text, NULL, 0, NULL, NULL);
    sgi_json_reader_free(&reader);
    return ok && sgi_json_kind_of(sgi_json_trim(text)) == SGI_JSON_OBJECT
               ? sgi_json_trim(text)
               : (sgi_json){0};
}

static sgi_json member(sgi_json object, const char *name)
{
    return sgi_json_kind_of(object) == SGI_JSON_OBJECT ? sgi_json_get(object, name)
                                                       : (sgi_json){0};
}

static char *text_of(sgi_json value)
{
    return value.n ? strndup(value.p, value.n) : NULL;
}

/* Adds a header with the text of a string. A header cannot carry control characters, so
 * control characters stay in the form of JSON. */
static void add_plain(sgi_buf *out, const char *name, sgi_json value)
{
    if (sgi_json_kind_of(value) != SGI_JSON_STRING)
        return;
    sgi_buf_add_str(out, sgi_str_of(name));
    sgi_buf_add_lit(out, ": ");
    sgi_buf_add(out, value.p + 1, value.n - 2);
    sgi_buf_add_lit(out, "\r\n");
}

static void add_text(sgi_buf *out, const char *name, const char *value)
{
    sgi_buf_add_str(out, sgi_str_of(name));
    sgi_buf_add_lit(out, ": ");
    sgi_buf_add_str(out, sgi_str_of(value));
    sgi_buf_add_lit(out, "\r\n");
}

static void add_name(sgi_buf *out, sgi_json method, sgi_json params)
{
    sgi_str plain;
    const char *where =
        sgi_json_plain_string(method, &plain) ? sgi_mcp_name_member(plain) : NULL;
    sgi_json name = where ? member(params, where) : (sgi_json){0};
    sgi_buf decoded;
    sgi_buf_init(&decoded, &sgi_mem_libc);
    if (sgi_json_kind_of(name) == SGI_JSON_STRING && sgi_json_decode(name, &decoded)) {
        sgi_buf_add_lit(out, "Mcp-Name: ");
        sgi_mcp_add_header_value(out, sgi_buf_str(&decoded));
        sgi_buf_add_lit(out, "\r\n");
    }
    sgi_buf_free(&decoded);
}

static void add_modern(sgi_buf *out, sgi_json method, sgi_json params, sgi_json version)
{
    if (sgi_json_kind_of(version) == SGI_JSON_STRING)
        add_plain(out, "MCP-Protocol-Version", version);
    else
        add_text(out, "MCP-Protocol-Version", MODERN);
    add_plain(out, "Mcp-Method", method);
    add_name(out, method, params);
}

/* Returns the version that _meta names. Returns an empty span when this is the session's
 * own version or the message is initialize, because such a message does not belong to
 * 2026-07-28. */
static sgi_json said_version(sgi_json params, bool initialize, const char *session,
                             const char *version)
{
    sgi_json said =
        member(member(params, "_meta"), "io.modelcontextprotocol/protocolVersion");
    const char *own = session ? version : initialize ? "2025-11-25" : "";
    return sgi_json_string_is(said, sgi_str_of(own)) ? (sgi_json){0} : said;
}

void wire_mirror_read(wire_mirror *m, const char *line, size_t len, const char *session,
                      const char *version)
{
    sgi_json message = message_of(line, len);
    sgi_json method = member(message, "method");
    sgi_json params = member(message, "params");
    bool initialize = method.n && sgi_json_string_is(method, SGI_STR("initialize"));
    sgi_json said = said_version(params, initialize, session, version);
    sgi_buf out;
    *m = (wire_mirror){.modern = said.n || !session,
                       .id = method.n ? text_of(member(message, "id")) : NULL};
    m->initializes = !said.n && initialize;
    m->initialized =
        method.n && sgi_json_string_is(method, SGI_STR("notifications/initialized"));
    if (method.n && sgi_json_string_is(method, SGI_STR("notifications/cancelled")))
        m->cancels = text_of(member(params, "requestId"));
    sgi_buf_init(&out, &sgi_mem_libc);
    if (said.n || (!session && !m->initializes))
        add_modern(&out, method, params, said);
    else if (!m->initializes) {
        add_text(&out, "Mcp-Session-Id", session);
        add_text(&out, "MCP-Protocol-Version", version);
        if (strcmp(version, "DRAFT-2026-v1") == 0 && method.n) {
            add_plain(&out, "Mcp-Method", method);
            add_name(&out, method, params);
        }
    }
    sgi_buf_terminate(&out);
    m->text = out.p;
    m->text_len = out.len;
}

void wire_mirror_free(wire_mirror *m)
{
    free(m->text);
    free(m->id);
    free(m->cancels);
}
