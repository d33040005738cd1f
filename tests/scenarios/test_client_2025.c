/* A client and the tasks of 2025-11-25, from a server that the test plays: which calls
 * become tasks, and how the client follows a task that streams nothing to its end. */
#include "support/client_kit.h"
#include "support/world.h"
#include "engine/dialect/following/early_status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define BLOCKS "\"content\":[{\"type\":\"text\",\"text\":\"a\"}]"

/* Makes a call that has become task T and was not polled yet. */
static record *begin(kit *k, const char *capabilities)
{
    kit_begin_2025(k, NULL, capabilities);
    record *r = kit_call(k, "t");
    kit_list_tools(k);
    kit_result(k, kit_expect(k, "tools/call"), CREATED_2025("T"));
    return r;
}

static const char *look(kit *k)
{
    kit_advance(k, 1200);
    const char *get = kit_expect(k, "tasks/get");
    assert_at(get, "params.taskId", "\"T\"");
    return get;
}

/* ---- which form a call has ---- */

static void the_handshake_says_what_the_client_takes(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = kit_legacy_options();
    kit_begin(&k, &options);
    assert_at(kit_expect(&k, "initialize"), "params.capabilities",
              "{\"tasks\":{\"responses\":{\"modes\":[\"task\",\"immediate\","
              "\"streaming\"]}},\"experimental\":{\"dev.segue/replace\":{}}}");
    kit_end(&k);
    memset(&k, 0, sizeof k);
    options.no_tasks = 1;
    kit_begin(&k, &options);
    assert_at(kit_expect(&k, "initialize"), "params.capabilities", "{}");
    kit_end(&k);
    memset(&k, 0, sizeof k);
    options.no_tasks = 0;
    options.capabilities = "{\"tasks\":{\"responses\":{\"modes\":[\"task\"]}}}";
    kit_begin(&k, &options);
    assert_at(kit_expect(&k, "initialize"), "params.capabilities", options.capabilities);
    kit_end(&k);
}

static void a_tool_is_looked_up_once_and_called_as_it_wants(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_2025(&k, NULL, SERVER_2025);
    record *first = kit_call(&k, "t");
    record *second = kit_call(&k, "p"); /* waits for the same list */
    kit_list_tools(&k);
    const char *call = kit_expect(&k, "tools/call");
    assert_at(call, "params.task", "{}");
    kit_result(&k, call, BLOCKS);
    call = kit_expect(&k, "tools/call");
    assert_at(call, "params.task", "");
    kit_result(&k, call, BLOCKS);
    assert_int_equal(first->status, SEGUE_OK);
    assert_int_equal(second->status, SEGUE_OK);
    kit_call(&k, "r");
    assert_at(kit_expect(&k, "tools/call"), "params.task", "{}");
    kit_call(&k, "unheard of");
    assert_at(kit_expect(&k, "tools/call"), "params.task", "");
    kit_say(&k, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}");
    assert_int_equal(k.notifications, 1);
    kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/list"), "\"tools\":[]");
    assert_at(kit_expect(&k, "tools/call"), "params.task", "");
    kit_end(&k);
}

static void a_call_that_asks_for_no_task_gets_none(void **state)
{
    (void)state;
    kit k = {0};
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.no_task = 1;
    kit_begin_2025(&k, NULL, SERVER_2025);
    kit_start(&k, "tools/call", "{\"name\":\"t\"}", &options); /* asks for no list */
    assert_at(kit_expect(&k, "tools/call"), "params.task", "");
    kit_call(&k, "t");
    kit_list_tools(&k);
    assert_at(kit_expect(&k, "tools/call"), "params.task", "{}");
    kit_end(&k);
}

static void every_page_is_looked_through(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_2025(&k, NULL, SERVER_2025);
    kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/list"),
               "\"tools\":[{\"name\":\"x\"}],\"nextCursor\":\"c\"");
    const char *page = kit_expect(&k, "tools/list");
    assert_at(page, "params.cursor", "\"c\"");
    kit_result(
        &k, page,
        "\"tools\":[{\"name\":\"t\",\"execution\":{\"taskSupport\":\"required\"}}]");
    assert_at(kit_expect(&k, "tools/call"), "params.task", "{}");
    kit_end(&k);
}

