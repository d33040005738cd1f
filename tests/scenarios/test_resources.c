/* Resources and their templates as raw clients of both eras see them: lists, reading,
 * unknown URIs, subscriptions, and notifications of changes. */
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

#define URI(uri) "\"uri\":\"" uri "\""
#define ACK "notifications/subscriptions/acknowledged"
#define UPDATED "notifications/resources/updated"
#define CHANGED "notifications/resources/list_changed"

/* ---- lists ---- */

static void announces_them(world *w)
{
    const char *r = wire_do(world_connect(w, NULL), "1", "server/discover", NULL, NULL);
    assert_at(r, "result.capabilities.resources",
              "{\"subscribe\":true,\"listChanged\":true}");
    r = legacy_hello(world_connect(w, NULL), "2025-06-18", NULL);
    assert_at(r, "result.capabilities.resources",
              "{\"subscribe\":true,\"listChanged\":true}");
}

static void lists_them(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r = wire_do(c, "1", "resources/list", NULL, NULL);
    assert_at(r, "result.resources.0.uri", "\"test://static-text\"");
    assert_at(r, "result.resources.0.mimeType", "\"text/plain\"");
    assert_at(r, "result.ttlMs", "0");
    assert_at(r, "result.cacheScope", "\"private\"");
    assert_null(strstr(r, "uriTemplate"));
    r = wire_do(c, "2", "resources/templates/list", NULL, NULL);
    assert_golden(r, "resource_templates");
    wire *old = legacy_connect(w, NULL, NULL);
    r = wire_do_plain(old, "3", "resources/templates/list", NULL);
    assert_at(r, "result.resourceTemplates.1.uriTemplate", "\"file:///{+path}\"");
    assert_at(r, "result.ttlMs", "");
}

static void two_per_page(segue_server_options *options)
{
    options->page_size = 2;
}

static void pages_of_resources(world *w)
{
    wire *c = world_connect(w, NULL);
    char params[256] = "", seen[2048] = "";
    int pages = 0, count = 0;
    for (bool more = true; more; pages++) {
        const char *r = wire_do(c, "1", "resources/list", params, NULL);
        for (int i = 0; i < 3; i++) {
            char path[40];
            snprintf(path, sizeof path, "result.resources.%d.uri", i);
            const char *uri = json_at(r, path);
            if (!*uri)
                break;
            assert_null(strstr(seen, uri));
            strcat(seen, uri);
            count++;
        }
        more = *json_at(r, "result.nextCursor");
        if (more)
            snprintf(params, sizeof params, "\"cursor\":%s",
                     json_at(r, "result.nextCursor"));
    }
    assert_int_equal(count, 7);
    assert_int_equal(pages, 4);
    assert_code(wire_do(c, "2", "resources/list", "\"cursor\":\"x\"", NULL), -32602);
    assert_code(wire_do(c, "2", "resources/templates/list", "\"cursor\":1", NULL),
                -32602);
}

/* ---- reading ---- */

static void reads_text_and_bytes(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r = wire_do(c, "1", "resources/read", URI("test://static-text"), NULL);
    assert_golden(r, "read_text");
    r = wire_do(c, "2", "resources/read", URI("test://static-binary"), NULL);
    assert_at(r, "result.contents.0.blob", "\"iVBORwA=\"");
    assert_at(r, "result.contents.0.mimeType", "\"image/png\"");
    r = wire_do(c, "3", "resources/read", URI("test:\\/\\/static\\u002dtext"), NULL);
    /* over HTTP the header of this client repeats the URI escaped */
    if (w->place != WORLD_HTTP)
        assert_at(r, "result.contents.0.uri", "\"test://static-text\"");
    wire *old = legacy_connect(w, NULL, NULL);
    r = wire_do_plain(old, "4", "resources/read", URI("test://static-text"));
    assert_golden(r, "legacy_read_text");
}

static void reads_many_contents(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r = wire_do(c, "1", "resources/read", URI("test://many"), NULL);
    assert_at(r, "result.contents.0.text", "\"a\"");
    assert_at(r, "result.contents.1.blob", "\"Yg==\"");
    assert_at(r, "result.contents.2._meta.n", "3");
    assert_at(r, "result.ttlMs", "5000");
    assert_at(r, "result.cacheScope", "\"public\"");
    assert_at(r, "result.content", "");
    wire *old = legacy_connect(w, NULL, NULL); /* this era has no hints for caches */
    r = wire_do_plain(old, "4", "resources/read", URI("test://many"));
    assert_at(r, "result.contents.0.text", "\"a\"");
    assert_at(r, "result.ttlMs", "");
    assert_at(r, "result.cacheScope", "");
}

