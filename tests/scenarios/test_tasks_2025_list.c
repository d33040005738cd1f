/* tasks/list of 2025-11-25: own tasks, newest first, page by page, from memory and from
 * the store. */
#include "support/legacy_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static const char *list(wire *c, const char *cursor)
{
    char params[512];
    snprintf(params, sizeof params, "\"cursor\":%s", cursor ? cursor : "");
    return wire_do_plain(c, "\"list\"", "tasks/list", cursor && *cursor ? params : NULL);
}

static void assert_task(const char *page, int i, const char *id)
{
    char path[64], quoted[80] = "";
    snprintf(path, sizeof path, "result.tasks.%d.taskId", i);
    if (id)
        snprintf(quoted, sizeof quoted, "\"%s\"", id);
    assert_at(page, path, quoted);
}

/* Makes tasks with time passing between them: the order of tasks of one millisecond is
 * fixed, but not defined. */
static void make_some(world *w, wire *c, const char *ids[], int n)
{
    for (int i = 0; i < n; i++) {
        ids[i] = legacy_make_task(c, "\"make\"", "hang", NULL, NULL);
        world_jump(w, 1);
    }
}

static void lists_own_tasks(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    assert_at(list(c, NULL), "result", "{\"tasks\":[]}");
    const char *id = legacy_make_task(c, "1", "slow_compute", "\"ms\":10", NULL);
    legacy_get_until(c, id, "completed");
    const char *r = list(c, NULL);
    assert_task(r, 0, id);
    assert_at(r, "result.tasks.0.status", "\"completed\"");
    assert_at(r, "result.nextCursor", "");
    assert_golden(r, "tasks_2025_list");
    /* As tasks/get shows it. */
    char shown[1024];
    snprintf(shown, sizeof shown, "%s", json_at(r, "result.tasks.0"));
    assert_at(legacy_task(c, "2", "tasks/get", id, NULL), "result", shown);
}

static void without_principals(segue_server_options *options)
{
    options->principal = NULL;
}

/* Standard input and output have one caller, so no principal function is needed. */
static void lists_over_stdio_without_principals(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r = legacy_hello(c, "2025-11-25", NULL);
    assert_at(r, "result.capabilities.tasks.list", "{}");
    wire_notify(c, "notifications/initialized", NULL);
    const char *id = legacy_make_task(c, "1", "hang", NULL, NULL);
    assert_task(list(c, NULL), 0, id);
}

static void two_per_page(segue_server_options *options)
{
    options->page_size = 2;
}

static void goes_page_by_page(world *w)
{
    const char *ids[5];
    char cursor[256];
    wire *c = legacy_connect(w, NULL, NULL);
    make_some(w, c, ids, 5);
    const char *r = list(c, NULL);
    assert_task(r, 0, ids[4]);
    assert_task(r, 1, ids[3]);
    assert_task(r, 2, NULL);
    snprintf(cursor, sizeof cursor, "%s", json_at(r, "result.nextCursor"));
    r = list(c, cursor);
    assert_task(r, 0, ids[2]);
    assert_task(r, 1, ids[1]);
    assert_string_equal(list(c, cursor), r); /* a cursor can be used more than once */
    r = list(c, json_at(r, "result.nextCursor"));
    assert_task(r, 0, ids[0]);
    assert_task(r, 1, NULL);
    assert_at(r, "result.nextCursor", "");
}

/* Over pipes real time passes, perhaps less than a millisecond: the pages together have
 * each task once. */
static void has_each_task_once(world *w)
{
    const char *ids[7];
    char all[8192] = "", cursor[256] = "";
    wire *c = legacy_connect(w, NULL, NULL);
    for (int i = 0; i < 7; i++)
        ids[i] = legacy_make_task(c, "\"make\"", "hang", NULL, NULL);
    int pages = 0;
    do {
        const char *r = list(c, cursor);
        strcat(all, json_at(r, "result.tasks"));
        snprintf(cursor, sizeof cursor, "%s", json_at(r, "result.nextCursor"));
    } while (++pages < 10 && *cursor);
    assert_int_equal(pages, 4);
    for (int i = 0; i < 7; i++) {
        const char *at = strstr(all, ids[i]);
        assert_non_null(at);
        assert_null(strstr(at + 1, ids[i]));
    }
}

