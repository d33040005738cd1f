/* A client repeats a resumable call by its key while the server still holds the call's
 * channel. The client gets pieces of the result there. When the channel has gone, the
 * repeated request becomes the channel, behind the pieces that it has. */
#include "support/take_over.h"
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

#include "engine/server/server.h"

#define CAPS_ASKED "{\"resumableRequests\":{},\"elicitation\":{}}"
#define KEYED "\"dev.segue/idempotencyKey\":\"0123456789abcdef\""
#define POLICY "notifications/requests/resumePolicy"
#define ALLOW ",\"allowPartial\":true"
#define BEFORE "\"text\":\"before\""
#define AFTER "\"text\":\"after\""

/* ---- the tool ---- */

static void go_on(void *user, segue_call *call, segue_status status, const char *json,
                  size_t len)
{
    (void)user, (void)json, (void)len;
    if (status == SEGUE_OK) {
        assert_int_equal(segue_call_send_text(call, "after", 5, NULL), SEGUE_OK);
        assert_int_equal(segue_call_complete(call, NULL, NULL), SEGUE_OK);
    }
    segue_call_free(call);
}

static void begin(void *user, segue_call *call)
{
    static const char form[] = "{\"message\":\"Go on?\",\"requestedSchema\":{\"type\":"
                               "\"object\",\"properties\":{}}}";
    (void)user;
    assert_int_equal(segue_call_send_text(call, "before", 6, NULL), SEGUE_OK);
    assert_int_equal(segue_call_require_input(call, NULL, "elicitation/create", form,
                                              sizeof form - 1, go_on, NULL, NULL, NULL),
                     SEGUE_OK);
}

static void add_tool(world *w)
{
    static const char tool[] =
        "{\"name\":\"between\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = begin;
    options.flags =
        SEGUE_TOOL_INCREMENTAL | SEGUE_TOOL_RESUMABLE | SEGUE_TOOL_RESTARTABLE;
    assert_int_equal(segue_server_add(w->server, SEGUE_ITEM_TOOL, tool, sizeof tool - 1,
                                      &options, NULL),
                     SEGUE_OK);
}

static void prepare(world *w)
{
    take_over_with_shared(w);
    w->furnish = add_tool;
}

/* ---- the clients ---- */

/* Calls the tool; more: what asks for pieces, or "". */
static wire *call_at(world *w, const char *id, const char *more)
{
    char params[256];
    wire *c = legacy_connect(w, "Ada", CAPS_ASKED);
    snprintf(params, sizeof params, "\"name\":\"between\",\"_meta\":{" KEYED "%s}", more);
    wire_ask_plain(c, id, "tools/call", params);
    return c;
}

static void answer_the_question(wire *c)
{
    char line[256];
    snprintf(line, sizeof line,
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"action\":\"accept\","
             "\"content\":{}}}",
             json_at(wire_request(c, "elicitation/create"), "id"));
    wire_send(c, line);
}

/* Returns the last response of the call. */
static const char *end_of(wire *c, const char *id)
{
    const char *r;
    do
        r = wire_response(c, id);
    while (!strcmp(json_at(r, "result._meta.hasMore"), "true"));
    return r;
}

/* The client of the repeated request is asked, and gets each piece once. */
static void must_be_asked(world *w, wire *repeated)
{
    world_advance(w, 500);
    answer_the_question(repeated);
    world_advance(w, 500);
    assert_true(*json_at(end_of(repeated, "124"), "result.content"));
    assert_int_equal(take_over_count_of(wire_history(repeated), BEFORE), 1);
    assert_int_equal(take_over_count_of(wire_history(repeated), AFTER), 1);
}

static void must_go_on(world *w, wire *channel, wire *repeated)
{
    wire_cut(channel);
    must_be_asked(w, repeated);
}

/* ---- scenarios ---- */

static void pieces_came_at_another_server(world *w)
{
    take_over_begin(w);
    wire *a = call_at(w, "123", ALLOW);
    wire_request(a, "elicitation/create");
    wire *b = call_at(&take_over_other, "124", ALLOW);
    world_advance(w, 500);
    assert_non_null(strstr(wire_history(b), BEFORE));
    must_go_on(w, a, b);
    take_over_end();
}

/* The call is repeated at its own server, which has not seen yet that the first
 * connection is lost. */
