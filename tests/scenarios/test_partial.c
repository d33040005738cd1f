/* The result of a plain call as it grows, by further responses in the handshake versions
 * (PR 776). */
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

#define ALLOW "{\"allowPartial\":true}"

static void ask_plain(wire *c, const char *id, const char *tool, const char *arguments,
                      const char *meta)
{
    char params[1024];
    snprintf(params, sizeof params, "\"name\":\"%s\",\"arguments\":{%s}%s%s", tool,
             arguments ? arguments : "", meta ? ",\"_meta\":" : "", meta ? meta : "");
    wire_ask_plain(c, id, "tools/call", params);
}

static int has_more(const char *response)
{
    return !strcmp(json_at(response, "result._meta.hasMore"), "true");
}

/* How a client of P merges responses: it joins the blocks. */
typedef struct merging {
    wire *c;
    const char *id;
    char content[16384];
    int blocks, responses;
    const char *last;
} merging;

static void take_response(merging *m)
{
    char path[64], index[16];
    m->last = wire_response(m->c, m->id);
    m->responses++;
    assert_true(*json_at(m->last, "result.content"));
    if (strstr(m->last, "\"mergeStrategy\":\"replace\"")) {
        m->content[0] = 0;
        m->blocks = 0;
    }
    snprintf(index, sizeof index, "%d", m->blocks);
    if (*json_at(m->last, "result.content.0") && has_more(m->last))
        assert_at(m->last, "result._meta.index", index);
    for (int i = 0;; i++, m->blocks++) {
        snprintf(path, sizeof path, "result.content.%d", i);
        const char *block = json_at(m->last, path);
        if (!*block)
            return;
        snprintf(m->content + strlen(m->content), sizeof m->content - strlen(m->content),
                 "%s%s", m->blocks ? "," : "", block);
    }
}

static void merge_all(merging *m)
{
    do {
        if (m->c->w->place != WORLD_STDIO)
            world_advance(m->c->w, 10);
        take_response(m);
    } while (has_more(m->last));
}

/* Makes the same call as a client that does not know partial results. */
static void assert_whole(merging *m, const char *tool, const char *arguments)
{
    char content[sizeof m->content + 2];
    ask_plain(m->c, "\"whole\"", tool, arguments, NULL);
    world_advance(m->c->w, 1000);
    const char *whole = wire_response(m->c, "\"whole\"");
    snprintf(content, sizeof content, "[%s]", m->content);
    assert_at(whole, "result.content", content);
    assert_false(json_mentions(whole, "hasMore"));
    assert_false(json_mentions(whole, "index"));
}

/* ---- P ---- */

#define STORY "\"n\":4,\"delayMs\":10"

static void as_it_grows(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    merging m = {.c = c, .id = "1"};
    ask_plain(c, "1", "story", STORY, ALLOW);
    merge_all(&m);
    if (w->place != WORLD_STDIO)
        assert_true(m.responses >= 4);
    assert_int_equal(m.blocks, 4);
    assert_false(json_mentions(m.last, "hasMore"));
    assert_whole(&m, "story", STORY);
    wire_quiet(c);
}

static void in_other_revisions(world *w)
{
    static const char *const versions[] = {"2024-11-05", "2025-03-26", "2025-06-18"};
    for (size_t i = 0; i < 3; i++) {
        wire *c = legacy_connect_as(w, NULL, versions[i], NULL);
        merging m = {.c = c, .id = "1"};
        ask_plain(c, "1", "story", STORY, ALLOW);
        merge_all(&m);
        assert_int_equal(m.blocks, 4);
    }
}

static void all_is_there(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    ask_plain(c, "1", "greet", "\"name\":\"X\"", ALLOW);
    const char *only = wire_response(c, "1");
    assert_at(only, "result.content.0.text", "\"Hello, X!\"");
    assert_at(only, "result._meta", "");
    wire_quiet(c);
}

