/* A call with an idempotency key goes on when its connection closes. Its client
 * withdraws it by that key, whatever has become of it: the call ends, also as a task,
 * at another server, or before it has arrived (2026-07-28 basic/patterns/cancellation,
 * R-2557-11). */
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

#include "engine/server/server.h"

#define KEY "0123456789abcdef"
#define HANG "\"name\":\"hang_plain\",\"arguments\":{}"
#define HANG_TASK "\"name\":\"hang\",\"arguments\":{}"
#define HOPS 400 /* turns of both servers before a test gives up */

static world other; /* another server on the same store */

static void ask(wire *c, const char *id, const char *params, const char *key,
                const char *caps)
{
    char *line = wire_line(id, "tools/call", params, caps);
    char *meta = strstr(line, "\"_meta\":{") + 9;
    char *keyed = malloc(strlen(line) + strlen(key) + 64);
    sprintf(keyed, "%.*s\"dev.segue/idempotencyKey\":\"%s\",%s", (int)(meta - line), line,
            key, meta);
    wire_send(c, keyed);
    free(keyed);
    free(line);
}

static void withdraw(wire *c, const char *key)
{
    char params[256];
    snprintf(params, sizeof params,
             "\"requestId\":99,\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
             "\"2026-07-28\",\"dev.segue/idempotencyKey\":\"%s\"}",
             key);
    wire_notify(c, "notifications/cancelled", params);
}

/* In a session, a message does not say its version. */
static void withdraw_in_session(wire *c, const char *key)
{
    char params[160];
    snprintf(params, sizeof params,
             "\"requestId\":99,\"_meta\":{\"dev.segue/idempotencyKey\":\"%s\"}", key);
    wire_notify(c, "notifications/cancelled", params);
}

static int is_at_work(const world *w)
{
    return fixtures_jobs(w->fixtures) > 0;
}

static void until_idle(world *w)
{
    for (int i = 0; i < HOPS && is_at_work(w); i++)
        world_advance(w, 10);
    assert_false(is_at_work(w));
}

static void a_call_that_was_left_is_cancelled(world *w)
{
    wire *c = world_connect(w, NULL);
    wire *again = world_connect(w, NULL);
    ask(c, "1", HANG, KEY, NULL);
    world_run(w);
    wire_cut(c);
    world_advance(w, 1000);
    assert_true(is_at_work(w)); /* the client might come again */
    withdraw(again, KEY);
    until_idle(w);
    ask(again, "2", HANG, KEY, NULL);
    assert_at(wire_response(again, "2"), "error.message",
              "\"The operation was cancelled\"");
    assert_int_equal(world_runs(w, "hang_plain"), 1);
}

static void no_more_searches_than_allowed(world *w, wire *c,
                                          void (*leave)(wire *c, const char *key))
{
    size_t max = SGI_THRESHOLD(withdrawn_searches);
    w->server->withdrawn.searches += max;
    leave(c, "key-of-no-call-0001");
    if (w->place == WORLD_HTTP)
        wire_expect_status(c, 503);
    else
        assert_int_equal(w->warn_count, 1);
    w->server->withdrawn.searches -= max;
    leave(c, "key-of-no-call-0001");
    world_run(w);
    if (w->place == WORLD_HTTP)
        wire_expect_status(c, 202);
    assert_int_equal(w->server->withdrawn.searches, 0);
}

/* Clients can withdraw calls that do not exist. The server looks up some at a time, and
 * refuses more. */
static void searches_are_bounded(world *w)
{
    wire *c = world_connect(w, NULL);
    no_more_searches_than_allowed(w, c, withdraw);
    ask(c, "1", HANG_TASK, "key-of-no-call-0001", CAPS_TASKS);
    assert_at(wire_response(c, "1"), "error.message", "\"The request was cancelled\"");
}

static void searches_are_bounded_in_a_session(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    no_more_searches_than_allowed(w, c, withdraw_in_session);
}

/* A client whose answer was lost does not know the task's id. */
static void a_task_is_cancelled(world *w)
{
    char id[160];
    wire *c = world_connect(w, NULL);
    ask(c, "1", HANG_TASK, KEY, CAPS_TASKS);
    const char *quoted = json_at(wire_response(c, "1"), "result.taskId");
    snprintf(id, sizeof id, "%.*s", (int)strlen(quoted) - 2, quoted + 1);
    withdraw(c, KEY);
    until_idle(w);
    wire_get_until(c, id, "cancelled", CAPS_TASKS);
}

static void a_call_that_comes_later_does_not_begin(world *w)
{
    wire *c = world_connect(w, NULL);
    withdraw(c, KEY);
    world_run(w);
    ask(c, "1", HANG, KEY, NULL);
    assert_at(wire_response(c, "1"), "error.message", "\"The request was cancelled\"");
    assert_int_equal(world_runs(w, "hang_plain"), 0);
}

