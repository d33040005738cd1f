/* SEP-1905, segments as they are made: further responses to the request of a task, their
 * numbers, and every way in which they end. */
#include "support/legacy_wire.h"
#include "support/world_inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define STREAMING "{\"responseModes\":[\"streaming\"]}"

/* A client's view of a stream; it lives as long as the world's scenario. */
typedef struct reading {
    wire *c;
    const char *request; /* id of the request */
    char task[64];
    int next;           /* number of the next segment */
    char merged[16384]; /* blocks without their numbers, in brackets */
    const char *last;
} reading;

static void add_blocks(reading *r, const char *response)
{
    char path[64], mark[32], number[16];
    for (int i = 0;; i++, r->next++) {
        snprintf(path, sizeof path, "result.partial-content.%d", i);
        const char *block = json_at(response, path);
        if (!*block)
            return;
        snprintf(mark, sizeof mark, "{\"seqNr\":%d,", r->next);
        if (strncmp(block, mark, strlen(mark)) != 0)
            fail_msg("segment %d is due: %s", r->next, response);
        snprintf(number, sizeof number, "%s{", r->next > 1 ? "," : "");
        strcat(r->merged, number);
        strcat(r->merged, block + strlen(mark));
    }
}

/* Checks the members that each response must have (R-1905-19). */
static void add_response(reading *r, const char *response)
{
    char related[160];
    const char *task = json_at(response, "result.task.taskId");
    const char *named = strstr(response, "related-task\":{\"taskId\":");
    if (*task)
        snprintf(r->task, sizeof r->task, "%.*s", (int)strlen(task) - 2, task + 1);
    else if (!*r->task && named)
        sscanf(named, "related-task\":{\"taskId\":\"%63[^\"]", r->task);
    snprintf(related, sizeof related,
             "\"io.modelcontextprotocol/related-task\":{\"taskId\":\"%s\"}", r->task);
    if (!*task)
        assert_non_null(strstr(response, related));
    if (*json_at(response, "result.partial-content")) {
        assert_true(*json_at(response, "result.isComplete"));
        assert_true(*json_at(response, "result.isError"));
    }
    add_blocks(r, response);
    r->last = response;
}

static reading ask(wire *c, const char *id, const char *tool, const char *arguments,
                   const char *task)
{
    reading r = {.c = c, .request = id, .next = 1};
    legacy_ask_task(c, id, tool, arguments, task ? task : STREAMING);
    return r;
}

static int is_complete(const reading *r)
{
    return r->last && !strcmp(json_at(r->last, "result.isComplete"), "true");
}

/* Reads one more response. */
static void read_one(reading *r)
{
    add_response(r, wire_response(r->c, r->request));
}

/* Checks how many segments were read. STDIO: there may be more, because real time
 * passes. */
static void assert_read(const reading *r, int number)
{
    if (r->c->w->place == WORLD_STDIO)
        assert_true(r->next > number);
    else
        assert_int_equal(r->next, number + 1);
}

static void read_until(reading *r, int number)
{
    while (r->next <= number && !is_complete(r)) {
        if (r->c->w->place != WORLD_STDIO)
            world_advance(r->c->w, 10);
        read_one(r);
    }
    assert_read(r, number);
}

static void read_to_end(reading *r)
{
    world_advance(r->c->w, 1000);
    while (!is_complete(r))
        read_one(r);
    assert_at(r->last, "result.isComplete", "true");
}

/* Checks that the response has the next numbers. It does not use paths: there are too
 * many segments. */
static void take_numbers(const char *response, int *next)
{
    static const char mark[] = "{\"seqNr\":";
    for (const char *at = response; (at = strstr(at, mark)); (*next)++) {
        at += sizeof mark - 1;
        assert_int_equal(atoi(at), *next);
    }
}

