/* Batches as a raw client of 2025-03-26 sends them (basic, "Batching"; JSON-RPC 2.0, 6).
 * No other revision has batches. */
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define MESSAGE(members) "{\"jsonrpc\":\"2.0\"," members "}"
#define REQUEST(id, method) MESSAGE("\"id\":" id ",\"method\":\"" method "\"")
#define CALL(id, tool, more)                                                             \
    MESSAGE("\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":\"" tool       \
            "\"" more "}")
#define CANCEL(id)                                                                       \
    MESSAGE("\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":" id "}")
#define INITIALIZED MESSAGE("\"method\":\"notifications/initialized\"")
#define SLOW ",\"arguments\":{\"ms\":100}"

static wire *shake_hands(world *w, const char *version)
{
    char params[200];
    wire *c = world_connect(w, NULL);
    snprintf(params, sizeof params,
             "\"protocolVersion\":\"%s\",\"capabilities\":{},\"clientInfo\":{\"name\":"
             "\"raw\",\"version\":\"1\"}",
             version);
    wire_do_plain(c, "0", "initialize", params);
    wire_notify(c, "notifications/initialized", NULL);
    return c;
}

/* Checks that the next line is an array with this many items. */
static const char *expect_array(wire *c, int count)
{
    char beyond[16];
    const char *line = wire_due(c);
    assert_non_null(line);
    if (line[0] != '[')
        fail_msg("no array: %s", line);
    snprintf(beyond, sizeof beyond, "%d", count);
    assert_at(line, beyond, "");
    snprintf(beyond, sizeof beyond, "%d", count - 1);
    assert_string_not_equal(json_at(line, beyond), "");
    return line;
}

/* Returns the answer to this id; answers of a batch may come in any order. */
static const char *answer_in(const char *array, const char *id)
{
    static char path[16];
    for (int i = 0;; i++) {
        snprintf(path, sizeof path, "%d.id", i);
        const char *found = json_at(array, path);
        snprintf(path, sizeof path, "%d", i);
        if (!*json_at(array, path))
            fail_msg("no answer to %s in %s", id, array);
        if (strcmp(found, id) == 0)
            return path;
    }
}

#define assert_answer(array, id, path, expected)                                         \
    do {                                                                                 \
        const char *array_ = (array);                                                    \
        char path_[64];                                                                  \
        snprintf(path_, sizeof path_, "%s.%s", answer_in(array_, id), path);             \
        assert_at(array_, path_, expected);                                              \
    } while (0)

static void answers_come_as_one_array(world *w)
{
    wire *c = shake_hands(w, "2025-03-26");
    wire_send(
        c, " [" REQUEST("1", "ping") " , " INITIALIZED ",\t" CALL(
               "\"a\"", "greet",
               ",\"arguments\":{\"name\":\"Ada\"}") "," REQUEST("3", "tools/list") "] ");
    const char *r = expect_array(c, 3);
    assert_answer(r, "1", "result", "{}");
    assert_answer(r, "\"a\"", "result.content.0.text", "\"Hello, Ada!\"");
    assert_answer(r, "3", "result.tools.0.name", "\"greet\"");
    if (w->place == WORLD_HTTP)
        wire_expect_status(c, 200);
    wire_send(c, "[" REQUEST("4", "ping") "]");
    assert_answer(expect_array(c, 1), "4", "result", "{}");
    assert_at(wire_do_plain(c, "5", "ping", NULL), "result", "{}");
}

/* A message whose _meta names the session's own version does not belong to 2026-07-28. */
static void a_version_of_the_handshake_names_nothing(world *w)
{
    wire *c = shake_hands(w, "2025-03-26");
    wire_send(c, "[" CALL("1", "greet",
                          ",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
                          "\"2025-03-26\"}") "]");
    assert_answer(expect_array(c, 1), "1", "result.content.0.text", "\"Hello, World!\"");
}

static void answers_wait_for_each_other(world *w)
{
    wire *c = shake_hands(w, "2025-03-26");
    wire_send(c, "[" CALL("1", "slow_compute", SLOW) "," REQUEST("2", "ping") "]");
    assert_null(wire_next(c));
    wire_send(c, "[" REQUEST("3", "ping") "]"); /* another batch does not wait */
    assert_answer(expect_array(c, 1), "3", "result", "{}");
    assert_at(wire_do_plain(c, "4", "ping", NULL), "result", "{}");
    world_advance(w, 100);
    const char *r = expect_array(c, 2);
    assert_answer(r, "1", "result.content.0.text", "\"Computed: done\"");
    assert_answer(r, "2", "result", "{}");
    wire_quiet(c);
}

