/* The operation and its log: R-C-1 (the state is a fold), R-C-2 (publish after durable),
 * R-C-3 (one final entry), limits, waiters, and a store that fails. test_op_read.c reads
 * logs. */
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
#include "support/log_stage.h"
#include "support/fake_host.h"
#include "support/test_mem.h"

static void assert_replays(void)
{
    sgi_op *copy = fake_op_replay(&log_host, log_op);
    assert_non_null(copy);
    const char *difference = fake_op_difference(log_op, copy);
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
    log_op = fake_op_new(log_server);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        log_append(rows[i].kind, "{\"key\":\"k\",\"method\":\"m\",\"params\":{}}");
        const sgi_entry *entry = TAILQ_LAST(&log_op->tail, sgi_entry_list);
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
        log_op = fake_op_new(log_server);
        assert_int_equal(sgi_op_end(log_op, kinds[first], SGI_STR("{}")), SEGUE_OK);
        for (int kind = SGI_ENTRY_SEGMENT; kind <= SGI_ENTRY_EXPIRED; kind++) {
            assert_int_equal(sgi_op_append(log_op, (sgi_entry_kind)kind, SGI_STR("{}")),
                             SEGUE_E_TERMINAL);
            assert_int_equal(sgi_op_end(log_op, (sgi_entry_kind)kind, SGI_STR("{}")),
                             SEGUE_E_TERMINAL);
        }
        assert_int_equal(log_op->head.final, finals[first]);
        assert_int_equal(log_op->head.next_log, 2);
        sgi_op_unref(log_op);
    }
    log_op = NULL;
}

static void a_result_that_is_an_error_completes(void **state)
{
    (void)state;
    log_op = fake_op_new(log_server);
    sgi_op_end(log_op, SGI_ENTRY_RESULT, SGI_STR("{\"isError\":true}"));
    assert_int_equal(log_op->head.final, SGI_FINAL_RESULT_IS_ERROR);
    assert_int_equal(sgi_op_state(log_op), SGI_STATE_COMPLETED);
}

