/* Logs that are read back in pieces, after a crash or at the server that takes over. A
 * running operation goes on once, from its last segment, and is shown once. The pieces
 * are made small, so that short logs have many of them. label: threads */
#include "support/fault_store.h"
#include "support/legacy_wire.h"
#include "support/redis_kit.h"
#include "support/scratch.h"
#include "support/world_inside.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "engine/server/server.h"
#include "store/store.h"

#define CAPS_Z "{\"resumableRequests\":{}}"
#define POLICY "notifications/requests/resumePolicy"
#define LINES 12
#define VISITS 3 /* visits of the client before the server ends */

static world other; /* server B; the world of the scenario is server A */
static fault_store *faults;
static size_t read_bytes; /* bytes of a piece; 0 = default */
static char token[128];

static void set_pieces(world *w)
{
    if (read_bytes)
        w->server->committer.read_bytes = read_bytes;
}

static void with_pieces(world *w)
{
    w->furnish = set_pieces;
}

/* Uses a store that keeps entries nobody needs any more: a reader of the log meets
 * them. */
static void with_a_store_that_keeps(world *w)
{
    scratch_name(w->path, sizeof w->path, "/tmp/segue-long");
    faults = fault_store_new(w->store_kind == WORLD_SQLITE ? w->path : NULL, &w->custom);
    fault_store_keep(faults);
    w->furnish = set_pieces;
}

static void open_again(world *w)
{
    if (w->dead)
        fault_store_revive(faults);
}

static void begin_beside(world *w)
{
    other = (world){.tune = w->tune, .furnish = set_pieces};
    world_begin_beside(w, &other);
}

/* ---- the call ---- */

static wire *begin_call(world *w, const char *more)
{
    char params[256];
    wire *c = legacy_connect(w, "Ada", CAPS_Z);
    snprintf(params, sizeof params,
             "\"name\":\"story\",\"arguments\":{\"n\":%d,\"delayMs\":300}%s", LINES,
             more);
    wire_ask_plain(c, "123", "tools/call", params);
    snprintf(token, sizeof token, "%s",
             json_at(wire_notification(c, POLICY), "params.resumeToken"));
    return c;
}

static wire *resume_at(world *w)
{
    char params[256];
    wire *c = legacy_connect(w, "Ada", CAPS_Z);
    snprintf(params, sizeof params, "\"resumeToken\":%s", token);
    wire_ask_plain(c, "123", "requests/resume", params);
    return c;
}

/* The client comes and goes several times; the log notes each time. */
static void come_and_go(world *w, wire *c)
{
    for (int i = 0; i < VISITS; i++) {
        world_advance(w, 300);
        wire_cut(c);
        world_run(w);
        c = resume_at(w);
        world_run(w);
    }
    wire_cut(c);
    world_run(w);
}

static void must_be_whole(const char *r)
{
    char path[48], text[256], quoted[300];
    for (int64_t n = 1; n <= LINES; n++) {
        fixtures_story_line(n, 0, text, sizeof text);
        snprintf(path, sizeof path, "result.content.%d.text", (int)n - 1);
        snprintf(quoted, sizeof quoted, "\"%s\"", text);
        assert_at(r, path, quoted);
    }
    snprintf(path, sizeof path, "result.content.%d", LINES);
    assert_at(r, path, "");
}

/* Checks that the remaining server runs the operation once and answers. */
static void must_have_gone_on(world *w, wire *c)
{
    /* the first client makes the server look into the store */
    legacy_connect(w, "Ada", CAPS_Z);
    world_advance(w, 300 * (LINES + 2));
    if (!c)
        c = resume_at(w);
    must_be_whole(wire_response(c, "123"));
    assert_int_equal(world_runs(w, "story"), 1);
    assert_int_equal(w->server->counts.taken_over, 1);
    assert_int_equal(w->log_count, 0);
}

/* ---- scenarios ---- */

