/* Allocations are counted from the end of torture_serve on, and in the scenario `setup`
 * from the beginning. The other scenarios need not count the start, because the same
 * server with dozens of tools starts in all scenarios. Time is fake, so a wait of minutes
 * costs nothing, and a request that does not end within PATIENCE_MS hangs. When all
 * allocations from number n on fail, the wait is shorter. Then memory comes back, and a
 * request that hung must end. */
#include "support/torture.h"

#include "runtime/state.h"
#include "support/model_fixtures.h"
#include "support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define PATIENCE_MS (10 * 60 * 1000)
#define DROUGHT_MS (20 * 1000) /* the time without memory; shorter than any timeout */
#define TRIES 120

/* ---- clock and chance ---- */

static int64_t fake_now(void *user)
{
    return ((torture *)user)->clock_ms;
}

static int64_t fake_wall(void *user)
{
    return 1764000000000 + ((torture *)user)->clock_ms;
}

static int32_t fake_random(void *user, void *bytes, size_t len)
{
    torture *t = user;
    for (size_t i = 0; i < len; i++) {
        t->chance = t->chance * 6364136223846793005u + 1442695040888963407u;
        ((unsigned char *)bytes)[i] = (unsigned char)(t->chance >> 40);
    }
    return 0;
}

/* ---- the callbacks of a request ---- */

static void on_task(void *user, segue_request *request, const char *task_id)
{
    asked *a = user;
    (void)request;
    assert_int_equal(a->completed, 0);
    assert_true(*task_id != 0);
}

static void on_segment(void *user, segue_request *request, const segue_segment *segment)
{
    asked *a = user;
    size_t len = sizeof a->token;
    uint64_t number = segue_segment_read(segment)->number;
    assert_int_equal(a->completed, 0);
    assert_true(a->last == 0 || number == a->last + 1);
    if (!a->first)
        a->first = number;
    a->last = number;
    if (++a->segments == a->token_after &&
        segue_request_token(request, a->token, &len) != SEGUE_OK)
        a->token[0] = 0;
}

static void answer(asked *a)
{
    static const char yes[] = "{\"action\":\"accept\",\"content\":{\"confirm\":true}}";
    if (!a->request || !a->question[0])
        return;
    segue_status status =
        segue_request_answer(a->request, a->question, yes, sizeof yes - 1, NULL);
    if (status != SEGUE_E_NOMEM)
        a->question[0] = 0; /* without this, the answer would be sent again */
}

static void on_input(void *user, segue_request *request, const char *key,
                     const char *method, const char *params, size_t len)
{
    asked *a = user;
    (void)request;
    (void)method;
    (void)params;
    (void)len;
    assert_int_equal(a->completed, 0);
    snprintf(a->question, sizeof a->question, "%s", key);
    answer(a);
}

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    asked *a = user;
    (void)request;
    assert_int_equal(a->completed, 0);
    assert_int_equal(a->freed, 0);
    a->completed++;
    a->status = status;
    /* Without memory for a better error the error object reports that. */
    if (status != SEGUE_OK)
        assert_true(segue_error_read(error)->status == status ||
                    segue_error_read(error)->status == SEGUE_E_NOMEM);
    /* The effects that missing memory may have on a request. Silence (TIMEOUT) and a cut
     * or wrong answer (PROTOCOL) are never allowed. */
    if (status != SEGUE_OK && status != SEGUE_E_NOMEM && status != SEGUE_E_REMOTE &&
        status != SEGUE_E_DISCONNECTED && status != SEGUE_E_CLOSED &&
        status != SEGUE_E_CANCELLED &&
        !(status == SEGUE_E_INCOMPLETE && a->segments)) /* segments arrived before the
                                                         * error */
        fail_msg("%s (allocation %zu refused, from %zu)", segue_status_name(status),
                 a->t->fail_at, a->t->fail_from);
    snprintf(a->result, sizeof a->result, "%.*s", (int)len, json ? json : "");
}