static void nothing_is_seen_before_it_is_durable(void **state)
{
    (void)state;
    log_op = fake_task_new(log_server);
    log_append(SGI_ENTRY_INPUT_ASK, "{\"key\":\"k\",\"method\":\"m\",\"params\":{}}");
    assert_int_equal(sgi_op_state(log_op), SGI_STATE_WORKING);
    fake_store_settle(&log_host);
    assert_int_equal(sgi_op_state(log_op), SGI_STATE_INPUT_REQUIRED);
    log_append(SGI_ENTRY_INPUT_ANSWER, "{\"key\":\"k\",\"response\":{}}");
    assert_int_equal(sgi_op_state(log_op), SGI_STATE_INPUT_REQUIRED);
    fake_store_settle(&log_host);
    assert_int_equal(sgi_op_state(log_op), SGI_STATE_WORKING);
    fake_host_advance(&log_host, 5);
    int64_t seen = log_op->head.updated_ms;
    sgi_op_end(log_op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    assert_int_equal(sgi_op_state(log_op), SGI_STATE_WORKING);
    assert_int_equal(log_op->head.updated_ms, seen);
    fake_store_settle(&log_host);
    assert_int_equal(sgi_op_state(log_op), SGI_STATE_COMPLETED);
    assert_int_equal(log_op->head.updated_ms, seen + 5);
}

static void
a_new_status_message_takes_the_place_of_the_old_when_it_is_durable(void **state)
{
    (void)state;
    log_op = fake_task_new(log_server);
    assert_null(sgi_op_status_message(log_op));
    log_append(SGI_ENTRY_STATUS, "{\"statusMessage\":\"one\"}");
    assert_null(sgi_op_status_message(log_op));
    fake_store_settle(&log_host);
    log_append(SGI_ENTRY_STATUS, "{\"statusMessage\":\"two\"}");
    log_append(SGI_ENTRY_STATUS, "{\"statusMessage\":\"three\"}");
    assert_string_equal(sgi_op_status_message(log_op), "one");
    assert_true(fake_store_take(&log_host));
    log_append(SGI_ENTRY_STATUS, "{\"statusMessage\":\"four\"}");
    fake_store_done(&log_host, SEGUE_OK);
    assert_string_equal(sgi_op_status_message(log_op), "three");
    fake_store_settle(&log_host);
    assert_string_equal(sgi_op_status_message(log_op), "four");
}

static void a_plain_operation_is_seen_at_once_and_needs_no_store(void **state)
{
    (void)state;
    log_op = fake_op_new(log_server);
    log_append(SGI_ENTRY_SEGMENT, "1");
    sgi_op_end(log_op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    assert_int_equal(sgi_op_state(log_op), SGI_STATE_COMPLETED);
    assert_int_equal(log_host.stores, 0);
    assert_false(fake_store_take(&log_host));
}

static void what_was_said_before_it_became_a_task_is_stored_too(void **state)
{
    (void)state;
    log_op = fake_op_new(log_server);
    log_append(SGI_ENTRY_SEGMENT, "1");
    log_append(SGI_ENTRY_FIELDS, "{\"a\":1}");
    assert_int_equal(sgi_op_turn_into_task(log_op, 0), SEGUE_OK);
    log_append(SGI_ENTRY_SEGMENT, "2");
    assert_int_equal(sgi_op_horizon(log_op), 0);
    fake_store_settle(&log_host);
    assert_int_equal(log_op->durable, 3);
    assert_replays();
}

static void a_rebuilt_operation_equals_the_one_that_was_lost(void **state)
{
    (void)state;
    log_op = fake_task_new(log_server);
    log_append(SGI_ENTRY_SEGMENT, "{\"type\":\"text\"}");
    log_append(SGI_ENTRY_STATUS,
               "{\"status\":\"working\",\"statusMessage\":\"h\\u00e4lf\"}");
    log_append(SGI_ENTRY_CHECKPOINT, "bytes");
    log_append(
        SGI_ENTRY_INPUT_ASK,
        "{\"key\":\"input-1\",\"method\":\"elicitation/create\",\"params\":{\"a\":1}}");
    log_append(SGI_ENTRY_INPUT_ASK,
               "{\"key\":\"input-2\",\"method\":\"elicitation/create\",\"params\":{}}");
    fake_host_advance(&log_host, 10);
    log_append(SGI_ENTRY_INPUT_ANSWER,
               "{\"key\":\"input-1\",\"response\":{\"action\":1}}");
    log_append(SGI_ENTRY_CHECKPOINT, "");
    fake_store_settle(&log_host);
    assert_replays();
    sgi_op_fail(log_op, SGI_ENTRY_ERROR, -32000, SGI_STR("no \"good\""), SGI_STR("[1]"));
    fake_store_settle(&log_host);
    assert_string_equal(log_op->head.final_data,
                        "{\"code\":-32000,\"message\":\"no \\\"good\\\"\",\"data\":[1]}");
    assert_replays();
}

/* ---- all or nothing ---- */

static void add(struct sgi_entry_list *list, int32_t kind, const char *payload)
{
    sgi_entry *entry = sgi_entry_new(&log_mem.mem, kind, payload, strlen(payload));
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
            log_op = fake_task_new(log_server);
            log_append(SGI_ENTRY_STATUS, "{\"statusMessage\":\"before\"}");
            log_append(SGI_ENTRY_CHECKPOINT, "old");
            log_append(SGI_ENTRY_INPUT_ASK,
                       "{\"key\":\"a\",\"method\":\"m\",\"params\":{}}");
            fake_store_settle(&log_host);
            add(&list, firsts[i].kind, firsts[i].payload);
            if (!sgi_entry_is_final(firsts[i].kind)) {
                add(&list, SGI_ENTRY_SEGMENT, "2");
                add(&list, SGI_ENTRY_FIELDS, "{\"a\":1}");
            }
            test_mem_rearm(&log_mem);
            log_mem.fail_at = at;
            segue_status status = sgi_op_append_list(log_op, &list);
            refused = log_mem.failed;
            test_mem_rearm(&log_mem);
            assert_int_equal(status, refused ? SEGUE_E_NOMEM : SEGUE_OK);
            assert_true(TAILQ_EMPTY(&list));
            if (refused)
                assert_null(log_op->pending);
            fake_store_settle(&log_host);
            assert_replays();
            sgi_op_unref(log_op);
            log_op = NULL;
        }
    }
}

static void without_memory_an_end_can_be_tried_again(void **state)
{
    (void)state;
    log_op = fake_task_new(log_server);
    fake_store_settle(&log_host);
    log_mem.fail_from = log_mem.calls + 1;
    assert_int_equal(sgi_op_fail(log_op, SGI_ENTRY_ERROR, 1, SGI_STR("x"), (sgi_json){0}),
                     SEGUE_E_NOMEM);
    assert_int_equal(sgi_op_end(log_op, SGI_ENTRY_RESULT, SGI_STR("{}")), SEGUE_E_NOMEM);
    assert_false(sgi_op_has_ended(log_op));
    test_mem_rearm(&log_mem);
    assert_int_equal(sgi_op_end(log_op, SGI_ENTRY_RESULT, SGI_STR("{}")), SEGUE_OK);
}