static void each_bad_item_is_refused_alone(world *w)
{
    wire *c = shake_hands(w, "2025-03-26");
    wire_send(
        c,
        "[" REQUEST("1", "ping") ",7,[],{\"id\":2,\"method\":\"ping\"}," REQUEST(
            "3",
            "initialize") "," REQUEST("4",
                                      "no/such") "," MESSAGE("\"id\":null,\"method\":"
                                                             "\"ping\"") ",{\"jsonrpc\":"
                                                                         "\"2.0\",\"id\":"
                                                                         "8,"
                                                                         "\"result\":7}"
                                                                         "]");
    const char *r = expect_array(c, 7);
    assert_answer(r, "1", "result", "{}");
    assert_answer(r, "2", "error.code", "-32600");
    assert_answer(r, "3", "error.code", "-32600");
    assert_answer(r, "4", "error.code", "-32601");
    int without = 0;
    for (const char *at = r; (at = strstr(at, "{\"jsonrpc\":\"2.0\",\"error\"")); at++)
        without++;
    assert_int_equal(without, 3);
    assert_at(wire_do_plain(c, "5", "ping", NULL), "result", "{}");
}

static void modern_requests_are_in_no_batch(world *w)
{
    wire *c = shake_hands(w, "2025-03-26");
    char *line = wire_line("2", "tools/call", "\"name\":\"greet\"", NULL);
    char *batch = malloc(strlen(line) + 100);
    sprintf(batch, "[" REQUEST("1", "ping") ",%s]", line);
    wire_send(c, batch);
    const char *r = expect_array(c, 2);
    assert_answer(r, "1", "result", "{}");
    assert_answer(r, "2", "error.code", "-32600");
    free(line);
    free(batch);
}

static void expect_refusal(wire *c)
{
    const char *r = wire_due(c);
    assert_non_null(r);
    assert_at(r, "id", "");
    assert_code(r, -32600); /* the error is one object, not an array */
}

static void sizes_that_are_refused(world *w)
{
    wire *c = shake_hands(w, "2025-03-26");
    char many[70 * 60];
    wire_send(c, "[]");
    expect_refusal(c);
    for (int count = 64; count <= 65; count++) {
        size_t n = (size_t)sprintf(many, "[");
        for (int i = 0; i < count; i++)
            n += (size_t)sprintf(many + n, "%s" MESSAGE("\"id\":%d,\"method\":\"ping\""),
                                 i ? "," : "", i + 1);
        sprintf(many + n, "]");
        wire_send(c, many);
        if (count == 64)
            expect_array(c, 64);
        else
            expect_refusal(c);
    }
    if (w->place == WORLD_HTTP)
        wire_expect_status(c, 400);
    wire_send(c, "[" REQUEST("1", "ping") ",]");
    assert_code(wire_due(c), -32700);
    assert_at(wire_do_plain(c, "5", "ping", NULL), "result", "{}");
}

static void what_asks_nothing_gets_nothing(world *w)
{
    wire *c = shake_hands(w, "2025-03-26");
    wire_send(c,
              "[" INITIALIZED "," CANCEL("99") "," MESSAGE("\"id\":5,\"result\":{}") "]");
    if (w->place == WORLD_HTTP)
        wire_expect_status(c, 202);
    assert_at(wire_do_plain(c, "5", "ping", NULL), "result", "{}");
    assert_null(strchr(wire_history(c), '['));
}

/* Over HTTP progress makes the answer a stream, in which each answer is an event. */
static void progress_does_not_wait(world *w)
{
    wire *c = shake_hands(w, "2025-03-26");
    wire_send(c, "[" REQUEST("1", "ping") "," CALL(
                     "2", "chatty",
                     ",\"_meta\":{\"progressToken\":7}") "," CALL("3", "slow_compute",
                                                                  SLOW) "]");
    for (int i = 1; i <= 3; i++)
        assert_int_equal(
            atoi(json_at(wire_notification(c, "notifications/progress"), "params."
                                                                         "progress")),
            i);
    if (w->place == WORLD_HTTP) {
        assert_at(wire_response(c, "1"), "result", "{}");
        assert_at(wire_response(c, "2"), "error", "");
        world_advance(w, 100);
        assert_at(wire_response(c, "3"), "error", "");
        wire_expect_status(c, 200);
        assert_null(strstr(wire_history(c), "[{\"jsonrpc"));
    } else {
        if (w->place == WORLD_PAIR)
            world_advance(w, 100);
        const char *r = expect_array(c, 3);
        assert_answer(r, "1", "result", "{}");
        assert_answer(r, "2", "error", "");
        assert_answer(r, "3", "error", "");
    }
    assert_at(wire_do_plain(c, "4", "ping", NULL), "result", "{}");
}

