/* An application stores its token with each segment that it handles, while more segments
 * than that have arrived, and dies. With the token it gets the segments behind, none
 * twice and none missing, then the whole result. This library is at both ends, in every
 * dialect that has tokens, over a pair and over HTTP. */
#include "support/fixtures.h"
#include "support/test_mem.h"
#include "support/world.h"

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
#define SEGMENTS 40
#define HANDLED 13

typedef enum place { PAIR, HTTP } place;

typedef struct talk {
    const char *name;
    int32_t era;
    int no_tasks;
    uint32_t dialects; /* dialects to switch on that are off by default */
} talk;

static const talk rows[] = {
    {"events of a task", SEGUE_ERA_MODERN, 0, 0},
    {"segments of 2025-11-25", SEGUE_ERA_LEGACY, 0, 0},
    {"a task of the draft", SEGUE_ERA_LEGACY, 0, SEGUE_DIALECT_DRAFT_TASKS},
    {"a keyed call with notifications", SEGUE_ERA_MODERN, 1, 0},
    {"a keyed call in pieces", SEGUE_ERA_LEGACY, 1, 0},
    {"a call that can be resumed", SEGUE_ERA_LEGACY, 1, SEGUE_DIALECT_RESUMABLE},
};

#define ROWS (sizeof rows / sizeof *rows)

typedef struct stage stage;

/* One process: the segments that it handles, and the token that it stores. */
typedef struct app {
    stage *s;
    segue_runtime *runtime;
    segue_session *session;
    segue_request *request;
    int stop_at; /* maximum number of segments that it handles; 0 = all */
    uint64_t first, last;
    int handled;
    int completed;
    segue_status status;
    char token[4096];
    char result[16384];
} app;

