/* Everything that a peer has seen survives: creation, idempotency, death of the server at
 * every point of a write, restart, a full disk. */
#include "support/fault_store.h"
#include "support/scratch.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define EVENT "notifications/tasks/event"

static fault_store *faults; /* PAIR: the store of the running world */

static void open_again(world *w)
{
    if (w->dead)
        fault_store_revive(faults);
}

static void with_faults(world *w)
{
    if (w->place == WORLD_STDIO)
        return;
    scratch_name(w->path, sizeof w->path, "/tmp/segue-faults");
    faults = fault_store_new(w->store_kind == WORLD_SQLITE ? w->path : NULL, &w->custom);
    w->between = open_again;
}

/* The process dies at the fault; another one opens what is left. */
static wire *after_death(world *w)
{
    if (w->place != WORLD_STDIO)
        assert_true(w->dead);
    w->fault = NULL;
    world_restart(w);
    return world_connect(w, NULL);
}

/* From here on the server dies at commit n. STDIO: this holds for the next one that is
 * spawned. */
static void arm(world *w, fault_where where, int n)
{
    static char plan[32];
    if (w->place != WORLD_STDIO) {
        fault_store_die(faults, where, 0, n, &w->dead);
        return;
    }
    snprintf(plan, sizeof plan, "%s:%d", where == FAULT_BEFORE ? "before" : "after", n);
    w->fault = plan;
}

static char *with_key(const char *id, const char *params, const char *key,
                      const char *caps)
{
    char *line = wire_line(id, "tools/call", params, caps);
    char *meta = strstr(line, "\"_meta\":{") + 9;
    char *keyed = malloc(strlen(line) + strlen(key) + 64);
    sprintf(keyed, "%.*s\"dev.segue/idempotencyKey\":\"%s\",%s", (int)(meta - line), line,
            key, meta);
    free(line);
    return keyed;
}

static void ask_keyed(wire *c, const char *id, const char *params, const char *key,
                      const char *caps)
{
    char *line = with_key(id, params, key, caps);
    wire_send(c, line);
    free(line);
}

static const char *do_keyed(wire *c, const char *id, const char *params, const char *key,
                            const char *caps)
{
    ask_keyed(c, id, params, key, caps);
    return wire_response(c, id);
}

static void task_id_of(const char *response, char id[160])
{
    const char *quoted = json_at(response, "result.taskId");
    assert_true(strlen(quoted) > 2);
    snprintf(id, 160, "%.*s", (int)strlen(quoted) - 2, quoted + 1);
}

/* ---- AS-38: a creation is visible at once ---- */

#define CREATIONS 1000

static void thousand_tasks(segue_server_options *options)
{
    options->max_tasks = CREATIONS + 1;
}

/* The lookup is written in the moment when the answer is read. */
static void get_in_the_same_burst(world *w)
{
    wire *c = world_connect(w, NULL);
    wire *other = world_connect(w, NULL);
    for (int i = 0; i < CREATIONS; i++) {
        const char *id = wire_make_task(c, "1", "big", "\"bytes\":1", NULL);
        const char *r = wire_task(i % 2 ? c : other, "2", "tasks/get", id, NULL);
        assert_at(r, "error", "");
    }
}

static void resolves_in_another_process(world *w)
{
    wire *a = world_connect(w, NULL);
    wire *b = world_connect(w, NULL);
    for (int i = 0; i < 200; i++) {
        wire *from = i % 2 ? a : b;
        wire *to = i % 2 ? b : a;
        const char *id = wire_make_task(from, "1", "big", "\"bytes\":1", NULL);
        const char *r = wire_task(to, "2", "tasks/get", id, NULL);
        assert_at(r, "error", "");
    }
    /* Later changes through one connection are seen in the other. */
    const char *id = wire_make_task(a, "1", "slow_compute", world_lasting(w, 100), NULL);
    assert_at(wire_task(b, "2", "tasks/get", id, NULL), "result.status", "\"working\"");
    wire_get_until(a, id, "completed", NULL);
    assert_at(wire_task(b, "3", "tasks/get", id, NULL), "result.status", "\"completed\"");
}

/* ---- AS-38a: idempotency ---- */