static void pieces_came_at_the_same_server(world *w)
{
    wire *a = call_at(w, "123", ALLOW);
    wire_request(a, "elicitation/create");
    wire *b = call_at(w, "124", ALLOW);
    world_advance(w, 500);
    assert_non_null(strstr(wire_history(b), BEFORE));
    must_go_on(w, a, b);
}

static void nothing_came_at_the_same_server(world *w)
{
    wire *a = call_at(w, "123", "");
    wire_request(a, "elicitation/create");
    wire *b = call_at(w, "124", "");
    world_advance(w, 500);
    must_go_on(w, a, b);
}

/* Both connections are lost, and the client comes back for the stream of the repeated
 * request alone. */
static void the_repeated_stream_comes_back(world *w)
{
    wire *a = call_at(w, "123", ALLOW);
    wire_request(a, "elicitation/create");
    wire *b = call_at(w, "124", ALLOW);
    world_advance(w, 500);
    assert_non_null(strstr(wire_history(b), BEFORE));
    wire_cut(b);
    world_run(w);
    wire_cut(a);
    world_run(w);
    wire_after(b, wire_last_event(b));
    wire_notify(b, "notifications/initialized", ""); /* the GET after it resumes */
    must_be_asked(w, b);
}

/* The client resumes its call at another server while it also waits at the owner. Then it
 * leaves the other server. */
static void who_leaves_another_server_is_asked(world *w)
{
    char params[256];
    take_over_begin(w);
    wire *a = call_at(w, "123", ALLOW);
    snprintf(params, sizeof params, "\"resumeToken\":%s",
             json_at(wire_notification(a, POLICY), "params.resumeToken"));
    wire_request(a, "elicitation/create");
    wire *b = call_at(w, "124", ALLOW);
    world_advance(w, 500);
    wire *c = legacy_connect(&take_over_other, "Ada", CAPS_ASKED);
    wire_ask_plain(c, "123", "requests/resume", params);
    wire_request(c, "elicitation/create");
    world_advance(w, 500);
    must_go_on(w, c, b);
    take_over_end();
}

/* The requests differ in whether they want pieces. Each gets what it wants. */
static void only_the_first_wants_pieces(world *w)
{
    take_over_begin(w);
    wire *a = call_at(w, "123", ALLOW);
    wire_request(a, "elicitation/create");
    wire *b = call_at(&take_over_other, "124", "");
    world_advance(w, 500);
    must_go_on(w, a, b);
    assert_null(strstr(wire_history(b), "hasMore"));
    take_over_end();
}

static void only_the_second_wants_pieces(world *w)
{
    take_over_begin(w);
    wire *a = call_at(w, "123", "");
    wire_request(a, "elicitation/create");
    wire *b = call_at(&take_over_other, "124", ALLOW);
    world_advance(w, 500);
    assert_non_null(strstr(wire_history(b), BEFORE));
    must_go_on(w, a, b);
    take_over_end();
}

static const scenario scenarios[] = {
    {"R-975-16 who has pieces of another server is asked", pieces_came_at_another_server,
     ONLY_HERE | ONE_DRIVE | ONLY_KEYED, NULL},
    {"R-975-16 who has pieces of the same server is asked",
     pieces_came_at_the_same_server, ONLY_HERE | ONE_DRIVE | ONLY_KEYED, NULL},
    {"R-975-16 who has repeated the call at the same server is asked",
     nothing_came_at_the_same_server, ONLY_HERE | ONE_DRIVE | ONLY_KEYED, NULL},
    {"R-975-16 who comes back to the repeated call is asked",
     the_repeated_stream_comes_back, ONLY_HERE | ONE_DRIVE | ONLY_KEYED | ONLY_HTTP,
     NULL},
    {"R-975-16 who leaves another server is asked", who_leaves_another_server_is_asked,
     ONLY_HERE | ONE_DRIVE | ONLY_KEYED, NULL},
    {"R-776-1 only the first request wants pieces", only_the_first_wants_pieces,
     ONLY_HERE | ONE_DRIVE | ONLY_KEYED, NULL},
    {"R-776-1 only the second request wants pieces", only_the_second_wants_pieces,
     ONLY_HERE | ONE_DRIVE | ONLY_KEYED, NULL},
};

int main(void)
{
    int failed =
        scenarios_run_prepared(scenarios, sizeof scenarios / sizeof *scenarios, prepare);
    shared_place_free(take_over_place);
    return failed;
}
