/* Group commits and failed commits. test_committer_jobs.c has the jobs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "engine/cluster/following.h"
#include "engine/cluster/recovery.h"
#include "engine/server/call.h"
#include "engine/cluster/forwarding.h"
#include "support/log_stage.h"

static void all_that_is_dirty_goes_into_one_commit(void **state)
{
    (void)state;
    sgi_op *ops[3];
    for (int i = 0; i < 3; i++) {
        ops[i] = fake_task_new(log_server);
        log_say(ops[i], "1");
        log_say(ops[i], "2");
    }
    assert_true(fake_store_take(&log_host));
    assert_int_equal(log_host.batch.op_count, 3);
    assert_int_equal(log_host.batch.count, 9);
    for (size_t i = 0; i < 9; i++) {
        const segue_store_write *write = &log_host.batch.writes[i];
        assert_memory_equal(write->id, ops[i / 3]->id, sizeof write->id);
        assert_int_equal(write->kind, i % 3 ? SEGUE_STORE_APPEND : SEGUE_STORE_CREATE);
        if (i % 3)
            assert_int_equal(write->entry.seq, i % 3);
        else
            assert_string_equal(write->record->task_id, ops[i / 3]->task_id);
    }
    fake_store_done(&log_host, SEGUE_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ops[i]->durable, 2);
        assert_true(sgi_op_is_created(ops[i]));
        assert_null(ops[i]->record);
        sgi_op_unref(ops[i]);
    }
    assert_false(fake_store_take(&log_host));
}

static void what_comes_during_a_commit_goes_into_the_next(void **state)
{
    (void)state;
    sgi_op *op = fake_task_new(log_server);
    log_say(op, "1");
    assert_true(fake_store_take(&log_host));
    log_say(op, "2");
    log_say(op, "3");
    assert_true(TAILQ_EMPTY(&log_server->committer.dirty)); /* one batch at a time */
    fake_store_done(&log_host, SEGUE_OK);
    assert_int_equal(op->durable, 1);
    assert_true(fake_store_take(&log_host));
    assert_int_equal(log_host.batch.count, 2);
    assert_int_equal(log_host.batch.writes[0].kind, SEGUE_STORE_APPEND);
    assert_int_equal(log_host.batch.writes[0].entry.seq, 2);
    fake_store_done(&log_host, SEGUE_OK);
    assert_int_equal(op->durable, 3);
    sgi_op_unref(op);
}

static void the_end_is_written_behind_the_final_entry(void **state)
{
    (void)state;
    sgi_op *op = fake_task_new(log_server);
    log_say(op, "1");
    sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    assert_true(fake_store_take(&log_host));
    assert_int_equal(log_host.batch.count, 4);
    assert_int_equal(log_host.batch.writes[3].kind, SEGUE_STORE_END);
    assert_int_equal(log_host.batch.writes[3].purge_ms, op->created_ms + op->ttl_ms);
    fake_store_done(&log_host, SEGUE_OK);
    assert_int_equal(sgi_op_state(op), SGI_STATE_COMPLETED);
    sgi_op_unref(op);
}

static void a_very_long_log_is_written_in_several_commits(void **state)
{
    (void)state;
    sgi_op *op = fake_task_new(log_server);
    for (int i = 0; i < 20000; i++)
        log_say(op, "0");
    sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    int commits = 0;
    while (fake_store_commit(&log_host, SEGUE_OK))
        commits++;
    assert_in_range(commits, 3, 4);
    assert_int_equal(op->durable, 20001);
    assert_true(fake_store_find(&log_host, op->id)->record.ended);
    sgi_op_unref(op);
}

/* The outcome of the commit is not known, and another server may have taken the operation
 * over. So an end that is not stored is not reported. */