static void a_list_of_the_application_is_learnt_from(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_2025(&k, NULL, SERVER_2025);
    kit_start(&k, "tools/list", NULL, NULL);
    kit_list_tools(&k);
    kit_call(&k, "t");
    assert_at(kit_expect(&k, "tools/call"), "params.task", "{}");
    kit_end(&k);
}

/* A tool is called plainly when the server has no list or no tasks. */
static void without_a_list_calls_are_plain(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_2025(&k, NULL, SERVER_2025);
    kit_call(&k, "t");
    kit_error(&k, kit_expect(&k, "tools/list"), -32601, NULL);
    assert_at(kit_expect(&k, "tools/call"), "params.task", "");
    kit_end(&k);
    memset(&k, 0, sizeof k);
    kit_begin_2025(&k, NULL, SERVER_PLAIN);
    kit_call(&k, "t");
    assert_at(kit_expect(&k, "tools/call"), "params.task", "");
    kit_end(&k);
}

/* A list that fails says nothing about the tools: calls wait until the list is known. */
static void a_list_that_fails_is_asked_for_again(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_2025(&k, NULL, SERVER_2025);
    record *first = kit_call(&k, "t");
    record *second = kit_call(&k, "p");
    kit_error(&k, kit_expect(&k, "tools/list"), -32603, NULL);
    kit_expect_silence(&k);
    assert_non_null(strstr(k.last_warning, "tools/list"));
    kit_advance(&k, 300);
    const char *page = kit_expect(&k, "tools/list");
    kit_expect_silence(&k); /* both wait for the same list */
    kit_result(&k, page, "\"tools\":[],\"nextCursor\":\"c\"");
    page = kit_expect(&k, "tools/list");
    assert_at(page, "params.cursor", "\"c\"");
    kit_error(&k, page, -32603, NULL);
    kit_advance(&k, 600);
    assert_at(page = kit_expect(&k, "tools/list"), "params.cursor", "");
    kit_result(
        &k, page,
        "\"tools\":[{\"name\":\"t\",\"execution\":{\"taskSupport\":\"required\"}}]");
    kit_advance(&k, 600); /* the second call may have been about to ask itself */
    const char *call = kit_expect(&k, "tools/call");
    assert_at(call, "params.task", "{}");
    kit_result(&k, call, BLOCKS);
    call = kit_expect(&k, "tools/call");
    assert_at(call, "params.task", "");
    kit_result(&k, call, BLOCKS);
    assert_int_equal(first->status, SEGUE_OK);
    assert_int_equal(second->status, SEGUE_OK);
    kit_end(&k);
}

static void a_list_without_an_answer_is_asked_for_again(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_2025(&k, NULL, SERVER_2025);
    kit_call(&k, "t");
    kit_expect(&k, "tools/list");
    kit_advance(&k, 60000);
    kit_expect(&k, "notifications/cancelled");
    kit_advance(&k, 300);
    kit_list_tools(&k);
    assert_at(kit_expect(&k, "tools/call"), "params.task", "{}");
    kit_end(&k);
}

/* The client does not know whether the tool is a task: the call is not sent, and the next
 * call asks for the list again. */
static void a_tool_that_stays_unknown_is_not_called(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_2025(&k, NULL, SERVER_2025);
    record *r = kit_call(&k, "t");
    for (int i = 0; i < 4; i++) {
        kit_error(&k, kit_expect(&k, "tools/list"), -32603, NULL);
        kit_advance(&k, 5000);
    }
    kit_expect_silence(&k);
    assert_int_equal(r->status, SEGUE_E_REMOTE);
    assert_int_equal(r->rpc_code, -32603);
    assert_string_equal(
        r->message,
        "the client could not learn by tools/list whether the tool runs as a task: no");
    r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/list"), "\"tools\":7");
    kit_expect_silence(&k);
    kit_advance(&k, 300);
    kit_list_tools(&k);
    assert_at(kit_expect(&k, "tools/call"), "params.task", "{}");
    kit_end(&k);
}

