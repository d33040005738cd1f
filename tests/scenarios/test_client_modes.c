/* A client that chooses the response modes of SEP-1905, for its session and for one call:
 * what it declares, what it lists, and which answers it accepts. The test plays the
 * server. */
#include "engine/client/session.h"
#include "support/segment_stage.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define SERVER_MODES(modes)                                                              \
    "{\"tools\":{},\"tasks\":{\"requests\":{\"tools\":{\"call\":{}}},"                   \
    "\"responses\":{\"modes\":[" modes "]}}}"
#define LISTED "params.task.responseModes"
#define STREAMING_ALONE SEGUE_RESPONSE_STREAMING
#define TWO (SEGUE_RESPONSE_TASK | SEGUE_RESPONSE_STREAMING)

static segue_request_options that_lists(uint32_t modes)
{
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.response_modes = modes;
    return options;
}

/* Opens a session with these modes, at a server with those capabilities, and loads its
 * tools. */
static void begin(kit *k, uint32_t modes, const char *server)
{
    segue_session_options options = kit_legacy_options();
    options.response_modes = modes;
    kit_begin_2025(k, &options, server);
    kit_start(k, "tools/list", NULL, NULL);
    kit_list_tools(k);
}

/* Opens a session, makes one call and checks that the call lists "listed". */
static void assert_listed(uint32_t of_session, uint32_t of_call, const char *server,
                          const char *listed)
{
    kit k = {0};
    const char *call;
    segue_request_options options = that_lists(of_call);
    begin(&k, of_session, server);
    segments_call(&k, &options, &call);
    assert_at(call, LISTED, listed);
    kit_end(&k);
}

static void the_session_declares_what_is_chosen(void **state)
{
    static const struct {
        uint32_t modes;
        const char *declared;
    } rows[] = {{0, "[\"task\",\"immediate\",\"streaming\"]"},
                {SEGUE_RESPONSE_TASK, "[\"task\"]"},
                {SEGUE_RESPONSE_IMMEDIATE, "[\"immediate\"]"},
                {STREAMING_ALONE, "[\"streaming\"]"},
                {TWO, "[\"task\",\"streaming\"]"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kit k = {0};
        segue_session_options options = kit_legacy_options();
        options.response_modes = rows[i].modes;
        kit_begin(&k, &options);
        const char *line = kit_expect(&k, "initialize");
        bool streams = !rows[i].modes || rows[i].modes & STREAMING_ALONE;
        assert_at(line, "params.capabilities.tasks.responses.modes", rows[i].declared);
        /* A client that streams also accepts replacements (R-1905-34). */
        assert_at(line, "params.capabilities.experimental",
                  streams ? "{\"dev.segue/replace\":{}}" : "");
        kit_end(&k);
    }
}

static void a_call_lists_what_is_chosen(void **state)
{
    (void)state;
    assert_listed(TWO, 0, SERVER_2025_STREAMS, "[\"task\",\"streaming\"]");
    assert_listed(TWO, STREAMING_ALONE, SERVER_2025_STREAMS, "[\"streaming\"]");
    assert_listed(0, SEGUE_RESPONSE_TASK, SERVER_2025_STREAMS, "[\"task\"]");
    assert_listed(0, 0, SERVER_MODES("\"task\",\"immediate\""),
                  "[\"task\",\"immediate\"]");
}

/* R-1905-6: a client that asks for modes the server lacks is told that the task is a
 * fallback. */
static void what_the_server_has_not_is_listed_all_the_same(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    begin(&k, STREAMING_ALONE, SERVER_MODES("\"task\",\"immediate\""));
    record *r = segments_call(&k, NULL, &call);
    assert_at(call, LISTED, "[\"streaming\"]");
    kit_result(&k, call,
               CREATED_2025("T") ",\"_meta\":{\"io.modelcontextprotocol/"
                                 "fallback-mode\":\"task\"}");
    kit_advance(&k, 1200);
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK_2025("T", "completed"));
    kit_result(&k, segments_expect_pull(&k, ""), "\"content\":[" BLOCK("a") "]");
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(segments_warnings(&k), 0);
    kit_end(&k);
    assert_listed(STREAMING_ALONE, 0, SERVER_2025, ""); /* the server knows no modes */
}

