/* The operation and its log: R-C-1 (the state is a fold), R-C-2 (publish after durable),
 * R-C-3 (one final entry), limits, waiters, and readers that follow a log and do not
 * delay it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/dialect/rows.h"
#include "engine/log/reader.h"
#include "engine/server/task.h"
#include "support/fake_host.h"
#include "support/test_mem.h"

static test_mem tm;
static fake_host host;
static segue_server *server;
static sgi_op *op; /* the operation of the test; freed after it */

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&tm);
    fake_host_init(&host, &tm.mem, 31);
    server = fake_server_new(&host);
    op = NULL;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    test_mem_rearm(&tm);
    if (op)
        sgi_op_unref(op);
    fake_server_end(server);
    fake_host_free(&host);
    assert_int_equal(tm.live, 0);
    return 0;
}

static void append(sgi_entry_kind kind, const char *payload)
{
    assert_int_equal(sgi_op_append(op, kind, sgi_str_of(payload)), SEGUE_OK);
}

static void assert_replays(void)
{
    sgi_op *copy = fake_op_replay(&host, op);
    assert_non_null(copy);
    const char *difference = fake_op_difference(op, copy);
    if (difference)
        print_error("%s\n", difference);
    assert_null(difference);
    sgi_op_unref(copy);
}

/* ---- the log ---- */

static void counters_go_on_without_holes(void **state)
{
    (void)state;
    static const struct {
        sgi_entry_kind kind;
        uint64_t segment, event;
    } rows[] = {
        {SGI_ENTRY_SEGMENT, 1, 1},      {SGI_ENTRY_CHECKPOINT, 0, 0},
        {SGI_ENTRY_FIELDS, 0, 2},       {SGI_ENTRY_SEGMENT, 2, 3},
        {SGI_ENTRY_INPUT_ASK, 0, 0},    {SGI_ENTRY_STATUS, 0, 4},
        {SGI_ENTRY_INPUT_ANSWER, 0, 0}, {SGI_ENTRY_REPLACE, 2, 5},
        {SGI_ENTRY_SEGMENT, 3, 6},      {SGI_ENTRY_RESULT, 0, 0},
    };
    op = fake_op_new(server);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        append(rows[i].kind, "{\"key\":\"k\",\"method\":\"m\",\"params\":{}}");
        const sgi_entry *entry = TAILQ_LAST(&op->tail, sgi_entry_list);
        assert_int_equal(entry->seq, i + 1);
        assert_int_equal(entry->segment, rows[i].segment);
        assert_int_equal(entry->event, rows[i].event);
    }
}

static void the_first_final_wins(void **state)
{
    (void)state;
    static const sgi_entry_kind kinds[] = {SGI_ENTRY_RESULT, SGI_ENTRY_ERROR,
                                           SGI_ENTRY_CANCELLED, SGI_ENTRY_EXPIRED};
    static const sgi_final finals[] = {SGI_FINAL_RESULT, SGI_FINAL_ERROR,
                                       SGI_FINAL_CANCELLED, SGI_FINAL_EXPIRED};
    for (size_t first = 0; first < 4; first++) {
        op = fake_op_new(server);
        assert_int_equal(sgi_op_end(op, kinds[first], SGI_STR("{}")), SEGUE_OK);
        for (int kind = SGI_ENTRY_SEGMENT; kind <= SGI_ENTRY_EXPIRED; kind++) {
            assert_int_equal(sgi_op_append(op, (sgi_entry_kind)kind, SGI_STR("{}")),
                             SEGUE_E_TERMINAL);
            assert_int_equal(sgi_op_end(op, (sgi_entry_kind)kind, SGI_STR("{}")),
                             SEGUE_E_TERMINAL);
        }
        assert_int_equal(op->head.final, finals[first]);
        assert_int_equal(op->head.next_log, 2);
        sgi_op_unref(op);
    }
    op = NULL;
}

static void a_result_that_is_an_error_completes(void **state)
{
    (void)state;
    op = fake_op_new(server);
    sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{\"isError\":true}"));
    assert_int_equal(op->head.final, SGI_FINAL_RESULT_IS_ERROR);
    assert_int_equal(sgi_op_state(op), SGI_STATE_COMPLETED);
}

static void nothing_is_seen_before_it_is_durable(void **state)
{
    (void)state;
    op = fake_task_new(server);
    append(SGI_ENTRY_INPUT_ASK, "{\"key\":\"k\",\"method\":\"m\",\"params\":{}}");
    assert_int_equal(sgi_op_state(op), SGI_STATE_WORKING);
    fake_store_settle(&host);
    assert_int_equal(sgi_op_state(op), SGI_STATE_INPUT_REQUIRED);
    append(SGI_ENTRY_INPUT_ANSWER, "{\"key\":\"k\",\"response\":{}}");
    assert_int_equal(sgi_op_state(op), SGI_STATE_INPUT_REQUIRED);
    fake_store_settle(&host);
    assert_int_equal(sgi_op_state(op), SGI_STATE_WORKING);
    fake_host_advance(&host, 5);
    int64_t seen = op->head.updated_ms;
    sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    assert_int_equal(sgi_op_state(op), SGI_STATE_WORKING);
    assert_int_equal(op->head.updated_ms, seen);
    fake_store_settle(&host);
    assert_int_equal(sgi_op_state(op), SGI_STATE_COMPLETED);
    assert_int_equal(op->head.updated_ms, seen + 5);
}