static void free_asked(void *user)
{
    asked *a = user;
    assert_int_equal(a->completed, 1);
    assert_int_equal(a->freed, 0);
    a->freed++;
}

/* ---- the world ---- */

static int serve(torture *t)
{
    segue_runtime_options options = SEGUE_RUNTIME_OPTIONS_INIT;
    segue_store_options store = SEGUE_STORE_OPTIONS_INIT;
    segue_server_options server = SEGUE_SERVER_OPTIONS_INIT;
    segue_hooks hooks = SEGUE_HOOKS_INIT;
    hooks.user = t;
    hooks.monotonic_ms = fake_now;
    hooks.wall_ms = fake_wall;
    hooks.random = fake_random;
    options.allocator = &t->mem.mem;
    options.hooks = &hooks;
    store.allocator = &t->mem.mem;
    if (segue_runtime_new(&options, &t->runtime, NULL) != SEGUE_OK)
        return 0;
    segue_status status = t->sqlite ? segue_store_sqlite(t->path, &store, &t->store, NULL)
                                    : segue_store_memory(&store, &t->store);
    if (status != SEGUE_OK)
        return 0;
    server.store = t->store;
    server.on_validate = t->validate;
    server.question_ttl_ms = t->question_ttl_ms;
    server.dialects_on = t->draft ? SEGUE_DIALECT_DRAFT_TASKS : 0;
    if (segue_server_new(t->runtime, &server, &t->server, NULL) != SEGUE_OK)
        return 0;
    t->fixtures = fixtures_new(fake_now, t);
    return fixtures_add(t->fixtures, t->runtime, t->server) == SEGUE_OK &&
           item_fixtures_add(t->runtime, t->server) == SEGUE_OK &&
           (!t->question_ttl_ms || model_tools_add(t->runtime, t->server) == SEGUE_OK);
}

int torture_serve(torture *t)
{
    if (t->setup)
        t->mem.fail_at = t->fail_at, t->mem.fail_from = t->fail_from;
    t->served = serve(t);
    if (!t->setup) {
        test_mem_rearm(&t->mem);
        t->mem.fail_at = t->fail_at;
        t->mem.fail_from = t->fail_from;
    }
    return t->served;
}

static void session_closed(void *user, segue_session *session, const segue_error *error)
{
    (void)session;
    (void)error;
    ((torture *)user)->sessions_closed++;
}

static void session_freed(void *user)
{
    torture *t = user;
    t->sessions_freed++;
    assert_int_equal(t->sessions_freed, t->sessions_closed);
}

segue_session *torture_open_over(torture *t, segue_transport *transport)
{
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    segue_session_events events = SEGUE_SESSION_EVENTS_INIT;
    segue_session *session = NULL;
    options.era = t->era;
    options.no_tasks = t->no_tasks;
    options.dialects_on = t->draft ? SEGUE_DIALECT_DRAFT_TASKS : 0;
    if (t->resumable)
        options.dialects_on |= SEGUE_DIALECT_RESUMABLE;
    options.capabilities = "{\"elicitation\":{}}";
    options.fill_defaults = 1;
    options.host = t->host;
    events.user = t;
    events.free_user = session_freed;
    events.on_closed = session_closed;
    events.on_validate = t->validate;
    if (segue_session_open(t->runtime, transport, &options, &events, &session, NULL) !=
        SEGUE_OK) {
        segue_transport_free(transport);
        return NULL;
    }
    assert_true(t->session_count < MAX_SESSIONS);
    t->sessions[t->session_count++] = session;
    return session;
}

segue_session *torture_open(torture *t)
{
    segue_transport *near, *far;
    if (segue_transport_pair(t->runtime, &near, &far) != SEGUE_OK)
        return NULL;
    if (segue_server_attach(t->server, far, NULL) != SEGUE_OK) {
        segue_transport_free(near);
        segue_transport_free(far);
        return NULL;
    }
    return torture_open_over(t, near);
}