/* Checks that the server merges to the same result as the client (R-1905-34). */
static const char *assert_merged(reading *r)
{
    char content[sizeof r->merged + 2];
    const char *merged = legacy_task(r->c, "\"all\"", "tasks/result", r->task, NULL);
    snprintf(content, sizeof content, "[%s]", r->merged);
    assert_at(merged, "result.content", content);
    return merged;
}

static void assert_status(wire *c, const char *task, const char *status)
{
    assert_at(legacy_task(c, "\"get\"", "tasks/get", task, NULL), "result.status",
              status);
}

/* Checks that only status notifications come. */
static void expect_notes_only(wire *c)
{
    const char *line;
    while (c->w->place != WORLD_STDIO && (line = wire_next(c)))
        assert_at(line, "method", "\"notifications/tasks/status\"");
}

/* ---- segments as they come ---- */

static void as_they_are_made(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    reading r = ask(c, "1", "story", "\"n\":4,\"delayMs\":10", NULL);
    read_one(&r);
    assert_read(&r, 1);
    for (int number = 2; number <= 4; number++) {
        if (w->place != WORLD_STDIO)
            assert_status(c, r.task, "\"working\"");
        read_until(&r, number);
    }
    read_to_end(&r);
    assert_status(c, r.task, "\"completed\"");
    assert_merged(&r);
    expect_notes_only(c);
}

static void many_in_batches(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    int next = 1, responses = 0, complete = 0;
    legacy_ask_task(c, "1", "story", "\"n\":2000,\"chunk\":300", STREAMING);
    while (!complete) {
        const char *r = wire_response(c, "1");
        responses++;
        take_numbers(r, &next);
        complete = !strcmp(json_at(r, "result.isComplete"), "true");
    }
    assert_int_equal(next, 2001);
    assert_true(responses > 2000 * 300 / 65536 && responses <= 2001);
    expect_notes_only(c);
}

/* Notifications of the status come in between, and carry no segment. */
static void among_other_messages(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    reading r = ask(c, "1", "chatty_task", "\"n\":5", NULL);
    read_to_end(&r);
    assert_int_equal(r.next, 7);
    const char *note = wire_notification(c, "notifications/tasks/status");
    assert_false(json_mentions(note, "partial-content"));
    assert_merged(&r);
}

static void foreign_blocks_and_members(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    reading r = ask(c, "1", "film", NULL, NULL);
    read_to_end(&r);
    assert_non_null(strstr(r.merged, "{\"type\":\"video\",\"url\":\"http://x/y\","
                                     "\"n\":1e400}"));
    assert_at(r.last, "result.structuredContent", "{\"frames\":3}");
    assert_at(assert_merged(&r), "result.structuredContent", "{\"frames\":3}");
    const char *p = legacy_task(c, "2", "tasks/result", r.task, "\"lastSeqNr\":1");
    assert_at(p, "result.partial-content.0",
              "{\"seqNr\":2,\"type\":\"video\",\"url\":\"http://x/y\",\"n\":1e400}");
    assert_at(p, "result.structuredContent", "{\"frames\":3}");
    assert_at(p, "result.isComplete", "true");
}

/* A client that did not declare replacement keeps its pushed segments, and so does the
 * server: whoever merges the segments gets the server's result. */
static void what_was_pushed_stays(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    reading r = ask(c, "1", "fields", NULL, NULL);
    read_to_end(&r);
    const char *merged = assert_merged(&r);
    assert_at(merged, "result.content",
              "[{\"type\":\"text\",\"text\":\"wrong\"},"
              "{\"type\":\"text\",\"text\":\"right\"}]");
    assert_at(merged, "result.structuredContent", "{\"a\":2}");
    legacy_task(c, "2", "tasks/result", r.task, "\"lastSeqNr\":1");
    assert_null(strstr(wire_history(c), "dev.segue/replace"));
    /* the segments of this task are not pushed */
    const char *task = legacy_make_task(c, "3", "fields", NULL, NULL);
    assert_at(legacy_task(c, "4", "tasks/result", task, NULL), "result.content",
              "[{\"type\":\"text\",\"text\":\"right\"}]");
}