static void
a_new_status_message_takes_the_place_of_the_old_when_it_is_durable(void **state)
{
    (void)state;
    op = fake_task_new(server);
    assert_null(sgi_op_status_message(op));
    append(SGI_ENTRY_STATUS, "{\"statusMessage\":\"one\"}");
    assert_null(sgi_op_status_message(op));
    fake_store_settle(&host);
    append(SGI_ENTRY_STATUS, "{\"statusMessage\":\"two\"}");
    append(SGI_ENTRY_STATUS, "{\"statusMessage\":\"three\"}");
    assert_string_equal(sgi_op_status_message(op), "one");
    assert_true(fake_store_take(&host));
    append(SGI_ENTRY_STATUS, "{\"statusMessage\":\"four\"}");
    fake_store_done(&host, SEGUE_OK);
    assert_string_equal(sgi_op_status_message(op), "three");
    fake_store_settle(&host);
    assert_string_equal(sgi_op_status_message(op), "four");
}

static void a_plain_operation_is_seen_at_once_and_needs_no_store(void **state)
{
    (void)state;
    op = fake_op_new(server);
    append(SGI_ENTRY_SEGMENT, "1");
    sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    assert_int_equal(sgi_op_state(op), SGI_STATE_COMPLETED);
    assert_int_equal(host.stores, 0);
    assert_false(fake_store_take(&host));
}

static void what_was_said_before_it_became_a_task_is_stored_too(void **state)
{
    (void)state;
    op = fake_op_new(server);
    append(SGI_ENTRY_SEGMENT, "1");
    append(SGI_ENTRY_FIELDS, "{\"a\":1}");
    assert_int_equal(sgi_op_turn_into_task(op, 0), SEGUE_OK);
    append(SGI_ENTRY_SEGMENT, "2");
    assert_int_equal(sgi_op_horizon(op), 0);
    fake_store_settle(&host);
    assert_int_equal(op->durable, 3);
    assert_replays();
}

static void a_rebuilt_operation_equals_the_one_that_was_lost(void **state)
{
    (void)state;
    op = fake_task_new(server);
    append(SGI_ENTRY_SEGMENT, "{\"type\":\"text\"}");
    append(SGI_ENTRY_STATUS, "{\"status\":\"working\",\"statusMessage\":\"h\\u00e4lf\"}");
    append(SGI_ENTRY_CHECKPOINT, "bytes");
    append(
        SGI_ENTRY_INPUT_ASK,
        "{\"key\":\"input-1\",\"method\":\"elicitation/create\",\"params\":{\"a\":1}}");
    append(SGI_ENTRY_INPUT_ASK,
           "{\"key\":\"input-2\",\"method\":\"elicitation/create\",\"params\":{}}");
    fake_host_advance(&host, 10);
    append(SGI_ENTRY_INPUT_ANSWER, "{\"key\":\"input-1\",\"response\":{\"action\":1}}");
    append(SGI_ENTRY_CHECKPOINT, "");
    fake_store_settle(&host);
    assert_replays();
    sgi_op_fail(op, SGI_ENTRY_ERROR, -32000, SGI_STR("no \"good\""), SGI_STR("[1]"));
    fake_store_settle(&host);
    assert_string_equal(op->head.final_data,
                        "{\"code\":-32000,\"message\":\"no \\\"good\\\"\",\"data\":[1]}");
    assert_replays();
}

/* ---- all or nothing ---- */

static void add(struct sgi_entry_list *list, int32_t kind, const char *payload)
{
    sgi_entry *entry = sgi_entry_new(&tm.mem, kind, payload, strlen(payload));
    assert_non_null(entry);
    TAILQ_INSERT_TAIL(list, entry, link);
}

static void without_memory_a_list_is_appended_whole_or_not_at_all(void **state)
{
    (void)state;
    static const struct {
        int32_t kind;
        const char *payload;
    } firsts[] = {
        {SGI_ENTRY_SEGMENT, "1"},
        {SGI_ENTRY_STATUS, "{\"statusMessage\":\"now\"}"},
        {SGI_ENTRY_CHECKPOINT, "bytes"},
        {SGI_ENTRY_INPUT_ASK, "{\"key\":\"b\",\"method\":\"m\",\"params\":{}}"},
        {SGI_ENTRY_INPUT_ANSWER, "{\"key\":\"a\",\"response\":{}}"},
        {SGI_ENTRY_ERROR, "{\"code\":1}"},
    };
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
        size_t refused = 1;
        for (size_t at = 1; refused; at++) {
            struct sgi_entry_list list = TAILQ_HEAD_INITIALIZER(list);
            op = fake_task_new(server);
            append(SGI_ENTRY_STATUS, "{\"statusMessage\":\"before\"}");
            append(SGI_ENTRY_CHECKPOINT, "old");
            append(SGI_ENTRY_INPUT_ASK, "{\"key\":\"a\",\"method\":\"m\",\"params\":{}}");
            fake_store_settle(&host);
            add(&list, firsts[i].kind, firsts[i].payload);
            if (!sgi_entry_is_final(firsts[i].kind)) {
                add(&list, SGI_ENTRY_SEGMENT, "2");
                add(&list, SGI_ENTRY_FIELDS, "{\"a\":1}");
            }
            test_mem_rearm(&tm);
            tm.fail_at = at;
            segue_status status = sgi_op_append_list(op, &list);
            refused = tm.failed;
            test_mem_rearm(&tm);
            assert_int_equal(status, refused ? SEGUE_E_NOMEM : SEGUE_OK);
            assert_true(TAILQ_EMPTY(&list));
            if (refused)
                assert_null(op->pending);
            fake_store_settle(&host);
            assert_replays();
            sgi_op_unref(op);
            op = NULL;
        }
    }
}

