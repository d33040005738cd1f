#include "service.h"

#include <assert.h>

#define TO(stage) (1u << (stage))

static const unsigned after_proxy[] = {
    [PROXY_STARTING] = TO(PROXY_SERVING) | TO(PROXY_ENDING),
    [PROXY_SERVING] = TO(PROXY_CHANGING) | TO(PROXY_DRAINING) | TO(PROXY_ENDING),
    [PROXY_CHANGING] = TO(PROXY_SERVING) | TO(PROXY_ENDING),
    [PROXY_DRAINING] = TO(PROXY_ENDING),
    /* the program ends in several steps, each of which says so */
    [PROXY_ENDING] = TO(PROXY_ENDING),
};

static const unsigned after_service[] = {
    [SERVICE_MADE] = TO(SERVICE_OPEN) | TO(SERVICE_ENDED),
    [SERVICE_OPEN] = TO(SERVICE_TOLD) | TO(SERVICE_ENDED),
    [SERVICE_TOLD] = TO(SERVICE_ENDED),
    [SERVICE_ENDED] = 0,
};

static const unsigned after_source[] = {
    [SOURCE_STARTING] = TO(SOURCE_READY) | TO(SOURCE_FAILED) | TO(SOURCE_RETIRED),
    [SOURCE_READY] = TO(SOURCE_OFFERED) | TO(SOURCE_FAILED) | TO(SOURCE_RETIRED),
    [SOURCE_OFFERED] = TO(SOURCE_RETIRED),
    [SOURCE_FAILED] =
        TO(SOURCE_STARTING) | TO(SOURCE_READY) | TO(SOURCE_OFFERED) | TO(SOURCE_RETIRED),
    [SOURCE_RETIRED] = 0,
};

static void check(unsigned allowed, unsigned to)
{
    assert(allowed & TO(to));
    (void)allowed;
    (void)to;
}

void proxy_enter(proxy *p, proxy_stage to)
{
    check(after_proxy[p->stage], to);
    p->stage = to;
}

void service_enter(service *v, service_stage to)
{
    check(after_service[v->stage], to);
    v->stage = to;
}

void source_enter(source *s, source_stage to)
{
    check(after_source[s->stage], to);
    s->stage = to;
}