#define KEY "0123456789abcdef"
#define JOB "\"name\":\"slow_compute\",\"arguments\":{\"ms\":200}"

static void retried_call_finds_its_task(world *w)
{
    wire *c = world_connect(w, NULL);
    wire_stall(c, 1);
    ask_keyed(c, "1", JOB, KEY, CAPS_TASKS);
    assert_non_null(
        fault_store_task(faults, 0)); /* durable, and no byte of it was seen */
    assert_string_equal(wire_history(c), "");
    wire_cut(c);
    wire *again = world_connect(w, NULL);
    char id[160];
    task_id_of(do_keyed(again, "2", JOB, KEY, CAPS_TASKS), id);
    assert_string_equal(id, fault_store_task(faults, 0));
    assert_null(fault_store_task(faults, 1));
    wire_get_until(again, id, "completed", NULL);
    const char *r = do_keyed(again, "3", JOB, KEY, CAPS_TASKS);
    assert_at(r, "error", "");
    assert_int_equal(world_runs(w, "slow_compute"), 1);
}

static void retried_call_after_death(world *w)
{
    arm(w, FAULT_AFTER, 1);
    wire *c = world_connect(w, NULL);
    ask_keyed(c, "1", "\"name\":\"story\",\"arguments\":{\"n\":5}", KEY, CAPS_TASKS);
    assert_null(wire_due(c));
    wire *again = after_death(w);
    char id[160], same[160];
    task_id_of(do_keyed(again, "2", "\"name\":\"story\",\"arguments\":{\"n\":5}", KEY,
                        CAPS_TASKS),
               id);
    wire_get_until(again, id, "completed", NULL);
    task_id_of(do_keyed(again, "3", "\"name\":\"story\",\"arguments\":{\"n\":5}", KEY,
                        CAPS_TASKS),
               same);
    assert_string_equal(id, same);
    if (w->place != WORLD_STDIO)
        assert_null(fault_store_task(faults, 1));
}

/* Some writers escape each slash, and all text beyond ASCII. */
static void keys_are_what_they_say(world *w)
{
    static const char *const same[] = {"0123456789/\xc3\xa9-abc",
                                       "0123456789\\/\\u00e9-abc",
                                       "0123456789\\u002F\\u00E9-abc"};
    static const char *const none[] = {"0123456789abcde", "\\u0030123456789abcde",
                                       "0123456789abcdef\\u0000"};
    wire *c = world_connect(w, NULL);
    for (size_t i = 0; i < 3; i++) {
        const char *r = do_keyed(c, "1", "\"name\":\"greet\"", same[i], NULL);
        assert_at(r, "result.content.0.text", "\"Hello, World!\"");
    }
    if (w->place != WORLD_STDIO)
        assert_int_equal(world_runs(w, "greet"), 1);
    for (size_t i = 0; i < 3; i++)
        assert_code(do_keyed(c, "2", "\"name\":\"greet\"", none[i], NULL), -32602);
}

static void plain_call_runs_once(world *w)
{
    wire *c = world_connect(w, NULL);
    ask_keyed(c, "1", JOB, KEY, NULL);
    ask_keyed(c, "2", JOB, KEY, NULL);
    world_advance(w, 200);
    const char *first = wire_response(c, "1");
    assert_at(first, "result.content.0.text", "\"Computed: done\"");
    assert_at(wire_response(c, "2"), "result", json_at(first, "result"));
    assert_at(do_keyed(c, "3", JOB, KEY, NULL), "result", json_at(first, "result"));
    if (w->place != WORLD_STDIO)
        assert_int_equal(world_runs(w, "slow_compute"), 1);
}

static void key_of_another_call(world *w)
{
    wire *c = world_connect(w, NULL);
    do_keyed(c, "1", "\"name\":\"greet\",\"arguments\":{\"name\":\"Ada\"}", KEY, NULL);
    const char *r = do_keyed(
        c, "2", "\"name\":\"greet\",\"arguments\":{\"name\":\"Bob\"}", KEY, NULL);
    assert_code(r, -32602);
    assert_at(r, "error.data.reason", "\"idempotency_mismatch\"");
    assert_golden(r, "idempotency_mismatch");
    assert_code(
        do_keyed(c, "3", "\"name\":\"echo\",\"arguments\":{\"name\":\"Ada\"}", KEY, NULL),
        -32602);
    assert_code(do_keyed(c, "4", "\"name\":\"greet\"", "too short", NULL), -32602);
}