static void without_memory_an_end_can_be_tried_again(void **state)
{
    (void)state;
    op = fake_task_new(server);
    fake_store_settle(&host);
    tm.fail_from = tm.calls + 1;
    assert_int_equal(sgi_op_fail(op, SGI_ENTRY_ERROR, 1, SGI_STR("x"), (sgi_json){0}),
                     SEGUE_E_NOMEM);
    assert_int_equal(sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}")), SEGUE_E_NOMEM);
    assert_false(sgi_op_has_ended(op));
    test_mem_rearm(&tm);
    assert_int_equal(sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}")), SEGUE_OK);
}

/* ---- limits ---- */

static void a_full_log_refuses_the_list_and_still_ends(void **state)
{
    (void)state;
    for (int task = 0; task < 2; task++) {
        op = task ? fake_task_new(server) : fake_op_new(server);
        op->limits.max_result_bytes = 10;
        op->limits.max_log_bytes = task ? 10 : 1;
        append(SGI_ENTRY_SEGMENT, "12345");
        struct sgi_entry_list list = TAILQ_HEAD_INITIALIZER(list);
        add(&list, SGI_ENTRY_SEGMENT, "123");
        add(&list, SGI_ENTRY_SEGMENT, "456");
        assert_int_equal(sgi_op_append_list(op, &list), SEGUE_E_LIMIT);
        assert_true(TAILQ_EMPTY(&list));
        assert_int_equal(op->head.next_log, 2);
        append(SGI_ENTRY_SEGMENT, "12345"); /* exactly as much as there is room for */
        assert_int_equal(sgi_op_append(op, SGI_ENTRY_SEGMENT, SGI_STR("1")),
                         SEGUE_E_LIMIT);
        assert_int_equal(sgi_op_end(op, SGI_ENTRY_CANCELLED, SGI_STR("{}")), SEGUE_OK);
        sgi_op_unref(op);
        op = NULL;
    }
}

/* The bits that mark text blocks need memory from the 65th block on. */
static void a_list_of_many_texts_is_taken_whole_or_not(void **state)
{
    (void)state;
    size_t refused = 1;
    int failures = -1;
    for (size_t at = 1; refused; at++, failures++) {
        struct sgi_entry_list list = TAILQ_HEAD_INITIALIZER(list);
        op = fake_task_new(server);
        fake_store_settle(&host);
        for (int i = 0; i < 70; i++)
            add(&list, SGI_ENTRY_SEGMENT, "{\"type\":\"text\",\"text\":\"x\"}");
        add(&list, SGI_ENTRY_RESULT, "{}");
        test_mem_rearm(&tm);
        tm.fail_at = at;
        segue_status status = sgi_op_append_list(op, &list);
        refused = tm.failed;
        test_mem_rearm(&tm);
        assert_int_equal(status, refused ? SEGUE_E_NOMEM : SEGUE_OK);
        assert_int_equal(op->head.next_log, refused ? 1 : 72);
        assert_int_equal(op->head.blocks, refused ? 0 : 70);
        fake_store_settle(&host);
        assert_replays();
        sgi_op_unref(op);
        op = NULL;
    }
    assert_true(failures > 0);
}

static void segments_are_counted_fields_are_not(void **state)
{
    (void)state;
    op = fake_op_new(server);
    op->limits.max_segments = 2;
    append(SGI_ENTRY_SEGMENT, "1");
    append(SGI_ENTRY_FIELDS, "{}");
    append(SGI_ENTRY_SEGMENT, "2");
    append(SGI_ENTRY_FIELDS, "{}");
    assert_int_equal(sgi_op_append(op, SGI_ENTRY_SEGMENT, SGI_STR("3")), SEGUE_E_LIMIT);
    append(SGI_ENTRY_FIELDS, "{}");
}

static void a_payload_too_large_for_an_entry_is_refused(void **state)
{
    (void)state;
    op = fake_op_new(server);
    assert_int_equal(sgi_op_append(op, SGI_ENTRY_SEGMENT, (sgi_str){"", SIZE_MAX / 4}),
                     SEGUE_E_LIMIT);
}

static void producers_wait_while_too_much_is_not_durable(void **state)
{
    (void)state;
    host.engine.max_queue = 10;
    op = fake_task_new(server);
    append(SGI_ENTRY_SEGMENT, "123456789");
    assert_false(sgi_op_handler_must_wait(op));
    append(SGI_ENTRY_SEGMENT, "1");
    assert_true(sgi_op_handler_must_wait(op));
    fake_store_settle(&host);
    assert_false(sgi_op_handler_must_wait(op));
    sgi_op *plain = fake_op_new(server);
    assert_int_equal(sgi_op_append(plain, SGI_ENTRY_SEGMENT, SGI_STR("1234567890123")),
                     SEGUE_OK);
    assert_false(sgi_op_handler_must_wait(plain)); /* it is bounded by its result limit */
    sgi_op_unref(plain);
}

static void a_producer_waits_for_its_store_before_others_are_kept_out(void **state)
{
    (void)state;
    char text[600] = "\"";
    memset(text + 1, 'x', sizeof text - 3);
    text[sizeof text - 2] = '"';
    server->use.account.limit.value = 10000;
    op = fake_task_new(server);
    fake_store_settle(&host);
    while (!sgi_op_handler_must_wait(op))
        append(SGI_ENTRY_SEGMENT, text);
    assert_in_range(server->use.account.bytes, 5000, 5000 + sizeof text);
    fake_store_settle(&host);
    assert_false(sgi_op_handler_must_wait(op));
}

/* ---- waiters ---- */

typedef struct listener {
    sgi_waiter waiter;
    int fired;
    segue_status status;
    sgi_waiter *ends; /* another waiter, which this waiter ends when it fires */
} listener;