static void what_was_replaced(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_AND_REPLACE);
    reading r = ask(c, "1", "fields", NULL, NULL);
    read_to_end(&r);
    assert_int_equal(r.next, 3);
    assert_non_null(strstr(wire_history(c), "\"dev.segue/replace\":1"));
    assert_at(r.last, "result.structuredContent", "{\"a\":2}");
    assert_non_null(strstr(r.last, "\"com.example/k\":true"));
    const char *merged = legacy_task(c, "2", "tasks/result", r.task, NULL);
    assert_at(merged, "result.content", "[{\"type\":\"text\",\"text\":\"right\"}]");
    assert_non_null(strstr(merged, "\"dev.segue/replace\":1"));
    const char *p = legacy_task(c, "3", "tasks/result", r.task, "\"lastSeqNr\":1");
    assert_at(p, "result.partial-content",
              "[{\"seqNr\":2,\"type\":\"text\",\"text\":\"right\"}]");
    assert_non_null(strstr(p, "\"dev.segue/replace\":1"));
}

/* A replacement before the first segment replaces nothing, whatever the reader begins
 * with. */
static void nothing_to_replace(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_AND_REPLACE);
    reading r = ask(c, "1", "fresh_start", NULL, NULL);
    read_to_end(&r);
    const char *p = legacy_task(c, "2", "tasks/result", r.task, "\"lastSeqNr\":1");
    assert_at(p, "result.partial-content",
              "[{\"seqNr\":2,\"type\":\"text\",\"text\":\"two\"}]");
    legacy_task(c, "3", "tasks/result", r.task, "\"lastSeqNr\":2");
    assert_null(strstr(wire_history(c), "dev.segue/replace"));
    assert_null(strstr(wire_history(c), "structuredContent"));
}

/* ---- ends ---- */

static void cancelled(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    reading r = ask(c, "1", "story", "\"n\":1000,\"delayMs\":10", NULL);
    read_until(&r, 5);
    const char *task = r.task;
    const char *answer = legacy_task(c, "2", "tasks/cancel", task, NULL);
    assert_at(answer, "result.status", "\"cancelled\"");
    while (!is_complete(&r))
        read_one(&r);
    assert_at(r.last, "result.isError", "true");
    assert_at(r.last, "result.partial-content", "[]");
    if (w->place == WORLD_PAIR) /* only a pair keeps an order here */
        assert_true(strstr(wire_history(c), "\"isComplete\":true") <
                    strstr(wire_history(c), "\"status\":\"cancelled\""));
    world_advance(w, 100);
    expect_notes_only(c);
    assert_status(c, task, "\"cancelled\"");
    const char *merged = legacy_task(c, "3", "tasks/result", task, NULL);
    assert_at(merged, "result.isError", "true");
    assert_non_null(strstr(merged, "Task was cancelled"));
    const char *p = legacy_task(c, "4", "tasks/result", task, "\"lastSeqNr\":4");
    assert_at(p, "result.partial-content.0.seqNr", "5");
    assert_at(p, "result.isComplete", "true");
    assert_at(p, "result.isError", "true");
}

static void expired(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    reading r = ask(c, "1", "story", "\"n\":100,\"delayMs\":100",
                    "{\"ttl\":1000,\"responseModes\":[\"streaming\"]}");
    if (w->place == WORLD_STDIO) {
        while (!is_complete(&r))
            read_one(&r);
    } else {
        world_advance(w, 1000);
        while (!is_complete(&r))
            read_one(&r);
        assert_true(r.next >= 10);
    }
    assert_at(r.last, "result.isError", "true");
    const char *got = legacy_task(c, "2", "tasks/get", r.task, NULL);
    assert_at(got, "result.status", "\"failed\"");
    assert_at(got, "result.statusMessage", "\"Task TTL expired\"");
    world_advance(w, 100);
    assert_null(strstr(strstr(wire_history(c), "\"isComplete\":true"), "seqNr"));
    if (w->place == WORLD_STDIO)
        return;
    world_jump(w, 3600 * 1000);
    world_jump(w, 3600 * 1000);
    assert_code(legacy_task(c, "3", "tasks/get", r.task, NULL), -32602);
}