/* Where keys do not help, the server does not announce them, and ignores them. */
static void keys_where_they_help(world *w)
{
    static const char hello[] = "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"
                                "\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}";
    wire *c = world_connect(w, NULL);
    wire *old = world_connect(w, NULL);
    int takes = world_takes_keys(w);
    assert_int_equal(json_mentions(wire_do(c, "1", "server/discover", NULL, NULL),
                                   "dev.segue/idempotency"),
                     takes);
    assert_int_equal(json_mentions(wire_do_plain(old, "1", "initialize", hello),
                                   "dev.segue/idempotency"),
                     takes);
    const char *r = do_keyed(
        c, "2", "\"name\":\"greet\",\"arguments\":{\"name\":\"Ada\"}", KEY, NULL);
    assert_at(r, "error", "");
    r = do_keyed(c, "3", "\"name\":\"greet\",\"arguments\":{\"name\":\"Bob\"}", KEY,
                 NULL);
    assert_at(r, "error.code", takes ? "-32602" : "");
    r = do_keyed(c, "4", "\"name\":\"greet\"", "too short", NULL);
    assert_at(r, "error.code", takes ? "-32602" : "");
}

static void key_of_another_principal(world *w)
{
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(w, "Bob");
    char of_a[160], of_b[160];
    task_id_of(do_keyed(a, "1", JOB, KEY, CAPS_TASKS), of_a);
    task_id_of(do_keyed(b, "1", JOB, KEY, CAPS_TASKS), of_b);
    assert_string_not_equal(of_a, of_b);
    assert_int_equal(world_runs(w, "slow_compute"), 2);
}

/* ---- AS-39: death around the creation ---- */

static void created_but_unsent(world *w)
{
    wire *c = world_connect(w, NULL);
    arm(w, FAULT_AFTER, 1);
    wire_ask(c, "1", "tools/call",
             "\"name\":\"story\",\"arguments\":{\"n\":3,\"delayMs\":10}", CAPS_TASKS);
    assert_null(wire_due(c));
    const char *id = fault_store_task(faults, 0);
    assert_non_null(id);
    wire *after = after_death(w);
    assert_at(wire_task(after, "2", "tasks/get", id, NULL), "error", "");
    wire_get_until(after, id, "completed", NULL);
    world_jump(w, 3600000);
    assert_code(wire_task(after, "3", "tasks/get", id, NULL), -32602);
}

static void never_created(world *w)
{
    wire *c = world_connect(w, NULL);
    arm(w, FAULT_BEFORE, 1);
    wire_ask(c, "1", "tools/call", "\"name\":\"story\"", CAPS_TASKS);
    assert_null(wire_due(c));
    wire *after = after_death(w);
    assert_null(fault_store_task(faults, 0));
    wire_make_task(after, "1", "story", NULL, NULL);
    assert_non_null(fault_store_task(faults, 0));
    assert_null(fault_store_task(faults, 1));
}

/* Real processes: every id that a client has read resolves in the next process. */
static void no_id_that_does_not_resolve(world *w)
{
    static const char *const plans[] = {"before:1", "after:1",  "before:2",
                                        "after:2",  "before:4", "after:5"};
    char held[64][160];
    int count = 0;
    for (size_t p = 0; p < sizeof plans / sizeof *plans; p++) {
        w->fault = plans[p];
        wire *c = world_connect(w, NULL);
        const char *r;
        for (int i = 0; i < 10; i++)
            wire_ask(c, "1", "tools/call",
                     "\"name\":\"story\",\"arguments\":{\"n\":3,\"delayMs\":5}",
                     CAPS_TASKS);
        for (int i = 0; i < 10 && (r = wire_due(c)); i++)
            if (*json_at(r, "result.taskId"))
                task_id_of(r, held[count++]);
        while (wire_next(c))
            ;
        wire_cut(c); /* if the server still lives: it made fewer commits than that */
        w->fault = NULL;
        world_restart(w);
        wire *after = world_connect(w, NULL);
        for (int i = 0; i < count; i++)
            wire_get_until(after, held[i], "completed", NULL);
        world_restart(w);
    }
    assert_true(count > 0);
}

