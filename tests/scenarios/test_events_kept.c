/* How far back the events of a task are kept (dialect E, R-E-3): within each limit of the
 * server, on either store, and over a restart. The result always has everything. */
#include "support/world_inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define EVENT "notifications/tasks/event"
#define STORY 100

static void ask_stream(wire *c, const char *id, const char *task, int64_t after)
{
    char params[256];
    int n = snprintf(params, sizeof params, "\"taskId\":\"%s\"", task);
    if (after >= 0)
        snprintf(params + n, sizeof params - (size_t)n, ",\"after\":%lld",
                 (long long)after);
    wire_ask(c, id, "tasks/stream", params, CAPS_TASKS);
}

/* Reads the events up to the end of the stream and checks that none is missing. Returns
 * the number of the first one. */
static int64_t read_events(wire *c, const char *id, int64_t *count)
{
    int64_t first = -1, next = -1;
    const char *line;
    *count = 0;
    while ((line = wire_due(c)) && !*json_at(line, "id")) {
        int64_t seq = atoll(json_at(line, "params.seq"));
        if (first < 0)
            first = next = seq;
        assert_int_equal(seq, next++);
        ++*count;
    }
    assert_non_null(line);
    assert_string_equal(json_at(line, "id"), id);
    assert_at(line, "error", "");
    return first;
}

static int64_t expect_gone(wire *c, const char *task, int64_t after)
{
    ask_stream(c, "77", task, after);
    const char *r = wire_response(c, "77");
    assert_code(r, -32603);
    assert_at(r, "error.data.reason", "\"events_gone\"");
    return atoll(json_at(r, "error.data.earliestSeq"));
}

/* Checks that about the last `most` events are kept, and the whole result. */
static void assert_kept(wire *c, const char *task, int64_t most)
{
    int64_t count;
    char last[32];
    int64_t earliest = expect_gone(c, task, 3);
    ask_stream(c, "78", task, -1);
    assert_int_equal(read_events(c, "78", &count), earliest);
    assert_in_range(count, most - most / 4, most);
    assert_int_equal(earliest + count, STORY);
    ask_stream(c, "79", task, earliest - 1); /* the first event asked for is there */
    assert_int_equal(read_events(c, "79", &count), earliest);
    assert_true(expect_gone(c, task, earliest - 2) == earliest);
    const char *r = wire_task(c, "80", "tasks/get", task, NULL);
    snprintf(last, sizeof last, "result.result.content.%d", STORY - 1);
    assert_true(*json_at(r, last));
}

static char task_of_story[64];

static wire *tell_story(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *task = wire_make_task(c, "1", "story", "\"n\":100,\"delayMs\":10", NULL);
    snprintf(task_of_story, sizeof task_of_story, "%s", task);
    wire_get_until(c, task, "completed", NULL);
    return c;
}

static void tune_count(segue_server_options *options)
{
    options->max_events = 16;
}

static void kept_by_number(world *w)
{
    wire *c = tell_story(w);
    assert_kept(c, task_of_story, 16);
    world_restart(w);
    assert_kept(world_connect(w, NULL), task_of_story, 16);
}

static void tune_one(segue_server_options *options)
{
    options->max_events = 1;
}

static void the_last_one_alone(world *w)
{
    int64_t count;
    wire *c = tell_story(w);
    assert_int_equal(expect_gone(c, task_of_story, 97), 99);
    ask_stream(c, "2", task_of_story, 98);
    assert_int_equal(read_events(c, "2", &count), 99);
    assert_int_equal(count, 1);
}

#define EVENT_BYTES 2000

static void tune_bytes(segue_server_options *options)
{
    options->max_event_bytes = EVENT_BYTES;
}

static void kept_by_bytes(world *w)
{
    wire *c = tell_story(w);
    int64_t earliest = expect_gone(c, task_of_story, 0);
    size_t bytes = 0;
    const char *line;
    ask_stream(c, "2", task_of_story, earliest - 1);
    while ((line = wire_due(c)) && !*json_at(line, "id"))
        bytes += strlen(json_at(line, "params.payload.content.0"));
    assert_in_range(bytes, EVENT_BYTES - EVENT_BYTES / 4, EVENT_BYTES);
    world_restart(w);
    assert_int_equal(expect_gone(world_connect(w, NULL), task_of_story, 0), earliest);
}

#define EVENT_TTL_MS 8000

static void tune_age(segue_server_options *options)
{
    options->event_ttl_ms = EVENT_TTL_MS;
}

