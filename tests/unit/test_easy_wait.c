/* Calls that a thread waits for (easy.h): with nobody who runs the runtime, with another
 * thread that runs it, from several threads at once, and where waiting is refused. */
#include <segue/easy.h>
#include <segue/segue_ext.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define THREADS 4
#define CALLS 20
/* The limit of calls that must end by themselves. */
#define PATIENCE_MS 120000

typedef struct stage {
    segue_runtime *runtime;
    segue_server *server;
    segue_session *session;
    int64_t clock_ms, step_ms;
    segue_call *held;
    segue_status in_callback;
    char why[200];
} stage;

/* ---- the tools ---- */

static void answer(void *user, segue_call *call)
{
    int64_t n = 0;
    (void)user;
    segue_call_argument_int(call, "n", &n);
    segue_call_printf(call, "%lld", (long long)n);
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void hold(void *user, segue_call *call)
{
    stage *s = user;
    s->held = call;
}

static void fail_call(void *user, segue_call *call)
{
    segue_content *content;
    (void)user;
    if (segue_content_new(segue_call_runtime(call), &content) == SEGUE_OK) {
        segue_content_set_error(content, 1);
        segue_content_add_text(content, "no", SEGUE_TO_NUL, NULL);
        segue_call_complete(call, content, NULL);
    }
    segue_content_free(content);
    segue_call_free(call);
}

static void ignore_input(void *user, segue_call *call, segue_status status,
                         const char *json, size_t len)
{
    (void)user;
    (void)status;
    (void)json;
    (void)len;
    segue_call_free(call);
}

static void ask(void *user, segue_call *call)
{
    static const char params[] =
        "{\"message\":\"?\",\"mode\":\"form\",\"requestedSchema\":"
        "{\"type\":\"object\",\"properties\":{}}}";
    (void)user;
    segue_status status =
        segue_call_require_input(call, NULL, "elicitation/create", params, SEGUE_TO_NUL,
                                 ignore_input, NULL, NULL, NULL);
    if (status == SEGUE_OK)
        return;
    segue_call_printf(call, "%s", segue_status_name(status));
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void wait_in_callback(void *user, segue_call *call)
{
    stage *s = user;
    char *result = NULL;
    segue_error *error = NULL;
    s->in_callback = segue_call_tool(s->session, "answer", NULL, 1000, &result, &error);
    snprintf(s->why, sizeof s->why, "%s", segue_error_read(error)->message);
    segue_error_free(error);
    free(result);
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void stop(void *user, segue_call *call)
{
    stage *s = user;
    s->held = call;
    segue_runtime_stop(segue_call_runtime(call));
}

/* ---- the stage ---- */

static int64_t monotonic(void *user)
{
    stage *s = user;
    return __atomic_add_fetch(&s->clock_ms, s->step_ms, __ATOMIC_RELAXED);
}

static int64_t wall(void *user)
{
    (void)user;
    return 1764374400000;
}

static int32_t chance(void *user, void *bytes, size_t len)
{
    static uint32_t seed = 1;
    unsigned char *to = bytes;
    (void)user;
    for (size_t i = 0; i < len; i++)
        to[i] = (unsigned char)((seed = seed * 1103515245 + 12345) >> 16);
    return 0;
}

static void add(stage *s, const char *name, segue_call_fn on_call, int32_t task)
{
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    char *json = NULL;
    options.on_call = on_call;
    options.user = s;
    options.task = task;
    assert_int_equal(
        segue_json_pairs(&json, "name=%s inputSchema:{\"type\":\"object\"}", name),
        SEGUE_OK);
    assert_int_equal(
        segue_server_add(s->server, SEGUE_ITEM_TOOL, json, SEGUE_TO_NUL, &options, NULL),
        SEGUE_OK);
    free(json);
}

/* step_ms: how far each look at the clock moves it; 0 = the real clock. */
static void begin(stage *s, int64_t step_ms)
{
    segue_hooks hooks = SEGUE_HOOKS_INIT;
    segue_runtime_options options = SEGUE_RUNTIME_OPTIONS_INIT;
    segue_session_options session = SEGUE_SESSION_OPTIONS_INIT;
    segue_transport *near, *far;
    *s = (stage){.step_ms = step_ms};
    hooks.user = s;
    hooks.monotonic_ms = monotonic;
    hooks.wall_ms = wall;
    hooks.random = chance;
    options.hooks = step_ms ? &hooks : NULL;
    session.capabilities = "{\"elicitation\":{}}";
    assert_int_equal(segue_runtime_new(&options, &s->runtime, NULL), SEGUE_OK);
    assert_int_equal(segue_server_new(s->runtime, NULL, &s->server, NULL), SEGUE_OK);
    add(s, "answer", answer, SEGUE_TASK_NEVER);
    add(s, "job", answer, SEGUE_TASK_MUST);
    add(s, "hold", hold, SEGUE_TASK_NEVER);
    add(s, "fail", fail_call, SEGUE_TASK_NEVER);
    add(s, "ask", ask, SEGUE_TASK_NEVER);
    add(s, "wait", wait_in_callback, SEGUE_TASK_NEVER);
    add(s, "stop", stop, SEGUE_TASK_NEVER);
    assert_int_equal(segue_transport_pair(s->runtime, &near, &far), SEGUE_OK);
    assert_int_equal(segue_server_attach(s->server, far, NULL), SEGUE_OK);
    assert_int_equal(
        segue_session_open(s->runtime, near, &session, NULL, &s->session, NULL),
        SEGUE_OK);
}

static void end(stage *s)
{
    segue_call_free(s->held);
    segue_session_free(s->session);
    segue_server_free(s->server);
    segue_runtime_free(s->runtime);
}

/* Calls the tool "answer" with n, and checks its answer. Returns whether it was right. */
static bool answers(segue_session *session, const char *tool, int n)
{
    char *arguments = NULL, *result = NULL, *text = NULL;
    char wanted[16];
    snprintf(wanted, sizeof wanted, "%d", n);
    segue_status status = segue_json_pairs(&arguments, "n=%d", n);
    if (status == SEGUE_OK)
        status = segue_call_tool(session, tool, arguments, PATIENCE_MS, &result, NULL);
    if (status == SEGUE_OK)
        status = segue_result_text(result, SEGUE_TO_NUL, &text);
    bool right = status == SEGUE_OK && strcmp(text, wanted) == 0;
    free(arguments);
    free(result);
    free(text);
    return right;
}

/* ---- cases ---- */

static void a_program_without_a_loop(void **state)
{
    stage s;
    char *result = NULL;
    (void)state;
    begin(&s, 0);
    assert_true(answers(s.session, "answer", 1));
    assert_true(answers(s.session, "job", 2)); /* a task */
    assert_int_equal(segue_request_run(s.session, "tools/list", NULL, 0, &result, NULL),
                     SEGUE_OK);
    assert_non_null(strstr(result, "\"answer\""));
    free(result);
    result = NULL;
    assert_int_equal(segue_call_tool(s.session, "fail", NULL, 0, &result, NULL),
                     SEGUE_OK);
    assert_int_equal(segue_result_is_error(result, SEGUE_TO_NUL), 1);
    free(result);
    end(&s);
}

static void expect_failure(stage *s, const char *tool, const char *arguments,
                           segue_status wanted, const char *part)
{
    char *result = NULL;
    segue_error *error = NULL;
    assert_int_equal(
        segue_call_tool(s->session, tool, arguments, PATIENCE_MS, &result, &error),
        wanted);
    assert_null(result);
    assert_non_null(error);
    assert_int_equal(segue_error_read(error)->status, wanted);
    if (!strstr(segue_error_read(error)->message, part))
        fail_msg("%s: %s", tool, segue_error_read(error)->message);
    segue_error_free(error);
    assert_int_equal(
        segue_call_tool(s->session, tool, arguments, PATIENCE_MS, &result, NULL), wanted);
}

static void failures_are_told(void **state)
{
    stage s;
    char *result = NULL;
    segue_error *error = NULL;
    (void)state;
    begin(&s, 0);
    expect_failure(&s, "none", NULL, SEGUE_E_REMOTE, "none");
    expect_failure(&s, "answer", "{", SEGUE_E_JSON, "byte");
    expect_failure(&s, "answer", "{},\"x\":{}", SEGUE_E_JSON, "byte");
    expect_failure(&s, "\xff", NULL, SEGUE_E_INVALID, "UTF-8");
    expect_failure(&s, "ask", NULL, SEGUE_E_UNSUPPORTED, "");
    assert_int_equal(segue_request_run(NULL, "ping", NULL, 0, &result, &error),
                     SEGUE_E_INVALID);
    segue_error_free(error);
    assert_int_equal(segue_request_run(s.session, NULL, NULL, 0, &result, NULL),
                     SEGUE_E_INVALID);
    assert_int_equal(segue_request_run(s.session, "ping", NULL, -1, &result, NULL),
                     SEGUE_E_INVALID);
    assert_int_equal(segue_request_run(s.session, "ping", NULL, 0, NULL, NULL),
                     SEGUE_E_INVALID);
    assert_int_equal(segue_request_run(s.session, "ping", "5", 0, &result, NULL),
                     SEGUE_E_INVALID);
    assert_int_equal(segue_call_tool(s.session, NULL, NULL, 0, &result, NULL),
                     SEGUE_E_INVALID);
    assert_null(result);
    assert_true(answers(s.session, "answer", 3));
    end(&s);
}

static void waiting_in_a_callback_is_refused(void **state)
{
    stage s;
    char *result = NULL;
    (void)state;
    begin(&s, 0);
    assert_int_equal(segue_call_tool(s.session, "wait", NULL, 0, &result, NULL),
                     SEGUE_OK);
    free(result);
    assert_int_equal(s.in_callback, SEGUE_E_REENTRANT);
    assert_non_null(strstr(s.why, "a callback cannot wait"));
    assert_non_null(strstr(s.why, "segue_request_start"));
    end(&s);
}

static void a_call_has_a_limit(void **state)
{
    stage s;
    char *result = NULL;
    segue_error *error = NULL;
    (void)state;
    begin(&s, 50);
    assert_int_equal(segue_call_tool(s.session, "hold", NULL, 1000, &result, &error),
                     SEGUE_E_TIMEOUT);
    assert_null(result);
    assert_int_equal(segue_error_read(error)->status, SEGUE_E_TIMEOUT);
    segue_error_free(error);
    end(&s);
}

static void a_stopped_runtime_ends_the_wait(void **state)
{
    stage s;
    char *result = NULL;
    (void)state;
    begin(&s, 0);
    assert_int_equal(segue_call_tool(s.session, "stop", NULL, 0, &result, NULL),
                     SEGUE_E_CLOSED);
    assert_int_equal(segue_call_tool(s.session, "answer", NULL, 0, &result, NULL),
                     SEGUE_E_CLOSED);
    assert_null(result);
    end(&s);
}

/* ---- threads ---- */

static void *call_often(void *user)
{
    segue_session *session = user;
    for (int n = 0; n < CALLS; n++)
        if (!answers(session, n % 4 ? "answer" : "job", n))
            return user;
    return NULL;
}

static void call_from_threads(stage *s)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, s->session), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
}

static void threads_wait_at_once(void **state)
{
    stage s;
    (void)state;
    begin(&s, 0);
    call_from_threads(&s);
    end(&s);
}

static void *run(void *user)
{
    segue_runtime_run(user);
    return NULL;
}

static void another_thread_runs_the_runtime(void **state)
{
    stage s;
    pthread_t loop;
    (void)state;
    begin(&s, 0);
    assert_int_equal(pthread_create(&loop, NULL, run, s.runtime), 0);
    call_from_threads(&s);
    segue_runtime_stop(s.runtime);
    assert_int_equal(pthread_join(loop, NULL), 0);
    end(&s);
}

static void a_background_runtime(void **state)
{
    stage s;
    (void)state;
    begin(&s, 0);
    assert_int_equal(segue_runtime_start(s.runtime), SEGUE_OK);
    call_from_threads(&s);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_without_a_loop),
        cmocka_unit_test(failures_are_told),
        cmocka_unit_test(waiting_in_a_callback_is_refused),
        cmocka_unit_test(a_call_has_a_limit),
        cmocka_unit_test(a_stopped_runtime_ends_the_wait),
        cmocka_unit_test(threads_wait_at_once),
        cmocka_unit_test(another_thread_runs_the_runtime),
        cmocka_unit_test(a_background_runtime),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