static void fire(sgi_waiter *waiter, sgi_op *of, segue_status status)
{
    listener *l = SGI_OWNER(waiter, listener, waiter);
    assert_ptr_equal(of, op);
    l->fired++;
    l->status = status;
    if (l->ends)
        sgi_op_wait_cancel(l->ends);
}

static void a_waiter_fires_when_its_entry_is_durable(void **state)
{
    (void)state;
    listener early = {.waiter.fire = fire};
    listener late = {.waiter.fire = fire};
    listener end = {.waiter.fire = fire};
    op = fake_task_new(server);
    sgi_op_wait_until_visible(op, &end.waiter, SGI_WAIT_FINAL);
    sgi_op_wait_until_visible(op, &late.waiter, 2);
    sgi_op_wait_until_visible(op, &early.waiter, 0); /* waits for the creation only */
    assert_int_equal(early.fired, 0);
    fake_store_settle(&host);
    assert_int_equal(early.fired, 1);
    append(SGI_ENTRY_SEGMENT, "1");
    fake_store_settle(&host);
    assert_int_equal(late.fired, 0);
    append(SGI_ENTRY_SEGMENT, "2");
    assert_int_equal(late.fired, 0);
    fake_store_settle(&host);
    assert_int_equal(late.fired, 1);
    assert_int_equal(end.fired, 0);
    sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    assert_int_equal(end.fired, 0);
    fake_store_settle(&host);
    assert_int_equal(end.fired, 1);
    assert_int_equal(end.status, SEGUE_OK);
    listener behind = {.waiter.fire = fire};
    /* the entry is visible already */
    sgi_op_wait_until_visible(op, &behind.waiter, SGI_WAIT_FINAL);
    assert_int_equal(behind.fired, 1);
    assert_null(behind.waiter.op);
}

static void a_waiter_of_a_plain_operation_fires_at_its_end(void **state)
{
    (void)state;
    listener l = {.waiter.fire = fire};
    op = fake_op_new(server);
    sgi_op_wait_until_visible(op, &l.waiter, SGI_WAIT_FINAL);
    append(SGI_ENTRY_SEGMENT, "1");
    assert_int_equal(l.fired, 0);
    sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    assert_int_equal(l.fired, 1);
}

static void one_that_gave_up_does_not_fire(void **state)
{
    (void)state;
    listener l = {.waiter.fire = fire};
    op = fake_task_new(server);
    sgi_op_wait_until_visible(op, &l.waiter, 1);
    sgi_op_wait_cancel(&l.waiter);
    sgi_op_wait_cancel(&l.waiter);
    append(SGI_ENTRY_SEGMENT, "1");
    fake_store_settle(&host);
    assert_int_equal(l.fired, 0);
}

/* A waiter that fires may end other waiters, also the waiter that would be next. */
static void one_that_fires_may_end_the_others(void **state)
{
    (void)state;
    listener *l[3];
    op = fake_task_new(server);
    for (int i = 0; i < 3; i++) {
        l[i] = calloc(1, sizeof *l[i]);
        l[i]->waiter.fire = fire;
        sgi_op_wait_until_visible(op, &l[i]->waiter, 0);
    }
    l[0]->ends = &l[1]->waiter;
    fake_store_settle(&host);
    assert_int_equal(l[0]->fired, 1);
    assert_int_equal(l[1]->fired, 0);
    assert_int_equal(l[2]->fired, 1);
    for (int i = 0; i < 3; i++)
        free(l[i]);
}

static void those_that_wait_when_it_goes_are_told(void **state)
{
    (void)state;
    listener l = {.waiter.fire = fire};
    op = fake_op_new(server);
    sgi_op_wait_until_visible(op, &l.waiter, SGI_WAIT_FINAL);
    sgi_op *mine = op;
    sgi_op_unref(mine);
    assert_int_equal(l.fired, 1);
    assert_int_equal(l.status, SEGUE_E_CLOSED);
    op = NULL;
}

/* ---- a store that fails ---- */

static void an_operation_that_was_not_created_never_was(void **state)
{
    (void)state;
    listener l = {.waiter.fire = fire};
    op = fake_task_new(server);
    append(SGI_ENTRY_SEGMENT, "1");
    append(SGI_ENTRY_INPUT_ASK, "{\"key\":\"k\",\"method\":\"m\",\"params\":{}}");
    sgi_op_wait_until_visible(op, &l.waiter, 0);
    fake_store_commit(&host, SEGUE_E_STORE_FULL);
    assert_int_equal(l.status, SEGUE_E_STORE_FULL);
    assert_false(sgi_op_is_known(op));
    assert_false(fake_store_take(&host));
    assert_int_equal(sgi_op_append(op, SGI_ENTRY_SEGMENT, SGI_STR("1")),
                     SEGUE_E_TERMINAL);
}

/* No client has seen entries that were not durable, so the state is the state of the log
 * without them. */
static void what_could_not_be_written_leaves_no_trace(void **state)
{
    (void)state;
    op = fake_task_new(server);
    append(SGI_ENTRY_SEGMENT, "1");
    append(SGI_ENTRY_STATUS, "{\"statusMessage\":\"kept\"}");
    append(SGI_ENTRY_CHECKPOINT, "kept");
    append(SGI_ENTRY_INPUT_ASK, "{\"key\":\"a\",\"method\":\"m\",\"params\":{}}");
    fake_store_settle(&host);
    fake_host_advance(&host, 7);
    append(SGI_ENTRY_INPUT_ANSWER, "{\"key\":\"a\",\"response\":{}}");
    append(SGI_ENTRY_INPUT_ASK, "{\"key\":\"b\",\"method\":\"m\",\"params\":{}}");
    append(SGI_ENTRY_STATUS, "{\"statusMessage\":\"lost\"}");
    append(SGI_ENTRY_CHECKPOINT, "lost");
    append(SGI_ENTRY_SEGMENT, "2");
    sgi_op_end(op, SGI_ENTRY_CANCELLED, SGI_STR("{}"));
    fake_store_commit(&host, SEGUE_E_STORE_FULL);
    assert_int_equal(op->head.final, SGI_FINAL_ERROR);
    assert_string_equal(sgi_op_status_message(op), "kept");
    assert_int_equal(TAILQ_FIRST(&op->head.inputs)->answered, 0);
    fake_store_settle(&host);
    assert_replays();
}