static void the_application_decides_by_its_own_task_member(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_2025(&k, NULL, SERVER_2025);
    record *r =
        kit_start(&k, "tools/call", "{\"name\":\"t\",\"task\":{\"ttl\":5}}", NULL);
    const char *call = kit_expect(&k, "tools/call");
    assert_at(call, "params.task", "{\"ttl\":5}");
    kit_result(&k, call, CREATED_2025("T"));
    kit_result(&k, look(&k), TASK_2025("T", "completed"));
    kit_result(&k, kit_expect(&k, "tasks/result"), BLOCKS);
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

static void a_wish_for_a_time_to_live_is_passed_on(void **state)
{
    (void)state;
    kit k = {0};
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    kit_begin_2025(&k, NULL, SERVER_2025_STREAMS);
    options.ttl_ms = 60000;
    kit_start(&k, "tools/call", "{\"name\":\"t\"}", &options);
    kit_list_tools(&k);
    assert_at(kit_expect(&k, "tools/call"), "params.task",
              "{\"ttl\":60000,\"responseModes\":[\"task\",\"immediate\",\"streaming\"]}");
    options.ttl_ms = -1;
    assert_int_equal(
        segue_request_start(k.session, "tools/call", "{}", 2, &options, NULL, NULL, NULL),
        SEGUE_E_INVALID);
    kit_end(&k);
}

/* -32601 for the form of a call means that the list was old. */
static void a_call_that_is_refused_for_its_form_is_sent_in_the_other(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_2025(&k, NULL, SERVER_2025);
    record *r = kit_call(&k, "p");
    kit_list_tools(&k);
    kit_error(&k, kit_expect(&k, "tools/call"), -32601, NULL);
    kit_result(
        &k, kit_expect(&k, "tools/list"),
        "\"tools\":[{\"name\":\"p\",\"execution\":{\"taskSupport\":\"required\"}}]");
    const char *call = kit_expect(&k, "tools/call");
    assert_at(call, "params.task", "{}");
    kit_error(&k, call, -32601, NULL);
    assert_int_equal(r->status, SEGUE_E_REMOTE); /* the call is retried only once */
    assert_int_equal(r->rpc_code, -32601);
    kit_end(&k);
}

static void the_session_that_comes_back_looks_again(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    kit_begin_2025(&k, NULL, SERVER_2025);
    record *r = kit_call(&k, "t");
    kit_expect(&k, "tools/list");
    kit_cut(&k);
    kit_handshake_2025(&k, SERVER_2025);
    kit_list_tools(&k);
    kit_result(&k, kit_expect(&k, "tools/call"), BLOCKS);
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

static void a_call_that_waits_for_the_list_can_be_cancelled(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_2025(&k, NULL, SERVER_2025);
    record *r = kit_call(&k, "t");
    const char *list = kit_expect(&k, "tools/list");
    segue_request_cancel(r->request);
    kit_run(&k);
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    kit_result(&k, list, "\"tools\":[]");
    kit_expect_silence(&k);
    kit_end(&k);
}

/* ---- until the end ---- */

/* A repeated status with the same text is no change. */
static void a_status_is_told_once(void **state)
{
    (void)state;
    static const char said[] = TASK_2025("T", "working") ",\"statusMessage\":\"%s\"";
    kit k = {0};
    record *r = begin(&k, SERVER_2025);
    kit_result(&k, look(&k), said, "m");
    kit_result(&k, look(&k), said, "m");
    kit_result(&k, look(&k), TASK_2025("T", "working"));
    kit_result(&k, look(&k), said, "\\u006d"); /* the same text, spelled differently */
    kit_result(&k, look(&k), said, "n");
    kit_result(&k, look(&k), said, "m");
    assert_string_equal(r->log, "task T\nstatus working -\nstatus working m\n"
                                "status working n\nstatus working m\n");
    kit_end(&k);
}

static void polled_until_the_end_then_fetched(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, SERVER_2025);
    kit_expect_silence(&k); /* the server has just reported its status */
    kit_result(&k, look(&k), TASK_2025("T", "working"));
    kit_result(&k, look(&k), TASK_2025("T", "input_required"));
    kit_result(&k, look(&k), TASK_2025("T", "completed"));
    const char *result = kit_expect(&k, "tasks/result");
    assert_at(result, "params", "{\"taskId\":\"T\"}");
    kit_result(&k, result, BLOCKS "," RELATED("T"));
    assert_string_equal(r->log, "task T\nstatus working -\nstatus input_required -\n"
                                "status completed -\nsegment 1 a\ncomplete SEGUE_OK\n");
    assert_non_null(strstr(r->result, "related-task"));
    kit_expect_silence(&k);
    kit_end(&k);
}

/* AS-41: a tool that fails makes the task fail; its result is still delivered as a
 * result. */
static void failed_is_told_apart_by_the_result(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, SERVER_2025);
    kit_result(&k, look(&k), TASK_2025("T", "failed"));
    kit_result(&k, kit_expect(&k, "tasks/result"), BLOCKS ",\"isError\":true");
    assert_int_equal(r->status, SEGUE_OK);
    assert_at(r->result, "isError", "true");
    kit_end(&k);
    memset(&k, 0, sizeof k);
    r = begin(&k, SERVER_2025);
    kit_result(&k, look(&k), TASK_2025("T", "failed"));
    kit_error(&k, kit_expect(&k, "tasks/result"), -32000, NULL);
    assert_int_equal(r->status, SEGUE_E_REMOTE);
    assert_int_equal(r->rpc_code, -32000);
    kit_end(&k);
}

