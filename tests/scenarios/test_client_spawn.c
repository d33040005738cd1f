/* The client with a real server: the fixture server runs as a child process with a SQLite
 * file. It is killed in the middle of a stream and started again. Each scenario runs
 * twice: with everything in one thread, and with input that the I/O thread lends. */
#include "support/fixtures.h"
#include "support/scratch.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define TURNS 2000 /* turns of at most 10 ms, after which a request counts as lost */

typedef struct outcome {
    int segments;
    uint64_t last;
    int prompts;
    int completed, freed;
    segue_status status;
    char content[4096];
} outcome;

static void on_segment(void *user, segue_request *request, const segue_segment *segment)
{
    outcome *o = user;
    char expected[64];
    const char *text = segue_segment_text(segment, NULL);
    (void)request;
    fixtures_story_line(++o->segments, 0, expected, sizeof expected);
    assert_int_equal(segue_segment_read(segment)->number, ++o->last);
    if (text && strstr(text, "story"))
        assert_string_equal(text, expected);
}

static void on_input(void *user, segue_request *request, const char *key,
                     const char *method, const char *params, size_t len)
{
    static const char yes[] = "{\"action\":\"accept\",\"content\":{\"confirm\":true}}";
    outcome *o = user;
    (void)method;
    (void)params;
    (void)len;
    o->prompts++;
    assert_int_equal(segue_request_answer(request, key, yes, sizeof yes - 1, NULL),
                     SEGUE_OK);
}

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    outcome *o = user;
    (void)request;
    (void)error;
    assert_int_equal(o->completed++, 0);
    o->status = status;
    if (json) {
        char *copy = strndup(json, len);
        snprintf(o->content, sizeof o->content, "%s", json_at(copy, "content"));
        free(copy);
    }
}

static void on_free(void *user)
{
    outcome *o = user;
    assert_int_equal(o->completed, 1);
    assert_int_equal(o->freed++, 0);
}

static bool lends;

typedef struct stage {
    segue_runtime *runtime;
    segue_session *session;
    char path[64];
} stage;

/* kept: the server has a file, otherwise its data ends with it. */
static void begin_on(stage *s, const segue_session_options *options, bool kept)
{
    segue_spawn_options spawn = SEGUE_SPAWN_OPTIONS_INIT;
    segue_session_options session = SEGUE_SESSION_OPTIONS_INIT;
    segue_runtime_options runtime = SEGUE_RUNTIME_OPTIONS_INIT;
    segue_transport *transport;
    scratch_name(s->path, sizeof s->path, "/tmp/segue-client");
    const char *const argv[] = {SEGUE_FIXTURE_SERVER, kept ? s->path : NULL, NULL};
    spawn.argv = argv;
    spawn.restart = 1;
    if (options)
        session = *options;
    session.capabilities = "{\"elicitation\":{}}";
    runtime.lend_input = lends;
    assert_int_equal(segue_runtime_new(&runtime, &s->runtime, NULL), SEGUE_OK);
    if (lends)
        assert_int_equal(segue_runtime_start(s->runtime), SEGUE_OK);
    assert_int_equal(segue_transport_spawn(s->runtime, &spawn, &transport, NULL),
                     SEGUE_OK);
    assert_int_equal(
        segue_session_open(s->runtime, transport, &session, NULL, &s->session, NULL),
        SEGUE_OK);
}

static void begin(stage *s, const segue_session_options *options)
{
    begin_on(s, options, true);
}

static void end(stage *s)
{
    segue_session_close(s->session);
    segue_session_free(s->session);
    segue_runtime_free(s->runtime);
    scratch_clear(s->path);
}

static outcome call(stage *s, const char *params)
{
    outcome o = {0};
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    events.user = &o;
    events.free_user = on_free;
    events.on_segment = on_segment;
    events.on_input = on_input;
    events.on_complete = on_complete;
    assert_int_equal(segue_request_start(s->session, "tools/call", params, strlen(params),
                                         NULL, &events, NULL, NULL),
                     SEGUE_OK);
    for (int i = 0; i < TURNS && !o.freed; i++)
        segue_runtime_dispatch(s->runtime, 10, 0, NULL);
    assert_int_equal(o.freed, 1);
    return o;
}

