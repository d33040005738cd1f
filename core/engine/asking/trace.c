/* What the library asks on behalf of a request of the application (tasks/get, tools/list
 * before a call, ...) belongs to the same trace, so it says so; nothing else of its _meta
 * is repeated there, as it was meant for the request itself. A request that is sent again
 * says all of its _meta again (emitter.c gets it as the application's own).
 *
 * The values are the application's: they are passed on as they are. */
#include "engine/asking/trace.h"

#include "engine/asking/request.h"

bool sgi_trace_has(const sgi_json_member *member)
{
    static const char *const names[] = {"traceparent", "tracestate", "baggage"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (sgi_json_key_is(member, names[i]))
            return true;
    return false;
}

static sgi_json meta_of(const segue_request *request)
{
    sgi_json params = {request->params, request->params_len};
    sgi_json meta = sgi_json_get(params, "_meta");
    return sgi_json_kind_of(meta) == SGI_JSON_OBJECT ? meta : (sgi_json){0};
}

void sgi_trace_write(const segue_request *request, sgi_jw *w)
{
    sgi_json meta = meta_of(request);
    sgi_json_member member;
    for (size_t at = 0; meta.n && sgi_json_next_member(meta, &at, &member);) {
        if (!sgi_trace_has(&member))
            continue;
        sgi_jw_key_json(w, member.key);
        sgi_jw_raw(w, member.value);
    }
}

bool sgi_trace_is_set(const segue_request *request)
{
    sgi_json meta = meta_of(request);
    sgi_json_member member;
    for (size_t at = 0; meta.n && sgi_json_next_member(meta, &at, &member);)
        if (sgi_trace_has(&member))
            return true;
    return false;
}
