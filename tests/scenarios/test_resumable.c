/* Requests that survive a disconnect (SEP-975): policy, resume, status, clocks. */
#include "engine/engine.h"
#include "runtime/runtime.h"
#include "support/legacy_wire.h"
#include "support/world_inside.h"

#include <segue/segue_ext.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define CAPS_Z "{\"resumableRequests\":{}}"
#define CAPS_Z_ASK "{\"resumableRequests\":{},\"elicitation\":{}}"
#define POLICY "notifications/requests/resumePolicy"
#define PROGRESS "notifications/progress"
#define META ",\"_meta\":{\"progressToken\":7}"

/* Sends a call and returns its token (lives as long as the scenario). */
static const char *call_for_token(wire *c, const char *id, const char *tool,
                                  const char *arguments, const char *more)
{
    static char tokens[8][128];
    static int next;
    char *token = tokens[next++ % 8];
    char params[512];
    snprintf(params, sizeof params, "\"name\":\"%s\",\"arguments\":{%s}%s", tool,
             arguments, more ? more : "");
    wire_ask_plain(c, id, "tools/call", params);
    const char *policy = wire_notification(c, POLICY);
    assert_at(policy, "params.requestId", id);
    assert_at(policy, "params.minWait", "2");
    assert_at(policy, "params.maxWait", "10");
    const char *text = json_at(policy, "params.resumeToken");
    assert_true(strlen(text) > 22 && strlen(text) < sizeof tokens[0]);
    snprintf(token, sizeof tokens[0], "%s", text);
    return token;
}

static void ask_resume(wire *c, const char *id, const char *token)
{
    char params[256];
    snprintf(params, sizeof params, "\"resumeToken\":%s", token);
    wire_ask_plain(c, id, "requests/resume", params);
}

static const char *status_of(wire *c, const char *request_id, const char *token)
{
    static int next;
    char id[24], params[256];
    snprintf(id, sizeof id, "%d", 70000 + next++);
    snprintf(params, sizeof params, "\"requestId\":%s,\"resumeToken\":%s", request_id,
             token);
    return wire_do_plain(c, id, "requests/getStatus", params);
}

static void expect_status(wire *c, const char *token, const char *status, int pending,
                          int input)
{
    const char *answer = status_of(c, "123", token);
    assert_at(answer, "result.requestId", "123");
    assert_at(answer, "result.status", status);
    assert_at(answer, "result.hasPendingMessage", pending ? "true" : "false");
    assert_at(answer, "result.hasInputRequest", input ? "true" : "false");
}

static void expect_progress(wire *c, int from, int upto)
{
    char value[24];
    for (int i = from; i <= upto; i++) {
        const char *note = wire_notification(c, PROGRESS);
        snprintf(value, sizeof value, "%d", i);
        assert_at(note, "params.progress", value);
        assert_at(note, "params.progressToken", "7");
    }
}

static void as_94(world *w)
{
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    call_for_token(c, "123", "greet", "\"name\":\"Ada\"", NULL);
    assert_at(wire_response(c, "123"), "result.content.0.text", "\"Hello, Ada!\"");
    call_for_token(c, "\"123\"", "greet", "\"name\":\"Ada\"", NULL);
    wire_response(c, "\"123\"");
    wire *plain = legacy_connect(w, NULL, NULL);
    wire_do_plain(plain, "1", "tools/call", "\"name\":\"greet\"");
    assert_null(strstr(wire_history(plain), POLICY));
    wire_do_plain(plain, "2", "requests/resume", "\"resumeToken\":\"x\"");
    assert_non_null(strstr(wire_history(plain), "-32601"));
}

static void as_95(world *w)
{
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    const char *token =
        call_for_token(c, "123", "reporter", "\"n\":5,\"delayMs\":100", META);
    world_advance(w, 210);
    expect_progress(c, 1, 2);
    wire_cut(c);
    world_advance(w, 2000);
    c = legacy_connect(w, NULL, CAPS_Z);
    expect_status(c, token, "\"completed\"", 1, 0);
    ask_resume(c, "123", token);
    world_advance(w, 10);
    if (w->place == WORLD_HTTP)
        /* without a Last-Event-ID everything comes again (AS-96) */
        expect_progress(c, 1, 2);
    expect_progress(c, 3, 5);
    assert_at(wire_response(c, "123"), "result.content.0.text", "\"reported\"");
    wire_quiet(c);
    assert_int_equal(world_runs(w, "reporter"), 1);
}

