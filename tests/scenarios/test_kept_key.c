/* The key of a server to which the application gave none: a store that survives keeps it,
 * so that the next server, and each other server on the store, continues the sessions of
 * 2025-11-25. What the sessions list is in test_tasks_2025_list_session.c. */
#include "support/fault_store.h"
#include "support/legacy_wire.h"
#include "support/scratch.h"
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
#include "store/store.h"

#define SESSION_SIZE 256
#define PLAIN_SESSION 22 /* the length of a session id that names nothing */
#define NAME "dev.segue/seal-key"

static fault_store *faults;

static void with_faults(world *w)
{
    scratch_name(w->path, sizeof w->path, "/tmp/segue-key");
    faults = fault_store_new(w->store_kind == WORLD_SQLITE ? w->path : NULL, &w->custom);
}

static void with_a_store_that_refuses(world *w)
{
    with_faults(w);
    fault_store_refuse_key(faults, 2);
}

static void with_a_record_of_others(world *w)
{
    segue_store_record record = {.id = {7},
                                 .task_id = NAME,
                                 .purge_ms = INT64_MAX,
                                 .data = "{\"params\":{\"key\":\"short\"}}",
                                 .data_len = 25};
    const segue_store_write writes[] = {
        {.kind = SEGUE_STORE_CREATE, .id = {7}, .record = &record},
        {.kind = SEGUE_STORE_END, .id = {7}, .purge_ms = INT64_MAX},
    };
    with_faults(w);
    assert_int_equal(sgi_store_commit(w->custom, writes, 2), SEGUE_OK);
}

static void two_per_page(segue_server_options *options)
{
    options->page_size = 2;
}

static void ping(wire *c)
{
    assert_at(wire_do_plain(c, "\"ping\"", "ping", NULL), "result", "{}");
}

static int continues(world *w, const char *session)
{
    wire *c = legacy_connect(w, NULL, NULL);
    free(c->session);
    c->session = strdup(session);
    wire_ask_plain(c, "\"ping\"", "ping", NULL);
    world_run(w);
    return c->status != 404;
}

static void a_session_survives_a_restart(world *w)
{
    char session[SESSION_SIZE];
    wire *a = legacy_connect(w, NULL, NULL);
    snprintf(session, sizeof session, "%s", a->session);
    assert_true(w->server->seal.kept);
    world_restart(w);
    assert_true(continues(w, session));
    assert_int_equal(w->warn_count, 0);
}

/* Of two servers that start at the same time, the first one stores its key. The other one
 * has looked before that. */
static void the_first_key_counts(world *w)
{
    char session[SESSION_SIZE];
    snprintf(session, sizeof session, "%s", legacy_connect(w, NULL, NULL)->session);
    fault_store_hide_key(faults);
    world_restart(w);
    assert_true(continues(w, session));
    assert_true(w->server->seal.kept);
    assert_int_equal(w->server->seal.count, 2); /* its own key was another one */
}

static void a_store_that_refuses_is_asked_again(world *w)
{
    char before[SESSION_SIZE], after[SESSION_SIZE], cursor[200];
    wire *a = legacy_connect(w, NULL, NULL);
    assert_int_equal(w->warn_count, 1);
    assert_int_equal(strlen(a->session), PLAIN_SESSION);
    snprintf(before, sizeof before, "%s", a->session);
    const char *page = wire_do_plain(a, "1", "tools/list", NULL);
    snprintf(cursor, sizeof cursor, "\"cursor\":%s", json_at(page, "result.nextCursor"));
    world_advance(w, 1000);
    assert_false(w->server->seal.kept);
    assert_int_equal(w->warn_count, 1);
    world_advance(w, 1000);
    assert_true(w->server->seal.kept);
    /* what it sealed before is still good */
    assert_at(wire_do_plain(a, "2", "tools/list", cursor), "error", "");
    snprintf(after, sizeof after, "%s", legacy_connect(w, NULL, NULL)->session);
    world_restart(w);
    assert_true(continues(w, after));
    assert_false(continues(w, before));
}

static void a_record_of_others_is_left_alone(world *w)
{
    wire *a = legacy_connect(w, NULL, NULL);
    assert_int_equal(w->warn_count, 1);
    assert_int_equal(strlen(a->session), PLAIN_SESSION);
    world_advance(w, 10000);
    assert_false(w->server->seal.kept);
    assert_int_equal(w->warn_count, 1);
    ping(a);
}

static const scenario usual[] = {
    {"a session survives a restart", a_session_survives_a_restart,
     ONLY_HTTP | ONLY_HERE | ONE_DRIVE, NULL},
    {"the key that is stored first counts", the_first_key_counts,
     ONLY_HTTP | ONLY_HERE | ONE_DRIVE, NULL},
};
static const scenario refused[] = {
    {"a store that refuses the key is asked again", a_store_that_refuses_is_asked_again,
     ONLY_HTTP | ONLY_HERE | ONE_DRIVE, two_per_page},
};
static const scenario foreign[] = {
    {"a record that is no key is left alone", a_record_of_others_is_left_alone,
     ONLY_HTTP | ONLY_HERE | ONE_DRIVE, NULL},
};

int main(void)
{
    int failures = scenarios_run_prepared(usual, 2, with_faults);
    failures += scenarios_run_prepared(refused, 1, with_a_store_that_refuses);
    return failures + scenarios_run_prepared(foreign, 1, with_a_record_of_others);
}
