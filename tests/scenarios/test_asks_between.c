/* A tool that sends a piece, asks its client, and sends another piece after the answer:
 * in segments of a task (SEP-1905) and in responses to a plain call (PR 776). */
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

#include "engine/conversation/replay.h"
#include "engine/server/wire_session.h"

#define CAPS "{\"elicitation\":{},\"tasks\":{\"responses\":{\"modes\":[\"streaming\"]}}}"
#define BEFORE "\"type\":\"text\",\"text\":\"before\""
#define AFTER "\"type\":\"text\",\"text\":\"after\""

static void go_on(void *user, segue_call *call, segue_status status, const char *json,
                  size_t len)
{
    (void)user;
    if (status == SEGUE_E_CANCELLED) { /* the call has ended, so nothing can be sent */
        segue_call_free(call);
        return;
    }
    assert_int_equal(status, SEGUE_OK);
    assert_non_null(json);
    assert_true(len > 0);
    assert_int_equal(segue_call_progress(call, 2, 2, NULL, NULL), SEGUE_OK);
    assert_int_equal(segue_call_send_text(call, "after", 5, NULL), SEGUE_OK);
    assert_int_equal(segue_call_complete(call, NULL, NULL), SEGUE_OK);
    segue_call_free(call);
}

static void begin(void *user, segue_call *call)
{
    static const char form[] = "{\"message\":\"Go on?\",\"requestedSchema\":{\"type\":"
                               "\"object\",\"properties\":{}}}";
    (void)user;
    assert_int_equal(segue_call_progress(call, 1, 2, NULL, NULL), SEGUE_OK);
    assert_int_equal(segue_call_send_text(call, "before", 6, NULL), SEGUE_OK);
    assert_int_equal(segue_call_require_input(call, NULL, "elicitation/create", form,
                                              sizeof form - 1, go_on, NULL, NULL, NULL),
                     SEGUE_OK);
}

static wire *connect_to_tool(world *w)
{
    static const char tool[] =
        "{\"name\":\"between\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = begin;
    options.flags = SEGUE_TOOL_INCREMENTAL;
    options.task = SEGUE_TASK_MAY;
    assert_int_equal(segue_server_add(w->server, SEGUE_ITEM_TOOL, tool, sizeof tool - 1,
                                      &options, NULL),
                     SEGUE_OK);
    return legacy_connect(w, "Ada", CAPS);
}

/* Opens one more conversation of the same session. */
static wire *connect_beside(const wire *other)
{
    wire *c = legacy_connect(other->w, "Ada", CAPS);
    free(c->session);
    c->session = strdup(other->session);
    return c;
}

static void answer_the_question_by(wire *c, wire *answers)
{
    char line[256], id[WIRE_ID];
    snprintf(id, sizeof id, "%s", json_at(wire_request(c, "elicitation/create"), "id"));
    snprintf(line, sizeof line,
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"action\":\"accept\","
             "\"content\":{}}}",
             id);
    wire_send(answers, line);
}

static void answer_the_question(wire *c)
{
    answer_the_question_by(c, c);
}

/* Returns the first response with the member; responses before it are about the task. */
static const char *response_with(wire *c, const char *path)
{
    const char *r;
    do
        r = wire_response(c, "1");
    while (!*json_at(r, path));
    return r;
}

/* The task is input_required meanwhile, and streams on after the answer. */
static void between_segments(world *w)
{
    char task[64];
    wire *c = connect_to_tool(w);
    legacy_ask_task(c, "1", "between", NULL, "{\"responseModes\":[\"streaming\"]}");
    const char *r = wire_response(c, "1");
    const char *id = json_at(r, "result.task.taskId");
    assert_true(*id);
    snprintf(task, sizeof task, "%.*s", (int)strlen(id) - 2, id + 1);
    if (!*json_at(r, "result.partial-content.0"))
        r = response_with(c, "result.partial-content.0");
    assert_at(r, "result.partial-content", "[{\"seqNr\":1," BEFORE "}]");
    assert_at(r, "result.isComplete", "false");
    assert_at(legacy_task(c, "2", "tasks/get", task, NULL), "result.status",
              "\"input_required\"");
    answer_the_question(c);
    r = response_with(c, "result.partial-content.0");
    assert_at(r, "result.partial-content", "[{\"seqNr\":2," AFTER "}]");
    if (strcmp(json_at(r, "result.isComplete"), "true") != 0)
        assert_at(wire_response(c, "1"), "result.isComplete", "true");
    assert_at(legacy_task(c, "3", "tasks/result", task, NULL), "result.content",
              "[{" BEFORE "},{" AFTER "}]");
}