static void failed(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    reading r = ask(c, "1", "fail_after", "\"n\":2,\"delayMs\":10", NULL);
    read_until(&r, 2);
    read_to_end(&r);
    assert_at(r.last, "result.isError", "true");
    assert_int_equal(r.next, 4);
    assert_status(c, r.task, "\"failed\"");
    assert_merged(&r);
    reading none = ask(c, "2", "fail_after", "\"n\":0", NULL);
    read_to_end(&none);
    assert_at(none.last, "result.content",
              "[{\"type\":\"text\",\"text\":\"The job failed\"}]");
    assert_at(none.last, "result.isError", "true");
    assert_at(none.last, "result.partial-content", "");
}

/* The error of a call is its last segment; tasks/result returns the plain error
 * (R-1905-46). */
static void failed_with_an_error(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    reading r = ask(c, "1", "protocol_error_job", NULL, NULL);
    world_advance(w, 200);
    read_one(&r);
    assert_true(*json_at(r.last, "result.task.taskId"));
    read_one(&r);
    assert_at(r.last, "result.content",
              "[{\"type\":\"text\",\"text\":\"Protocol level failure\"}]");
    assert_at(r.last, "result.isError", "true");
    assert_at(r.last, "result.isComplete", "true");
    assert_non_null(strstr(r.last, "\"dev.segue/error\":{\"code\":-32603,\"message\":"
                                   "\"Protocol level failure\",\"data\":{"));
    assert_code(legacy_task(c, "2", "tasks/result", r.task, NULL), -32603);
    /* segments that are pulled have the error in the same way */
    const char *p = legacy_task(c, "3", "tasks/result", r.task, "\"lastSeqNr\":1");
    assert_at(p, "result.isComplete", "true");
    assert_non_null(strstr(p, "\"dev.segue/error\":{\"code\":-32603,\"message\":"
                              "\"Protocol level failure\",\"data\":{"));
}

/* ---- readers ---- */

static void withdrawn(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    reading r = ask(c, "7", "story", "\"n\":50,\"delayMs\":10", NULL);
    read_until(&r, 2);
    wire_notify(c, "notifications/cancelled", "\"requestId\":7");
    assert_status(c, r.task, "\"working\"");
    legacy_get_until(c, r.task, "completed");
    assert_null(strstr(wire_history(c), "\"seqNr\":50"));
    const char *p = legacy_task(c, "8", "tasks/result", r.task, "\"lastSeqNr\":49");
    assert_at(p, "result.partial-content.0.seqNr", "50");
}

static void goes_on_elsewhere(world *w)
{
    wire *a = legacy_connect(w, NULL, MODES_ALL);
    reading r = ask(a, "1", "story", "\"n\":6,\"delayMs\":10", NULL);
    read_until(&r, 3);
    wire_cut(a);
    wire *b = legacy_connect(w, NULL, MODES_ALL);
    world_advance(w, 100);
    const char *p = legacy_task(b, "4", "tasks/result", r.task, "\"lastSeqNr\":3");
    assert_at(p, "result.partial-content.0.seqNr", "4");
    assert_at(p, "result.partial-content.2.seqNr", "6");
    assert_at(p, "result.isComplete", "true");
    assert_null(strstr(p, "\"result\":{\"task\""));
}