static void nobody_asked(world *w)
{
    static const char *const metas[] = {
        NULL, "{\"allowPartial\":false}", "{\"allowPartial\":\"yes\"}",
        "{\"allowPartial\":1}", "{\"allowPartial\":null}"};
    wire *c = legacy_connect(w, NULL, NULL);
    char id[16];
    for (size_t i = 0; i < sizeof metas / sizeof *metas; i++) {
        snprintf(id, sizeof id, "%d", (int)i + 1);
        ask_plain(c, id, "story", STORY, metas[i]);
        world_advance(w, 1000);
        const char *whole = wire_response(c, id);
        assert_true(*json_at(whole, "result.content.3"));
        assert_false(json_mentions(whole, "hasMore"));
    }
    wire_quiet(c);
}

static void not_in_2026_07_28(world *w)
{
    wire *c = world_connect(w, NULL);
    char line[2048];
    char *text = wire_line("1", "tools/call",
                           "\"name\":\"story\",\"arguments\":{" STORY "}", "{}");
    const char *at = strstr(text, "\"_meta\":{") + strlen("\"_meta\":{");
    snprintf(line, sizeof line, "%.*s\"allowPartial\":true,%s", (int)(at - text), text,
             at);
    free(text);
    wire_send(c, line);
    world_advance(w, 1000);
    assert_true(*json_at(wire_response(c, "1"), "result.content.3"));
    assert_null(strstr(wire_history(c), "hasMore"));
    wire_quiet(c);
}

static void members_and_replaced(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    merging m = {.c = c, .id = "1"};
    ask_plain(c, "1", "fields", NULL, ALLOW);
    world_advance(w, 1000);
    merge_all(&m);
    assert_at(m.last, "result.structuredContent", "{\"a\":2}");
    assert_string_equal(m.content, "{\"type\":\"text\",\"text\":\"right\"}");
    assert_non_null(strstr(m.last, "\"com.example/k\":true"));
}

static void failures(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    merging m = {.c = c, .id = "1"};
    ask_plain(c, "1", "fail_after", "\"n\":2,\"delayMs\":10", ALLOW);
    merge_all(&m);
    assert_at(m.last, "result.isError", "true");
    assert_int_equal(m.blocks, 3);
    ask_plain(c, "2", "fail_after", "\"n\":0", ALLOW);
    const char *none = wire_response(c, "2");
    assert_at(none, "result.isError", "true");
    assert_at(none, "result._meta", "");
}

static void ids_alike(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    merging number = {.c = c, .id = "1"}, text = {.c = c, .id = "\"1\""};
    ask_plain(c, "1", "story", "\"n\":3,\"delayMs\":10", ALLOW);
    ask_plain(c, "\"1\"", "story", "\"n\":5,\"delayMs\":10", ALLOW);
    world_advance(w, 1000);
    merge_all(&number);
    merge_all(&text);
    assert_int_equal(number.blocks, 3);
    assert_int_equal(text.blocks, 5);
}

static void cancelled(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    merging m = {.c = c, .id = "1"};
    ask_plain(c, "1", "story", "\"n\":50,\"delayMs\":10", ALLOW);
    while (m.blocks < 3) {
        world_advance(w, 10);
        take_response(&m);
    }
    while (wire_next(c))
        m.blocks++; /* sent before the cancel */
    wire_notify(c, "notifications/cancelled", "\"requestId\":1");
    world_advance(w, 1000);
    wire_quiet(c);
    if (w->place == WORLD_HTTP)
        wire_expect_status(c, 200); /* the stream of the call has ended */
    assert_true(m.blocks <= 4);
}

/* S decides when a task is requested (C-14). */
static void beside_modes(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    wire_ask_plain(c, "1", "tools/call",
                   "\"name\":\"story\",\"arguments\":{" STORY
                   "},\"task\":{\"responseModes\":[\"streaming\"]},\"_meta\":" ALLOW);
    world_advance(w, 1000);
    for (const char *r = NULL; !r || strcmp(json_at(r, "result.isComplete"), "true");)
        r = wire_response(c, "1");
    assert_null(strstr(wire_history(c), "hasMore"));
    assert_null(strstr(wire_history(c), "\"index\""));
}

