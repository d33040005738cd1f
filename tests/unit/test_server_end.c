/* A server ends when its handle was freed, no client is connected and no call runs. The
 * clock stands still, so an end that needs a timer would never come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <segue/segue.h>
#include <segue/segue_ext.h>

#include "support/test_mem.h"

#define TURNS 1000

typedef struct stage {
    test_mem mem;
    segue_runtime *runtime;
    segue_server *server;
    segue_session *session;
    segue_call *held; /* the call that `hold` keeps */
    int opened;
    int completed;
    int ended; /* free_user of the server has run */
} stage;

static int64_t no_time(void *user)
{
    (void)user;
    return 1000000;
}

static int32_t no_chance(void *user, void *bytes, size_t len)
{
    static unsigned char next;
    unsigned char *to = bytes;
    (void)user;
    for (size_t i = 0; i < len; i++)
        to[i] = next++;
    return 0;
}

static void answer(void *user, segue_call *call)
{
    (void)user;
    assert_int_equal(segue_call_send_text(call, "x", 1, NULL), SEGUE_OK);
    assert_int_equal(segue_call_complete(call, NULL, NULL), SEGUE_OK);
    segue_call_free(call);
}

static void hold(void *user, segue_call *call)
{
    stage *s = user;
    s->held = call;
}

static void opened(void *user, segue_session *session)
{
    (void)session;
    ((stage *)user)->opened++;
}

static void server_ended(void *user)
{
    ((stage *)user)->ended++;
}

static void completed(void *user, segue_request *request, segue_status status,
                      const char *json, size_t len, const segue_error *error)
{
    stage *s = user;
    (void)request;
    (void)status;
    (void)json;
    (void)len;
    (void)error;
    s->completed++;
}

static void set_up(stage *s, segue_call_fn tool)
{
    static const char json[] = "{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_hooks hooks = {
        .monotonic_ms = no_time, .wall_ms = no_time, .random = no_chance};
    segue_runtime_options options = SEGUE_RUNTIME_OPTIONS_INIT;
    segue_server_options server_options = SEGUE_SERVER_OPTIONS_INIT;
    segue_item_options item = SEGUE_ITEM_OPTIONS_INIT;
    segue_session_events events = SEGUE_SESSION_EVENTS_INIT;
    segue_transport *near_end, *far_end;
    *s = (stage){0};
    test_mem_init(&s->mem);
    hooks.struct_size = sizeof hooks;
    options.allocator = &s->mem.mem;
    options.hooks = &hooks;
    events.user = s;
    events.on_open = opened;
    server_options.user = s;
    server_options.free_user = server_ended;
    item.user = s;
    item.on_call = tool;
    item.task = SEGUE_TASK_MUST;
    assert_int_equal(segue_runtime_new(&options, &s->runtime, NULL), SEGUE_OK);
    assert_int_equal(segue_server_new(s->runtime, &server_options, &s->server, NULL),
                     SEGUE_OK);
    assert_int_equal(
        segue_server_add(s->server, SEGUE_ITEM_TOOL, json, sizeof json - 1, &item, NULL),
        SEGUE_OK);
    assert_int_equal(segue_transport_pair(s->runtime, &near_end, &far_end), SEGUE_OK);
    assert_int_equal(segue_server_attach(s->server, far_end, NULL), SEGUE_OK);
    assert_int_equal(
        segue_session_open(s->runtime, near_end, NULL, &events, &s->session, NULL),
        SEGUE_OK);
}

static void tear_down(stage *s)
{
    segue_session_free(s->session);
    segue_runtime_free(s->runtime);
    assert_int_equal(s->mem.live, 0);
}

/* Turns the loop until *flag is set; fails when nothing would ever set it. */
static void turn_until(stage *s, const int *flag)
{
    for (int i = 0; i < TURNS && !*flag; i++)
        assert_int_equal(segue_runtime_dispatch(s->runtime, 0, 0, NULL), SEGUE_OK);
}

static void call_tool(stage *s)
{
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    events.user = s;
    events.on_complete = completed;
    assert_int_equal(segue_request_start(s->session, "tools/call", "{\"name\":\"t\"}", 12,
                                         NULL, &events, NULL, NULL),
                     SEGUE_OK);
}

static void with_its_last_client_when_a_task_has_ended(void **state)
{
    stage s;
    (void)state;
    set_up(&s, answer);
    segue_server_free(s.server);
    call_tool(&s);
    turn_until(&s, &s.completed);
    assert_int_equal(s.completed, 1);
    assert_int_equal(s.ended, 0);
    segue_session_close(s.session);
    turn_until(&s, &s.ended);
    assert_int_equal(s.ended, 1);
    tear_down(&s);
}

static void with_its_handle_when_the_client_went_first(void **state)
{
    stage s;
    (void)state;
    set_up(&s, answer);
    call_tool(&s);
    turn_until(&s, &s.completed);
    segue_session_close(s.session);
    turn_until(&s, &s.ended);
    assert_int_equal(s.ended, 0);
    segue_server_free(s.server);
    turn_until(&s, &s.ended);
    assert_int_equal(s.ended, 1);
    tear_down(&s);
}

static void with_its_last_call_when_the_client_went_first(void **state)
{
    stage s;
    (void)state;
    set_up(&s, hold);
    segue_server_free(s.server);
    call_tool(&s);
    for (int i = 0; i < TURNS && !s.held; i++)
        assert_int_equal(segue_runtime_dispatch(s.runtime, 0, 0, NULL), SEGUE_OK);
    assert_non_null(s.held);
    segue_session_close(s.session);
    turn_until(&s, &s.ended);
    assert_int_equal(s.ended, 0);
    assert_int_equal(segue_call_complete(s.held, NULL, NULL), SEGUE_OK);
    segue_call_free(s.held);
    turn_until(&s, &s.ended);
    assert_int_equal(s.ended, 1);
    tear_down(&s);
}

/* Calls on their way when the runtime ends reach a server that is over: it must not start
 * them, because they would never end. */
static void with_the_runtime_while_calls_arrive(void **state)
{
    stage s;
    (void)state;
    set_up(&s, answer);
    turn_until(&s, &s.opened);
    for (int i = 0; i < 3; i++)
        call_tool(&s);
    segue_server_free(s.server);
    tear_down(&s);
    assert_int_equal(s.completed, 3);
    assert_int_equal(s.ended, 1);
}

/* The handle may be freed after the runtime: then that free runs free_user. */
static void after_its_runtime(void **state)
{
    stage s;
    (void)state;
    set_up(&s, answer);
    turn_until(&s, &s.opened);
    segue_session_free(s.session);
    segue_runtime_free(s.runtime);
    assert_int_equal(s.ended, 0);
    segue_server_free(s.server);
    assert_int_equal(s.ended, 1);
    assert_int_equal(s.mem.live, 0);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(after_its_runtime),
        cmocka_unit_test(with_the_runtime_while_calls_arrive),
        cmocka_unit_test(with_its_last_client_when_a_task_has_ended),
        cmocka_unit_test(with_its_handle_when_the_client_went_first),
        cmocka_unit_test(with_its_last_call_when_the_client_went_first),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
