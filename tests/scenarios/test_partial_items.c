/* Lists and resources in several responses, to a client of the handshake eras that allows
 * it (PR 776). */
#include "engine/server/gather.h"
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

#define ALLOW "\"_meta\":{\"allowPartial\":true}"
#define PIECE ((int)SGI_GATHER_SEGMENTS)

static const struct kind {
    int32_t type;
    const char *method, *list, *format;
} kinds[] = {
    {SEGUE_ITEM_TOOL, "tools/list", "tools",
     "{\"name\":\"item%d\",\"description\":\"%s\",\"inputSchema\":{\"type\":\"object\"}"
     "}"},
    {SEGUE_ITEM_RESOURCE, "resources/list", "resources",
     "{\"uri\":\"test://item%d\",\"name\":\"n\",\"description\":\"%s\"}"},
    {SEGUE_ITEM_RESOURCE_TEMPLATE, "resources/templates/list", "resourceTemplates",
     "{\"uriTemplate\":\"test://item%d/{x}\",\"name\":\"n\",\"description\":\"%s\"}"},
    {SEGUE_ITEM_PROMPT, "prompts/list", "prompts",
     "{\"name\":\"item%d\",\"description\":\"%s\"}"},
};

static void add(world *w, const struct kind *kind, int number, size_t bytes)
{
    size_t room = bytes + 256;
    char *json = malloc(room), *text = calloc(1, bytes + 1);
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = (segue_call_fn)abort;
    memset(text, 'x', bytes);
    snprintf(json, room, kind->format, number, text);
    assert_int_equal(
        segue_server_add(w->server, kind->type, json, strlen(json), &options, NULL),
        SEGUE_OK);
    free(json);
    free(text);
}

static void add_many(world *w, const struct kind *kind, int count, size_t bytes)
{
    for (int i = 0; i < count; i++)
        add(w, kind, i, bytes);
}

static int has_more(const char *response)
{
    return !strcmp(json_at(response, "result._meta.hasMore"), "true");
}

/* A client's merge of the responses to one request: it joins the items. */
typedef struct merging {
    char *items;
    size_t size;
    int responses, most; /* most: bytes of the largest response */
    const char *last;
} merging;

static void merge(merging *m, const char *response, const char *list)
{
    char path[64];
    snprintf(path, sizeof path, "result.%s", list);
    const char *items = json_at(response, path);
    size_t n = strlen(items);
    assert_true(n >= 2 && *items == '[');
    m->items = realloc(m->items, m->size + n + 2);
    if (m->size && n > 2)
        m->items[m->size++] = ',';
    memcpy(m->items + m->size, items + 1, n - 2);
    m->size += n - 2;
    m->items[m->size] = 0;
    m->responses++;
    m->last = response;
    if ((int)n > m->most)
        m->most = (int)n;
}

static void merge_all(wire *c, const char *id, const char *list, merging *m)
{
    *m = (merging){0};
    do
        merge(m, wire_response(c, id), list);
    while (has_more(m->last));
}

/* Makes the same request as a client that does not allow pieces. */
static void assert_whole(wire *c, const struct kind *kind, const char *params, merging *m)
{
    char path[64];
    const char *whole = wire_do_plain(c, "\"whole\"", kind->method, params);
    snprintf(path, sizeof path, "result.%s", kind->list);
    const char *items = json_at(whole, path);
    assert_int_equal(strlen(items), m->size + 2);
    assert_memory_equal(items + 1, m->items, m->size);
    assert_at(whole, "result._meta", "");
    assert_string_equal(json_at(m->last, "result.nextCursor"),
                        json_at(whole, "result.nextCursor"));
    free(m->items);
}

/* ---- lists ---- */

static void long_lists(world *w)
{
    merging m;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        add_many(w, &kinds[i], 2 * PIECE + 10, 10);
    wire *c = legacy_connect(w, NULL, NULL);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        wire_ask_plain(c, "1", kinds[i].method, ALLOW);
        merge_all(c, "1", kinds[i].list, &m);
        assert_int_equal(m.responses, 3);
        assert_at(m.last, "result._meta.hasMore", "");
        assert_at(m.last, "result._meta.index", "");
        assert_whole(c, &kinds[i], NULL, &m);
    }
    world_run(w);
    wire_quiet(c);
}

