/* A tool fails in its first turn, while its client asks for a task. In both eras the
 * client gets a task that fails: the same events, the same error, the same segments. A
 * result at once is the answer itself, in 2025-11-25. What the server refuses is no task.
 * This library is at both ends, over a pair, over pipes and over HTTP. */
#include "support/test_mem.h"
#include "support/world.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define TURNS 4000

typedef enum place { PAIR, PIPES, HTTP, PLACES } place;

typedef struct outcome {
    char events[256]; /* one word for each event, in order */
    char task[128];   /* id of the task, "" = none */
    int completed;
    segue_status status;
    int32_t code;
    char message[200];
    char data[200];
    char json[1024]; /* the result, or the part of it that has arrived */
} outcome;

typedef struct stage {
    place place;
    int64_t clock_ms;
    uint64_t chance;
    test_mem mem;
    char path[64];
    segue_runtime *runtime, *far; /* far: that of the client, the same except for HTTP */
    segue_server *server;
    segue_listener *listener;
    segue_session *session;
} stage;

/* ---- the tools ---- */

static void send(segue_call *call, const char *text)
{
    assert_int_equal(segue_call_send_text(call, text, strlen(text), NULL), SEGUE_OK);
}

static void break_off(segue_call *call)
{
    assert_int_equal(
        segue_call_fail(call, -32603, "It broke", "{\"why\":\"test\"}", 14, NULL),
        SEGUE_OK);
    segue_call_free(call);
}

static void break_at_once(void *user, segue_call *call)
{
    (void)user;
    break_off(call);
}

static void break_behind_segments(void *user, segue_call *call)
{
    (void)user;
    send(call, "one");
    send(call, "two");
    break_off(call);
}

static void give_up(void *user, segue_call *call)
{
    (void)user;
    segue_call_free(call);
}

/* Its outputSchema promises structuredContent. */
static void break_promise(void *user, segue_call *call)
{
    (void)user;
    assert_int_equal(segue_call_complete(call, NULL, NULL), SEGUE_E_INVALID);
    segue_call_free(call);
}

static void be_done(void *user, segue_call *call)
{
    (void)user;
    send(call, "done");
    assert_int_equal(segue_call_complete(call, NULL, NULL), SEGUE_OK);
    segue_call_free(call);
}

static void be_wrong(void *user, segue_call *call)
{
    segue_content *content;
    assert_int_equal(segue_content_new(*(segue_runtime **)user, &content), SEGUE_OK);
    assert_int_equal(segue_content_add_text(content, "wrong", 5, NULL), SEGUE_OK);
    segue_content_set_error(content, 1);
    assert_int_equal(segue_call_complete(call, content, NULL), SEGUE_OK);
    segue_content_free(content);
    segue_call_free(call);
}

static void ends_with_its_client(void *user, segue_call *call)
{
    segue_call_free(call);
    (void)user;
}

/* Holds its call until the call is cancelled. */
static void hold(void *user, segue_call *call)
{
    segue_call_events events = SEGUE_CALL_EVENTS_INIT;
    events.user = user;
    events.on_cancel = ends_with_its_client;
    assert_int_equal(segue_call_watch(call, &events), SEGUE_OK);
}

#define OBJECT "\"inputSchema\":{\"type\":\"object\"}"

