/* The wall clock is set while tasks run: an hour back, or forward, at one server or at
 * one of two. Timers and leases do not use the wall clock, so work goes on as before and
 * no segment changes. The wall clock only decides when a time to live is over. */
#include "support/fixture_job.h"
#include "support/shared_store.h"
#include "support/world_inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "engine/server/server.h"

#define HOUR_MS 3600000
#define LINES 6
#define PACE_MS 300
#define LEASE_MS 1000
#define HOPS 400

static world other; /* the second server */
static shared_place *place;

static const char *until_state(wire *c, const char *id, const char *status)
{
    static int next;
    const char *r = NULL;
    for (int i = 0; i < HOPS; i++) {
        char ask[24];
        snprintf(ask, sizeof ask, "%d", 5000 + next++);
        r = wire_task(c, ask, "tasks/get", id, NULL);
        if (!strcmp(json_at(r, "result.status"), status))
            return r;
        world_advance(c->w, 50);
    }
    fail_msg("never %s: %s", status, r);
    return NULL;
}

static void must_be_story(const char *r)
{
    for (int64_t n = 1; n <= LINES; n++) {
        char path[48], text[256], quoted[300];
        fixtures_story_line(n, 0, text, sizeof text);
        snprintf(path, sizeof path, "result.result.content.%d.text", (int)n - 1);
        snprintf(quoted, sizeof quoted, "\"%s\"", text);
        assert_at(r, path, quoted);
    }
    assert_at(r, "result.result.content.6", "");
}

static const char *make_story(wire *c, const char *number)
{
    char arguments[48];
    snprintf(arguments, sizeof arguments, "\"n\":%d,\"delayMs\":%d", LINES, PACE_MS);
    return wire_make_task(c, number, "story", arguments, NULL);
}

/* Counts the events with a segment that the client got, in order and each once. */
static void must_be_streamed(wire *c, const char *number)
{
    assert_true(*json_at(wire_response(c, number), "result"));
    for (int n = 0; n < LINES; n++) {
        char seq[24];
        snprintf(seq, sizeof seq, "\"seq\":%d,", n);
        const char *at = strstr(wire_history(c), seq);
        assert_non_null(at);
        assert_null(strstr(at + 1, seq));
    }
}

/* The clock is set in the middle of a stream, by less than the time to live. */
static void run_over_a_jump(world *w, int64_t wrong_ms)
{
    char params[128];
    wire *c = world_connect(w, NULL);
    const char *id = make_story(c, "1");
    snprintf(params, sizeof params, "\"taskId\":\"%s\"", id);
    wire_ask(c, "2", "tasks/stream", params, CAPS_TASKS);
    world_advance(w, PACE_MS * 2 + 50);
    w->wrong_ms = wrong_ms;
    world_advance(w, PACE_MS * LINES);
    must_be_story(until_state(c, id, "\"completed\""));
    must_be_streamed(c, "2");
    /* It can be read again after a restart, with the same bytes. */
    world_restart(w);
    c = world_connect(w, NULL);
    must_be_story(until_state(c, id, "\"completed\""));
    assert_int_equal(world_runs(w, "story"), 0);
}

static void set_back(world *w)
{
    run_over_a_jump(w, -HOUR_MS);
}

static void set_forward(world *w)
{
    run_over_a_jump(w, HOUR_MS / 2);
}

/* A task that goes on after a restart, at a server whose clock was set back meanwhile. */
static void goes_on_after_a_restart(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *made = make_story(c, "1");
    char *id = strdup(made);
    world_advance(w, PACE_MS * 2 + 50);
    w->wrong_ms = -HOUR_MS;
    world_restart(w);
    c = world_connect(w, NULL);
    must_be_story(until_state(c, id, "\"completed\""));
    free(id);
}

/* A clock that is set beyond the time to live ends the task, with the reason. Setting it
 * back does not bring the task back. */
static void set_beyond_the_time_to_live(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "brief", NULL, NULL);
    world_advance(w, 1000);
    w->wrong_ms = HOUR_MS;
    world_advance(w, 5000);
    const char *r = until_state(c, id, "\"failed\"");
    assert_at(r, "result.error.message", "\"Task TTL expired\"");
    w->wrong_ms = 0;
    world_advance(w, 1000);
    r = until_state(c, id, "\"failed\"");
    assert_at(r, "result.error.message", "\"Task TTL expired\"");
}

/* ---- two servers ---- */

static int64_t clock_of(void *user)
{
    return ((const world *)user)->clock_ms;
}

static segue_store *open_instance(void)
{
    shared_options options = {0};
    segue_store *store;
    assert_int_equal(shared_store_new(place, &options, NULL, &store), SEGUE_OK);
    return store;
}

static void with_leases(world *w)
{
    if (place)
        shared_place_free(place);
    place = shared_place_new(LEASE_MS, clock_of, w);
    w->custom = open_instance();
}

/* The clocks of two servers differ by half an hour. Nobody takes over from a server that
 * lives, the follower shows the task live, and a take-over works as usual. */
static void run_at_two(world *w, int64_t wrong_ms)
{
    other = (world){.tune = w->tune, .wrong_ms = wrong_ms, .custom = open_instance()};
    world_begin_beside(w, &other);
    wire *a = world_connect(w, "Ada");
    wire *b = world_connect(&other, "Ada");
    const char *whole = make_story(a, "1");
    must_be_story(until_state(b, whole, "\"completed\""));
    assert_int_equal(other.server->counts.taken_over, 0);
    char *id = strdup(make_story(a, "2"));
    world_advance(w, PACE_MS * 2 + 50);
    world_stop(w);
    must_be_story(until_state(b, id, "\"completed\""));
    assert_int_equal(other.server->counts.taken_over, 1);
    assert_int_equal(world_runs(&other, "story"), 1);
    free(id);
    world_end(&other);
}

static void one_is_behind(world *w)
{
    run_at_two(w, -HOUR_MS / 2);
}

static void one_is_ahead(world *w)
{
    run_at_two(w, HOUR_MS / 2);
}

static const scenario scenarios[] = {
    {"AS-113 a clock that is set back changes no segment", set_back,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-113 a clock that is set forward changes no segment", set_forward,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-78 a task goes on at a clock that was set back", goes_on_after_a_restart,
     ONLY_HERE | ONE_DRIVE | ONLY_SQLITE, NULL},
    {"AS-65 a clock that is set beyond the time to live ends the task",
     set_beyond_the_time_to_live, ONLY_HERE | ONE_DRIVE, NULL},
};

static const scenario shared_scenarios[] = {
    {"AS-38 two servers, one with a clock that is behind", one_is_behind,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-38 two servers, one with a clock that is ahead", one_is_ahead,
     ONLY_HERE | ONE_DRIVE, NULL},
};

int main(void)
{
    int failed = scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
    failed += scenarios_run_prepared(shared_scenarios,
                                     sizeof shared_scenarios / sizeof *shared_scenarios,
                                     with_leases);
    if (place)
        shared_place_free(place);
    return failed;
}