static void in_other_revisions(world *w)
{
    static const char *const versions[] = {"2024-11-05", "2025-03-26", "2025-06-18"};
    merging m;
    add_many(w, &kinds[0], PIECE, 10);
    for (size_t i = 0; i < 3; i++) {
        wire *c = legacy_connect_as(w, NULL, versions[i], NULL);
        wire_ask_plain(c, "1", "tools/list", ALLOW);
        merge_all(c, "1", "tools", &m);
        assert_int_equal(m.responses, 2);
        assert_whole(c, &kinds[0], NULL, &m);
    }
}

/* Few items may be many bytes. */
static void large_items(world *w)
{
    size_t bytes = SGI_GATHER_BYTES / 3;
    merging m;
    wire *c = legacy_connect(w, NULL, NULL);
    add_many(w, &kinds[3], 10, bytes);
    wire_ask_plain(c, "1", "prompts/list", ALLOW);
    merge_all(c, "1", "prompts", &m);
    assert_true(m.responses > 2);
    assert_true(m.most < (int)(SGI_GATHER_BYTES + 2 * bytes));
    assert_whole(c, &kinds[3], NULL, &m);
}

/* Items that fit one response come as one, byte for byte, and so does a list for a client
 * that did not ask for pieces. */
static void one_answer(world *w)
{
    static const char *const metas[] = {NULL, "\"_meta\":{\"allowPartial\":false}",
                                        "\"_meta\":{\"allowPartial\":\"yes\"}"};
    char before[8192];
    add_many(w, &kinds[0], 2 * PIECE, 10);
    wire *c = legacy_connect(w, NULL, NULL);
    snprintf(before, sizeof before, "%s", wire_do_plain(c, "1", "prompts/list", NULL));
    assert_string_equal(before, wire_do_plain(c, "1", "prompts/list", ALLOW));
    for (size_t i = 0; i < sizeof metas / sizeof *metas; i++) {
        const char *whole = wire_do_plain(c, "1", "tools/list", metas[i]);
        assert_false(json_mentions(whole, "hasMore"));
        world_run(w);
        wire_quiet(c);
    }
}

static void never_in_2026_07_28(world *w)
{
    wire *c = world_connect(w, NULL);
    char line[1024];
    add_many(w, &kinds[0], 2 * PIECE, 10);
    char *text = wire_line("1", "tools/list", NULL, "{}");
    const char *at = strstr(text, "\"_meta\":{") + strlen("\"_meta\":{");
    snprintf(line, sizeof line, "%.*s\"allowPartial\":true,%s", (int)(at - text), text,
             at);
    free(text);
    wire_send(c, line);
    const char *whole = wire_response(c, "1");
    assert_true(*json_at(whole, "result.tools.300"));
    assert_false(json_mentions(whole, "hasMore"));
    world_run(w);
    wire_quiet(c);
}

static void long_pages(segue_server_options *options)
{
    options->page_size = PIECE + 44;
}

/* A page stays one page: the cursor comes with its last piece. */
static void pages_in_pieces(world *w)
{
    char params[512] = ALLOW, plain[512] = "";
    int responses = 0, pages = 0;
    merging m;
    wire *c = legacy_connect(w, NULL, NULL);
    add_many(w, &kinds[0], 2 * PIECE, 10);
    do {
        wire_ask_plain(c, "1", "tools/list", params);
        merge_all(c, "1", "tools", &m);
        responses += m.responses;
        pages++;
        const char *cursor = json_at(m.last, "result.nextCursor");
        char next[300] = "";
        snprintf(next, sizeof next, "%s", cursor);
        assert_whole(c, &kinds[0], plain, &m);
        snprintf(plain, sizeof plain, "\"cursor\":%s", next);
        snprintf(params, sizeof params, "\"cursor\":%s," ALLOW, next);
    } while (strcmp(plain, "\"cursor\":"));
    assert_int_equal(pages, 2);
    assert_int_equal(responses, 3);
}

static const char *ask_long(world *w, wire *c)
{
    add_many(w, &kinds[0], 900, 8000);
    wire_stall(c, 1);
    wire_ask_plain(c, "1", "tools/list", ALLOW);
    world_advance(w, 10);
    return "1";
}