static void a_store_with_leases_is_waited_for(void **state)
{
    (void)state;
    sgi_op *op = fake_task_new(log_server);
    fake_store_settle(&log_host);
    log_server->committer.leased = true;
    log_say(op, "1");
    sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    for (int i = 0; i < 500; i++) {
        assert_true(fake_store_commit(&log_host, SEGUE_E_STORE));
        /* the commit is not tried again at once */
        assert_false(fake_store_commit(&log_host, SEGUE_E_STORE));
        fake_host_advance(&log_host, 250);
    }
    assert_int_equal(sgi_op_state(op), SGI_STATE_WORKING);
    assert_false(sgi_op_is_broken(op));
    assert_true(fake_store_commit(&log_host, SEGUE_OK));
    assert_int_equal(sgi_op_state(op), SGI_STATE_COMPLETED);
    assert_int_equal(log_rows_of(op), 2);
    sgi_op_unref(op);
}

/* The store was not free, so nothing was written, and nothing is wrong with one of the
 * operations. They stay together. */
static void a_commit_that_timed_out_comes_again(void **state)
{
    (void)state;
    sgi_op *ops[2];
    fake_store_settle(&log_host);
    for (int i = 0; i < 2; i++) {
        ops[i] = fake_task_new(log_server);
        log_say(ops[i], "1");
    }
    for (int i = 0; i < 500; i++) {
        assert_true(fake_store_commit(&log_host, SEGUE_E_TIMEOUT));
        assert_false(fake_store_commit(&log_host, SEGUE_E_TIMEOUT)); /* not at once */
        log_say(ops[0], "2");
        fake_host_advance(&log_host, 250);
    }
    assert_true(fake_store_take(&log_host));
    assert_int_equal(log_host.batch.op_count, 2);
    fake_store_done(&log_host, SEGUE_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sgi_op_state(ops[i]), SGI_STATE_WORKING);
        assert_int_equal(ops[i]->durable, i ? 1 : 501);
        sgi_op_unref(ops[i]);
    }
}

/* When the server is fenced, writes that were not stored are taken back. */
static void who_is_fenced_takes_back_what_is_not_stored(void **state)
{
    (void)state;
    sgi_op *op = fake_task_new(log_server);
    log_say(op, "1");
    fake_store_settle(&log_host);
    log_say(op, "2");
    op->commands_taken = 1; /* the forwarded command led to that entry */
    sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    assert_true(fake_store_commit(&log_host, SEGUE_E_FENCED));
    assert_true(sgi_op_runs_elsewhere(op));
    assert_int_equal(op->commands_taken, 0); /* the forwarded command comes again and is
                                             * handled again */
    assert_int_equal(op->head.next_log, 2);
    assert_int_equal(sgi_op_state(op), SGI_STATE_WORKING);
    assert_int_equal(sgi_op_append(op, SGI_ENTRY_SEGMENT, SGI_STR("3")),
                     SEGUE_E_TERMINAL);
    assert_int_equal(log_server->cluster.counts.fenced, 1);
    fake_store_settle(&log_host); /* the operation is read anew */
    assert_false(op->shared->stale);
    assert_int_equal(op->durable, 1);
    assert_int_equal(log_rows_of(op), 1);
    sgi_op_unref(op);
}

static size_t deletions(void)
{
    size_t count = 0;
    for (size_t i = 0; i < log_host.batch.count; i++)
        count += log_host.batch.writes[i].kind == SEGUE_STORE_DELETE;
    return count;
}

/* What is asked of an operation during a commit is not part of that commit. */
static void a_deletion_during_a_commit_comes_with_the_next(void **state)
{
    (void)state;
    sgi_op *op = fake_task_new(log_server);
    assert_true(fake_store_take(&log_host));
    op->deleting = true;
    sgi_committer_mark_dirty(&log_server->committer, op);
    sgi_server_take_from_maps(op);
    assert_int_equal(deletions(), 0);
    fake_store_done(&log_host, SEGUE_OK);
    assert_true(op->deleting);
    assert_true(fake_store_take(&log_host));
    assert_int_equal(deletions(), 1);
    fake_store_done(&log_host, SEGUE_OK);
    assert_false(op->deleting);
    assert_null(fake_store_find(&log_host, op->id));
    assert_false(fake_store_take(&log_host));
    sgi_op_unref(op);
}

