/* Items that the application hides from some callers (SEGUE_ITEM_LIST): they are in no
 * page of a list, and requests that name them are answered as if there were no such
 * item. */
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

#define ALLOW "\"_meta\":{\"allowPartial\":true}"

/* What the handler of a list does. */
typedef struct guard {
    const char *hides; /* a part of the names that only "root" sees */
    int lists, checks; /* how often it was asked about a list, and about an item */
    int fails, holds;
    segue_call *held; /* the call that it has not ended yet, if it holds */
    int cancelled;
} guard;

/* What each list has: the items a hidden and a visible name. */
static const struct kind {
    int32_t type;
    const char *method, *list, *format;
} kinds[] = {
    {SEGUE_ITEM_TOOL, "tools/list", "tools", "{\"name\":\"%s\"}"},
    {SEGUE_ITEM_RESOURCE, "resources/list", "resources",
     "{\"uri\":\"test://%s\",\"name\":\"n\"}"},
    {SEGUE_ITEM_RESOURCE_TEMPLATE, "resources/templates/list", "resourceTemplates",
     "{\"uriTemplate\":\"test://%s/{x}\",\"name\":\"n\"}"},
    {SEGUE_ITEM_PROMPT, "prompts/list", "prompts", "{\"name\":\"%s\"}"},
};

