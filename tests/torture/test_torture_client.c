/* A client and a server in one runtime over a pair; every allocation fails in turn. */
#include "support/torture.h"

#include <string.h>

static int begin(torture *t, segue_session **session)
{
    *session = torture_serve(t) ? torture_open(t) : NULL;
    return *session != NULL;
}

static int ends_well(torture *t, asked *a, const char *in_result)
{
    if (!a)
        return 0;
    torture_settle(t, a);
    return a->status == SEGUE_OK && strstr(a->result, in_result);
}

static int call_one(torture *t, const char *tool, const char *arguments,
                    const char *in_result)
{
    segue_session *session;
    return begin(t, &session) &&
           ends_well(t, torture_call(t, session, tool, arguments), in_result);
}

static int plain_call(torture *t)
{
    return call_one(t, "greet", "{\"name\":\"you\"}", "Hello, you!");
}

static int many_blocks(torture *t)
{
    return call_one(t, "blocks", "{}", "18446744073709551616");
}

static int polled_task(torture *t)
{
    return call_one(t, "slow_compute", "{\"ms\":30}", "Computed");
}

static int promoted_call(torture *t)
{
    return call_one(t, "promote", "{\"ms\":900}", "Computed");
}

static int streamed_task(torture *t)
{
    return call_one(t, "story", "{\"n\":4,\"delayMs\":7}", "segment 4") &&
           t->asked[0].segments == 4;
}

static int fields_of_a_task(torture *t)
{
    return call_one(t, "fields", "{}", "right");
}

static int input_round(torture *t)
{
    return call_one(t, "confirm_delete", "{}", "confirm");
}

static int inputs_in_turn(torture *t)
{
    return call_one(t, "ask_in_turn", "{}", "asked 3 times");
}

static int round_of_a_plain_call(torture *t)
{
    return call_one(t, "ask_once", "{}", "confirm");
}

static int rounds_of_a_plain_call(torture *t)
{
    return call_one(t, "ask_rounds", "{}", "asked 3 times");
}

static int round_then_a_task(torture *t)
{
    return call_one(t, "test_tool_with_task", "{}", "\\\"name\\\":\\\"you\\\"");
}

static int failed_task(torture *t)
{
    segue_session *session;
    if (!begin(t, &session))
        return 0;
    asked *a = torture_call(t, session, "protocol_error_job", "{}");
    if (!a)
        return 0;
    torture_settle(t, a);
    return a->status == SEGUE_E_REMOTE;
}

/* The first session ends with its request in the middle of a stream; the request goes on
 * by its token. */
static int resumed_stream(torture *t)
{
    segue_session *first;
    if (!begin(t, &first))
        return 0;
    asked *a = torture_call(t, first, "story", "{\"n\":5,\"delayMs\":20}");
    if (!a)
        return 0;
    a->token_after = 2;
    torture_until_token(t, a);
    segue_session_close(first);
    torture_settle(t, a);
    if (!a->token[0])
        return 0;
    segue_session *second = torture_open(t);
    asked *b = second ? torture_resume(t, second, a->token) : NULL;
    return ends_well(t, b, "segment 5") && b->first == 3 && b->last == 5;
}

static int cancelled_task(torture *t)
{
    segue_session *session;
    if (!begin(t, &session))
        return 0;
    asked *a = torture_call(t, session, "hang", "{}");
    if (!a)
        return 0;
    for (int i = 0; i < 5; i++) {
        torture_pump(t);
        t->clock_ms += 10;
    }
    segue_request_cancel(a->request);
    torture_settle(t, a);
    return a->status == SEGUE_E_CANCELLED;
}

int main(void)
{
    const torture_scenario scenarios[] = {
        {"all from the beginning", plain_call, 0, 0, 1},
        {"plain call", plain_call, 0, 0, 0},
        {"blocks of every kind", many_blocks, 0, 0, 0},
        {"plain call of a handshake era", plain_call, 0, SEGUE_ERA_LEGACY, 0},
        {"task", polled_task, 0, 0, 0},
        {"call that becomes a task", promoted_call, 0, 0, 0},
        {"task with a stream", streamed_task, 0, 0, 0},
        {"fields and replace", fields_of_a_task, 0, 0, 0},
        {"input round", input_round, 0, 0, 0},
        {"round of a plain call", round_of_a_plain_call, 0, 0, 0},
        {"rounds of a plain call", rounds_of_a_plain_call, 0, 0, 0},
        {"round, then a task", round_then_a_task, 0, 0, 0},
        {"task that asks, of 2025-11-25", round_then_a_task, 0, SEGUE_ERA_LEGACY, 0},
        {"three input rounds", inputs_in_turn, 0, 0, 0},
        {"task that fails", failed_task, 0, 0, 0},
        {"stream resumed by token", resumed_stream, 0, 0, 0},
        {"task that is cancelled", cancelled_task, 0, 0, 0},
        {"task of 2025-11-25", polled_task, 0, SEGUE_ERA_LEGACY, 0},
        {"task of 2025-11-25 with segments", streamed_task, 0, SEGUE_ERA_LEGACY, 0},
        {"fields and replace in 2025-11-25", fields_of_a_task, 0, SEGUE_ERA_LEGACY, 0},
        {"questions of a plain call of a handshake era", rounds_of_a_plain_call, 0,
         SEGUE_ERA_LEGACY, 0},
        {"a task of 2025-11-25 asks", input_round, 0, SEGUE_ERA_LEGACY, 0},
        {"task of 2025-11-25 that fails", failed_task, 0, SEGUE_ERA_LEGACY, 0},
        {"task of 2025-11-25 that is cancelled", cancelled_task, 0, SEGUE_ERA_LEGACY, 0},
    };
    return torture_run("torture_client", scenarios, sizeof scenarios / sizeof *scenarios);
}
