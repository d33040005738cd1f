#include "errand.h"

#include "handle.h"

#include <stdlib.h>

void errand_unref(void *user)
{
    errand *e = user, **link = &e->service->errands;
    service *v = e->service;
    if (--e->refs)
        return;
    while (*link != e)
        link = &(*link)->next;
    *link = e->next;
    segue_timer_free(e->timer);
    segue_request_free(e->request);
    segue_task_free(e->task);
    segue_session_free(e->session);
    segue_call_free(e->call);
    if (e->relay)
        relay_unref(e->relay);
    free(e->principal);
    free(e);
    service_unref(v);
}

void errand_end(errand *e)
{
    if (e->timer)
        segue_timer_cancel(e->timer);
    if (e->session)
        segue_session_close(e->session);
    segue_session_free(e->session);
    e->session = NULL;
    e->there = NULL;
}

static bool open_session(errand *e)
{
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    segue_session_events events = SEGUE_SESSION_EVENTS_INIT;
    segue_transport *here;
    if (!e->service->server) /* the path is no longer served */
        return false;
    if (segue_transport_pair(e->service->proxy->runtime, &here, &e->there) != SEGUE_OK)
        return false;
    if (segue_server_attach(e->service->server, e->there, NULL) != SEGUE_OK) {
        segue_transport_free(here);
        segue_transport_free(e->there);
        return false;
    }
    options.era = SEGUE_ERA_MODERN;
    options.no_idempotency = 1;
    options.cache_bytes = -1;
    events.user = e;
    events.free_user = errand_unref;
    if (segue_session_open(e->service->proxy->runtime, here, &options, &events,
                           &e->session, NULL) == SEGUE_OK)
        return true;
    segue_transport_free(here);
    return false;
}

errand *errand_begin(service *v, purpose why, const char *principal)
{
    errand *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    *e = (errand){.next = v->errands, .service = v, .refs = 1, .purpose = why};
    v->errands = e;
    service_ref(v);
    e->principal = copy_string(principal);
    if (e->principal && open_session(e))
        return e;
    errand_unref(e);
    return NULL;
}

const char *handle_take_principal(service *v, const segue_transport *transport)
{
    for (errand *e = v->errands; e; e = e->next) {
        if (e->there != transport)
            continue;
        e->there = NULL;
        return e->principal;
    }
    return NULL;
}
