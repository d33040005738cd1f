/* The principal function is user code: it runs out of the ready queue, without the lock,
 * on whichever thread delivers callbacks. While it runs the server is held here, the
 * transport by the one who asks. */
#include "engine/serving/identify.h"

segue_status sgi_identify(segue_server *server, void *transport, sgi_principal **who,
                          bool *named)
{
    sgi_engine *engine = server->engine;
    const char *name = NULL;
    sgi_server_ref(server);
    sgi_user_begin(engine);
    segue_status status =
        server->options.principal(server->options.user, transport, &name);
    sgi_user_end(engine);
    if (status == SEGUE_OK && !sgi_utf8_valid(sgi_str_of(name), NULL)) {
        engine->warnings++; /* a program that reads it back could not tell it apart */
        status = SEGUE_E_INVALID;
    }
    if (status == SEGUE_OK) {
        *named = name && *name;
        *who = sgi_server_principal(server, name);
        if (!*who)
            status = SEGUE_E_NOMEM;
    }
    sgi_server_unref(server);
    return status;
}

/* ---- a request over HTTP ---- */

static int32_t run_asking(sgi_ready *ready, int32_t budget)
{
    sgi_serve_asking *asking = SGI_OWNER(ready, sgi_serve_asking, ready);
    sgi_principal *who = NULL;
    bool named = false;
    (void)budget;
    segue_status status = sgi_identify(asking->server, asking->transport, &who, &named);
    asking->told(asking, status, who, named);
    if (who)
        sgi_principal_unref(who);
    return 1;
}

bool sgi_serve_asks(const segue_server *server)
{
    return server->options.principal != NULL;
}

void sgi_serve_ask(segue_server *server, sgi_serve_asking *asking, void *transport)
{
    asking->ready.run = run_asking;
    asking->server = server;
    asking->transport = transport;
    sgi_ready_add(server->engine, &asking->ready);
}

void sgi_serve_unask(sgi_serve_asking *asking)
{
    if (asking->server)
        sgi_ready_remove(asking->server->engine, &asking->ready);
}

sgi_principal *sgi_serve_nobody(segue_server *server)
{
    return sgi_server_principal(server, NULL);
}

void sgi_serve_keep(sgi_principal *who)
{
    sgi_principal_ref(who);
}

void sgi_serve_forget(sgi_principal *who)
{
    if (who)
        sgi_principal_unref(who);
}

bool sgi_serve_is_closed(const segue_server *server)
{
    return server->stage >= SGI_SERVER_CLOSED;
}