static void tune_small(segue_server_options *options)
{
    options->max_result_bytes = options->max_log_bytes = 4096;
}

/* An answer that the limits leave no room for ends the call with an error that names the
 * limit. The client is asked once: it would give the same answer again. */
static void an_answer_beyond_the_limit_ends_the_call(world *w)
{
    static char line[8192];
    char id[WIRE_ID];
    for (int is_task = 0; is_task < 2; is_task++) {
        wire *c = is_task ? legacy_connect(w, "Ada", CAPS) : connect_to_tool(w);
        const char *task = "";
        if (is_task)
            task = legacy_make_task(c, "1", "between", NULL, NULL);
        else
            wire_ask_plain(c, "1", "tools/call", "\"name\":\"between\"");
        if (is_task)
            legacy_ask_about(c, "2", "tasks/result", task, NULL);
        snprintf(id, sizeof id, "%s",
                 json_at(wire_request(c, "elicitation/create"), "id"));
        snprintf(line, sizeof line,
                 "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"action\":\"accept\","
                 "\"content\":{},\"pad\":\"%05000d\"}}",
                 id, 0);
        wire_send(c, line);
        const char *r = wire_response(c, is_task ? "2" : "1");
        assert_non_null(
            strstr(r, is_task ? "max_log_bytes is 4096" : "max_result_bytes is 4096"));
        world_advance(w, 1000);
        const char *first = strstr(wire_history(c), "\"elicitation/create\"");
        assert_non_null(first);
        assert_null(strstr(first + 1, "\"elicitation/create\""));
    }
}

/* Progress is independent of the pieces. */
static void between_responses(world *w)
{
    wire *c = connect_to_tool(w);
    wire_ask_plain(c, "1", "tools/call",
                   "\"name\":\"between\",\"_meta\":{\"allowPartial\":true,"
                   "\"progressToken\":\"p\"}");
    const char *r = response_with(c, "result.content.0");
    assert_at(r, "result.content", "[{" BEFORE "}]");
    assert_at(r, "result._meta.hasMore", "true");
    answer_the_question(c);
    r = response_with(c, "result.content.0");
    assert_at(r, "result.content", "[{" AFTER "}]");
    for (int i = 1; i <= 2; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        const char *note = wire_notification(c, "notifications/progress");
        assert_at(note, "params.progressToken", "\"p\"");
        assert_at(note, "params.progress", number);
    }
}

/* Calls again with the key, which finds the call's task. */
static void stream_by_key(wire *c, const char *id)
{
    wire_ask_plain(c, id, "tools/call",
                   "\"name\":\"between\",\"arguments\":{},"
                   "\"task\":{\"responseModes\":[\"streaming\"]},"
                   "\"_meta\":{\"dev.segue/idempotencyKey\":\"a key of sixteen bytes\"}");
}

/* The client opens another session and calls again with its key. It is asked on the
 * stream of that call, which has the segments, though it does not wait for the result. */
static void asked_on_the_stream_of_the_call_again(world *w)
{
    wire *c = connect_to_tool(w);
    stream_by_key(c, "1");
    wire_request(c, "elicitation/create");
    wire_cut(c);
    world_run(w);
    c = legacy_connect(w, "Ada", CAPS);
    stream_by_key(c, "1");
    assert_at(response_with(c, "result.partial-content.0"), "result.partial-content",
              "[{\"seqNr\":1," BEFORE "}]");
    answer_the_question_by(c, connect_beside(c));
    assert_at(response_with(c, "result.partial-content.0"), "result.partial-content",
              "[{\"seqNr\":2," AFTER "}]");
}

/* The same in one session that listens all the time: the first stream broke before its
 * client had an event id. */
static void asked_in_the_same_session(world *w)
{
    wire *listens = connect_to_tool(w);
    wire *c = connect_beside(listens);
    stream_by_key(c, "1");
    wire_request(c, "elicitation/create");
    wire_cut(c);
    world_run(w);
    wire *again = connect_beside(listens);
    stream_by_key(again, "2");
    world_run(w);
    answer_the_question_by(listens, listens);
    for (const char *r = ""; !strstr(r, AFTER);)
        r = wire_response(again, "2");
}

