/* A client and a server of 2025-11-25 that asks for rare polls: the client waits for a
 * task with tasks/result, and goes on polling beside that (R-1905-33). */
#include "support/http_script.h"
#include "support/world.h"
#include "engine/dialect/tasks_2025/follow_2025.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define BLOCKS "\"content\":[{\"type\":\"text\",\"text\":\"a\"}]"
#define POLL_MS 3000
#define SOON_MS 400
/* An interval may be a tenth longer or shorter. */
#define INTERVAL_MS (POLL_MS + POLL_MS / 10)
#define SLOW(id, status)                                                                 \
    "\"taskId\":\"" id "\",\"status\":\"" status                                         \
    "\",\"createdAt\":\"2026-01-01T00:00:00Z\","                                         \
    "\"lastUpdatedAt\":\"2026-01-01T00:00:00Z\",\"ttl\":60000,\"pollInterval\":3000"
#define MADE(id) "\"task\":{" SLOW(id, "working") "}"

/* Makes a call that has become task T. */
static record *begin(kit *k, const segue_session_options *options)
{
    kit_begin_2025(k, options, SERVER_2025);
    record *r = kit_call(k, "t");
    kit_list_tools(k);
    kit_result(k, kit_expect(k, "tools/call"), MADE("T"));
    return r;
}

static const char *wait_of(kit *k)
{
    const char *wait = kit_expect(k, "tasks/result");
    assert_at(wait, "params", "{\"taskId\":\"T\"}");
    kit_expect_silence(k);
    return wait;
}

static const char *look(kit *k)
{
    kit_advance(k, INTERVAL_MS);
    return kit_expect(k, "tasks/get");
}

/* ---- outcomes of a wait ---- */

static void the_result_comes_when_the_task_ends(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, NULL);
    const char *wait = wait_of(&k);
    kit_advance(&k, SOON_MS);
    kit_expect_silence(&k);
    kit_result(&k, wait, BLOCKS "," RELATED("T"));
    assert_int_equal(r->completed, 0); /* the task is polled at once */
    kit_result(&k, kit_expect(&k, "tasks/get"), SLOW("T", "completed"));
    assert_string_equal(r->log, "task T\nstatus working -\nstatus completed -\n"
                                "segment 1 a\ncomplete SEGUE_OK\n");
    assert_non_null(strstr(r->result, "related-task"));
    kit_expect_silence(&k); /* the result is not fetched again */
    kit_end(&k);
}

/* An error may be that of the task, or mean that the task has not ended. */
static void an_error_is_looked_into(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, NULL);
    kit_error(&k, wait_of(&k), -32000, NULL);
    kit_result(&k, kit_expect(&k, "tasks/get"), SLOW("T", "failed"));
    kit_error(&k, kit_expect(&k, "tasks/result"), -32000, NULL);
    assert_int_equal(r->status, SEGUE_E_REMOTE);
    assert_int_equal(r->rpc_code, -32000);
    kit_end(&k);
}

static void a_task_that_was_cancelled_elsewhere(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, NULL);
    kit_result(&k, wait_of(&k), BLOCKS ",\"isError\":true");
    kit_result(&k, kit_expect(&k, "tasks/get"), SLOW("T", "cancelled"));
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    kit_end(&k);
}

static void a_cancel_is_answered_first(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, NULL);
    const char *wait = wait_of(&k);
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    const char *cancel = kit_expect(&k, "tasks/cancel");
    kit_result(&k, wait, BLOCKS ",\"isError\":true");
    assert_int_equal(r->completed, 0);
    kit_expect_silence(&k);
    kit_result(&k, cancel, SLOW("T", "cancelled"));
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    kit_end(&k);
}