static void cancelled_elsewhere(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, SERVER_2025);
    kit_result(&k, look(&k), TASK_2025("T", "cancelled"));
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    kit_expect_silence(&k);
    kit_end(&k);
}

/* The request ends with the answer (R-2557-63), which may say that the cancel came too
 * late. */
static void cancel_is_said_of_the_task(void **state)
{
    (void)state;
    static const char *const servers[] = {SERVER_2025, SERVER_2025_STREAMS};
    for (int i = 0; i < 2; i++) {
        kit k = {0};
        record *r = begin(&k, servers[i]);
        assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
        assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
        const char *cancel = kit_expect(&k, "tasks/cancel");
        assert_int_equal(r->completed, 0);
        kit_result(&k, cancel, TASK_2025("T", "cancelled"));
        assert_int_equal(r->status, SEGUE_E_CANCELLED);
        kit_expect_silence(&k); /* no notifications/cancelled for a task */
        kit_end(&k);
    }
}

/* A tasks/result that waits when the task is cancelled gets an answer that looks like a
 * result. Only the answer to tasks/cancel says whether it is one. */
static void a_waiting_result_does_not_end_a_cancelled_task(void **state)
{
    (void)state;
    static const char answer[] = "\"content\":[{\"type\":\"text\",\"text\":\"Task was "
                                 "cancelled\"}],\"isError\":true";
    for (int too_late = 0; too_late < 2; too_late++) {
        kit k = {0};
        record *r = begin(&k, SERVER_2025);
        kit_result(&k, look(&k), TASK_2025("T", "completed"));
        char *fetch = strdup(kit_expect(&k, "tasks/result"));
        segue_request_cancel(r->request);
        char *cancel = strdup(kit_expect(&k, "tasks/cancel"));
        kit_result(&k, fetch, answer);
        kit_run(&k);
        assert_int_equal(r->completed, 0);
        if (too_late) {
            kit_error(&k, cancel, -32602, NULL);
            kit_result(&k, look(&k), TASK_2025("T", "completed"));
            kit_result(&k, kit_expect(&k, "tasks/result"), BLOCKS);
        } else {
            kit_result(&k, cancel, TASK_2025("T", "cancelled"));
        }
        assert_int_equal(r->status, too_late ? SEGUE_OK : SEGUE_E_CANCELLED);
        assert_int_equal(r->completed, 1);
        free(fetch);
        free(cancel);
        kit_end(&k);
    }
}

