/* Events: what the library reports to the observer of a runtime. The vocabulary is
 * events.def. An event costs one comparison while nobody observes, and is written nowhere
 * by the library itself. */
#ifndef SGI_EVENT_H
#define SGI_EVENT_H

#include "engine/port.h"

typedef enum sgi_event_field {
#define EVENT_FIELD(name, kind, sentence) SGI_FIELD_##name,
#define EVENT(name, level, fields, sentence)
#include "engine/events.def"
#undef EVENT_FIELD
#undef EVENT
    SGI_EVENT_FIELDS
} sgi_event_field;

typedef enum sgi_event_id {
#define EVENT_FIELD(name, kind, sentence)
#define EVENT(name, level, fields, sentence) SGI_EVENT_##name,
#include "engine/events.def"
#undef EVENT_FIELD
#undef EVENT
    SGI_EVENTS
} sgi_event_id;

/* The maximum size of a text in an event, in bytes. Longer texts are cut off. */
#define SGI_EVENT_TEXT 2048

/* True when the observer wants events of this kind. All code that makes an event asks
 * this first. */
bool sgi_event_is_wanted(const sgi_engine *engine, sgi_event_id id);
/* True when the observer wants events of this level. */
bool sgi_engine_is_observed(const sgi_engine *engine, int32_t level);
/* Returns an event with its name, level and time. No field is present. */
segue_event sgi_event_new(const sgi_engine *engine, sgi_event_id id);
/* Gives the event to the observer. It has only fields that events.def allows. */
void sgi_event_report(sgi_engine *engine, sgi_event_id id, const segue_event *event);
/* Sets the observer; NULL = nobody observes. */
void sgi_engine_observe(sgi_engine *engine, const segue_observer_options *observer);

/* Returns the number of an event's name, or SGI_EVENTS for another name. */
sgi_event_id sgi_event_find(const char *name);
/* Return the fields that an event may have, or that it has: a set of sgi_event_field. */
uint32_t sgi_event_allowed_fields(sgi_event_id id);
uint32_t sgi_event_present_fields(const segue_event *event);

/* Returns the value of the field `era`. is_stateless: of the protocol version. */
const char *sgi_event_era(bool is_stateless);
/* The length of a traceparent (W3C Trace Context, version 00). */
#define SGI_TRACE_PARENT 55
/* True for a traceparent of version 00. */
bool sgi_is_trace_parent(sgi_str text);
/* Copies a traceparent. Returns NULL when the text is none. */
const char *sgi_event_copy_trace(char out[SGI_TRACE_PARENT + 1], sgi_str text);
/* Returns the traceparent of _meta; empty when _meta has none. */
sgi_str sgi_meta_trace_parent(sgi_json meta);

/* Writes the event as one JSON object, without the end of the line. */
void sgi_event_write_json(sgi_buf *out, const segue_event *event);

#endif