static sgi_op *new_stored_call(void)
{
    sgi_op *call = fake_op_new(server);
    call->head.tasking = SGI_TASKING_MAY;
    call->served->dialect = &sgi_srv_tasks_ext;
    assert_int_equal(sgi_op_store_without_task(call), SEGUE_OK);
    return call;
}

static void a_stored_call_becomes_a_task_by_its_log(void **state)
{
    (void)state;
    op = new_stored_call();
    append(SGI_ENTRY_SEGMENT, "1");
    fake_store_settle(&host);
    assert_false(sgi_op_is_task(op));
    assert_int_equal(sgi_op_turn_into_task(op, 5000), SEGUE_OK);
    assert_true(sgi_op_is_task(op));
    assert_int_equal(op->ttl_ms, 5000);
    assert_int_equal(op->served->who->live_tasks, 1);
    append(SGI_ENTRY_SEGMENT, "2");
    fake_store_settle(&host);
    assert_replays();
    sgi_op_end(op, SGI_ENTRY_CANCELLED, SGI_STR("{}"));
    fake_store_settle(&host);
    assert_int_equal(op->served->who->live_tasks, 0);
}

static void a_stored_call_whose_change_could_not_be_written_is_no_task(void **state)
{
    (void)state;
    op = new_stored_call();
    fake_store_settle(&host);
    assert_int_equal(sgi_op_turn_into_task(op, 5000), SEGUE_OK);
    fake_store_commit(&host, SEGUE_E_STORE_FULL);
    assert_false(sgi_op_is_task(op));
    assert_int_equal(op->head.task_seq, 0);
    fake_store_settle(&host);
    assert_int_equal(op->served->who->live_tasks, 0);
}

static void a_full_store_and_no_memory_at_once_end_it_all_the_same(void **state)
{
    (void)state;
    listener l = {.waiter.fire = fire};
    op = fake_task_new(server);
    fake_store_settle(&host);
    append(SGI_ENTRY_SEGMENT, "1");
    sgi_op_wait_until_visible(op, &l.waiter, SGI_WAIT_FINAL);
    assert_true(fake_store_take(&host));
    tm.fail_from = tm.calls + 1;
    fake_store_done(&host, SEGUE_E_STORE_FULL);
    test_mem_rearm(&tm);
    /* Segment "1" is missing, so no result may be made from the rest. */
    assert_int_equal(sgi_op_append(op, SGI_ENTRY_SEGMENT, SGI_STR("2")),
                     SEGUE_E_TERMINAL);
    assert_int_equal(sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}")), SEGUE_E_TERMINAL);
    for (int i = 0; i < 10; i++) {
        fake_store_settle(&host);
        fake_host_advance(&host, 250);
    }
    assert_int_equal(op->head.final, SGI_FINAL_ERROR);
    assert_int_equal(l.fired, 1);
    assert_int_equal(sgi_op_state(op), SGI_STATE_FAILED);
    assert_replays();
}

/* ---- entries that come from a store ---- */

static segue_status apply(uint64_t seq, int32_t kind, const char *payload, size_t len)
{
    sgi_entry *entry = sgi_entry_new(&tm.mem, kind, payload, len);
    entry->seq = seq;
    entry->segment = kind == SGI_ENTRY_SEGMENT ? op->head.next_seg : 0;
    entry->event = kind <= SGI_ENTRY_STATUS ? op->head.next_evt : 0;
    segue_status status = sgi_op_apply_stored_entry(op, entry);
    sgi_entry_free(&tm.mem, entry);
    return status;
}

static void a_log_with_a_hole_or_behind_its_end_is_corrupt(void **state)
{
    (void)state;
    op = fake_op_new(server);
    assert_int_equal(apply(2, SGI_ENTRY_SEGMENT, "1", 1), SEGUE_E_STORE_CORRUPT);
    assert_int_equal(apply(1, SGI_ENTRY_SEGMENT, "1", 1), SEGUE_OK);
    assert_int_equal(apply(1, SGI_ENTRY_SEGMENT, "1", 1), SEGUE_E_STORE_CORRUPT);
    assert_int_equal(apply(2, SGI_ENTRY_RESULT, "{}", 2), SEGUE_OK);
    assert_int_equal(apply(3, SGI_ENTRY_SEGMENT, "1", 1), SEGUE_E_STORE_CORRUPT);
    assert_int_equal(op->head.final, SGI_FINAL_RESULT);
}