/* ---- AS-78, AS-93b: restart ---- */

static void restartable_job_goes_on(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "story", "\"n\":40,\"delayMs\":10", NULL);
    const char *asks = wire_make_task(c, "2", "confirm_delete", NULL, CAPS_ALL);
    const char *lost = wire_make_task(c, "3", "slow_compute", "\"ms\":60000", NULL);
    const char *done = wire_make_task(c, "4", "fields", NULL, NULL);
    const char *marks = wire_make_task(c, "5", "checkpoint", NULL, NULL);
    wire_get_until(c, done, "completed", NULL);
    wire_get_until(c, asks, "input_required", NULL);
    /* otherwise the server may die before that is durable */
    wire_get_until_says(c, marks, "marked");
    world_advance(w, 100);
    wire_cut(c);
    if (w->place != WORLD_STDIO) {
        fault_store_die(faults, FAULT_BEFORE, 0, 1, &w->dead);
        world_advance(w, 20);
    }
    wire *after = after_death(w);
    const char *r = wire_get_until(after, id, "completed", NULL);
    assert_at(r, "result.result.content.0.text", "\"segment 1 of the story\"");
    assert_at(r, "result.result.content.39.text", "\"segment 40 of the story\"");
    assert_at(r, "result.result.content.40", "");
    r = wire_task(after, "6", "tasks/get", lost, NULL);
    assert_at(r, "result.status", "\"failed\"");
    assert_at(r, "result.error.code", "-32603");
    assert_golden(r, "tasks_ext_get_restarted");
    assert_at(wire_task(after, "7", "tasks/get", done, NULL), "result.status",
              "\"completed\"");
    r = wire_get_until(after, marks, "completed", NULL);
    assert_at(r, "result.result.content.0.text", "\"checkpoint two\"");
    /* The question is the same, and its answer completes the job. */
    r = wire_get_until(after, asks, "input_required", NULL);
    assert_at(r, "result.inputRequests.input-2", "");
    wire_task(after, "8", "tasks/update", asks,
              "\"inputResponses\":{\"input-1\":{\"action\":\"decline\"}}");
    wire_get_until(after, asks, "completed", NULL);
}

static void restart_without_death(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "story", "\"n\":10,\"delayMs\":10", NULL);
    const char *lost = wire_make_task(c, "2", "hang", NULL, NULL);
    world_advance(w, 45);
    world_restart(w);
    wire *after = world_connect(w, NULL);
    assert_at(wire_task(after, "3", "tasks/get", lost, NULL), "result.status",
              "\"failed\"");
    const char *r = wire_get_until(after, id, "completed", NULL);
    assert_at(r, "result.result.content.9.text", "\"segment 10 of the story\"");
    assert_at(r, "result.result.content.10", "");
}

static void ask_stream(wire *c, const char *id, const char *task, int after)
{
    char params[256];
    snprintf(params, sizeof params, "\"taskId\":\"%s\",\"after\":%d", task, after);
    if (after < 0)
        snprintf(params, sizeof params, "\"taskId\":\"%s\"", task);
    wire_ask(c, id, "tasks/stream", params, CAPS_TASKS);
}

/* Takes events until `upto` or until none comes; each must be the next one. */
static int take_events(wire *c, int after, int upto)
{
    const char *n;
    while (after < upto && (n = wire_due(c))) {
        char line[256], quoted[300];
        if (strcmp(json_at(n, "method"), "\"" EVENT "\"") != 0)
            continue;
        assert_int_equal(atoi(json_at(n, "params.seq")), after + 1);
        fixtures_story_line(after + 2, 0, line, sizeof line);
        snprintf(quoted, sizeof quoted, "\"%s\"", line);
        assert_at(n, "params.payload.content.0.text", quoted);
        after++;
    }
    return after;
}