static const struct {
    const char *json;
    segue_call_fn on_call;
    int32_t task, flags;
    int64_t promote_after_ms;
} tools[] = {
    {"{\"name\":\"breaks\"," OBJECT "}", break_at_once, SEGUE_TASK_MAY, 0, 0},
    {"{\"name\":\"breaks_must\"," OBJECT "}", break_at_once, SEGUE_TASK_MUST, 0, 0},
    {"{\"name\":\"breaks_stream\"," OBJECT "}", break_at_once, SEGUE_TASK_MAY,
     SEGUE_TOOL_INCREMENTAL, 0},
    {"{\"name\":\"breaks_stored\"," OBJECT "}", break_at_once, SEGUE_TASK_MAY,
     SEGUE_TOOL_STORED, 0},
    {"{\"name\":\"breaks_later\"," OBJECT "}", break_at_once, SEGUE_TASK_MAY, 0, 1000},
    {"{\"name\":\"breaks_never\"," OBJECT "}", break_at_once, SEGUE_TASK_NEVER, 0, 0},
    {"{\"name\":\"behind\"," OBJECT "}", break_behind_segments, SEGUE_TASK_MAY, 0, 0},
    {"{\"name\":\"behind_stream\"," OBJECT "}", break_behind_segments, SEGUE_TASK_MAY,
     SEGUE_TOOL_INCREMENTAL, 0},
    {"{\"name\":\"gives_up\"," OBJECT "}", give_up, SEGUE_TASK_MAY, 0, 0},
    {"{\"name\":\"promised\"," OBJECT ",\"outputSchema\":{\"type\":\"object\"}}",
     break_promise, SEGUE_TASK_MAY, 0, 0},
    {"{\"name\":\"done\"," OBJECT "}", be_done, SEGUE_TASK_MAY, 0, 0},
    {"{\"name\":\"wrong\"," OBJECT "}", be_wrong, SEGUE_TASK_MAY, 0, 0},
    {"{\"name\":\"holds\"," OBJECT "}", hold, SEGUE_TASK_MAY, 0, 0},
};

/* ---- the stage ---- */

static int64_t fake_now(void *user)
{
    return ((stage *)user)->clock_ms;
}

static int64_t fake_wall(void *user)
{
    return WORLD_EPOCH + ((stage *)user)->clock_ms;
}

static int32_t fake_random(void *user, void *bytes, size_t len)
{
    stage *s = user;
    for (size_t i = 0; i < len; i++) {
        s->chance = s->chance * 6364136223846793005u + 1442695040888963407u;
        ((unsigned char *)bytes)[i] = (unsigned char)(s->chance >> 40);
    }
    return 0;
}

static segue_runtime *new_runtime(stage *s)
{
    segue_runtime_options options = SEGUE_RUNTIME_OPTIONS_INIT;
    segue_runtime *runtime = NULL;
    segue_hooks hooks = SEGUE_HOOKS_INIT;
    hooks.user = s;
    hooks.monotonic_ms = fake_now;
    hooks.wall_ms = fake_wall;
    hooks.random = fake_random;
    options.allocator = &s->mem.mem;
    options.hooks = &hooks;
    assert_int_equal(segue_runtime_new(&options, &runtime, NULL), SEGUE_OK);
    return runtime;
}

static void add_tools(stage *s)
{
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
        options.user = &s->runtime;
        options.on_call = tools[i].on_call;
        options.task = tools[i].task;
        options.flags = tools[i].flags;
        options.promote_after_ms = tools[i].promote_after_ms;
        options.poll_ms = 50;
        assert_int_equal(segue_server_add(s->server, SEGUE_ITEM_TOOL, tools[i].json,
                                          strlen(tools[i].json), &options, NULL),
                         SEGUE_OK);
    }
}

static segue_transport *connect_by_pipes(stage *s)
{
    segue_transport *near_end, *far_end;
    int there[2], back[2];
    assert_int_equal(pipe2(there, O_CLOEXEC), 0);
    assert_int_equal(pipe2(back, O_CLOEXEC), 0);
    assert_int_equal(segue_transport_fds(s->runtime, there[0], back[1], &far_end),
                     SEGUE_OK);
    assert_int_equal(segue_transport_fds(s->runtime, back[0], there[1], &near_end),
                     SEGUE_OK);
    assert_int_equal(segue_server_attach(s->server, far_end, NULL), SEGUE_OK);
    return near_end;
}

static segue_transport *connect_by_http(stage *s)
{
    segue_listen_options listening = SEGUE_LISTEN_OPTIONS_INIT;
    segue_http_options http = SEGUE_HTTP_OPTIONS_INIT;
    segue_transport *transport;
    char address[80];
    snprintf(s->path, sizeof s->path, "/tmp/segue-at-once-%d", (int)getpid());
    unlink(s->path);
    snprintf(address, sizeof address, "unix:%s", s->path);
    listening.address = address;
    assert_int_equal(segue_server_listen(s->server, &listening, &s->listener, NULL),
                     SEGUE_OK);
    s->far = new_runtime(s);
    http.unix_socket = s->path;
    http.proxy = "";
    assert_int_equal(
        segue_transport_http(s->far, "http://localhost/mcp", &http, &transport, NULL),
        SEGUE_OK);
    return transport;
}