/* The client names its position: nothing comes twice, and the server forgets what the
 * client has. */
static void as_95_positions(world *w)
{
    char event[128];
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    const char *token =
        call_for_token(c, "123", "reporter", "\"n\":5,\"delayMs\":100", META);
    assert_non_null(strchr(wire_last_event(c), '~')); /* the policy has an event id */
    world_advance(w, 210);
    expect_progress(c, 1, 2);
    snprintf(event, sizeof event, "%s", wire_last_event(c));
    wire_cut(c);
    world_advance(w, 2000);
    c = legacy_connect(w, NULL, CAPS_Z);
    wire_after(c, event);
    ask_resume(c, "123", token);
    world_run(w);
    expect_progress(c, 3, 5);
    assert_at(wire_response(c, "123"), "result.content.0.text", "\"reported\"");
    wire_quiet(c);
    snprintf(event, sizeof event, "%s", wire_last_event(c));
    wire_after(c, "1-1~aaaaaaaa~9"); /* another principal's event id: ignored */
    ask_resume(c, "123", token);
    wire_response(c, "123");
    wire_after(c, event);
    ask_resume(c, "123", token);
    assert_at(wire_response(c, "123"), "error.data.reason", "\"completed\"");
    world_restart(w);
    c = legacy_connect(w, NULL, CAPS_Z);
    ask_resume(c, "123", token);
    assert_at(wire_response(c, "123"), "error.data", ""); /* AS-109: the task is gone */
}

static void as_95_running(world *w)
{
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    const char *token =
        call_for_token(c, "123", "reporter", "\"n\":4,\"delayMs\":1000", META);
    world_advance(w, 1010);
    expect_progress(c, 1, 1);
    wire_cut(c);
    world_advance(w, 1000);
    c = legacy_connect(w, NULL, CAPS_Z);
    expect_status(c, token, "\"processing\"", 1, 0);
    ask_resume(c, "123", token);
    world_advance(w, 5000);
    if (w->place == WORLD_HTTP)
        expect_progress(c, 1, 1);
    expect_progress(c, 2, 4);
    assert_at(wire_response(c, "123"), "result.content.0.text", "\"reported\"");
}

static void as_97(world *w)
{
    wire *c = legacy_connect(w, "alice", CAPS_Z);
    const char *token =
        call_for_token(c, "123", "slow_compute", "\"seconds\":5,\"label\":\"x\"", NULL);
    wire_cut(c);
    wire *d = legacy_connect(w, "alice", CAPS_Z);
    char wrong[128], first[512], other[512];
    snprintf(wrong, sizeof wrong, "%s", token);
    wrong[strlen(wrong) - 2] = wrong[strlen(wrong) - 2] == 'A' ? 'B' : 'A';
    ask_resume(d, "123", wrong);
    snprintf(first, sizeof first, "%s", json_at(wire_response(d, "123"), "error"));
    assert_non_null(strstr(first, "-32602"));
    ask_resume(d, "\"123\"", token);
    snprintf(other, sizeof other, "%s", json_at(wire_response(d, "\"123\""), "error"));
    assert_string_equal(first, other);
    ask_resume(d, "124", token);
    snprintf(other, sizeof other, "%s", json_at(wire_response(d, "124"), "error"));
    assert_string_equal(first, other);
    wire *eve = legacy_connect(w, "eve", CAPS_Z);
    ask_resume(eve, "123", token);
    snprintf(other, sizeof other, "%s", json_at(wire_response(eve, "123"), "error"));
    assert_string_equal(first, other);
    snprintf(other, sizeof other, "%s", json_at(status_of(eve, "123", token), "error"));
    assert_string_equal(first, other);
    ask_resume(d, "123", token);
    world_advance(w, 6000);
    assert_at(wire_response(d, "123"), "result.isError", "");
}

static void three_guesses(segue_server_options *options)
{
    options->lookups_per_second = 3;
}

/* The limit also counts over new connections. The right token, and requests without one,
 * are still accepted. */