static void stream_across_kills(world *w)
{
    wire *c = world_connect(w, NULL);
    char id[160];
    snprintf(id, sizeof id, "%s",
             wire_make_task(c, "1", "story", "\"n\":300,\"delayMs\":1", NULL));
    int seen = -1;
    for (int kills = 0; kills < 4; kills++) {
        ask_stream(c, "2", id, seen);
        world_advance(w, 60);
        seen = take_events(c, seen, 40 + kills * 50 + (int)world_chance(w, 30));
        if (w->place != WORLD_STDIO) {
            fault_store_die(faults, kills % 2 ? FAULT_AFTER : FAULT_BEFORE, 0, 1,
                            &w->dead);
            world_advance(w, 20);
        } else {
            wire_cut(c);
        }
        c = after_death(w);
    }
    ask_stream(c, "3", id, seen);
    world_advance(w, 400);
    assert_int_equal(take_events(c, seen, 299), 299);
    assert_at(wire_response(c, "3"), "result.resultType", "\"complete\"");
    const char *r = wire_get_until(c, id, "completed", NULL);
    assert_at(r, "result.result.content.299.text", "\"segment 300 of the story\"");
    assert_at(r, "result.result.content.300", "");
    if (w->place != WORLD_STDIO)
        assert_int_equal(fault_store_changed(faults), 0);
}

/* ---- AS-113: death at each point of a write ---- */

/* Removes the end of the last commit, as if it never reached the disk. */
static void tear_wal(const world *w)
{
    char name[160];
    snprintf(name, sizeof name, "%s-wal", w->path);
    FILE *f = fopen(name, "r+");
    if (!f)
        return;
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    if (size > 100)
        assert_int_equal(ftruncate(fileno(f), size - 100), 0);
    fclose(f);
}

enum { TORN = 100 };

/* Makes the server write something, so that a planned death comes. */
static void wire_make_hang(wire *c, const world *w)
{
    wire_ask(c, "99", "tools/call", "\"name\":\"hang\"", CAPS_TASKS);
    assert_true(w->dead);
}

static void dies_at_each_commit(world *w, int where)
{
    for (int n = 1; n <= 12; n++) {
        wire *c = world_connect(w, NULL);
        char id[160];
        int seen = -1;
        if (w->place == WORLD_STDIO) {
            world_restart(w);
            arm(w, where == TORN ? FAULT_AFTER : (fault_where)where, n + 1);
            c = world_connect(w, NULL);
        }
        wire_ask(c, "1", "tools/call",
                 "\"name\":\"story\",\"arguments\":{\"n\":10,\"delayMs\":5}", CAPS_TASKS);
        task_id_of(wire_response(c, "1"), id);
        if (w->place != WORLD_STDIO)
            arm(w, (fault_where)where, n);
        ask_stream(c, "2", id, -1);
        world_advance(w, 200);
        seen = take_events(c, -1, 9);
        const char *r;
        int finished = 0;
        while (!finished && (r = wire_due(c)))
            finished = !strcmp(json_at(r, "id"), "2") && *json_at(r, "result");
        while (wire_next(c))
            ;
        if (w->place != WORLD_STDIO && !w->dead) {
            assert_true(finished); /* there are fewer commits than that */
            fault_store_die(faults, FAULT_BEFORE, 0, 1, &w->dead);
            wire_make_hang(c, w);
        }
        if (where == TORN && wire_is_closed(c))
            tear_wal(w);
        wire *after = after_death(w);
        if (finished)
            assert_at(wire_task(after, "3", "tasks/get", id, NULL), "result.status",
                      "\"completed\"");
        ask_stream(after, "4", id, seen);
        world_advance(w, 200);
        assert_int_equal(take_events(after, seen, 9), 9);
        assert_at(wire_response(after, "4"), "result.resultType", "\"complete\"");
        if (w->place != WORLD_STDIO) {
            assert_int_equal(fault_store_changed(faults), 0);
            for (size_t i = 0; fault_store_task(faults, i); i++)
                assert_int_equal(fault_store_finals(faults, i), 1);
        }
    }
}

static void dies_before_append(world *w)
{
    dies_at_each_commit(w, FAULT_BEFORE);
}

static void dies_after_append(world *w)
{
    dies_at_each_commit(w, FAULT_AFTER);
}

static void dies_with_a_torn_append(world *w)
{
    dies_at_each_commit(w, TORN);
}

typedef struct seen_lines {
    char text[8][64];
    int last;
    int finished;
} seen_lines;