/* The server makes pieces as fast as its client reads. */
static void slow_reader(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    const char *r;
    int count = 0;
    add_many(w, &kinds[0], 900, 8000);
    size_t base = w->mem.live, most = 0;
    wire_stall(c, 1);
    wire_ask_plain(c, "1", "tools/list", ALLOW);
    world_advance(w, 10);
    wire_stall(c, 0);
    do {
        r = wire_response(c, "1");
        for (const char *at = r; (at = strstr(at, "\"item")); at++)
            count++;
        if (w->mem.live > base + most)
            most = w->mem.live - base;
    } while (has_more(r));
    assert_int_equal(count, 900);
    assert_true(most < (size_t)3 * 1024 * 1024); /* of a list of 7 MB */
}

/* Counts the responses of the list that come from now on. */
static int count_responses(wire *c)
{
    const char *r;
    int count = 0;
    while ((r = wire_next(c)))
        count += *json_at(r, "result.tools") != 0;
    return count;
}

static void cancelled(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    ask_long(w, c);
    wire_notify(c, "notifications/cancelled", "\"requestId\":1");
    world_advance(w, 10);
    wire_stall(c, 0);
    world_advance(w, 10);
    assert_true(count_responses(c) > 0);
    assert_null(strstr(wire_history(c), "\"item899\""));
    world_advance(w, 10);
    assert_int_equal(count_responses(c), 0);
}

/* Each piece shows the items that exist when it is written. */
static void items_come_and_go(world *w)
{
    char name[32];
    const char *r;
    wire *c = legacy_connect(w, NULL, NULL);
    ask_long(w, c);
    for (int i = 0; i < 890; i++) {
        snprintf(name, sizeof name, "item%d", i);
        assert_int_equal(segue_server_remove(w->server, SEGUE_ITEM_TOOL, name), SEGUE_OK);
    }
    add(w, &kinds[0], 900, 10);
    wire_stall(c, 0);
    do
        r = wire_response(c, "1");
    while (has_more(r));
    assert_non_null(strstr(r, "\"item900\""));
    assert_null(strstr(wire_history(c), "\"item889\""));
    assert_at(r, "result.nextCursor", "");
}

static void connection_lost(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    ask_long(w, c);
    wire_drop(c);
    world_advance(w, 10);
    c = legacy_connect(w, NULL, NULL);
    assert_true(*json_at(wire_do_plain(c, "1", "tools/list", NULL), "result.tools.899"));
}

/* Either the whole list comes, or the conversation ends; a list never has a gap. */
static void no_memory_for_one(world *w)
{
    int failed = 1, cut = 0;
    add_many(w, &kinds[0], 900, 1000);
    for (size_t k = 1; failed && k < 4000; k++) {
        wire *c = legacy_connect(w, NULL, NULL);
        const char *r;
        int count = 0, last = 0, error = 0;
        wire_stall(c, 1);
        test_mem_rearm(&w->mem);
        w->mem.fail_at = k;
        wire_ask_plain(c, "1", "tools/list", ALLOW);
        world_advance(w, 10);
        wire_stall(c, 0);
        world_advance(w, 10);
        failed = w->mem.failed > 0;
        test_mem_rearm(&w->mem);
        while ((r = wire_next(c))) {
            error |= *json_at(r, "error") != 0;
            if (!*json_at(r, "result.tools"))
                continue;
            assert_false(last);
            for (const char *at = r; (at = strstr(at, "\"item")); at++)
                assert_int_equal(atoi(at + strlen("\"item")), count++);
            last = !has_more(r);
        }
        if (last)
            assert_int_equal(count, 900);
        cut += !last && !error;
        wire_drop(c);
        world_advance(w, 100);
    }
    assert_true(cut > 0);
}

/* ---- resources and prompts ---- */

static segue_call *held;

static void hold(void *user, segue_call *call)
{
    (void)user;
    held = call;
}

static void add_held(world *w, int32_t type, const char *json)
{
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = hold;
    assert_int_equal(
        segue_server_add(w->server, type, json, strlen(json), &options, NULL), SEGUE_OK);
}

