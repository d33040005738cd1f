/* The entry of HTTP requests: which era a request belongs to, what happens to a body that
 * is no request, and the life of a modern exchange. A cut connection cancels its request,
 * and its conversation serves the next one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/http_wire.h"

#define CALL "\"name\":\"tool\""
#define TASKS "{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}"
#define VERSION_META(version)                                                            \
    "\"params\":{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"" version      \
    "\",\"io.modelcontextprotocol/clientCapabilities\":{}}}"

static http_rig t;

static int set_up(void **state)
{
    (void)state;
    http_rig_begin(&t, "bob");
    t.a.head.name = t.b.head.name = SGI_STR("tool");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    http_rig_end(&t);
    return 0;
}

static segue_call *start_call(void)
{
    assert_int_equal(http_wire_modern(&t.a, "5", "tools/call", CALL, "{}"), 0);
    segue_call *call = http_wire_call(t.server);
    assert_non_null(call);
    return call;
}

/* ---- eras ---- */

static void headers_and_body_decide_the_era(void **state)
{
    static const struct {
        const char *version, *method;
        bool in_session;
        const char *body; /* members behind id */
        int32_t status;
        const char *says; /* part of the answer or of the problem */
    } rows[] = {
        {"2026-07-28", "server/discover", false,
         "\"method\":\"server/discover\"," VERSION_META("2026-07-28"), 200,
         "supportedVersions"},
        {"2026-07-28", "server/discover", true,
         "\"method\":\"server/discover\"," VERSION_META("2026-07-28"), 200,
         "supportedVersions"},
        {"", "server/discover", false,
         "\"method\":\"server/discover\"," VERSION_META("2026-07-28"), 400, "-32020"},
        {"2026-07-28", "server/discover", false, "\"method\":\"server/discover\"", 400,
         "-32602"},
        {"v999", "server/discover", false,
         "\"method\":\"server/discover\"," VERSION_META("v999"), 400, "-32022"},
        {"2026-07-28", "server/discover", false,
         "\"method\":\"server/discover\"," VERSION_META("v999"), 400, "-32020"},
        {"2025-11-25", "server/discover", false,
         "\"method\":\"server/discover\"," VERSION_META("2025-11-25"), 400, "-32022"},
        {"2026-07-28", "ping", false, "\"method\":\"ping\"," VERSION_META("2026-07-28"),
         404, "-32601"},
        {"2026-07-28", "initialize", false,
         "\"method\":\"initialize\"," VERSION_META("2026-07-28"), 404, "-32601"},
        {"", "", false,
         "\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\"}", 200,
         "\"protocolVersion\":\"2025-06-18\""},
        {"2025-11-25", "", false,
         "\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\"}", 200,
         "\"protocolVersion\":\"2025-11-25\""},
        {"", "", true, "\"method\":\"ping\"", 200, "\"result\":{}"},
        {"2025-06-18", "", true, "\"method\":\"ping\"", 200, "\"result\":{}"},
        {"v999", "", true, "\"method\":\"ping\"", 400,
         "MCP-Protocol-Version names a version that this server does not know"},
        {"", "", false, "\"method\":\"ping\"", 200, "\"result\":{}"},
        {"2025-11-25", "", false, "\"method\":\"tools/list\"", 200, "\"tools\":"},
        {"2025-11-25", "", false, "\"method\":\"tasks/list\"", 400, "Mcp-Session-Id"},
        {"", "", false, "\"method\":\"logging/setLevel\"", 400, "Mcp-Session-Id"},
        {"2025-11-25", "", true, "\"method\":\"no/such\"", 200, "-32601"},
    };
    char body[400];
    (void)state;
    assert_true(http_wire_open(&t.a, "2025-11-25"));
    sgi_str session = t.a.head.session;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        t.a.head.version = sgi_str_of(rows[i].version);
        t.a.head.method = sgi_str_of(rows[i].method);
        t.a.head.session = rows[i].in_session ? session : (sgi_str){0};
        snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\":1,%s}", rows[i].body);
        int32_t status = http_wire_post(&t.a, body);
        const char *text =
            t.a.verdict.problem ? t.a.verdict.problem : http_wire_text(&t.a);
        if (status != rows[i].status || !strstr(text, rows[i].says))
            fail_msg("row %zu: %d %s", i, (int)status, text);
    }
    t.a.head.session = (sgi_str){0};
}