/* A result that is no error shows that the task was completed before the cancel. */
static void a_result_during_a_cancel_ends_the_request(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, SERVER_2025);
    kit_result(&k, look(&k), TASK_2025("T", "completed"));
    char *fetch = strdup(kit_expect(&k, "tasks/result"));
    segue_request_cancel(r->request);
    kit_expect(&k, "tasks/cancel");
    kit_result(&k, fetch, BLOCKS);
    kit_run(&k);
    assert_int_equal(r->completed, 1);
    assert_int_equal(r->status, SEGUE_OK);
    free(fetch);
    kit_end(&k);
}

static void a_cancel_that_comes_too_late_brings_the_result(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, SERVER_2025);
    segue_request_cancel(r->request);
    kit_error(&k, kit_expect(&k, "tasks/cancel"), -32602, NULL);
    kit_result(&k, look(&k), TASK_2025("T", "completed"));
    kit_result(&k, kit_expect(&k, "tasks/result"),
               "\"content\":[{\"type\":\"text\",\"text\":\"a\"}]");
    assert_int_equal(r->status, SEGUE_OK);
    assert_at(r->result, "content.0.text", "\"a\"");
    kit_end(&k);
}

static void a_task_that_is_gone_is_lost_once(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, SERVER_2025);
    kit_error(&k, look(&k), -32602, NULL);
    assert_int_equal(r->status, SEGUE_E_TASK_LOST);
    kit_expect_silence(&k);
    kit_end(&k);
}

static void failures_back_off(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, SERVER_2025);
    const char *get = look(&k);
    for (int i = 0; i < 4; i++) {
        kit_error(&k, get, -32603, NULL);
        kit_advance(&k, 3000);
        get = kit_expect(&k, "tasks/get");
        kit_expect_silence(&k);
    }
    kit_error(&k, get, -32603, "{\"reason\":\"rate_limited\",\"retryAfterMs\":20000}");
    kit_advance(&k, 15000);
    kit_expect_silence(&k);
    kit_advance(&k, 8000);
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK_2025("T", "completed"));
    kit_error(&k, kit_expect(&k, "tasks/result"), -32603,
              "{\"reason\":\"rate_limited\",\"retryAfterMs\":5000}");
    kit_advance(&k, 3000);
    kit_expect_silence(&k);
    kit_advance(&k, 3000);
    kit_result(&k, kit_expect(&k, "tasks/result"), BLOCKS);
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

static void a_server_without_the_methods_is_told_as_such(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        kit k = {0};
        record *r = begin(&k, SERVER_2025);
        const char *ask = look(&k);
        if (i) {
            kit_result(&k, ask, "\"taskId\":\"T\",\"status\":\"dancing\"");
        } else {
            kit_error(&k, ask, -32601, NULL);
        }
        assert_int_equal(r->status, SEGUE_E_PROTOCOL);
        kit_end(&k);
    }
}

/* ---- notifications of the server ---- */

static void status(kit *k, const char *status, const char *updated)
{
    kit_say(k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/status\",\"params\":{"
            "\"taskId\":\"T\",\"status\":\"%s\",\"statusMessage\":\"m\","
            "\"lastUpdatedAt\":\"%s\"}}",
            status, updated);
}

static void status_of(kit *k, const char *task, const char *message)
{
    kit_say(k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/status\",\"params\":{"
            "\"taskId\":\"%s\",\"status\":\"completed\",\"statusMessage\":\"%s\"}}",
            task, message);
}

/* Over HTTP a status of a task may overtake the answer that creates the task. No time
 * passes: the result is fetched at once. */