static void guessing_is_limited(world *w)
{
    wire *c = legacy_connect(w, "ada", CAPS_Z);
    const char *token =
        call_for_token(c, "123", "slow_compute", "\"seconds\":5,\"label\":\"x\"", NULL);
    wire_cut(c);
    for (int i = 0; i < 3; i++) {
        wire *eve = legacy_connect(w, "eve", CAPS_Z);
        ask_resume(eve, "123", "\"guess.guess\"");
        assert_code(wire_response(eve, "123"), -32602);
        wire_drop(eve);
    }
    wire *eve = legacy_connect(w, "eve", CAPS_Z);
    const char *refused = status_of(eve, "123", "\"guess.guess\"");
    assert_code(refused, -32603);
    assert_at(refused, "error.data.reason", "\"rate_limited\"");
    c = legacy_connect(w, "ada", CAPS_Z);
    assert_at(status_of(c, "123", token), "result.status", "\"processing\"");
}

static void as_98(world *w)
{
    wire *c = legacy_connect(w, NULL, CAPS_Z_ASK);
    const char *token = call_for_token(c, "123", "ask_once", "\"filename\":\"f\"", NULL);
    char id[128];
    snprintf(id, sizeof id, "%s", json_at(wire_request(c, "elicitation/create"), "id"));
    wire_cut(c);
    c = legacy_connect(w, NULL, CAPS_Z_ASK);
    expect_status(c, token, "\"processing\"", w->place == WORLD_HTTP, 1);
    ask_resume(c, "123", token);
    world_run(w);
    /* AS-106: asked again under the same id. */
    assert_string_equal(json_at(wire_request(c, "elicitation/create"), "id"), id);
    char answer[256];
    snprintf(answer, sizeof answer,
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"action\":\"accept\","
             "\"content\":{\"confirm\":true}}}\n",
             id);
    wire_send(c, answer);
    wire_send(c, answer); /* sent twice, delivered once */
    world_run(w);
    wire_response(c, "123");
    assert_int_equal(world_runs(w, "ask_once"), 1);
}

static void as_98_failed(world *w)
{
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    const char *token = call_for_token(c, "123", "protocol_error_job", "", NULL);
    wire_cut(c);
    world_advance(w, 2000);
    c = legacy_connect(w, NULL, CAPS_Z);
    expect_status(c, token, "\"failed\"", 1, 0);
    ask_resume(c, "123", token);
    assert_true(*json_at(wire_response(c, "123"), "error.code"));
}

static void as_99(world *w)
{
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    const char *token = call_for_token(c, "123", "hang", "", NULL);
    world_jump(w, 3600000); /* the clock stands still while a client is connected */
    expect_status(c, token, "\"processing\"", 0, 0);
    wire_cut(c);
    world_advance(w, 9000);
    c = legacy_connect(w, NULL, CAPS_Z);
    expect_status(c, token, "\"processing\"", 0, 0);
    world_advance(w, 9000);
    ask_resume(c, "123", token);
    world_advance(w, 20000);
    expect_status(c, token, "\"processing\"", 0, 0);
    wire_cut(c);
    world_advance(w, 10100);
    c = legacy_connect(w, NULL, CAPS_Z);
    ask_resume(c, "123", token);
    const char *answer = wire_response(c, "123");
    assert_code(answer, -32602);
    assert_at(answer, "error.data.reason", "\"expired\"");
}

static void as_100(world *w)
{
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    const char *token = call_for_token(c, "123", "hang", "", NULL);
    wire_notify(c, "notifications/cancelled", "\"requestId\":123");
    world_run(w);
    wire_cut(c);
    c = legacy_connect(w, NULL, CAPS_Z);
    ask_resume(c, "123", token);
    assert_at(wire_response(c, "123"), "error.data.reason", "\"cancelled\"");
    assert_at(status_of(c, "123", token), "error.data.reason", "\"cancelled\"");
}

static segue_call *away;

static void goes_away(void *user, segue_call *call)
{
    (void)user;
    away = call;
    assert_int_equal(segue_call_hang_up(call, 1000, NULL), SEGUE_OK);
}