/* ---- limits ---- */

static void a_full_log_refuses_the_list_and_still_ends(void **state)
{
    (void)state;
    for (int task = 0; task < 2; task++) {
        log_op = task ? fake_task_new(log_server) : fake_op_new(log_server);
        log_op->committer->limits.max_result_bytes = 10;
        log_op->committer->limits.max_log_bytes = task ? 10 : 1;
        log_append(SGI_ENTRY_SEGMENT, "12345");
        struct sgi_entry_list list = TAILQ_HEAD_INITIALIZER(list);
        add(&list, SGI_ENTRY_SEGMENT, "123");
        add(&list, SGI_ENTRY_SEGMENT, "456");
        assert_int_equal(sgi_op_append_list(log_op, &list), SEGUE_E_LIMIT);
        assert_true(TAILQ_EMPTY(&list));
        assert_int_equal(log_op->head.next_log, 2);
        log_append(SGI_ENTRY_SEGMENT, "12345"); /* exactly as much as there is room for */
        assert_int_equal(sgi_op_append(log_op, SGI_ENTRY_SEGMENT, SGI_STR("1")),
                         SEGUE_E_LIMIT);
        assert_int_equal(sgi_op_end(log_op, SGI_ENTRY_CANCELLED, SGI_STR("{}")),
                         SEGUE_OK);
        sgi_op_unref(log_op);
        log_op = NULL;
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
        log_op = fake_task_new(log_server);
        fake_store_settle(&log_host);
        for (int i = 0; i < 70; i++)
            add(&list, SGI_ENTRY_SEGMENT, "{\"type\":\"text\",\"text\":\"x\"}");
        add(&list, SGI_ENTRY_RESULT, "{}");
        test_mem_rearm(&log_mem);
        log_mem.fail_at = at;
        segue_status status = sgi_op_append_list(log_op, &list);
        refused = log_mem.failed;
        test_mem_rearm(&log_mem);
        assert_int_equal(status, refused ? SEGUE_E_NOMEM : SEGUE_OK);
        assert_int_equal(log_op->head.next_log, refused ? 1 : 72);
        assert_int_equal(log_op->head.result->blocks, refused ? 0 : 70);
        fake_store_settle(&log_host);
        assert_replays();
        sgi_op_unref(log_op);
        log_op = NULL;
    }
    assert_true(failures > 0);
}

static void segments_are_counted_fields_are_not(void **state)
{
    (void)state;
    log_op = fake_op_new(log_server);
    log_op->committer->limits.max_segments = 2;
    log_append(SGI_ENTRY_SEGMENT, "1");
    log_append(SGI_ENTRY_FIELDS, "{}");
    log_append(SGI_ENTRY_SEGMENT, "2");
    log_append(SGI_ENTRY_FIELDS, "{}");
    assert_int_equal(sgi_op_append(log_op, SGI_ENTRY_SEGMENT, SGI_STR("3")),
                     SEGUE_E_LIMIT);
    log_append(SGI_ENTRY_FIELDS, "{}");
}

static void a_payload_too_large_for_an_entry_is_refused(void **state)
{
    (void)state;
    log_op = fake_op_new(log_server);
    assert_int_equal(
        sgi_op_append(log_op, SGI_ENTRY_SEGMENT, (sgi_str){"", SIZE_MAX / 4}),
        SEGUE_E_LIMIT);
}