/* ---- bodies that are no request ---- */

static void bodies_that_are_no_request(void **state)
{
    static const struct {
        const char *body;
        int32_t outside, inside; /* of a session of the handshake eras */
        const char *says;
    } rows[] = {
        {"", 400, 400, "-32700"},
        {"{", 400, 400, "-32700"},
        {"{} {}", 400, 400, "-32700"},
        {"5", 400, 400, "a message is not an object"},
        {"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", 400, 400,
         "batches are not supported"},
        {"[]", 400, 400, "batches are not supported"},
        {"{}", 400, 400, "-32600"},
        {"{\"id\":1,\"method\":\"ping\"}", 400, 400, "\"id\":1,"},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", 400, 400, "-32600"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}", 400, 400, "method"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":5}", 400, 400, "-32600"},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/any\"}", 400, 202, NULL},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", 400, 202, NULL},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"\"}}", 400,
         202, NULL},
    };
    (void)state;
    for (int inside = 0; inside < 2; inside++) {
        t.a.head.version = t.a.head.session = (sgi_str){0};
        if (inside)
            assert_true(http_wire_open(&t.a, "2025-06-18"));
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            uint64_t warnings = t.host.engine.warnings;
            int32_t status = http_wire_post(&t.a, rows[i].body);
            assert_int_equal(status, inside ? rows[i].inside : rows[i].outside);
            assert_int_equal(t.host.engine.warnings > warnings,
                             rows[i].says != NULL ||
                                 (inside && i >= sizeof rows / sizeof *rows - 2));
            if (rows[i].says)
                assert_true(http_wire_says(&t.a, rows[i].says));
            else if (status == 202)
                assert_true(!t.a.verdict.problem && !t.a.verdict.conn);
        }
    }
    t.a.head.session = (sgi_str){0};
    t.a.head.version = SGI_STR("2026-07-28"); /* the header is accepted and has no
                                               * effect */
    assert_int_equal(http_wire_post(&t.a, rows[11].body), 202);
    assert_int_equal(http_wire_post(&t.a, rows[12].body), 400);
    assert_int_equal(http_wire_get(&t.a, ""), 405);
    assert_int_equal(http_wire_delete(&t.a), 405);
}

/* ---- modern exchanges ---- */

static void cut_is_cancel(void **state)
{
    (void)state;
    segue_call *call = start_call();
    http_wire_cut(&t.a);
    assert_true(call->cancelled);
    sgi_call_progress(call, 1, 0, NULL); /* this progress comes late */
    sgi_call_complete(call, NULL);
    sgi_call_free(call);
    assert_non_null(t.a.spare);
    assert_int_equal(t.a.spare->out.len, 0);
}

/* AS-59 and R-2557-38: a cut before the client knows of the task leaves no task. */
static void cut_before_the_task_is_known_leaves_none(void **state)
{
    (void)state;
    for (int answered = 0; answered < 2; answered++) {
        assert_int_equal(http_wire_modern(&t.a, "5", "tools/call", CALL, TASKS), 0);
        segue_call *call = http_wire_call(t.server);
        sgi_op *op = call->op;
        sgi_op_ref(op);
        if (answered)
            fake_store_settle(&t.host);
        assert_int_equal(http_wire_says(&t.a, "\"resultType\":\"task\""), answered);
        http_wire_cut(&t.a);
        fake_store_settle(&t.host);
        assert_int_equal(op->head.final == SGI_FINAL_CANCELLED, !answered);
        assert_int_equal(call->cancelled, !answered);
        fake_host_deliver(&t.host);
        sgi_call_free(call);
        sgi_op_unref(op);
    }
}

