/* SEP-1905 over exchanges of a session (2025-11-25 basic/transports): a stream of
 * segments that is cut and taken up, what is kept meanwhile, and clients that take no
 * event stream. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/server/gather.h"
#include "engine/log/reader.h"
#include "engine/conversation/replay.h"
#include "engine/server/wire_session.h"
#include "support/http_wire.h"

#define IDLE_MS 60000
#define CALL "\"name\":\"pieces\",\"task\":{\"responseModes\":[\"streaming\"]}"

static http_rig t;

static void on_call(void *user, segue_call *call)
{
    (void)user;
    (void)call; /* the test sends its segments */
}

static int set_up(void **state)
{
    segue_item_options tool = {.struct_size = sizeof tool,
                               .on_call = on_call,
                               .flags = SEGUE_TOOL_INCREMENTAL,
                               .task = SEGUE_TASK_MAY,
                               .ttl_ms = 3600 * 1000,
                               .poll_ms = 1000};
    (void)state;
    http_rig_begin(&t, "ada");
    t.server->dialects |= SGI_DIALECT_UNDECLARED_MODES;
    assert_int_equal(sgi_item_add(t.server, SEGUE_ITEM_TOOL,
                                  SGI_STR("{\"name\":\"pieces\"}"), &tool, NULL),
                     SEGUE_OK);
    tool.task = SEGUE_TASK_NEVER;
    assert_int_equal(sgi_item_add(t.server, SEGUE_ITEM_TOOL,
                                  SGI_STR("{\"name\":\"plain\"}"), &tool, NULL),
                     SEGUE_OK);
    http_rig_open(&t);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    http_rig_end(&t);
    return 0;
}

static segue_call *start(void)
{
    assert_int_equal(http_wire_legacy(&t.a, "7", "tools/call", CALL), 0);
    segue_call *call = http_wire_call(t.server);
    assert_non_null(call);
    return call;
}

static void send(segue_call *call, int number)
{
    char text[32];
    snprintf(text, sizeof text, "piece %d", number);
    assert_int_equal(sgi_call_send_text(call, sgi_str_of(text)), SEGUE_OK);
    fake_store_settle(&t.host);
}

/* Lets the time pass in which a response gathers segments. */
static void gathered(void)
{
    fake_host_advance(&t.host, SGI_GATHER_MS);
}

static void finish(segue_call *call)
{
    http_wire_finish(call);
    fake_store_settle(&t.host);
    fake_host_deliver(&t.host);
}

/* Checks that the text has the numbers from..to, each once and in order. */
static void assert_numbers(const char *text, int from, int to)
{
    const char *at = text;
    for (int number = from; number <= to; number++) {
        at = strstr(at, "\"seqNr\":");
        assert_non_null(at);
        at += strlen("\"seqNr\":");
        assert_int_equal(atoi(at), number);
    }
    assert_null(strstr(at, "\"seqNr\":"));
}

static void goes_on_behind_each_event(void **state)
{
    char last[16];
    (void)state;
    segue_call *call = start();
    for (int i = 1; i <= 3; i++) {
        send(call, i);
        gathered();
        http_wire_text(&t.a); /* each segment has a response of its own */
    }
    const char *text = http_wire_text(&t.a);
    assert_int_equal(strncmp(text, "id: 2-0\n", 8), 0);
    assert_numbers(text, 1, 3);
    assert_int_equal(http_wire_count(text, "id: 2-"), 4);
    http_wire_cut(&t.a);
    for (int i = 4; i <= 300; i++)
        send(call, i);
    sgi_peer *peer = TAILQ_FIRST(
        &sgi_wire_session_find(t.server, t.a.who, t.a.head.session)->exchanges);
    assert_int_equal(peer->conn->out.len, 0); /* without a connection nothing is read */
    assert_int_equal(peer->conn->replay->next, 4);
    finish(call);
    assert_int_equal(peer->conn->replay->next, 4);
    for (int after = 1; after <= 3; after++) {
        snprintf(last, sizeof last, "2-%d", after);
        http_wire_get(&t.a, last);
        http_wire_text(&t.a);
        fake_store_settle(&t.host); /* the other segments are read from the store */
        text = http_wire_text(&t.a);
        assert_numbers(text, after + 1, 300);
        assert_int_equal(http_wire_count(text, "\"isComplete\":true"), 1);
        http_wire_text(&t.a);
        assert_true(t.a.answer.is_events && t.a.answer.answered);
        http_wire_cut(&t.a);
    }
}

static void send_much(segue_call *call)
{
    char text[8 * 1024];
    memset(text, 'x', sizeof text);
    assert_int_equal(sgi_call_send_text(call, (sgi_str){text, sizeof text}), SEGUE_OK);
    fake_store_settle(&t.host);
}

