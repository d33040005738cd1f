/* Looking into a store: what a person sees of the tasks of a server, and what commands
 * do. The store is that of the world, whose server runs. */
#include "support/draft_wire.h"
#include "support/world_inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "store/store.h"

#define ACCEPT "{\"action\":\"accept\",\"content\":{\"confirm\":true}}"
#define SEEN_MAX 64

typedef struct seen {
    char *texts[SEEN_MAX];
    int count;
    int most; /* the callback stops after this number of texts; 0 = never */
} seen;

static int32_t take(void *user, const char *json, size_t len)
{
    seen *s = user;
    assert_true(s->count < SEEN_MAX);
    assert_int_equal(json[0], '{');
    s->texts[s->count++] = strndup(json, len);
    return s->count == s->most;
}

static void forget(seen *s)
{
    for (int i = 0; i < s->count; i++)
        free(s->texts[i]);
    *s = (seen){0};
}

static void list(world *w, seen *s)
{
    forget(s);
    assert_int_equal(segue_store_list(w->store, take, s, NULL), SEGUE_OK);
}

/* Takes the summary of a task, and the entries behind a position. Returns whether the
 * task had ended. */
static int32_t show(world *w, seen *s, const char *id, uint64_t after)
{
    int32_t ended = -1;
    forget(s);
    assert_int_equal(segue_store_show(w->store, id, take, s, NULL), SEGUE_OK);
    assert_int_equal(segue_store_entries(w->store, id, after, take, s, &ended, NULL),
                     SEGUE_OK);
    return ended;
}

/* The summary of a task in a list. */
static const char *of(const seen *s, const char *id)
{
    for (int i = 0; i < s->count; i++) {
        char quoted[128];
        snprintf(quoted, sizeof quoted, "\"%s\"", id);
        if (!strcmp(json_at(s->texts[i], "taskId"), quoted))
            return s->texts[i];
    }
    fail_msg("the list lacks %s", id);
    return NULL;
}

static void a_list_says_what_a_task_does(world *w)
{
    seen s = {0};
    list(w, &s);
    assert_int_equal(s.count, 0); /* what the server keeps for itself is not shown */
    wire *a = world_connect(w, "Ada");
    const char *told = wire_make_task(a, "1", "story", "\"n\":3,\"delayMs\":10", NULL);
    wire_get_until(a, told, "completed", CAPS_TASKS);
    const char *asks = wire_make_task(a, "2", "confirm_delete", NULL, CAPS_ALL);
    wire_get_until(a, asks, "input_required", CAPS_ALL);
    const char *fails = wire_make_task(a, "3", "protocol_error_job", NULL, NULL);
    wire_get_until(a, fails, "failed", CAPS_TASKS);
    list(w, &s);
    assert_int_equal(s.count, 3);
    assert_at(of(&s, told), "status", "\"completed\"");
    assert_at(of(&s, told), "kind", "\"task\"");
    assert_at(of(&s, told), "tool", "\"story\"");
    assert_at(of(&s, told), "by", "\"Ada\"");
    assert_at(of(&s, told), "segments", "3");
    assert_at(of(&s, told), "isError", "false");
    assert_at(of(&s, told), "params", "");
    assert_at(of(&s, asks), "status", "\"input_required\"");
    assert_at(of(&s, asks), "questions.0.method", "\"elicitation/create\"");
    assert_at(of(&s, fails), "status", "\"failed\"");
    assert_true(*json_at(of(&s, fails), "statusMessage"));
    forget(&s);
    s.most = 2;
    assert_int_equal(segue_store_list(w->store, take, &s, NULL), SEGUE_OK);
    assert_int_equal(s.count, 2);
    forget(&s);
}

static void the_newest_comes_first(world *w)
{
    seen s = {0};
    wire *a = world_connect(w, "Ada");
    const char *ids[3];
    for (int i = 0; i < 3; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i + 1);
        ids[i] = wire_make_task(a, number, "hang", NULL, NULL);
        world_advance(w, 10);
    }
    list(w, &s);
    assert_int_equal(s.count, 3);
    for (int i = 0; i < 3; i++)
        assert_ptr_equal(of(&s, ids[2 - i]), s.texts[i]);
    forget(&s);
}