/* The first conversation is lost only after the client has called again. */
static void asked_on_the_other_stream_when_one_is_lost(world *w)
{
    char task[64];
    wire *first = connect_to_tool(w);
    stream_by_key(first, "1");
    wire_request(first, "elicitation/create");
    wire *c = legacy_connect(w, "Ada", CAPS);
    stream_by_key(c, "1");
    const char *r = response_with(c, "result.partial-content.0");
    const char *id = json_at(r, "result.task.taskId");
    snprintf(task, sizeof task, "%.*s", (int)strlen(id) - 2, id + 1);
    wire_quiet(c); /* the client is asked only once */
    wire_cut(first);
    world_run(w);
    wire *beside = connect_beside(c);
    legacy_task(beside, "2", "tasks/get", task, NULL);
    answer_the_question_by(c, beside);
    assert_at(response_with(c, "result.partial-content.0"), "result.partial-content",
              "[{\"seqNr\":2," AFTER "}]");
}

/* The session has no stream for listening. The stream of the first wait broke before its
 * client had an event id, so the client cannot resume it for the question. */
static void asked_on_the_next_wait(world *w)
{
    wire *listens = connect_to_tool(w);
    wire *first = connect_beside(listens);
    wire *again = connect_beside(listens);
    wire *answers = connect_beside(listens);
    wire_cut(listens);
    world_run(w);
    const char *task = legacy_make_task(first, "1", "between", NULL, NULL);
    legacy_ask_about(first, "2", "tasks/result", task, NULL);
    wire_request(first, "elicitation/create");
    wire_cut(first);
    world_run(w);
    legacy_ask_about(again, "3", "tasks/result", task, NULL);
    answer_the_question_by(again, answers);
    assert_at(wire_response(again, "3"), "result.content", "[{" BEFORE "},{" AFTER "}]");
}

/* Opens the GET stream of the session again, without an event id. */
static wire *listen_again(const wire *other)
{
    wire *c = connect_beside(other);
    wire_notify(c, "notifications/initialized", "");
    world_run(other->w);
    return c;
}

/* The GET stream broke when the question was on its way. Its client has no event id,
 * opens the stream again, and waits for the result. If the client waits while no GET
 * stream is open, the question goes to the stream of this request. */
static void asked_on_the_stream_that_begins_again(world *w)
{
    for (int waits_first = 0; waits_first < 2; waits_first++) {
        wire *listens = waits_first ? legacy_connect(w, "Ada", CAPS) : connect_to_tool(w);
        wire *c = connect_beside(listens);
        const char *task = legacy_make_task(c, "1", "between", NULL, NULL);
        wire_request(listens, "elicitation/create");
        wire_cut(listens);
        world_run(w);
        if (waits_first)
            legacy_ask_about(c, "2", "tasks/result", task, NULL);
        wire *again = listen_again(c);
        if (!waits_first)
            legacy_ask_about(c, "2", "tasks/result", task, NULL);
        answer_the_question_by(waits_first ? c : again, connect_beside(c));
        assert_at(wire_response(c, "2"), "result.content", "[{" BEFORE "},{" AFTER "}]");
    }
}

static sgi_wire_session *session_of(const wire *c)
{
    sgi_wire_session *session;
    TAILQ_FOREACH(session, &c->w->server->sessions.by_use, by_use)
        if (!strcmp(session->id, c->session))
            return session;
    fail_msg("the server has no session %s", c->session);
    return NULL;
}

/* The GET stream broke when the question was on its way, and the server no longer has the
 * event of the question when the client resumes the stream. The question is sent again
 * when the client waits for the result. */
static void asked_again_behind_a_gap(world *w)
{
    char event[128];
    wire *listens = connect_to_tool(w);
    wire *c = connect_beside(listens);
    const char *task = legacy_make_task(c, "1", "between", NULL, NULL);
    wire_request(listens, "elicitation/create");
    wire_cut(listens);
    world_run(w);
    sgi_replay *replay = session_of(c)->listening->conn->replay;
    snprintf(event, sizeof event, "%lld-%llu", (long long)replay->stream,
             (unsigned long long)replay->next - 2);
    sgi_replay_drop_all(replay);
    wire *again = connect_beside(c);
    wire_after(again, event);
    wire_notify(again, "notifications/initialized", "");
    world_run(w);
    legacy_ask_about(c, "2", "tasks/result", task, NULL);
    answer_the_question_by(again, connect_beside(c));
    assert_at(wire_response(c, "2"), "result.content", "[{" BEFORE "},{" AFTER "}]");
}

/* The client waits for the result and was asked on the GET stream, which breaks and does
 * not come back. After a pause the question goes to the stream that waits. A client that
 * resumes the GET stream in time is not asked twice. */
