/* The status of a request that its client let go, asked with its token (SEP-975
 * requests/getStatus). This library is at both ends: over a pair and over HTTP, each time
 * from another session. Asking never runs the work twice. */
#include "support/client_kit.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define TURNS 4000

typedef enum place { PAIR, HTTP } place;

typedef struct stage {
    place place;
    int64_t clock_ms;
    uint64_t chance;
    test_mem mem;
    segue_runtime *runtime;
    segue_server *server;
    segue_listener *listener;
    segue_session *session;
    segue_call *call; /* the tool's call, until the test completes it */
    int runs;
    /* Of the last request. */
    int completed;
    segue_status status;
    int32_t rpc_code;
    char result[4096];
    char token[4096]; /* token of the request that was let go */
} stage;

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

/* Moves the clock; over HTTP the network gets a moment of real time. */
static void turn_by(stage *s, int64_t ms)
{
    s->clock_ms += ms;
    segue_runtime_dispatch(s->runtime, s->place == PAIR ? 0 : 5, 0, NULL);
}

static void turn(stage *s)
{
    turn_by(s, 5);
}

#define UNTIL(s, condition)                                                              \
    for (int turns_ = 0; !(condition); turns_++) {                                       \
        if (turns_ > TURNS)                                                              \
            fail_msg("in vain: %s", #condition);                                         \
        turn(s);                                                                         \
    }

/* ---- the server ---- */

static void on_call(void *user, segue_call *call)
{
    stage *s = user;
    s->runs++;
    s->call = call;
}

static void complete(stage *s, bool as_error)
{
    if (as_error) {
        segue_call_fail(s->call, 4711, "it broke", NULL, 0, NULL);
    } else {
        segue_call_send_text(s->call, "done", 4, NULL);
        segue_call_complete(s->call, NULL, NULL);
    }
    segue_call_free(s->call);
    s->call = NULL;
}

static void make_server(stage *s)
{
    static const char tool[] = "{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    assert_int_equal(segue_server_new(s->runtime, NULL, &s->server, NULL), SEGUE_OK);
    options.user = s;
    options.on_call = on_call;
    options.flags = SEGUE_TOOL_RESUMABLE;
    options.resume_max_wait_ms = 10000;
    assert_int_equal(segue_server_add(s->server, SEGUE_ITEM_TOOL, tool, sizeof tool - 1,
                                      &options, NULL),
                     SEGUE_OK);
    if (s->place == HTTP)
        assert_int_equal(segue_server_listen(s->server, NULL, &s->listener, NULL),
                         SEGUE_OK);
}

/* ---- the client ---- */

static void connect(stage *s)
{
    segue_session_options options = kit_legacy_options();
    segue_transport *near_end = NULL, *far_end = NULL;
    options.dialects_on = SEGUE_DIALECT_RESUMABLE;
    if (s->place == PAIR) {
        assert_int_equal(segue_transport_pair(s->runtime, &near_end, &far_end), SEGUE_OK);
        assert_int_equal(segue_server_attach(s->server, far_end, NULL), SEGUE_OK);
    } else {
        assert_int_equal(segue_transport_http(s->runtime, segue_listener_url(s->listener),
                                              NULL, &near_end, NULL),
                         SEGUE_OK);
    }
    assert_int_equal(
        segue_session_open(s->runtime, near_end, &options, NULL, &s->session, NULL),
        SEGUE_OK);
}

static void leave(stage *s)
{
    segue_session_close(s->session);
    segue_session_free(s->session);
    s->session = NULL;
    for (int i = 0; i < 20; i++)
        turn(s);
}

static void begin(stage *s, place where)
{
    segue_runtime_options options = SEGUE_RUNTIME_OPTIONS_INIT;
    segue_hooks hooks = SEGUE_HOOKS_INIT;
    memset(s, 0, sizeof *s);
    s->place = where;
    s->clock_ms = 1000;
    s->chance = 7;
    test_mem_init(&s->mem);
    hooks.user = s;
    hooks.monotonic_ms = fake_now;
    hooks.wall_ms = fake_wall;
    hooks.random = fake_random;
    options.allocator = &s->mem.mem;
    options.hooks = &hooks;
    assert_int_equal(segue_runtime_new(&options, &s->runtime, NULL), SEGUE_OK);
    make_server(s);
    connect(s);
}

static void end(stage *s)
{
    if (s->call)
        complete(s, false);
    leave(s);
    segue_listener_free(s->listener);
    segue_server_free(s->server);
    segue_runtime_free(s->runtime);
    assert_int_equal(s->mem.blocks, 0);
}

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    stage *s = user;
    (void)request;
    s->completed++;
    s->status = status;
    s->rpc_code = error ? segue_error_read(error)->rpc_code : 0;
    snprintf(s->result, sizeof s->result, "%.*s", json ? (int)len : 0, json ? json : "");
}

static segue_request_events events_of(stage *s)
{
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    events.user = s;
    events.on_complete = on_complete;
    s->completed = 0;
    return events;
}

/* Calls the tool, takes the token, frees the request, and comes back in another
 * session. */
static segue_task *call_and_let_go(stage *s)
{
    size_t len;
    segue_request *request = NULL;
    segue_task *task = NULL;
    segue_request_events events = events_of(s);
    assert_int_equal(segue_request_start(s->session, "tools/call", "{\"name\":\"t\"}", 12,
                                         NULL, &events, &request, NULL),
                     SEGUE_OK);
    UNTIL(s, s->call);
    UNTIL(s, (len = sizeof s->token,
              segue_request_token(request, s->token, &len) == SEGUE_OK));
    assert_int_equal(segue_request_detach(request), SEGUE_OK);
    segue_request_free(request);
    UNTIL(s, s->completed);
    leave(s);
    connect(s);
    assert_int_equal(segue_task_attach_token(s->session, s->token, &task, NULL),
                     SEGUE_OK);
    return task;
}