static void one_conversation_serves_again_and_again(void **state)
{
    (void)state;
    sgi_conn *conn = NULL;
    for (int i = 0; i < 9; i++) {
        int32_t status = i % 3 == 0 ? http_wire_modern(&t.a, "1", "tools/list", "", "{}")
                         : i % 3 == 1 ? http_wire_modern(&t.a, "2", "no/such", "", "{}")
                                      : http_wire_post(&t.a, "{bad");
        assert_int_equal(status, i % 3 == 0 ? 200 : i % 3 == 1 ? 404 : 400);
        assert_false(t.a.answer.is_events);
        assert_true(http_wire_says(&t.a, i % 3 == 0 ? "\"tools\"" : "\"error\""));
        assert_null(t.a.spare);
        assert_true(!conn || conn == t.a.conn);
        conn = t.a.conn;
        http_wire_cut(&t.a);
        assert_ptr_equal(t.a.spare, conn);
    }
    segue_call *call = start_call(); /* streams, is cut, and serves again */
    sgi_call_progress(call, 1, 0, NULL);
    http_wire_cut(&t.a);
    fake_host_deliver(&t.host);
    sgi_call_free(call);
    assert_int_equal(http_wire_modern(&t.a, "1", "tools/list", "", "{}"), 200);
    assert_ptr_equal(t.a.conn, conn);
    assert_false(t.a.answer.is_events);
    http_wire_cut(&t.a);
    sgi_principal *who = t.a.who; /* serves another caller behind the same proxy */
    t.a.who = t.b.who;
    assert_int_equal(http_wire_modern(&t.a, "1", "tools/list", "", "{}"), 200);
    t.a.who = who;
}

static void exchange_ends_once(void **state)
{
    (void)state;
    http_wire_modern(&t.a, "1", "tools/list", "", "{}");
    sgi_conn *conn = t.a.conn;
    sgi_conn_ref(conn);
    assert_null(sgi_serve_end_exchange(conn, &t.b)); /* not the owner that carries it */
    http_wire_cut(&t.a);
    assert_null(sgi_serve_end_exchange(conn, &t.a));
    assert_ptr_equal(t.a.spare, conn);
    sgi_serve_free_spare_conn(t.a.spare);
    t.a.spare = NULL;
    assert_null(sgi_serve_end_exchange(conn, &t.a)); /* this end comes too late */
    sgi_conn_unref(conn);
}

static void streams_are_bounded_per_principal(void **state)
{
    (void)state;
    t.a.head.max_streams = 1;
    t.a.head.name = (sgi_str){0};
    assert_int_equal(http_wire_modern(&t.a, "1", "subscriptions/listen",
                                      "\"notifications\":{\"toolsListChanged\":true}",
                                      "{}"),
                     0);
    assert_true(http_wire_says(&t.a, "acknowledged") && t.a.answer.is_events &&
                t.a.answer.resumable);
    http_wire second;
    http_wire_init(&second, t.server, "ada");
    second.head = t.a.head;
    assert_int_equal(http_wire_modern(&second, "1", "subscriptions/listen",
                                      "\"notifications\":{}", "{}"),
                     429);
    http_wire_cut(&t.a);
    assert_int_equal(http_wire_modern(&second, "1", "subscriptions/listen",
                                      "\"notifications\":{}", "{}"),
                     0);
    http_wire_free(&second);
}

/* The store answers when the subscription, its exchange and its peer are gone. */
static void subscription_is_cut_while_its_tasks_are_looked_up(void **state)
{
    (void)state;
    t.a.head.name = (sgi_str){0};
    for (int again = 0; again < 2; again++) {
        http_wire_modern(&t.a, "1", "subscriptions/listen",
                         "\"notifications\":{\"taskIds\":[\"AAAAAAAAAAAAAAAAAAAAAA\"]}",
                         TASKS);
        http_wire_cut(&t.a);
        if (again)
            assert_int_equal(http_wire_modern(&t.a, "1", "tools/list", "", "{}"), 200);
        http_wire_cut(&t.a);
        sgi_serve_free_spare_conn(t.a.spare);
        t.a.spare = NULL;
        fake_store_settle(&t.host);
    }
}

