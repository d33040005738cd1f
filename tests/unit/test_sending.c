/* Messages in their frames: lines, one JSON text, events. The HTTP status of an error
 * (R-0-4). The first message of an exchange decides the form of its answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/conversation/replay.h"
#include "support/http_wire.h"

/* Line ends where JSON allows them; none of them may reach a frame. */
#define RAGGED "{\r\n\"a\" :\n[1,\r2\n]\n}"
#define SMOOTH "{  \"a\" : [1, 2 ] }"

static http_rig t;

static int set_up(void **state)
{
    (void)state;
    http_rig_begin(&t, NULL);
    t.b.head.name = SGI_STR("tool");
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
    assert_int_equal(http_wire_modern(&t.b, "5", "tools/call", "\"name\":\"tool\"", "{}"),
                     0);
    segue_call *call = http_wire_call(t.server);
    assert_non_null(call);
    return call;
}

static segue_call *start_legacy_call(void)
{
    assert_true(http_wire_open(&t.b, "2025-11-25"));
    assert_int_equal(http_wire_legacy(&t.b, "5", "tools/call", "\"name\":\"tool\""), 0);
    return http_wire_call(t.server);
}

static void assert_text(const char *part)
{
    const char *text = http_wire_text(&t.b);
    if (!strstr(text, part))
        fail_msg("%s is not in %s", part, text);
}

static int32_t status(void)
{
    http_wire_text(&t.b);
    return t.b.answer.answered ? t.b.answer.status : 0;
}

/* ---- frames ---- */

static void line_ends_of_json_stay_out_of_frames(void **state)
{
    static const char ragged[] = RAGGED;
    (void)state;
    for (int events = 0; events < 2; events++) {
        segue_call *call = start_call();
        if (events)
            sgi_serve_open_stream(t.b.conn);
        assert_int_equal(
            sgi_call_set_field(call, "structuredContent", ragged, sizeof ragged - 1),
            SEGUE_OK);
        assert_int_equal(sgi_call_complete(call, NULL), SEGUE_OK);
        assert_text("\"structuredContent\":" SMOOTH);
        assert_int_equal(t.b.answer.is_events, events);
        assert_null(strchr(t.b.text.p, '\r'));
        const char *end = strchr(t.b.text.p, '\n');
        if (events)
            assert_string_equal(end, "\n\n");
        else
            assert_null(end);
        sgi_call_free(call);
    }
}

