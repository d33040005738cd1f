/* The log of the proxy: lines on standard error, as text for people or as JSON. JSON has
 * the events of the library, too. */
#include "proxy.h"

#include <segue/segue_ext.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct {
    bool is_json;
    int32_t level;
} form = {false, SEGUE_LOG_WARNING};

void log_begin(bool is_json, int32_t level)
{
    form.is_json = is_json;
    form.level = level;
}

/* Writes a whole line at once, so that lines of several processes do not mix. */
static void write_out(const text *line)
{
    if (!line->failed)
        fwrite(line->p, 1, line->len, stderr);
}

static void write_json(const segue_event *event)
{
    text line = {.p = NULL};
    char room[4096];
    size_t len = sizeof room;
    segue_status status = segue_event_json(event, room, &len);
    char *more = status == SEGUE_E_TOO_SMALL ? malloc(++len) : NULL;
    if (more)
        status = segue_event_json(event, more, &len);
    if (status != SEGUE_OK) {
        free(more);
        return;
    }
    text_add(&line, more ? more : room, len);
    text_add_str(&line, "\n");
    write_out(&line);
    text_free(&line);
    free(more);
}

static void write_text(const char *upstream_name, const char *message)
{
    text line = {.p = NULL};
    text_add_str(&line, "segue-proxy: ");
    text_add_str(&line, upstream_name ? upstream_name : "");
    text_add_str(&line, upstream_name ? ": " : "");
    text_add_str(&line, message);
    text_add_str(&line, "\n");
    write_out(&line);
    text_free(&line);
}

static int64_t wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void log_event(int32_t level, const char *name, const char *upstream_name,
               const char *format, ...)
{
    char message[2048];
    va_list args;
    if (level < form.level)
        return;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (!form.is_json) {
        write_text(upstream_name, message);
        return;
    }
    segue_event event = {.struct_size = sizeof event,
                         .name = name,
                         .level = level,
                         .time_ms = wall_ms(),
                         .upstream = upstream_name,
                         .message = message,
                         .duration_us = -1,
                         .count = -1};
    write_json(&event);
}

static void write_line(void *user, int32_t level, const char *line)
{
    (void)user;
    if (level >= form.level && level >= SEGUE_LOG_DEBUG && level <= SEGUE_LOG_ERROR)
        write_text(NULL, line);
}

static void write_event(void *user, const segue_event *event)
{
    (void)user;
    write_json(event);
}

segue_log_fn log_of_library(void)
{
    return form.is_json ? NULL : write_line;
}

segue_status log_observe(segue_runtime *runtime)
{
    segue_observer_options observer = SEGUE_OBSERVER_OPTIONS_INIT;
    observer.on_event = write_event;
    observer.level = form.level;
    return form.is_json ? segue_runtime_observe(runtime, &observer) : SEGUE_OK;
}