static void a_doubt_during_a_commit_is_cleared_by_the_next(void **state)
{
    (void)state;
    sgi_op *op = fake_task_new(log_server);
    assert_true(fake_store_take(&log_host));
    op->doubts.count++;
    sgi_committer_mark_dirty(&log_server->committer, op);
    fake_store_done(&log_host, SEGUE_OK);
    assert_true(sgi_op_is_in_doubt(op));
    assert_true(fake_store_take(&log_host));
    assert_int_equal(log_host.batch.count, 1);
    assert_int_equal(log_host.batch.writes[0].kind, SEGUE_STORE_TAKEN);
    fake_store_done(&log_host, SEGUE_E_FENCED);
    assert_true(sgi_op_runs_elsewhere(op));
    fake_store_settle(&log_host);
    sgi_op_unref(op);
}

/* Clients have received its end, so it keeps that end. */
static void who_has_ended_keeps_its_end(void **state)
{
    static const segue_status failures[] = {SEGUE_E_STORE_FULL, SEGUE_E_STATE,
                                            SEGUE_E_FENCED};
    (void)state;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        sgi_op *op = fake_task_new(log_server);
        log_say(op, "1");
        sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}"));
        fake_store_settle(&log_host);
        op->deleting = true;
        sgi_committer_mark_dirty(&log_server->committer, op);
        assert_true(fake_store_commit(&log_host, failures[i]));
        assert_int_equal(op->head.final, SGI_FINAL_RESULT);
        assert_int_equal(sgi_op_state(op), SGI_STATE_COMPLETED);
        op->deleting = false;
        fake_store_settle(&log_host);
        assert_int_equal(sgi_op_state(op), SGI_STATE_COMPLETED);
        assert_int_equal(log_rows_of(op), 2);
        sgi_op_unref(op);
    }
}

static void after_a_failed_commit_each_is_tried_alone(void **state)
{
    (void)state;
    sgi_op *ops[4];
    for (int i = 0; i < 4; i++)
        ops[i] = fake_task_new(log_server);
    fake_store_settle(&log_host);
    for (int i = 0; i < 4; i++)
        log_say(ops[i], "1");
    assert_true(fake_store_take(&log_host));
    assert_int_equal(log_host.batch.op_count, 4);
    fake_store_done(&log_host, SEGUE_E_STORE_FULL);
    for (int i = 0; i < 4; i++) {
        assert_false(sgi_op_has_ended(ops[i]));
        assert_int_equal(ops[i]->durable, 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_true(fake_store_take(&log_host));
        assert_int_equal(log_host.batch.op_count, 1);
        log_commit_unless(ops[2]);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ops[i]->head.final, i == 2 ? SGI_FINAL_ERROR : SGI_FINAL_NONE);
        assert_int_equal(log_rows_of(ops[i]), i == 2 ? 0 : 1);
        sgi_op_unref(ops[i]);
    }
}

/* However many new writes there are, those of the failed commit come first. */
static void a_failed_commit_is_not_put_off_by_new_writes(void **state)
{
    (void)state;
    sgi_op *bad = fake_task_new(log_server);
    sgi_op *good = fake_task_new(log_server);
    sgi_op *busy[3];
    for (int i = 0; i < 3; i++)
        busy[i] = fake_task_new(log_server);
    fake_store_settle(&log_host);
    log_say(bad, "1");
    log_say(good, "1");
    for (int round = 0; round < 4; round++) {
        assert_true(fake_store_take(&log_host));
        for (int i = 0; i < 3; i++)
            log_say(busy[i], "1");
        log_commit_unless(bad);
    }
    assert_int_equal(bad->head.final, SGI_FINAL_ERROR);
    assert_int_equal(log_rows_of(good), 1);
    assert_false(sgi_op_has_ended(good));
    for (int i = 0; i < 3; i++) {
        assert_false(sgi_op_has_ended(busy[i]));
        sgi_op_unref(busy[i]);
    }
    sgi_op_unref(bad);
    sgi_op_unref(good);
}

