/* A call that asks is taken over by another server (SEP-2322) while memory fails. */
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define CALL "\"name\":\"ask_both\",\"arguments\":{}"
#define ACCEPT "{\"action\":\"accept\",\"content\":{}}"
#define STATE_SIZE 2048

static const uint8_t key_of_service[32] = {3, 1, 4, 1, 5, 9};

static const char *go(wire *c, const char *more)
{
    char params[STATE_SIZE + 1024];
    snprintf(params, sizeof params, CALL "%s", more);
    return wire_do(c, "1", "tools/call", params, CAPS_ALL);
}

static void take_state(const char *round, char state[STATE_SIZE])
{
    assert_at(round, "result.resultType", "\"input_required\"");
    const char *text = json_at(round, "result.requestState");
    assert_in_range(strlen(text), 100, STATE_SIZE - 1);
    strcpy(state, text);
}

static void of_a_patient_service(segue_server_options *options)
{
    options->seal_key = key_of_service;
    options->seal_key_len = sizeof key_of_service;
    options->input_wait_ms = 3600 * 1000;
    options->max_tasks = 10000;
}

/* Each allocation fails once. Each time the client gets an answer, or its connection
 * ends. When memory is back the state is as valid as before. */
static void without_memory_nothing_is_lost(world *w)
{
    char state[STATE_SIZE], line[STATE_SIZE + 512], params[STATE_SIZE + 1024];
    take_state(go(world_connect(w, NULL), ""), state);
    world_restart(w);
    snprintf(line, sizeof line,
             ",\"requestState\":%s,\"inputResponses\":{\"input-2\":" ACCEPT "}", state);
    snprintf(params, sizeof params, CALL "%s", line);
    size_t failed = 1, n = 0;
    while (failed) {
        wire *c = world_connect(w, NULL);
        world_run(w);
        test_mem_rearm(&w->mem);
        w->mem.fail_at = ++n;
        wire_ask(c, "1", "tools/call", params, CAPS_ALL);
        world_run(w);
        failed = w->mem.failed;
        test_mem_rearm(&w->mem);
        world_advance(w, 200);
        const char *r = wire_next(c);
        assert_true(r || wire_is_closed(c));
        if (r && !*json_at(r, "error") && !strstr(r, "cannot ask: SEGUE_E_NOMEM"))
            assert_at(r, "result.resultType", "\"input_required\"");
        if (!failed)
            assert_at(r, "error", "");
        wire_drop(c);
    }
    assert_true(n > 50);
    snprintf(line, sizeof line,
             ",\"requestState\":%s,\"inputResponses\":{\"input-1\":" ACCEPT
             ",\"input-2\":" ACCEPT "}",
             state);
    const char *r = go(world_connect(w, NULL), line);
    assert_at(r, "result.resultType", "\"complete\"");
}

static const scenario scenarios[] = {
    {"without memory nothing is lost", without_memory_nothing_is_lost,
     ONLY_HERE | ONE_DRIVE | ONLY_HTTP, of_a_patient_service},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