static asked *new_asked(torture *t, segue_request_events *events)
{
    assert_true(t->asked_count < MAX_ASKED);
    asked *a = &t->asked[t->asked_count++];
    a->t = t;
    *events = SEGUE_REQUEST_EVENTS_INIT;
    events->user = a;
    events->free_user = free_asked;
    events->on_task = on_task;
    events->on_segment = on_segment;
    events->on_input = on_input;
    events->on_complete = on_complete;
    return a;
}

static asked *accept(asked *a, segue_status status)
{
    a->refusal = status;
    if (status != SEGUE_OK) {
        assert_true(status == SEGUE_E_NOMEM || status == SEGUE_E_CLOSED);
        assert_null(a->request);
        return NULL;
    }
    a->accepted = 1;
    return a;
}

asked *torture_ask(torture *t, segue_session *session, const char *method,
                   const char *params)
{
    segue_request_events events;
    asked *a = new_asked(t, &events);
    return accept(a, segue_request_start(session, method, params, strlen(params), NULL,
                                         &events, &a->request, NULL));
}

asked *torture_call(torture *t, segue_session *session, const char *tool,
                    const char *arguments)
{
    char params[256];
    snprintf(params, sizeof params, "{\"name\":\"%s\",\"arguments\":%s}", tool,
             arguments);
    return torture_ask(t, session, "tools/call", params);
}

asked *torture_resume(torture *t, segue_session *session, const char *token)
{
    segue_request_events events;
    asked *a = new_asked(t, &events);
    return accept(a,
                  segue_request_resume(session, token, NULL, &events, &a->request, NULL));
}

asked *torture_look(torture *t, segue_session *session, const char *token, int watch)
{
    segue_request_events events;
    segue_task *task;
    if (segue_task_attach_token(session, token, &task, NULL) != SEGUE_OK)
        return NULL;
    asked *a = new_asked(t, &events);
    a = accept(a, watch ? segue_task_watch(task, NULL, &events, &a->request, NULL)
                        : segue_task_get(task, &events, &a->request));
    segue_task_free(task);
    return a;
}

/* Waits until the thread of the store has nothing to do. It works in real time: a slow
 * disk must not look like silence on the clock of the test. */
static void settle_store(const torture *t)
{
    if (!t->sqlite)
        return;
    sgi_runtime_lock(t->runtime);
    sgi_stores_wait_idle(t->runtime);
    sgi_runtime_unlock(t->runtime);
}

void torture_pump(torture *t)
{
    int32_t ran = 1;
    for (int idle = 0; idle < 3; idle = ran ? 0 : idle + 1) {
        settle_store(t);
        if (t->fixtures)
            fixtures_tick(t->fixtures);
        if (t->play)
            t->play(t);
        segue_runtime_dispatch(t->runtime, 0, 0, &ran);
    }
    for (int i = 0; i < t->asked_count; i++)
        if (t->asked[i].accepted && !t->asked[i].completed)
            answer(&t->asked[i]);
}

static int is_settled(const asked *a)
{
    return !a->accepted || a->completed;
}

/* Lets time pass in small steps first, because most requests end soon. */
static void pass(torture *t, const asked *a, int64_t ms)
{
    int64_t step = 10;
    for (int64_t end = t->clock_ms + ms; t->clock_ms < end && !is_settled(a);) {
        torture_pump(t);
        t->clock_ms += step;
        step = step < 5000 ? step + step / 4 : 5000;
    }
}

void torture_settle(torture *t, asked *a)
{
    if (t->mem.fail_from) {
        pass(t, a, DROUGHT_MS);
        t->mem.fail_from = 0;
    }
    pass(t, a, PATIENCE_MS);
    if (!is_settled(a))
        fail_msg("request %d hangs (allocation %zu refused, from %zu)",
                 (int)(a - t->asked), t->fail_at, t->fail_from);
}