/* The server itself ends the stream after the policy; the call runs on. */
static void as_101(world *w)
{
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = goes_away;
    options.flags = SEGUE_TOOL_RESUMABLE;
    options.resume_min_wait_ms = 2000;
    options.resume_max_wait_ms = 10000;
    static const char tool[] =
        "{\"name\":\"away\",\"inputSchema\":{\"type\":\"object\"}}";
    assert_int_equal(segue_server_add(w->server, SEGUE_ITEM_TOOL, tool, sizeof tool - 1,
                                      &options, NULL),
                     SEGUE_OK);
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    const char *token = call_for_token(c, "123", "away", "", NULL);
    world_run(w);
    wire_quiet(c);
    segue_call_send_text(away, "later", 5, NULL);
    segue_call_complete(away, NULL, NULL);
    segue_call_free(away);
    world_run(w);
    wire_quiet(c);
    ask_resume(c, "123", token);
    assert_at(wire_response(c, "123"), "result.content.0.text", "\"later\"");
}

static void as_103(world *w)
{
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    const char *token =
        call_for_token(c, "123", "slow_compute", "\"seconds\":1,\"label\":\"x\"", NULL);
    ask_resume(c, "123", token);
    world_run(w);
    wire_quiet(c);
    world_advance(w, 2000);
    assert_at(wire_response(c, "123"), "error", "");
    wire_quiet(c);
}

static void as_104(world *w)
{
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    const char *token = call_for_token(c, "123", "greet", "\"name\":\"Ada\"", NULL);
    wire_response(c, "123");
    world_run(w);
    ask_resume(c, "123", token);
    const char *answer = wire_response(c, "123");
    if (w->place == WORLD_HTTP) {
        assert_at(answer, "result.content.0.text", "\"Hello, Ada!\"");
    } else {
        assert_code(answer, -32602);
        assert_at(answer, "error.data.reason", "\"completed\"");
    }
}

static void as_105(world *w)
{
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    const char *kept = call_for_token(c, "123", "story", "\"n\":5,\"delayMs\":100", META);
    const char *lost =
        call_for_token(c, "124", "slow_compute", "\"seconds\":9,\"label\":\"x\"", NULL);
    const char *done = call_for_token(c, "125", "greet", "\"name\":\"Ada\"", NULL);
    world_advance(w, 250);
    world_restart(w);
    world_advance(w, 1000);
    c = legacy_connect(w, NULL, CAPS_Z);
    ask_resume(c, "124", lost);
    const char *answer = wire_response(c, "124");
    assert_code(answer, -32603);
    assert_at(answer, "error.data.reason", "\"server_restarted\"");
    ask_resume(c, "123", kept);
    answer = wire_response(c, "123");
    assert_true(*json_at(answer, "result.content.4"));
    assert_at(answer, "result.content.5", "");
    ask_resume(c, "125", done);
    wire_response(c, "125"); /* the answer again, or the report that it was delivered */
}

/* The process is killed: the call goes on in the next one. */
static void as_105_killed(world *w)
{
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    const char *token =
        call_for_token(c, "123", "story", "\"n\":5,\"delayMs\":500", NULL);
    const char *lost =
        call_for_token(c, "124", "slow_compute", "\"seconds\":9,\"label\":\"x\"", NULL);
    wire_do_plain(c, "9", "ping", NULL);
    world_restart(w);
    c = legacy_connect(w, NULL, CAPS_Z);
    ask_resume(c, "124", lost);
    assert_at(wire_response(c, "124"), "error.data.reason", "\"server_restarted\"");
    ask_resume(c, "123", token);
    const char *answer = wire_response(c, "123");
    assert_true(*json_at(answer, "result.content.4"));
    assert_at(answer, "result.content.5", "");
}

/* An answer that does not fit its question leaves the question open: it is sent again. */
static void an_answer_that_does_not_fit_is_asked_for_again(world *w)
{
    char id[128], line[256];
    wire *c = legacy_connect(w, NULL, "{\"resumableRequests\":{},\"elicitation\":{}}");
    wire_ask_plain(c, "123", "tools/call", "\"name\":\"ask_once\"");
    snprintf(id, sizeof id, "%s", json_at(wire_request(c, "elicitation/create"), "id"));
    snprintf(line, sizeof line,
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"action\":5}}", id);
    wire_send(c, line);
    assert_at(wire_request(c, "elicitation/create"), "id", id);
    snprintf(line, sizeof line,
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"action\":\"decline\"}}", id);
    wire_send(c, line);
    assert_true(*json_at(wire_response(c, "123"), "result.content.0"));
}

