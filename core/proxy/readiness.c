/* Readiness: /health/ready answers 503 while no upstream can be used, so that a load
 * balancer sends its requests to another proxy. An upstream over HTTP is lost until it
 * answers. While there are no requests of clients, the proxy asks the upstream itself. */
#include "proxy.h"

static bool is_usable(const source *s)
{
    return s->settled && !s->failed && !s->upstreams->lost;
}

static bool is_some_usable(const proxy *p)
{
    for (const source *s = p->sources; s; s = s->next)
        if (is_usable(s))
            return true;
    return false;
}

static void start_probe(proxy *p);

/* Reads the lists of each lost upstream. An answer makes the upstream usable again. */
static void probe(void *user)
{
    proxy *p = user;
    segue_timer_free(p->probe);
    p->probe = NULL;
    if (!p->unready || p->draining || p->ending)
        return;
    for (source *s = p->sources; s; s = s->next)
        if (s->settled && !s->failed && s->reading < 0 && upstream_session(s->upstreams))
            catalog_read(s, ALL_LISTS);
    start_probe(p);
}

static void start_probe(proxy *p)
{
    if (!p->probe)
        segue_timer_start(p->runtime, PROBE_MS, probe, p, NULL, &p->probe);
}

void readiness_update(proxy *p)
{
    bool unready = !is_some_usable(p);
    if (!p->listener || p->draining || p->ending || unready == p->unready)
        return;
    p->unready = unready;
    segue_listener_set_ready(p->listener, !unready);
    if (unready) {
        log_event(SEGUE_LOG_ERROR, "not_ready", NULL,
                  "not ready: no upstream can be used");
        start_probe(p);
    } else {
        log_event(SEGUE_LOG_WARNING, "ready", NULL,
                  "ready: an upstream can be used again");
    }
}
