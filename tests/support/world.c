/* The server of the stage, its store and its clock. */
#include "support/model_fixtures.h"
#include "support/scratch.h"
#include "support/world_inside.h"

#include "runtime/store_queue.h"
#include "store/store.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <setjmp.h>
// clang-format off
#include <cmocka.h>
// clang-format on

/* ---- clock and chance ---- */

static int64_t fake_now(void *user)
{
    return ((world *)user)->clock_ms;
}

static int64_t fake_wall(void *user)
{
    const world *w = user;
    return WORLD_EPOCH + w->clock_ms + w->wrong_ms;
}

uint32_t world_chance(world *w, uint32_t n)
{
    w->chance ^= w->chance << 13;
    w->chance ^= w->chance >> 7;
    w->chance ^= w->chance << 17;
    return n ? (uint32_t)(w->chance >> 16) % n : 0;
}

static int32_t fake_random(void *user, void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)world_chance(user, 256);
    return 0;
}

int64_t world_real_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- a runtime in this process ---- */

int world_is_here(const world *w)
{
    return w->place != WORLD_STDIO;
}

static void count_errors(void *user, int32_t level, const char *text)
{
    world *w = user;
    if (getenv("SEGUE_TEST_LOG"))
        fprintf(stderr, "[%d] %s\n", (int)level, text);
    w->warn_count += level == SEGUE_LOG_WARNING;
    if (level == SEGUE_LOG_INFO) {
        w->info_count++;
        snprintf(w->last_info, sizeof w->last_info, "%s", text);
    }
    if (level >= SEGUE_LOG_ERROR)
        w->log_count++;
}

static segue_status say_principal(void *user, segue_transport *transport,
                                  const char **principal)
{
    world *w = user;
    if (w->place == WORLD_HTTP)
        *principal = segue_transport_header(transport, "X-Principal");
    else
        for (wire *c = w->wires; c; c = c->next)
            if (!c->detached && c->transport == transport)
                *principal = c->principal;
    return SEGUE_OK;
}

segue_status world_open_sqlite(const char *path, segue_store **out, segue_error **error)
{
    segue_store_options options = SEGUE_STORE_OPTIONS_INIT;
    options.busy_timeout_ms = WAIT_MS;
    return segue_store_sqlite(path, &options, out, error);
}

static void open_store(world *w)
{
    segue_error *error = NULL;
    if (w->custom) {
        w->store = w->custom;
    } else if (w->store_kind == WORLD_SQLITE) {
        if (world_open_sqlite(w->path, &w->store, &error) != SEGUE_OK)
            fail_msg("store: %s", segue_error_read(error)->message);
    } else if (!w->store) {
        assert_int_equal(segue_store_memory(NULL, &w->store), SEGUE_OK);
    }
}

static void listen_there(world *w)
{
    segue_listen_options options = SEGUE_LISTEN_OPTIONS_INIT;
    segue_listener *listener = NULL;
    segue_error *error = NULL;
    char address[160];
    snprintf(address, sizeof address, "unix:%s.sock", w->path);
    options.address = address;
    if (segue_server_listen(w->server, &options, &listener, &error) != SEGUE_OK)
        fail_msg("listening: %s", segue_error_read(error)->message);
    segue_listener_free(listener); /* frees only the handle; the server continues to
                                    * listen */
}