static void the_oldest_key_makes_room(world *w)
{
    char key[32];
    wire *c = world_connect(w, NULL);
    for (size_t i = 0; i <= SGI_WITHDRAWN_MAX; i++) {
        snprintf(key, sizeof key, "a key of a call %zu", i);
        withdraw(c, key);
    }
    world_run(w);
    ask(c, "1", HANG, "a key of a call 1", NULL);
    assert_code(wire_response(c, "1"), -32603);
    ask(c, "2", HANG, "a key of a call 0", NULL);
    world_run(w);
    assert_true(is_at_work(w));
}

static void a_key_of_somebody_else_cancels_nothing(world *w)
{
    wire *c = world_connect(w, "Ada");
    wire *bob = world_connect(w, "Bob");
    ask(c, "1", HANG, KEY, NULL);
    world_run(w);
    withdraw(bob, KEY);
    withdraw(c, "another key of hers");
    withdraw(c, "short");
    world_advance(w, 1000);
    assert_true(is_at_work(w));
}

static void another_server_passes_it_on(world *w)
{
    other = (world){.tune = w->tune};
    world_begin_beside(w, &other);
    wire *c = world_connect(w, NULL);
    wire *there = world_connect(&other, NULL);
    ask(c, "1", HANG, KEY, NULL);
    world_run(w);
    wire_cut(c);
    withdraw(there, KEY);
    for (int i = 0; i < HOPS && is_at_work(w); i++) {
        world_advance(&other, 10);
        world_advance(w, 10);
    }
    assert_false(is_at_work(w));
    world_end(&other);
}

/* The withdrawal reaches another server before the call reaches its own. */
static void another_server_looks_again(world *w)
{
    other = (world){.tune = w->tune};
    world_begin_beside(w, &other);
    wire *c = world_connect(w, NULL);
    wire *there = world_connect(&other, NULL);
    ask(c, "0", HANG, "a key of another call", NULL);
    world_run(w);
    withdraw(there, KEY); /* not found yet */
    withdraw(there, "a key of another call");
    world_run(&other);
    ask(c, "1", HANG, KEY, NULL);
    world_run(w);
    assert_true(is_at_work(w));
    wire_cut(c);
    for (int i = 0; i < HOPS && is_at_work(w); i++) {
        world_advance(&other, 10);
        world_advance(w, 10);
    }
    assert_false(is_at_work(w));
    world_end(&other);
}

/* A call that never comes is looked for a few times, not for ever. */
static void it_looks_a_few_times(world *w)
{
    wire *c = world_connect(w, NULL);
    withdraw(c, KEY);
    world_run(w);
    for (int i = 0; i < SGI_THRESHOLD(withdrawn_looks); i++) {
        assert_int_equal(w->server->withdrawn.waiting_count, 1);
        world_advance(w, SGI_THRESHOLD(withdrawn_again_ms) << i);
    }
    assert_int_equal(w->server->withdrawn.waiting_count, 0);
    assert_int_equal(w->server->withdrawn.searches, 0);
    for (size_t i = 0; i <= SGI_WITHDRAWN_MAX; i++) {
        char key[32];
        snprintf(key, sizeof key, "a key of a call %zu", i);
        withdraw(c, key);
        world_run(w);
    }
    assert_int_equal(w->server->withdrawn.waiting_count, SGI_WITHDRAWN_MAX);
}

int main(void)
{
    static const scenario all[] = {
        {"R-2557-11 a call with a key that was left is cancelled by its key",
         a_call_that_was_left_is_cancelled, ONLY_HERE | ONE_DRIVE, NULL},
        {"R-2557-11 searches for withdrawn calls are bounded", searches_are_bounded,
         ONLY_HERE | ONE_DRIVE, NULL},
        {"R-2557-11 searches for withdrawn calls are bounded in a session",
         searches_are_bounded_in_a_session, ONLY_HERE | ONE_DRIVE, NULL},
        {"R-2557-38 a call that has become a task is cancelled by its key",
         a_task_is_cancelled, ONLY_HERE | ONE_DRIVE, NULL},
        {"R-2557-38 a call that comes after it was withdrawn does not begin",
         a_call_that_comes_later_does_not_begin, ONLY_HERE | ONE_DRIVE, NULL},
        {"C-12 keys of calls that never came have a bound", the_oldest_key_makes_room,
         ONLY_HERE | ONE_DRIVE, NULL},
        {"R-2557-52 a key of somebody else cancels nothing",
         a_key_of_somebody_else_cancels_nothing, ONLY_HERE | ONE_DRIVE, NULL},
        {"R-2557-11 another server passes it on", another_server_passes_it_on,
         ONLY_HERE | ONLY_SQLITE | ONE_DRIVE, NULL},
        {"R-2557-11 another server looks again for a call that comes late",
         another_server_looks_again, ONLY_HERE | ONLY_SQLITE | ONE_DRIVE, NULL},
        {"R-2557-11 a server looks a few times for a call that never comes",
         it_looks_a_few_times, ONLY_HERE | ONE_DRIVE, NULL},
    };
    return scenarios_run(all, sizeof all / sizeof *all);
}
