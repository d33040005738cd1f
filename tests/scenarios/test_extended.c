/* Text that extends a block of the result (R-776-30): in every dialect, the merge of the
 * shown pieces equals the result that is fetched. */
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

#define TEXT(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define JOINED "[" TEXT("content 1. Again.") "," TEXT("content 2.") "," TEXT("end") "]"
#define APART                                                                            \
    "[" TEXT("con") "," TEXT("tent 1.") "," TEXT("cont") "," TEXT("ent 2.") "," TEXT(    \
        " Again.") "," TEXT("end") "]"
#define PARTS 6

static const char *const texts[PARTS] = {"\"con\"",    "\"tent 1.\"", "\"cont\"",
                                         "\"ent 2.\"", "\" Again.\"", "\"end\""};
static const char *const places[PARTS] = {"0", "0", "1", "1", "0", "2"};

static void call(wire *c, const char *id, const char *arguments, const char *more)
{
    char params[512];
    snprintf(params, sizeof params, "\"name\":\"two_texts\",\"arguments\":{%s}%s",
             arguments, more);
    wire_ask_plain(c, id, "tools/call", params);
}

#define ALLOW ",\"_meta\":{\"allowPartial\":true}"

/* Takes the blocks of a response; `at` blocks came before. Over real pipes consecutive
 * pieces may share a response. */
static int take_blocks(const char *response, int at)
{
    int first = atoi(json_at(response, "result._meta.index"));
    for (int i = 0;; i++, at++) {
        char path[64];
        snprintf(path, sizeof path, "result.content.%d.text", i);
        if (!*json_at(response, path))
            return at;
        assert_in_range(at, 0, PARTS - 1);
        assert_at(response, path, texts[at]);
        assert_int_equal(first + i, atoi(places[at]));
    }
}

static void in_several_responses(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    int blocks = 0;
    const char *response;
    call(c, "1", "\"delayMs\":10", ALLOW);
    do {
        response = wire_response(c, "1");
        blocks = take_blocks(response, blocks);
        world_advance(w, 10);
    } while (*json_at(response, "result._meta.hasMore"));
    assert_int_equal(blocks, PARTS);
    call(c, "2", "", "");
    const char *whole = wire_response(c, "2");
    assert_at(whole, "result.content", JOINED);
    assert_at(whole, "result._meta", "");
}

static void as_events(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "two_texts", "", NULL);
    char params[256];
    snprintf(params, sizeof params, "\"taskId\":\"%s\"", id);
    wire_ask(c, "2", "tasks/stream", params, CAPS_TASKS);
    for (int i = 0; i < PARTS; i++) {
        const char *event = wire_notification(c, "notifications/tasks/event");
        assert_at(event, "params.payload.content.0.text", texts[i]);
        assert_at(event, "params.payload.index", i ? places[i] : "");
    }
    const char *done = wire_get_until(c, id, "completed", NULL);
    assert_at(done, "result.result.content", JOINED);
}

/* SEP-1905 cannot say it: each piece is a block of its own, in the result too. */
static void streamed_they_stay_apart(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    const char *id =
        legacy_make_task(c, "1", "two_texts", "", "{\"responseModes\":[\"streaming\"]}");
    world_advance(w, 1000);
    const char *whole = legacy_task(c, "2", "tasks/result", id, NULL);
    assert_at(whole, "result.content", APART);
    assert_null(strstr(wire_history(c), "dev.segue/segments"));
    assert_null(strstr(wire_history(c), "[0,{"));
}

static void of_a_task_that_is_fetched(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    const char *id = legacy_make_task(c, "1", "two_texts", "", NULL);
    assert_at(legacy_task(c, "2", "tasks/result", id, NULL), "result.content", JOINED);
}

/* The same for a cancelled task, which has the pieces so far. */
static void of_a_task_that_was_cancelled(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    const char *id = legacy_make_task(c, "1", "two_texts", "\"delayMs\":100", NULL);
    world_advance(w, 450);
    legacy_task(c, "2", "tasks/cancel", id, NULL);
    assert_at(legacy_task(c, "3", "tasks/result", id, NULL), "result.content",
              "[" TEXT("content 1. Again.") "," TEXT("content 2.") "," TEXT(
                  "Task was cancelled") "]");
}

static void over_a_restart(world *w)
{
    wire *c = world_connect(w, NULL);
    for (int ms = 50; ms < 600; ms += 100) {
        const char *id = wire_make_task(c, "1", "two_texts", "\"delayMs\":100", NULL);
        char kept[128];
        snprintf(kept, sizeof kept, "%s", id);
        world_advance(w, ms);
        world_restart(w);
        c = world_connect(w, NULL);
        assert_at(wire_get_until(c, kept, "completed", NULL), "result.result.content",
                  JOINED);
    }
}