static void a_task_is_shown_entry_by_entry(world *w)
{
    seen s = {0};
    wire *a = world_connect(w, "Ada");
    const char *id = wire_make_task(a, "1", "story", "\"n\":3,\"delayMs\":10", NULL);
    wire_get_until(a, id, "completed", CAPS_TASKS);
    assert_int_equal(show(w, &s, id, 0), 1);
    assert_at(s.texts[0], "params.arguments.n", "3");
    int segments = 0;
    for (int i = 1; i < s.count; i++) {
        char seq[16];
        snprintf(seq, sizeof seq, "%d", i);
        assert_at(s.texts[i], "seq", seq);
        segments += !strcmp(json_at(s.texts[i], "kind"), "\"segment\"");
    }
    assert_int_equal(segments, 3);
    assert_at(s.texts[s.count - 1], "kind", "\"result\"");
    int last = s.count - 1;
    show(w, &s, id, (uint64_t)last - 1);
    assert_int_equal(s.count, 2); /* the summary, and the entry behind the position */
    assert_at(s.texts[1], "kind", "\"result\"");
    assert_int_equal(show(w, &s, id, 999), 1); /* nothing is behind the end */
    assert_int_equal(s.count, 1);
    forget(&s);
    segue_error *error = NULL;
    assert_int_equal(segue_store_show(w->store, "none", take, &s, &error),
                     SEGUE_E_NOT_FOUND);
    assert_non_null(strstr(segue_error_read(error)->message, "none"));
    segue_error_free(error);
}

static void a_checkpoint_is_shown_in_base64(world *w)
{
    seen s = {0};
    wire *a = world_connect(w, "Ada");
    const char *id = wire_make_task(a, "1", "checkpoint", NULL, NULL);
    wire_get_until_says(a, id, "marked");
    assert_int_equal(show(w, &s, id, 0), 0);
    bool found = false;
    for (int i = 1; i < s.count; i++)
        if (!strcmp(json_at(s.texts[i], "kind"), "\"checkpoint\"")) {
            found = true;
            assert_true(*json_at(s.texts[i], "base64"));
            assert_at(s.texts[i], "data", "");
        }
    assert_true(found);
    assert_true(atoi(json_at(s.texts[0], "checkpointBytes")) > 0);
    forget(&s);
}

static segue_status command(world *w, const char *id, const char *json)
{
    segue_status status = segue_store_command(w->store, id, json, SEGUE_TO_NUL, NULL);
    world_run(w);
    return status;
}

static void a_command_cancels_a_task(world *w)
{
    seen s = {0};
    wire *a = world_connect(w, "Ada");
    const char *id = wire_make_task(a, "1", "hang", NULL, NULL);
    assert_int_equal(command(w, id, "{\"cancel\":1}"), SEGUE_OK);
    wire_get_until(a, id, "cancelled", CAPS_TASKS);
    list(w, &s);
    assert_at(of(&s, id), "status", "\"cancelled\"");
    forget(&s);
    assert_int_equal(command(w, id, "{\"cancel\":1}"), SEGUE_E_TERMINAL);
    assert_int_equal(command(w, "none", "{\"cancel\":1}"), SEGUE_E_NOT_FOUND);
}

static void a_command_answers_a_question(world *w)
{
    char json[256];
    seen s = {0};
    wire *a = world_connect(w, "Ada");
    const char *id = wire_make_task(a, "1", "confirm_delete", NULL, CAPS_ALL);
    wire_get_until(a, id, "input_required", CAPS_ALL);
    list(w, &s);
    assert_int_equal(command(w, id, "{\"answer\":{\"key\":\"none\",\"response\":{}}}"),
                     SEGUE_E_NOT_FOUND);
    snprintf(json, sizeof json, "{\"answer\":{\"key\":%s,\"response\":" ACCEPT "}}",
             json_at(of(&s, id), "questions.0.key"));
    assert_int_equal(command(w, id, json), SEGUE_OK);
    wire_get_until(a, id, "completed", CAPS_ALL);
    list(w, &s);
    assert_at(of(&s, id), "questions.0", "");
    forget(&s);
}

static void other_texts_are_no_commands(world *w)
{
    static const char *const texts[] = {
        "",
        "{}",
        "[]",
        "1",
        "{\"cancel\":2}",
        "{\"cancel\":1",
        "{\"away\":1}",
        "{\"answer\":{\"key\":1,\"response\":{}}}",
        "{\"answer\":{\"key\":\"a\",\"error\":{}}}",
        "{\"cancel\":\"x\",\"answer\":{\"key\":1}}",
        "{\"cancel\":1,\"answer\":{\"key\":\"a\",\"response\":{}}}"};
    wire *a = world_connect(w, "Ada");
    const char *id = wire_make_task(a, "1", "hang", NULL, NULL);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(command(w, id, texts[i]), SEGUE_E_INVALID);
    wire_get_until(a, id, "working", CAPS_TASKS);
}

