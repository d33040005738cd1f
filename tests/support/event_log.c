#include "support/event_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "engine/event.h"

static void check_fields(const segue_event *event)
{
    sgi_event_id id = sgi_event_find(event->name);
    assert_true(id < SGI_EVENTS);
    assert_int_equal(sgi_event_present_fields(event) & ~sgi_event_allowed_fields(id), 0);
}

static void on_event(void *user, const segue_event *event)
{
    event_log *log = user;
    char line[8192];
    size_t len = sizeof line;
    check_fields(event);
    assert_int_equal(segue_event_json(event, line, &len), SEGUE_OK);
    log->text = realloc(log->text, log->len + len + 2);
    memcpy(log->text + log->len, line, len);
    log->len += len;
    memcpy(log->text + log->len, "\n", 2);
    log->len++;
}

void event_log_begin(event_log *log, segue_runtime *runtime, int32_t argument_bytes)
{
    segue_observer_options observer = SEGUE_OBSERVER_OPTIONS_INIT;
    *log = (event_log){.runtime = runtime};
    observer.user = log;
    observer.on_event = on_event;
    observer.max_argument_bytes = argument_bytes;
    assert_int_equal(segue_runtime_observe(runtime, &observer), SEGUE_OK);
}

void event_log_end(event_log *log)
{
    if (log->runtime)
        assert_int_equal(segue_runtime_observe(log->runtime, NULL), SEGUE_OK);
    free(log->text);
    *log = (event_log){.text = NULL};
}

int event_log_count(const event_log *log, const char *name, const char *part)
{
    char member[80];
    int count = 0;
    snprintf(member, sizeof member, "\"event\":\"%s\"", name);
    for (char *line = log->text, *end; line && *line; line = end + 1) {
        end = strchr(line, '\n');
        *end = 0;
        count += strstr(line, member) && (!part || strstr(line, part));
        *end = '\n';
    }
    return count;
}

void event_log_sees(const event_log *log, const char *name, const char *part)
{
    if (!event_log_count(log, name, part))
        fail_msg("no event %s with %s in:\n%s", name, part ? part : "anything",
                 log->text ? log->text : "(no event)");
}

void event_log_has_nowhere(const event_log *log, const char *text)
{
    if (log->text && strstr(log->text, text))
        fail_msg("%s is in:\n%s", text, log->text);
}
