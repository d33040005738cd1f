/* Cursors of lists are sealed. A cursor that was changed, made up, or belongs to another
 * list, principal or server is refused. A good cursor stays valid while items come and
 * go. */
#include "support/legacy_wire.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define CURSOR_SIZE 256

static const uint8_t key_of_service[32] = {3, 1, 4, 1, 5, 9};
static const uint8_t next_key[32] = {2, 7, 1, 8};

static const char *page(wire *c, const char *method, const char *cursor)
{
    char params[2 * CURSOR_SIZE];
    snprintf(params, sizeof params, "\"cursor\":%s", cursor ? cursor : "");
    return wire_do(c, "1", method, cursor ? params : NULL, NULL);
}

static void take_cursor(const char *message, char cursor[CURSOR_SIZE])
{
    snprintf(cursor, CURSOR_SIZE, "%s", json_at(message, "result.nextCursor"));
    assert_true(strlen(cursor) > 40);
}

static void two_per_page(segue_server_options *options)
{
    options->page_size = 2;
}

static void every_change_is_refused(world *w)
{
    char cursor[CURSOR_SIZE], altered[CURSOR_SIZE + 8];
    wire *c = world_connect(w, NULL);
    take_cursor(page(c, "tools/list", NULL), cursor);
    size_t len = strlen(cursor);
    for (size_t i = 1; i < len - 1; i++) {
        snprintf(altered, sizeof altered, "%s", cursor);
        altered[i] = altered[i] == 'B' ? 'C' : 'B';
        const char *r = page(c, "tools/list", altered);
        assert_code(r, -32602);
        assert_at(r, "error.message", "\"Invalid cursor\"");
    }
    snprintf(altered, sizeof altered, "%.*s\"", (int)len - 2, cursor);
    assert_code(page(c, "tools/list", altered), -32602);
    snprintf(altered, sizeof altered, "%.*sAAAA\"", (int)len - 1, cursor);
    assert_code(page(c, "tools/list", altered), -32602);
    assert_at(page(c, "tools/list", cursor), "error", "");
}

static void it_is_good_for_its_list(world *w)
{
    static const char *const lists[] = {"tools/list", "resources/list", "prompts/list"};
    char cursor[CURSOR_SIZE];
    wire *c = world_connect(w, NULL);
    for (int i = 0; i < 3; i++) {
        take_cursor(page(c, lists[i], NULL), cursor);
        for (int j = 0; j < 3; j++)
            assert_at(page(c, lists[j], cursor), "error.code", i == j ? "" : "-32602");
        assert_code(page(c, "resources/templates/list", cursor), -32602);
    }
}

static void it_belongs_to_its_principal(world *w)
{
    char cursor[CURSOR_SIZE], foreign[512];
    take_cursor(page(world_connect(w, "ann"), "tools/list", NULL), cursor);
    snprintf(foreign, sizeof foreign, "%s",
             page(world_connect(w, "bob"), "tools/list", cursor));
    assert_code(foreign, -32602);
    assert_string_equal(foreign, page(world_connect(w, "bob"), "tools/list", "\"x\""));
    assert_at(page(world_connect(w, "ann"), "tools/list", cursor), "error", "");
}

static void two_per_public_page(segue_server_options *options)
{
    options->page_size = 2;
    options->list_scope = SEGUE_CACHE_PUBLIC;
}

/* A client that gets a page from a cache can go on behind it. */
static void a_public_page_is_for_anybody(world *w)
{
    char cursor[CURSOR_SIZE], same[CURSOR_SIZE];
    take_cursor(page(world_connect(w, "ann"), "tools/list", NULL), cursor);
    take_cursor(page(world_connect(w, "bob"), "tools/list", NULL), same);
    assert_string_equal(cursor, same);
    assert_at(page(world_connect(w, "bob"), "tools/list", cursor), "error", "");
}

static void add(world *w, const char *name)
{
    char json[128];
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = (segue_call_fn)abort;
    snprintf(json, sizeof json, "{\"name\":\"%s\",\"inputSchema\":{\"type\":\"object\"}}",
             name);
    assert_int_equal(
        segue_server_add(w->server, SEGUE_ITEM_TOOL, json, strlen(json), &options, NULL),
        SEGUE_OK);
}

static void remove_tool(world *w, const char *quoted)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strlen(quoted) - 2, quoted + 1);
    assert_int_equal(segue_server_remove(w->server, SEGUE_ITEM_TOOL, name), SEGUE_OK);
}

/* No item that was there all the time is missing or comes twice; the same page has the
 * same cursor. */
static void items_come_and_go(world *w)
{
    char cursor[CURSOR_SIZE], again[CURSOR_SIZE], third[64];
    wire *c = world_connect(w, NULL);
    const char *r = page(c, "tools/list", NULL);
    take_cursor(r, cursor);
    take_cursor(page(c, "tools/list", NULL), again);
    assert_string_equal(cursor, again);
    remove_tool(w, json_at(r, "result.tools.0.name"));
    /* removes the item that the cursor points behind */
    remove_tool(w, json_at(r, "result.tools.1.name"));
    r = page(c, "tools/list", cursor);
    snprintf(third, sizeof third, "%s", json_at(r, "result.tools.0.name"));
    add(w, "new");
    assert_at(page(c, "tools/list", cursor), "result.tools.0.name", third);
    assert_at(page(c, "tools/list", NULL), "result.tools.0.name", third);
    while (*json_at(r = page(c, "tools/list", cursor), "result.tools.0.name"))
        remove_tool(w, json_at(r, "result.tools.0.name"));
    assert_golden(r, "tools_list_empty");
}