static void answer_text(void *user, segue_call *call)
{
    (void)user;
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void add(world *w, const struct kind *kind, const char *name)
{
    char json[200];
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = answer_text;
    if (kind->type == SEGUE_ITEM_PROMPT || kind->type == SEGUE_ITEM_RESOURCE_TEMPLATE)
        options.on_completion = answer_text;
    snprintf(json, sizeof json, kind->format, name);
    assert_int_equal(
        segue_server_add(w->server, kind->type, json, SIZE_MAX, &options, NULL),
        SEGUE_OK);
}

/* Names the items s0 to s39 and o0 to o39, in the forms of all kinds, unless hidden. */
static void decide(const guard *g, segue_call *call)
{
    static const char *const forms[] = {"%s\"%c%d\"", "%s\"test://%c%d\"",
                                        "%s\"test://%c%d/{x}\""};
    char shown[8192] = "[";
    const char *who = segue_call_principal(call);
    size_t n = 1;
    if (who && !strcmp(who, "root"))
        return;
    for (size_t f = 0; f < 3; f++)
        for (int i = 0; i < 80; i++) {
            char mark = i % 2 ? 'o' : 's';
            if (!strchr(g->hides, mark))
                n += (size_t)snprintf(shown + n, sizeof shown - n, forms[f],
                                      n > 1 ? "," : "", mark, i / 2);
        }
    snprintf(shown + n, sizeof shown - n, "]");
    assert_int_equal(segue_call_set_field(call, "shown", shown, SIZE_MAX, NULL),
                     SEGUE_OK);
}

static void on_cancel(void *user, segue_call *call)
{
    guard *g = user;
    g->cancelled++;
    if (g->held == call)
        g->held = NULL;
    segue_call_free(call);
}

static void on_list(void *user, segue_call *call)
{
    guard *g = user;
    if (*segue_call_name(call))
        g->checks++;
    else
        g->lists++;
    if (g->holds) {
        segue_call_events events = SEGUE_CALL_EVENTS_INIT;
        events.user = g;
        events.on_cancel = on_cancel;
        assert_int_equal(segue_call_watch(call, &events), SEGUE_OK);
        g->held = call;
        return;
    }
    if (g->fails) {
        segue_call_fail(call, -32603, "not now", NULL, 0, NULL);
    } else {
        decide(g, call);
        segue_call_complete(call, NULL, NULL);
    }
    segue_call_free(call);
}

static segue_status try_guard(world *w, guard *g, const char *method, int32_t flags)
{
    char json[100];
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = on_list;
    options.user = g;
    options.flags = flags;
    snprintf(json, sizeof json, "{\"method\":\"%s\"}", method);
    return segue_server_add(w->server, SEGUE_ITEM_LIST, json, SIZE_MAX, &options, NULL);
}

/* Adds hidden items (s) and visible ones (o), in turns, and a guard for each list. */
static void add_all(world *w, guard *g, int count)
{
    char name[16];
    for (size_t k = 0; k < 4; k++) {
        for (int i = 0; i < 2 * count; i++) {
            snprintf(name, sizeof name, "%c%d", i % 2 ? 'o' : 's', i / 2);
            add(w, &kinds[k], name);
        }
        assert_int_equal(try_guard(w, g, kinds[k].method, 0), SEGUE_OK);
    }
}

static void a_list_is_without_them(world *w)
{
    guard g = {.hides = "s"};
    add_all(w, &g, 2);
    for (size_t k = 0; k < 4; k++) {
        const char *r =
            wire_do(world_connect(w, "ann"), "1", kinds[k].method, NULL, NULL);
        assert_non_null(strstr(r, "o0"));
        assert_non_null(strstr(r, "o1"));
        assert_null(strstr(r, "s0"));
        assert_null(strstr(r, "s1"));
        assert_at(r, "result.cacheScope", "\"private\"");
        r = wire_do(world_connect(w, "root"), "1", kinds[k].method, NULL, NULL);
        assert_non_null(strstr(r, "s1"));
        r = wire_do_plain(legacy_connect(w, "ann", NULL), "1", kinds[k].method, NULL);
        assert_non_null(strstr(r, "o1"));
        assert_null(strstr(r, "s0"));
    }
    assert_int_equal(g.lists, 12);
    assert_int_equal(g.checks, 0);
}

/* Checks that a hidden item is answered exactly as one that does not exist. */
static void compare(wire *c, int modern, const char *method, const char *format)
{
    char hidden[300], unknown[300], expected[4096];
    snprintf(hidden, sizeof hidden, format, "s0");
    snprintf(unknown, sizeof unknown, format, "z0");
    const char *r = modern ? wire_do(c, "1", method, unknown, CAPS_TASKS)
                           : wire_do_plain(c, "1", method, unknown);
    assert_string_not_equal(json_at(r, "error.code"), "");
    snprintf(expected, sizeof expected, "%s", r);
    for (char *z; (z = strstr(expected, "z0"));)
        *z = 's';
    r = modern ? wire_do(c, "1", method, hidden, CAPS_TASKS)
               : wire_do_plain(c, "1", method, hidden);
    assert_string_equal(r, expected);
}

static const struct {
    const char *method, *params;
} named[] = {
    {"tools/call", "\"name\":\"%s\""},
    {"tools/call", "\"name\":\"%s\",\"task\":{\"ttl\":1000}"},
    {"resources/read", "\"uri\":\"test://%s\""},
    {"resources/read", "\"uri\":\"test://%s/1\""},
    {"prompts/get", "\"name\":\"%s\""},
    {"completion/complete", "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"%s\"},"
                            "\"argument\":{\"name\":\"x\",\"value\":\"\"}"},
    {"completion/complete",
     "\"ref\":{\"type\":\"ref/resource\",\"uri\":\"test://%s/{x}\"},"
     "\"argument\":{\"name\":\"x\",\"value\":\"\"}"},
    {"completion/complete", "\"ref\":{\"type\":\"ref/resource\",\"uri\":\"test://%s\"},"
                            "\"argument\":{\"name\":\"x\",\"value\":\"\"}"},
};
#define NAMED (int)(sizeof named / sizeof *named)

static void requests_do_not_find_them(world *w)
{
    guard g = {.hides = "s"};
    char params[300];
    add_all(w, &g, 1);
    wire *ann = world_connect(w, "ann"), *old = legacy_connect(w, "ann", NULL);
    wire *root = world_connect(w, "root");
    for (int i = 0; i < NAMED; i++) {
        compare(ann, 1, named[i].method, named[i].params);
        compare(old, 0, named[i].method, named[i].params);
        /* what is not hidden is found, and so is all of it by root */
        snprintf(params, sizeof params, named[i].params, "o0");
        assert_at(wire_do(ann, "2", named[i].method, params, NULL), "error", "");
        snprintf(params, sizeof params, named[i].params, "s0");
        assert_at(wire_do(root, "2", named[i].method, params, NULL), "error", "");
    }
    assert_int_equal(g.checks, 4 * NAMED);
    assert_int_equal(g.lists, 0);
}

static void two_per_page(segue_server_options *options)
{
    options->page_size = 2;
}

static void pages_are_full(world *w)
{
    guard g = {.hides = "s"};
    char params[300] = "", name[40];
    int seen = 0, pages = 0;
    add_all(w, &g, 20);
    wire *c = world_connect(w, "ann");
    do {
        const char *r = wire_do(c, "1", "resources/list", *params ? params : NULL, NULL);
        for (int i = 0; i < 2; i++) {
            char at[40];
            snprintf(at, sizeof at, "result.resources.%d.uri", i);
            snprintf(name, sizeof name, "\"test://o%d\"", seen++);
            if (seen <= 20)
                assert_at(r, at, name);
        }
        assert_at(r, "result.resources.2", "");
        snprintf(params, sizeof params, "\"cursor\":%s", json_at(r, "result.nextCursor"));
        pages++;
    } while (strcmp(params, "\"cursor\":") != 0 && pages < 20);
    assert_true(pages == 10 || pages == 11);
    /* a cursor of a page is good while other items are hidden */
    const char *r = wire_do(c, "1", "tools/list", NULL, NULL);
    snprintf(params, sizeof params, "\"cursor\":%s", json_at(r, "result.nextCursor"));
    g.hides = "o";
    r = wire_do(c, "1", "tools/list", params, NULL);
    assert_at(r, "result.tools.0.name", "\"s2\"");
}

static void a_long_list_in_pieces(world *w)
{
    guard g = {.hides = "s"};
    char name[16];
    int pieces = 0, items = 0;
    for (int i = 0; i < 80; i++) {
        snprintf(name, sizeof name, "%c%d", i % 2 ? 'o' : 's', i / 2);
        add(w, &kinds[0], name);
    }
    for (int i = 0; i < 800; i++) {
        snprintf(name, sizeof name, "late%d", i);
        add(w, &kinds[0], name);
    }
    assert_int_equal(try_guard(w, &g, "tools/list", 0), SEGUE_OK);
    wire *c = legacy_connect(w, "root", NULL);
    wire_ask_plain(c, "1", "tools/list", ALLOW);
    for (const char *r = "", *more = "true"; !strcmp(more, "true"); pieces++) {
        r = wire_response(c, "1");
        more = json_at(r, "result._meta.hasMore");
        for (const char *at = r; (at = strstr(at, "\"late")); at++)
            items++;
    }
    assert_true(pieces > 1);
    assert_int_equal(items, 800);
    c = legacy_connect(w, "ann", NULL);
    const char *r = wire_do_plain(c, "1", "tools/list", ALLOW);
    assert_null(strstr(r, "\"s"));
    assert_null(strstr(r, "late"));
    assert_non_null(strstr(r, "\"o39\""));
}

static void what_comes_meanwhile_waits(world *w)
{
    guard g = {.hides = "s", .holds = 1};
    add(w, &kinds[0], "o0");
    assert_int_equal(try_guard(w, &g, "tools/list", 0), SEGUE_OK);
    wire *c = world_connect(w, "ann");
    wire_ask(c, "1", "tools/list", NULL, NULL);
    world_run(w);
    assert_non_null(g.held);
    wire_quiet(c);
    add(w, &kinds[0], "o99"); /* the handler has not seen it */
    decide(&g, g.held);
    segue_call_complete(g.held, NULL, NULL);
    segue_call_free(g.held);
    const char *r = wire_response(c, "1");
    assert_non_null(strstr(r, "\"o0\""));
    assert_null(strstr(r, "\"o99\""));
    assert_null(strstr(r, "\"greet\""));
    /* an item that is removed meanwhile is unknown */
    wire_ask(c, "2", "tools/call", "\"name\":\"o0\"", NULL);
    world_run(w);
    assert_int_equal(segue_server_remove(w->server, SEGUE_ITEM_TOOL, "o0"), SEGUE_OK);
    segue_call_complete(g.held, NULL, NULL);
    segue_call_free(g.held);
    assert_code(wire_response(c, "2"), -32602);
}

static void a_client_that_gives_up(world *w)
{
    guard g = {.hides = "s", .holds = 1};
    add(w, &kinds[0], "o0");
    assert_int_equal(try_guard(w, &g, "tools/list", 0), SEGUE_OK);
    wire *c = legacy_connect(w, "ann", NULL);
    wire_ask_plain(c, "1", "tools/list", NULL);
    wire_ask_plain(c, "2", "tools/call", "\"name\":\"o0\"");
    world_run(w);
    wire_notify(c, "notifications/cancelled", "\"requestId\":1");
    wire_notify(c, "notifications/cancelled", "\"requestId\":2");
    world_run(w);
    assert_int_equal(g.cancelled, 2);
    wire_quiet(c);
    c = world_connect(w, "ann");
    wire_ask(c, "1", "tools/call", "\"name\":\"o0\"", NULL);
    world_run(w);
    wire_cut(c);
    world_run(w);
    assert_int_equal(g.cancelled, 3);
    /* what is asked when the server ends is cancelled, too */
    c = world_connect(w, "ann");
    wire_ask(c, "1", "tools/list", NULL, NULL);
    world_run(w);
    assert_non_null(g.held);
    world_stop(w);
    assert_int_equal(g.cancelled, 4);
}

static void a_handler_that_fails(world *w)
{
    guard g = {.hides = "s", .fails = 1};
    add(w, &kinds[0], "o0");
    assert_int_equal(try_guard(w, &g, "tools/list", 0), SEGUE_OK);
    wire *c = world_connect(w, "ann");
    const char *r = wire_do(c, "1", "tools/list", NULL, NULL);
    assert_code(r, -32603);
    assert_at(r, "error.message", "\"not now\"");
    r = wire_do(c, "2", "tools/call", "\"name\":\"o0\"", NULL);
    assert_code(r, -32603);
    assert_at(wire_do(c, "3", "prompts/list", NULL, NULL), "error", "");
}

static void one_that_hides_nothing(world *w)
{
    guard g = {.hides = "s"};
    add(w, &kinds[0], "s0");
    assert_int_equal(try_guard(w, &g, "tools/list", SEGUE_LIST_SHOWS_ALL), SEGUE_OK);
    wire *c = world_connect(w, "ann");
    const char *r = wire_do(c, "1", "tools/list", NULL, NULL);
    assert_non_null(strstr(r, "\"s0\""));
    assert_at(wire_do(c, "2", "tools/call", "\"name\":\"s0\"", NULL), "error", "");
    assert_int_equal(g.lists, 1);
    assert_int_equal(g.checks, 0);
}

static void a_change_is_reported(world *w)
{
    static const char changed[] = "notifications/prompts/list_changed";
    guard g = {.hides = "s"};
    wire *c = world_connect(w, "ann");
    wire_ask(c, "1", "subscriptions/listen",
             "\"notifications\":{\"promptsListChanged\":true}", NULL);
    wire_notification(c, "notifications/subscriptions/acknowledged");
    assert_int_equal(try_guard(w, &g, "prompts/list", 0), SEGUE_OK);
    wire_notification(c, changed);
    assert_int_equal(segue_server_remove(w->server, SEGUE_ITEM_LIST, "prompts/list"),
                     SEGUE_OK);
    wire_notification(c, changed);
    wire_do(world_connect(w, "ann"), "1", "prompts/list", NULL, NULL);
    assert_int_equal(g.lists, 0);
}

static void a_batch(world *w)
{
    guard g = {.hides = "s"};
    char params[200];
    add(w, &kinds[0], "s0");
    add(w, &kinds[0], "o0");
    assert_int_equal(try_guard(w, &g, "tools/list", 0), SEGUE_OK);
    wire *c = legacy_connect_as(w, "ann", "2025-03-26", NULL);
    snprintf(params, sizeof params, "\"name\":\"%s\"", "s0");
    wire_send(c, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"},"
                 "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{"
                 "\"name\":\"s0\"}},"
                 "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{"
                 "\"name\":\"o0\"}}]");
    const char *line = wire_due(c);
    assert_non_null(line);
    assert_int_equal(line[0], '[');
    assert_string_not_equal(json_at(line, "2"), "");
    assert_at(line, "3", "");
    assert_non_null(strstr(line, "Unknown tool: s0"));
    assert_null(strstr(line, "Unknown tool: o0"));
    assert_null(strstr(line, "\"name\":\"s0\""));
}

static void what_cannot_be_added(world *w)
{
    guard g = {0};
    static const int32_t flags[] = {2, SEGUE_TOOL_STORED, -1};
    assert_int_equal(try_guard(w, &g, "tools/call", 0), SEGUE_E_INVALID);
    assert_int_equal(try_guard(w, &g, "tasks/list", 0), SEGUE_E_INVALID);
    for (int i = 0; i < 3; i++)
        assert_int_equal(try_guard(w, &g, "tools/list", flags[i]), SEGUE_E_INVALID);
    assert_int_equal(try_guard(w, &g, "tools/list", 0), SEGUE_OK);
    assert_int_equal(try_guard(w, &g, "tools/list", 0), SEGUE_E_EXISTS);
}

static void what_a_handler_may_say(world *w)
{
    static const struct {
        const char *name, *json;
    } bad[] = {{"shown", "\"s0\""},
               {"shown", "[1]"},
               {"shown", "{}"},
               {"tools", "[]"},
               {"_meta", "{}"}};
    guard g = {.hides = "s", .holds = 1};
    assert_int_equal(try_guard(w, &g, "tools/list", 0), SEGUE_OK);
    wire *c = world_connect(w, "ann");
    wire_ask(c, "1", "tools/list", NULL, NULL);
    world_run(w);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(
            segue_call_set_field(g.held, bad[i].name, bad[i].json, SIZE_MAX, NULL),
            SEGUE_E_INVALID);
    assert_int_equal(segue_call_set_field(g.held, "shown", "[\"gr\\u0065et\",\"none\"]",
                                          SIZE_MAX, NULL),
                     SEGUE_OK);
    segue_call_complete(g.held, NULL, NULL);
    segue_call_free(g.held);
    const char *r = wire_response(c, "1");
    assert_at(r, "result.tools.0.name", "\"greet\"");
    assert_at(r, "result.tools.1", "");
}

static const scenario scenarios[] = {
    {"a list is without hidden items", a_list_is_without_them, ONLY_HERE, NULL},
    {"a hidden item is an unknown one", requests_do_not_find_them, ONLY_HERE, NULL},
    {"pages are full, and none has a hidden item", pages_are_full, ONLY_HERE | ONE_DRIVE,
     two_per_page},
    {"a long list in pieces is without them", a_long_list_in_pieces,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"an item that comes meanwhile is not shown", what_comes_meanwhile_waits,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"a client that gives up cancels the question", a_client_that_gives_up,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"an error of the handler is the answer", a_handler_that_fails, ONLY_HERE | ONE_DRIVE,
     NULL},
    {"a handler that hides nothing is asked about lists only", one_that_hides_nothing,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"a new rule changes the list", a_change_is_reported, ONLY_HERE | ONE_DRIVE, NULL},
    {"a batch is without them", a_batch, ONLY_HERE | ONE_DRIVE, NULL},
    {"lists that cannot be added", what_cannot_be_added, ONLY_HERE | ONE_DRIVE, NULL},
    {"a handler says only which names are shown", what_a_handler_may_say,
     ONLY_HERE | ONE_DRIVE, NULL},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
