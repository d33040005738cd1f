/* Notifications about a task of 2025-11-25: its status, progress, log. They go to the
 * conversation that made the task, while that exists. */
#include "support/legacy_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define STATUS "notifications/tasks/status"

/* Makes a task whose client wants progress with this token (JSON text). */
static void make_reporter(wire *c, const char *token, const char *arguments, char *id,
                          size_t size)
{
    char params[512];
    snprintf(params, sizeof params,
             "\"name\":\"reporter\",\"arguments\":{%s},\"task\":{},"
             "\"_meta\":{\"progressToken\":%s}",
             arguments, token);
    const char *quoted =
        json_at(wire_do_plain(c, "\"make\"", "tools/call", params), "result.task.taskId");
    snprintf(id, size, "%.*s", (int)strlen(quoted) - 2, quoted + 1);
}

static void assert_related(const char *note, const char *id)
{
    char related[160];
    snprintf(related, sizeof related,
             "{\"io.modelcontextprotocol/related-task\":{\"taskId\":\"%s\"}}", id);
    assert_at(note, "params._meta", related);
}

static int count(const wire *c, const char *text)
{
    int n = 0;
    for (const char *at = wire_history(c); (at = strstr(at, text)); at++)
        n++;
    return n;
}

/* ---- status ---- */

static void status_of(const char *note, const char *id, const char *status,
                      const char *message)
{
    char quoted[160];
    snprintf(quoted, sizeof quoted, "\"%s\"", id);
    assert_at(note, "params.taskId", quoted);
    assert_at(note, "params.status", status);
    assert_at(note, "params.statusMessage", message);
    assert_at(note, "params._meta", "");
}

static void tells_each_change(world *w)
{
    char id[80];
    wire *c = legacy_connect(w, NULL, NULL);
    make_reporter(c, "7", "\"n\":2,\"delayMs\":50", id, sizeof id);
    world_advance(w, 200);
    const char *note = wire_notification(c, STATUS);
    status_of(note, id, "\"working\"", "\"step 1 of 2\"");
    assert_golden(note, "tasks_2025_notification_working");
    status_of(wire_notification(c, STATUS), id, "\"working\"", "\"step 2 of 2\"");
    note = wire_notification(c, STATUS);
    status_of(note, id, "\"completed\"", "\"step 2 of 2\"");
    assert_golden(note, "tasks_2025_notification_completed");
    wire_do_plain(c, "1", "ping", NULL);
    assert_int_equal(count(c, STATUS), 3);
}

/* The end of a task that ended before its client knew of it is reported, too. */
static void tells_an_early_end(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    const char *id = legacy_make_task(c, "1", "fields", NULL, NULL);
    const char *note = wire_notification(c, STATUS);
    while (!strcmp(json_at(note, "params.status"), "\"working\""))
        note = wire_notification(c, STATUS);
    status_of(note, id, "\"completed\"", "\"almost\"");
    const char *made = strstr(wire_history(c), "\"task\":{");
    assert_true(made && made < strstr(wire_history(c), STATUS));
}

static void tells_other_ends(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    const char *id = legacy_make_task(c, "1", "hang", NULL, NULL);
    legacy_task(c, "2", "tasks/cancel", id, NULL);
    status_of(wire_notification(c, STATUS), id, "\"cancelled\"",
              "\"The task was cancelled by request.\"");
    id = legacy_make_task(c, "3", "hang", NULL, "{\"ttl\":50}");
    world_advance(w, 50);
    status_of(wire_notification(c, STATUS), id, "\"failed\"", "\"Task TTL expired\"");
    id = legacy_make_task(c, "4", "failing_job", "\"ms\":50", NULL);
    world_advance(w, 50);
    status_of(wire_notification(c, STATUS), id, "\"failed\"", "");
}

/* R-1905-36: a client of a stream is told of the end after the last segment. */
static void end_comes_after_the_last_segment(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    legacy_ask_task(c, "1", "story", "\"n\":3,\"delayMs\":20",
                    "{\"responseModes\":[\"streaming\"]}");
    world_advance(w, 100);
    const char *note = wire_notification(c, STATUS);
    assert_at(note, "params.status", "\"completed\"");
    const char *last = strstr(wire_history(c), "\"isComplete\":true");
    assert_true(last && last < strstr(wire_history(c), STATUS));
}

static void goes_to_one_conversation(world *w)
{
    char id[80];
    wire *c = legacy_connect(w, NULL, NULL);
    wire *other = legacy_connect(w, NULL, NULL);
    make_reporter(c, "7", "\"n\":2", id, sizeof id);
    world_advance(w, 200);
    assert_int_equal(count(c, STATUS), 3);
    assert_int_equal(count(c, "notifications/progress"), 2);
    wire_quiet(other);
}

/* The conversation is gone: nothing keeps it alive, no other one gets the notifications,
 * and the task goes on. */
static void says_nothing_when_its_conversation_is_gone(world *w)
{
    char id[80];
    wire *c = legacy_connect(w, NULL, NULL);
    wire *other = legacy_connect(w, NULL, NULL);
    make_reporter(c, "7", "\"n\":5,\"delayMs\":50", id, sizeof id);
    world_advance(w, 120);
    wire_drop(c);
    world_advance(w, 60);
    legacy_get_until(other, id, "completed");
    assert_int_equal(count(other, "notifications/"), 0);
}

#define STEPS 400

/* Notifications that nobody reads are dropped instead of queued; tasks/get has the last
 * status. */