/* Segments that nobody reads are only in the store, and are read back from there. */
static void costs_no_memory_while_nobody_is_there(void **state)
{
    (void)state;
    segue_call *call = start();
    sgi_op *op = call->op;
    for (int i = 1; i <= 20; i++) {
        send_much(call);
        gathered();
        http_wire_text(&t.a);
    }
    assert_true(op->tail_bytes > 100 * 1024); /* the reader of this operation follows */
    for (int i = 21; i <= 80; i += 20) {
        http_wire_cut(&t.a);
        assert_int_equal(op->tail_bytes, 0);
        for (int n = i; n < i + 20; n++) {
            send_much(call);
            assert_int_equal(op->tail_bytes, 0);
        }
        http_wire_get(&t.a, "2-20");
        http_wire_text(&t.a); /* reading the text asks the store */
        if (i > 21)
            http_wire_cut(&t.a); /* the connection is gone when the store answers */
        fake_store_settle(&t.host);
        assert_true(TAILQ_EMPTY(&TAILQ_FIRST(&op->readers)->chunk) == (i > 21));
    }
    http_wire_get(&t.a, "2-20");
    finish(call);
    for (int turn = 0; turn < 40 && !t.a.answer.answered; turn++) {
        http_wire_text(&t.a);
        fake_store_settle(&t.host);
    }
    assert_numbers(http_wire_text(&t.a), 21, 80);
    assert_int_equal(http_wire_count(http_wire_text(&t.a), "\"isComplete\":true"), 1);
}

static void does_not_keep_its_session(void **state)
{
    (void)state;
    segue_call *call = start();
    send(call, 1);
    http_wire_text(&t.a);
    http_wire_cut(&t.a);
    send(call, 2);
    finish(call);
    assert_int_equal(t.server->sessions.by_id.count, 1);
    fake_host_advance(&t.host, IDLE_MS);
    assert_int_equal(t.server->sessions.by_id.count, 0);
}

static void ends_when_nobody_can_come_back(void **state)
{
    (void)state;
    segue_call *call = start();
    sgi_op *op = call->op;
    http_wire_cut(&t.a); /* before there was an event to name */
    send(call, 1);
    assert_true(TAILQ_EMPTY(&op->readers));
    assert_false(call->cancelled);
    finish(call);
}

static void first_response_only(void **state)
{
    char more[128];
    (void)state;
    t.a.head.takes_events = false;
    segue_call *call = start();
    send(call, 1);
    const char *text = http_wire_text(&t.a);
    http_wire_text(&t.a);
    assert_true(!t.a.answer.is_events && t.a.answer.answered);
    assert_numbers(text, 1, 1);
    assert_int_equal(http_wire_count(text, "\"isComplete\":false"), 1);
    assert_true(TAILQ_EMPTY(&call->op->readers));
    send(call, 2);
    snprintf(more, sizeof more, "\"taskId\":\"%s\",\"lastSeqNr\":1", call->op->task_id);
    finish(call);
    http_wire_legacy(&t.a, "8", "tasks/result", more);
    fake_store_settle(&t.host);
    text = http_wire_text(&t.a);
    assert_numbers(text, 2, 2);
    assert_int_equal(http_wire_count(text, "\"isComplete\":true"), 1);
}

static int responses(const char *text)
{
    return http_wire_count(text, "\"partial-content\":");
}

/* The first segment, and a segment that comes alone, are sent without waiting. */
static void in_quick_succession_they_go_out_together(void **state)
{
    (void)state;
    segue_call *call = start();
    send(call, 1);
    assert_int_equal(responses(http_wire_text(&t.a)), 1);
    for (int i = 2; i <= 40; i++) {
        send(call, i);
        assert_int_equal(responses(http_wire_text(&t.a)), 1);
    }
    gathered();
    assert_int_equal(responses(http_wire_text(&t.a)), 2);
    gathered();
    send(call, 41);
    assert_int_equal(responses(http_wire_text(&t.a)), 3);
    send(call, 42);
    finish(call); /* the end waits for nothing */
    const char *text = http_wire_text(&t.a);
    assert_int_equal(responses(text), 4);
    assert_numbers(text, 1, 42);
}

/* Segments that fill a response are sent at once. */
static void a_full_response_goes_out_at_once(void **state)
{
    (void)state;
    segue_call *call = start();
    send(call, 1);
    http_wire_text(&t.a);
    for (int i = 2; i <= SGI_GATHER_SEGMENTS; i++)
        send(call, i);
    assert_int_equal(responses(http_wire_text(&t.a)), 1);
    send(call, SGI_GATHER_SEGMENTS + 1);
    assert_int_equal(responses(http_wire_text(&t.a)), 2);
    for (size_t bytes = 0; bytes < SGI_GATHER_BYTES; bytes += (size_t)8 * 1024)
        send_much(call);
    assert_int_equal(responses(http_wire_text(&t.a)), 3);
    assert_numbers(http_wire_text(&t.a), 1,
                   SGI_GATHER_SEGMENTS + 1 + (int)(SGI_GATHER_BYTES / (8 * 1024)));
    finish(call);
}