/* Without an opt-in the server would have to hold the whole result (R-776-16). */
static void too_large_to_collect(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    ask_plain(c, "1", "story", "\"n\":20000,\"chunk\":3400", NULL);
    world_advance(w, 100);
    const char *refused = wire_response(c, "1");
    assert_code(refused, -32603);
    assert_at(refused, "error.data.reason", "\"partial_results_required\"");
}

static void little_is_collected(segue_server_options *options)
{
    options->max_result_bytes = 10000;
}

#define BIG "\"bytes\":12000"
#define IS " max_result_bytes is 10000; "

/* The client may ask for pieces, but one block is never split. */
static void told_what_to_do(world *w)
{
    wire *old = legacy_connect(w, NULL, NULL);
    ask_plain(old, "1", "big", BIG, NULL);
    ask_plain(old, "2", "big", BIG, ALLOW);
    world_advance(w, 1000);
    const char *r = wire_response(old, "1");
    assert_at(
        r, "error.message",
        "\"The result is too large for one answer:" IS
        "ask for it in pieces (allowPartial) or as a task, or raise the limit on the "
        "server\"");
    r = wire_response(old, "2");
    assert_at(r, "error.message",
              "\"A part of the result is too large:" IS
              "send it in smaller blocks, or raise the limit on the server\"");
    assert_at(r, "error.data.reason", "\"limit\"");
}

/* 64 MiB pass through a server that holds a few of them. */
static void slow_reader(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    size_t base = w->mem.live, most = 0;
    int blocks = 0;
    const char *r;
    wire_stall(c, 1);
    ask_plain(c, "1", "story", "\"n\":20000,\"chunk\":3400", ALLOW);
    world_advance(w, 100);
    wire_stall(c, 0);
    do {
        r = wire_response(c, "1");
        for (const char *at = r; (at = strstr(at, "segment ")); at++)
            blocks++;
        if (w->mem.live > base + most)
            most = w->mem.live - base;
    } while (has_more(r));
    assert_int_equal(blocks, 20000);
    assert_true(most < (size_t)8 * 1024 * 1024);
}

/* ---- fields that are larger than the room for unsent output ---- */

#define FIELDS 3
#define FIELD_BYTES ((size_t)600 * 1024)

typedef struct writer {
    int fields, texts; /* what was accepted */
    char *value;
} writer;