static void counters_that_do_not_fit_are_corrupt(void **state)
{
    (void)state;
    static const struct {
        int32_t kind;
        uint64_t segment, event;
    } rows[] = {
        {SGI_ENTRY_SEGMENT, 0, 1},
        {SGI_ENTRY_SEGMENT, 2, 1},
        {SGI_ENTRY_SEGMENT, 1, 2},
        {SGI_ENTRY_SEGMENT, UINT64_MAX, 1},
        {SGI_ENTRY_FIELDS, 1, 1},
        {SGI_ENTRY_FIELDS, 0, 0},
        {SGI_ENTRY_RESULT, 0, 1},
        {SGI_ENTRY_CHECKPOINT, 1, 0},
        {0, 0, 1},
        {-1, 0, 1},
        {SGI_ENTRY_TASK, 0, 0}, /* of an operation that cannot become a task */
        {SGI_ENTRY_TASK + 1, 0, 0},
        {INT32_MAX, 0, 0},
    };
    op = fake_op_new(server);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sgi_entry *entry = sgi_entry_new(&tm.mem, rows[i].kind, "{}", 2);
        entry->seq = 1;
        entry->segment = rows[i].segment;
        entry->event = rows[i].event;
        assert_int_equal(sgi_op_apply_stored_entry(op, entry), SEGUE_E_STORE_CORRUPT);
        assert_int_equal(op->head.next_log, 1);
        assert_int_equal(op->head.final, SGI_FINAL_NONE);
        sgi_entry_free(&tm.mem, entry);
    }
}

#define TEXT "{\"type\":\"text\",\"text\":\"x\"}"
#define IMAGE "{\"type\":\"image\"}"

static segue_status apply_segment(const char *payload)
{
    return apply(op->head.next_log, SGI_ENTRY_SEGMENT, payload, strlen(payload));
}

/* No memory is allocated just because of a large index. */
static void a_place_that_no_block_can_have_is_corrupt(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "[3," TEXT "]",
        "[9999999999999," TEXT "]",
        "[18446744073709551614," TEXT "]",
        "[18446744073709551615," TEXT "]",
        "[18446744073709551616," TEXT "]", /* 0 and 2, if they wrap */
        "[18446744073709551618," TEXT "]",
        "[184467440737095516160," TEXT "]",
        "[1," TEXT "]",  /* in an image, */
        "[0," IMAGE "]", /* an image in a text */
        "[," TEXT "]",
        "[-1," TEXT "]",
        "[2 " TEXT "]",
        "[2," TEXT,
        "[2,]",
        "[",
    };
    op = fake_op_new(server);
    assert_int_equal(apply_segment(TEXT), SEGUE_OK);
    assert_int_equal(apply_segment(IMAGE), SEGUE_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t live = tm.live;
        tm.peak = live;
        assert_int_equal(apply_segment(bad[i]), SEGUE_E_STORE_CORRUPT);
        assert_int_equal(op->head.next_log, 3);
        assert_true(tm.peak - live < 4096);
    }
    assert_int_equal(apply_segment("[0," TEXT "]"), SEGUE_OK);
    assert_int_equal(apply_segment("[2," TEXT "]"), SEGUE_OK);
    /* the entry must have the number 3 */
    assert_int_equal(apply_segment(TEXT), SEGUE_E_STORE_CORRUPT);
    assert_int_equal(apply_segment("[3," TEXT "]"), SEGUE_OK);
}

/* A log that may have lost segments has unknown blocks, but no more of them than
 * segments. Unknown blocks take no memory. */
static void behind_a_gap_a_place_is_within_the_segments(void **state)
{
    (void)state;
    static const struct {
        uint64_t segment;
        const char *payload;
        segue_status status;
    } rows[] = {
        {1000000000000, "[1000000000000," TEXT "]", SEGUE_E_STORE_CORRUPT},
        {1000000000000, "[999999999990," TEXT "]", SEGUE_OK},
        {1000000000001, "[999999999990," TEXT "]", SEGUE_OK},
        {1000000000002, "[999999999991," TEXT "]", SEGUE_OK},
        {UINT64_MAX - 1, TEXT, SEGUE_OK},
    };
    op = fake_op_new(server);
    op->retention = sgi_zalloc(&tm.mem, sizeof *op->retention);
    op->retention->earliest = 1;
    size_t live = tm.live;
    tm.peak = live;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *text = rows[i].payload;
        sgi_entry *entry = sgi_entry_new(&tm.mem, SGI_ENTRY_SEGMENT, text, strlen(text));
        entry->seq = entry->segment = entry->event = rows[i].segment;
        assert_int_equal(sgi_op_apply_stored_entry(op, entry), rows[i].status);
        sgi_entry_free(&tm.mem, entry);
        assert_true(tm.peak - live < 4096);
    }
    assert_true(op->head.blocks == UINT64_MAX - 1);
}

/* A NUL inside a text does no harm, whoever wrote it to the store. */
static void texts_with_a_nul_do_no_harm(void **state)
{
    (void)state;
    static const char ask[] =
        "{\"key\":\"a\\u0000b\",\"method\":\"m\\u0000\",\"params\":{}}";
    static const char status[] = "{\"statusMessage\":\"x\\u0000y\"}";
    static const char zeros[] = "{\"a\":\0\0\0}";
    op = fake_op_new(server);
    apply(op->head.next_log, SGI_ENTRY_INPUT_ASK, ask, sizeof ask - 1);
    apply(op->head.next_log, SGI_ENTRY_STATUS, status, sizeof status - 1);
    apply(op->head.next_log, SGI_ENTRY_INPUT_ASK, zeros, sizeof zeros - 1);
    apply(op->head.next_log, SGI_ENTRY_ERROR, zeros, sizeof zeros - 1);
}

/* ---- readers ---- */

typedef struct follower {
    sgi_reader reader;
    uint64_t last;
    int rung;     /* how often the reader was told that there is more */
    bool at_once; /* reads in its callback */
} follower;

static void follow_more(follower *f, uint64_t most)
{
    const sgi_entry *entry;
    while (most-- && (entry = sgi_reader_next(&f->reader))) {
        assert_int_equal(entry->seq, ++f->last);
        assert_true(entry->seq <= sgi_op_horizon(op));
        sgi_reader_advance(&f->reader);
    }
}

