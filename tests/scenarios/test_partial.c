/* The result of a plain call as it grows: further responses in the handshake eras (PR
 * 776), notifications in 2026-07-28 (SEP-2998). */
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
#define CAPS_PARTIAL "{\"partialResults\":{}}"
#define TOKEN "\"partialResultToken\":\"prt\","

static void ask_plain(wire *c, const char *id, const char *tool, const char *arguments,
                      const char *meta)
{
    char params[1024];
    snprintf(params, sizeof params, "\"name\":\"%s\",\"arguments\":{%s}%s%s", tool,
             arguments ? arguments : "", meta ? ",\"_meta\":" : "", meta ? meta : "");
    wire_ask_plain(c, id, "tools/call", params);
}

static void ask_modern(wire *c, const char *id, const char *meta, const char *caps,
                       const char *params)
{
    char line[2048];
    char *text = wire_line(id, "tools/call", params, caps);
    const char *at = strstr(text, "\"_meta\":{") + strlen("\"_meta\":{");
    snprintf(line, sizeof line, "%.*s%s%s", (int)(at - text), text, meta, at);
    free(text);
    wire_send(c, line);
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
    static const char *const metas[] = {NULL,
                                        "{\"allowPartial\":false}",
                                        "{\"allowPartial\":\"yes\"}",
                                        "{\"allowPartial\":1}",
                                        "{\"allowPartial\":null}",
                                        "{\"partialResultToken\":\"prt\"}"};
    wire *c = legacy_connect(w, NULL, "{\"partialResults\":{}}");
    char id[16];
    for (size_t i = 0; i < sizeof metas / sizeof *metas; i++) {
        snprintf(id, sizeof id, "%d", (int)i + 1);
        ask_plain(c, id, "story", STORY, metas[i]);
        world_advance(w, 1000);
        const char *whole = wire_response(c, id);
        assert_true(*json_at(whole, "result.content.3"));
        assert_false(json_mentions(whole, "hasMore"));
    }
    assert_null(strstr(wire_history(c), "partial_result"));
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

/* Each era has its own way for a large result, and one block is never split. */
static void told_what_to_do(world *w)
{
    wire *old = legacy_connect(w, NULL, NULL);
    wire *c = world_connect(w, NULL);
    ask_plain(old, "1", "big", BIG, NULL);
    ask_plain(old, "2", "big", BIG, ALLOW);
    ask_modern(c, "1", TOKEN, CAPS_PARTIAL, "\"name\":\"big\",\"arguments\":{" BIG "}");
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
    r = wire_response(c, "1");
    assert_at(r, "error.message",
              "\"The result is too large for one answer:" IS
              "declare tasks in the client, so that the call runs as one, or raise the "
              "limit on the server\"");
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

/* ---- PN ---- */

#define TELL "\"name\":\"story\",\"arguments\":{" STORY "}"

static void notified(world *w)
{
    wire *c = world_connect(w, NULL);
    char content[4096] = "[", seq[16];
    ask_modern(c, "1", TOKEN, CAPS_PARTIAL, TELL);
    for (int i = 0; i < 4; i++) {
        world_advance(w, 10);
        const char *piece = wire_notification(c, "notifications/tools/partial_result");
        snprintf(seq, sizeof seq, "%d", i);
        assert_at(piece, "params.partialResultToken", "\"prt\"");
        assert_at(piece, "params.seq", seq);
        snprintf(content + strlen(content), sizeof content - strlen(content), "%s%s",
                 i ? "," : "", json_at(piece, "params.content.0"));
        if (!i)
            assert_golden(piece, "partial_result");
    }
    strcat(content, "]");
    world_advance(w, 100);
    const char *result = wire_response(c, "1");
    assert_at(result, "result.content", content);
    assert_at(result, "result.resultType", "\"complete\"");
    wire_quiet(c);
}

static const char *next_piece(wire *c)
{
    return wire_notification(c, "notifications/tools/partial_result");
}

/* A member beside the content goes once, with the segment that follows it. */
static void members_notified(world *w)
{
    wire *c = world_connect(w, NULL);
    ask_modern(c, "1", TOKEN, CAPS_PARTIAL, "\"name\":\"film\",\"arguments\":{}");
    world_advance(w, 100);
    assert_at(next_piece(c), "params.structuredContent", "");
    assert_at(next_piece(c), "params.structuredContent", "{\"frames\":3}");
    const char *last = next_piece(c);
    assert_at(last, "params.structuredContent", "");
    assert_at(last, "params.final", ""); /* the segment was sent before the call ended */
    assert_at(wire_response(c, "1"), "result.structuredContent", "{\"frames\":3}");
    wire_quiet(c);
}

/* A slow reader gets the pieces after the end of the call: then the last one is known. */
static void the_last_is_marked(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *piece = NULL;
    ask_modern(c, "1", TOKEN, CAPS_PARTIAL,
               "\"name\":\"story\",\"arguments\":{\"n\":400,\"chunk\":3400,"
               "\"delayMs\":1}");
    wire_stall(c, 1);
    world_advance(w, 1000);
    wire_stall(c, 0);
    for (int i = 0; i < 400; i++) {
        if (piece)
            assert_at(piece, "params.final", "");
        piece = next_piece(c);
    }
    assert_at(piece, "params.final", "true");
    assert_true(*json_at(wire_response(c, "1"), "result.content.399"));
    wire_quiet(c);
}

static void not_notified(world *w)
{
    wire *c = world_connect(w, NULL);
    ask_modern(c, "1", TOKEN, "{}", TELL);
    ask_modern(c, "2", "", CAPS_PARTIAL, TELL);
    ask_modern(c, "3", "\"partialResultToken\":{},", CAPS_PARTIAL, TELL);
    ask_modern(c, "4", "\"allowPartial\":true,", "{}", TELL);
    world_advance(w, 1000);
    static const char *const ids[] = {"1", "2", "3", "4"};
    for (size_t i = 0; i < 4; i++)
        assert_true(*json_at(wire_response(c, ids[i]), "result.content.3"));
    assert_null(strstr(wire_history(c), "partial_result"));
    assert_null(strstr(wire_history(c), "hasMore"));
    wire_quiet(c);
}

/* The notifications end when the call becomes a task (R-776-20). */
static void became_a_task(world *w)
{
    wire *c = world_connect(w, NULL);
    ask_modern(c, "1", TOKEN,
               "{\"partialResults\":{},\"extensions\":{"
               "\"io.modelcontextprotocol/tasks\":{}}}",
               TELL);
    assert_at(wire_response(c, "1"), "result.resultType", "\"task\"");
    world_advance(w, 1000);
    assert_null(strstr(wire_history(c), "partial_result"));
    wire_quiet(c);
}

/* Returns whether tools/list has the hint for the tool. */
static int is_hinted(const char *list, const char *tool)
{
    char mark[64];
    snprintf(mark, sizeof mark, "{\"name\":\"%s\"", tool);
    const char *at = strstr(list, mark);
    const char *hint = at ? strstr(at, "\"streamingHint\":true") : NULL;
    const char *next = at ? strstr(at + 1, "{\"name\":") : NULL;
    assert_non_null(at);
    return hint && (!next || hint < next);
}

static void hinted(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *list = wire_do(c, "1", "tools/list", NULL, CAPS_PARTIAL);
    assert_true(is_hinted(list, "story"));
    assert_false(is_hinted(list, "greet"));
    assert_null(strstr(wire_do(c, "2", "tools/list", NULL, NULL), "streamingHint"));
}

static void without_pieces(segue_server_options *options)
{
    options->dialects_off = SEGUE_DIALECT_PARTIAL | SEGUE_DIALECT_PARTIAL_RESULTS;
}

static void switched_off(world *w)
{
    wire *old = legacy_connect(w, NULL, NULL);
    wire *c = world_connect(w, NULL);
    ask_plain(old, "1", "story", STORY, ALLOW);
    ask_modern(c, "1", TOKEN, CAPS_PARTIAL, TELL);
    world_advance(w, 1000);
    assert_true(*json_at(wire_response(old, "1"), "result.content.3"));
    assert_true(*json_at(wire_response(c, "1"), "result.content.3"));
    assert_null(strstr(wire_history(old), "hasMore"));
    assert_null(strstr(wire_history(c), "partial_result"));
}

static const scenario scenarios[] = {
    {"AS-79 R-776-3 R-776-12 a result in several responses", as_it_grows, 0, NULL},
    {"AS-79 in each handshake revision", in_other_revisions, ONE_DRIVE | ONLY_HERE, NULL},
    {"AS-81 one response is the result", all_is_there, 0, NULL},
    {"AS-80 AS-90 AS-92 a client that did not ask gets one whole response", nobody_asked,
     0, NULL},
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
    {"R-776-7 a piece that was lost is followed by nothing", no_memory_for_one,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-91 notifications beside the request", notified, 0, NULL},
    {"AS-91 R-776-17 members come by notification", members_notified, 0, NULL},
    {"AS-91 R-776-17 the last piece is marked when it is known", the_last_is_marked,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-91 AS-92 both opt-ins are needed", not_notified, 0, NULL},
    {"R-776-20 a task ends the pieces", became_a_task, ONE_DRIVE, NULL},
    {"R-776-17 a tool that streams says so to who asks", hinted, ONE_DRIVE, NULL},
    {"R-C-16 switched off there are no pieces", switched_off, ONE_DRIVE | ONLY_HERE,
     without_pieces},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