static void stable_while_tasks_come_and_go(world *w)
{
    const char *ids[6];
    char cursor[256];
    wire *c = legacy_connect(w, NULL, NULL);
    const char *brief = legacy_make_task(c, "1", "brief", NULL, NULL);
    world_jump(w, 1);
    make_some(w, c, ids, 6);
    const char *r = list(c, NULL);
    assert_task(r, 0, ids[5]);
    assert_task(r, 1, ids[4]);
    snprintf(cursor, sizeof cursor, "%s", json_at(r, "result.nextCursor"));
    legacy_make_task(c, "2", "hang", NULL, NULL);
    legacy_task(c, "3", "tasks/cancel", ids[3], NULL);
    world_jump(w, 5000);          /* the task with the short time to live expires, */
    world_jump(w, 5 * 60 * 1000); /* the task is gone after the grace time */
    assert_code(legacy_task(c, "4", "tasks/get", brief, NULL), -32602);
    r = list(c, cursor);
    assert_task(r, 0, ids[3]);
    assert_at(r, "result.tasks.0.status", "\"cancelled\"");
    assert_task(r, 1, ids[2]);
    r = list(c, json_at(r, "result.nextCursor"));
    assert_task(r, 0, ids[1]);
    assert_task(r, 1, ids[0]);
    assert_at(r, "result.nextCursor", "");
}

static void goes_on_behind_what_is_gone(world *w)
{
    const char *ids[3];
    char cursor[256];
    wire *c = legacy_connect(w, NULL, NULL);
    ids[0] = legacy_make_task(c, "1", "hang", NULL, NULL);
    world_jump(w, 1);
    ids[1] = legacy_make_task(c, "2", "fields", NULL, "{\"ttl\":60000}");
    legacy_get_until(c, ids[1], "completed");
    world_jump(w, 1);
    ids[2] = legacy_make_task(c, "3", "hang", NULL, NULL);
    const char *r = list(c, NULL);
    assert_task(r, 1, ids[1]);
    snprintf(cursor, sizeof cursor, "%s", json_at(r, "result.nextCursor"));
    world_jump(w, 60000);
    world_jump(w, 120000); /* the other task is purged, too */
    r = list(c, cursor);
    assert_task(r, 0, ids[0]);
    assert_task(r, 1, NULL);
}

