/* Asks the application for the name of the principal. The application's function runs
 * from the ready queue, without the lock, on the thread that delivers callbacks. During
 * that function this file holds a reference to the server. The caller must keep the
 * transport in memory. */
#include "engine/server/identify.h"

segue_status sgi_identify_principal(segue_server *server, void *transport,
                                    sgi_principal **who, bool *named)
{
    sgi_engine *engine = server->engine;
    const char *name = NULL;
    sgi_server_ref(server);
    sgi_user_code_begin(engine);
    segue_status status =
        server->options.principal(server->options.user, transport, &name);
    sgi_user_code_end(engine);
    if (status == SEGUE_OK && !sgi_utf8_valid(sgi_str_of(name), NULL)) {
        /* a name that is not UTF-8 is refused, because the store might return such a name
         * changed */
        engine->warnings++;
        status = SEGUE_E_INVALID;
    }
    if (status == SEGUE_OK) {
        *named = name && *name;
        *who = sgi_server_get_principal(server, name);
        if (!*who)
            status = SEGUE_E_NOMEM;
    }
    sgi_server_unref(server);
    return status;
}

/* ---- the caller of a request over HTTP ---- */

static int32_t run_identifying(sgi_ready_object *ready, int32_t budget)
{
    sgi_serve_identification *identifying =
        SGI_OWNER(ready, sgi_serve_identification, ready);
    sgi_principal *who = NULL;
    bool named = false;
    (void)budget;
    segue_status status =
        sgi_identify_principal(identifying->server, identifying->transport, &who, &named);
    identifying->identified(identifying, status, who, named);
    if (who)
        sgi_principal_unref(who);
    return 1;
}

bool sgi_serve_can_identify_callers(const segue_server *server)
{
    return server->options.principal != NULL;
}

void sgi_serve_identify_caller(segue_server *server,
                               sgi_serve_identification *identifying, void *transport)
{
    identifying->ready.run = run_identifying;
    identifying->server = server;
    identifying->transport = transport;
    sgi_ready_queue_add(server->engine, &identifying->ready);
}

void sgi_serve_cancel_identifying(sgi_serve_identification *identifying)
{
    if (identifying->server)
        sgi_ready_queue_remove(identifying->server->engine, &identifying->ready);
}

sgi_principal *sgi_serve_anonymous_principal(segue_server *server)
{
    return sgi_server_get_principal(server, NULL);
}

sgi_principal *sgi_serve_named_principal(segue_server *server, const char *name)
{
    return sgi_server_get_principal(server, name);
}

const uint8_t *sgi_serve_principal_digest(const sgi_principal *who)
{
    return who->digest;
}

void sgi_serve_ref_principal(sgi_principal *who)
{
    sgi_principal_ref(who);
}

void sgi_serve_unref_principal(sgi_principal *who)
{
    if (who)
        sgi_principal_unref(who);
}

bool sgi_serve_is_closed(const segue_server *server)
{
    return server->stage >= SGI_SERVER_CLOSED;
}
