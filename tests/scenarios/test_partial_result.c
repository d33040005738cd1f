/* Partial results by notifications in 2026-07-28 (SEP-2998), on the server. */
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

#define CAPS_PARTIAL "{\"partialResults\":{}}"
#define TOKEN "\"partialResultToken\":\"prt\","
#define STORY "\"n\":4,\"delayMs\":10"

/* Sends a request with these members at the beginning of its _meta. */
static void ask_as(wire *c, const char *id, const char *method, const char *meta,
                   const char *caps, const char *params)
{
    char line[2048];
    char *text = wire_line(id, method, params, caps);
    const char *at = strstr(text, "\"_meta\":{") + strlen("\"_meta\":{");
    snprintf(line, sizeof line, "%.*s%s%s", (int)(at - text), text, meta, at);
    free(text);
    wire_send(c, line);
}

static void ask_modern(wire *c, const char *id, const char *meta, const char *caps,
                       const char *params)
{
    ask_as(c, id, "tools/call", meta, caps, params);
}

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
    world_advance(w, 1000);
    static const char *const ids[] = {"1", "2", "3"};
    for (size_t i = 0; i < 3; i++)
        assert_true(*json_at(wire_response(c, ids[i]), "result.content.3"));
    assert_null(strstr(wire_history(c), "partial_result"));
    assert_null(strstr(wire_history(c), "hasMore"));
    wire_quiet(c);
}

