/* Limits of what one principal and all principals may use of a server, over any number of
 * connections, and how the server reports them. */
#include "base/thresholds.h"
#include "support/world.h"

#include <segue/segue_ext.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define GREET "\"name\":\"greet\""
#define HANG "\"name\":\"hang_plain\""

static const char *call(wire *c, const char *id, const char *params)
{
    return wire_do(c, id, "tools/call", params, NULL);
}

static void assert_greeted(const char *response)
{
    assert_at(response, "result.content.0.text", "\"Hello, World!\"");
}

/* The one limit of the server that can be reached, as `tune` sets it. */
static const char *limit_name;
static int64_t limit_value;

static int64_t bound(const char *name, int64_t value)
{
    limit_name = name;
    limit_value = value;
    return value;
}

/* The error names the limit and its value, in its text and in its data. */
static void assert_refused(const char *response)
{
    char data[128], text[128];
    assert_code(response, -32603);
    snprintf(data, sizeof data, "{\"reason\":\"limit\",\"limit\":\"%s\",\"value\":%lld}",
             limit_name, (long long)limit_value);
    assert_at(response, "error.data", data);
    snprintf(text, sizeof text, ": %s is %lld\"", limit_name, (long long)limit_value);
    assert_non_null(strstr(json_at(response, "error.message"), text));
}

/* ---- requests ---- */

static void two_of_one(segue_server_options *options)
{
    options->max_principal_requests = bound("max_principal_requests", 2);
}

static void two_of_all(segue_server_options *options)
{
    options->max_server_requests = bound("max_server_requests", 2);
}

/* c has one hanging request, d another; the next request is refused. */
static void fill_up(wire *c, wire *d)
{
    wire_ask(c, "1", "tools/call", HANG, NULL);
    wire_ask(d, "1", "tools/call", HANG, NULL);
}

static void requests_of_a_principal(world *w)
{
    wire *c = world_connect(w, "Ada");
    wire *d = world_connect(w, "Ada");
    wire *again = world_connect(w, "Ada");
    wire *other = world_connect(w, "Bob");
    fill_up(c, d);
    assert_refused(call(again, "2", GREET));
    if (w->place == WORLD_HTTP)
        wire_expect_status(again, 429);
    assert_greeted(call(other, "2", GREET));
    assert_int_equal(world_stat(w, "use.requests"), 2);
    assert_int_equal(world_stat(w, "use.refused"), 1);
    wire_cut(d);
    world_run(w);
    assert_greeted(call(again, "3", GREET));
}

static void requests_of_all(world *w)
{
    wire *c = world_connect(w, "Ada");
    wire *d = world_connect(w, "Bob");
    wire *other = world_connect(w, "Eve");
    fill_up(c, d);
    assert_refused(call(other, "2", GREET));
    if (w->place == WORLD_HTTP)
        wire_expect_status(other, 503);
    wire_cut(c);
    world_run(w);
    assert_greeted(call(other, "3", GREET));
}

/* ---- bytes ---- */

static void little_for_one(segue_server_options *options)
{
    options->max_principal_bytes = bound("max_principal_bytes", 10000);
}

static void little_for_all(segue_server_options *options)
{
    options->max_server_bytes = bound("max_server_bytes", 10000);
}

#define BIG "\"name\":\"big\",\"arguments\":{\"bytes\":12000}"

/* A plain call keeps its segments until it ends. Beyond the limit it fails. Other calls
 * go on, and nothing is left. */
static void bytes_end_a_plain_call(world *w)
{
    wire *c = world_connect(w, "Ada");
    const char *r = call(c, "1", BIG);
    assert_code(r, -32603);
    assert_at(r, "error.data.reason", "\"partial_results_required\"");
    assert_non_null(strstr(json_at(r, "error.data.limit"), limit_name));
    assert_at(r, "error.data.value", "10000");
    assert_greeted(call(c, "2", GREET));
    assert_int_equal(world_stat(w, "use.logBytes"), 0);
}

/* Starts a call that holds 12,000 bytes and does not end. */
static void hold_much(wire *c)
{
    char params[12000];
    int n = snprintf(params, sizeof params, HANG ",\"arguments\":{\"text\":\"");
    memset(params + n, 'x', sizeof params - (size_t)n);
    memcpy(params + sizeof params - 3, "\"}", 3);
    wire_ask(c, "1", "tools/call", params, NULL);
}

/* A call that holds many bytes keeps further requests out: those of its principal, or
 * all. */
static void bytes_keep_requests_out(world *w)
{
    wire *c = world_connect(w, "Ada");
    wire *d = world_connect(w, "Ada");
    wire *other = world_connect(w, "Bob");
    hold_much(c);
    assert_refused(call(d, "2", GREET));
    bool all =
        world_stat(w, "use.logBytes") > 0 && *json_at(call(other, "2", GREET), "error");
    (all ? assert_refused : assert_greeted)(call(other, "3", GREET));
    wire_cut(c);
    world_run(w);
    assert_greeted(call(d, "4", GREET));
    assert_greeted(call(other, "4", GREET));
}