static segue_transport *connect_there(stage *s)
{
    segue_transport *near_end, *far_end;
    if (s->place == HTTP)
        return connect_by_http(s);
    if (s->place == PIPES)
        return connect_by_pipes(s);
    assert_int_equal(segue_transport_pair(s->runtime, &near_end, &far_end), SEGUE_OK);
    assert_int_equal(segue_server_attach(s->server, far_end, NULL), SEGUE_OK);
    return near_end;
}

static void begin(stage *s, place where, int32_t era, uint32_t modes)
{
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    memset(s, 0, sizeof *s);
    s->place = where;
    s->clock_ms = 1000;
    s->chance = 7;
    test_mem_init(&s->mem);
    s->runtime = s->far = new_runtime(s);
    assert_int_equal(segue_server_new(s->runtime, NULL, &s->server, NULL), SEGUE_OK);
    add_tools(s);
    segue_transport *transport = connect_there(s);
    options.era = era;
    options.response_modes = modes;
    assert_int_equal(
        segue_session_open(s->far, transport, &options, NULL, &s->session, NULL),
        SEGUE_OK);
}

static void turn(stage *s)
{
    s->clock_ms += 5;
    segue_runtime_dispatch(s->runtime, 0, 0, NULL);
    if (s->far != s->runtime)
        segue_runtime_dispatch(s->far, 0, 0, NULL);
}

static void end(stage *s)
{
    segue_session_close(s->session);
    segue_session_free(s->session);
    if (s->far != s->runtime)
        segue_runtime_free(s->far);
    segue_listener_free(s->listener);
    segue_server_free(s->server);
    segue_runtime_free(s->runtime);
    if (s->path[0])
        unlink(s->path);
    assert_int_equal(s->mem.blocks, 0);
}

/* ---- a call ---- */

static void note(outcome *o, const char *event)
{
    size_t len = strlen(o->events);
    snprintf(o->events + len, sizeof o->events - len, "%s%s", len ? " " : "", event);
}

static void on_task(void *user, segue_request *request, const char *task_id)
{
    outcome *o = user;
    (void)request;
    note(o, "task");
    snprintf(o->task, sizeof o->task, "%s", task_id);
}

static void on_segment(void *user, segue_request *request, const segue_segment *segment)
{
    (void)request;
    note(user, segue_segment_text(segment, NULL));
}

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    outcome *o = user;
    (void)request;
    note(o, "end");
    o->completed++;
    o->status = status;
    if (error) {
        const segue_error_view *view = segue_error_read(error);
        o->code = view->rpc_code;
        snprintf(o->message, sizeof o->message, "%s", view->message);
        snprintf(o->data, sizeof o->data, "%s", view->data ? view->data : "");
    }
    snprintf(o->json, sizeof o->json, "%.*s", json ? (int)len : 0, json ? json : "");
}

static segue_request_events events_of(outcome *o)
{
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    events.user = o;
    events.on_task = on_task;
    events.on_segment = on_segment;
    events.on_complete = on_complete;
    return events;
}

static void wait_for(stage *s, const outcome *o, const char *what)
{
    for (int i = 0; !o->completed; i++) {
        if (i > TURNS)
            fail_msg("%s: no end; events: %s", what, o->events);
        turn(s);
    }
}

static outcome call_with(stage *s, const char *tool, int32_t no_idempotency)
{
    outcome o = {0};
    char params[128];
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    segue_request_events events = events_of(&o);
    options.no_idempotency = no_idempotency;
    snprintf(params, sizeof params, "{\"name\":\"%s\",\"arguments\":{}}", tool);
    assert_int_equal(segue_request_start(s->session, "tools/call", params, strlen(params),
                                         &options, &events, NULL, NULL),
                     SEGUE_OK);
    wait_for(s, &o, tool);
    return o;
}