static void pushed_and_fetched_at_once(world *w)
{
    wire *a = legacy_connect(w, NULL, MODES_ALL);
    wire *b = legacy_connect(w, NULL, MODES_ALL);
    reading r = ask(a, "1", "story", "\"n\":20,\"delayMs\":10", NULL);
    read_until(&r, 10);
    const char *p = legacy_task(b, "1", "tasks/result", r.task, "\"lastSeqNr\":4");
    assert_at(p, "result.partial-content.0.seqNr", "5");
    assert_at(p, "result.isComplete", "false");
    read_to_end(&r);
    assert_merged(&r);
}

/* A client that does not read costs the server at most the limit of a connection, and
 * misses nothing. */
static void slow_reader(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    int next = 1;
    wire_stall(c, 1);
    legacy_ask_task(c, "1", "story", "\"n\":20000,\"chunk\":400", STREAMING);
    world_advance(w, 100);
    size_t held = w->mem.live;
    /* otherwise the store itself has everything in memory */
    if (w->store_kind == WORLD_SQLITE)
        assert_true(held < 4 * 1024 * 1024);
    wire_stall(c, 0);
    for (const char *r = NULL; !r || strcmp(json_at(r, "result.isComplete"), "true");) {
        r = wire_response(c, "1");
        take_numbers(r, &next);
    }
    assert_int_equal(next, 20001);
}

static void ten_thousand(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    size_t after_some = 0;
    char id[16];
    /* because commits take time */
    int calls = w->store_kind == WORLD_SQLITE ? 400 : 10000;
    for (int i = 1; i <= calls; i++) {
        reading r = {.c = c, .request = id, .next = 1};
        snprintf(id, sizeof id, "%d", i);
        legacy_ask_task(c, id, i % 2 ? "story" : "big", "\"n\":2,\"bytes\":10",
                        "{\"ttl\":100,\"responseModes\":[\"streaming\"]}");
        while (!is_complete(&r))
            read_one(&r);
        if (i % 100)
            continue;
        world_jump(w, 3600 * 1000); /* ended tasks are purged */
        if (i == calls / 4)
            after_some = w->mem.live;
        wire_drop(c);
        c = legacy_connect(w, NULL, MODES_ALL);
    }
    world_jump(w, 3600 * 1000);
    assert_true(w->mem.live < after_some + after_some / 10);
}

static const scenario scenarios[] = {
    {"AS-4 segments come as they are made", as_they_are_made, 0, NULL},
    {"AS-15 the first ones with the task, the others behind", many_in_batches, ONE_DRIVE,
     NULL},
    {"AS-5 status notifications come in between", among_other_messages, 0, NULL},
    {"AS-112 messages between segments make no gap", among_other_messages, ONE_DRIVE,
     NULL},
    {"AS-24 members beside the content come with the end", foreign_blocks_and_members, 0,
     NULL},
    {"AS-26 an unknown block passes unchanged", foreign_blocks_and_members, ONE_DRIVE,
     NULL},
    {"AS-29 R-1905-34 pushed segments stay where replacement is not declared",
     what_was_pushed_stays, 0, NULL},
    {"AS-4 replaced segments are announced", what_was_replaced, 0, NULL},
    {"AS-4 a replacement before the first segment replaces nothing", nothing_to_replace,
     0, NULL},
    {"AS-10 a cancel ends the stream before it is answered", cancelled, ONE_DRIVE, NULL},
    {"AS-9 time to live ends the stream", expired, ONE_DRIVE, NULL},
    {"AS-11 a failure ends the stream", failed, 0, NULL},
    {"AS-11 an error ends the stream", failed_with_an_error, 0, NULL},
    {"AS-10 a request that is withdrawn leaves the task alone", withdrawn,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-6 the rest is fetched over another connection", goes_on_elsewhere, ONLY_HERE,
     NULL},
    {"AS-15 pushed to one, fetched by another", pushed_and_fetched_at_once,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-4 a slow reader", slow_reader, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-32 10,000 streams leave nothing", ten_thousand, ONLY_HERE | ONE_DRIVE, NULL},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
