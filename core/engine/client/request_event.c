#include "engine/client/request_event.h"

#include "engine/event.h"

/* The number of bytes of a name that an event has. */
#define NAME_SIZE 128

/* An event about a request, with room for its texts. */
typedef struct request_event {
    segue_event event;
    char upstream[NAME_SIZE + 1];
    char item[NAME_SIZE + 1];
    char trace_parent[SGI_TRACE_PARENT + 1];
} request_event;

/* Copies a JSON string without escapes. Returns NULL when there is none. */
static const char *copy_name(char out[NAME_SIZE + 1], sgi_json value)
{
    sgi_str text;
    if (!sgi_json_plain_string(value, &text) || !text.n)
        return NULL;
    size_t n = text.n < NAME_SIZE ? text.n : NAME_SIZE;
    memcpy(out, text.p, n);
    out[n] = 0;
    return out;
}

static bool names_item(const char *method)
{
    return !strcmp(method, "tools/call") || !strcmp(method, "prompts/get");
}

static void begin(request_event *made, const segue_request *request, sgi_event_id id)
{
    const segue_session *session = request->session;
    sgi_json peer = sgi_buf_str(&session->peer);
    segue_event *event = &made->event;
    *event = sgi_event_new(request->engine, id);
    event->upstream =
        copy_name(made->upstream, sgi_json_get(sgi_json_get(peer, "serverInfo"), "name"));
    event->method = request->method;
    if (names_item(request->method))
        event->item = copy_name(made->item, sgi_json_get(request->params, "name"));
    event->era = sgi_event_era(sgi_facts(session->version)->is_stateless);
    event->trace_parent = sgi_event_copy_trace(made->trace_parent,
                                               sgi_meta_trace_parent(request->own_meta));
}

void sgi_request_event_report_sent(const segue_request *request)
{
    request_event made;
    bool is_first = request->sent == 1 && !request->taken_over;
    sgi_event_id id = is_first ? SGI_EVENT_request_sent : SGI_EVENT_request_resumed;
    if (!sgi_event_is_wanted(request->engine, id))
        return;
    begin(&made, request, id);
    sgi_event_report(request->engine, id, &made.event);
}

static const char *status_of(const segue_request *request)
{
    if (request->status != SEGUE_OK)
        return sgi_status_name(request->status);
    return request->says_error ? "tool_error" : "ok";
}

void sgi_request_event_report_end(const segue_request *request)
{
    request_event made;
    if (!*request->method ||
        !sgi_event_is_wanted(request->engine, SGI_EVENT_request_ended))
        return;
    begin(&made, request, SGI_EVENT_request_ended);
    made.event.status = status_of(request);
    int64_t took_ms = sgi_now(&request->engine->env) - request->began_ms;
    made.event.duration_us = took_ms > 0 ? took_ms * 1000 : 0;
    sgi_event_report(request->engine, SGI_EVENT_request_ended, &made.event);
}