/* Clients may write line ends between the members of their arguments. */
static void each_text_is_one_line(world *w)
{
    seen s = {0};
    wire *a = world_connect(w, "Ada");
    const char *id = wire_make_task(
        a, "1", "hang", "\"a\":[\r\r{\"seq\":9,\"kind\":\"result\"}\r]", NULL);
    show(w, &s, id, 0);
    for (int i = 0; i < s.count; i++)
        assert_null(strpbrk(s.texts[i], "\r\n"));
    assert_at(s.texts[0], "params.arguments.a.0.seq", "9");
    forget(&s);
}

static int32_t look_again(void *user, const char *json, size_t len)
{
    world *w = user;
    seen s = {0};
    (void)json;
    (void)len;
    list(w, &s); /* the callback runs without the lock of the store */
    forget(&s);
    return 0;
}

static void a_callback_may_use_the_store(world *w)
{
    wire *a = world_connect(w, "Ada");
    const char *id = wire_make_task(a, "1", "story", "\"n\":3,\"delayMs\":10", NULL);
    wire_get_until(a, id, "completed", CAPS_TASKS);
    assert_int_equal(segue_store_list(w->store, look_again, w, NULL), SEGUE_OK);
    assert_int_equal(segue_store_entries(w->store, id, 0, look_again, w, NULL, NULL),
                     SEGUE_OK);
}

/* A server that did not hear of a commit may write a second end. The first one stands. */
static void the_first_end_stands(world *w)
{
    seen s = {0};
    segue_store_record record = {.task_id = "twice",
                                 .data = "{\"tool\":\"t\"}",
                                 .data_len = 12,
                                 .purge_ms = INT64_MAX};
    segue_store_write writes[4] = {{.kind = SEGUE_STORE_CREATE, .record = &record},
                                   {.kind = SEGUE_STORE_APPEND},
                                   {.kind = SEGUE_STORE_APPEND},
                                   {.kind = SEGUE_STORE_END, .purge_ms = INT64_MAX}};
    memset(record.principal, 7, sizeof record.principal);
    memset(record.id, 9, sizeof record.id);
    for (size_t i = 0; i < 4; i++)
        memset(writes[i].id, 9, sizeof writes[i].id);
    writes[1].entry =
        (segue_store_entry){.seq = 1, .kind = 8, .data = "{}", .data_len = 2};
    writes[2].entry = (segue_store_entry){
        .seq = 2, .kind = 9, .data = "{\"code\":1,\"message\":\"m\"}", .data_len = 24};
    assert_int_equal(sgi_store_commit(w->store, writes, 4), SEGUE_OK);
    list(w, &s);
    assert_at(of(&s, "twice"), "status", "\"completed\"");
    assert_at(of(&s, "twice"), "statusMessage", "");
    forget(&s);
}

static void only_what_has_ended_is_removed(world *w)
{
    seen s = {0};
    wire *a = world_connect(w, "Ada");
    const char *id = wire_make_task(a, "1", "hang", NULL, NULL);
    assert_int_equal(segue_store_remove(w->store, id, NULL), SEGUE_E_STATE);
    wire_task(a, "2", "tasks/cancel", id, NULL);
    wire_get_until(a, id, "cancelled", CAPS_TASKS);
    assert_int_equal(segue_store_remove(w->store, id, NULL), SEGUE_OK);
    assert_int_equal(segue_store_remove(w->store, id, NULL), SEGUE_E_NOT_FOUND);
    list(w, &s);
    assert_int_equal(s.count, 0);
    segue_store_stats stats = SEGUE_STORE_STATS_INIT;
    assert_int_equal(segue_store_read_stats(w->store, &stats), SEGUE_OK);
    assert_true(stats.bytes >= 0);
    stats.struct_size = 1;
    assert_int_equal(segue_store_read_stats(w->store, &stats), SEGUE_E_INVALID);
}

int main(void)
{
    enum { FLAGS = ONLY_HERE | ONE_DRIVE };
    static const scenario scenarios[] = {
        {"a list says what a task does", a_list_says_what_a_task_does, FLAGS, NULL},
        {"the newest task comes first", the_newest_comes_first, FLAGS, NULL},
        {"a task is shown entry by entry", a_task_is_shown_entry_by_entry, FLAGS, NULL},
        {"a checkpoint is shown in base64", a_checkpoint_is_shown_in_base64, FLAGS, NULL},
        {"a command cancels a task", a_command_cancels_a_task, FLAGS, NULL},
        {"a command answers a question", a_command_answers_a_question, FLAGS, NULL},
        {"other texts are no commands", other_texts_are_no_commands, FLAGS, NULL},
        {"only what has ended is removed", only_what_has_ended_is_removed, FLAGS, NULL},
        {"each text is one line", each_text_is_one_line, FLAGS, NULL},
        {"a callback may use the store", a_callback_may_use_the_store, FLAGS, NULL},
        {"the first end stands", the_first_end_stands, FLAGS, NULL},
    };
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