/* AS-63, R-0-5: foreign tasks are answered like unknown ones. */
static void tasks_of_others_do_not_exist(void **state)
{
    static const char *const methods[] = {"tasks/get", "tasks/update", "tasks/cancel",
                                          "tasks/stream"};
    char params[100], first[400];
    (void)state;
    http_wire_modern(&t.a, "5", "tools/call", CALL, TASKS);
    segue_call *call = http_wire_call(t.server);
    fake_store_settle(&t.host);
    http_wire_text(&t.a);
    for (size_t i = 0; i < 4; i++)
        for (int known = 0; known < 2; known++) {
            const char *id = known ? call->op->task_id : "AAAAAAAAAAAAAAAAAAAAAA";
            snprintf(params, sizeof params, "\"taskId\":\"%s\",\"inputResponses\":{}",
                     id);
            t.b.head.name = sgi_str_of(id);
            http_wire_modern(&t.b, "1", methods[i], params, TASKS);
            fake_store_settle(&t.host);
            if (!known)
                snprintf(first, sizeof first, "%s", http_wire_text(&t.b));
            assert_string_equal(http_wire_text(&t.b), first);
            assert_non_null(strstr(first, "-32602"));
            assert_int_equal(t.b.answer.status, 200);
        }
    assert_false(sgi_op_has_ended(call->op));
    sgi_call_free(call);
}

/* AS-64, R-2557-53: anonymous callers from elsewhere get no tasks. */
static void strangers_get_no_tasks(void **state)
{
    (void)state;
    t.a.head.stranger = true;
    assert_int_equal(http_wire_modern(&t.a, "5", "tools/call", CALL, TASKS), 0);
    segue_call *call = http_wire_call(t.server);
    assert_false(sgi_op_is_task(call->op));
    sgi_call_complete(call, NULL);
    assert_true(http_wire_says(&t.a, "\"resultType\":\"complete\""));
    sgi_call_free(call);
    TAILQ_FIRST(&sgi_items_of_type(t.server, SEGUE_ITEM_TOOL)->items)->options.task =
        SEGUE_TASK_MUST;
    assert_int_equal(http_wire_modern(&t.a, "5", "tools/call", CALL, TASKS), 200);
    assert_true(http_wire_says(&t.a, "-32603") &&
                http_wire_says(&t.a, "unauthenticated"));
    t.a.head.name = SGI_STR("T");
    assert_int_equal(http_wire_modern(&t.a, "5", "tasks/get", "\"taskId\":\"T\"", TASKS),
                     400);
    assert_true(http_wire_says(&t.a, "-32021"));
    t.a.head.stranger = false; /* the same conversation, another caller */
    assert_int_equal(http_wire_modern(&t.a, "5", "tasks/get", "\"taskId\":\"T\"", TASKS),
                     0);
    fake_store_settle(&t.host);
    assert_true(http_wire_says(&t.a, "-32602"));
}

/* The same in 2025-11-25: no tasks are announced, and params.task is an unknown
 * member. */
static void strangers_get_no_tasks_of_a_session(void **state)
{
    (void)state;
    t.a.head.stranger = true;
    assert_true(http_wire_open(&t.a, "2025-11-25"));
    assert_false(http_wire_says(&t.a, "\"tasks\""));
    http_wire_legacy(&t.a, "1", "tools/list", "");
    assert_false(http_wire_says(&t.a, "taskSupport"));
    assert_int_equal(http_wire_legacy(&t.a, "2", "tools/call", CALL ",\"task\":{}"), 0);
    segue_call *call = http_wire_call(t.server);
    assert_false(sgi_op_is_task(call->op));
    sgi_call_complete(call, NULL);
    assert_true(http_wire_says(&t.a, "\"result\":{\"content\""));
    sgi_call_free(call);
    http_wire_legacy(&t.a, "3", "tasks/get", "\"taskId\":\"T\"");
    assert_true(http_wire_says(&t.a, "-32601"));
}