static void drops_what_nobody_reads(world *w)
{
    char id[80], arguments[80];
    wire *c = legacy_connect(w, NULL, NULL);
    wire *other = legacy_connect(w, NULL, NULL);
    snprintf(arguments, sizeof arguments, "\"n\":%d,\"delayMs\":1,\"pad\":60000", STEPS);
    make_reporter(c, "7", arguments, id, sizeof id);
    wire_stall(c, 1);
    size_t before = w->mem.live;
    world_advance(w, STEPS / 2);
    size_t half = w->mem.live;
    world_advance(w, STEPS / 2 + 10);
    legacy_get_until(other, id, "completed");
    assert_true(half - before < 8 * 1024 * 1024 + STEPS / 2 * 60000);
    wire_stall(c, 0);
    legacy_get_until(c, id, "completed");
    assert_true(count(c, STATUS) < STEPS / 2);
    assert_true(count(c, STATUS) > 0);
}

/* ---- progress and log ---- */

static void progress_goes_on(world *w)
{
    char id[80];
    wire *c = legacy_connect(w, NULL, NULL);
    make_reporter(c, "\"tok\"", "\"n\":2,\"delayMs\":50", id, sizeof id);
    world_advance(w, 200);
    const char *note = wire_notification(c, "notifications/progress");
    assert_at(note, "params.progressToken", "\"tok\"");
    assert_at(note, "params.progress", "1");
    assert_at(note, "params.total", "2");
    assert_related(note, id);
    assert_golden(note, "tasks_2025_progress");
    note = wire_notification(c, "notifications/progress");
    assert_at(note, "params.progress", "2");
    legacy_get_until(c, id, "completed");
    assert_int_equal(count(c, "notifications/progress"), 2);
    assert_int_equal(count(c, "notifications/message"), 0);
}

static void log_goes_on(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    wire_do_plain(c, "1", "logging/setLevel", "\"level\":\"info\"");
    const char *id = legacy_make_task(c, "2", "reporter", "\"n\":2,\"delayMs\":50", NULL);
    world_advance(w, 200);
    const char *note = wire_notification(c, "notifications/message");
    assert_at(note, "params.level", "\"info\"");
    assert_at(note, "params.data", "{\"step\":1}");
    assert_related(note, id);
    assert_at(wire_notification(c, "notifications/message"), "params.data",
              "{\"step\":2}");
    assert_int_equal(count(c, "notifications/progress"), 0);
}

/* The present level counts, not that at the time of the request. */
static void log_level_changes(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    wire_do_plain(c, "1", "logging/setLevel", "\"level\":\"info\"");
    const char *id = legacy_make_task(c, "2", "reporter", "\"n\":4,\"delayMs\":50", NULL);
    world_advance(w, 60);
    assert_int_equal(count(c, "notifications/message"), 1);
    wire_do_plain(c, "3", "logging/setLevel", "\"level\":\"error\"");
    legacy_get_until(c, id, "completed");
    assert_int_equal(count(c, "notifications/message"), 1);
}

/* X: "not supported on tasks", and a status goes only to subscribers. */
static void other_tasks_say_nothing(world *w)
{
    char id[80];
    wire *c = legacy_connect(w, NULL, NULL);
    const char *r = wire_do(c, "1", "tools/call",
                            "\"name\":\"reporter\",\"arguments\":{\"n\":2}", CAPS_TASKS);
    const char *quoted = json_at(r, "result.taskId");
    snprintf(id, sizeof id, "%.*s", (int)strlen(quoted) - 2, quoted + 1);
    wire_get_until(c, id, "completed", NULL);
    assert_int_equal(count(c, "notifications/"), 0);
}

/* ---- HTTP ---- */

/* Each answer is JSON. Later notifications use the stream of the session; a session
 * without one gets none. */
static void without_a_stream_nothing_is_said(world *w)
{
    wire *c = world_connect(w, NULL);
    legacy_hello(c, "2025-11-25", NULL); /* no GET before notifications/initialized */
    const char *id = legacy_make_task(c, "1", "reporter", "\"n\":2,\"delayMs\":50", NULL);
    legacy_get_until(c, id, "completed");
    assert_int_equal(count(c, "notifications/"), 0);
}

static const scenario scenarios[] = {
    {"R-2557-44 status notifications tell each change", tells_each_change, 0, NULL},
    {"status notifications tell an early end", tells_an_early_end, ONE_DRIVE, NULL},
    {"status notifications tell other ends", tells_other_ends, ONE_DRIVE, NULL},
    {"R-1905-36 R-1905-38 the end is told after the last segment",
     end_comes_after_the_last_segment, ONE_DRIVE, NULL},
    {"R-1905-24 what is said of a task goes to one conversation",
     goes_to_one_conversation, ONLY_HERE | ONE_DRIVE, NULL},
    {"nothing is said when the conversation is gone",
     says_nothing_when_its_conversation_is_gone, ONLY_HERE | ONE_DRIVE, NULL},
    {"what nobody reads is dropped", drops_what_nobody_reads, ONLY_HERE | ONE_DRIVE,
     NULL},
    {"R-2557-44 progress goes on while the task does", progress_goes_on, 0, NULL},
    {"the log goes on while the task does", log_goes_on, ONE_DRIVE, NULL},
    {"the log level of now counts", log_level_changes, ONLY_HERE | ONE_DRIVE, NULL},
    {"tasks of 2026-07-28 have no progress", other_tasks_say_nothing, ONE_DRIVE, NULL},
    {"without a stream nothing is said", without_a_stream_nothing_is_said,
     ONLY_HTTP | ONE_DRIVE, NULL},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