static void producers_wait_while_too_much_is_not_durable(void **state)
{
    (void)state;
    log_host.engine.max_queue = 10;
    log_op = fake_task_new(log_server);
    log_append(SGI_ENTRY_SEGMENT, "123456789");
    assert_false(sgi_op_handler_must_wait(log_op));
    log_append(SGI_ENTRY_SEGMENT, "1");
    assert_true(sgi_op_handler_must_wait(log_op));
    fake_store_settle(&log_host);
    assert_false(sgi_op_handler_must_wait(log_op));
    sgi_op *plain = fake_op_new(log_server);
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
    log_server->use.account.limit.value = 10000;
    log_op = fake_task_new(log_server);
    fake_store_settle(&log_host);
    while (!sgi_op_handler_must_wait(log_op))
        log_append(SGI_ENTRY_SEGMENT, text);
    assert_in_range(log_server->use.account.bytes, 5000, 5000 + sizeof text);
    fake_store_settle(&log_host);
    assert_false(sgi_op_handler_must_wait(log_op));
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
    assert_ptr_equal(of, log_op);
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
    log_op = fake_task_new(log_server);
    sgi_op_wait_until_visible(log_op, &end.waiter, SGI_WAIT_FINAL);
    sgi_op_wait_until_visible(log_op, &late.waiter, 2);
    sgi_op_wait_until_visible(log_op, &early.waiter, 0); /* waits for the creation only */
    assert_int_equal(early.fired, 0);
    fake_store_settle(&log_host);
    assert_int_equal(early.fired, 1);
    log_append(SGI_ENTRY_SEGMENT, "1");
    fake_store_settle(&log_host);
    assert_int_equal(late.fired, 0);
    log_append(SGI_ENTRY_SEGMENT, "2");
    assert_int_equal(late.fired, 0);
    fake_store_settle(&log_host);
    assert_int_equal(late.fired, 1);
    assert_int_equal(end.fired, 0);
    sgi_op_end(log_op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    assert_int_equal(end.fired, 0);
    fake_store_settle(&log_host);
    assert_int_equal(end.fired, 1);
    assert_int_equal(end.status, SEGUE_OK);
    listener behind = {.waiter.fire = fire};
    /* the entry is visible already */
    sgi_op_wait_until_visible(log_op, &behind.waiter, SGI_WAIT_FINAL);
    assert_int_equal(behind.fired, 1);
    assert_null(behind.waiter.op);
}

static void a_waiter_of_a_plain_operation_fires_at_its_end(void **state)
{
    (void)state;
    listener l = {.waiter.fire = fire};
    log_op = fake_op_new(log_server);
    sgi_op_wait_until_visible(log_op, &l.waiter, SGI_WAIT_FINAL);
    log_append(SGI_ENTRY_SEGMENT, "1");
    assert_int_equal(l.fired, 0);
    sgi_op_end(log_op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    assert_int_equal(l.fired, 1);
}

static void one_that_gave_up_does_not_fire(void **state)
{
    (void)state;
    listener l = {.waiter.fire = fire};
    log_op = fake_task_new(log_server);
    sgi_op_wait_until_visible(log_op, &l.waiter, 1);
    sgi_op_wait_cancel(&l.waiter);
    sgi_op_wait_cancel(&l.waiter);
    log_append(SGI_ENTRY_SEGMENT, "1");
    fake_store_settle(&log_host);
    assert_int_equal(l.fired, 0);
}

/* A waiter that fires may end other waiters, also the waiter that would be next. */
static void one_that_fires_may_end_the_others(void **state)
{
    (void)state;
    listener *l[3];
    log_op = fake_task_new(log_server);
    for (int i = 0; i < 3; i++) {
        l[i] = calloc(1, sizeof *l[i]);
        l[i]->waiter.fire = fire;
        sgi_op_wait_until_visible(log_op, &l[i]->waiter, 0);
    }
    l[0]->ends = &l[1]->waiter;
    fake_store_settle(&log_host);
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
    log_op = fake_op_new(log_server);
    sgi_op_wait_until_visible(log_op, &l.waiter, SGI_WAIT_FINAL);
    sgi_op *mine = log_op;
    sgi_op_unref(mine);
    assert_int_equal(l.fired, 1);
    assert_int_equal(l.status, SEGUE_E_CLOSED);
    log_op = NULL;
}

/* ---- a store that fails ---- */

static void an_operation_that_was_not_created_never_was(void **state)
{
    (void)state;
    listener l = {.waiter.fire = fire};
    log_op = fake_task_new(log_server);
    log_append(SGI_ENTRY_SEGMENT, "1");
    log_append(SGI_ENTRY_INPUT_ASK, "{\"key\":\"k\",\"method\":\"m\",\"params\":{}}");
    sgi_op_wait_until_visible(log_op, &l.waiter, 0);
    fake_store_commit(&log_host, SEGUE_E_STORE_FULL);
    assert_int_equal(l.status, SEGUE_E_STORE_FULL);
    assert_false(sgi_op_is_known(log_op));
    assert_false(fake_store_take(&log_host));
    assert_int_equal(sgi_op_append(log_op, SGI_ENTRY_SEGMENT, SGI_STR("1")),
                     SEGUE_E_TERMINAL);
}

/* No client has seen entries that were not durable, so the state is the state of the log
 * without them. */
static void what_could_not_be_written_leaves_no_trace(void **state)
{
    (void)state;
    log_op = fake_task_new(log_server);
    log_append(SGI_ENTRY_SEGMENT, "1");
    log_append(SGI_ENTRY_STATUS, "{\"statusMessage\":\"kept\"}");
    log_append(SGI_ENTRY_CHECKPOINT, "kept");
    log_append(SGI_ENTRY_INPUT_ASK, "{\"key\":\"a\",\"method\":\"m\",\"params\":{}}");
    fake_store_settle(&log_host);
    fake_host_advance(&log_host, 7);
    log_append(SGI_ENTRY_INPUT_ANSWER, "{\"key\":\"a\",\"response\":{}}");
    log_append(SGI_ENTRY_INPUT_ASK, "{\"key\":\"b\",\"method\":\"m\",\"params\":{}}");
    log_append(SGI_ENTRY_STATUS, "{\"statusMessage\":\"lost\"}");
    log_append(SGI_ENTRY_CHECKPOINT, "lost");
    log_append(SGI_ENTRY_SEGMENT, "2");
    sgi_op_end(log_op, SGI_ENTRY_CANCELLED, SGI_STR("{}"));
    fake_store_commit(&log_host, SEGUE_E_STORE_FULL);
    assert_int_equal(log_op->head.final, SGI_FINAL_ERROR);
    assert_string_equal(sgi_op_status_message(log_op), "kept");
    assert_int_equal(TAILQ_FIRST(&log_op->head.inputs)->answered, 0);
    fake_store_settle(&log_host);
    assert_replays();
}

static sgi_op *new_stored_call(void)
{
    sgi_op *call = fake_op_new(log_server);
    call->head.tasking = SGI_TASKING_MAY;
    call->served->dialect = &sgi_srv_tasks_ext;
    assert_int_equal(sgi_op_store_without_task(call), SEGUE_OK);
    return call;
}

static void a_stored_call_becomes_a_task_by_its_log(void **state)
{
    (void)state;
    log_op = new_stored_call();
    log_append(SGI_ENTRY_SEGMENT, "1");
    fake_store_settle(&log_host);
    assert_false(sgi_op_is_task(log_op));
    assert_int_equal(sgi_op_turn_into_task(log_op, 5000), SEGUE_OK);
    assert_true(sgi_op_is_task(log_op));
    assert_int_equal(log_op->ttl_ms, 5000);
    assert_int_equal(log_op->served->who->live_tasks, 1);
    log_append(SGI_ENTRY_SEGMENT, "2");
    fake_store_settle(&log_host);
    assert_replays();
    sgi_op_end(log_op, SGI_ENTRY_CANCELLED, SGI_STR("{}"));
    fake_store_settle(&log_host);
    assert_int_equal(log_op->served->who->live_tasks, 0);
}

static void a_stored_call_whose_change_could_not_be_written_is_no_task(void **state)
{
    (void)state;
    log_op = new_stored_call();
    fake_store_settle(&log_host);
    assert_int_equal(sgi_op_turn_into_task(log_op, 5000), SEGUE_OK);
    fake_store_commit(&log_host, SEGUE_E_STORE_FULL);
    assert_false(sgi_op_is_task(log_op));
    assert_int_equal(log_op->head.task_seq, 0);
    fake_store_settle(&log_host);
    assert_int_equal(log_op->served->who->live_tasks, 0);
}

static void a_full_store_and_no_memory_at_once_end_it_all_the_same(void **state)
{
    (void)state;
    listener l = {.waiter.fire = fire};
    log_op = fake_task_new(log_server);
    fake_store_settle(&log_host);
    log_append(SGI_ENTRY_SEGMENT, "1");
    sgi_op_wait_until_visible(log_op, &l.waiter, SGI_WAIT_FINAL);
    assert_true(fake_store_take(&log_host));
    log_mem.fail_from = log_mem.calls + 1;
    fake_store_done(&log_host, SEGUE_E_STORE_FULL);
    test_mem_rearm(&log_mem);
    /* Segment "1" is missing, so no result may be made from the rest. */
    assert_int_equal(sgi_op_append(log_op, SGI_ENTRY_SEGMENT, SGI_STR("2")),
                     SEGUE_E_TERMINAL);
    assert_int_equal(sgi_op_end(log_op, SGI_ENTRY_RESULT, SGI_STR("{}")),
                     SEGUE_E_TERMINAL);
    for (int i = 0; i < 10; i++) {
        fake_store_settle(&log_host);
        fake_host_advance(&log_host, 250);
    }
    assert_int_equal(log_op->head.final, SGI_FINAL_ERROR);
    assert_int_equal(l.fired, 1);
    assert_int_equal(sgi_op_state(log_op), SGI_STATE_FAILED);
    assert_replays();
}

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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