/* Some servers ask on the stream of a tasks/result. */
static void a_question_comes_meanwhile(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = kit_legacy_options();
    options.capabilities = "{\"elicitation\":{}}";
    record *r = begin(&k, &options);
    const char *wait = wait_of(&k);
    kit_say(&k, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"elicitation/create\","
                "\"params\":{\"message\":\"?\"," RELATED("T") "}}");
    assert_int_equal(record_answer(r, NULL, "{\"action\":\"accept\",\"content\":{}}"),
                     SEGUE_OK);
    assert_at(kit_heard(&k), "result.action", "\"accept\"");
    kit_expect_silence(&k);
    kit_result(&k, wait, BLOCKS);
    kit_result(&k, kit_expect(&k, "tasks/get"), SLOW("T", "completed"));
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

/* A server that asks only when tasks/result comes. */
static void a_task_that_asks_is_fetched_anew(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = kit_legacy_options();
    options.capabilities = "{\"elicitation\":{}}";
    record *r = begin(&k, &options);
    wait_of(&k);
    kit_result(&k, look(&k), SLOW("T", "input_required"));
    kit_expect_silence(&k); /* the wait may still bring the question */
    kit_result(&k, look(&k), SLOW("T", "input_required"));
    kit_result(&k, wait_of(&k), BLOCKS);
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

/* ---- servers that do not wait ---- */

static void looks_go_on_beside_a_wait(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, NULL);
    wait_of(&k);
    /* the wait lasts longer than any other request may take */
    for (int i = 0; i < 30; i++) {
        kit_result(&k, look(&k), SLOW("T", "working"));
        kit_expect_silence(&k);
    }
    kit_result(&k, look(&k), SLOW("T", "completed"));
    kit_result(&k, kit_expect(&k, "tasks/result"), BLOCKS);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(sgi_session_2025_of(k.session)->waits.count, 0);
    kit_end(&k);
}

/* An answer before the end of the task is no result, and after it the client only
 * polls. */
static void an_answer_before_the_end_is_none(void **state)
{
    (void)state;
    static const char *const answers[] = {BLOCKS, "\"content\":[],\"isError\":true", "",
                                          MADE("T"), NULL};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        kit k = {0};
        record *r = begin(&k, NULL);
        if (answers[i])
            kit_result(&k, wait_of(&k), "%s", answers[i]);
        else
            kit_error(&k, wait_of(&k), -32602, NULL);
        kit_result(&k, kit_expect(&k, "tasks/get"), SLOW("T", "working"));
        kit_expect_silence(&k);
        kit_result(&k, look(&k), SLOW("T", "working"));
        kit_expect_silence(&k);
        kit_result(&k, look(&k), SLOW("T", "completed"));
        kit_result(&k, kit_expect(&k, "tasks/result"),
                   "\"content\":[{\"type\":\"text\",\"text\":\"b\"}]");
        assert_int_equal(r->status, SEGUE_OK);
        assert_at(r->result, "content.0.text", "\"b\"");
        kit_end(&k);
    }
}

static void a_short_interval_needs_no_wait(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_2025(&k, NULL, SERVER_2025);
    kit_call(&k, "t");
    kit_list_tools(&k);
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED_2025("T"));
    kit_expect_silence(&k);
    kit_end(&k);
}

/* ---- connections ---- */

