/* The log of the proxy: lines on standard error, as text for people or as JSON. */
#include "proxy.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static struct {
    bool is_json;
    int32_t level;
} form = {false, SEGUE_LOG_WARNING};

static const char *const levels[] = {"debug", "info", "warning", "error"};

void log_begin(bool is_json, int32_t level)
{
    form.is_json = is_json;
    form.level = level;
}

static void add_time(text *line)
{
    struct timespec now;
    struct tm parts;
    char stamp[40];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &parts);
    text_add_format(line, "\"time\":\"%s.%03ldZ\"", stamp, now.tv_nsec / 1000000);
}

static void add_member(text *line, const char *name, const char *value)
{
    text_add_key(line, name);
    text_add_quoted(line, value, strlen(value));
}

static void write_line(int32_t level, const char *event, const char *upstream_name,
                       const char *message)
{
    text line = {.p = NULL};
    if (form.is_json) {
        text_add_str(&line, "{");
        add_time(&line);
        add_member(&line, "level", levels[level]);
        add_member(&line, "event", event);
        if (upstream_name)
            add_member(&line, "upstream", upstream_name);
        add_member(&line, "message", message);
        text_add_str(&line, "}\n");
    } else {
        text_add_str(&line, "segue-proxy: ");
        text_add_str(&line, upstream_name ? upstream_name : "");
        text_add_str(&line, upstream_name ? ": " : "");
        text_add_str(&line, message);
        text_add_str(&line, "\n");
    }
    if (!line.failed)
        /* one write for the whole line, so that lines of several processes do not mix */
        fwrite(line.p, 1, line.len, stderr);
    text_free(&line);
}

void log_event(int32_t level, const char *event, const char *upstream_name,
               const char *format, ...)
{
    char message[2048];
    va_list args;
    if (level < form.level)
        return;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    write_line(level, event, upstream_name, message);
}

void log_library(void *user, int32_t level, const char *line)
{
    (void)user;
    if (level >= form.level && level >= SEGUE_LOG_DEBUG && level <= SEGUE_LOG_ERROR)
        write_line(level, "library", NULL, line);
}