/* The question is withdrawn before the end is reported. */
static void as_98_withdrawn(world *w)
{
    char id[128], wanted[160];
    wire *c = legacy_connect(w, NULL, CAPS_Z_ASK);
    call_for_token(c, "123", "ask_hastily", "\"filename\":\"f\"", NULL);
    world_advance(w, 5000);
    wire_response(c, "123");
    snprintf(id, sizeof id, "%s", json_at(wire_request(c, "elicitation/create"), "id"));
    snprintf(wanted, sizeof wanted, "\"requestId\":%s", id);
    assert_non_null(strstr(wire_history(c), wanted));
}

static int count_of(const char *text, const char *part)
{
    int n = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}

/* P: the pieces of both connections together make the result; repeated pieces have the
 * same number. */
static void as_110(world *w)
{
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    const char *token = call_for_token(c, "123", "story", "\"n\":6,\"delayMs\":100",
                                       ",\"_meta\":{\"allowPartial\":true}");
    world_advance(w, 310);
    for (int i = 0; i < 2; i++) {
        const char *piece = wire_response(c, "123");
        assert_at(piece, "result._meta.hasMore", "true");
        assert_non_null(strstr(piece, "\"dev.segue/seq\":"));
    }
    wire_cut(c);
    world_advance(w, 200);
    c = legacy_connect(w, NULL, CAPS_Z);
    ask_resume(c, "123", token);
    world_advance(w, 2000);
    const char *piece;
    int64_t next = 0, last = 0;
    do {
        piece = wire_response(c, "123");
        const char *number = strstr(piece, "\"dev.segue/seq\":");
        if (number) {
            int64_t told = atoll(number + 16);
            assert_true(!next || told == next);
            next = told;
        }
        assert_null(strstr(piece, "mergeStrategy"));
        next += count_of(piece, "\"type\":\"text\"");
        last = next;
    } while (!strcmp(json_at(piece, "result._meta.hasMore"), "true"));
    assert_int_equal(last, 7);
}

/* S: the same with segments of a task. */
static void as_111(world *w)
{
    wire *c = legacy_connect(
        w, "alice",
        "{\"resumableRequests\":{},\"tasks\":{\"responses\":{\"modes\":[\"task\","
        "\"streaming\"]}}}");
    const char *token =
        call_for_token(c, "123", "story", "\"n\":6,\"delayMs\":100",
                       ",\"task\":{\"responseModes\":[\"task\",\"streaming\"]}");
    const char *made = wire_response(c, "123");
    assert_true(*json_at(made, "result.task.taskId"));
    world_advance(w, 310);
    wire_cut(c);
    c = legacy_connect(
        w, "alice",
        "{\"resumableRequests\":{},\"tasks\":{\"responses\":{\"modes\":[\"task\","
        "\"streaming\"]}}}");
    ask_resume(c, "123", token);
    world_advance(w, 2000);
    const char *part;
    do
        part = wire_response(c, "123");
    while (strcmp(json_at(part, "result.isComplete"), "true") != 0);
    const char *all = wire_history(c);
    assert_int_equal(count_of(all, "\"seqNr\":6,"), 1);
    assert_int_equal(count_of(all, "\"seqNr\":5,"), 1);
}

static void tune_small(segue_server_options *options)
{
    options->max_log_bytes = 8192;
}

/* Without room, progress messages are dropped before parts of the result. */
static void as_107(world *w)
{
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    wire_do_plain(c, "1", "logging/setLevel", "\"level\":\"info\"");
    const char *token =
        call_for_token(c, "123", "reporter", "\"n\":200,\"delayMs\":10", META);
    wire_cut(c);
    world_advance(w, 3000);
    c = legacy_connect(w, NULL, CAPS_Z);
    ask_resume(c, "123", token);
    world_run(w);
    assert_at(wire_response(c, "123"), "result.content.0.text", "\"reported\"");
    const char *all = wire_history(c);
    assert_null(strstr(all, "\"progress\":1,"));
    assert_true(count_of(all, "notifications/progress") < 100);
}

/* The session of a connected client decides about the level of log messages. */
static void log_level_changes(world *w)
{
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    wire_do_plain(c, "1", "logging/setLevel", "\"level\":\"info\"");
    call_for_token(c, "123", "reporter", "\"n\":4,\"delayMs\":50", META);
    world_advance(w, 60);
    assert_int_equal(count_of(wire_history(c), "notifications/message"), 1);
    wire_do_plain(c, "2", "logging/setLevel", "\"level\":\"error\"");
    world_advance(w, 400);
    assert_at(wire_response(c, "123"), "result.content.0.text", "\"reported\"");
    assert_int_equal(count_of(wire_history(c), "notifications/message"), 1);
}