static void asked_where_it_waits_when_get_is_lost(world *w)
{
    char event[128];
    for (int comes_back = 0; comes_back < 2; comes_back++) {
        wire *listens = comes_back ? legacy_connect(w, "Ada", CAPS) : connect_to_tool(w);
        wire *c = connect_beside(listens);
        const char *task = legacy_make_task(c, "1", "between", NULL, NULL);
        wire_request(listens, "elicitation/create");
        legacy_ask_about(c, "2", "tasks/result", task, NULL);
        world_run(w);
        wire_cut(listens);
        world_run(w);
        wire *again = c;
        if (comes_back) {
            again = connect_beside(c);
            snprintf(event, sizeof event, "%lld-0",
                     (long long)session_of(c)->listening->conn->replay->stream);
            wire_after(again, event);
            wire_notify(again, "notifications/initialized", "");
        }
        world_advance(w, 5000);
        if (comes_back)
            wire_quiet(c);
        answer_the_question_by(again, connect_beside(c));
        assert_at(wire_response(c, "2"), "result.content", "[{" BEFORE "},{" AFTER "}]");
    }
}

/* The same for a plain call, found by its key. */
static void call_by_key(wire *c, const char *id)
{
    wire_ask_plain(c, id, "tools/call",
                   "\"name\":\"between\",\"arguments\":{},"
                   "\"_meta\":{\"dev.segue/idempotencyKey\":\"a key of sixteen bytes\"}");
}

/* `again` belongs to the same session or to another one. */
static void call_again_is_asked(wire *first, wire *again)
{
    wire *answers = connect_beside(again);
    call_by_key(first, "1");
    wire_request(first, "elicitation/create");
    wire_cut(first);
    world_run(first->w);
    call_by_key(again, "2");
    answer_the_question_by(again, answers);
    assert_at(wire_response(again, "2"), "result.content", "[{" BEFORE "},{" AFTER "}]");
}

static void a_plain_call_in_its_session(world *w)
{
    wire *listens = connect_to_tool(w);
    wire *first = connect_beside(listens);
    wire *again = connect_beside(listens);
    wire_cut(listens);
    world_run(w);
    call_again_is_asked(first, again);
}

static void a_plain_call_in_another_session(world *w)
{
    wire *first = connect_to_tool(w);
    call_again_is_asked(first, legacy_connect(w, "Ada", CAPS));
}

static const scenario scenarios[] = {
    {"R-1905-37 a tool asks between two segments", between_segments,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"R-C-10 an answer beyond the limit ends the call",
     an_answer_beyond_the_limit_ends_the_call, ONLY_HERE | ONE_DRIVE, tune_small},
    {"R-1905-37 a call that comes again is asked on its own stream",
     asked_on_the_stream_of_the_call_again,
     ONLY_HERE | ONLY_HTTP | ONLY_KEYED | ONE_DRIVE, NULL},
    {"R-1905-37 a call that comes again in its session is asked again",
     asked_in_the_same_session, ONLY_HERE | ONLY_HTTP | ONLY_KEYED | ONE_DRIVE, NULL},
    {"R-1905-37 a call whose first stream is lost is asked on the other one",
     asked_on_the_other_stream_when_one_is_lost,
     ONLY_HERE | ONLY_HTTP | ONLY_KEYED | ONE_DRIVE, NULL},
    {"R-2557-28 a task is asked again where its result is waited for again",
     asked_on_the_next_wait, ONLY_HERE | ONLY_HTTP | ONE_DRIVE, NULL},
    {"R-2557-28 a task is asked again where the stream of GET begins again",
     asked_on_the_stream_that_begins_again, ONLY_HERE | ONLY_HTTP | ONE_DRIVE, NULL},
    {"R-2557-28 a task is asked again where the stream of GET has a gap",
     asked_again_behind_a_gap, ONLY_HERE | ONLY_HTTP | ONE_DRIVE, NULL},
    {"R-2557-28 a task is asked where its client waits when GET is lost",
     asked_where_it_waits_when_get_is_lost, ONLY_HERE | ONLY_HTTP | ONE_DRIVE, NULL},
    {"R-0-1 a plain call that comes again in another session is asked again",
     a_plain_call_in_another_session, ONLY_HERE | ONLY_HTTP | ONLY_KEYED | ONE_DRIVE,
     NULL},
    {"R-0-1 a plain call that comes again in its session is asked again",
     a_plain_call_in_its_session, ONLY_HERE | ONLY_HTTP | ONLY_KEYED | ONE_DRIVE, NULL},
    {"R-776-24 R-776-25 a tool asks between two pieces, and tells how far it is",
     between_responses, ONLY_HERE | ONE_DRIVE, NULL},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
