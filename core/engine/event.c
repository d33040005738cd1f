#include "engine/event.h"

#include "engine/engine.h"
#include "wire/json_scan.h"

#include <assert.h>
#include <string.h>

typedef enum field_kind { TEXT, NUMBER } field_kind;

static const struct {
    const char *name;
    field_kind kind;
    size_t offset;
} fields[SGI_EVENT_FIELDS] = {
#define EVENT_FIELD(name, kind, sentence) {#name, kind, offsetof(segue_event, name)},
#define EVENT(name, level, has, sentence)
#include "engine/events.def"
#undef EVENT_FIELD
#undef EVENT
};

/* The fields of an event as bits. */
enum {
#define EVENT_FIELD(name, kind, sentence) SGI_HAS_##name = 1 << SGI_FIELD_##name,
#define EVENT(name, level, has, sentence)
#include "engine/events.def"
#undef EVENT_FIELD
#undef EVENT
};

static const struct {
    const char *name;
    int32_t level;
    uint32_t fields;
} events[SGI_EVENTS] = {
#define EVENT_FIELD(name, kind, sentence)
#define EVENT(name, level, has, sentence) {#name, SEGUE_LOG_##level, has},
#include "engine/events.def"
#undef EVENT_FIELD
#undef EVENT
};

static const char *text_of(const segue_event *event, size_t field)
{
    const char *text;
    memcpy(&text, (const char *)event + fields[field].offset, sizeof text);
    return text;
}

static int64_t number_of(const segue_event *event, size_t field)
{
    int64_t number;
    memcpy(&number, (const char *)event + fields[field].offset, sizeof number);
    return number;
}

/* ---- reporting ---- */

void sgi_engine_observe(sgi_engine *engine, const segue_observer_options *observer)
{
    engine->observer = observer ? *observer : (segue_observer_options){.on_event = NULL};
}

bool sgi_engine_is_observed(const sgi_engine *engine, int32_t level)
{
    return engine->observer.on_event && level >= engine->observer.level;
}

bool sgi_event_is_wanted(const sgi_engine *engine, sgi_event_id id)
{
    return sgi_engine_is_observed(engine, events[id].level);
}

segue_event sgi_event_new(const sgi_engine *engine, sgi_event_id id)
{
    return (segue_event){.struct_size = sizeof(segue_event),
                         .name = events[id].name,
                         .level = events[id].level,
                         .time_ms = sgi_wall_now(&engine->env),
                         .duration_us = -1,
                         .count = -1};
}

void sgi_event_report(sgi_engine *engine, sgi_event_id id, const segue_event *event)
{
    assert(!(sgi_event_present_fields(event) & ~events[id].fields));
    (void)id;
    engine->observer.on_event(engine->observer.user, event);
}

/* ---- the vocabulary ---- */

sgi_event_id sgi_event_find(const char *name)
{
    int id = 0;
    while (id < SGI_EVENTS && strcmp(events[id].name, name) != 0)
        id++;
    return (sgi_event_id)id;
}

uint32_t sgi_event_allowed_fields(sgi_event_id id)
{
    return events[id].fields;
}

uint32_t sgi_event_present_fields(const segue_event *event)
{
    uint32_t present = 0;
    for (size_t i = 0; i < SGI_EVENT_FIELDS; i++)
        if (fields[i].kind == TEXT ? text_of(event, i) != NULL : number_of(event, i) >= 0)
            present |= UINT32_C(1) << i;
    return present;
}

const char *sgi_event_era(bool is_stateless)
{
    return is_stateless ? "modern" : "legacy";
}

/* ---- traces ---- */

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* True for "00-" and 32, 16 and 2 hexadecimal digits with hyphens between them. */
bool sgi_is_trace_parent(sgi_str text)
{
    static const char form[] = "00-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
    if (text.n != SGI_TRACE_PARENT)
        return false;
    for (size_t i = 0; i < text.n; i++)
        if (form[i] == 'x' ? !is_hex(text.p[i]) : text.p[i] != form[i])
            return false;
    return true;
}

const char *sgi_event_copy_trace(char out[SGI_TRACE_PARENT + 1], sgi_str text)
{
    if (!sgi_is_trace_parent(text))
        return NULL;
    memcpy(out, text.p, text.n);
    out[text.n] = 0;
    return out;
}

sgi_str sgi_meta_trace_parent(sgi_json meta)
{
    sgi_str text;
    return sgi_json_plain_string(sgi_json_get(meta, "traceparent"), &text) ? text
                                                                           : (sgi_str){0};
}

/* ---- a line of JSON ---- */

/* Returns the size of the first character of a text; 0 = its first byte is not UTF-8. */
static size_t character_size(sgi_str text)
{
    const unsigned char *p = (const unsigned char *)text.p;
    return *p < 0x80 ? 1 : sgi_json_utf8_length(p, p + text.n);
}

/* Writes the beginning of a text. Of bytes that are not UTF-8, each becomes U+FFFD. The
 * written text has at most SGI_EVENT_TEXT bytes and ends with a whole character. */
static void write_text(sgi_jw *w, const char *name, const char *text)
{
    static const char replacement[] = "\xef\xbf\xbd";
    char kept[SGI_EVENT_TEXT];
    size_t len = 0;
    /* a character of UTF-8 has at most 4 bytes */
    sgi_str rest = {text, strnlen(text, SGI_EVENT_TEXT + 4)};
    while (rest.n) {
        size_t size = character_size(rest);
        size_t put = size ? size : sizeof replacement - 1;
        if (put > sizeof kept - len)
            break;
        memcpy(kept + len, size ? rest.p : replacement, put);
        len += put;
        rest.p += size ? size : 1;
        rest.n -= size ? size : 1;
    }
    sgi_jw_member_string(w, name, (sgi_str){kept, len});
}

void sgi_event_write_json(sgi_buf *out, const segue_event *event)
{
    static const char *const levels[] = {"debug", "info", "warning", "error"};
    char stamp[SGI_STAMP_SIZE];
    sgi_jw w = sgi_jw_to(out);
    int32_t level = event->level < SEGUE_LOG_DEBUG   ? SEGUE_LOG_DEBUG
                    : event->level > SEGUE_LOG_ERROR ? SEGUE_LOG_ERROR
                                                     : event->level;
    sgi_timestamp_write(event->time_ms, stamp);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "time", sgi_str_of(stamp));
    sgi_jw_member_string(&w, "level", sgi_str_of(levels[level]));
    write_text(&w, "event", event->name);
    for (size_t i = 0; i < SGI_EVENT_FIELDS; i++) {
        if (fields[i].kind == NUMBER && number_of(event, i) >= 0)
            sgi_jw_member_int(&w, fields[i].name, number_of(event, i));
        else if (fields[i].kind == TEXT && text_of(event, i))
            write_text(&w, fields[i].name, text_of(event, i));
    }
    sgi_jw_close(&w, '}');
}
