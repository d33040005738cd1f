/* The next step for a task of 2025-11-25 that is streamed over HTTP, where answers about
 * the task may overtake pushed segments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/dialect/rows.h"
#include "engine/dialect/tasks_2025/follow_2025.h"

static sgi_conn conn;
static segue_session session;
static segue_request request;
static sgi_task_follow follow;
static sgi_task_2025 task;
static sgi_call_2025 call;
static sgi_emitter emitter;

/* Prepares a request whose segment 1 has arrived. Only the push of further segments is
 * under way. */
static int set_up(void **state)
{
    (void)state;
    conn = (sgi_conn){.exchanging = true};
    session = (segue_session){.conn = &conn, .stage = SGI_STAGE_OPEN};
    task = (sgi_task_2025){.request = &request, .some = true, .got_segments = true};
    task.tracker.next = 2;
    call = (sgi_call_2025){.state.dialect = &sgi_cli_tasks_2025, .task = &task};
    follow = (sgi_task_follow){.state = SEGUE_TASK_WORKING};
    request = (segue_request){.session = &session,
                              .phase = SGI_PHASE_FOLLOW,
                              .states = &call.state,
                              .follow = &follow,
                              .calling = &emitter};
    return 0;
}

static void a_push_is_looked_after(void **state)
{
    (void)state;
    assert_int_equal(sgi_2025_next_step(&request), SGI_STEP_LOOK);
    request.calling = NULL;
    assert_int_equal(sgi_2025_next_step(&request), SGI_STEP_PULL);
    task.tracker.next = 1;
    assert_int_equal(sgi_2025_next_step(&request), SGI_STEP_LOOK);
}

static void what_has_ended_is_listened_to_while_it_brings_something(void **state)
{
    (void)state;
    static const int32_t ends[] = {SEGUE_TASK_COMPLETED, SEGUE_TASK_FAILED,
                                   SEGUE_TASK_CANCELLED};
    for (size_t i = 0; i < 3; i++) {
        set_up(NULL);
        follow.state = ends[i];
        assert_int_equal(sgi_2025_next_step(&request), SGI_STEP_LISTEN);
        task.got_segments = false;
        assert_int_equal(sgi_2025_next_step(&request), SGI_STEP_PULL);
        request.delivery.behind = true; /* the push waits here for the reader, so its
                                         * silence means nothing */
        assert_int_equal(sgi_2025_next_step(&request), SGI_STEP_LISTEN);
        request.calling = NULL;
        assert_int_equal(sgi_2025_next_step(&request), SGI_STEP_NONE);
        request.delivery.behind = false;
        task.no_pull = true;
        assert_int_equal(sgi_2025_next_step(&request), SGI_STEP_FETCH);
    }
}

static void on_one_connection_nothing_is_overtaken(void **state)
{
    (void)state;
    conn.exchanging = false;
    follow.state = SEGUE_TASK_COMPLETED;
    assert_int_equal(sgi_2025_next_step(&request), SGI_STEP_PULL);
}

/* Checks a rule that holds whatever made the request due. */
static void no_result_is_asked_for_while_the_inbox_is_full(void **state)
{
    (void)state;
    for (int fetch = 0; fetch < 2; fetch++) {
        set_up(NULL);
        task.pull_due = true;
        task.fetch_due = fetch;
        assert_int_equal(sgi_2025_next_step(&request),
                         fetch ? SGI_STEP_FETCH : SGI_STEP_PULL);
        request.delivery.behind = true;
        assert_int_equal(sgi_2025_next_step(&request), SGI_STEP_NONE);
        follow.look_due = true;
        assert_int_equal(sgi_2025_next_step(&request), SGI_STEP_LOOK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_push_is_looked_after, set_up),
        cmocka_unit_test_setup(what_has_ended_is_listened_to_while_it_brings_something,
                               set_up),
        cmocka_unit_test_setup(on_one_connection_nothing_is_overtaken, set_up),
        cmocka_unit_test_setup(no_result_is_asked_for_while_the_inbox_is_full, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
