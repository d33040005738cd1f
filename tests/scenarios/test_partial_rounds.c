/* Pieces of a call that asks its client by rounds (PR 776 in DRAFT-2026-v1). The response
 * to the request with the last answers is complete, whatever earlier requests got. */
#include "engine/server/peer.h"
#include "support/draft_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define ELICITS "{\"elicitation\":{}}"
#define YES "{\"action\":\"accept\",\"content\":{\"confirm\":true}}"
#define ALLOW ",\"_meta\":{\"allowPartial\":true}"

/* ---- a tool whose steps the test decides ---- */

static segue_call *held;

static void hold(void *user, segue_call *call)
{
    (void)user;
    held = call;
}

static void answered(void *user, segue_call *call, segue_status status, const char *json,
                     size_t len)
{
    (void)user;
    (void)call;
    (void)json;
    (void)len;
    if (status == SEGUE_OK)
        segue_call_send_text(held, "three", 5, NULL);
}

static void add_holder(world *w)
{
    static const char tool[] = "{\"name\":\"held\"}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = hold;
    options.flags = SEGUE_TOOL_INCREMENTAL;
    options.task = SEGUE_TASK_NEVER;
    assert_int_equal(segue_server_add(w->server, SEGUE_ITEM_TOOL, tool, sizeof tool - 1,
                                      &options, NULL),
                     SEGUE_OK);
}

static void ask(world *w)
{
    static const char form[] =
        "{\"mode\":\"form\",\"message\":\"Sure?\",\"requestedSchema\":{\"type\":"
        "\"object\",\"properties\":{\"confirm\":{\"type\":\"boolean\"}}}}";
    assert_int_equal(segue_call_require_input(held, NULL, "elicitation/create", form,
                                              sizeof form - 1, answered, NULL, NULL,
                                              NULL),
                     SEGUE_OK);
    world_run(w);
}

static void say(world *w, const char *text)
{
    segue_call_send_text(held, text, strlen(text), NULL);
    world_advance(w, 100);
}

/* ---- a client ---- */

/* Connects an anonymous caller from elsewhere: its calls never become tasks. */
static wire *stranger(world *w)
{
    add_holder(w);
    wire *c = draft_connect(w, NULL, ELICITS);
    TAILQ_FIRST(&w->server->peers)->stranger = true;
    return c;
}

/* Makes a call that sends two pieces and asks; returns the state in its answer. */
static const char *first_request(world *w, wire *c)
{
    wire_ask_plain(c, "1", "tools/call", "\"name\":\"held\",\"arguments\":{}" ALLOW);
    world_run(w);
    assert_int_equal(
        segue_call_set_field(held, "structuredContent", "{\"a\":1}", 7, NULL), SEGUE_OK);
    say(w, "one");
    const char *r = wire_response(c, "1");
    assert_at(r, "result.content.0.text", "\"one\"");
    assert_at(r, "result._meta.hasMore", "true");
    say(w, "two");
    r = wire_response(c, "1");
    assert_at(r, "result.content.0.text", "\"two\"");
    ask(w);
    r = wire_response(c, "1");
    assert_at(r, "result.resultType", "\"incomplete\"");
    return draft_state_of(r);
}

static void second_request(wire *c, const char *id, const char *state, const char *meta)
{
    char params[2048];
    snprintf(params, sizeof params,
             "\"name\":\"held\",\"arguments\":{},\"requestState\":%s,\"inputResponses\":{"
             "\"input-1\":" YES "}%s",
             state, meta);
    wire_ask_plain(c, id, "tools/call", params);
}

static void complete(world *w)
{
    world_advance(w, 100);
    segue_call_complete(held, NULL, NULL);
    segue_call_free(held);
    world_advance(w, 100);
}

/* ---- scenarios ---- */