/* The reason why a call cannot become a task determines the advice in the error. */
static void a_large_result_is_refused_with_what_helps(void **state)
{
    static const struct {
        const char *version;
        bool stranger;
        int32_t task;
        const char *advice;
    } rows[] = {
        {"2026-07-28", false, SEGUE_TASK_NEVER,
         "let the tool run as a task (its option task), or raise"},
        {"2026-07-28", true, SEGUE_TASK_MAY,
         "authenticate, because only authenticated callers get tasks, or raise"},
        {"2026-07-28", false, SEGUE_TASK_MAY,
         "declare tasks in the client, so that the call runs as a task, or raise"},
        {"2025-11-25", true, SEGUE_TASK_MAY,
         "ask for it in pieces (allowPartial), or raise"},
        {"2025-11-25", false, SEGUE_TASK_NEVER,
         "ask for it in pieces (allowPartial), or raise"},
        {"2025-11-25", false, SEGUE_TASK_MAY,
         "ask for it in pieces (allowPartial) or as a task, or raise"},
    };
    char large[4000];
    (void)state;
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = 0;
    t.server->committer.limits.max_result_bytes = 1000;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool modern = !strcmp(rows[i].version, "2026-07-28");
        t.a.head.stranger = rows[i].stranger;
        TAILQ_FIRST(&sgi_items_of_type(t.server, SEGUE_ITEM_TOOL)->items)->options.task =
            rows[i].task;
        t.a.head.session = (sgi_str){0};
        if (modern)
            http_wire_modern(&t.a, "5", "tools/call", CALL, "{}");
        else if (http_wire_open(&t.a, rows[i].version))
            http_wire_legacy(&t.a, "5", "tools/call", CALL);
        segue_call *call = http_wire_call(t.server);
        assert_int_equal(sgi_call_send_text(call, sgi_str_of(large)), SEGUE_E_LIMIT);
        if (!http_wire_says(&t.a, rows[i].advice))
            fail_msg("row %zu: %s", i, http_wire_text(&t.a));
        sgi_call_free(call);
        http_wire_cut(&t.a);
    }
    t.a.head.session = (sgi_str){0};
}

static void closed_server_serves_nobody(void **state)
{
    (void)state;
    segue_call *call = start_call(); /* the call of a draining server */
    sgi_server_close(t.server);
    assert_false(call->cancelled);
    sgi_call_complete(call, NULL);
    assert_true(http_wire_says(&t.a, "\"result\""));
    sgi_call_free(call);
    assert_int_equal(http_wire_modern(&t.a, "1", "tools/list", "", "{}"), 503);
    assert_int_equal(http_wire_get(&t.a, ""), 503);
}

/* ---- no memory ---- */

static bool play(void)
{
    bool whole = http_wire_modern(&t.a, "1", "tools/list", "", "{}") == 200;
    http_wire_text(&t.a);
    http_wire_modern(&t.a, "5", "tools/call", CALL, "{}");
    segue_call *call = http_wire_call(t.server);
    if (call) {
        sgi_call_progress(call, 1, 0, NULL);
        http_wire_text(&t.a);
        sgi_call_send_text(call, SGI_STR("text"));
        sgi_call_complete(call, NULL);
        whole = http_wire_says(&t.a, "\"text\":\"text\"") && whole;
        sgi_call_free(call);
    }
    http_wire_modern(&t.a, "6", "no/such", "", "{}");
    whole = http_wire_says(&t.a, "-32601") && call && whole;
    http_wire_cut(&t.a);
    fake_host_deliver(&t.host);
    return whole;
}

static void every_allocation_may_fail(void **state)
{
    bool failed = true;
    (void)state;
    for (int from = 0; from < 2; from++, failed = true)
        for (size_t n = 1; failed; n++) {
            test_mem_rearm(&t.mem);
            if (from)
                t.mem.fail_from = n;
            else
                t.mem.fail_at = n;
            bool whole = play();
            failed = t.mem.failed > 0;
            test_mem_rearm(&t.mem);
            fake_host_advance(&t.host, 1000);
            fake_host_deliver(&t.host);
            assert_true(failed || whole);
            assert_true(LIST_EMPTY(&t.server->calls.running));
            sgi_serve_free_spare_conn(t.a.spare); /* the next exchange makes its own
                                              * conversation */
            t.a.spare = NULL;
        }
    assert_true(play());
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(headers_and_body_decide_the_era),
        CASE(bodies_that_are_no_request),
        CASE(cut_is_cancel),
        CASE(cut_before_the_task_is_known_leaves_none),
        CASE(one_conversation_serves_again_and_again),
        CASE(exchange_ends_once),
        CASE(streams_are_bounded_per_principal),
        CASE(subscription_is_cut_while_its_tasks_are_looked_up),
        CASE(tasks_of_others_do_not_exist),
        CASE(strangers_get_no_tasks),
        CASE(strangers_get_no_tasks_of_a_session),
        CASE(a_large_result_is_refused_with_what_helps),
        CASE(closed_server_serves_nobody),
        CASE(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
