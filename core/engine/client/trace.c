/* A message that the library sends on behalf of an application's request (such as
 * tasks/get, or tools/list before a call) belongs to the trace of that request. So its
 * _meta repeats the members of the trace, with unchanged values. The other members of the
 * application's _meta are meant for the request itself and are not repeated. When the
 * request itself is sent again, the message has all of the application's _meta (the
 * parameter `user` of sgi_emitter_send). */
#include "engine/client/trace.h"

#include "engine/client/request.h"
#include "wire/json_copy.h"

bool sgi_meta_member_is_trace(const sgi_json_member *member)
{
    static const char *const names[] = {"traceparent", "tracestate", "baggage"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (sgi_json_key_is(member, names[i]))
            return true;
    return false;
}

void sgi_trace_write(const segue_request *request, sgi_jw *w)
{
    sgi_json meta = request->own_meta;
    sgi_json_member member;
    for (size_t at = 0; meta.n && sgi_json_next_member(meta, &at, &member);) {
        if (sgi_meta_member_is_trace(&member))
            sgi_jw_copy_member(w, &member);
    }
}

bool sgi_trace_is_set(const segue_request *request)
{
    sgi_json meta = request->own_meta;
    sgi_json_member member;
    for (size_t at = 0; meta.n && sgi_json_next_member(meta, &at, &member);)
        if (sgi_meta_member_is_trace(&member))
            return true;
    return false;
}