/* AS-114, as the engine sees it. */
static void a_full_store_ends_the_operation_and_the_end_is_written_later(void **state)
{
    (void)state;
    sgi_op *op = fake_task_new(log_server);
    log_say(op, "1");
    fake_store_settle(&log_host);
    log_say(op, "2");
    log_say(op, "3");
    fake_store_commit(&log_host, SEGUE_E_STORE_FULL);
    assert_true(sgi_op_is_broken(op));
    assert_int_equal(op->head.final, SGI_FINAL_ERROR);
    assert_int_equal(sgi_op_state(op),
                     SGI_STATE_FAILED);     /* visible, though not durable */
    assert_int_equal(op->head.next_seg, 2); /* segments 2 and 3 were taken back */
    assert_int_equal(op->head.final_seq, 2);
    assert_non_null(strstr(op->head.final_data, "-32603"));
    assert_int_equal(sgi_op_append(op, SGI_ENTRY_SEGMENT, SGI_STR("4")),
                     SEGUE_E_TERMINAL);

    fake_store_commit(&log_host, SEGUE_E_STORE_FULL); /* the store is still full */
    /* the commit is not tried again at once */
    assert_false(fake_store_take(&log_host));
    int32_t asked = log_host.stores;
    fake_host_advance(&log_host, 250);
    assert_int_equal(log_server->committer.counts.retries, 1);
    assert_true(log_host.stores > asked);
    assert_true(fake_store_commit(&log_host, SEGUE_OK));
    assert_int_equal(log_rows_of(op), 2);
    assert_int_equal(fake_store_next(&log_host, op->id, 1)->entry.kind, SGI_ENTRY_ERROR);
    assert_true(fake_store_find(&log_host, op->id)->record.ended);
    sgi_op_unref(op);
}

static void others_go_on_while_one_cannot_be_written(void **state)
{
    (void)state;
    sgi_op *bad = fake_task_new(log_server);
    sgi_op *good = fake_task_new(log_server);
    fake_store_settle(&log_host);
    for (uint64_t round = 1; round <= 10; round++) {
        if (!sgi_op_has_ended(bad))
            log_say(bad, "1");
        log_say(good, "1");
        for (int i = 0; i < 4; i++) {
            if (fake_store_take(&log_host))
                log_commit_unless(bad);
            else
                fake_host_advance(&log_host, 250);
        }
        assert_int_equal(good->durable, round);
    }
    assert_true(sgi_op_is_broken(bad));
    assert_false(sgi_op_has_ended(good));
    sgi_op_unref(bad);
    sgi_op_unref(good);
}

static void a_creation_that_exists_fails_alone_and_is_forgotten(void **state)
{
    (void)state;
    log_listener l = {.waiter.fire = log_fire};
    sgi_op *lost = fake_task_new(log_server);
    sgi_op *made = fake_task_new(log_server);
    sgi_op_wait_until_visible(lost, &l.waiter, 0);
    assert_true(fake_store_take(&log_host));
    assert_int_equal(log_host.batch.op_count, 2);
    fake_store_done(&log_host, SEGUE_E_EXISTS);
    assert_int_equal(l.fired, 0);
    while (fake_store_take(&log_host))
        fake_store_done(&log_host, memcmp(log_host.batch.writes[0].id, lost->id, 16)
                                       ? SEGUE_OK
                                       : SEGUE_E_EXISTS);
    assert_int_equal(l.fired, 1);
    assert_int_equal(l.status, SEGUE_E_EXISTS);
    assert_false(sgi_op_is_known(lost));
    assert_null(sgi_cluster_known_task(&log_server->cluster, sgi_str_of(lost->task_id)));
    assert_true(sgi_op_is_created(made));
    assert_non_null(
        sgi_cluster_known_task(&log_server->cluster, sgi_str_of(made->task_id)));
    assert_int_equal(sgi_op_append(lost, SGI_ENTRY_SEGMENT, SGI_STR("1")),
                     SEGUE_E_TERMINAL);
    sgi_op_unref(lost);
    sgi_op_unref(made);
}

/* A failed creation is tried again. If the store has applied it nevertheless, no other
 * server would run the operation. */
