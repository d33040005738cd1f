/* Readiness: /health/ready answers 503 while no upstream can be used, so that a load
 * balancer sends its requests to another proxy. The log also says for which path that is
 * so. An upstream over HTTP is lost until it answers. While there are no requests of
 * clients, the proxy asks the upstream itself. */
#include "service.h"

static bool is_usable(const source *s)
{
    return s->stage == SOURCE_OFFERED && !s->upstreams->lost;
}

static bool is_some_usable(const service *v)
{
    for (const source *s = v->sources; s; s = s->next)
        if (is_usable(s))
            return true;
    return false;
}

static void start_probe(proxy *p);

/* Reads the lists of the lost upstreams of each path that has no other upstream. An
 * answer makes an upstream usable again. */
static void probe(void *user)
{
    proxy *p = user;
    segue_timer_free(p->probe);
    p->probe = NULL;
    if (p->stage != PROXY_SERVING)
        return;
    for (source *s = source_next(p, NULL); s; s = source_next(p, s)) {
        if (!s->service->unready)
            continue;
        if (s->stage == SOURCE_OFFERED && s->reading < 0 &&
            upstream_session(s->upstreams))
            catalog_read(s, ALL_LISTS);
        start_probe(p);
    }
}

static void start_probe(proxy *p)
{
    if (!p->probe)
        segue_timer_start(p->runtime, PROBE_MS, probe, p, NULL, &p->probe);
}

/* Returns true when no upstream of the path can be used. */
static bool update(service *v)
{
    bool unready = !is_some_usable(v);
    if (unready == v->unready)
        return unready;
    v->unready = unready;
    if (unready) {
        log_event(SEGUE_LOG_ERROR, "not_ready", NULL,
                  "not ready: no upstream can be used at %s", v->path);
        start_probe(v->proxy);
    } else {
        log_event(SEGUE_LOG_WARNING, "ready", NULL,
                  "ready: an upstream can be used again at %s", v->path);
    }
    return unready;
}

void readiness_update(proxy *p)
{
    bool unready = true;
    if (!p->listener || p->stage == PROXY_DRAINING || p->stage == PROXY_ENDING)
        return;
    for (service *v = p->services; v; v = v->next)
        if (service_is_reached(v))
            unready &= update(v);
    if (unready != p->unready)
        segue_listener_set_ready(p->listener, !unready);
    p->unready = unready;
}