static void a_status_before_its_task_is_kept(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_2025(&k, NULL, SERVER_2025);
    record *r = kit_call(&k, "t");
    kit_list_tools(&k);
    const char *call = kit_expect(&k, "tools/call");
    status_of(&k, "other", "m");
    status(&k, "working", "2026-01-01T00:00:05Z");
    status(&k, "completed", "2026-01-01T00:00:06Z");
    kit_result(&k, call, CREATED_2025("T"));
    assert_string_equal(r->log, "task T\nstatus working -\nstatus completed m\n");
    kit_result(&k, kit_expect(&k, "tasks/result"), BLOCKS);
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

/* Returns whether the status of T is kept when so many other notifications come before
 * the answer. */
static int is_kept(int others, size_t length)
{
    kit k = {0};
    char task[24];
    char *message = calloc(1, length + 1);
    kit_begin_2025(&k, NULL, SERVER_2025);
    record *r = kit_call(&k, "t");
    kit_list_tools(&k);
    const char *call = kit_expect(&k, "tools/call");
    memset(message, 'm', length);
    status_of(&k, "T", message);
    for (int i = 0; i < others; i++) {
        snprintf(task, sizeof task, "other %d", i);
        status_of(&k, task, "m");
    }
    kit_result(&k, call, CREATED_2025("T"));
    int kept = strstr(r->log, "status completed m") != NULL;
    kit_end(&k);
    free(message);
    return kept;
}

static void only_so_much_is_kept_before_a_task(void **state)
{
    (void)state;
    assert_true(is_kept(SGI_EARLY_MAX - 1, 1));
    assert_false(is_kept(SGI_EARLY_MAX, 1));
    assert_true(is_kept(0, SGI_EARLY_BYTES / 2));
    assert_false(is_kept(0, SGI_EARLY_BYTES));
}

/* AS-69 for these tasks: an end is final, otherwise the status with the later stamp
 * counts, compared as an instant. */
static void notified_status_is_merged_with_what_is_polled(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, SERVER_2025);
    status(&k, "input_required", "2026-01-01T00:00:05+00:00");
    status(&k, "working", "2026-01-01T00:00:04.999Z"); /* an older status is dropped */
    assert_string_equal(r->log, "task T\nstatus working -\nstatus input_required m\n");
    status(&k, "working", "2026-01-01T02:00:06+02:00");
    assert_non_null(strstr(r->log, "status working m\n"));
    const char *get = look(&k);
    status(&k, "completed", "2026-01-01T00:00:07Z");
    const char *result = kit_expect(&k, "tasks/result");
    kit_result(&k, get, TASK_2025("T", "working"));
    status(&k, "working", "2026-01-01T00:00:09Z");
    kit_result(&k, result, BLOCKS);
    assert_int_equal(r->status, SEGUE_OK);
    assert_non_null(strstr(r->log, "status completed m\nsegment 1 a\ncomplete"));
    assert_int_equal(k.notifications, 0);
    status(&k, "completed", "2026-01-01T00:00:07Z"); /* the task's request has ended */
    assert_int_equal(k.notifications, 1);
    kit_expect_silence(&k);
    kit_end(&k);
}

static void progress_goes_on_when_the_call_is_answered(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_2025(&k, NULL, SERVER_2025);
    record *r = kit_call(&k, "t");
    kit_list_tools(&k);
    const char *call = kit_expect(&k, "tools/call");
    kit_result(&k, call, CREATED_2025("T"));
    kit_say(&k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
            "\"progressToken\":%s,\"progress\":0.5}}",
            json_at(call, "params._meta.progressToken"));
    assert_non_null(strstr(r->log, "progress 0.5/0 -"));
    kit_end(&k);
}

/* ---- answers without a request ---- */