static segue_status send_json(world *w, const char *json)
{
    segue_content *content;
    assert_int_equal(segue_content_new(w->runtime, &content), SEGUE_OK);
    assert_int_equal(segue_content_add_json(content, json, strlen(json), NULL), SEGUE_OK);
    segue_status status = segue_call_send(held, content, NULL);
    segue_content_free(content);
    world_advance(w, 10);
    return status;
}

static void end_held(world *w)
{
    assert_int_equal(segue_call_complete(held, NULL, NULL), SEGUE_OK);
    segue_call_free(held);
    world_advance(w, 10);
}

#define PART(text) "{\"uri\":\"test://slow\",\"text\":\"" text "\"}"
#define LINE(text)                                                                       \
    "{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"" text "\"}}"

static void add_slow(world *w)
{
    add_held(w, SEGUE_ITEM_RESOURCE, "{\"uri\":\"test://slow\",\"name\":\"slow\"}");
    add_held(w, SEGUE_ITEM_PROMPT, "{\"name\":\"slow\"}");
}

static void resources_grow(world *w)
{
    merging m = {0};
    add_slow(w);
    wire *c = legacy_connect(w, NULL, NULL);
    wire_ask_plain(c, "1", "resources/read", "\"uri\":\"test://slow\"," ALLOW);
    world_advance(w, 10);
    assert_int_equal(send_json(w, PART("a")), SEGUE_OK);
    const char *r = wire_response(c, "1");
    assert_at(r, "result._meta.hasMore", "true");
    assert_at(r, "result._meta.index", "0");
    merge(&m, r, "contents");
    assert_int_equal(send_json(w, PART("b")), SEGUE_OK);
    end_held(w);
    do
        merge(&m, wire_response(c, "1"), "contents");
    while (has_more(m.last));
    assert_string_equal(m.items, PART("a") "," PART("b"));
    free(m.items);
    wire_quiet(c);
}

static void prompts_grow(world *w)
{
    merging m = {0};
    add_slow(w);
    wire *c = legacy_connect(w, NULL, NULL);
    wire_ask_plain(c, "1", "prompts/get", "\"name\":\"slow\"," ALLOW);
    world_advance(w, 10);
    assert_int_equal(send_json(w, LINE("a")), SEGUE_OK);
    merge(&m, wire_response(c, "1"), "messages");
    assert_true(has_more(m.last));
    assert_int_equal(send_json(w, LINE("b")), SEGUE_OK);
    end_held(w);
    do
        merge(&m, wire_response(c, "1"), "messages");
    while (has_more(m.last));
    assert_string_equal(m.items, LINE("a") "," LINE("b"));
    free(m.items);
    wire_quiet(c);
}

static void whole_for_others(world *w)
{
    add_slow(w);
    wire *old = legacy_connect(w, NULL, NULL);
    wire *c = world_connect(w, NULL);
    char line[1024];
    wire_ask_plain(old, "1", "resources/read", "\"uri\":\"test://slow\"");
    world_advance(w, 10);
    assert_int_equal(send_json(w, PART("a")), SEGUE_OK);
    wire_quiet(old);
    end_held(w);
    assert_at(wire_response(old, "1"), "result", "{\"contents\":[" PART("a") "]}");
    char *text = wire_line("1", "resources/read", "\"uri\":\"test://slow\"", "{}");
    const char *at = strstr(text, "\"_meta\":{") + strlen("\"_meta\":{");
    snprintf(line, sizeof line, "%.*s\"allowPartial\":true,%s", (int)(at - text), text,
             at);
    free(text);
    wire_send(c, line);
    world_advance(w, 10);
    assert_int_equal(send_json(w, PART("a")), SEGUE_OK);
    wire_quiet(c);
    end_held(w);
    assert_at(wire_response(c, "1"), "result.contents", "[" PART("a") "]");
    wire_quiet(c);
}

/* ---- the text of a resource ---- */

static segue_status send_text(world *w, const char *text)
{
    segue_status status = segue_call_send_text(held, text, strlen(text), NULL);
    world_advance(w, 10);
    return status;
}

static wire *read_slow(world *w, const char *more)
{
    wire *c = legacy_connect(w, NULL, NULL);
    char params[128];
    snprintf(params, sizeof params, "\"uri\":\"test://slow\"%s", more);
    wire_ask_plain(c, "1", "resources/read", params);
    world_advance(w, 10);
    return c;
}