/* Returns all output that comes without the clock moving. */
static const char *text_at_once(void)
{
    size_t before;
    do {
        before = strlen(http_wire_text(&t.a));
        fake_store_settle(&t.host); /* older segments are read back */
    } while (strlen(http_wire_text(&t.a)) > before);
    return http_wire_text(&t.a);
}

#define BEHIND (10 * SGI_GATHER_SEGMENTS)

/* A reader that is behind waits only when there is less than a full response. */
static void who_is_behind_waits_once(void **state)
{
    (void)state;
    segue_call *call = start();
    send(call, 1);
    http_wire_text(&t.a);
    http_wire_cut(&t.a);
    for (int i = 2; i <= BEHIND; i++)
        send(call, i);
    http_wire_get(&t.a, "2-1");
    const char *text = text_at_once();
    int count = http_wire_count(text, "\"seqNr\":");
    assert_in_range(count, BEHIND - SGI_GATHER_SEGMENTS, BEHIND - 2);
    assert_numbers(text, 2, count + 1);
    gathered();
    assert_numbers(text_at_once(), 2, BEHIND);
    finish(call);
}

static void who_is_many_bytes_behind_waits_once(void **state)
{
    int all = 6 * (int)(SGI_GATHER_BYTES / (8 * 1024));
    (void)state;
    segue_call *call = start();
    send(call, 1);
    http_wire_text(&t.a);
    http_wire_cut(&t.a);
    for (int i = 2; i <= all; i++)
        send_much(call);
    http_wire_get(&t.a, "2-1");
    int count = http_wire_count(text_at_once(), "\"seqNr\":");
    assert_in_range(count, all - (int)(SGI_GATHER_BYTES / (8 * 1024)), all - 2);
    gathered();
    assert_numbers(text_at_once(), 2, all);
    finish(call);
}

/* Dialect P: pieces that were sent leave the log, and do not count for the next
 * response. */
static void what_was_passed_does_not_count(void **state)
{
    (void)state;
    assert_int_equal(
        http_wire_post(&t.a, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\","
                             "\"params\":{\"name\":\"plain\",\"_meta\":{"
                             "\"allowPartial\":true}}}"),
        0);
    segue_call *call = http_wire_call(t.server);
    assert_non_null(call);
    send_much(call);
    fake_host_deliver(&t.host);
    assert_int_equal(http_wire_count(http_wire_text(&t.a), "\"hasMore\":"), 1);
    size_t bytes = 0;
    for (; bytes + (size_t)8 * 1024 < SGI_GATHER_BYTES; bytes += (size_t)8 * 1024)
        send_much(call);
    assert_int_equal(http_wire_count(http_wire_text(&t.a), "\"hasMore\":"), 1);
    send_much(call);
    assert_int_equal(http_wire_count(http_wire_text(&t.a), "\"hasMore\":"), 2);
    finish(call);
}

/* Makes a task, cuts its stream behind the first segment, and writes the task's id. */
static void make_task_and_cut(int number, const char *params, char task[64])
{
    char id[16];
    snprintf(id, sizeof id, "%d", number);
    assert_int_equal(http_wire_legacy(&t.a, id, "tools/call", params), 0);
    segue_call *call = http_wire_call(t.server);
    assert_non_null(call);
    send(call, 1);
    gathered();
    const char *text = strstr(http_wire_text(&t.a), "\"taskId\":\"");
    assert_non_null(text);
    assert_int_equal(sscanf(text, "\"taskId\":\"%63[^\"]", task), 1);
    http_wire_cut(&t.a);
    finish(call);
}

static int32_t ask_for(const char *method, int number, const char *task)
{
    char id[16], params[100];
    snprintf(id, sizeof id, "%d", number);
    snprintf(params, sizeof params, "\"taskId\":\"%s\"", task);
    int32_t status = http_wire_legacy(&t.a, id, method, params);
    fake_store_settle(&t.host);
    http_wire_text(&t.a);
    http_wire_cut(&t.a);
    return status;
}

/* A client whose connections are cut asks for its tasks by their ids. The streams that it
 * left are bounded, and do not count as requests in flight for ever. A stream is kept
 * while its client has not asked for the task, because the client may not know the
 * task. */