static void line_ends_stay_out_of_lines(void **state)
{
    static const char call_tool[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
        "\"name\":\"tool\",\"_meta\":{"
        "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
        "\"io.modelcontextprotocol/clientCapabilities\":{}}}}\n";
    sgi_conn *conn;
    sgi_buf out;
    (void)state;
    assert_int_equal(sgi_server_accept(t.server, NULL, &conn), SEGUE_OK);
    sgi_conn_start(conn);
    sgi_conn_add_input(conn, call_tool, sizeof call_tool - 1);
    segue_call *call = http_wire_call(t.server);
    sgi_call_set_field(call, "structuredContent", RAGGED, sizeof RAGGED - 1);
    sgi_call_complete(call, NULL);
    sgi_call_free(call);
    sgi_buf_init(&out, &t.mem.mem);
    sgi_conn_take_output(conn, &out);
    assert_true(sgi_buf_terminate(&out));
    assert_non_null(strstr(out.p, SMOOTH));
    assert_ptr_equal(strchr(out.p, '\n'), out.p + out.len - 1);
    assert_null(strchr(out.p, '\r'));
    sgi_buf_free(&out);
    sgi_conn_detach(conn);
}

/* Events of a task are written elsewhere (dialect E), by the same rule. */
static void line_ends_stay_out_of_task_events(void **state)
{
    static const char caps[] = "{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}";
    char params[64];
    (void)state;
    sgi_op *op = fake_task_new(t.server);
    sgi_op_append(op, SGI_ENTRY_SEGMENT, SGI_STR(RAGGED));
    sgi_op_append(op, SGI_ENTRY_FIELDS, SGI_STR(RAGGED));
    fake_store_settle(&t.host);
    snprintf(params, sizeof params, "\"taskId\":\"%s\"", op->task_id);
    t.b.head.name = sgi_str_of(op->task_id);
    assert_int_equal(http_wire_modern(&t.b, "1", "tasks/stream", params, caps), 0);
    http_wire_text(&t.b);
    fake_store_settle(&t.host); /* the log is read back */
    http_wire_text(&t.b);
    assert_text("\"payload\":{\"content\":[" SMOOTH "],\"segment\":1}");
    assert_text("\"payload\":" SMOOTH ",");
    assert_true(t.b.answer.is_events);
    int ends = 0;
    for (const char *at = t.b.text.p; (at = strchr(at, '\n')); at += 2) {
        assert_int_equal(at[1], '\n'); /* a newline comes only after events */
        ends++;
    }
    assert_int_equal(ends, 2);
    assert_int_equal(strncmp(t.b.text.p, "data: {", 7), 0);
    assert_null(strchr(t.b.text.p, '\r'));
    sgi_op_unref(op);
}

/* ---- the form of the answer ---- */

static void first_message_decides(void **state)
{
    (void)state;
    segue_call *call = start_call();
    http_wire_text(&t.b);
    assert_true(t.b.answer.open);
    assert_int_equal(sgi_call_complete(call, NULL), SEGUE_OK);
    assert_int_equal(status(), 200);
    assert_false(t.b.answer.is_events);
    assert_int_equal(t.b.text.p[0], '{');
    sgi_call_free(call);

    call = start_call();
    assert_int_equal(sgi_call_progress(call, 1, 0, NULL), SEGUE_OK);
    http_wire_text(&t.b);
    assert_true(t.b.answer.is_events);
    assert_false(t.b.answer.answered);
    assert_int_equal(sgi_call_complete(call, NULL), SEGUE_OK);
    assert_text("\ndata: {\"jsonrpc\":\"2.0\",\"id\":5,");
    assert_int_equal(status(), 200);
    assert_true(t.b.answer.is_events);
    sgi_call_free(call);
}

static void stream_can_be_opened_before_anything_is_said(void **state)
{
    (void)state;
    segue_call *call = start_call();
    int32_t before = t.host.outputs;
    sgi_serve_open_stream(t.b.conn);
    assert_int_equal(t.host.outputs, before + 1); /* the transport was told to write a
                                                   * head */
    sgi_serve_open_stream(t.b.conn);
    assert_string_equal(http_wire_text(&t.b), "");
    assert_true(t.b.answer.is_events);
    assert_int_equal(sgi_call_complete(call, NULL), SEGUE_OK);
    assert_text("data: {");
    sgi_call_free(call);
}

static void client_without_event_streams_gets_one_text(void **state)
{
    (void)state;
    t.b.head.takes_events = false;
    segue_call *call = start_call();
    sgi_serve_open_stream(t.b.conn);
    http_wire_text(&t.b);
    assert_true(t.b.answer.open);
    /* dropping progress is no failure */
    assert_int_equal(sgi_call_progress(call, 1, 0, NULL), SEGUE_OK);
    assert_int_equal(sgi_call_complete(call, NULL), SEGUE_OK);
    assert_text("{\"jsonrpc\":\"2.0\",\"id\":5,");
    assert_false(t.b.answer.is_events);
    assert_null(strstr(t.b.text.p, "progress"));
    sgi_call_free(call);
    t.b.head.name = (sgi_str){0};
    assert_int_equal(
        http_wire_modern(&t.b, "6", "subscriptions/listen", "\"notifications\":{}", "{}"),
        406);
}

static void nothing_follows_an_answer(void **state)
{
    (void)state;
    segue_call *call = start_call();
    sgi_call_complete(call, NULL);
    sgi_send_error(t.b.conn, SGI_STR("5"), SGI_RPC_METHOD_NOT_FOUND, SGI_STR("late"),
                   (sgi_json){0});
    assert_int_equal(status(), 200);
    assert_null(strstr(http_wire_text(&t.b), "late"));
    sgi_call_free(call);
}

/* ---- statuses ---- */

static void errors_have_the_status_of_their_code(void **state)
{
    static const struct {
        int32_t code, modern, legacy, legacy_of_tool;
    } rows[] = {
        {SGI_RPC_PARSE_ERROR, 400, 400, 200},
        {SGI_RPC_INVALID_REQUEST, 400, 400, 200},
        {SGI_RPC_METHOD_NOT_FOUND, 404, 200, 200},
        {SGI_RPC_INVALID_PARAMS, 200, 200, 200},
        {SGI_RPC_INTERNAL_ERROR, 200, 200, 200},
        {SGI_RPC_HEADER_MISMATCH, 400, 400, 200},
        {SGI_RPC_MISSING_CAPABILITY, 400, 200, 200},
        {SGI_RPC_UNSUPPORTED_VERSION, 400, 200, 200},
        {-1, 200, 200, 200},
    };
    (void)state;
    for (size_t i = 0; i < 4 * (sizeof rows / sizeof *rows); i++) {
        bool legacy = i & 1, of_tool = i & 2;
        int32_t code = rows[i / 4].code;
        segue_call *call = legacy ? start_legacy_call() : start_call();
        if (of_tool)
            assert_int_equal(sgi_call_fail(call, code, "no", NULL, 0), SEGUE_OK);
        else
            sgi_send_error(t.b.conn, SGI_STR("5"), code, SGI_STR("no"), (sgi_json){0});
        assert_int_equal(status(), !legacy   ? rows[i / 4].modern
                                   : of_tool ? rows[i / 4].legacy_of_tool
                                             : rows[i / 4].legacy);
        http_wire_cut(&t.b);
        fake_host_deliver(&t.host);
        sgi_call_free(call);
    }
}

static void event_streams_have_no_status_but_200(void **state)
{
    (void)state;
    segue_call *call = start_call();
    sgi_serve_open_stream(t.b.conn);
    sgi_call_fail(call, SGI_RPC_METHOD_NOT_FOUND, "no", NULL, 0);
    assert_int_equal(status(), 200);
    sgi_call_free(call);
}

/* ---- events that are kept ---- */

static void large_answers_are_stood_in_for(void **state)
{
    (void)state;
    char *text = malloc(SGI_REPLAY_MAX + 1);
    assert_non_null(text);
    memset(text, 't', SGI_REPLAY_MAX);
    segue_call *call = start_legacy_call();
    sgi_serve_open_stream(t.b.conn);
    assert_int_equal(sgi_call_send_text(call, (sgi_str){text, SGI_REPLAY_MAX}), SEGUE_OK);
    sgi_call_complete(call, NULL);
    sgi_call_free(call);
    /* a connected client still gets it */
    assert_true(strlen(http_wire_text(&t.b)) > SGI_REPLAY_MAX);
    assert_true(t.b.answer.answered);
    http_wire_cut(&t.b);
    fake_host_deliver(&t.host);
    printf("live %zu\n", (size_t)t.mem.live);
    sgi_buf_reset(&t.host.engine.scratch, 0);     /* frees the buffer in which the text
                                                   * was escaped */
    assert_true(t.mem.live < SGI_REPLAY_MAX / 2); /* the event is not kept */
    assert_int_equal(http_wire_get(&t.b, "2-0"), 200);
    assert_text("id: 2-1\ndata: {\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{\"code\":-32603,"
                "\"message\":\"The answer is too large to be sent again: "
                "max_replay_bytes is 1048576\",\"data\":{\"reason\":\"answer_gone\","
                "\"limit\":\"max_replay_bytes\",\"value\":1048576}}}\n\n");
    free(text);
}

/* ---- no memory ---- */

static void message_without_memory_closes_the_exchange(void **state)
{
    (void)state;
    for (int legacy = 0; legacy < 2; legacy++) {
        segue_call *call = legacy ? start_legacy_call() : start_call();
        int32_t closes = t.host.closes;
        test_mem_rearm(&t.mem);
        t.mem.fail_from = 1;
        sgi_send_error(t.b.conn, SGI_STR("5"), SGI_RPC_INTERNAL_ERROR,
                       SGI_STR("an error with a text"), (sgi_json){0});
        test_mem_rearm(&t.mem);
        assert_true(t.b.conn->closing);
        assert_int_equal(t.host.closes, closes + 1);
        http_wire_text(&t.b);
        assert_false(t.b.answer.answered); /* no empty answer with status 200 */
        http_wire_cut(&t.b);
        fake_host_deliver(&t.host);
        assert_true(call->cancelled);
        sgi_call_free(call);
    }
}

static void stream_goes_on_without_its_priming(void **state)
{
    (void)state;
    segue_call *call = start_legacy_call();
    sgi_buf_reset(&t.b.conn->out, 0);
    test_mem_rearm(&t.mem);
    t.mem.fail_from = 1;
    sgi_serve_open_stream(t.b.conn);
    test_mem_rearm(&t.mem);
    sgi_call_complete(call, NULL);
    assert_int_equal(strncmp(http_wire_text(&t.b), "id: 2-1\ndata: {", 15), 0);
    assert_true(t.b.answer.is_events && t.b.answer.answered);
    sgi_call_free(call);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(line_ends_of_json_stay_out_of_frames),
        CASE(line_ends_stay_out_of_lines),
        CASE(line_ends_stay_out_of_task_events),
        CASE(first_message_decides),
        CASE(stream_can_be_opened_before_anything_is_said),
        CASE(client_without_event_streams_gets_one_text),
        CASE(nothing_follows_an_answer),
        CASE(errors_have_the_status_of_their_code),
        CASE(event_streams_have_no_status_but_200),
        CASE(large_answers_are_stood_in_for),
        CASE(message_without_memory_closes_the_exchange),
        CASE(stream_goes_on_without_its_priming),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