#define BEGUN(text)                                                                      \
    "{\"uri\":\"test://slow\",\"mimeType\":\"text/plain\",\"text\":\"" text "\"}"
#define OTHER "{\"uri\":\"test://other\",\"text\":\"other\"}"

static void assert_piece(wire *c, const char *contents, const char *place)
{
    const char *r = wire_response(c, "1");
    char path[64];
    assert_true(has_more(r));
    assert_at(r, "result.contents", contents);
    snprintf(path, sizeof path, "%s", json_at(r, "result._meta.index"));
    assert_string_equal(path, place);
}

/* One text, and the other contents where they were sent. */
static void a_text_grows(world *w)
{
    add_slow(w);
    wire *c = read_slow(w, "," ALLOW);
    assert_int_equal(send_text(w, "con"), SEGUE_OK);
    assert_piece(c, "[" BEGUN("con") "]", "0");
    assert_int_equal(send_text(w, "tent"), SEGUE_OK);
    assert_piece(c, "[" PART("tent") "]", "0");
    assert_int_equal(send_json(w, OTHER), SEGUE_OK);
    assert_piece(c, "[" OTHER "]", "1");
    assert_int_equal(send_text(w, " end"), SEGUE_OK);
    assert_piece(c, "[" PART(" end") "]", "0");
    end_held(w);
    assert_at(wire_response(c, "1"), "result", "{\"contents\":[]}");
    wire_quiet(c);
}

/* The same handler, for one who does not ask and in 2026-07-28. */
static void a_text_is_whole_for_others(world *w)
{
    add_slow(w);
    for (int modern = 0; modern < 2; modern++) {
        wire *c = modern ? world_connect(w, NULL) : read_slow(w, "");
        if (modern)
            wire_ask(c, "1", "resources/read", "\"uri\":\"test://slow\"", NULL);
        world_advance(w, 10);
        assert_int_equal(send_text(w, "con"), SEGUE_OK);
        assert_int_equal(send_text(w, "tent"), SEGUE_OK);
        assert_int_equal(send_json(w, OTHER), SEGUE_OK);
        assert_int_equal(send_text(w, " end"), SEGUE_OK);
        wire_quiet(c);
        end_held(w);
        const char *whole = wire_response(c, "1");
        assert_at(whole, "result.contents", "[" BEGUN("content end") "," OTHER "]");
        assert_null(strstr(whole, "dev.segue"));
    }
}

static void a_text_begins_anew(world *w)
{
    add_held(w, SEGUE_ITEM_RESOURCE,
             "{\"uri\":\"test://slow\",\"name\":\"slow\",\"mimeType\":\"a/b\"}");
    wire *c = read_slow(w, "," ALLOW);
    assert_int_equal(send_text(w, "wrong"), SEGUE_OK);
    assert_at(wire_response(c, "1"), "result.contents.0.mimeType", "\"a/b\"");
    assert_int_equal(segue_call_replace(held, NULL), SEGUE_OK);
    assert_int_equal(send_text(w, "ri"), SEGUE_OK);
    const char *r = wire_response(c, "1");
    assert_at(r, "result._meta.mergeStrategy", "\"replace\"");
    assert_at(r, "result._meta.index", "0");
    assert_at(r, "result.contents.0.mimeType", "\"a/b\"");
    assert_int_equal(send_text(w, "ght"), SEGUE_OK);
    assert_piece(c, "[" PART("ght") "]", "0");
    end_held(w);
}

static void little_is_kept(segue_server_options *options)
{
    options->max_result_bytes = 1000;
}