static void note_line(seen_lines *seen, const char *message)
{
    if (strstr(message, "dev.segue/final")) {
        seen->finished = 1;
    } else if (strstr(message, EVENT)) {
        seen->last = atoi(json_at(message, "params.seq"));
        snprintf(seen->text[seen->last], sizeof *seen->text, "%s",
                 json_at(message, "params.payload.content.0.text"));
    }
}

/* Opens the stream again and again until the task or the server has ended. */
static void look_hard(wire *c, const char *id, seen_lines *seen)
{
    for (int i = 10; !seen->finished; i++) {
        char stream[16], end[16], cancel[64];
        const char *r;
        snprintf(stream, sizeof stream, "%d", i);
        snprintf(end, sizeof end, "\"%d\"", i);
        snprintf(cancel, sizeof cancel, "\"requestId\":%d", i);
        ask_stream(c, stream, id, seen->last);
        wire_ask(c, end, "server/discover", NULL, NULL);
        wire_notify(c, "notifications/cancelled", cancel);
        while ((r = wire_due(c)) && strcmp(json_at(r, "id"), end) != 0)
            note_line(seen, r);
        if (!r)
            return;
    }
}

/* Each line names the process that wrote it: a line that was seen and lost would come
 * again with another text. The store is on a thread of its own, as SQLite is, so a line
 * that is sent too early is seen. */
static void seen_lines_never_change(world *w)
{
    for (int n = 2; n <= 10; n++) {
        seen_lines seen = {.last = -1};
        char id[160];
        world_restart(w);
        arm(w, FAULT_BEFORE, n);
        wire *c = world_connect(w, NULL);
        wire_ask(c, "1", "tools/call",
                 "\"name\":\"signed_story\",\"arguments\":{\"n\":8,\"delayMs\":20}",
                 CAPS_TASKS);
        task_id_of(wire_response(c, "1"), id);
        look_hard(c, id, &seen);
        wire *after = after_death(w);
        if (seen.finished)
            assert_at(wire_task(after, "3", "tasks/get", id, NULL), "result.status",
                      "\"completed\"");
        ask_stream(after, "4", id, -1);
        for (int seq = 0; seq < 8; seq++) {
            const char *event = wire_notification(after, EVENT);
            if (*seen.text[seq])
                assert_at(event, "params.payload.content.0.text", seen.text[seq]);
        }
        assert_at(wire_response(after, "4"), "result.resultType", "\"complete\"");
    }
}

/* After send: the server is gone right after the client has read an event. */
static void dies_after_send(world *w)
{
    for (int last = 0; last < 10; last += 3) {
        wire *c = world_connect(w, NULL);
        char id[160];
        snprintf(id, sizeof id, "%s",
                 wire_make_task(c, "1", "story", "\"n\":10,\"delayMs\":5", NULL));
        ask_stream(c, "2", id, -1);
        int seen = -1;
        while (seen < last) {
            world_advance(w, 5);
            seen = take_events(c, seen, last);
        }
        if (w->place != WORLD_STDIO) {
            fault_store_die(faults, FAULT_BEFORE, 0, 1, &w->dead);
            world_advance(w, 50);
        } else {
            wire_cut(c);
        }
        wire *after = after_death(w);
        ask_stream(after, "3", id, seen);
        world_advance(w, 200);
        assert_int_equal(take_events(after, seen, 9), 9);
        wire_get_until(after, id, "completed", NULL);
    }
}

/* ---- AS-114: a full disk ---- */