static void bad_cursors(world *w)
{
    static const char *const bad[] = {"7",
                                      "null",
                                      "[]",
                                      "\"\"",
                                      "\"x\"",
                                      "\"AAAA\"",
                                      "\"not base64 !\"",
                                      "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"",
                                      "\"a\\u0000b\""};
    const char *ids[3];
    char cursor[256], altered[256];
    wire *c = legacy_connect(w, NULL, NULL);
    make_some(w, c, ids, 3);
    snprintf(cursor, sizeof cursor, "%s", json_at(list(c, NULL), "result.nextCursor"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *r = list(c, bad[i]);
        assert_code(r, -32602);
        assert_at(r, "error.message", "\"Invalid cursor\"");
    }
    assert_task(list(c, cursor), 0, ids[0]);
    for (size_t i = 1; i + 2 < strlen(cursor); i += 3) {
        snprintf(altered, sizeof altered, "%s", cursor);
        altered[i] = altered[i] == 'B' ? 'C' : 'B';
        assert_code(list(c, altered), -32602);
    }
}

static void to_each_their_own(world *w)
{
    const char *ids[3], *others[3];
    char cursor[256], unknown[256];
    wire *a = legacy_connect(w, "Ada", NULL);
    wire *b = legacy_connect(w, "Bob", NULL);
    make_some(w, a, ids, 3);
    make_some(w, b, others, 3);
    const char *r = list(a, NULL);
    assert_task(r, 0, ids[2]);
    assert_null(strstr(r, others[2]));
    snprintf(cursor, sizeof cursor, "%s", json_at(r, "result.nextCursor"));
    snprintf(unknown, sizeof unknown, "%s", list(b, "\"AAAA\""));
    assert_string_equal(list(b, cursor), unknown);
    assert_at(list(legacy_connect(w, "Eve", NULL), NULL), "result", "{\"tasks\":[]}");
    wire *again = legacy_connect(w, "Ada", NULL);
    assert_task(list(again, cursor), 0, ids[0]);
}

static void only_those_of_this_era(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    wire_make_task(c, "1", "hang", NULL, NULL);
    const char *id = legacy_make_task(c, "2", "hang", NULL, NULL);
    wire_make_task(c, "3", "hang", NULL, NULL);
    const char *r = list(c, NULL);
    assert_task(r, 0, id);
    assert_task(r, 1, NULL);
}

/* Ended tasks leave memory after a while; their state is read back. */
static void lists_what_is_only_in_the_store(world *w)
{
    wire *c = legacy_connect(w, "Ada", NULL);
    const char *failed = legacy_make_task(c, "1", "failing_job", "\"ms\":10", NULL);
    legacy_get_until(c, failed, "failed");
    const char *done = legacy_make_task(c, "2", "fields", NULL, NULL);
    legacy_get_until(c, done, "completed");
    char before[2048];
    snprintf(before, sizeof before, "%s", list(c, NULL));
    assert_task(before, 0, done);
    assert_at(before, "result.tasks.0.statusMessage", "\"almost\"");
    assert_task(before, 1, failed);
    assert_at(before, "result.tasks.1.status", "\"failed\"");
    world_jump(w, 31000);
    assert_string_equal(list(c, NULL), before);
    world_restart(w);
    c = legacy_connect(w, "Ada", NULL);
    assert_string_equal(list(c, NULL), before);
}

#define MANY 60

static void a_page_has_at_most_fifty(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    for (int i = 0; i < MANY; i++)
        legacy_call(c, "1", "hang", NULL, NULL);
    const char *r = list(c, NULL);
    assert_at(r, "result.tasks.50", "");
    assert_at(r, "result.tasks.49.status", "\"working\"");
    r = list(c, json_at(r, "result.nextCursor"));
    assert_at(r, "result.tasks.9.status", "\"working\"");
    assert_at(r, "result.tasks.10", "");
    assert_at(r, "result.nextCursor", "");
}

static void allow_many(segue_server_options *options)
{
    options->max_tasks = 2000;
}

#define BURST 100

/* Makes tasks of the other era, a hundred in one commit. */
static void make_others(wire *c)
{
    char text[BURST * 400];
    size_t used = 0;
    for (int i = 0; i < BURST; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", i);
        char *line =
            wire_line(id, "tools/call", "\"name\":\"big\",\"arguments\":{}", CAPS_TASKS);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? "\n" : "",
                                 line);
        free(line);
    }
    assert_true(used < sizeof text);
    wire_send(c, text);
    for (int i = 0; i < BURST; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", i);
        assert_at(wire_response(c, id), "result.resultType", "\"task\"");
    }
}

/* One request examines a bounded number of tasks, however few of them it may show. */
static void looking_is_bounded(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    const char *old = legacy_make_task(c, "1", "hang", NULL, NULL);
    world_jump(w, 1);
    for (int i = 0; i < 11; i++)
        make_others(c);
    const char *r = list(c, NULL);
    assert_at(r, "result.tasks", "[]");
    assert_true(*json_at(r, "result.nextCursor") != 0);
    r = list(c, json_at(r, "result.nextCursor"));
    assert_task(r, 0, old);
    assert_at(r, "result.nextCursor", "");
}

static const scenario scenarios[] = {
    {"tasks/list shows own tasks", lists_own_tasks, 0, NULL},
    {"tasks/list needs no principal over standard input",
     lists_over_stdio_without_principals, ONLY_STDIO | ONE_DRIVE, without_principals},
    {"tasks/list goes page by page, newest first", goes_page_by_page,
     ONLY_HERE | ONE_DRIVE, two_per_page},
    {"tasks/list has each task once", has_each_task_once, ONE_DRIVE, two_per_page},
    {"tasks/list is stable while tasks come and go", stable_while_tasks_come_and_go,
     ONLY_HERE | ONE_DRIVE, two_per_page},
    {"tasks/list goes on behind a task that is gone", goes_on_behind_what_is_gone,
     ONLY_HERE | ONE_DRIVE, two_per_page},
    {"tasks/list refuses cursors it did not make", bad_cursors, ONLY_HERE | ONE_DRIVE,
     two_per_page},
    {"tasks/list shows to each their own", to_each_their_own, ONLY_HERE | ONE_DRIVE,
     two_per_page},
    {"AS-120 tasks/list shows those of its era", only_those_of_this_era, ONE_DRIVE, NULL},
    {"tasks/list shows what is only in the store", lists_what_is_only_in_the_store,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"tasks/list has at most fifty on a page", a_page_has_at_most_fifty, ONE_DRIVE, NULL},
    {"tasks/list looks at so many at once", looking_is_bounded, ONLY_HERE | ONE_DRIVE,
     allow_many},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