struct stage {
    const talk *row;
    place place;
    int64_t clock_ms;
    uint64_t chance;
    char path[64];
    test_mem mem;
    segue_runtime *runtime;
    fixtures *fixtures;
    segue_store *store; /* a store that is given, so keys are kept */
    segue_server *server;
    segue_listener *listener;
    app apps[2];
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

static void begin(stage *s, const talk *row, place where)
{
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    segue_listen_options listening = SEGUE_LISTEN_OPTIONS_INIT;
    char address[80];
    memset(s, 0, sizeof *s);
    s->row = row;
    s->place = where;
    s->clock_ms = 1000;
    s->chance = 7;
    test_mem_init(&s->mem);
    s->runtime = new_runtime(s);
    assert_int_equal(segue_store_memory(NULL, &s->store), SEGUE_OK);
    options.store = s->store;
    options.dialects_on = row->dialects;
    assert_int_equal(segue_server_new(s->runtime, &options, &s->server, NULL), SEGUE_OK);
    s->fixtures = fixtures_new(fake_now, s);
    assert_int_equal(fixtures_add(s->fixtures, s->runtime, s->server), SEGUE_OK);
    if (where == PAIR)
        return;
    snprintf(s->path, sizeof s->path, "/tmp/segue-stored-%d", (int)getpid());
    unlink(s->path);
    snprintf(address, sizeof address, "unix:%s", s->path);
    listening.address = address;
    assert_int_equal(segue_server_listen(s->server, &listening, &s->listener, NULL),
                     SEGUE_OK);
}

static segue_transport *connect_to(app *a)
{
    stage *s = a->s;
    segue_transport *near_end, *far_end;
    segue_http_options http = SEGUE_HTTP_OPTIONS_INIT;
    if (s->place == PAIR) {
        assert_int_equal(segue_transport_pair(s->runtime, &near_end, &far_end), SEGUE_OK);
        assert_int_equal(segue_server_attach(s->server, far_end, NULL), SEGUE_OK);
        return near_end;
    }
    http.unix_socket = s->path;
    http.proxy = "";
    assert_int_equal(
        segue_transport_http(a->runtime, "http://localhost/mcp", &http, &near_end, NULL),
        SEGUE_OK);
    return near_end;
}

static app *start_app(stage *s, int which)
{
    app *a = &s->apps[which];
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    a->s = s;
    a->runtime = s->place == PAIR ? s->runtime : new_runtime(s);
    options.era = s->row->era;
    options.no_tasks = s->row->no_tasks;
    options.dialects_on = s->row->dialects;
    assert_int_equal(
        segue_session_open(a->runtime, connect_to(a), &options, NULL, &a->session, NULL),
        SEGUE_OK);
    return a;
}

/* Ends the session without a message to the server: over HTTP the DELETE does not get
 * through. */
static void kill_app(app *a)
{
    if (!a->s)
        return;
    a->stop_at = -1;
    segue_request_free(a->request);
    if (a->s->place == PAIR)
        segue_session_close(a->session);
    segue_session_free(a->session);
    if (a->s->place == HTTP)
        segue_runtime_free(a->runtime);
    a->s = NULL;
}

static void turn(stage *s)
{
    s->clock_ms += 5;
    fixtures_tick(s->fixtures);
    segue_runtime_dispatch(s->runtime, 0, 0, NULL);
    for (size_t i = 0; i < 2 && s->place == HTTP; i++)
        if (s->apps[i].s)
            segue_runtime_dispatch(s->apps[i].runtime, 0, 0, NULL);
}

static void end(stage *s)
{
    kill_app(&s->apps[0]);
    kill_app(&s->apps[1]);
    segue_listener_free(s->listener);
    segue_server_free(s->server);
    segue_runtime_free(s->runtime);
    segue_store_free(s->store);
    fixtures_free(s->fixtures);
    if (s->path[0])
        unlink(s->path);
    assert_int_equal(s->mem.blocks, 0);
}

#define UNTIL(s, condition)                                                              \
    for (int turns_ = 0; !(condition); turns_++) {                                       \
        if (turns_ > TURNS)                                                              \
            fail_msg("%s: in vain: %s", (s)->row->name, #condition);                     \
        turn(s);                                                                         \
    }

/* ---- the application ---- */

/* Stores the token with the segment before it asks for more. */
static void on_segment(void *user, segue_request *request, const segue_segment *segment)
{
    app *a = user;
    size_t len = sizeof a->token;
    if (a->stop_at < 0 || (a->stop_at && a->handled >= a->stop_at))
        return; /* the process is dead */
    uint64_t number = segue_segment_read(segment)->number;
    if (a->handled++)
        assert_int_equal(number, a->last + 1);
    else
        a->first = number;
    a->last = number;
    assert_int_equal(segue_request_token(request, a->token, &len), SEGUE_OK);
    if (a->stop_at && a->handled < a->stop_at)
        assert_int_equal(segue_request_grant(request, 1), SEGUE_OK);
}

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    app *a = user;
    size_t room = sizeof a->token;
    if (a->stop_at < 0)
        return;
    if (status == SEGUE_OK)
        assert_int_equal(segue_request_token(request, a->token, &room), SEGUE_E_TERMINAL);
    else
        print_message("%s: %s\n", a->s->row->name, segue_error_read(error)->message);
    a->completed++;
    a->status = status;
    snprintf(a->result, sizeof a->result, "%.*s", json ? (int)len : 0, json ? json : "");
}

static void events_of(app *a, segue_request_events *events)
{
    *events = SEGUE_REQUEST_EVENTS_INIT;
    events->user = a;
    events->on_segment = on_segment;
    events->on_complete = on_complete;
}

static void call(app *a, int stop_at)
{
    char params[128];
    segue_request_events events;
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    snprintf(params, sizeof params,
             "{\"name\":\"story\",\"arguments\":{\"n\":%d,\"delayMs\":5}}", SEGMENTS);
    events_of(a, &events);
    a->stop_at = stop_at;
    options.credit = 1;
    assert_int_equal(segue_request_start(a->session, "tools/call", params, strlen(params),
                                         &options, &events, &a->request, NULL),
                     SEGUE_OK);
}

static void resume(app *a, const char *token)
{
    segue_request_events events;
    events_of(a, &events);
    assert_int_equal(
        segue_request_resume(a->session, token, NULL, &events, &a->request, NULL),
        SEGUE_OK);
}

static void assert_whole(const app *a)
{
    char path[32], text[64];
    assert_int_equal(a->status, SEGUE_OK);
    for (int i = 0; i < SEGMENTS; i++) {
        snprintf(path, sizeof path, "content.%d.text", i);
        snprintf(text, sizeof text, "\"segment %d of the story\"", i + 1);
        assert_at(a->result, path, text);
    }
    snprintf(path, sizeof path, "content.%d", SEGMENTS);
    assert_at(a->result, path, "");
}

/* The application has not handled everything when it dies. By then either everything has
 * arrived, the end as well, or the tool still runs. */
static void stored_and_resumed(const talk *row, place where, int handled, bool ends)
{
    stage s;
    begin(&s, row, where);
    app *first = start_app(&s, 0);
    call(first, handled);
    UNTIL(&s, first->handled == handled);
    for (int i = 0; i < 4 * SEGMENTS && ends; i++)
        turn(&s); /* the rest arrives */
    assert_true(!ends || !fixtures_jobs(s.fixtures));
    assert_int_equal(first->completed, 0);
    assert_int_equal(
        segue_request_token(first->request, first->token, &(size_t){sizeof first->token}),
        SEGUE_OK);
    kill_app(first);
    app *second = start_app(&s, 1);
    resume(second, first->token);
    UNTIL(&s, second->completed);
    assert_int_equal(second->first, handled + 1);
    assert_int_equal(second->last, SEGMENTS);
    assert_whole(second);
    assert_int_equal(fixtures_runs(s.fixtures, "story"), 1);
    end(&s);
}

static void what_was_handled_is_covered(void **state)
{
    static const int handled[] = {1, HANDLED, SEGMENTS - 1};
    const talk *row = *state;
    for (int where = PAIR; where <= HTTP; where++)
        for (size_t i = 0; i < sizeof handled / sizeof *handled; i++) {
            print_message("%s: %s, %d handled\n", row->name,
                          where == PAIR ? "pair" : "http", handled[i]);
            stored_and_resumed(row, (place)where, handled[i], true);
            if (handled[i] < HANDLED * 2)
                stored_and_resumed(row, (place)where, handled[i], false);
        }
}

/* ---- a cancel when everything has arrived ---- */

static void a_cancel_before_the_end_is_told_is_none_after_it(void **state)
{
    const talk *row = *state;
    stage s;
    begin(&s, row, PAIR);
    app *a = start_app(&s, 0);
    call(a, 1);
    UNTIL(&s, a->handled == 1);
    for (int i = 0; i < 4 * SEGMENTS; i++)
        turn(&s);
    /* there is no credit for the segments before the end */
    assert_int_equal(a->completed, 0);
    a->stop_at = 0;
    assert_int_equal(segue_request_cancel(a->request), SEGUE_OK);
    UNTIL(&s, a->completed);
    if (a->status == SEGUE_OK)
        assert_whole(a);
    else
        assert_int_equal(a->status, SEGUE_E_CANCELLED);
    assert_int_equal(segue_request_cancel(a->request), SEGUE_E_TERMINAL);
    assert_int_equal(segue_request_grant(a->request, 1), SEGUE_E_TERMINAL);
    end(&s);
}

int main(void)
{
    struct CMUnitTest tests[2 * ROWS];
    for (size_t i = 0; i < ROWS; i++) {
        tests[i] = (struct CMUnitTest){"what was handled is covered",
                                       what_was_handled_is_covered, NULL, NULL,
                                       (void *)&rows[i]};
        tests[ROWS + i] =
            (struct CMUnitTest){"a cancel before the end is told is none after it",
                                a_cancel_before_the_end_is_told_is_none_after_it, NULL,
                                NULL, (void *)&rows[i]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
