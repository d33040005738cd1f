/* All servers on one Redis die, and Redis dies with them. With appendfsync always nothing
 * is missing afterwards, and a new server continues each task. With everysec the last
 * second may be missing: a task that nobody can vouch for ends as failed and does not run
 * again, and a task whose server lives ends as failed exactly when it lacks something.
 * label: threads */
#include "support/cutting_proxy.h"
#include "support/fixture_job.h"
#include "support/redis_kit.h"
#include "support/world_inside.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "engine/server/server.h"

#define HOPS 12000 /* turns of 10 ms: enough for slow machines */
#define LINES 8
#define PACE_MS 300

/* A server whose process can die: nothing that it sends to Redis arrives any more. */
typedef struct mortal {
    world w;
    cutting_proxy *proxy;
} mortal;

static void serve(world *w, segue_store *store)
{
    w->place = WORLD_PAIR;
    w->slow = w->shared = 1;
    w->custom = store;
    world_begin(w);
}

static void begin(mortal *m, const redis_server *redis)
{
    cutting_options through = {.target_port = redis_server_port(redis)};
    *m = (mortal){0};
    assert_true(cutting_proxy_start(&through, &m->proxy));
    serve(&m->w, redis_kit_open_hurried(redis_kit_through(m->proxy), 1000));
}

static void die(mortal *m)
{
    assert_true(cutting_proxy_refuse(m->proxy, -1));
    cutting_proxy_cut_all(m->proxy, CUTTING_RST);
}

/* Frees what is left of a server that is dead. */
static void bury(mortal *m)
{
    world_end(&m->w);
    cutting_proxy_stop(m->proxy);
}

static redis_server *start_redis(const char *appendfsync)
{
    redis_server_options options = {.appendfsync = appendfsync};
    redis_server *redis;
    assert_true(redis_server_start(&options, &redis));
    return redis;
}

static const char *state_at(wire *c, const char *id)
{
    static int next;
    char ask[24];
    snprintf(ask, sizeof ask, "%d", 5000 + next++);
    return wire_task(c, ask, "tasks/get", id, NULL);
}

static const char *until_state(wire *c, const char *id, const char *status)
{
    const char *r = NULL;
    for (int i = 0; i < HOPS; i++) {
        r = state_at(c, id);
        if (!strcmp(json_at(r, "result.status"), status))
            return r;
        world_advance(c->w, 20);
        redis_kit_sleep_ms(10);
    }
    fail_msg("never %s: %s", status, r);
    return NULL;
}

static char *make(wire *c, const char *number)
{
    char arguments[48];
    snprintf(arguments, sizeof arguments, "\"n\":%d,\"delayMs\":%d", LINES, PACE_MS);
    return strdup(wire_make_task(c, number, "story", arguments, NULL));
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
}

/* Two servers with one task each die, and Redis with them. Returns their tasks. */
static void all_die(redis_server *redis, char *ids[2])
{
    mortal dead[2];
    for (int i = 0; i < 2; i++) {
        begin(&dead[i], redis);
        dead[i].w.chance += (uint64_t)i; /* the ids of its tasks are its own */
        ids[i] = make(world_connect(&dead[i].w, "Ada"), "1");
        world_advance(&dead[i].w, PACE_MS * 3);
    }
    /* Redis keeps the bytes in memory while an earlier sync of its file is under way. */
    redis_kit_until(redis_server_info(redis, "aof_buffer_length") == 0);
    for (int i = 0; i < 2; i++)
        die(&dead[i]);
    redis_server_signal(redis, SIGKILL);
    for (int i = 0; i < 2; i++)
        bury(&dead[i]);
    assert_true(redis_server_again(redis));
}

static void what_is_synced_goes_on(void **state)
{
    (void)state;
    redis_server *redis = start_redis("always");
    world heir = {0};
    char *ids[2];
    all_die(redis, ids);
    serve(&heir, redis_kit_open(redis_server_url(redis)));
    wire *c = world_connect(&heir, "Ada");
    for (int i = 0; i < 2; i++)
        must_be_story(until_state(c, ids[i], "\"completed\""));
    assert_int_equal(world_runs(&heir, "story"), 2);
    assert_int_equal(heir.server->counts.taken_over, 2);
    for (int i = 0; i < 2; i++)
        free(ids[i]);
    world_end(&heir);
    redis_server_stop(redis);
}

static void what_may_be_missing_ends_and_says_so(void **state)
{
    (void)state;
    redis_server *redis = start_redis("everysec");
    world heir = {0};
    char *ids[2];
    all_die(redis, ids);
    serve(&heir, redis_kit_open(redis_server_url(redis)));
    wire *c = world_connect(&heir, "Ada");
    for (int i = 0; i < 2; i++) {
        const char *r = until_state(c, ids[i], "\"failed\"");
        assert_at(r, "result.error.code", "-32603");
        assert_at(r, "result.error.message",
                  "\"The store has lost the end of the operation's log\"");
        assert_at(r, "result.error.data.reason", "\"store_torn\"");
        free(ids[i]);
    }
    assert_int_equal(world_runs(&heir, "story"), 0);
    world_end(&heir);
    redis_server_stop(redis);
}

/* ---- the servers live, Redis dies with its machine ---- */

/* Finds the file to which Redis appends. */
static void find_log(const redis_server *redis, char *path, size_t size)
{
    char directory[80];
    snprintf(directory, sizeof directory, "%s/appendonlydir",
             redis_server_directory(redis));
    DIR *list = opendir(directory);
    bool found = false;
    assert_non_null(list);
    for (struct dirent *entry; !found && (entry = readdir(list));) {
        found = strstr(entry->d_name, ".incr.") != NULL;
        snprintf(path, size, "%s/%s", directory, entry->d_name);
    }
    closedir(list);
    assert_true(found);
}

static off_t size_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_size;
}

/* Power fails before the last second is synced: the file has its older length again. */
static void what_was_lost_in_the_last_second_is_told(void **state)
{
    (void)state;
    redis_server *redis = start_redis("everysec");
    world w = {0};
    char path[400];
    serve(&w, redis_kit_open_lasting(redis_server_url(redis)));
    wire *c = world_connect(&w, "Ada");
    char *lossy = make(c, "1");
    char *whole = strdup(wire_make_task(c, "2", "slow_compute", "\"ms\":9000", NULL));
    world_advance(&w, PACE_MS * 2);
    redis_kit_until(redis_server_info(redis, "aof_buffer_length") == 0);
    find_log(redis, path, sizeof path);
    off_t synced = size_of(path);
    char *unknown = make(c, "3");
    world_advance(&w, PACE_MS * 2);
    redis_kit_until(redis_server_info(redis, "aof_buffer_length") == 0);
    redis_server_signal(redis, SIGKILL);
    assert_true(size_of(path) > synced);
    assert_int_equal(truncate(path, synced), 0);
    assert_true(redis_server_again(redis));
    const char *r = until_state(c, lossy, "\"failed\"");
    assert_at(r, "result.error.code", "-32603");
    until_state(c, unknown, "\"failed\"");
    world_advance(&w, 9000);
    until_state(c, whole, "\"completed\"");
    assert_int_equal(world_runs(&w, "story"), 2); /* neither ran again */
    free(lossy);
    free(whole);
    free(unknown);
    world_end(&w);
    redis_server_stop(redis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_synced_goes_on),
        cmocka_unit_test(what_may_be_missing_ends_and_says_so),
        cmocka_unit_test(what_was_lost_in_the_last_second_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