static void cancelled_requests_are_not_waited_for(world *w)
{
    wire *c = shake_hands(w, "2025-03-26");
    wire_send(c, "[" CALL("7", "hang_plain", "") "," REQUEST("8", "ping") "]");
    wire_send(c, CANCEL("7"));
    const char *r = expect_array(c, 1);
    assert_answer(r, "8", "result", "{}");
    wire_send(c,
              "[" CALL("\"x\"", "hang_plain", "") "," CALL("10", "hang_plain", "") "]");
    /* the cancels are a batch as well */
    wire_send(c, "[" CANCEL("10") "," CANCEL("\"x\"") "]");
    assert_at(wire_do_plain(c, "11", "ping", NULL), "result", "{}");
    if (w->place != WORLD_STDIO)
        assert_int_equal(fixtures_jobs(w->fixtures), 0);
    /* A call that is cancelled in its own batch. */
    wire_send(c, "[" CALL("12", "hang_plain",
                          "") "," CANCEL("12") "," REQUEST("13", "ping") "]");
    r = expect_array(c, 1);
    assert_answer(r, "13", "result", "{}");
}

static void ids_in_flight_are_not_taken_twice(world *w)
{
    wire *c = shake_hands(w, "2025-03-26");
    wire_send(c, "[" CALL("1", "hang_plain",
                          "") "," REQUEST("1", "ping") "," REQUEST("2", "ping") "]");
    wire_send(c, CANCEL("1"));
    assert_answer(expect_array(c, 1), "2", "result", "{}");
    assert_at(wire_do_plain(c, "3", "ping", NULL), "result", "{}");
}

static void other_revisions_have_no_batches(world *w)
{
    static const char *const versions[] = {"2024-11-05", "2025-06-18", "2025-11-25"};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        wire *c = shake_hands(w, versions[i]);
        wire_send(c, "[" REQUEST("1", "ping") "]");
        expect_refusal(c);
        assert_null(strstr(wire_history(c), "\"id\":1"));
        if (w->place == WORLD_HTTP)
            wire_expect_status(c, 400);
        assert_at(wire_do_plain(c, "2", "ping", NULL), "result", "{}");
    }
}

/* The conversation ends, and the world checks that nothing of the batch is left. */
static void a_cut_ends_its_batches(world *w)
{
    wire *c = shake_hands(w, "2025-03-26");
    wire_send(c, "[" CALL("1", "hang_plain", "") "," REQUEST("2", "ping") "]");
    wire_send(c, "[" CALL("3", "hang_plain", "") "]");
    wire_cut(c);
    world_run(w);
    c = shake_hands(w, "2025-03-26");
    wire_send(c, "[" REQUEST("1", "ping") "]");
    expect_array(c, 1);
}

static const scenario scenarios[] = {
    {"the answers of a batch come as one array", answers_come_as_one_array, 0, NULL},
    {"the answers of a batch wait for each other", answers_wait_for_each_other, ONLY_HERE,
     NULL},
    {"each bad item of a batch is refused alone", each_bad_item_is_refused_alone, 0,
     NULL},
    {"R-C-14 a version of the handshake in a batch names nothing",
     a_version_of_the_handshake_names_nothing, ONE_DRIVE, NULL},
    {"requests of 2026-07-28 are in no batch", modern_requests_are_in_no_batch, 0, NULL},
    {"batches that are empty, too long, or no JSON", sizes_that_are_refused, 0, NULL},
    {"a batch that asks nothing gets nothing", what_asks_nothing_gets_nothing, 0, NULL},
    {"progress of a batch does not wait", progress_does_not_wait, 0, NULL},
    {"cancelled requests of a batch are not waited for",
     cancelled_requests_are_not_waited_for, 0, NULL},
    {"an id in flight is not taken twice", ids_in_flight_are_not_taken_twice, 0, NULL},
    {"other revisions have no batches", other_revisions_have_no_batches, ONE_DRIVE, NULL},
    {"a cut ends its batches", a_cut_ends_its_batches, ONLY_HERE, NULL},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