static void write_more(void *user, segue_call *call)
{
    writer *t = user;
    segue_status status = SEGUE_OK;
    while (status == SEGUE_OK && t->texts < 2) {
        char name[8];
        snprintf(name, sizeof name, "f%d", t->fields);
        bool is_field = t->fields < FIELDS;
        status = is_field ? segue_call_set_field(call, name, t->value, FIELD_BYTES, NULL)
                          : segue_call_send_text(call, "text", 4, NULL);
        t->fields += is_field && status == SEGUE_OK;
        t->texts += !is_field && status == SEGUE_OK;
    }
    if (status == SEGUE_E_WOULD_BLOCK)
        return; /* until on_drain */
    assert_int_equal(status, SEGUE_OK);
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void free_writer(void *user)
{
    writer *t = user;
    free(t->value);
    free(t);
}

static void write_fields(void *user, segue_call *call)
{
    segue_call_events events = SEGUE_CALL_EVENTS_INIT;
    writer *t = calloc(1, sizeof *t);
    (void)user;
    assert_non_null(t);
    t->value = malloc(FIELD_BYTES);
    assert_non_null(t->value);
    memset(t->value, 'x', FIELD_BYTES);
    t->value[0] = t->value[FIELD_BYTES - 1] = '"';
    events.user = t;
    events.free_user = free_writer;
    events.on_drain = write_more;
    assert_int_equal(segue_call_watch(call, &events), SEGUE_OK);
    write_more(t, call);
}

/* A producer waits for what its client has still to read. Fields that were read wait for
 * nobody, although they stay in memory. */
static void fields_hold_nobody_up(world *w)
{
    static const char tool[] =
        "{\"name\":\"wide\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = write_fields;
    options.flags = SEGUE_TOOL_INCREMENTAL;
    assert_int_equal(segue_server_add(w->server, SEGUE_ITEM_TOOL, tool, sizeof tool - 1,
                                      &options, NULL),
                     SEGUE_OK);
    wire *c = legacy_connect(w, NULL, NULL);
    ask_plain(c, "1", "wide", NULL, ALLOW);
    world_advance(w, 1000);
    const char *r;
    int texts = 0;
    do {
        r = wire_response(c, "1");
        for (const char *at = r; (at = strstr(at, "\"text\":\"text\"")); at++)
            texts++;
    } while (has_more(r));
    assert_int_equal(texts, 2);
    assert_true(*json_at(r, "result.f2"));
}

/* Checks a call in which an allocation failed after its reader went on: its pieces have
 * no gap, and an end comes only after all of them. Returns 1 when the call was cut. */
static int assert_no_hole(wire *c, int n)
{
    const char *r;
    int blocks = 0, last = 0;
    while ((r = wire_next(c))) {
        if (!*json_at(r, "result.content"))
            continue;
        assert_false(last);
        for (const char *at = r; (at = strstr(at, "segment ")); at++)
            assert_int_equal(atoi(at + strlen("segment ")), ++blocks);
        last = !has_more(r);
    }
    if (last)
        assert_int_equal(blocks, n);
    return blocks && !last;
}

static void no_memory_for_one(world *w)
{
    int failed = 1, cut = 0;
    for (size_t k = 1; failed && k < 4000; k += k < 60 ? 1 : 197) {
        wire *c = legacy_connect(w, NULL, NULL);
        wire_stall(c, 1);
        ask_plain(c, "1", "story", "\"n\":400,\"chunk\":3400", ALLOW);
        world_advance(w, 100);
        test_mem_rearm(&w->mem);
        w->mem.fail_at = k;
        wire_stall(c, 0);
        world_advance(w, 100);
        failed = w->mem.failed > 0;
        test_mem_rearm(&w->mem);
        cut += assert_no_hole(c, 400);
        wire_drop(c);
        world_advance(w, 100);
    }
    assert_true(cut > 0);
}

static void without_pieces(segue_server_options *options)
{
    options->dialects_off = SEGUE_DIALECT_PARTIAL;
}

static void switched_off(world *w)
{
    wire *c = legacy_connect(w, NULL, NULL);
    ask_plain(c, "1", "story", STORY, ALLOW);
    world_advance(w, 1000);
    assert_true(*json_at(wire_response(c, "1"), "result.content.3"));
    assert_null(strstr(wire_history(c), "hasMore"));
}

static const scenario scenarios[] = {
    {"AS-79 R-776-3 R-776-12 a result in several responses", as_it_grows, 0, NULL},
    {"AS-79 in each handshake revision", in_other_revisions, ONE_DRIVE | ONLY_HERE, NULL},
    {"AS-81 one response is the result", all_is_there, 0, NULL},
    {"AS-80 AS-90 AS-92 a client that did not ask gets one whole response", nobody_asked,
     0, NULL},
    {"AS-92 no further responses in 2026-07-28", not_in_2026_07_28, 0, NULL},
    {"AS-83 AS-84 R-776-21 members come with the end, and replacements are announced",
     members_and_replaced, 0, NULL},
    {"AS-85 a failure ends the pieces", failures, 0, NULL},
    {"AS-86 two ids that look alike", ids_alike, 0, NULL},
    {"AS-87 nothing comes after a cancel", cancelled, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-93 response modes win where there are both", beside_modes, 0, NULL},
    {"AS-89 a result too large to be collected", too_large_to_collect,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"R-776-16 a result that is too large says what to do", told_what_to_do,
     ONLY_HERE | ONE_DRIVE, little_is_collected},
    {"AS-89 a large result passes a slow reader", slow_reader, ONLY_HERE | ONE_DRIVE,
     NULL},
    {"R-776-7 fields that were read hold nobody up", fields_hold_nobody_up,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"R-776-7 a piece that was lost is followed by nothing", no_memory_for_one,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"R-C-16 switched off there are no pieces", switched_off, ONE_DRIVE | ONLY_HERE,
     without_pieces},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