static void contents_fit_the_method(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r = wire_do(c, "1", "resources/read", URI("test://misfit"), NULL);
    assert_at(r, "error.message", "\"SEGUE_E_INVALID\"");
}

static void reads_by_template(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r =
        wire_do(c, "1", "resources/read", URI("test://template/123/data"), NULL);
    assert_at(r, "result.contents.0.uri", "\"test://template/123/data\"");
    assert_at(r, "result.contents.0.text",
              "\"{\\\"id\\\":\\\"123\\\",\\\"templateTest\\\":true,"
              "\\\"data\\\":\\\"Data for ID: 123\\\"}\"");
    /* A resource with exactly that URI has priority. */
    r = wire_do(c, "2", "resources/read", URI("test://template/exact/data"), NULL);
    assert_at(r, "result.contents.0.mimeType", "\"text/plain\"");
    r = wire_do(c, "3", "resources/read", URI("file:///a/b%20c/%C3%A9"), NULL);
    assert_at(r, "result.contents.0.text", "\"a/b c/\xc3\xa9\"");
    wire *old = legacy_connect(w, NULL, NULL);
    r = wire_do_plain(old, "4", "resources/read", URI("file:///x"));
    assert_at(r, "result.contents.0.text", "\"x\"");
}

/* ---- unknown resources ---- */

static void not_found(world *w)
{
    static const char *const missing[] = {
        URI("test://none"),
        URI("test://template//data"),
        URI("file:///"),
        URI("file:///%00"),
        URI("file:///%ff"),
        URI("file:///%4"),
        URI("test://template/{id}/data/"),
    };
    wire *c = world_connect(w, NULL);
    wire *old = legacy_connect(w, NULL, NULL);
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        assert_code(wire_do(c, "1", "resources/read", missing[i], NULL), -32602);
        assert_code(wire_do_plain(old, "1", "resources/read", missing[i]), -32002);
    }
    assert_golden(wire_do(c, "2", "resources/read", missing[0], NULL),
                  "resource_not_found");
    assert_golden(wire_do_plain(old, "2", "resources/read", missing[0]),
                  "legacy_resource_not_found");
    /* Its handler returns the same error. */
    const char *r = wire_do(c, "3", "resources/read", URI("test://gone"), NULL);
    assert_code(r, -32602);
    assert_at(r, "error.data.uri", "\"test://gone\"");
    r = wire_do_plain(old, "3", "resources/read", URI("test://gone"));
    assert_code(r, -32002);
    assert_at(r, "error.data.uri", "\"test://gone\"");
}

static void bad_uris(world *w)
{
    static const char *const bad[] = {NULL, "\"uri\":7", URI(""), "\"uri\":null",
                                      URI("a\\u0000b")};
    wire *c = world_connect(w, NULL);
    wire *old = legacy_connect(w, NULL, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        /* over HTTP no header can repeat the others */
        if (w->place != WORLD_HTTP || i < 2)
            assert_code(wire_do(c, "1", "resources/read", bad[i], NULL), -32602);
        assert_code(wire_do_plain(old, "1", "resources/read", bad[i]), -32602);
    }
    assert_code(wire_do_plain(old, "2", "resources/subscribe", bad[1]), -32602);
    char *huge = malloc(8300);
    int used = snprintf(huge, 8300, "\"uri\":\"file:///");
    memset(huge + used, 'a', 8200);
    memcpy(huge + used + 8200, "\"", 2);
    assert_code(wire_do_plain(old, "3", "resources/read", huge), -32602);
    assert_code(wire_do_plain(old, "4", "resources/subscribe", huge), -32602);
    free(huge);
}

/* ---- subscriptions of the handshake eras ---- */

static void refuse_call(void *user, segue_call *call)
{
    (void)user;
    segue_call_free(call);
}

static void update(world *w, const char *uri)
{
    assert_int_equal(segue_server_resource_updated(w->server, uri), SEGUE_OK);
    world_run(w);
}

