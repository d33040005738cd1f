/* tasks/list of 2025-11-25 over HTTP at a server that does not know the names of its
 * callers: a session lists the tasks that it made, also after a restart of the server,
 * and at each server with the same key. */
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

#define SESSION_SIZE 256

static const uint8_t key_of_service[32] = {3, 1, 4, 1, 5, 9};

static void without_names(segue_server_options *options)
{
    options->principal = NULL;
}

static void of_a_service(segue_server_options *options)
{
    without_names(options);
    options->seal_key = key_of_service;
    options->seal_key_len = sizeof key_of_service;
}

static segue_status name_nobody(void *user, segue_transport *transport, const char **name)
{
    (void)user;
    (void)transport;
    *name = "";
    return SEGUE_OK;
}

static void of_anonymous_callers(segue_server_options *options)
{
    options->principal = name_nobody;
}

static void one_per_page(segue_server_options *options)
{
    of_a_service(options);
    options->page_size = 1;
}

static const char *list(wire *c, const char *cursor)
{
    char params[512];
    snprintf(params, sizeof params, "\"cursor\":%s", cursor ? cursor : "");
    return wire_do_plain(c, "\"list\"", "tasks/list", cursor ? params : NULL);
}

static void assert_task(const char *page, int i, const char *id)
{
    char path[64], quoted[80] = "";
    snprintf(path, sizeof path, "result.tasks.%d.taskId", i);
    if (id)
        snprintf(quoted, sizeof quoted, "\"%s\"", id);
    assert_at(page, path, quoted);
}

/* Opens another connection of a client that has this session. */
static wire *join(world *w, const char *session)
{
    wire *c = legacy_connect(w, NULL, NULL);
    free(c->session);
    c->session = strdup(session);
    return c;
}

static void is_declared(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r = legacy_hello(c, "2025-11-25", NULL);
    assert_at(r, "result.capabilities.tasks.list", "{}");
    wire_notify(c, "notifications/initialized", NULL);
    assert_at(list(c, NULL), "result", "{\"tasks\":[]}");
}

static void to_each_session_its_own(world *w)
{
    wire *a = legacy_connect(w, NULL, NULL);
    wire *b = legacy_connect(w, NULL, NULL);
    const char *first = legacy_make_task(a, "1", "hang", NULL, NULL);
    world_jump(w, 1);
    const char *of_b = legacy_make_task(b, "1", "hang", NULL, NULL);
    world_jump(w, 1);
    const char *ended = legacy_make_task(a, "2", "fields", NULL, NULL);
    legacy_get_until(a, ended, "completed");
    const char *r = list(a, NULL);
    assert_task(r, 0, ended);
    assert_task(r, 1, first);
    assert_task(r, 2, NULL);
    r = list(b, NULL);
    assert_task(r, 0, of_b);
    assert_task(r, 1, NULL);
    assert_at(list(legacy_connect(w, NULL, NULL), NULL), "result", "{\"tasks\":[]}");
    /* an ended task leaves memory, and is then read in the store */
    world_jump(w, 31000);
    r = list(a, NULL);
    assert_task(r, 0, ended);
    assert_task(r, 1, first);
    assert_at(list(b, NULL), "result.tasks.1", "");
}

static void the_session_survives_a_restart(world *w)
{
    char session[SESSION_SIZE], of_other[SESSION_SIZE];
    wire *a = legacy_connect(w, NULL, NULL);
    wire *b = legacy_connect(w, NULL, NULL);
    const char *first = legacy_make_task(a, "1", "fields", NULL, NULL);
    legacy_get_until(a, first, "completed");
    const char *of_b = legacy_make_task(b, "1", "fields", NULL, NULL);
    legacy_get_until(b, of_b, "completed");
    snprintf(session, sizeof session, "%s", a->session);
    snprintf(of_other, sizeof of_other, "%s", b->session);
    world_restart(w);
    a = join(w, session);
    const char *r = list(a, NULL);
    assert_task(r, 0, first);
    assert_task(r, 1, NULL);
    world_jump(w, 1);
    const char *second = legacy_make_task(a, "2", "hang", NULL, NULL);
    r = list(a, NULL);
    assert_task(r, 0, second);
    assert_task(r, 1, first);
    r = list(join(w, of_other), NULL);
    assert_task(r, 0, of_b);
    assert_task(r, 1, NULL);
    assert_at(list(legacy_connect(w, NULL, NULL), NULL), "result", "{\"tasks\":[]}");
    /* who has the id of a task can still use it */
    assert_at(legacy_task(join(w, of_other), "3", "tasks/get", first, NULL),
              "result.status", "\"completed\"");
}

static void another_server_lists_them_too(world *w)
{
    world other = {.tune = w->tune};
    world_begin_beside(w, &other);
    wire *a = legacy_connect(w, NULL, NULL);
    const char *id = legacy_make_task(a, "1", "hang", NULL, NULL);
    wire *b = join(&other, a->session);
    wire *stranger = legacy_connect(&other, NULL, NULL);
    assert_task(list(b, NULL), 0, id);
    assert_at(list(stranger, NULL), "result", "{\"tasks\":[]}");
    world_end(&other);
}

static void a_cursor_belongs_to_its_session(world *w)
{
    char cursor[256];
    wire *a = legacy_connect(w, NULL, NULL);
    wire *b = legacy_connect(w, NULL, NULL);
    const char *first = legacy_make_task(a, "1", "hang", NULL, NULL);
    world_jump(w, 1);
    legacy_make_task(b, "1", "hang", NULL, NULL);
    world_jump(w, 1);
    const char *second = legacy_make_task(a, "2", "hang", NULL, NULL);
    const char *r = list(a, NULL);
    assert_task(r, 0, second);
    assert_task(r, 1, NULL);
    snprintf(cursor, sizeof cursor, "%s", json_at(r, "result.nextCursor"));
    assert_code(list(b, cursor), -32602);
    r = list(a, cursor);
    assert_task(r, 0, first);
    assert_at(r, "result.nextCursor", "");
}

static const scenario scenarios[] = {
    {"tasks/list is declared in a session", is_declared,
     ONLY_HTTP | ONLY_HERE | ONE_DRIVE, without_names},
    {"tasks/list shows to each session its own", to_each_session_its_own,
     ONLY_HTTP | ONLY_HERE | ONE_DRIVE, without_names},
    {"tasks/list shows to each session its own, and all callers are anonymous",
     to_each_session_its_own, ONLY_HTTP | ONLY_HERE | ONE_DRIVE, of_anonymous_callers},
    {"tasks/list of a session survives a restart", the_session_survives_a_restart,
     ONLY_HTTP | ONLY_HERE | ONLY_SQLITE | ONE_DRIVE, of_a_service},
    {"tasks/list of a session survives a restart, and the store keeps the key",
     the_session_survives_a_restart, ONLY_HTTP | ONLY_HERE | ONLY_SQLITE | ONE_DRIVE,
     without_names},
    {"tasks/list of a session is the same at another server, and the store keeps the key",
     another_server_lists_them_too, ONLY_HTTP | ONLY_HERE | ONLY_SQLITE | ONE_DRIVE,
     without_names},
    {"tasks/list of a session is the same at another server",
     another_server_lists_them_too, ONLY_HTTP | ONLY_HERE | ONE_DRIVE, of_a_service},
    {"a cursor of tasks/list belongs to its session", a_cursor_belongs_to_its_session,
     ONLY_HTTP | ONLY_HERE | ONE_DRIVE, one_per_page},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