/* What was sent does not count against the limit; what is collected does. */
static void a_text_larger_than_the_limit(world *w)
{
    char part[200];
    add_slow(w);
    memset(part, 'x', sizeof part);
    part[sizeof part - 1] = 0;
    wire *c = read_slow(w, "," ALLOW);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(send_text(w, part), SEGUE_OK);
        assert_true(has_more(wire_response(c, "1")));
    }
    end_held(w);
    assert_at(wire_response(c, "1"), "result", "{\"contents\":[]}");
    c = read_slow(w, "");
    segue_status status = SEGUE_OK;
    for (int i = 0; i < 20 && status == SEGUE_OK; i++)
        status = send_text(w, part);
    assert_int_equal(status, SEGUE_E_LIMIT);
    segue_call_free(held);
    const char *refused = wire_response(c, "1");
    assert_at(refused, "error.data.reason", "\"partial_results_required\"");
    assert_at(refused, "error.message",
              "\"The result is too large for one answer: max_result_bytes is 1000; ask "
              "for it in pieces (allowPartial), or raise the limit on the server\"");
    c = world_connect(w, NULL);
    wire_ask(c, "1", "resources/read", "\"uri\":\"test://slow\"", NULL);
    world_advance(w, 10);
    for (status = SEGUE_OK; status == SEGUE_OK;)
        status = send_text(w, part);
    assert_int_equal(status, SEGUE_E_LIMIT);
    segue_call_free(held);
    assert_at(wire_response(c, "1"), "error.message",
              "\"The result is too large for one answer: max_result_bytes is 1000; raise "
              "the limit on the server\"");
}

/* A prompt has messages and no text of its own, and only a tool's blocks have names. */
static void no_text_of_others(world *w)
{
    add_slow(w);
    wire *c = legacy_connect(w, NULL, NULL);
    wire_ask_plain(c, "1", "prompts/get", "\"name\":\"slow\"," ALLOW);
    world_advance(w, 10);
    assert_int_equal(send_text(w, "a"), SEGUE_E_INVALID);
    end_held(w);
    wire_response(c, "1");
    read_slow(w, "");
    assert_int_equal(send_text(w, "a"), SEGUE_OK);
    assert_int_equal(segue_call_extend_text(held, 0, "b", 1, NULL), SEGUE_E_INVALID);
    end_held(w);
}

static void without_pieces(segue_server_options *options)
{
    options->dialects_off = SEGUE_DIALECT_PARTIAL;
}

static void switched_off(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    add_many(w, &kinds[0], 2 * PIECE, 10);
    const char *whole = wire_do_plain(c, "1", "tools/list", ALLOW);
    assert_true(*json_at(whole, "result.tools.300"));
    assert_false(json_mentions(whole, "hasMore"));
}

#define HERE (ONLY_HERE | ONE_DRIVE)

static const scenario scenarios[] = {
    {"R-776-31 R-776-7 a long list comes in several responses", long_lists, HERE, NULL},
    {"R-776-31 in each handshake revision", in_other_revisions, HERE, NULL},
    {"R-776-31 a list of large items comes in several responses", large_items, HERE,
     NULL},
    {"R-776-31 R-776-14 what fits one response is one", one_answer, HERE, NULL},
    {"R-776-31 never in 2026-07-28", never_in_2026_07_28, HERE, NULL},
    {"R-776-31 a page stays a page", pages_in_pieces, HERE, long_pages},
    {"R-776-31 R-776-28 a long list waits for a slow reader", slow_reader, HERE, NULL},
    {"R-776-31 R-776-26 nothing of a list comes after a cancel", cancelled, HERE, NULL},
    {"R-776-31 items come and go between pieces", items_come_and_go, HERE, NULL},
    {"R-776-31 a connection is lost between pieces", connection_lost, HERE, NULL},
    {"R-776-31 no list has a hole", no_memory_for_one, HERE, NULL},
    {"R-776-31 a resource comes as it is made", resources_grow, ONLY_HERE, NULL},
    {"R-776-31 a prompt comes as it is made", prompts_grow, ONLY_HERE, NULL},
    {"R-776-31 R-776-14 a resource is whole for others", whole_for_others, HERE, NULL},
    {"R-776-32 the text of a resource comes in pieces", a_text_grows, HERE, NULL},
    {"R-776-32 R-776-14 the text of a resource is whole for others",
     a_text_is_whole_for_others, HERE, NULL},
    {"R-776-32 R-776-11 the text of a resource begins anew", a_text_begins_anew, HERE,
     NULL},
    {"R-776-32 R-776-16 a text larger than the limit passes in pieces",
     a_text_larger_than_the_limit, HERE, little_is_kept},
    {"R-776-32 only tools and resources have texts", no_text_of_others, HERE, NULL},
    {"R-C-16 switched off there are no pieces of lists", switched_off, HERE,
     without_pieces},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