static void a_server_of_its_own(world *w)
{
    char cursor[CURSOR_SIZE];
    take_cursor(page(world_connect(w, NULL), "tools/list", NULL), cursor);
    world_restart(w);
    const char *r = page(world_connect(w, NULL), "tools/list", cursor);
    if (w->store_kind == WORLD_MEMORY || w->place != WORLD_HTTP)
        assert_code(r, -32602);
    else /* the file keeps the key of a server over HTTP */
        assert_int_not_equal(strlen(json_at(r, "result.tools.0.name")), 0);
}

static void two_per_page_of_a_service(segue_server_options *options)
{
    options->page_size = 2;
    options->seal_key = key_of_service;
    options->seal_key_len = sizeof key_of_service;
}

static void two_per_page_with_the_next_key(segue_server_options *options)
{
    options->page_size = 2;
    options->seal_key = next_key;
    options->seal_key_len = sizeof next_key;
    options->seal_key_before = key_of_service;
    options->seal_key_before_len = sizeof key_of_service;
}

static void two_per_page_with_the_next_key_alone(segue_server_options *options)
{
    options->page_size = 2;
    options->seal_key = next_key;
    options->seal_key_len = sizeof next_key;
}

static void servers_with_one_key(world *w)
{
    char cursor[CURSOR_SIZE], other[CURSOR_SIZE], kept[1024];
    wire *c = world_connect(w, NULL);
    take_cursor(page(c, "tools/list", NULL), cursor);
    snprintf(kept, sizeof kept, "%s", json_at(page(c, "tools/list", cursor), "result"));
    world_restart(w);
    c = world_connect(w, NULL);
    assert_string_equal(json_at(page(c, "tools/list", cursor), "result"), kept);
    w->tune = two_per_page_with_the_next_key;
    world_restart(w);
    c = world_connect(w, NULL);
    assert_at(page(c, "tools/list", cursor), "error", "");
    take_cursor(page(c, "tools/list", NULL), other);
    assert_string_not_equal(cursor, other);
    w->tune = two_per_page_with_the_next_key_alone;
    world_restart(w);
    c = world_connect(w, NULL);
    assert_code(page(c, "tools/list", cursor), -32602);
    assert_at(page(c, "tools/list", other), "error", "");
}

static void those_of_tasks_outlive_a_server_too(world *w)
{
    char cursor[CURSOR_SIZE], params[CURSOR_SIZE + 16], id[64];
    wire *c = legacy_connect(w, "Ada", NULL);
    for (int i = 0; i < 3; i++) {
        const char *made = legacy_make_task(c, "\"make\"", "hang", NULL, NULL);
        if (!i)
            snprintf(id, sizeof id, "\"%s\"", made);
        world_advance(w, 1);
    }
    take_cursor(wire_do_plain(c, "2", "tasks/list", NULL), cursor);
    assert_null(strstr(cursor, id));
    world_restart(w);
    c = legacy_connect(w, "Ada", NULL);
    snprintf(params, sizeof params, "\"cursor\":%s", cursor);
    assert_at(wire_do_plain(c, "3", "tasks/list", params), "result.tasks.0.taskId", id);
    snprintf(params, sizeof params, "\"cursor\":%s", cursor);
    assert_code(wire_do_plain(c, "4", "tools/list", params), -32602);
}

static void keys_that_are_none(world *w)
{
    static const struct {
        const void *key, *before;
        size_t len, before_len;
    } bad[] = {{key_of_service, NULL, 31, 0}, {key_of_service, NULL, 33, 0},
               {key_of_service, NULL, 0, 0},  {NULL, NULL, 32, 0},
               {NULL, next_key, 0, 32},       {key_of_service, next_key, 32, 16}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        segue_server *server = NULL;
        segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
        options.seal_key = bad[i].key;
        options.seal_key_len = bad[i].len;
        options.seal_key_before = bad[i].before;
        options.seal_key_before_len = bad[i].before_len;
        assert_int_equal(segue_server_new(w->runtime, &options, &server, NULL),
                         SEGUE_E_INVALID);
        assert_null(server);
    }
}

static const scenario scenarios[] = {
    {"a cursor that was changed is refused", every_change_is_refused,
     ONLY_HERE | ONE_DRIVE, two_per_page},
    {"a cursor is good for its list", it_is_good_for_its_list, ONLY_HERE | ONE_DRIVE,
     two_per_page},
    {"a cursor belongs to its principal", it_belongs_to_its_principal,
     ONLY_HERE | ONE_DRIVE, two_per_page},
    {"the cursor of a public page is for anybody", a_public_page_is_for_anybody,
     ONLY_HERE | ONE_DRIVE, two_per_public_page},
    {"a cursor stays good while items come and go", items_come_and_go,
     ONLY_HERE | ONE_DRIVE, two_per_page},
    {"a cursor is good as long as the key of the server", a_server_of_its_own,
     ONLY_HERE | ONE_DRIVE, two_per_page},
    {"servers with one key open each other's cursors", servers_with_one_key,
     ONLY_HERE | ONE_DRIVE, two_per_page_of_a_service},
    {"the same with those of tasks/list", those_of_tasks_outlive_a_server_too,
     ONLY_HERE | ONLY_SQLITE | ONE_DRIVE, two_per_page_of_a_service},
    {"keys that are none are refused", keys_that_are_none, ONLY_HERE | ONE_DRIVE, NULL},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