static void strays_are_refused_and_cancelled(void **state)
{
    (void)state;
    static const char *const methods[] = {"tools/list", "tools/call"};
    for (int i = 0; i < 2; i++) {
        kit k = {0};
        kit_begin_2025(&k, NULL, SERVER_PLAIN);
        record *r = kit_start(&k, methods[i], "{\"name\":\"p\"}", NULL);
        kit_result(&k, kit_expect(&k, methods[i]), CREATED_2025("T"));
        assert_int_equal(r->status, SEGUE_E_PROTOCOL);
        assert_at(kit_expect(&k, "tasks/cancel"), "params.taskId", "\"T\"");
        kit_advance(&k, 5000);
        kit_expect_silence(&k);
        kit_end(&k);
    }
}

static void a_result_with_a_task_member_of_its_own_is_a_result(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_2025(&k, NULL, SERVER_PLAIN);
    record *r = kit_call(&k, "p");
    kit_result(&k, kit_expect(&k, "tools/call"),
               BLOCKS ",\"task\":{\"taskId\":\"T\",\"status\":\"working\"}");
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

static void older_versions_have_no_tasks(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = kit_legacy_options();
    kit_begin(&k, &options);
    kit_shake_hands(&k, "2025-06-18", SERVER_2025);
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    assert_at(call, "params.task", "");
    kit_result(&k, call, BLOCKS);
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

/* AS-13: the same program against a server without modes, and one without tasks. */
static void old_servers_are_fine(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, SERVER_2025);
    kit_result(&k, look(&k), TASK_2025("T", "completed"));
    kit_result(&k, kit_expect(&k, "tasks/result"), BLOCKS);
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
    memset(&k, 0, sizeof k);
    kit_begin_2025(&k, NULL, SERVER_PLAIN);
    r = kit_start(&k, "tools/call",
                  "{\"name\":\"t\",\"task\":{\"responseModes\":[\"streaming\"]}}", NULL);
    const char *call = kit_expect(&k, "tools/call");
    kit_result(&k, call, BLOCKS);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 1);
    kit_end(&k);
}

/* ---- in another process ---- */

static void a_token_goes_on_in_another_process(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, SERVER_2025);
    char token[sizeof r->token];
    memcpy(token, r->token, sizeof token);
    assert_true(token[0]);
    assert_int_equal(segue_request_detach(r->request), SEGUE_OK);
    kit_run(&k);
    kit_expect_silence(&k);
    kit_end(&k);
    memset(&k, 0, sizeof k);
    kit_begin_2025(&k, NULL, SERVER_2025);
    r = kit_resume(&k, token, NULL);
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK_2025("T", "completed"));
    kit_result(&k, kit_expect(&k, "tasks/result"), BLOCKS);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 1);
    kit_end(&k);
}

static void a_token_of_another_version_says_so(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, SERVER_2025);
    char token[sizeof r->token];
    memcpy(token, r->token, sizeof token);
    kit_end(&k);
    memset(&k, 0, sizeof k);
    kit_begin_modern(&k, NULL, SERVER_STREAMS);
    r = kit_resume(&k, token, NULL);
    assert_int_equal(r->status, SEGUE_E_NOT_RESUMABLE);
    kit_expect_silence(&k);
    kit_end(&k);
}

/* R-2557-61: get, cancel and resume work with the id of the task. */
static void handles_by_id(void **state)
{
    (void)state;
    kit k = {0};
    segue_task *task;
    segue_request_events events;
    kit_begin_2025(&k, NULL, SERVER_2025);
    assert_int_equal(segue_task_attach(k.session, "T", &task, NULL), SEGUE_OK);
    record *r = kit_record(&k, &events);
    assert_int_equal(segue_task_get(task, &events, &r->request), SEGUE_OK);
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK_2025("T", "working"));
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(segue_task_get_state(task), SEGUE_TASK_WORKING);
    r = kit_record(&k, &events);
    assert_int_equal(segue_task_watch(task, NULL, &events, &r->request, NULL), SEGUE_OK);
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK_2025("T", "working"));
    assert_int_equal(segue_request_answer(r->request, "k", "{}", 2, NULL),
                     SEGUE_E_NOT_FOUND);
    kit_result(&k, look(&k), TASK_2025("T", "completed"));
    kit_result(&k, kit_expect(&k, "tasks/result"), BLOCKS);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(segue_task_get_state(task), SEGUE_TASK_COMPLETED);
    r = kit_record(&k, &events);
    assert_int_equal(segue_task_cancel(task, &events, &r->request), SEGUE_OK);
    kit_error(&k, kit_expect(&k, "tasks/cancel"), -32602, NULL);
    kit_result(&k, kit_expect(&k, "tasks/get"), TASK_2025("T", "completed"));
    assert_int_equal(r->status, SEGUE_OK);
    segue_task_free(task);
    kit_end(&k);
}

