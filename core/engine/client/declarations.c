/* What a client declares: its name and its capabilities. The versions with a handshake
 * declare them in `initialize`, and 2026-07-28 in the _meta of each request. */
#include "engine/client/dialects.h"
#include "engine/client/hosting.h"
#include "engine/client/session.h"
#include "wire/json_copy.h"

#define META "io.modelcontextprotocol/"

void sgi_declare_client_info(sgi_jw *w, const segue_session *session, const char *name)
{
    sgi_jw_key(w, name);
    sgi_jw_open(w, '{');
    sgi_jw_member_string(w, "name", sgi_str_of(session->options.name));
    sgi_jw_member_string(w, "version", sgi_str_of(session->options.version));
    sgi_jw_close(w, '}');
}

/* Writes the application's capabilities (given), and adds the library's tasks extension
 * to the member `extensions` of these capabilities if `tasks` is true. */
static void write_capabilities(sgi_jw *w, const segue_session *session, sgi_json given,
                               bool tasks)
{
    sgi_json extensions = sgi_json_get(given, "extensions");
    sgi_jw_open(w, '{');
    sgi_cli_write_modern_capabilities(session, given, "extensions", w);
    if (extensions.n || tasks) {
        sgi_jw_key(w, "extensions");
        sgi_jw_open(w, '{');
        sgi_jw_copy_members(w, extensions, SGI_JSON_NAMES(META "tasks"));
        if (tasks)
            sgi_jw_member_raw(w, META "tasks", SGI_STR("{}"));
        sgi_jw_close(w, '}');
    }
    sgi_jw_close(w, '}');
}

/* Writes the experimental capabilities of the application, and then those of the
 * dialects. */
static void write_experimental(sgi_jw *w, const segue_session *session, sgi_json given)
{
    bool some = sgi_cli_declares_experimental(session, given);
    sgi_json own = sgi_json_get(given, "experimental");
    if (!some && !own.n)
        return;
    sgi_jw_key(w, "experimental");
    if (!some || (own.n && sgi_json_kind_of(own) != SGI_JSON_OBJECT)) {
        sgi_jw_raw(w, own);
        return;
    }
    sgi_jw_open(w, '{');
    sgi_cli_write_experimental(session, given, own, w);
    sgi_jw_copy_members(w, own, NULL);
    sgi_jw_close(w, '}');
}

/* Writes the capabilities for initialize. If the application declares the capability
 * `tasks`, the application's declaration is used. */
static void write_legacy_capabilities(sgi_jw *w, const segue_session *session,
                                      sgi_json given)
{
    sgi_jw_open(w, '{');
    sgi_cli_write_capabilities(session, given, w);
    sgi_question_host_write_questions(w, session, given);
    sgi_cli_write_empty_capabilities(session, given, w);
    write_experimental(w, session, given);
    sgi_jw_copy_members(w, given, SGI_JSON_NAMES("experimental"));
    sgi_jw_close(w, '}');
}

bool sgi_declare_modern(const segue_session *session, sgi_json capabilities, bool tasks,
                        sgi_buf *out)
{
    sgi_jw w = sgi_jw_to(out);
    sgi_jw_member_string(&w, META "protocolVersion",
                         sgi_str_of(sgi_version_name(SGI_VERSION_MODERN)));
    sgi_declare_client_info(&w, session, META "clientInfo");
    sgi_jw_key(&w, META "clientCapabilities");
    write_capabilities(&w, session, capabilities, tasks && !session->options.no_tasks);
    return !out->failed;
}

bool sgi_declare_no_task(const segue_session *session, sgi_buf *out)
{
    sgi_buf told;
    sgi_buf_init(&told, out->mem);
    sgi_buf_add_char(&told, '{');
    sgi_buf_add_str(&told, sgi_buf_str(&session->meta));
    sgi_buf_add_char(&told, '}');
    bool ok = !told.failed &&
              sgi_declare_modern(
                  session, sgi_json_get(sgi_buf_str(&told), META "clientCapabilities"),
                  false, out);
    sgi_buf_free(&told);
    return ok;
}

bool sgi_declare(segue_session *session, sgi_json capabilities)
{
    sgi_jw w = sgi_jw_to(&session->handshake.capabilities);
    write_legacy_capabilities(&w, session, capabilities);
    if (!session->handshake.capabilities.failed)
        sgi_cli_note_declared_capabilities(session,
                                           sgi_buf_str(&session->handshake.capabilities));
    return sgi_declare_modern(session, capabilities, true, &session->meta) &&
           !session->handshake.capabilities.failed;
}
