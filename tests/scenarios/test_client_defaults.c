/* SEP-1034 for an application without a form: whichever way a server asks, missing
 * members of the answer get their defaults. An application that did not ask for that gets
 * its answer sent unchanged. */
#include "support/client_kit.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define FORM                                                                             \
    "{\"message\":\"?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{"       \
    "\"name\":{\"type\":\"string\",\"default\":\"John\"},"                               \
    "\"age\":{\"type\":\"integer\",\"default\":30}}}}"
#define ASKS                                                                             \
    "\"inputRequests\":{\"k\":{\"method\":\"elicitation/create\",\"params\":" FORM "}}"
#define SAID "{\"action\":\"accept\",\"content\":{\"age\":7}}"
#define FILLED "{\"action\":\"accept\",\"content\":{\"age\":7,\"name\":\"John\"}}"

static segue_session_options options_of(int32_t fill, int32_t era)
{
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    options.capabilities = "{\"elicitation\":{}}";
    options.fill_defaults = fill;
    options.era = era;
    return options;
}

/* An invalid answer leaves the question open: the server would wait for a better one. */
static void answer(record *r)
{
    static const char *const none[] = {
        "{}",
        "[]",
        "\"accept\"",
        "{\"answer\":1}",
        "{\"action\":\"acept\",\"content\":{}}",
        "{\"action\":true}",
        "{\"action\":\"accept\",\"content\":\"Ada\"}",
    };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(record_answer(r, NULL, none[i]), SEGUE_E_INVALID);
        kit_expect_silence(r->k);
    }
    assert_int_equal(record_answer(r, NULL, SAID), SEGUE_OK);
}

/* Plays a question that is a request of the server. */
static void asked_before_2026(int32_t fill, const char *expected)
{
    kit k = {0};
    segue_session_options options = options_of(fill, SEGUE_ERA_LEGACY);
    kit_begin(&k, &options);
    kit_handshake_2025(&k, SERVER_PLAIN);
    record *r = kit_call(&k, "t");
    kit_expect(&k, "tools/call");
    kit_say(&k, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"elicitation/create\","
                "\"params\":" FORM "}");
    answer(r);
    assert_at(kit_heard(&k), "result", expected);
    kit_end(&k);
}

/* Plays a question in a round. */
static void asked_in_a_round(int32_t fill, const char *expected)
{
    kit k = {0};
    segue_session_options options = options_of(fill, SEGUE_ERA_AUTO);
    kit_begin_modern(&k, &options, SERVER_PLAIN);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"),
               "\"resultType\":\"input_required\"," ASKS);
    answer(r);
    assert_at(kit_expect(&k, "tools/call"), "params.inputResponses.k", expected);
    kit_end(&k);
}

static void asked_by_a_task(int32_t fill, const char *expected)
{
    kit k = {0};
    segue_session_options options = options_of(fill, SEGUE_ERA_AUTO);
    kit_begin_modern(&k, &options, SERVER_TASKS);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T"));
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK("T", "input_required") "," ASKS);
    answer(r);
    assert_at(kit_expect(&k, "tasks/update"), "params.inputResponses.k", expected);
    kit_end(&k);
}

static void what_is_left_out_has_its_default(void **state)
{
    (void)state;
    asked_before_2026(1, FILLED);
    asked_in_a_round(1, FILLED);
    asked_by_a_task(1, FILLED);
}

static void a_form_that_was_shown_is_left_alone(void **state)
{
    (void)state;
    asked_before_2026(0, SAID);
    asked_in_a_round(0, SAID);
    asked_by_a_task(0, SAID);
}

/* The server would keep the question open, and the application would wait for ever. */
static void what_does_not_fit_its_form_is_told(void **state)
{
    static const char unfit[] = "{\"action\":\"accept\",\"content\":{\"age\":\"old\"}}";
    (void)state;
    for (int32_t is_task = 0; is_task < 2; is_task++) {
        kit k = {0};
        segue_session_options options = options_of(0, SEGUE_ERA_AUTO);
        kit_begin_modern(&k, &options, is_task ? SERVER_TASKS : SERVER_PLAIN);
        record *r = kit_call(&k, "t");
        if (is_task) {
            kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T"));
            kit_result(&k, kit_expect(&k, "tasks/get"),
                       TASK("T", "input_required") "," ASKS);
        } else {
            kit_result(&k, kit_expect(&k, "tools/call"),
                       "\"resultType\":\"input_required\"," ASKS);
        }
        assert_int_equal(record_answer(r, NULL, unfit), SEGUE_E_INVALID);
        kit_expect_silence(&k);
        assert_int_equal(record_answer(r, NULL, SAID), SEGUE_OK);
        kit_expect(&k, is_task ? "tasks/update" : "tools/call");
        kit_end(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_out_has_its_default),
        cmocka_unit_test(a_form_that_was_shown_is_left_alone),
        NAMED("R-2557-55 what does not fit its form is told, in tasks too",
              what_does_not_fit_its_form_is_told),
    };
    return cmocka_run_group_tests_name("client_defaults", tests, NULL, NULL);
}