/* One event per second, so as many are kept as there are seconds. */
static void kept_by_age(world *w)
{
    int64_t count;
    wire *c = world_connect(w, NULL);
    const char *task = wire_make_task(c, "1", "story", "\"n\":20,\"delayMs\":1000", NULL);
    world_advance(w, 30);
    snprintf(task_of_story, sizeof task_of_story, "%s", task);
    world_advance(w, 15000);
    int64_t earliest = expect_gone(c, task, 2);
    assert_in_range(earliest, 6, 9);
    world_advance(w, 6000);
    assert_true(expect_gone(c, task, earliest - 1) > earliest);
    world_restart(w);
    world_advance(w, EVENT_TTL_MS);
    c = world_connect(w, NULL);
    assert_int_equal(expect_gone(c, task_of_story, 3), 20); /* all events are too old */
    ask_stream(c, "2", task_of_story, 19);
    assert_int_equal(read_events(c, "2", &count), -1);
    const char *r = wire_task(c, "3", "tasks/get", task_of_story, NULL);
    assert_true(*json_at(r, "result.result.content.19"));
}

/* A client that follows misses nothing, however few events are kept for others. */
static void who_follows_has_all(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *task = wire_make_task(c, "1", "story", "\"n\":100,\"delayMs\":10", NULL);
    ask_stream(c, "2", task, -1);
    for (int i = 0; i < STORY; i++) {
        world_advance(w, 10);
        assert_int_equal(atoll(json_at(wire_notification(c, EVENT), "params.seq")), i);
    }
    wire_response(c, "2");
}

/* ---- replaced segments ---- */

#define DRAFTS 400

static void draft_again_and_again(void *user, segue_call *call)
{
    char text[128];
    (void)user;
    for (int i = 1; i <= DRAFTS; i++) {
        int n =
            snprintf(text, sizeof text, "draft %d ................................", i);
        assert_int_equal(segue_call_send_text(call, text, (size_t)n, NULL), SEGUE_OK);
        if (i < DRAFTS)
            assert_int_equal(segue_call_replace(call, NULL), SEGUE_OK);
    }
    assert_int_equal(segue_call_complete(call, NULL, NULL), SEGUE_OK);
    segue_call_free(call);
}

static void add_drafts(world *w)
{
    static const char tool[] = "{\"name\":\"drafts\"}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = draft_again_and_again;
    options.task = SEGUE_TASK_MUST;
    assert_int_equal(segue_server_add(w->server, SEGUE_ITEM_TOOL, tool, sizeof tool - 1,
                                      &options, NULL),
                     SEGUE_OK);
}

static void with_drafts(world *w)
{
    w->furnish = add_drafts;
}

static void tune_drafts(segue_server_options *options)
{
    options->max_events = 16;
    options->max_log_bytes = 8192;
}

/* More segments go through the log than it has room for. */
static void what_is_void_leaves_the_log(world *w)
{
    int64_t count;
    wire *c = world_connect(w, NULL);
    const char *task = wire_make_task(c, "1", "drafts", NULL, NULL);
    snprintf(task_of_story, sizeof task_of_story, "%s", task);
    wire_get_until(c, task, "completed", NULL);
    for (int i = 0; i < 2; i++) {
        const char *r = wire_task(c, "2", "tasks/get", task_of_story, NULL);
        assert_non_null(strstr(r, "draft 400 "));
        assert_at(r, "result.result.content.1", "");
        assert_non_null(strstr(r, "\"dev.segue/replace\":399}"));
        assert_true(expect_gone(c, task_of_story, 3) > 780);
        ask_stream(c, "3", task_of_story, -1);
        assert_true(read_events(c, "3", &count) > 780);
        assert_in_range(count, 12, 16);
        world_restart(w);
        c = world_connect(w, NULL);
    }
}

static const scenario scenarios[] = {
    {"AS-93a R-E-3 a limited number of events is kept", kept_by_number,
     ONLY_HERE | ONE_DRIVE, tune_count},
    {"AS-93a R-E-3 the last event alone is kept", the_last_one_alone,
     ONLY_HERE | ONE_DRIVE, tune_one},
    {"AS-93a R-E-3 a limited number of bytes of events is kept", kept_by_bytes,
     ONLY_HERE | ONE_DRIVE, tune_bytes},
    {"AS-93a R-E-3 events are kept for a limited time", kept_by_age,
     ONLY_HERE | ONE_DRIVE, tune_age},
    {"AS-93a R-E-3 a client that follows has all events", who_follows_has_all,
     ONLY_HERE | ONE_DRIVE, tune_count},
};

static const scenario drafts[] = {
    {"AS-93a replaced segments that no client saw leave the log",
     what_is_void_leaves_the_log, ONLY_HERE | ONE_DRIVE, tune_drafts},
};

int main(void)
{
    int failed = scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
    return failed + scenarios_run_prepared(drafts, 1, with_drafts);
}