static void subscribes(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    wire *deaf = legacy_connect(w, NULL, NULL);
    assert_at(wire_do_plain(c, "1", "resources/subscribe", URI("test://watched")),
              "result", "{}");
    wire_do_plain(c, "2", "resources/subscribe", URI("test://watched"));
    update(w, "test://watched");
    update(w, "test://other");
    assert_golden(wire_notification(c, UPDATED), "legacy_resource_updated");
    wire_quiet(c);
    assert_at(wire_do_plain(c, "3", "resources/unsubscribe", URI("test://watched")),
              "result", "{}");
    wire_do_plain(c, "4", "resources/unsubscribe", URI("test://watched"));
    update(w, "test://watched");
    wire_quiet(c);
    wire_quiet(deaf);
}

/* The client does not read meanwhile. */
static void updates_do_not_queue(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    wire_do_plain(c, "1", "resources/subscribe", URI("test://a"));
    wire_do_plain(c, "2", "resources/subscribe", URI("test://b"));
    for (int i = 0; i < 1000; i++) {
        segue_server_resource_updated(w->server, "test://a");
        segue_server_resource_updated(w->server, "test://b");
    }
    world_run(w);
    assert_at(wire_notification(c, UPDATED), "params.uri", "\"test://a\"");
    assert_at(wire_notification(c, UPDATED), "params.uri", "\"test://b\"");
    wire_quiet(c);
}

static void subscriptions_are_limited(world *w)
{
    char params[64];
    wire *c = legacy_connect(w, NULL, NULL);
    for (int i = 0; i < 1000; i++) {
        snprintf(params, sizeof params, "\"uri\":\"test://%d\"", i);
        assert_at(wire_do_plain(c, "1", "resources/subscribe", params), "result", "{}");
    }
    assert_code(wire_do_plain(c, "2", "resources/subscribe", URI("test://1000")), -32603);
    assert_at(wire_do_plain(c, "3", "resources/subscribe", URI("test://0")), "result",
              "{}");
    wire_do_plain(c, "4", "resources/unsubscribe", URI("test://0"));
    assert_at(wire_do_plain(c, "5", "resources/subscribe", URI("test://1000")), "result",
              "{}");
}

/* ---- subscriptions of 2026-07-28 ---- */

static void listens(world *w)
{
    wire *c = world_connect(w, NULL);
    wire *deaf = world_connect(w, NULL);
    wire_ask(
        c, "\"s\"", "subscriptions/listen",
        "\"notifications\":{\"resourceSubscriptions\":[\"test://a\",\"test:\\/\\/b\","
        "\"test://a\"],\"resourcesListChanged\":true}",
        NULL);
    wire_ask(deaf, "1", "subscriptions/listen",
             "\"notifications\":{\"toolsListChanged\":true}", NULL);
    assert_golden(wire_notification(c, ACK), "listen_ack_resources");
    wire_notification(deaf, ACK);
    for (int i = 0; i < 100; i++)
        segue_server_resource_updated(w->server, "test://b");
    update(w, "test://c");
    assert_golden(wire_notification(c, UPDATED), "resource_updated");
    wire_quiet(c);
    wire_quiet(deaf);
    assert_code(wire_do(c, "2", "resources/subscribe", URI("test://a"), NULL), -32601);
}