static outcome call(stage *s, const char *tool)
{
    return call_with(s, tool, 1);
}

/* Returns the status that the server gives for a task, as JSON. */
static outcome look_up(stage *s, const char *id)
{
    outcome o = {0};
    segue_request_events events = events_of(&o);
    segue_task *task;
    assert_int_equal(segue_task_attach(s->session, id, &task, NULL), SEGUE_OK);
    assert_int_equal(segue_task_get(task, &events, NULL), SEGUE_OK);
    segue_task_free(task);
    wait_for(s, &o, "tasks/get");
    return o;
}

/* ---- what comes ---- */

/* The response modes of a session of 2025-11-25; 0 = all of them. */
static const uint32_t all_modes[] = {0, SEGUE_RESPONSE_TASK,
                                     SEGUE_RESPONSE_TASK | SEGUE_RESPONSE_IMMEDIATE,
                                     SEGUE_RESPONSE_TASK | SEGUE_RESPONSE_STREAMING};

#define MODES (sizeof all_modes / sizeof *all_modes)

static void assert_same(const outcome *one, const outcome *other, const char *tool)
{
    if (one->status != other->status || one->code != other->code ||
        strcmp(one->message, other->message) != 0 ||
        strcmp(one->data, other->data) != 0 || strcmp(one->events, other->events) != 0)
        fail_msg("%s: %s %d \"%s\" %s [%s] is not %s %d \"%s\" %s [%s]", tool,
                 segue_status_name(one->status), (int)one->code, one->message, one->data,
                 one->events, segue_status_name(other->status), (int)other->code,
                 other->message, other->data, other->events);
    assert_string_equal(json_at(one->json, "content"), json_at(other->json, "content"));
}

/* The tools whose calls fail as tasks. The segments of `behind` do not arrive before its
 * end in 2025-11-25, because it does not say that its result grows. After its end
 * tasks/result has only the error. */
static const char *const failing[] = {"breaks",        "breaks_must", "breaks_stream",
                                      "breaks_stored", "gives_up",    "promised",
                                      "behind_stream", "behind"};

#define FAILING (sizeof failing / sizeof *failing)

static void call_failing(stage *s, int32_t no_idempotency, outcome *out)
{
    for (size_t i = 0; i < FAILING; i++) {
        out[i] = call_with(s, failing[i], no_idempotency);
        if (!*out[i].task)
            fail_msg("%s: no task; events: %s; %s", failing[i], out[i].events,
                     out[i].message);
        assert_int_equal(out[i].status, SEGUE_E_REMOTE);
        assert_int_equal(out[i].code, -32603);
        outcome told = look_up(s, out[i].task);
        assert_at(told.json, "status", "\"failed\"");
    }
}

static void a_failure_at_once_is_a_failed_task(void **state)
{
    static outcome modern[FAILING], legacy[FAILING];
    (void)state;
    for (place where = PAIR; where < PLACES; where++) {
        for (int32_t keyless = 0; keyless < 2; keyless++) {
            stage s;
            begin(&s, where, SEGUE_ERA_MODERN, 0);
            call_failing(&s, keyless, modern);
            end(&s);
            for (size_t m = 0; m < MODES; m++) {
                begin(&s, where, SEGUE_ERA_LEGACY, all_modes[m]);
                call_failing(&s, keyless, legacy);
                end(&s);
                for (size_t i = 0; i < FAILING - 1 && !m; i++)
                    assert_same(&legacy[i], &modern[i], failing[i]);
            }
        }
    }
}

/* A call that may stay plain for a second is no task yet, and a tool that never makes
 * tasks makes none here. */
static void a_failure_of_a_plain_call_is_plain(void **state)
{
    static const char *const names[] = {"breaks_later", "breaks_never"};
    (void)state;
    for (place where = PAIR; where < PLACES; where++) {
        for (size_t i = 0; i < 2; i++) {
            stage s;
            begin(&s, where, SEGUE_ERA_MODERN, 0);
            outcome modern = call(&s, names[i]);
            end(&s);
            begin(&s, where, SEGUE_ERA_LEGACY, 0);
            outcome legacy = call(&s, names[i]);
            end(&s);
            assert_string_equal(modern.events, "end");
            assert_same(&legacy, &modern, names[i]);
        }
    }
}