static void a_creation_waits_for_a_store_with_leases(void **state)
{
    (void)state;
    log_listener l = {.waiter.fire = log_fire};
    sgi_op *op = fake_task_new(log_server);
    log_server->committer.leased = true;
    sgi_op_wait_until_visible(op, &l.waiter, 0);
    for (int i = 0; i < 100; i++) {
        assert_true(fake_store_commit(&log_host, SEGUE_E_STORE));
        assert_false(fake_store_commit(&log_host, SEGUE_E_STORE));
        fake_host_advance(&log_host, 250);
    }
    assert_int_equal(l.fired, 0);
    assert_true(sgi_op_is_known(op));
    assert_true(fake_store_commit(&log_host, SEGUE_OK));
    assert_int_equal(l.fired, 1);
    assert_int_equal(l.status, SEGUE_OK);
    assert_true(sgi_op_is_created(op));
    assert_true(sgi_op_is_owned_here(op));
    sgi_op_unref(op);
}

/* Commits what waits. The store applies the commit, and the answer is lost. */
static void commit_without_answer(void)
{
    assert_true(fake_store_take(&log_host));
    fake_store_land(&log_host);
    fake_store_done(&log_host, SEGUE_E_STORE);
    fake_host_advance(&log_host, 250);
}

/* The store has the operation and its first entries, although this server does not know
 * it. A refusal of the second attempt ends the operation in memory, and the end reaches
 * the store later, behind the entries. So the store keeps no operation that nobody
 * runs. */
static void a_creation_whose_answer_was_lost_ends_when_the_store_is_full(void **state)
{
    (void)state;
    log_server->committer.leased = true;
    for (uint64_t entries = 0; entries < 3; entries++) {
        log_listener made = {.waiter.fire = log_fire};
        sgi_op *op = fake_task_new(log_server);
        sgi_op_wait_until_visible(op, &made.waiter, 0);
        for (uint64_t i = 0; i < entries; i++)
            log_say(op, "1");
        commit_without_answer();
        assert_int_equal(made.fired, 0);
        assert_true(fake_store_commit(&log_host, SEGUE_E_STORE_FULL));
        assert_int_equal(made.fired, 1);
        assert_int_equal(made.status, SEGUE_OK);
        assert_true(sgi_op_is_known(op));
        assert_int_equal(sgi_op_state(op), SGI_STATE_FAILED);
        assert_null(op->record);
        assert_true(fake_store_commit(&log_host, SEGUE_E_STORE_FULL));
        fake_host_advance(&log_host, 250);
        assert_true(fake_store_commit(&log_host, SEGUE_OK));
        assert_true(fake_store_find(&log_host, op->id)->record.ended);
        assert_int_equal(log_rows_of(op), entries + 1);
        assert_int_equal(fake_store_next(&log_host, op->id, entries)->entry.kind,
                         SGI_ENTRY_ERROR);
        sgi_op_unref(op);
    }
}

/* The store does not have the operation, so its end need not be written. */
static void a_creation_that_was_never_applied_needs_no_end(void **state)
{
    (void)state;
    sgi_op *op = fake_task_new(log_server);
    log_server->committer.leased = true;
    assert_true(fake_store_commit(&log_host, SEGUE_E_STORE));
    fake_host_advance(&log_host, 250);
    assert_true(fake_store_commit(&log_host, SEGUE_E_STORE_FULL));
    assert_int_equal(sgi_op_state(op), SGI_STATE_FAILED);
    assert_true(fake_store_commit(&log_host, SEGUE_E_NOT_FOUND));
    fake_host_advance(&log_host, 1000);
    assert_false(fake_store_take(&log_host));
    sgi_op_unref(op);
}

/* The creation failed with an unknown outcome in the commit of several operations. */
static void a_creation_in_a_common_commit_can_have_an_unknown_outcome(void **state)
{
    (void)state;
    sgi_op *ops[2] = {fake_task_new(log_server), fake_task_new(log_server)};
    log_server->committer.leased = true;
    commit_without_answer();
    for (int i = 0; i < 2; i++)
        assert_true(fake_store_commit(&log_host, SEGUE_E_STORE_FULL));
    fake_store_settle(&log_host);
    for (int i = 0; i < 2; i++) {
        assert_true(fake_store_find(&log_host, ops[i]->id)->record.ended);
        sgi_op_unref(ops[i]);
    }
}