static void goes_on_after_a_crash(world *w)
{
    w->between = open_again;
    come_and_go(w, begin_call(w, ""));
    fault_store_die(faults, FAULT_BEFORE, 0, 1, &w->dead);
    world_advance(w, 600);
    assert_true(w->dead);
    world_restart(w);
    w->log_count = 0; /* errors of the server that died */
    must_have_gone_on(w, NULL);
    assert_int_equal(fault_store_changed(faults), 0);
    assert_int_equal(fault_store_finals(faults, 0), 1);
}

static void goes_on_at_another_server(world *w)
{
    begin_beside(w);
    come_and_go(w, begin_call(w, ""));
    world_stop(w);
    must_have_gone_on(&other, NULL);
    world_end(&other);
}

/* The client is at B when A ends: it sees the operation go on. */
static void goes_on_under_its_reader(world *w)
{
    begin_beside(w);
    come_and_go(w, begin_call(w, ""));
    wire *c = resume_at(&other);
    world_run(&other);
    world_stop(w);
    must_have_gone_on(&other, c);
    world_end(&other);
}

static const scenario kept[] = {
    {"AS-38 R-975-27 a long log goes on after a crash", goes_on_after_a_crash,
     ONLY_HERE | ONE_DRIVE, NULL},
};

static const scenario servers[] = {
    {"AS-38 R-975-29 a long log goes on at another server", goes_on_at_another_server,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38 R-975-29 a long log goes on under its reader", goes_on_under_its_reader,
     ONLY_HERE | ONE_DRIVE, NULL},
};

/* ---- Redis ---- */

/* Entries of one commit stay together there: an outdated mark is kept with the entries
 * beside it. */
static void write_together(world *w, redis_server *redis, wire *c)
{
    redis_server_signal(redis, SIGSTOP);
    for (int i = 0; i < 2; i++) {
        int32_t ran = 0;
        w->clock_ms += 300;
        if (i)
            wire_cut(c);
        fixtures_tick(w->fixtures);
        assert_int_equal(segue_runtime_dispatch(w->runtime, 0, 0, &ran), SEGUE_OK);
    }
    redis_server_signal(redis, SIGCONT);
    world_run(w);
}

static int32_t count_mark(void *user, const segue_store_entry *entry)
{
    *(int *)user += entry->kind == SGI_ENTRY_PRESENCE;
    return 0;
}

static int subscribed_uris_of(const world *w)
{
    int marks = 0;
    const sgi_op *op =
        sgi_op_of_task_node(sgi_index_any_node(&w->server->cluster.by_task));
    assert_int_equal(sgi_store_read(w->store, op->id, 0, count_mark, &marks), SEGUE_OK);
    return marks;
}

static void begin_at(world *w, const redis_server *redis)
{
    *w = (world){.place = WORLD_PAIR, .slow = 1, .shared = 1, .furnish = set_pieces};
    w->custom = redis_kit_open_lasting(redis_server_url(redis));
    world_begin(w);
}

static void goes_on_at_another_server_of_redis(void **state)
{
    static const size_t sizes[] = {1, 100, 0};
    (void)state;
    redis_server *redis;
    world w;
    assert_true(redis_server_start(NULL, &redis));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        read_bytes = sizes[i];
        begin_at(&w, redis);
        wire *c = begin_call(&w, "");
        for (int n = 0; n < VISITS; n++) {
            write_together(&w, redis, c);
            c = resume_at(&w);
            world_run(&w);
        }
        assert_true(subscribed_uris_of(&w) > 1);
        world_stop(&w);
        begin_at(&other, redis);
        must_have_gone_on(&other, NULL);
        world_end(&other);
        world_end(&w);
    }
    redis_server_stop(redis);
}

int main(void)
{
    static const size_t sizes[] = {1, 100, 0};
    const struct CMUnitTest redis[] = {
        cmocka_unit_test(goes_on_at_another_server_of_redis),
    };
    int failed = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        read_bytes = sizes[i];
        failed += scenarios_run_prepared(kept, sizeof kept / sizeof *kept,
                                         with_a_store_that_keeps);
        failed += scenarios_run_prepared(servers, sizeof servers / sizeof *servers,
                                         with_pieces);
    }
    return failed + cmocka_run_group_tests(redis, NULL, NULL);
}