static void a_connection_that_comes_back_goes_on(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    record *r = begin(&k, SERVER_2025);
    kit_cut(&k);
    kit_handshake_2025(&k, SERVER_2025);
    kit_result(&k, look(&k), TASK_2025("T", "completed"));
    kit_expect(&k, "tasks/result");
    kit_cut(&k);
    kit_handshake_2025(&k, SERVER_2025);
    kit_result(&k, kit_expect(&k, "tasks/result"), BLOCKS);
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_handshake_says_what_the_client_takes),
        cmocka_unit_test(a_tool_is_looked_up_once_and_called_as_it_wants),
        cmocka_unit_test(a_call_that_asks_for_no_task_gets_none),
        cmocka_unit_test(every_page_is_looked_through),
        cmocka_unit_test(a_list_of_the_application_is_learnt_from),
        cmocka_unit_test(without_a_list_calls_are_plain),
        cmocka_unit_test(a_list_that_fails_is_asked_for_again),
        cmocka_unit_test(a_list_without_an_answer_is_asked_for_again),
        cmocka_unit_test(a_tool_that_stays_unknown_is_not_called),
        cmocka_unit_test(a_status_is_told_once),
        cmocka_unit_test(a_status_before_its_task_is_kept),
        cmocka_unit_test(only_so_much_is_kept_before_a_task),
        cmocka_unit_test(the_application_decides_by_its_own_task_member),
        cmocka_unit_test(a_wish_for_a_time_to_live_is_passed_on),
        cmocka_unit_test(a_call_that_is_refused_for_its_form_is_sent_in_the_other),
        cmocka_unit_test(the_session_that_comes_back_looks_again),
        cmocka_unit_test(a_call_that_waits_for_the_list_can_be_cancelled),
        NAMED("AS-2 a task of 2025-11-25 is polled, then its result is fetched",
              polled_until_the_end_then_fetched),
        NAMED("AS-41 a task of 2025-11-25 that failed: a result, or an error",
              failed_is_told_apart_by_the_result),
        cmocka_unit_test(cancelled_elsewhere),
        cmocka_unit_test(cancel_is_said_of_the_task),
        cmocka_unit_test(a_waiting_result_does_not_end_a_cancelled_task),
        cmocka_unit_test(a_result_during_a_cancel_ends_the_request),
        cmocka_unit_test(a_cancel_that_comes_too_late_brings_the_result),
        cmocka_unit_test(a_task_that_is_gone_is_lost_once),
        cmocka_unit_test(failures_back_off),
        cmocka_unit_test(a_server_without_the_methods_is_told_as_such),
        NAMED("AS-69 a notified end of a task of 2025-11-25 is final",
              notified_status_is_merged_with_what_is_polled),
        cmocka_unit_test(progress_goes_on_when_the_call_is_answered),
        NAMED("AS-75 a task of 2025-11-25 that was not asked for is cancelled",
              strays_are_refused_and_cancelled),
        cmocka_unit_test(a_result_with_a_task_member_of_its_own_is_a_result),
        cmocka_unit_test(older_versions_have_no_tasks),
        NAMED("AS-13 servers without modes, and without tasks", old_servers_are_fine),
        cmocka_unit_test(a_token_goes_on_in_another_process),
        cmocka_unit_test(a_token_of_another_version_says_so),
        cmocka_unit_test(handles_by_id),
        cmocka_unit_test(a_connection_that_comes_back_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
