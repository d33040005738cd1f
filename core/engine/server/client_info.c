/* The JSON text by which on_open tells what a client has declared
 * (segue_client_open_fn). */
#include "engine/server/clients.h"
#include "engine/server/wire_session.h"

/* Returns a copy of the text, and frees the buffer. Returns NULL when out of memory. */
static char *take_text(sgi_buf *text, const sgi_mem *mem)
{
    char *copy = text->failed ? NULL : sgi_text_dup(mem, sgi_buf_str(text));
    sgi_buf_free(text);
    return copy;
}

char *sgi_client_info_of_request(const sgi_inbound *in, bool is_listen)
{
    const sgi_mem *mem = sgi_engine_mem(in->peer->server->engine);
    bool shaken = !sgi_facts(in->version)->is_stateless;
    sgi_json capabilities =
        shaken ? sgi_json_get(in->params, "capabilities") : in->capabilities;
    sgi_json info = shaken ? sgi_json_get(in->params, "clientInfo")
                           : sgi_json_get(in->meta, "io.modelcontextprotocol/clientInfo");
    sgi_buf text;
    sgi_buf_init(&text, mem);
    sgi_jw w = sgi_jw_to(&text);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "protocolVersion",
                         sgi_str_of(sgi_version_name(in->version)));
    sgi_jw_member_raw(&w, "capabilities", capabilities.n ? capabilities : SGI_STR("{}"));
    if (info.n)
        sgi_jw_member_raw(&w, "clientInfo", info);
    sgi_jw_member_raw(&w, "isSession", is_listen ? SGI_STR("false") : SGI_STR("true"));
    sgi_jw_close(&w, '}');
    return take_text(&text, mem);
}

static void write_parts(sgi_jw *w, const char *name, uint32_t caps, uint32_t all,
                        const char *part, uint32_t has_part)
{
    if (!(caps & all))
        return;
    sgi_jw_key(w, name);
    sgi_jw_open(w, '{');
    if (part && caps & has_part)
        sgi_jw_member_raw(w, part, SGI_STR("{}"));
    sgi_jw_close(w, '}');
}

/* Writes the capabilities as sgi_read_caps reads them. */
static void write_caps(sgi_jw *w, uint32_t caps)
{
    bool url = caps & SGI_CAP_ELICITATION_URL;
    sgi_jw_key(w, "capabilities");
    sgi_jw_open(w, '{');
    if (caps & SGI_CAP_ELICITATION && url)
        sgi_jw_member_raw(w, "elicitation", SGI_STR("{\"form\":{},\"url\":{}}"));
    else
        write_parts(w, "elicitation", caps, SGI_CAP_ELICITATION | SGI_CAP_ELICITATION_URL,
                    "url", SGI_CAP_ELICITATION_URL);
    write_parts(w, "sampling", caps, SGI_CAP_SAMPLING, "tools", SGI_CAP_SAMPLING_TOOLS);
    write_parts(w, "roots", caps, SGI_CAP_ROOTS, NULL, 0);
    sgi_jw_close(w, '}');
}

char *sgi_client_info_of_session(const sgi_wire_session *session)
{
    const sgi_mem *mem = sgi_engine_mem(session->server->engine);
    sgi_buf text;
    sgi_buf_init(&text, mem);
    sgi_jw w = sgi_jw_to(&text);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "protocolVersion",
                         sgi_str_of(sgi_version_name(session->handshake.version)));
    write_caps(&w, session->handshake.caps);
    sgi_jw_member_raw(&w, "isSession", SGI_STR("true"));
    sgi_jw_close(&w, '}');
    return take_text(&text, mem);
}