/* A message that was kept while the client was away is passed over when the client comes
 * back and wants no such messages any more. */
static void a_later_log_level_holds_for_what_was_kept(world *w)
{
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    wire_do_plain(c, "1", "logging/setLevel", "\"level\":\"info\"");
    const char *token =
        call_for_token(c, "123", "reporter", "\"n\":4,\"delayMs\":50", META);
    wire_cut(c);
    world_advance(w, 2000);
    c = legacy_connect(w, NULL, CAPS_Z);
    wire_do_plain(c, "1", "logging/setLevel", "\"level\":\"error\"");
    ask_resume(c, "123", token);
    world_advance(w, 10);
    expect_progress(c, 1, 4);
    assert_at(wire_response(c, "123"), "result.content.0.text", "\"reported\"");
    assert_null(strstr(wire_history(c), "notifications/message"));
}

static void as_107_hard(world *w)
{
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    const char *token =
        call_for_token(c, "123", "story", "\"n\":500,\"delayMs\":1", META);
    wire_cut(c);
    world_advance(w, 3000);
    c = legacy_connect(w, NULL, CAPS_Z);
    ask_resume(c, "123", token);
    world_run(w);
    const char *answer = wire_response(c, "123");
    assert_code(answer, -32603);
    assert_at(answer, "error.data.reason", "\"log_overflow\"");
}

static int file_has(const char *path, const char *text)
{
    size_t n = strlen(text), len = 0;
    static char bytes[4 * 1024 * 1024];
    FILE *file = fopen(path, "rb");
    if (file) {
        len = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
    }
    for (size_t i = 0; i + n <= len; i++)
        if (!memcmp(bytes + i, text, n))
            return 1;
    return 0;
}

/* The token is in the policy and nowhere else: not in an answer, an error, a status, or a
 * message of another conversation. (test_client_resumable.c has the same check for the
 * client.) */
static void assert_said_once(const wire *c, const char *secret)
{
    const char *at = strstr(wire_history(c), secret);
    assert_non_null(at);
    assert_null(strstr(at + 1, secret));
    const char *line = at;
    while (line > wire_history(c) && line[-1] != '\n')
        line--;
    assert_non_null(strstr(line, "notifications/requests/resumePolicy"));
    assert_true(strchr(line, '\n') > at);
}

/* The store holds no token, and no content that was delivered. */
static void as_108(world *w)
{
    char plain[128], wal[160];
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    wire *other = legacy_connect(w, NULL, CAPS_Z);
    const char *token = call_for_token(c, "123", "greet", "\"name\":\"Ada\"", NULL);
    snprintf(plain, sizeof plain, "%.*s", (int)strlen(token) - 2, token + 1);
    const char *secret = strchr(plain, '.') + 1;
    assert_int_equal(strlen(secret), 22);
    wire_response(c, "123");
    world_run(w);
    ask_resume(other, "7", token); /* a correct token with a wrong id is not repeated */
    wire_response(other, "7");
    assert_said_once(c, secret);
    assert_null(strstr(wire_history(other), secret));
    snprintf(wal, sizeof wal, "%s-wal", w->path);
    assert_false(file_has(w->path, secret));
    assert_false(file_has(wal, secret));
    world_restart(w);
    c = legacy_connect(w, NULL, CAPS_Z);
    ask_resume(c, "123", token);
    const char *answer = wire_response(c, "123");
    if (w->place == WORLD_PAIR) /* the request was delivered, and exists no more */
        assert_at(answer, "error.data", "");
    assert_null(strstr(wire_history(c), secret));
}

/* On the same pipe an error with the call's id would end the call. */
static void a_wrong_token_does_not_end_the_call(world *w)
{
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    wire_ask_plain(c, "123", "tools/call",
                   "\"name\":\"story\",\"arguments\":{\"n\":2,\"delayMs\":400}");
    wire_notification(c, "notifications/requests/resumePolicy");
    wire_ask_plain(c, "123", "requests/resume", "\"resumeToken\":\"wrong.token\"");
    const char *refusal = wire_due(c);
    assert_code(refusal, -32602);
    assert_at(refusal, "id", "");
    if (world_is_here(w))
        world_advance(w, 1000);
    assert_true(*json_at(wire_response(c, "123"), "result.content.1"));
}