static void not_in_the_handshake_versions(world *w)
{
    wire *c = legacy_connect(w, NULL, CAPS_PARTIAL);
    wire_ask_plain(c, "1", "tools/call",
                   TELL ",\"_meta\":{\"partialResultToken\":\"prt\"}");
    world_advance(w, 1000);
    const char *whole = wire_response(c, "1");
    assert_true(*json_at(whole, "result.content.3"));
    assert_false(json_mentions(whole, "hasMore"));
    assert_null(strstr(wire_history(c), "partial_result"));
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

/* ---- a result that is too large ---- */

static void little_is_collected(segue_server_options *options)
{
    options->max_result_bytes = 10000;
}

/* The result that follows the notifications is whole, so notifications do not help. */
static void told_what_to_do(world *w)
{
    wire *c = world_connect(w, NULL);
    ask_modern(c, "1", TOKEN, CAPS_PARTIAL,
               "\"name\":\"big\",\"arguments\":{\"bytes\":12000}");
    world_advance(w, 1000);
    assert_at(
        wire_response(c, "1"), "error.message",
        "\"The result is too large for one answer: max_result_bytes is 10000; "
        "declare tasks in the client, so that the call runs as a task, or raise the "
        "limit on the server\"");
}

/* ---- texts that go on (R-776-30) ---- */

#define TEXT(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define JOINED "[" TEXT("content 1. Again.") "," TEXT("content 2.") "," TEXT("end") "]"
#define PARTS 6

static const char *const texts[PARTS] = {"\"con\"",    "\"tent 1.\"", "\"cont\"",
                                         "\"ent 2.\"", "\" Again.\"", "\"end\""};
static const char *const places[PARTS] = {"0", "0", "1", "1", "0", "2"};

/* A notification has no index when its number says the same. */
static void texts_go_on(world *w)
{
    wire *c = world_connect(w, NULL);
    ask_modern(c, "1", TOKEN, CAPS_PARTIAL,
               "\"name\":\"two_texts\",\"arguments\":{\"delayMs\":10}");
    for (int i = 0; i < PARTS; i++) {
        const char *piece = wire_notification(c, "notifications/tools/partial_result");
        assert_at(piece, "params.content.0.text", texts[i]);
        char index[48];
        snprintf(index, sizeof index, "\"dev.segue/index\":%s}", places[i]);
        if (i)
            assert_non_null(strstr(piece, index));
        else
            assert_at(piece, "params._meta", "");
        world_advance(w, 10);
    }
    const char *whole = wire_response(c, "1");
    assert_at(whole, "result.content", JOINED);
    assert_non_null(strstr(whole, "\"dev.segue/segments\":6"));
}

/* ---- other requests ---- */

static segue_call *held;

static void hold(void *user, segue_call *call)
{
    (void)user;
    held = call;
}

#define MANY_TOOLS (2 * (int)SGI_GATHER_SEGMENTS)
#define PART "{\"uri\":\"test://slow\",\"text\":\"a\"}"

static void add_slow(world *w)
{
    static const char item[] = "{\"uri\":\"test://slow\",\"name\":\"slow\"}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = hold;
    assert_int_equal(segue_server_add(w->server, SEGUE_ITEM_RESOURCE, item,
                                      sizeof item - 1, &options, NULL),
                     SEGUE_OK);
}

static void send_part(world *w)
{
    segue_content *content;
    assert_int_equal(segue_content_new(w->runtime, &content), SEGUE_OK);
    assert_int_equal(segue_content_add_json(content, PART, strlen(PART), NULL), SEGUE_OK);
    assert_int_equal(segue_call_send(held, content, NULL), SEGUE_OK);
    segue_content_free(content);
    world_advance(w, 10);
}

/* The notification is about tools, so no list comes in pieces. */
static void lists_are_whole(world *w)
{
    char tool[64];
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = hold;
    for (int i = 0; i < MANY_TOOLS; i++) {
        snprintf(tool, sizeof tool, "{\"name\":\"item%d\"}", i);
        assert_int_equal(segue_server_add(w->server, SEGUE_ITEM_TOOL, tool, strlen(tool),
                                          &options, NULL),
                         SEGUE_OK);
    }
    wire *c = world_connect(w, NULL);
    ask_as(c, "1", "tools/list", "\"allowPartial\":true," TOKEN, CAPS_PARTIAL, NULL);
    assert_true(*json_at(wire_response(c, "1"), "result.tools.300"));
    world_run(w);
    wire_quiet(c);
    wire *old = legacy_connect(w, NULL, NULL);
    const char *whole =
        wire_do_plain(old, "1", "tools/list", "\"_meta\":{\"partialResultToken\":\"p\"}");
    assert_true(*json_at(whole, "result.tools.300"));
    assert_false(json_mentions(whole, "hasMore"));
    world_run(w);
    wire_quiet(old);
}

static void a_resource_is_whole(world *w)
{
    add_slow(w);
    wire *c = world_connect(w, NULL);
    ask_as(c, "1", "resources/read", "\"allowPartial\":true," TOKEN, CAPS_PARTIAL,
           "\"uri\":\"test://slow\"");
    world_advance(w, 10);
    send_part(w);
    wire_quiet(c);
    assert_int_equal(segue_call_complete(held, NULL, NULL), SEGUE_OK);
    segue_call_free(held);
    world_advance(w, 10);
    assert_at(wire_response(c, "1"), "result.contents", "[" PART "]");
    wire_quiet(c);
}

static void without_pieces(segue_server_options *options)
{
    options->dialects_off = SEGUE_DIALECT_PARTIAL_RESULTS;
}

static void switched_off(world *w)
{
    wire *c = world_connect(w, NULL);
    ask_modern(c, "1", TOKEN, CAPS_PARTIAL, TELL);
    world_advance(w, 1000);
    assert_true(*json_at(wire_response(c, "1"), "result.content.3"));
    assert_null(strstr(wire_history(c), "partial_result"));
}

static const scenario scenarios[] = {
    {"AS-91 notifications beside the request", notified, 0, NULL},
    {"AS-91 R-776-17 members come by notification", members_notified, 0, NULL},
    {"AS-91 R-776-17 the last piece is marked when it is known", the_last_is_marked,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-91 AS-92 both opt-ins are needed", not_notified, 0, NULL},
    {"AS-92 no notifications in the handshake versions", not_in_the_handshake_versions, 0,
     NULL},
    {"R-776-20 a task ends the pieces", became_a_task, ONE_DRIVE, NULL},
    {"R-776-17 a tool that streams says so to who asks", hinted, ONE_DRIVE, NULL},
    {"R-776-16 a result that is too large says what to do", told_what_to_do,
     ONLY_HERE | ONE_DRIVE, little_is_collected},
    {"R-776-30 text goes on in a block, as notifications", texts_go_on, ONE_DRIVE, NULL},
    {"R-776-31 R-776-14 lists are whole", lists_are_whole, ONLY_HERE | ONE_DRIVE, NULL},
    {"R-776-31 R-776-14 a resource is whole in 2026-07-28", a_resource_is_whole,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"R-C-16 switched off there are no notifications", switched_off,
     ONE_DRIVE | ONLY_HERE, without_pieces},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