static void bad_filters(world *w)
{
    static const char *const bad[] = {
        "\"notifications\":{\"resourceSubscriptions\":\"x\"}",
        "\"notifications\":{\"resourceSubscriptions\":[1]}",
    };
    wire *c = world_connect(w, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_code(wire_do(c, "1", "subscriptions/listen", bad[i], NULL), -32602);
}

static void list_changes(world *w)
{
    static const char json[] = "{\"uriTemplate\":\"late:{x}\",\"name\":\"late\"}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    wire *c = world_connect(w, NULL);
    wire *old = legacy_connect(w, NULL, NULL);
    wire_ask(c, "1", "subscriptions/listen",
             "\"notifications\":{\"resourcesListChanged\":true}", NULL);
    wire_notification(c, ACK);
    options.on_call = refuse_call;
    assert_int_equal(segue_server_add(w->server, SEGUE_ITEM_RESOURCE_TEMPLATE, json,
                                      sizeof json - 1, &options, NULL),
                     SEGUE_OK);
    world_run(w);
    wire_notification(c, CHANGED);
    wire_notification(old, CHANGED);
    assert_int_equal(
        segue_server_remove(w->server, SEGUE_ITEM_RESOURCE_TEMPLATE, "late:{x}"),
        SEGUE_OK);
    assert_int_equal(segue_server_remove(w->server, SEGUE_ITEM_RESOURCE, "test://gone"),
                     SEGUE_OK);
    world_run(w);
    wire_notification(c, CHANGED);
    wire_notification(old, CHANGED); /* two changes at once are reported once */
    wire_quiet(old);
    wire_quiet(c);
    assert_code(wire_do_plain(old, "2", "resources/read", URI("test://gone")), -32002);
}

/* A template that is only listed may come before the others; no URI matches it. */
static void a_template_that_is_only_listed_makes_none(world *w)
{
    static const char json[] = "{\"uriTemplate\":\"new:{x}\",\"name\":\"new\"}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    wire *c = world_connect(w, NULL);
    options.on_call = refuse_call;
    options.visibility = SEGUE_LISTED_ONLY;
    assert_int_equal(segue_server_add(w->server, SEGUE_ITEM_RESOURCE_TEMPLATE, json,
                                      sizeof json - 1, &options, NULL),
                     SEGUE_OK);
    assert_code(wire_do(c, "1", "resources/read", URI("new:1"), NULL), -32602);
    const char *r = wire_do(c, "2", "resources/templates/list", NULL, NULL);
    assert_non_null(strstr(r, "new:{x}"));
}

/* ---- asking ---- */

static void asks_before_it_answers(world *w)
{
    char params[512];
    wire *c = world_connect(w, NULL);
    const char *r = wire_do(c, "1", "resources/read", URI("test://ask"), CAPS_ALL);
    assert_at(r, "result.resultType", "\"input_required\"");
    assert_at(r, "result.inputRequests.input-1.method", "\"elicitation/create\"");
    snprintf(params, sizeof params,
             URI("test://static-text") ",\"requestState\":%s,\"inputResponses\":{"
                                       "\"input-1\":{\"action\":\"cancel\"}}",
             json_at(r, "result.requestState"));
    assert_code(wire_do(c, "2", "resources/read", params, CAPS_ALL), -32602);
    snprintf(params, sizeof params,
             URI("test://ask") ",\"requestState\":%s,\"inputResponses\":{"
                               "\"input-1\":{\"action\":\"cancel\"}}",
             json_at(r, "result.requestState"));
    r = wire_do(c, "3", "resources/read", params, CAPS_ALL);
    assert_at(r, "result.contents.0.text", "\"{\\\"action\\\":\\\"cancel\\\"}\"");
}

static const scenario scenarios[] = {
    {"resources are announced", announces_them, ONE_DRIVE, NULL},
    {"resources and templates are listed", lists_them, 0, NULL},
    {"resources/list comes in pages", pages_of_resources, ONLY_HERE | ONE_DRIVE,
     two_per_page},
    {"text and bytes are read", reads_text_and_bytes, 0, NULL},
    {"a resource has many contents", reads_many_contents, 0, NULL},
    {"R-1905-64 a handler gives what its method gives", contents_fit_the_method,
     ONE_DRIVE, NULL},
    {"a template makes resources", reads_by_template, 0, NULL},
    {"a template that is only listed makes none",
     a_template_that_is_only_listed_makes_none, ONLY_HERE | ONE_DRIVE, NULL},
    {"what is not there is told as each revision has it", not_found, 0, NULL},
    {"URIs that are none are refused", bad_uris, ONE_DRIVE, NULL},
    {"subscribers hear of updates, the others do not", subscribes, ONLY_HERE | ONE_DRIVE,
     NULL},
    {"many updates are one notification", updates_do_not_queue, ONLY_HERE | ONE_DRIVE,
     NULL},
    {"a session has at most 1000 subscriptions", subscriptions_are_limited,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"subscriptions/listen tells of updates", listens, ONLY_HERE | ONE_DRIVE, NULL},
    {"filters of resources that are none are refused", bad_filters, ONE_DRIVE, NULL},
    {"changes of the lists are told", list_changes, ONLY_HERE | ONE_DRIVE, NULL},
    {"reading can ask its client", asks_before_it_answers, 0, NULL},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