void torture_until_token(torture *t, asked *a)
{
    for (int i = 0; i < 200 && !a->token[0] && !is_settled(a); i++) {
        torture_pump(t);
        t->clock_ms += 5;
    }
}

/* ---- a run ---- */

/* Memory is back: checks that the same server still serves a plain call and a task. */
static void check_it_works(torture *t)
{
    t->mem.fail_at = t->mem.fail_from = 0;
    segue_session *session = torture_open(t);
    assert_non_null(session);
    asked *plain = torture_call(t, session, "greet", "{}");
    asked *task = torture_call(t, session, "slow_compute", "{\"ms\":10}");
    assert_non_null(plain);
    assert_non_null(task);
    torture_settle(t, plain);
    torture_settle(t, task);
    assert_int_equal(plain->status, SEGUE_OK);
    assert_int_equal(task->status, SEGUE_OK);
}

static void remove_files(const torture *t)
{
    if (t->sqlite)
        scratch_clear(t->path);
}

static void finish(torture *t)
{
    for (int i = 0; i < t->session_count; i++)
        segue_session_free(t->sessions[i]);
    segue_server_free(t->server);
    segue_store_free(t->store);
    segue_runtime_free(t->runtime);
    if (t->fixtures) {
        fixtures_tick(t->fixtures);
        fixtures_free(t->fixtures);
    }
    assert_int_equal(t->sessions_closed, t->session_count);
    assert_int_equal(t->sessions_freed, t->session_count);
    for (int i = 0; i < t->asked_count; i++) {
        asked *a = &t->asked[i];
        segue_request_free(a->request);
        assert_int_equal(a->completed, a->accepted);
        assert_int_equal(a->freed, a->accepted);
    }
    remove_files(t);
    assert_int_equal(t->mem.live, 0);
}

static size_t play(const torture_scenario *scenario, size_t fail_at, size_t fail_from)
{
    torture t = {.clock_ms = 1000, .chance = 42};
    t.sqlite = scenario->sqlite;
    t.era = scenario->era;
    t.setup = scenario->setup;
    t.fail_at = fail_at;
    t.fail_from = fail_from;
    snprintf(t.path, sizeof t.path, "/tmp/segue-torture-%d.db", (int)getpid());
    test_mem_init(&t.mem);
    remove_files(&t);
    int went_well = scenario->run(&t);
    size_t calls = t.mem.calls;
    if (!t.mem.failed && !went_well)
        fail_msg("%s does not work at all", scenario->name);
    if (t.mem.failed && t.served)
        check_it_works(&t);
    finish(&t);
    return calls;
}

static void run_one(void **state)
{
    const torture_scenario *scenario = *state;
    const char *how = getenv("SEGUE_TORTURE");
    size_t only = how ? strtoul(how, NULL, 10) : 0;
    size_t calls = play(scenario, 0, 0);
    size_t step = how && !strcmp(how, "full")
                      ? 1
                      : calls / (scenario->sqlite ? TRIES / 4 : TRIES) + 1;
    print_message("%s: %zu allocations, every %zu\n", scenario->name, calls, step);
    for (size_t k = only ? only : 1; k <= (only ? only : calls); k += step) {
        if (getenv("SEGUE_TORTURE_TALK"))
            print_message("allocation %zu\n", k);
        play(scenario, k, 0);
        play(scenario, 0, k);
    }
}

int torture_run(const char *group, const torture_scenario *scenarios, size_t count)
{
    struct CMUnitTest tests[32];
    assert_true(count <= 32);
    for (size_t i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){scenarios[i].name, run_one, NULL, NULL,
                                       (void *)&scenarios[i]};
    cmocka_set_test_filter(getenv("SEGUE_TORTURE_ONLY"));
    return _cmocka_run_group_tests(group, tests, count, NULL, NULL);
}