static void the_answer_is_whole(world *w)
{
    wire *c = stranger(w);
    const char *state = first_request(w, c);
    second_request(c, "2", state, "");
    complete(w);
    const char *r = wire_response(c, "2");
    assert_at(r, "result.content.0.text", "\"one\"");
    assert_at(r, "result.content.1.text", "\"two\"");
    assert_at(r, "result.content.2.text", "\"three\"");
    assert_at(r, "result.structuredContent.a", "1");
    wire_quiet(c);
}

/* The client drops the pieces of the first request, and they are sent again. */
static void the_pieces_begin_anew(world *w)
{
    static const char *const texts[] = {"\"one\"", "\"two\"", "\"three\""};
    char path[64];
    size_t at = 0;
    wire *c = stranger(w);
    const char *state = first_request(w, c);
    second_request(c, "2", state, ALLOW);
    complete(w);
    const char *r = wire_response(c, "2");
    assert_at(r, "result._meta.mergeStrategy", "\"replace\"");
    for (;; r = wire_response(c, "2")) {
        for (int i = 0;; i++) {
            snprintf(path, sizeof path, "result.content.%d.text", i);
            if (!*json_at(r, path))
                break;
            assert_true(at < 3);
            assert_at(r, path, texts[at++]);
        }
        if (strcmp(json_at(r, "result._meta.hasMore"), "true"))
            break;
    }
    assert_int_equal(at, 3);
    assert_at(r, "result.structuredContent.a", "1");
    wire_quiet(c);
}

/* Pieces that come again have numbers. So the client knows which it has shown, even if
 * some of them were replaced meanwhile (found by the simulation). */
static void pieces_that_come_again_are_numbered(world *w)
{
    wire *c = stranger(w);
    const char *state = first_request(w, c);
    second_request(c, "2", state, ALLOW);
    world_advance(w, 100);
    assert_int_equal(segue_call_replace(held, NULL), SEGUE_OK);
    say(w, "four");
    const char *r = wire_response(c, "2");
    assert_at(r, "result.content.0.text", "\"one\"");
    assert_non_null(strstr(r, "\"dev.segue/seq\":1"));
    do
        r = wire_response(c, "2");
    while (strcmp(json_at(r, "result.content.0.text"), "\"four\"") != 0);
    assert_at(r, "result._meta.mergeStrategy", "\"replace\"");
    assert_non_null(strstr(r, "\"dev.segue/seq\":4"));
    complete(w);
    wire_response(c, "2");
    wire_quiet(c);
}

static void little_is_collected(segue_server_options *options)
{
    draft_on(options);
    options->max_result_bytes = 10000;
}

/* Pieces do not help there, so no client is told to ask for them. */
static void too_large_says_what_to_do(world *w)
{
    wire *c = stranger(w);
    wire_ask_plain(c, "1", "tools/call",
                   "\"name\":\"big\",\"arguments\":{\"bytes\":12000}" ALLOW);
    world_advance(w, 1000);
    const char *r = wire_response(c, "1");
    assert_at(r, "error.data.reason", "\"partial_results_required\"");
    assert_at(r, "error.message",
              "\"The result is too large for one answer: max_result_bytes is 10000; "
              "authenticate, because only authenticated callers get tasks, or raise the "
              "limit on the server\"");
}

static const scenario scenarios[] = {
    {"R-776-16 D: the answer behind a round is whole", the_answer_is_whole,
     ONLY_HERE | NOT_HTTP | ONE_DRIVE,
     draft_on}, /* over HTTP its stranger is the same peer */
    {"R-776-16 D: the pieces begin anew behind a round", the_pieces_begin_anew,
     ONLY_HERE | NOT_HTTP | ONE_DRIVE, draft_on},
    {"R-776-16 D: pieces that come again have numbers",
     pieces_that_come_again_are_numbered, ONLY_HERE | NOT_HTTP | ONE_DRIVE, draft_on},
    {"R-776-16 D: a result that is too large says what to do", too_large_says_what_to_do,
     ONLY_HERE | NOT_HTTP | ONE_DRIVE, little_is_collected},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