static void start_server(world *w)
{
    segue_runtime_options options = SEGUE_RUNTIME_OPTIONS_INIT;
    segue_server_options server = SEGUE_SERVER_OPTIONS_INIT;
    segue_hooks hooks = SEGUE_HOOKS_INIT;
    hooks.user = w;
    hooks.monotonic_ms = fake_now;
    hooks.wall_ms = fake_wall;
    hooks.random = fake_random;
    options.allocator = &w->mem.mem;
    options.user = w;
    options.log = count_errors;
    options.hooks = &hooks;
    assert_int_equal(segue_runtime_new(&options, &w->runtime, NULL), SEGUE_OK);
    open_store(w);
    server.name = "fixtures";
    server.version = "1";
    server.store = w->store;
    server.user = w;
    server.principal = say_principal;
    if (w->tune)
        w->tune(&server);
    assert_int_equal(segue_server_new(w->runtime, &server, &w->server, NULL), SEGUE_OK);
    w->fixtures = fixtures_new(fake_now, w);
    assert_int_equal(fixtures_add(w->fixtures, w->runtime, w->server), SEGUE_OK);
    assert_int_equal(item_fixtures_add(w->runtime, w->server), SEGUE_OK);
    if (w->furnish)
        w->furnish(w);
    if (server.question_ttl_ms)
        assert_int_equal(model_tools_add(w->runtime, w->server), SEGUE_OK);
    if (w->place == WORLD_HTTP)
        listen_there(w);
}

int world_is_slow(const world *w)
{
    return w->slow || (w->store_kind == WORLD_SQLITE && !w->custom);
}

static int look_at_wires(world *w)
{
    int any = 0;
    for (wire *c = w->wires; c; c = c->next)
        any |= c->ops->look(c);
    return any;
}

/* Runs turns until nothing happens. Over HTTP a request takes invisible turns of the
 * loop: it is accepted, read, authenticated, served and written. */
static int run_turn(world *w, int wait_ms)
{
    int32_t ran = 0;
    if (!w || !w->runtime)
        return 0;
    fixtures_tick(w->fixtures);
    segue_runtime_dispatch(w->runtime, world_is_slow(w) ? wait_ms : 0, 0, &ran);
    return ran | look_at_wires(w);
}

/* Polls the change feed of a store now, if the store's change feed is polled from time to
 * time. */
static void ask_for_news(segue_runtime *rt)
{
    sgi_store_slot *slot;
    sgi_store_queue *queue;
    TAILQ_FOREACH(slot, &rt->stores.slots, link) {
        TAILQ_FOREACH(queue, &slot->queues, link)
            if (queue->news_ms != INT64_MAX)
                queue->news_ms = 0;
        if (slot->blocking)
            sgi_store_slot_mark_due_polls(slot);
    }
}

/* Waits until the thread of the world's store has nothing to do. */
static void settle_store(world *w)
{
    if (!w || !w->runtime || !world_is_slow(w))
        return;
    sgi_runtime_lock(w->runtime);
    if (w->shared)
        ask_for_news(w->runtime);
    sgi_stores_wait_idle(w->runtime);
    sgi_runtime_unlock(w->runtime);
}

void world_run(world *w)
{
    int ran = 1;
    int turns = w->place == WORLD_HTTP ? 7 : w->beside ? 6 : 3;
    if (!world_is_here(w))
        return;
    for (int idle = 0; idle < turns; idle = ran ? 0 : idle + 1) {
        /* A store notices the death of another owner in real time. */
        int wait_ms = w->shared && !w->beside && idle >= turns - 3 ? 4 : 0;
        if (!wait_ms) {
            settle_store(w);
            settle_store(w->beside);
        }
        ran = run_turn(w, wait_ms);
        ran |= run_turn(w->beside, wait_ms);
    }
}

static int64_t tick(world *w)
{
    return w->runtime ? fixtures_tick(w->fixtures) : -1;
}

static void move_clock(world *w, int64_t ms)
{
    w->clock_ms += ms;
    if (w->beside)
        w->beside->clock_ms = w->clock_ms;
}

void world_advance(world *w, int64_t ms)
{
    int64_t end = w->clock_ms + ms;
    if (!world_is_here(w))
        return;
    while (w->clock_ms < end) {
        int64_t step = end - w->clock_ms;
        int64_t next = tick(w);
        if (next >= 0 && next < step)
            step = next < 1 ? 1 : next;
        if (step > 50)
            step = 50;
        move_clock(w, step);
        world_run(w);
    }
}

void world_jump(world *w, int64_t ms)
{
    move_clock(w, ms);
    world_run(w);
}