static void streams_that_were_replaced_are_bounded(void **state)
{
    char task[64];
    (void)state;
    const sgi_wire_session *session =
        sgi_wire_session_find(t.server, t.a.who, t.a.head.session);
    make_task_and_cut(7, CALL, task);
    for (int i = 0; i < 60; i++) {
        make_task_and_cut(100 + i, CALL, task);
        ask_for(i % 2 ? "tasks/get" : "tasks/result", 200 + i, task);
        assert_in_range(session->in_flight.by_id.count, 1, 20);
    }
    assert_int_equal(http_wire_get(&t.a, "2-0"), 0);
    assert_numbers(http_wire_text(&t.a), 1, 1);
}

#define BRIEF_MS 1000
#define BRIEF_CALL                                                                       \
    "\"name\":\"pieces\",\"task\":{\"ttl\":1000,\"responseModes\":[\"streaming\"]}"

/* A client that went on at another server does not come back to the streams that it left
 * here, and its session stays in use. The streams of tasks whose time to live is over are
 * bounded, and so is the memory. */
static void streams_of_tasks_that_are_over_are_bounded(void **state)
{
    char task[64];
    size_t blocks = 0;
    (void)state;
    const sgi_wire_session *session =
        sgi_wire_session_find(t.server, t.a.who, t.a.head.session);
    for (int i = 0; i < 200; i++) {
        make_task_and_cut(1000 + i, BRIEF_CALL, task);
        fake_host_advance(&t.host, BRIEF_MS);
        fake_store_settle(&t.host);
        assert_in_range(session->in_flight.by_id.count, 1, 20);
        if (i == 50)
            blocks = t.mem.blocks;
    }
    assert_int_equal(t.mem.blocks, blocks);
}

#define LEFT 70

/* While tasks live, the streams that clients left are bounded in number, so that they do
 * not use up the requests in flight. The newest are kept. */
static void streams_that_clients_left_are_bounded(void **state)
{
    char task[64], last[16];
    (void)state;
    const sgi_wire_session *session =
        sgi_wire_session_find(t.server, t.a.who, t.a.head.session);
    for (int i = 0; i < 2 * LEFT; i++) {
        make_task_and_cut(1000 + i, CALL, task);
        assert_in_range(session->in_flight.by_id.count, 1, LEFT);
    }
    for (int i = 0; i < 50; i++) {
        snprintf(last, sizeof last, "%d-0", 2 * LEFT + 1 - i);
        assert_int_equal(http_wire_get(&t.a, last), 0);
        assert_numbers(http_wire_text(&t.a), 1, 1);
        assert_true(http_wire_says(&t.a, "\"isComplete\":true"));
        http_wire_cut(&t.a);
    }
}

/* The same for dialect P. */
static void pieces_that_clients_left_are_bounded(void **state)
{
    (void)state;
    const sgi_wire_session *session =
        sgi_wire_session_find(t.server, t.a.who, t.a.head.session);
    for (int i = 0; i < 2 * LEFT; i++) {
        char body[256];
        snprintf(body, sizeof body,
                 "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\",\"params\":{"
                 "\"name\":\"plain\",\"_meta\":{\"allowPartial\":true}}}",
                 1000 + i);
        assert_int_equal(http_wire_post(&t.a, body), 0);
        segue_call *call = http_wire_call(t.server);
        assert_non_null(call);
        send_much(call);
        assert_int_equal(http_wire_count(http_wire_text(&t.a), "\"hasMore\":"), 1);
        http_wire_cut(&t.a);
        finish(call);
        assert_in_range(session->in_flight.by_id.count, 1, LEFT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"AS-5 a stream that is cut goes on behind each event", goes_on_behind_each_event,
         set_up, tear_down, NULL},
        cmocka_unit_test_setup_teardown(costs_no_memory_while_nobody_is_there, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(does_not_keep_its_session, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ends_when_nobody_can_come_back, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(first_response_only, set_up, tear_down),
        cmocka_unit_test_setup_teardown(streams_that_were_replaced_are_bounded, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(streams_of_tasks_that_are_over_are_bounded,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(streams_that_clients_left_are_bounded, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(pieces_that_clients_left_are_bounded, set_up,
                                        tear_down),
        {"AS-4 R-1905-28 segments in quick succession go out together",
         in_quick_succession_they_go_out_together, set_up, tear_down, NULL},
        {"R-1905-28 a full response goes out at once", a_full_response_goes_out_at_once,
         set_up, tear_down, NULL},
        {"R-1905-28 who is behind waits once", who_is_behind_waits_once, set_up,
         tear_down, NULL},
        {"R-1905-28 who is many bytes behind waits once",
         who_is_many_bytes_behind_waits_once, set_up, tear_down, NULL},
        {"R-776-7 what was passed does not count", what_was_passed_does_not_count, set_up,
         tear_down, NULL},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