static void disk_full_for_a_while(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *hurt = wire_make_task(c, "1", "story", "\"n\":50,\"delayMs\":10", NULL);
    const char *idle = wire_make_task(c, "2", "slow_compute", "\"ms\":2000", NULL);
    world_advance(w, 100);
    ask_stream(c, "3", hurt, -1);
    int seen = take_events(c, -1, 100);
    assert_true(seen > 5);
    fault_store_refuse(faults, SEGUE_E_STORE_FULL, 1000000);
    world_advance(w, 50);
    const char *r = wire_get_until(c, hurt, "failed", NULL);
    assert_at(r, "result.error.code", "-32603");
    assert_at(wire_response(c, "3"), "result.resultType", "\"complete\"");
    r = wire_do(c, "4", "tools/call", "\"name\":\"hang\"", CAPS_TASKS);
    assert_code(r, -32603);
    assert_golden(r, "cannot_store");
    /* Other requests succeed: those that need no store, or have nothing to write now. */
    assert_at(wire_do(c, "5", "tools/call", "\"name\":\"greet\"", NULL),
              "result.content.0.text", "\"Hello, World!\"");
    assert_at(wire_task(c, "6", "tasks/get", idle, NULL), "result.status", "\"working\"");
    fault_store_refuse(faults, SEGUE_OK, 0);
    wire_get_until(c, wire_make_task(c, "7", "story", NULL, NULL), "completed", NULL);
    wire_get_until(c, idle, "completed", NULL);
    /* The end that was reported is the end that is stored. */
    assert_at(wire_task(c, "8", "tasks/get", hurt, NULL), "result.status", "\"failed\"");
    world_advance(w, 5000);
    for (size_t i = 0; fault_store_task(faults, i); i++)
        assert_int_equal(fault_store_finals(faults, i), 1);
    assert_true(fault_store_refusals(faults) > 0);
    assert_int_equal(fault_store_changed(faults), 0);
    world_restart(w);
    c = world_connect(w, NULL);
    assert_at(wire_task(c, "9", "tasks/get", hurt, NULL), "result.status", "\"failed\"");
}

static const scenario plain[] = {
    {"AS-38 a task resolves as soon as its id is known, 1,000 times",
     get_in_the_same_burst, ONLY_HERE | ONE_DRIVE, thousand_tasks},
    {"AS-38 a task resolves in another process at once", resolves_in_another_process,
     ONLY_STDIO | ONLY_SQLITE | ONE_DRIVE, NULL},
    {"AS-39 no process leaves an id behind that does not resolve",
     no_id_that_does_not_resolve, ONLY_STDIO | ONLY_SQLITE | ONE_DRIVE, NULL},
    {"AS-78 a server that ends leaves its jobs to the next", restart_without_death,
     ONLY_HERE | ONE_DRIVE, NULL},
};

static const scenario faulty[] = {
    {"AS-38a a call whose answer was lost is found by its key",
     retried_call_finds_its_task, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38a a call is found by its key after a death", retried_call_after_death,
     ONLY_SQLITE | ONE_DRIVE, NULL},
    {"AS-38a a plain call with a key runs once", plain_call_runs_once, ONLY_KEYED, NULL},
    {"AS-38a a key is the same however it is written", keys_are_what_they_say, ONLY_KEYED,
     NULL},
    {"AS-38a a key of another call is refused", key_of_another_call, ONLY_KEYED, NULL},
    {"R-2557-11 a key counts where its client can come back with it",
     keys_where_they_help, 0, NULL},
    {"AS-38a a key belongs to its principal", key_of_another_principal,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-39 created and unsent: it is there and expires", created_but_unsent,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-39 killed before the write: there is no task", never_created,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-78 restartable jobs go on, lost ones fail", restartable_job_goes_on,
     ONLY_SQLITE | ONE_DRIVE, NULL},
    {"AS-93b a stream goes on across killed servers", stream_across_kills,
     ONLY_SQLITE | ONE_DRIVE, NULL},
    {"AS-113 death before an append", dies_before_append, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-113 death after an append, before it is sent", dies_after_append,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-113 death with a torn append", dies_with_a_torn_append,
     ONLY_STDIO | ONLY_SQLITE | ONE_DRIVE, NULL},
    {"AS-113 segments that were seen keep their bytes", seen_lines_never_change,
     ONLY_STDIO | ONLY_SQLITE | ONE_DRIVE, NULL},
    {"AS-113 death after send", dies_after_send, ONLY_SQLITE | ONE_DRIVE, NULL},
    {"AS-114 a full disk ends what it hits and nothing else", disk_full_for_a_while,
     ONLY_HERE | ONE_DRIVE, NULL},
};

int main(void)
{
    int failed = scenarios_run(plain, sizeof plain / sizeof *plain);
    return failed +
           scenarios_run_prepared(faulty, sizeof faulty / sizeof *faulty, with_faults);
}