static void stop_server(world *w)
{
    if (!w->runtime)
        return;
    for (wire *c = w->wires; c; c = c->next)
        c->ops->lose(c);
    segue_server_free(w->server);
    /* Running handlers receive the cancellation and free their calls. */
    segue_runtime_free(w->runtime);
    w->server = NULL;
    w->runtime = NULL;
    for (wire *c = w->wires; c; c = c->next)
        c->ops->lose(c);
    fixtures_tick(w->fixtures);
    fixtures_free(w->fixtures);
    if (w->store_kind == WORLD_SQLITE && !w->custom) {
        segue_store_free(w->store);
        w->store = NULL;
    }
}

/* A store on a thread of its own opens in real time, and calls wait until it is open. The
 * clock of the test must stand still until then. */
static void await_recovery(world *w)
{
    if (!world_is_slow(w))
        return;
    wire *c = world_connect(w, NULL);
    wire_do(c, "0", "server/discover", NULL, NULL);
    wire_cut(c);
}

int world_takes_keys(const world *w)
{
    return w->place != WORLD_STDIO || w->store_kind != WORLD_MEMORY;
}

const char *world_lasting(const world *w, int ms)
{
    static char argument[32];
    snprintf(argument, sizeof argument, "\"ms\":%d", world_is_here(w) ? ms : 3000);
    return argument;
}

int world_runs(const world *w, const char *tool)
{
    return fixtures_runs(w->fixtures, tool);
}

/* ---- the stage ---- */

void world_begin(world *w)
{
    if (!w->chance)
        w->chance = 0x9e3779b97f4a7c15u;
    if (!*w->path)
        scratch_name(w->path, sizeof w->path, "/tmp/segue-world");
    w->clock_ms = 1000;
    test_mem_init(&w->mem);
    if (world_is_here(w)) {
        start_server(w);
        await_recovery(w);
    }
}

/* The path names the socket of the wires, so each world has a path of its own. */
void world_begin_beside(world *w, world *other)
{
    other->place = w->place;
    other->drive = w->drive;
    other->tune = other->tune ? other->tune : w->tune;
    other->chance = w->chance + 77;
    if (other->custom) {
        /* The test has opened a separate handle for this world. */
    } else if (world_is_slow(w) && !w->custom) {
        assert_int_equal(world_open_sqlite(w->path, &other->custom, NULL), SEGUE_OK);
        other->slow = 1;
    } else {
        sgi_store_ref(w->store);
        other->custom = w->store;
    }
    world_begin(other);
    other->clock_ms = w->clock_ms;
    w->beside = other;
    other->beside = w;
    w->shared = other->shared = 1;
    world_run(w);
}

void world_stop(world *w)
{
    stop_server(w);
}

void world_end(world *w)
{
    if (world_is_here(w))
        stop_server(w);
    if (w->beside)
        w->beside->beside = NULL;
    while (w->wires) {
        wire *c = w->wires;
        w->wires = c->next;
        c->ops->lose(c);
        wire_free(c);
    }
    segue_store_free(w->store);
    scratch_clear(w->path);
    if (world_is_here(w))
        assert_int_equal(w->mem.live, 0);
}

void world_restart(world *w)
{
    if (world_is_here(w)) {
        stop_server(w);
        if (w->between)
            w->between(w);
        w->dead = 0;
        start_server(w);
        await_recovery(w);
        return;
    }
    for (wire *c = w->wires; c; c = c->next)
        c->ops->lose(c);
}

long world_stat(const world *w, const char *path)
{
    size_t len = 0, room;
    assert_int_equal(segue_server_stats(w->server, NULL, &len), SEGUE_OK);
    char *text = malloc(len + 1);
    room = len;
    assert_int_equal(segue_server_stats(w->server, text, &room), SEGUE_E_TOO_SMALL);
    room = len + 1;
    assert_int_equal(segue_server_stats(w->server, text, &room), SEGUE_OK);
    assert_int_equal(strlen(text), room);
    const char *value = json_at(text, path);
    if (!*value)
        fail_msg("no %s in %s", path, text);
    long number = strtol(value, NULL, 10);
    free(text);
    return number;
}