static bool no_digest(sgi_hasher *hasher, uint8_t out[SGI_DIGEST_SIZE],
                      const sgi_str *parts, size_t count)
{
    (void)hasher;
    (void)out;
    (void)parts;
    (void)count;
    return false;
}

/* The crypto library is out of memory: an error is returned, and nothing is left
 * behind. */
static void a_token_that_cannot_be_digested(world *w)
{
    wire *c = legacy_connect(w, NULL, CAPS_Z);
    sgi_engine *engine = sgi_runtime_engine(w->runtime);
    sgi_digest_fn digest = engine->digest;
    engine->digest = no_digest;
    wire_ask_plain(c, "123", "requests/resume", "\"resumeToken\":\"a.b\"");
    const char *refusal = wire_response(c, "123");
    engine->digest = digest;
    assert_code(refusal, -32603);
    wire_ask_plain(c, "124", "requests/resume", "\"resumeToken\":\"a.b\"");
    assert_code(wire_response(c, "124"), -32602);
}

static const scenario scenarios[] = {
    {"R-975-11 a wrong token does not end the call on its pipe",
     a_wrong_token_does_not_end_the_call, ONE_DRIVE | NOT_HTTP, NULL},
    {"AS-94 the policy is the first message for a request", as_94, ONLY_HERE, NULL},
    {"AS-95 AS-96 a resumed request gets what was not delivered", as_95, ONLY_HERE, NULL},
    {"AS-95 AS-104 AS-109 confirmed messages are not sent again", as_95_positions,
     ONLY_HERE | ONLY_HTTP, NULL},
    {"AS-95 a request is resumed while it runs", as_95_running, ONLY_HERE, NULL},
    {"AS-97 wrong tokens and ids get the same error", as_97, ONLY_HERE, NULL},
    {"R-975-11 a token that cannot be digested", a_token_that_cannot_be_digested,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"R-975-32 guessing of tokens is limited per principal", guessing_is_limited,
     ONLY_HERE | ONE_DRIVE, three_guesses},
    {"AS-98 AS-106 a status, and a question that is asked again", as_98, ONLY_HERE, NULL},
    {"AS-98 the status of a failure", as_98_failed, ONLY_HERE, NULL},
    {"AS-99 R-975-25 maxWait runs only while no client is connected", as_99,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-100 a cancelled request stays cancelled", as_100, ONLY_HERE, NULL},
    /* Over a byte stream there is no connection to hang up. */
    {"AS-101 the server ends the stream", as_101, ONLY_HERE | ONLY_HTTP, NULL},
    /* HTTP: another POST is another channel. */
    {"AS-103 resumed on its own channel", as_103, ONLY_HERE | NOT_HTTP, NULL},
    {"AS-104 resumed when all was delivered", as_104, ONLY_HERE, NULL},
    {"R-975-16 an answer that does not fit is asked for again",
     an_answer_that_does_not_fit_is_asked_for_again, 0, NULL},
    {"AS-98 a question that is not needed any more", as_98_withdrawn, ONLY_HERE, NULL},
    {"AS-105 a killed process", as_105_killed, ONLY_STDIO | ONLY_SQLITE, NULL},
    {"logging/setLevel holds for a resumable call that runs", log_level_changes,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"logging/setLevel holds for the messages that were kept",
     a_later_log_level_holds_for_what_was_kept, ONLY_HERE, NULL},
    {"AS-107 progress gives way when the log is full", as_107, ONLY_HERE | ONE_DRIVE,
     tune_small},
    {"AS-107 a log that is full of segments", as_107_hard, ONLY_HERE | ONE_DRIVE,
     tune_small},
    {"AS-108 AS-109 the store holds no token and no delivered content", as_108,
     ONLY_HERE | ONLY_SQLITE, NULL},
    {"AS-110 a resumed result in pieces", as_110, ONLY_HERE, NULL},
    {"AS-111 a resumed stream of segments", as_111, ONLY_HERE, NULL},
    {"AS-105 across a restart", as_105, ONLY_HERE | ONLY_SQLITE, NULL},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