static void more(sgi_reader *reader)
{
    follower *f = SGI_OWNER(reader, follower, reader);
    f->rung++;
    if (f->at_once)
        follow_more(f, UINT64_MAX);
}

static void append_large(int count)
{
    static char payload[10000];
    memset(payload, '1', sizeof payload);
    for (int i = 0; i < count; i++)
        assert_int_equal(
            sgi_op_append(op, SGI_ENTRY_SEGMENT, (sgi_str){payload, sizeof payload}),
            SEGUE_OK);
}

static void a_reader_follows_what_becomes_durable(void **state)
{
    (void)state;
    follower f = {.at_once = true};
    op = fake_task_new(server);
    sgi_reader_init(&f.reader, op, 0, more);
    for (uint64_t i = 1; i <= 20; i++) {
        append(SGI_ENTRY_SEGMENT, "1");
        follow_more(&f, UINT64_MAX);
        assert_int_equal(f.last, i - 1);
        fake_store_settle(&host);
        assert_int_equal(f.last, i);
    }
    assert_false(sgi_reader_at_end(&f.reader));
    sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    fake_store_settle(&host);
    assert_true(sgi_reader_at_end(&f.reader));
    sgi_reader_end(&f.reader);
    sgi_reader_end(&f.reader);
}

static void a_slow_reader_costs_a_bounded_tail_and_misses_nothing(void **state)
{
    (void)state;
    follower fast = {.at_once = true};
    follower slow = {.at_once = false};
    op = fake_task_new(server);
    sgi_reader_init(&fast.reader, op, 0, more);
    sgi_reader_init(&slow.reader, op, 0, more);
    for (int i = 0; i < 200; i++) {
        append_large(1);
        fake_store_settle(&host);
        assert_true(op->tail_bytes <= 256 * 1024 + 10000);
        if (i % 10 == 0)
            follow_more(&slow, 1);
    }
    assert_int_equal(fast.last, 200);
    sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    fake_store_settle(&host);
    assert_true(sgi_reader_at_end(&fast.reader));
    for (int rounds = 0; !sgi_reader_at_end(&slow.reader); rounds++) {
        assert_true(rounds < 400);
        follow_more(&slow, 3);
        fake_store_settle(&host);
    }
    assert_int_equal(slow.last, 201);
    assert_int_equal(slow.reader.failure, SEGUE_OK);
    sgi_reader_end(&fast.reader);
    sgi_reader_end(&slow.reader);
}

static void one_that_comes_late_reads_from_the_store_and_then_the_tail(void **state)
{
    (void)state;
    op = fake_task_new(server);
    append_large(100);
    fake_store_settle(&host);
    assert_int_equal(op->tail_bytes, 0); /* there was no reader */
    for (uint64_t after = 0; after <= 100; after += 25) {
        follower f = {.last = after, .at_once = true};
        sgi_reader_init(&f.reader, op, after, more);
        follow_more(&f, UINT64_MAX);
        fake_store_settle(&host);
        assert_int_equal(f.last, 100);
        sgi_reader_end(&f.reader);
    }
}

static void a_reader_may_end_while_the_store_is_asked(void **state)
{
    (void)state;
    follower f = {.at_once = false};
    op = fake_task_new(server);
    append_large(3);
    fake_store_settle(&host);
    sgi_reader_init(&f.reader, op, 0, more);
    f.rung = 0;
    assert_null(sgi_reader_next(&f.reader));
    assert_non_null(f.reader.job);
    assert_null(sgi_reader_next(&f.reader)); /* the reader asks the store only once */
    sgi_reader_end(&f.reader);
    assert_true(fake_store_answer(&host, SEGUE_OK));
    assert_false(fake_store_answer(&host, SEGUE_OK));
    assert_int_equal(f.rung, 0);
}

static void a_store_that_cannot_answer_fails_the_reader(void **state)
{
    (void)state;
    op = fake_task_new(server);
    append_large(3);
    fake_store_settle(&host);
    for (int how = 0; how < 2; how++) {
        follower f = {.at_once = false};
        sgi_reader_init(&f.reader, op, 0, more);
        f.rung = 0;
        if (how)
            tm.fail_at = tm.calls + 1;
        assert_null(sgi_reader_next(&f.reader));
        if (!how) {
            assert_true(fake_store_answer(&host, SEGUE_E_IO));
            assert_int_equal(f.rung, 1);
        }
        assert_int_not_equal(f.reader.failure, SEGUE_OK);
        assert_null(sgi_reader_next(&f.reader));
        assert_false(sgi_reader_at_end(&f.reader));
        sgi_reader_end(&f.reader);
        test_mem_rearm(&tm);
    }
}

/* Adds a row with another position behind all rows. */
static void add_row(uint64_t like, uint64_t seq)
{
    const fake_row *row = fake_store_next(&host, op->id, like - 1);
    size_t size = sizeof *row + row->entry.data_len;
    fake_row *copy = malloc(size);
    memcpy(copy, row, size);
    copy->entry.seq = seq;
    copy->entry.data = copy->data;
    TAILQ_INSERT_TAIL(&host.rows, copy, link);
}

static void lose_rows(uint64_t from, uint64_t upto)
{
    fake_row *row, *next;
    for (row = TAILQ_FIRST(&host.rows); row; row = next) {
        next = TAILQ_NEXT(row, link);
        if (row->entry.seq < from || row->entry.seq > upto)
            continue;
        TAILQ_REMOVE(&host.rows, row, link);
        free(row);
    }
}

