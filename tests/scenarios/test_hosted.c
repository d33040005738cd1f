/* A question that is answered as a task, with this library at both ends: the server asks
 * a model (2025-11-25 client/sampling), and the client hosts it. AS-25: the answer comes
 * in pieces (SEP-1905), by pushes over a pair and over stdio, by pulls over HTTP. The
 * tool gets the merged CreateMessageResult. */
#include "support/model_fixtures.h"
#include "support/test_mem.h"
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

typedef enum place { PAIR, HTTP, SPAWN } place;

typedef struct stage {
    place place;
    int64_t clock_ms;
    uint64_t chance;
    test_mem mem;
    segue_runtime *runtime;
    segue_server *server;
    segue_listener *listener;
    segue_session *session;
    model model;
    int completed;
    segue_status status;
    char result[4096];
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

static void make_runtime(stage *s)
{
    segue_runtime_options options = SEGUE_RUNTIME_OPTIONS_INIT;
    segue_hooks hooks = SEGUE_HOOKS_INIT;
    s->clock_ms = 1000;
    s->chance = 7;
    test_mem_init(&s->mem);
    hooks.user = s;
    hooks.monotonic_ms = fake_now;
    hooks.wall_ms = fake_wall;
    hooks.random = fake_random;
    options.allocator = &s->mem.mem;
    if (s->place != SPAWN) /* a child process has a clock of its own */
        options.hooks = &hooks;
    assert_int_equal(segue_runtime_new(&options, &s->runtime, NULL), SEGUE_OK);
}

static void make_server(stage *s, const segue_server_options *given)
{
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    if (given)
        options = *given;
    else
        options.question_ttl_ms = 60000;
    assert_int_equal(segue_server_new(s->runtime, &options, &s->server, NULL), SEGUE_OK);
    assert_int_equal(model_tools_add(s->runtime, s->server), SEGUE_OK);
}

static segue_transport *connect(stage *s)
{
    segue_transport *near_end = NULL, *far_end = NULL;
    if (s->place == PAIR) {
        assert_int_equal(segue_transport_pair(s->runtime, &near_end, &far_end), SEGUE_OK);
        assert_int_equal(segue_server_attach(s->server, far_end, NULL), SEGUE_OK);
    } else if (s->place == HTTP) {
        assert_int_equal(segue_server_listen(s->server, NULL, &s->listener, NULL),
                         SEGUE_OK);
        assert_int_equal(segue_transport_http(s->runtime, segue_listener_url(s->listener),
                                              NULL, &near_end, NULL),
                         SEGUE_OK);
    } else {
        static const char *const argv[] = {SEGUE_FIXTURE_SERVER, NULL};
        segue_spawn_options spawn = SEGUE_SPAWN_OPTIONS_INIT;
        spawn.argv = argv;
        setenv("SEGUE_OPTIONS", "question_ttl_ms=60000", 1);
        assert_int_equal(segue_transport_spawn(s->runtime, &spawn, &near_end, NULL),
                         SEGUE_OK);
    }
    return near_end;
}

static void begin(stage *s, place where, const segue_item_options *item,
                  const segue_server_options *server)
{
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    memset(s, 0, sizeof *s);
    s->place = where;
    make_runtime(s);
    if (s->place != SPAWN)
        make_server(s, server);
    model_begin(&s->model, s->runtime, NULL, item);
    options.era = SEGUE_ERA_LEGACY;
    options.host = s->model.host;
    assert_int_equal(
        segue_session_open(s->runtime, connect(s), &options, NULL, &s->session, NULL),
        SEGUE_OK);
}

static void end(stage *s)
{
    segue_session_close(s->session);
    segue_session_free(s->session);
    model_end(&s->model);
    segue_listener_free(s->listener);
    segue_server_free(s->server);
    segue_runtime_free(s->runtime);
    unsetenv("SEGUE_OPTIONS");
    assert_int_equal(s->mem.blocks, 0);
}

static void turn(stage *s)
{
    s->clock_ms += 5;
    segue_runtime_dispatch(s->runtime, s->place == PAIR ? 0 : 5, 0, NULL);
}

#define UNTIL(s, condition)                                                              \
    for (int turns_ = 0; !(condition); turns_++) {                                       \
        if (turns_ > TURNS)                                                              \
            fail_msg("in vain: %s", #condition);                                         \
        turn(s);                                                                         \
    }

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    stage *s = user;
    (void)request;
    (void)error;
    s->completed++;
    s->status = status;
    snprintf(s->result, sizeof s->result, "%.*s", json ? (int)len : 0, json ? json : "");
}

static void call(stage *s, const char *tool)
{
    char params[64];
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    snprintf(params, sizeof params, "{\"name\":\"%s\"}", tool);
    events.user = s;
    events.on_complete = on_complete;
    s->completed = 0;
    assert_int_equal(segue_request_start(s->session, "tools/call", params, strlen(params),
                                         NULL, &events, NULL, NULL),
                     SEGUE_OK);
}

/* Returns what the tool got: its result has it as text, a string in JSON. */
static const char *answer(stage *s)
{
    static char text[4096];
    const char *from = json_at(s->result, "content.0.text");
    size_t n = 0;
    for (from++; *from && from[1]; from++)
        if (*from != '\\' && n + 1 < sizeof text)
            text[n++] = *from;
    text[n] = 0;
    return text;
}

static void pause(stage *s)
{
    for (int i = 0; i < 30; i++)
        turn(s);
}

static void streamed(place where, const char *tool)
{
    stage s;
    begin(&s, where, NULL, NULL);
    call(&s, tool);
    UNTIL(&s, s.model.calls);
    assert_at(s.model.calls->params, "maxTokens", "100");
    assert_at(s.model.calls->params, "task.ttl", "60000");
    assert_at(s.model.calls->params, "task.responseModes",
              "[\"task\",\"immediate\",\"streaming\"]");
    static const char *const pieces[] = {"Hel", "lo", "!"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(model_say(s.model.calls, pieces[i]), SEGUE_OK);
        pause(&s);
    }
    assert_int_equal(model_complete(s.model.calls), SEGUE_OK);
    UNTIL(&s, s.completed);
    assert_int_equal(s.status, SEGUE_OK);
    assert_at(answer(&s), "content",
              "[{\"type\":\"text\",\"text\":\"Hel\"},{\"type\":\"text\",\"text\":\"lo\"},"
              "{\"type\":\"text\",\"text\":\"!\"}]");
    assert_at(answer(&s), "role", "\"assistant\"");
    assert_at(answer(&s), "model", "\"m-1\"");
    assert_at(answer(&s), "stopReason", "\"endTurn\"");
    assert_at(answer(&s), "isError", "");
    assert_at(answer(&s), "_meta", "");
    assert_int_equal(s.model.count, 1);
    end(&s);
}

static void as_25_over_a_pair(void **state)
{
    (void)state;
    streamed(PAIR, "ask_model");
    streamed(PAIR, "ask_model_task");
}

static void as_25_over_stdio(void **state)
{
    (void)state;
    streamed(SPAWN, "ask_model");
    streamed(SPAWN, "ask_model_task");
}

static void as_25_over_http(void **state)
{
    (void)state;
    streamed(HTTP, "ask_model");
    streamed(HTTP, "ask_model_task");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"AS-25 over a pair", as_25_over_a_pair, NULL, NULL, NULL},
        {"AS-25 over stdio", as_25_over_stdio, NULL, NULL, NULL},
        {"AS-25 over HTTP", as_25_over_http, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