static void refused(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    call(c, "1", "\"into\":0", "");
    const char *no_text = wire_response(c, "1");
    assert_non_null(strstr(no_text, "block 0 of the result is not a text block"));
    call(c, "2", "\"into\":1", "");
    const char *none = wire_response(c, "2");
    assert_non_null(
        strstr(none, "there is no block 1 in the result yet: the result has 1"));
    call(c, "3", "\"into\":-1", "");
    assert_non_null(
        strstr(wire_response(c, "3"), "there is no block -1 in the result yet"));
}

#define IMAGE "{\"type\":\"image\",\"data\":\"\",\"mimeType\":\"image/png\"}"
#define STREAMING "{\"responseModes\":[\"streaming\"]}"

static const char *draft(wire *c, const char *id, const char *task)
{
    const char *made = legacy_make_task(c, id, "two_texts", "\"anew\":1", task);
    return legacy_task(c, "9", "tasks/result", made, NULL);
}

/* A handler counts blocks since the last replacement, whether its client sees
 * replacements or not. */
static void behind_a_replacement(world *w)
{
    wire *keeps = legacy_connect(w, NULL, MODES_ALL);
    assert_at(draft(keeps, "1", STREAMING), "result.content",
              "[" IMAGE "," TEXT("draft") "," TEXT(" more") "]");
    assert_at(draft(keeps, "2", NULL), "result.content", "[" TEXT("draft more") "]");
    wire *replaces = legacy_connect(w, NULL, MODES_AND_REPLACE);
    assert_at(draft(replaces, "1", STREAMING), "result.content",
              "[" TEXT("draft") "," TEXT(" more") "]");
}

static void behind_a_replacement_over_a_restart(world *w)
{
    for (int ms = 50; ms < 300; ms += 100) {
        wire *c = legacy_connect(w, NULL, MODES_ALL);
        char kept[128];
        snprintf(kept, sizeof kept, "%s",
                 legacy_make_task(c, "1", "two_texts", "\"anew\":1,\"delayMs\":100",
                                  STREAMING));
        world_advance(w, ms);
        world_restart(w);
        c = legacy_connect(w, NULL, MODES_ALL);
        world_advance(w, 1000);
        assert_at(legacy_task(c, "2", "tasks/result", kept, NULL), "result.content",
                  "[" IMAGE "," TEXT("draft") "," TEXT(" more") "]");
    }
}

static void without_an_index(segue_server_options *options)
{
    options->draft_ways = SEGUE_WAY_NO_PARTIAL_INDEX;
}

/* A client that is not told which block a piece extends has each as a block. */
static void without_an_index_they_stay_apart(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    call(c, "1", "\"delayMs\":10", ALLOW);
    for (int i = 0; i < PARTS; i++) {
        assert_at(wire_response(c, "1"), "result._meta.index", "");
        world_advance(w, 10);
    }
    call(c, "2", "", "");
    assert_at(wire_response(c, "2"), "result.content", APART);
}

static const scenario scenarios[] = {
    {"AS-82 R-776-30 text extends a block, in several responses", in_several_responses,
     ONE_DRIVE, NULL},
    {"R-776-30 text goes on in a block, as events", as_events, ONE_DRIVE, NULL},
    {"R-776-30 streamed by SEP-1905 texts stay apart", streamed_they_stay_apart,
     ONE_DRIVE, NULL},
    {"R-776-30 text goes on in a task that is fetched", of_a_task_that_is_fetched,
     ONE_DRIVE, NULL},
    {"R-776-30 text goes on in a task that was cancelled", of_a_task_that_was_cancelled,
     ONE_DRIVE | ONLY_HERE, NULL},
    {"R-776-30 text goes on over a restart", over_a_restart, ONE_DRIVE | ONLY_HERE, NULL},
    {"R-776-30 a block that is not there, or no text, is refused", refused, ONE_DRIVE,
     NULL},
    {"R-776-30 R-1905-34 blocks count from the last replacement", behind_a_replacement,
     ONE_DRIVE, NULL},
    {"R-776-30 R-1905-34 blocks count from it over a restart",
     behind_a_replacement_over_a_restart, ONE_DRIVE | ONLY_HERE, NULL},
    {"R-776-30 without an index texts stay apart", without_an_index_they_stay_apart,
     ONE_DRIVE | ONLY_HERE, without_an_index},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