static void a_reader_of_a_log_that_the_store_has_lost_fails(void **state)
{
    (void)state;
    op = fake_task_new(server);
    append_large(10);
    sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    fake_store_settle(&host);
    add_row(11, 1000); /* another server wrote an end behind the hole */
    lose_rows(4, 11);
    for (int hole = 1; hole >= 0; hole--) {
        follower f = {.at_once = true};
        if (!hole)
            lose_rows(1000, 1000);
        sgi_reader_init(&f.reader, op, 0, more);
        follow_more(&f, 1);
        fake_store_settle(&host);
        assert_int_equal(f.last, 3);
        assert_int_equal(f.reader.failure, SEGUE_E_STATE);
        sgi_reader_end(&f.reader);
    }
}

/* The server read the log to its end before another server wrote a second end. */
static void a_reader_ends_at_the_first_of_two_ends(void **state)
{
    (void)state;
    follower f = {.at_once = true};
    op = fake_task_new(server);
    append_large(10);
    sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    fake_store_settle(&host);
    add_row(11, 12);
    sgi_reader_init(&f.reader, op, 0, more);
    follow_more(&f, UINT64_MAX);
    fake_store_settle(&host);
    assert_int_equal(f.last, 11);
    assert_true(sgi_reader_at_end(&f.reader));
    sgi_reader_end(&f.reader);
}

/* ---- the whole log, folded ---- */

static int folded_count;
static uint64_t folded_segments;
static bool folded_ok;

static void folded(void *user, sgi_op *of, const sgi_fold *fold, segue_status status)
{
    (void)status;
    assert_ptr_equal(user, &folded_count);
    assert_ptr_equal(of, op);
    folded_count++;
    folded_ok = fold != NULL;
    folded_segments = fold ? fold->count : 0;
}

static void a_fold_reads_the_log_back_and_waits_for_its_end(void **state)
{
    (void)state;
    op = fake_task_new(server);
    folded_count = 0;
    append_large(100);
    fake_store_settle(&host);
    sgi_op_fold(op, folded, &folded_count);
    fake_store_settle(&host);
    assert_int_equal(folded_count, 0);
    append_large(5);
    append(SGI_ENTRY_FIELDS, "{\"a\":1}");
    sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    fake_store_settle(&host);
    assert_int_equal(folded_count, 1);
    assert_true(folded_ok);
    assert_int_equal(folded_segments, 105);
}

static void a_fold_without_memory_or_store_says_so_once(void **state)
{
    (void)state;
    op = fake_task_new(server);
    append_large(60);
    sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    fake_store_settle(&host);
    size_t refused = 1;
    for (size_t at = 1; refused; at++) {
        folded_count = 0;
        test_mem_rearm(&tm);
        tm.fail_at = at;
        sgi_op_fold(op, folded, &folded_count);
        while (fake_store_answer(&host, SEGUE_OK))
            ;
        refused = tm.failed;
        assert_int_equal(folded_count, 1);
        assert_int_equal(folded_ok, !refused);
    }
    test_mem_rearm(&tm);
    folded_count = 0;
    sgi_op_fold(op, folded, &folded_count);
    assert_true(fake_store_answer(&host, SEGUE_E_IO));
    assert_int_equal(folded_count, 1);
    assert_false(folded_ok);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(counters_go_on_without_holes),
        CASE(the_first_final_wins),
        CASE(a_result_that_is_an_error_completes),
        CASE(nothing_is_seen_before_it_is_durable),
        CASE(a_new_status_message_takes_the_place_of_the_old_when_it_is_durable),
        CASE(a_plain_operation_is_seen_at_once_and_needs_no_store),
        CASE(what_was_said_before_it_became_a_task_is_stored_too),
        CASE(a_rebuilt_operation_equals_the_one_that_was_lost),
        CASE(without_memory_a_list_is_appended_whole_or_not_at_all),
        CASE(without_memory_an_end_can_be_tried_again),
        CASE(a_full_log_refuses_the_list_and_still_ends),
        CASE(a_list_of_many_texts_is_taken_whole_or_not),
        CASE(segments_are_counted_fields_are_not),
        CASE(a_payload_too_large_for_an_entry_is_refused),
        CASE(producers_wait_while_too_much_is_not_durable),
        CASE(a_producer_waits_for_its_store_before_others_are_kept_out),
        CASE(a_waiter_fires_when_its_entry_is_durable),
        CASE(a_waiter_of_a_plain_operation_fires_at_its_end),
        CASE(one_that_gave_up_does_not_fire),
        CASE(one_that_fires_may_end_the_others),
        CASE(those_that_wait_when_it_goes_are_told),
        CASE(an_operation_that_was_not_created_never_was),
        CASE(what_could_not_be_written_leaves_no_trace),
        CASE(a_stored_call_becomes_a_task_by_its_log),
        CASE(a_stored_call_whose_change_could_not_be_written_is_no_task),
        CASE(a_full_store_and_no_memory_at_once_end_it_all_the_same),
        CASE(a_log_with_a_hole_or_behind_its_end_is_corrupt),
        CASE(counters_that_do_not_fit_are_corrupt),
        CASE(a_place_that_no_block_can_have_is_corrupt),
        CASE(behind_a_gap_a_place_is_within_the_segments),
        CASE(texts_with_a_nul_do_no_harm),
        CASE(a_reader_follows_what_becomes_durable),
        CASE(a_slow_reader_costs_a_bounded_tail_and_misses_nothing),
        CASE(one_that_comes_late_reads_from_the_store_and_then_the_tail),
        CASE(a_reader_may_end_while_the_store_is_asked),
        CASE(a_store_that_cannot_answer_fails_the_reader),
        CASE(a_reader_of_a_log_that_the_store_has_lost_fails),
        CASE(a_reader_ends_at_the_first_of_two_ends),
        CASE(a_fold_reads_the_log_back_and_waits_for_its_end),
        CASE(a_fold_without_memory_or_store_says_so_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