/* What is ready at once is the answer in 2025-11-25, and the result of a task in
 * 2026-07-28. Either way it is the same result. */
static void a_result_at_once_is_the_answer(void **state)
{
    static const char *const names[] = {"done", "wrong"};
    (void)state;
    for (place where = PAIR; where < PLACES; where++) {
        for (size_t i = 0; i < 2; i++) {
            stage s;
            begin(&s, where, SEGUE_ERA_MODERN, 0);
            outcome modern = call(&s, names[i]);
            end(&s);
            begin(&s, where, SEGUE_ERA_LEGACY, 0);
            outcome legacy = call(&s, names[i]);
            end(&s);
            assert_int_equal(modern.status, SEGUE_OK);
            assert_int_equal(legacy.status, SEGUE_OK);
            assert_true(*modern.task);
            assert_string_equal(legacy.task, "");
            assert_string_equal(json_at(legacy.json, "content"),
                                json_at(modern.json, "content"));
            assert_string_equal(json_at(legacy.json, "isError"),
                                json_at(modern.json, "isError"));
        }
    }
}

/* The server refuses the request itself: no task exists. */
static void a_refused_call_is_no_task(void **state)
{
    static const char *const refused[] = {
        "{\"name\":\"nobody\",\"arguments\":{}}",
        "{\"name\":\"breaks\",\"arguments\":7}",
        "{\"name\":7}",
    };
    (void)state;
    for (place where = PAIR; where < PLACES; where++) {
        for (int32_t era = SEGUE_ERA_MODERN; era <= SEGUE_ERA_LEGACY; era++) {
            stage s;
            begin(&s, where, era, 0);
            for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
                outcome o = {0};
                segue_request_events events = events_of(&o);
                assert_int_equal(segue_request_start(s.session, "tools/call", refused[i],
                                                     strlen(refused[i]), NULL, &events,
                                                     NULL, NULL),
                                 SEGUE_OK);
                wait_for(&s, &o, refused[i]);
                assert_string_equal(o.events, "end");
                assert_int_equal(o.status, SEGUE_E_REMOTE);
                assert_int_equal(o.code, -32602);
            }
            end(&s);
        }
    }
}

/* The client cancels its call before it has an answer, and the tool gives up then. */
static void a_call_cancelled_at_once_ends_as_cancelled(void **state)
{
    static const char params[] = "{\"name\":\"holds\",\"arguments\":{}}";
    (void)state;
    for (place where = PAIR; where < PLACES; where++) {
        for (int32_t era = SEGUE_ERA_MODERN; era <= SEGUE_ERA_LEGACY; era++) {
            stage s;
            outcome o = {0};
            segue_request_events events = events_of(&o);
            segue_request *request;
            begin(&s, where, era, 0);
            call(&s, "done");
            assert_int_equal(segue_request_start(s.session, "tools/call", params,
                                                 strlen(params), NULL, &events, &request,
                                                 NULL),
                             SEGUE_OK);
            assert_int_equal(segue_request_cancel(request), SEGUE_OK);
            wait_for(&s, &o, "cancelled");
            assert_int_equal(o.status, SEGUE_E_CANCELLED);
            segue_request_free(request);
            end(&s);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"AS-11 R-1905-11 a tool that fails at once makes a task that fails",
         a_failure_at_once_is_a_failed_task, NULL, NULL, NULL},
        {"AS-11 a plain call that fails at once is answered with the error, in both eras",
         a_failure_of_a_plain_call_is_plain, NULL, NULL, NULL},
        {"AS-1 R-1905-12 what is ready at once is the answer",
         a_result_at_once_is_the_answer, NULL, NULL, NULL},
        {"AS-11 a call that is refused makes no task, in both eras",
         a_refused_call_is_no_task, NULL, NULL, NULL},
        {"AS-11 a call that is cancelled at once ends as cancelled, in both eras",
         a_call_cancelled_at_once_ends_as_cancelled, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests_name("fails_at_once", tests, NULL, NULL);
}