static void a_stream_survives_a_server_that_is_killed(void **state)
{
    (void)state;
    stage s;
    begin(&s, NULL);
    outcome o = call(&s, "{\"name\":\"crash_after\",\"arguments\":{\"n\":4}}");
    assert_int_equal(o.status, SEGUE_OK);
    assert_int_equal(o.segments, 6);
    assert_non_null(strstr(o.content, "segment 6 of the story"));
    assert_null(strstr(strstr(o.content, "segment 1 of") + 1, "segment 1 of"));
    /* The session goes on. */
    o = call(&s, "{\"name\":\"greet\",\"arguments\":{}}");
    assert_int_equal(o.status, SEGUE_OK);
    end(&s);
}

/* The server dies during a plain call. With a file the next process finds the call by its
 * key. With a store in memory it does not know the call, and a repeated call would run
 * twice. */
static void a_lost_call_is_asked_again_where_its_key_is_kept(void **state)
{
    (void)state;
    for (int kept = 0; kept < 2; kept++) {
        for (int era = SEGUE_ERA_AUTO; era <= SEGUE_ERA_LEGACY; era++) {
            stage s;
            segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
            options.no_tasks = 1;
            options.era = era;
            begin_on(&s, &options, kept);
            outcome o = call(&s, "{\"name\":\"crash_after\",\"arguments\":{\"n\":4}}");
            assert_int_equal(o.status, kept ? SEGUE_OK : SEGUE_E_DISCONNECTED);
            assert_int_equal(strstr(o.content, "segment 6 of the story") != NULL, kept);
            /* The session goes on. */
            o = call(&s, "{\"name\":\"greet\",\"arguments\":{}}");
            assert_int_equal(o.status, SEGUE_OK);
            end(&s);
        }
    }
}

/* AS-70: the same program in every dialect has the same results and the same number of
 * questions. */
static void the_same_program_gives_the_same_results(void **state)
{
    (void)state;
    static const char *const calls[] = {
        "{\"name\":\"greet\",\"arguments\":{\"name\":\"you\"}}",
        "{\"name\":\"story\",\"arguments\":{\"n\":5}}",
        "{\"name\":\"blocks\",\"arguments\":{}}",
        "{\"name\":\"slow_compute\",\"arguments\":{\"ms\":20,\"label\":\"x\"}}",
    };
    outcome seen[4] = {0};
    for (int way = 0; way < 3; way++) {
        stage s;
        segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
        options.no_tasks = way == 1;
        options.era = way == 2 ? SEGUE_ERA_LEGACY : SEGUE_ERA_AUTO;
        begin(&s, &options);
        for (int i = 0; i < 4; i++) {
            outcome o = call(&s, calls[i]);
            assert_int_equal(o.status, SEGUE_OK);
            if (way == 0) {
                seen[i] = o;
                continue;
            }
            assert_string_equal(o.content, seen[i].content);
            assert_int_equal(o.segments, seen[i].segments);
            assert_int_equal(o.prompts, seen[i].prompts);
        }
        end(&s);
    }
    assert_int_equal(seen[1].segments, 5);
}

static void questions_of_a_real_server_are_answered(void **state)
{
    (void)state;
    stage s;
    begin(&s, NULL);
    outcome o = call(&s, "{\"name\":\"multi_input\",\"arguments\":{}}");
    assert_int_equal(o.status, SEGUE_OK);
    assert_int_equal(o.prompts, 2);
    o = call(&s, "{\"name\":\"ask_in_turn\",\"arguments\":{}}");
    assert_int_equal(o.status, SEGUE_OK);
    assert_int_equal(o.prompts, 3);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_survives_a_server_that_is_killed),
        {"R-2557-11 a lost call is asked again where its key is kept",
         a_lost_call_is_asked_again_where_its_key_is_kept, NULL, NULL, NULL},
        {"AS-70 the same program gives the same results",
         the_same_program_gives_the_same_results, NULL, NULL, NULL},
        cmocka_unit_test(questions_of_a_real_server_are_answered),
    };
    int failed = cmocka_run_group_tests_name("client_spawn", tests, NULL, NULL);
    lends = true;
    return failed + cmocka_run_group_tests_name("client_spawn_lent", tests, NULL, NULL);
}