/* Requests that poll or end a running task are still accepted. */
static void bytes_let_the_owner_in(world *w)
{
    wire *c = world_connect(w, "Ada");
    wire *d = world_connect(w, "Ada");
    const char *id = wire_make_task(d, "1", "hang", NULL, CAPS_TASKS);
    hold_much(c);
    assert_refused(call(d, "2", GREET));
    assert_at(wire_task(d, "3", "tasks/get", id, NULL), "result.status", "\"working\"");
    assert_false(*json_at(wire_task(d, "4", "tasks/cancel", id, NULL), "error"));
    wire_get_until(d, id, "cancelled", CAPS_TASKS);
}

/* Durable entries leave memory. So a task may write far more than may be held at once;
 * its producer is only slowed down. */
static void bytes_slow_a_task_down(world *w)
{
    wire *c = world_connect(w, "Ada");
    const char *id = wire_make_task(c, "1", "story", "\"n\":500,\"chunk\":100", NULL);
    const char *r = wire_get_until(c, id, "completed|failed", CAPS_TASKS);
    assert_at(r, "result.status", "\"completed\"");
}

/* ---- statistics of the server ---- */

static void stats_count(world *w)
{
    wire *c = world_connect(w, "Ada");
    assert_int_equal(world_stat(w, "operations.calls"), 0);
    call(c, "1", GREET);
    const char *id = wire_make_task(c, "2", "hang", NULL, CAPS_TASKS);
    world_run(w);
    assert_int_equal(world_stat(w, "operations.calls"), 2);
    assert_int_equal(world_stat(w, "operations.tasks"), 1);
    assert_int_equal(world_stat(w, "operations.known"), 1);
    assert_int_equal(world_stat(w, "operations.running"), 1);
    assert_true(world_stat(w, "store.commits") >= 1);
    assert_true(world_stat(w, "store.writes") >= world_stat(w, "store.commits"));
    assert_int_equal(world_stat(w, "store.failures"), 0);
    assert_true(world_stat(w, "store.commitUs.max") >=
                world_stat(w, "store.commitUs.p50"));
    if (w->store_kind == WORLD_MEMORY)
        assert_int_equal(world_stat(w, "store.operations"), 1);
    assert_int_equal(world_stat(w, "queues.commit"), 0);
    wire_task(c, "3", "tasks/cancel", id, NULL);
    world_run(w);
    assert_int_equal(world_stat(w, "operations.running"), 0);
}

/* A server purges its store, though no client ever asks for an operation. */
static void an_idle_server_purges(world *w)
{
    wire *c = world_connect(w, NULL);
    for (int i = 0; i < 3; i++) {
        const char *id = wire_make_task(c, "1", "story", "\"n\":1", CAPS_TASKS);
        wire_get_until(c, id, "completed", CAPS_TASKS);
    }
    world_restart(w);
    c = world_connect(w, NULL);
    world_jump(w, (int64_t)48 * 3600 * 1000);
    world_advance(w, 2000);
    wire_make_task(c, "2", "hang", NULL, CAPS_TASKS); /* its commit reads the figures */
    world_run(w);
    assert_int_equal(world_stat(w, "store.purged"), 3);
}

#ifdef SGI_KNOBS
/* A purge goes in steps. The steps follow each other while something is due: otherwise a
 * store grows in which more operations end than one step a second can purge. */
static void what_is_due_is_purged(world *w)
{
    sgi_threshold_values usual = sgi_thresholds;
    sgi_thresholds.memory_purge_step = 1;
    wire *c = world_connect(w, NULL);
    for (int i = 0; i < 30; i++) {
        const char *id =
            wire_make_task(c, "1", "story", "\"n\":200,\"chunk\":1", CAPS_TASKS);
        wire_get_until(c, id, "completed", CAPS_TASKS);
    }
    world_jump(w, (int64_t)48 * 3600 * 1000);
    world_advance(w, 2000);
    wire_make_task(c, "2", "hang", NULL, CAPS_TASKS); /* its commit reads the figures */
    world_run(w);
    assert_int_equal(world_stat(w, "store.purged"), 30);
    sgi_thresholds = usual;
}
#endif

static const scenario scenarios[] = {
    {"an idle server purges its store", an_idle_server_purges, ONLY_HERE | ONE_DRIVE,
     NULL},
    {"max_principal_requests holds over all connections", requests_of_a_principal,
     ONLY_HERE | ONE_DRIVE, two_of_one},
    {"max_server_requests holds for all", requests_of_all, ONLY_HERE | ONE_DRIVE,
     two_of_all},
    {"max_principal_bytes ends a plain call", bytes_end_a_plain_call,
     ONLY_HERE | ONE_DRIVE, little_for_one},
    {"max_server_bytes ends a plain call", bytes_end_a_plain_call, ONLY_HERE | ONE_DRIVE,
     little_for_all},
    {"max_principal_bytes keeps requests out", bytes_keep_requests_out,
     ONLY_HERE | ONE_DRIVE, little_for_one},
    {"max_server_bytes keeps requests out", bytes_keep_requests_out,
     ONLY_HERE | ONE_DRIVE, little_for_all},
    {"max_principal_bytes lets the owner of a task in", bytes_let_the_owner_in,
     ONLY_HERE | ONE_DRIVE, little_for_one},
    {"max_principal_bytes slows a task down", bytes_slow_a_task_down,
     ONLY_HERE | ONE_DRIVE, little_for_one},
    {"the statistics count", stats_count, ONLY_HERE | ONE_DRIVE, NULL},
#ifdef SGI_KNOBS
    {"what is due is purged", what_is_due_is_purged, ONLY_HERE | ONE_DRIVE, NULL},
#endif
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