/* The store has entries that this server takes back, so the end comes behind them. */
static void the_end_comes_behind_entries_whose_answer_was_lost(void **state)
{
    (void)state;
    sgi_op *op = fake_task_new(log_server);
    fake_store_settle(&log_host);
    log_server->committer.leased = true;
    log_say(op, "1");
    log_say(op, "2");
    commit_without_answer();
    log_say(op, "3");
    assert_true(fake_store_commit(&log_host, SEGUE_E_STORE_FULL));
    assert_int_equal(op->head.final_seq, 3);
    assert_true(fake_store_commit(&log_host, SEGUE_OK));
    assert_int_equal(log_rows_of(op), 3);
    assert_true(fake_store_find(&log_host, op->id)->record.ended);
    sgi_op_unref(op);
}

/* Another server that has claimed the operation meanwhile runs it. It counts as created
 * here and is followed. */
static void a_creation_whose_answer_was_lost_is_followed(void **state)
{
    (void)state;
    log_listener made = {.waiter.fire = log_fire};
    log_listener end = {.waiter.fire = log_fire};
    sgi_op *op = fake_task_new(log_server);
    log_server->committer.leased = true;
    sgi_op_wait_until_visible(op, &made.waiter, 0);
    sgi_op_wait_until_visible(op, &end.waiter, SGI_WAIT_FINAL);
    assert_true(fake_store_take(&log_host));
    fake_store_land(&log_host);
    fake_store_done(&log_host, SEGUE_E_STORE);
    log_say(op, "1");
    sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    fake_host_advance(&log_host, 250);
    assert_true(fake_store_commit(&log_host, SEGUE_E_FENCED));
    assert_int_equal(made.fired, 1);
    assert_int_equal(made.status, SEGUE_OK);
    assert_int_equal(end.fired, 0);
    assert_true(sgi_op_is_created(op) &&
                sgi_op_runs_elsewhere(op)); /* so the operation does not run here */
    assert_true(op->shared->state == SGI_CLUSTER_OP_FOLLOWED);
    assert_null(op->record);
    assert_int_equal(op->head.next_log, 1);
    fake_store_settle(&log_host);
    assert_false(op->shared->stale);
    assert_int_equal(sgi_op_state(op), SGI_STATE_WORKING);
    assert_int_equal(log_rows_of(op), 0);
    sgi_op_wait_cancel(&end.waiter);
    sgi_op_unref(op);
}

/* The store has lost the operation, which ends in memory. Nothing is written for it any
 * more, not even a creation (seed 99771). */
static void what_the_store_has_lost_is_not_written(void **state)
{
    (void)state;
    sgi_op *op = fake_task_new(log_server);
    fake_store_settle(&log_host);
    log_say(op, "1");
    assert_true(fake_store_commit(&log_host, SEGUE_E_FENCED));
    assert_true(fake_store_answer(&log_host, SEGUE_E_NOT_FOUND));
    assert_int_equal(op->head.final, SGI_FINAL_EXPIRED);
    op->deleting = true; /* a client has received the end */
    sgi_committer_mark_dirty(&log_server->committer, op);
    assert_false(fake_store_take(&log_host));
    sgi_op_unref(op);
}

/* The operation waits for another attempt to write it. Meanwhile another server takes the
 * operation over, ends it, and deletes it. */
static void what_another_server_owns_leaves_the_list(void **state)
{
    (void)state;
    for (int lost = 0; lost < 2; lost++) {
        sgi_op *op = fake_task_new(log_server);
        fake_store_settle(&log_host);
        log_server->committer.leased = true;
        log_say(op, "1");
        assert_true(fake_store_commit(&log_host, SEGUE_E_STORE));
        assert_int_equal(op->writing, SGI_WRITING_DIRTY);
        sgi_op_give_up_to_new_owner(op);
        assert_true(fake_store_answer(&log_host, lost ? SEGUE_E_NOT_FOUND : SEGUE_OK));
        assert_int_equal(sgi_op_has_ended(op), lost);
        fake_host_advance(&log_host, 250);
        assert_false(fake_store_take(&log_host));
        assert_int_equal(op->writing, SGI_WRITING_NOTHING);
        fake_store_settle(&log_host);
        sgi_op_unref(op);
    }
}

