/* Answers that a server cannot take now: it does not know whether another server has
 * asked the question, or the answer cannot be kept. The client must send them again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/cluster/following.h"
#include "engine/log/refusal.h"
#include "engine/server/call.h"
#include "engine/server/inputs.h"
#include "engine/server/late_answer.h"
#include "support/log_stage.h"

static segue_status answer_unknown(sgi_op *op)
{
    return sgi_task_take_answer(op, SGI_STR("k9"), SGI_STR("{\"action\":\"decline\"}"));
}

/* Another server may have asked the question meanwhile. An answer that is ignored now
 * would be lost (seed 4035017). */
static void an_unknown_question_in_doubt_puts_its_answer_off(void **state)
{
    (void)state;
    for (int fenced = 0; fenced < 2; fenced++) {
        sgi_op *op = fake_task_new(log_server);
        fake_store_settle(&log_host);
        assert_int_equal(answer_unknown(op), SEGUE_OK);
        op->doubts.count++;
        sgi_committer_mark_dirty(&log_server->committer, op);
        assert_int_equal(answer_unknown(op), SEGUE_E_STORE);
        assert_true(sgi_task_is_put_off(op, SEGUE_E_STORE));
        assert_true(fake_store_commit(&log_host, fenced ? SEGUE_E_FENCED : SEGUE_OK));
        /* the log of the new owner is not read yet */
        assert_int_equal(answer_unknown(op), fenced ? SEGUE_E_STORE : SEGUE_OK);
        fake_store_settle(&log_host);
        assert_int_equal(answer_unknown(op), SEGUE_OK);
        sgi_op_unref(op);
    }
}

typedef struct search {
    int found;
    segue_status answered;
} search;

static void answer_found(void *user, sgi_op *op, segue_status status)
{
    search *s = user;
    assert_int_equal(status, SEGUE_OK);
    s->found++;
    s->answered = answer_unknown(op);
}

/* The newest entries of an operation of another server could not be read. An answer to
 * one of their questions would be lost. */
static void an_answer_without_the_newest_entries_is_put_off(void **state)
{
    (void)state;
    sgi_op *op = fake_task_new(log_server);
    fake_store_settle(&log_host);
    log_say(op, "1");
    assert_true(fake_store_commit(&log_host, SEGUE_E_FENCED));
    fake_store_settle(&log_host);
    for (int how = 0; how < 3; how++) {
        search s = {0};
        if (how == 1)
            log_mem.fail_from = log_mem.calls + 1;
        sgi_server_find_task(log_server, op->served->who, sgi_str_of(op->task_id),
                             answer_found, &s);
        test_mem_rearm(&log_mem);
        if (how != 1)
            assert_true(fake_store_answer(&log_host, how ? SEGUE_OK : SEGUE_E_STORE));
        assert_int_equal(s.found, 1);
        assert_int_equal(s.answered, how == 2 ? SEGUE_OK : SEGUE_E_STORE);
        fake_store_settle(&log_host);
        fake_host_advance(&log_host, 10000);
        fake_store_settle(&log_host);
    }
    sgi_op_unref(op);
}

/* The id of a question that was sent as a request names a position of the log. When this
 * server does not know the position, another server has asked. */
static void an_answer_to_a_position_not_read_yet_is_put_off(void **state)
{
    (void)state;
    sgi_op *op = fake_task_new(log_server);
    sgi_peer peer = {.server = log_server, .who = op->served->who};
    sgi_question_id_parts parts = {
        .whole = SGI_STR("id"), .operation = sgi_str_of(op->task_id), .position = 1};
    log_say(op, "1");
    fake_store_settle(&log_host);
    assert_int_equal(sgi_take_late_answer(&peer, &parts, false, SGI_STR("{}")),
                     SGI_ANSWERED_NOTHING);
    parts.position = 2;
    assert_int_equal(sgi_take_late_answer(&peer, &parts, false, SGI_STR("{}")),
                     SGI_ANSWERED_LATER);
    sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    fake_store_settle(&log_host);
    assert_int_equal(sgi_take_late_answer(&peer, &parts, false, SGI_STR("{}")),
                     SGI_ANSWERED_NOTHING);
    sgi_op_unref(op);
}

static bool has_retry(sgi_store_failure failure, segue_status status)
{
    sgi_store_refusal refusal = sgi_store_refusal_of(failure, status);
    return strstr(refusal.data, "retryAfterMs") != NULL;
}

/* A client whose change was put off learns when to request the change again. */
static void a_change_that_is_put_off_names_a_time(void **state)
{
    (void)state;
    static const segue_status reasons[] = {
        SEGUE_E_NOMEM, SEGUE_E_STORE, SEGUE_E_STORE_FULL, SEGUE_E_LIMIT, SEGUE_E_FENCED};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        assert_true(has_retry(SGI_PUT_OFF, reasons[i]));
    assert_false(has_retry(SGI_UNSTORED, SEGUE_E_NOMEM));
    assert_false(has_retry(SGI_UNSTORED, SEGUE_E_STORE));
    assert_false(has_retry(SGI_PUT_OFF, SEGUE_E_STORE_CORRUPT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(an_unknown_question_in_doubt_puts_its_answer_off),
        CASE(an_answer_without_the_newest_entries_is_put_off),
        CASE(an_answer_to_a_position_not_read_yet_is_put_off),
        CASE(a_change_that_is_put_off_names_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