/* A mode that was not listed is accepted and counted (R-1905-4, R-1905-7). A second
 * answer to a call that did not list streaming matches no request (R-1905-66). */
static void other_answers_than_those_listed_are_warned_of(void **state)
{
    (void)state;
    kit k = {0};
    const char *call;
    segue_request_options options = that_lists(SEGUE_RESPONSE_TASK);
    begin(&k, 0, SERVER_2025_STREAMS);
    record *r = segments_call(&k, &options, &call);
    kit_result(&k, call, "\"content\":[" BLOCK("a") "]");
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(segments_warnings(&k), 1);
    r = segments_call(&k, &options, &call);
    kit_result(&k, call, CREATED_2025("T"));
    assert_int_equal(k.session->in_flight.count, 0);
    kit_result(&k, call, PART(SEG(1, "a")));
    assert_int_equal(r->segments, 0);
    assert_int_equal(segments_warnings(&k), 2);
    r = segments_call(&k, NULL, &call); /* all modes are listed */
    kit_result(&k, call, "\"content\":[" BLOCK("a") "]");
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(segments_warnings(&k), 2);
    kit_end(&k);
}

/* ---- invalid choices ---- */

static void assert_no_session(kit *k, uint32_t modes, const char *capabilities,
                              const char *why)
{
    segue_session_options options = kit_legacy_options();
    segue_transport *near_end, *far_end;
    segue_session *session = NULL;
    segue_error *error = NULL;
    assert_int_equal(segue_transport_pair(k->runtime, &near_end, &far_end), SEGUE_OK);
    options.response_modes = modes;
    options.capabilities = capabilities;
    assert_int_equal(
        segue_session_open(k->runtime, near_end, &options, NULL, &session, &error),
        SEGUE_E_INVALID);
    assert_non_null(strstr(segue_error_read(error)->message, why));
    segue_error_free(error);
    segue_transport_free(near_end);
    segue_transport_free(far_end);
}

static void assert_no_call(kit *k, uint32_t modes, const char *why)
{
    segue_request_options options = that_lists(modes);
    const char params[] = "{\"name\":\"t\"}";
    segue_error *error = NULL;
    assert_int_equal(segue_request_start(k->session, "tools/call", params,
                                         sizeof params - 1, &options, NULL, NULL, &error),
                     SEGUE_E_INVALID);
    assert_non_null(strstr(segue_error_read(error)->message, why));
    segue_error_free(error);
}

static void a_choice_that_cannot_be_is_refused(void **state)
{
    (void)state;
    kit k = {0};
    begin(&k, TWO, SERVER_2025_STREAMS);
    assert_no_session(&k, 8, NULL, "response_modes");
    assert_no_session(&k, TWO, "{\"tasks\":{}}", "both declare response modes");
    assert_no_call(&k, 8, "response_modes");
    assert_no_call(&k, SEGUE_RESPONSE_IMMEDIATE | STREAMING_ALONE,
                   "does not declare the response mode \"immediate\"");
    kit_expect_silence(&k);
    kit_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NAMED("R-1905-1 the session declares what is chosen",
              the_session_declares_what_is_chosen),
        NAMED("R-1905-3 a call lists what is chosen", a_call_lists_what_is_chosen),
        NAMED("R-1905-6 what the server has not is listed all the same",
              what_the_server_has_not_is_listed_all_the_same),
        NAMED("R-1905-7 other answers than those listed are warned of",
              other_answers_than_those_listed_are_warned_of),
        cmocka_unit_test(a_choice_that_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