static void a_wait_that_breaks_goes_again(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    record *r = begin(&k, NULL);
    wait_of(&k);
    kit_advance(&k, INTERVAL_MS);
    kit_result(&k, kit_expect(&k, "tasks/get"), SLOW("T", "working"));
    kit_cut(&k);
    kit_handshake_2025(&k, SERVER_2025);
    kit_result(&k, wait_of(&k), BLOCKS);
    kit_result(&k, kit_expect(&k, "tasks/get"), SLOW("T", "completed"));
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

static void a_wait_that_always_breaks_does_not(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    record *r = begin(&k, NULL);
    for (int i = 0; i < SGI_VAIN_WAITS_MAX; i++) {
        wait_of(&k);
        kit_cut(&k);
        kit_advance(&k, SOON_MS);
        kit_handshake_2025(&k, SERVER_2025);
    }
    kit_expect_silence(&k);
    kit_result(&k, look(&k), SLOW("T", "completed"));
    kit_result(&k, kit_expect(&k, "tasks/result"), BLOCKS);
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

/* Its question may come on no other stream, so the client waits again. */
static void a_task_that_asks_is_fetched_though_waits_break(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    segue_session_options options = kit_legacy_options();
    options.capabilities = "{\"elicitation\":{}}";
    record *r = begin(&k, &options);
    for (int i = 0; i < SGI_VAIN_WAITS_MAX; i++) {
        wait_of(&k);
        kit_cut(&k);
        kit_advance(&k, SOON_MS);
        kit_handshake_2025(&k, SERVER_2025);
    }
    kit_expect_silence(&k);
    kit_result(&k, look(&k), SLOW("T", "input_required"));
    for (int i = 0; i < SGI_VAIN_WAITS_MAX; i++) {
        wait_of(&k);
        kit_cut(&k);
        kit_advance(&k, INTERVAL_MS);
        kit_handshake_2025(&k, SERVER_2025);
    }
    kit_result(&k, wait_of(&k), BLOCKS);
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

/* A proxy cuts a connection that is silent for long. A wait does not count against
 * max_connections, so polls do not queue behind it. */
static void a_proxy_that_cuts_waits(void **state)
{
    (void)state;
    http_script s;
    segue_session_options options = kit_legacy_options();
    script_prepare(&s);
    s.options.max_connections = 1;
    script_connect(&s, &options);
    script_initialize_with(&s, "one", SERVER_2025);
    script_say(script_find(&s, "GET"), "405 Method Not Allowed", "", "");
    record *r = kit_call(&s.k, "t");
    script_result(script_expect(&s, "tools/list"),
                  "\"tools\":[{\"name\":\"t\",\"execution\":{\"taskSupport\":"
                  "\"required\"}}]");
    script_result(script_expect(&s, "tools/call"), MADE("T"));
    heard *wait = script_expect(&s, "tasks/result");
    for (int i = 0; i < 2; i++) {
        script_advance(&s, INTERVAL_MS);
        heard *get = script_expect(&s, "tasks/get");
        script_say(wait, "504 Gateway Timeout", "", "");
        script_until(&s, !sgi_session_2025_of(s.k.session)->waits.count);
        script_result(get, SLOW("T", "working"));
        wait = script_expect(&s, "tasks/result");
    }
    script_result(wait, BLOCKS);
    script_result(script_expect(&s, "tasks/get"), SLOW("T", "completed"));
    script_until(&s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    script_end(&s);
}

/* ---- limits ---- */

static void tasks_beyond_the_limit_are_looked_at(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_2025(&k, NULL, SERVER_2025);
    assert_int_equal(sgi_session_2025_of(k.session)->waits.max, SGI_WAITS_MAX);
    sgi_session_2025_of(k.session)->waits.max = 1;
    record *first = kit_call(&k, "t");
    kit_list_tools(&k);
    kit_result(&k, kit_expect(&k, "tools/call"), MADE("T"));
    const char *wait = wait_of(&k);
    record *second = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), MADE("U"));
    kit_expect_silence(&k);
    kit_result(&k, wait, BLOCKS);
    kit_result(&k, kit_expect(&k, "tasks/get"), SLOW("T", "completed"));
    assert_int_equal(first->status, SEGUE_OK);
    const char *get = look(&k);
    kit_result(&k, get, SLOW("U", "working"));
    wait = kit_expect(&k, "tasks/result"); /* there is room for it now */
    assert_at(wait, "params.taskId", "\"U\"");
    kit_result(&k, wait, BLOCKS);
    kit_result(&k, kit_expect(&k, "tasks/get"), SLOW("U", "completed"));
    assert_int_equal(second->status, SEGUE_OK);
    kit_end(&k);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        NAMED("R-1905-33 the result comes when the task ends",
              the_result_comes_when_the_task_ends),
        cmocka_unit_test(an_error_is_looked_into),
        cmocka_unit_test(a_task_that_was_cancelled_elsewhere),
        cmocka_unit_test(a_cancel_is_answered_first),
        cmocka_unit_test(a_question_comes_meanwhile),
        cmocka_unit_test(a_task_that_asks_is_fetched_anew),
        NAMED("R-1905-39 looks go on beside a wait", looks_go_on_beside_a_wait),
        cmocka_unit_test(an_answer_before_the_end_is_none),
        cmocka_unit_test(a_short_interval_needs_no_wait),
        cmocka_unit_test(a_wait_that_breaks_goes_again),
        cmocka_unit_test(a_wait_that_always_breaks_does_not),
        cmocka_unit_test(a_task_that_asks_is_fetched_though_waits_break),
        cmocka_unit_test(a_proxy_that_cuts_waits),
        cmocka_unit_test(tasks_beyond_the_limit_are_looked_at),
    };
    return cmocka_run_group_tests_name("client_result_waits", tests, NULL, NULL);
}