static void get(stage *s, segue_task *task)
{
    segue_request_events events = events_of(s);
    assert_int_equal(segue_task_get(task, &events, NULL), SEGUE_OK);
    UNTIL(s, s->completed);
}

static void watch(stage *s, segue_task *task)
{
    segue_request_events events = events_of(s);
    assert_int_equal(segue_task_watch(task, NULL, &events, NULL, NULL), SEGUE_OK);
    UNTIL(s, s->completed);
}

static void pass_time(stage *s, int64_t ms)
{
    for (int64_t until = s->clock_ms + ms; s->clock_ms < until;)
        turn_by(s, 100);
}

/* ---- reported states ---- */

static void while_it_runs_and_when_it_is_done(place where)
{
    stage s;
    begin(&s, where);
    segue_task *task = call_and_let_go(&s);
    /* each poll extends the time that it is kept (R-975-5) */
    for (int i = 0; i < 3; i++) {
        get(&s, task);
        assert_int_equal(s.status, SEGUE_OK);
        assert_at(s.result, "status", "\"processing\"");
        assert_at(s.result, "hasInputRequest", "false");
        assert_int_equal(segue_task_get_state(task), SEGUE_TASK_WORKING);
        pass_time(&s, 8000);
    }
    complete(&s, false);
    for (int i = 0; i < 2; i++) { /* a poll does not fetch the result */
        get(&s, task);
        assert_at(s.result, "status", "\"completed\"");
        assert_at(s.result, "hasPendingMessage", "true");
        assert_int_equal(segue_task_get_state(task), SEGUE_TASK_COMPLETED);
    }
    watch(&s, task);
    assert_int_equal(s.status, SEGUE_OK);
    assert_at(s.result, "content.0.text", "\"done\"");
    assert_int_equal(s.runs, 1);
    segue_task_free(task);
    end(&s);
}

static void a_request_that_failed(place where)
{
    stage s;
    begin(&s, where);
    segue_task *task = call_and_let_go(&s);
    complete(&s, true);
    get(&s, task);
    assert_at(s.result, "status", "\"failed\"");
    assert_int_equal(segue_task_get_state(task), SEGUE_TASK_FAILED);
    watch(&s, task);
    assert_int_equal(s.status, SEGUE_E_REMOTE);
    assert_int_equal(s.rpc_code, 4711);
    assert_int_equal(segue_task_get_state(task), SEGUE_TASK_FAILED);
    segue_task_free(task);
    end(&s);
}

/* No client came for too long: the call was cancelled, and the status says so. */
static void a_request_that_expired(place where)
{
    stage s;
    begin(&s, where);
    segue_task *task = call_and_let_go(&s);
    pass_time(&s, 11000);
    assert_int_equal(segue_call_is_cancelled(s.call), 1);
    complete(&s, false);
    get(&s, task);
    assert_int_equal(s.status, SEGUE_E_REMOTE);
    assert_int_equal(s.rpc_code, -32602);
    assert_int_equal(segue_task_get_state(task), SEGUE_TASK_CANCELLED);
    segue_task_free(task);
    end(&s);
}

/* A server without the old data has replaced the one that ran the request. */
static void a_request_that_is_lost(place where)
{
    stage s;
    begin(&s, where);
    segue_task_free(call_and_let_go(&s));
    complete(&s, false);
    leave(&s);
    segue_listener_free(s.listener);
    segue_server_free(s.server);
    s.listener = NULL;
    make_server(&s);
    connect(&s);
    segue_task *task = NULL;
    assert_int_equal(segue_task_attach_token(s.session, s.token, &task, NULL), SEGUE_OK);
    get(&s, task);
    assert_int_equal(s.status, SEGUE_E_REMOTE);
    assert_int_equal(s.rpc_code, -32602);
    assert_int_equal(segue_task_get_state(task), SEGUE_TASK_UNKNOWN);
    watch(&s, task);
    assert_int_equal(s.status, SEGUE_E_REMOTE);
    assert_int_equal(s.rpc_code, -32602);
    segue_task_free(task);
    assert_int_equal(s.runs, 1);
    end(&s);
}

#define BOTH(test)                                                                       \
    static void test##_pair(void **state)                                                \
    {                                                                                    \
        (void)state;                                                                     \
        test(PAIR);                                                                      \
    }                                                                                    \
    static void test##_http(void **state)                                                \
    {                                                                                    \
        (void)state;                                                                     \
        test(HTTP);                                                                      \
    }

BOTH(while_it_runs_and_when_it_is_done)
BOTH(a_request_that_failed)
BOTH(a_request_that_expired)
BOTH(a_request_that_is_lost)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NAMED("R-975-21 while it runs and when it is done [pair]",
              while_it_runs_and_when_it_is_done_pair),
        NAMED("R-975-21 while it runs and when it is done [http]",
              while_it_runs_and_when_it_is_done_http),
        NAMED("R-975-22 a request that failed [pair]", a_request_that_failed_pair),
        NAMED("R-975-22 a request that failed [http]", a_request_that_failed_http),
        NAMED("R-975-5 R-975-12 a request that expired [pair]",
              a_request_that_expired_pair),
        NAMED("R-975-5 R-975-12 a request that expired [http]",
              a_request_that_expired_http),
        NAMED("R-975-11 a request that is lost [pair]", a_request_that_is_lost_pair),
        NAMED("R-975-11 a request that is lost [http]", a_request_that_is_lost_http),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