/* A failed forwarded command affects only its own waiter. */
static void who_waits_for_a_letter_waits_for_no_other(void **state)
{
    (void)state;
    log_listener l = {.waiter.fire = log_fire};
    sgi_op *op = fake_task_new(log_server);
    fake_store_settle(&log_host);
    log_say(op, "1");
    assert_true(fake_store_commit(&log_host, SEGUE_E_FENCED));
    fake_store_settle(&log_host);
    sgi_forward_presence(op, true, 1);
    assert_int_equal(sgi_forward_cancel(op), SEGUE_OK);
    sgi_op_wait_for_requested_changes(op, &l.waiter);
    assert_true(fake_store_answer(&log_host, SEGUE_E_LIMIT));
    assert_int_equal(l.fired, 0);
    sgi_forward_presence(op, false, 1);
    assert_true(fake_store_answer(&log_host, SEGUE_OK));
    /* the operation is not open any more */
    assert_true(fake_store_answer(&log_host, SEGUE_E_NOT_FOUND));
    assert_int_equal(l.fired, 0);
    fake_host_advance(&log_host, 20000);
    assert_int_equal(l.fired, 1);
    assert_int_equal(l.status, SEGUE_E_TIMEOUT);
    sgi_op_unref(op);
}

/* Without memory for a batch the commit is tried again later, and nothing is lost. */
static void without_memory_for_a_batch_it_is_tried_again(void **state)
{
    (void)state;
    sgi_op *ops[40];
    for (int i = 0; i < 40; i++) {
        ops[i] = fake_task_new(log_server);
        log_say(ops[i], "1");
        log_say(ops[i], "2");
    }
    fake_host_advance(&log_host, 1); /* gives the timers their room */
    log_mem.fail_from = log_mem.calls + 1;
    assert_false(fake_store_take(&log_host));
    test_mem_rearm(&log_mem);
    fake_host_advance(&log_host, 250);
    size_t refused = 0;
    for (int round = 0; round < 50; round++) {
        test_mem_rearm(&log_mem);
        log_mem.fail_at = (size_t)round % 3 + 1;
        if (fake_store_take(&log_host)) {
            refused += log_mem.failed;
            fake_store_done(&log_host, SEGUE_OK);
        } else {
            refused += log_mem.failed;
            fake_host_advance(&log_host, 250);
        }
    }
    assert_true(refused > 0);
    test_mem_rearm(&log_mem);
    fake_store_settle(&log_host);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(ops[i]->durable, 2);
        assert_int_equal(log_rows_of(ops[i]), 2);
        sgi_op_unref(ops[i]);
    }
}

/* ---- what a store hands over ---- */

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(all_that_is_dirty_goes_into_one_commit),
        CASE(what_comes_during_a_commit_goes_into_the_next),
        CASE(the_end_is_written_behind_the_final_entry),
        CASE(a_very_long_log_is_written_in_several_commits),
        CASE(a_store_with_leases_is_waited_for),
        CASE(a_commit_that_timed_out_comes_again),
        CASE(who_is_fenced_takes_back_what_is_not_stored),
        CASE(a_deletion_during_a_commit_comes_with_the_next),
        CASE(a_doubt_during_a_commit_is_cleared_by_the_next),
        CASE(who_has_ended_keeps_its_end),
        CASE(after_a_failed_commit_each_is_tried_alone),
        CASE(a_failed_commit_is_not_put_off_by_new_writes),
        CASE(a_full_store_ends_the_operation_and_the_end_is_written_later),
        CASE(others_go_on_while_one_cannot_be_written),
        CASE(a_creation_that_exists_fails_alone_and_is_forgotten),
        CASE(a_creation_waits_for_a_store_with_leases),
        CASE(a_creation_whose_answer_was_lost_ends_when_the_store_is_full),
        CASE(a_creation_that_was_never_applied_needs_no_end),
        CASE(a_creation_in_a_common_commit_can_have_an_unknown_outcome),
        CASE(the_end_comes_behind_entries_whose_answer_was_lost),
        CASE(a_creation_whose_answer_was_lost_is_followed),
        CASE(what_the_store_has_lost_is_not_written),
        CASE(what_another_server_owns_leaves_the_list),
        CASE(who_waits_for_a_letter_waits_for_no_other),
        CASE(without_memory_for_a_batch_it_is_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
