/* Group commits, failed commits, and lookups in the store. */
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
#include "support/fake_host.h"
#include "support/test_mem.h"

static test_mem tm;
static fake_host host;
static segue_server *server;

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&tm);
    fake_host_init(&host, &tm.mem, 21);
    server = fake_server_new(&host);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fake_server_end(server);
    fake_host_free(&host);
    assert_int_equal(tm.live, 0);
    return 0;
}

static void say(sgi_op *op, const char *json)
{
    assert_int_equal(sgi_op_append(op, SGI_ENTRY_SEGMENT, sgi_str_of(json)), SEGUE_OK);
}

static size_t rows_of(const sgi_op *op)
{
    size_t count = 0;
    const fake_row *row = NULL;
    while ((row = fake_store_next(&host, op->id, row ? row->entry.seq : 0)))
        count++;
    return count;
}

/* Commits with OK, except batches with a write of `bad`. */
static void commit_unless(const sgi_op *bad)
{
    bool holds = false;
    for (size_t i = 0; i < host.batch.count; i++)
        holds |= !memcmp(host.batch.writes[i].id, bad->id, sizeof bad->id);
    fake_store_done(&host, holds ? SEGUE_E_STORE_FULL : SEGUE_OK);
}

static void all_that_is_dirty_goes_into_one_commit(void **state)
{
    (void)state;
    sgi_op *ops[3];
    for (int i = 0; i < 3; i++) {
        ops[i] = fake_task_new(server);
        say(ops[i], "1");
        say(ops[i], "2");
    }
    assert_true(fake_store_take(&host));
    assert_int_equal(host.batch.op_count, 3);
    assert_int_equal(host.batch.count, 9);
    for (size_t i = 0; i < 9; i++) {
        const segue_store_write *write = &host.batch.writes[i];
        assert_memory_equal(write->id, ops[i / 3]->id, sizeof write->id);
        assert_int_equal(write->kind, i % 3 ? SEGUE_STORE_APPEND : SEGUE_STORE_CREATE);
        if (i % 3)
            assert_int_equal(write->entry.seq, i % 3);
        else
            assert_string_equal(write->record->task_id, ops[i / 3]->task_id);
    }
    fake_store_done(&host, SEGUE_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ops[i]->durable, 2);
        assert_true(sgi_op_is_created(ops[i]));
        assert_null(ops[i]->record);
        sgi_op_unref(ops[i]);
    }
    assert_false(fake_store_take(&host));
}

static void what_comes_during_a_commit_goes_into_the_next(void **state)
{
    (void)state;
    sgi_op *op = fake_task_new(server);
    say(op, "1");
    assert_true(fake_store_take(&host));
    say(op, "2");
    say(op, "3");
    assert_true(TAILQ_EMPTY(&server->committer.dirty)); /* one batch at a time */
    fake_store_done(&host, SEGUE_OK);
    assert_int_equal(op->durable, 1);
    assert_true(fake_store_take(&host));
    assert_int_equal(host.batch.count, 2);
    assert_int_equal(host.batch.writes[0].kind, SEGUE_STORE_APPEND);
    assert_int_equal(host.batch.writes[0].entry.seq, 2);
    fake_store_done(&host, SEGUE_OK);
    assert_int_equal(op->durable, 3);
    sgi_op_unref(op);
}

static void the_end_is_written_behind_the_final_entry(void **state)
{
    (void)state;
    sgi_op *op = fake_task_new(server);
    say(op, "1");
    sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    assert_true(fake_store_take(&host));
    assert_int_equal(host.batch.count, 4);
    assert_int_equal(host.batch.writes[3].kind, SEGUE_STORE_END);
    assert_int_equal(host.batch.writes[3].purge_ms, op->created_ms + op->ttl_ms);
    fake_store_done(&host, SEGUE_OK);
    assert_int_equal(sgi_op_state(op), SGI_STATE_COMPLETED);
    sgi_op_unref(op);
}

static void a_very_long_log_is_written_in_several_commits(void **state)
{
    (void)state;
    sgi_op *op = fake_task_new(server);
    for (int i = 0; i < 20000; i++)
        say(op, "0");
    sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    int commits = 0;
    while (fake_store_commit(&host, SEGUE_OK))
        commits++;
    assert_in_range(commits, 3, 4);
    assert_int_equal(op->durable, 20001);
    assert_true(fake_store_find(&host, op->id)->record.ended);
    sgi_op_unref(op);
}

/* The outcome of the commit is not known, and another server may have taken the operation
 * over. So an end that is not stored is not reported. */
static void a_store_with_leases_is_waited_for(void **state)
{
    (void)state;
    sgi_op *op = fake_task_new(server);
    fake_store_settle(&host);
    server->committer.leased = true;
    say(op, "1");
    sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    for (int i = 0; i < 500; i++) {
        assert_true(fake_store_commit(&host, SEGUE_E_STORE));
        /* the commit is not tried again at once */
        assert_false(fake_store_commit(&host, SEGUE_E_STORE));
        fake_host_advance(&host, 250);
    }
    assert_int_equal(sgi_op_state(op), SGI_STATE_WORKING);
    assert_false(sgi_op_is_broken(op));
    assert_true(fake_store_commit(&host, SEGUE_OK));
    assert_int_equal(sgi_op_state(op), SGI_STATE_COMPLETED);
    assert_int_equal(rows_of(op), 2);
    sgi_op_unref(op);
}

/* When the server is fenced, writes that were not stored are taken back. */
static void who_is_fenced_takes_back_what_is_not_stored(void **state)
{
    (void)state;
    sgi_op *op = fake_task_new(server);
    say(op, "1");
    fake_store_settle(&host);
    say(op, "2");
    op->commands_taken = 1; /* the forwarded command led to that entry */
    sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    assert_true(fake_store_commit(&host, SEGUE_E_FENCED));
    assert_true(sgi_op_runs_elsewhere(op));
    assert_int_equal(op->commands_taken, 0); /* the forwarded command comes again and is
                                             * handled again */
    assert_int_equal(op->head.next_log, 2);
    assert_int_equal(sgi_op_state(op), SGI_STATE_WORKING);
    assert_int_equal(sgi_op_append(op, SGI_ENTRY_SEGMENT, SGI_STR("3")),
                     SEGUE_E_TERMINAL);
    assert_int_equal(server->cluster.counts.fenced, 1);
    fake_store_settle(&host); /* the operation is read anew */
    assert_false(op->shared->stale);
    assert_int_equal(op->durable, 1);
    assert_int_equal(rows_of(op), 1);
    sgi_op_unref(op);
}

static size_t deletions(void)
{
    size_t count = 0;
    for (size_t i = 0; i < host.batch.count; i++)
        count += host.batch.writes[i].kind == SEGUE_STORE_DELETE;
    return count;
}

/* What is asked of an operation during a commit is not part of that commit. */
static void a_deletion_during_a_commit_comes_with_the_next(void **state)
{
    (void)state;
    sgi_op *op = fake_task_new(server);
    assert_true(fake_store_take(&host));
    op->deleting = true;
    sgi_committer_mark_dirty(&server->committer, op);
    sgi_server_take_from_maps(op);
    assert_int_equal(deletions(), 0);
    fake_store_done(&host, SEGUE_OK);
    assert_true(op->deleting);
    assert_true(fake_store_take(&host));
    assert_int_equal(deletions(), 1);
    fake_store_done(&host, SEGUE_OK);
    assert_false(op->deleting);
    assert_null(fake_store_find(&host, op->id));
    assert_false(fake_store_take(&host));
    sgi_op_unref(op);
}

static void a_doubt_during_a_commit_is_cleared_by_the_next(void **state)
{
    (void)state;
    sgi_op *op = fake_task_new(server);
    assert_true(fake_store_take(&host));
    op->doubts.count++;
    sgi_committer_mark_dirty(&server->committer, op);
    fake_store_done(&host, SEGUE_OK);
    assert_true(sgi_op_is_in_doubt(op));
    assert_true(fake_store_take(&host));
    assert_int_equal(host.batch.count, 1);
    assert_int_equal(host.batch.writes[0].kind, SEGUE_STORE_TAKEN);
    fake_store_done(&host, SEGUE_E_FENCED);
    assert_true(sgi_op_runs_elsewhere(op));
    fake_store_settle(&host);
    sgi_op_unref(op);
}

/* Clients have received its end, so it keeps that end. */
static void who_has_ended_keeps_its_end(void **state)
{
    static const segue_status failures[] = {SEGUE_E_STORE_FULL, SEGUE_E_STATE,
                                            SEGUE_E_FENCED};
    (void)state;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        sgi_op *op = fake_task_new(server);
        say(op, "1");
        sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}"));
        fake_store_settle(&host);
        op->deleting = true;
        sgi_committer_mark_dirty(&server->committer, op);
        assert_true(fake_store_commit(&host, failures[i]));
        assert_int_equal(op->head.final, SGI_FINAL_RESULT);
        assert_int_equal(sgi_op_state(op), SGI_STATE_COMPLETED);
        op->deleting = false;
        fake_store_settle(&host);
        assert_int_equal(sgi_op_state(op), SGI_STATE_COMPLETED);
        assert_int_equal(rows_of(op), 2);
        sgi_op_unref(op);
    }
}

static void after_a_failed_commit_each_is_tried_alone(void **state)
{
    (void)state;
    sgi_op *ops[4];
    for (int i = 0; i < 4; i++)
        ops[i] = fake_task_new(server);
    fake_store_settle(&host);
    for (int i = 0; i < 4; i++)
        say(ops[i], "1");
    assert_true(fake_store_take(&host));
    assert_int_equal(host.batch.op_count, 4);
    fake_store_done(&host, SEGUE_E_STORE_FULL);
    for (int i = 0; i < 4; i++) {
        assert_false(sgi_op_has_ended(ops[i]));
        assert_int_equal(ops[i]->durable, 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_true(fake_store_take(&host));
        assert_int_equal(host.batch.op_count, 1);
        commit_unless(ops[2]);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ops[i]->head.final, i == 2 ? SGI_FINAL_ERROR : SGI_FINAL_NONE);
        assert_int_equal(rows_of(ops[i]), i == 2 ? 0 : 1);
        sgi_op_unref(ops[i]);
    }
}

/* However many new writes there are, those of the failed commit come first. */
static void a_failed_commit_is_not_put_off_by_new_writes(void **state)
{
    (void)state;
    sgi_op *bad = fake_task_new(server);
    sgi_op *good = fake_task_new(server);
    sgi_op *busy[3];
    for (int i = 0; i < 3; i++)
        busy[i] = fake_task_new(server);
    fake_store_settle(&host);
    say(bad, "1");
    say(good, "1");
    for (int round = 0; round < 4; round++) {
        assert_true(fake_store_take(&host));
        for (int i = 0; i < 3; i++)
            say(busy[i], "1");
        commit_unless(bad);
    }
    assert_int_equal(bad->head.final, SGI_FINAL_ERROR);
    assert_int_equal(rows_of(good), 1);
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
    sgi_op *op = fake_task_new(server);
    say(op, "1");
    fake_store_settle(&host);
    say(op, "2");
    say(op, "3");
    fake_store_commit(&host, SEGUE_E_STORE_FULL);
    assert_true(sgi_op_is_broken(op));
    assert_int_equal(op->head.final, SGI_FINAL_ERROR);
    assert_int_equal(sgi_op_state(op),
                     SGI_STATE_FAILED);     /* visible, though not durable */
    assert_int_equal(op->head.next_seg, 2); /* segments 2 and 3 were taken back */
    assert_int_equal(op->head.final_seq, 2);
    assert_non_null(strstr(op->head.final_data, "-32603"));
    assert_int_equal(sgi_op_append(op, SGI_ENTRY_SEGMENT, SGI_STR("4")),
                     SEGUE_E_TERMINAL);

    fake_store_commit(&host, SEGUE_E_STORE_FULL); /* the store is still full */
    /* the commit is not tried again at once */
    assert_false(fake_store_take(&host));
    int32_t asked = host.stores;
    fake_host_advance(&host, 250);
    assert_true(host.stores > asked);
    assert_true(fake_store_commit(&host, SEGUE_OK));
    assert_int_equal(rows_of(op), 2);
    assert_int_equal(fake_store_next(&host, op->id, 1)->entry.kind, SGI_ENTRY_ERROR);
    assert_true(fake_store_find(&host, op->id)->record.ended);
    sgi_op_unref(op);
}

static void others_go_on_while_one_cannot_be_written(void **state)
{
    (void)state;
    sgi_op *bad = fake_task_new(server);
    sgi_op *good = fake_task_new(server);
    fake_store_settle(&host);
    for (uint64_t round = 1; round <= 10; round++) {
        if (!sgi_op_has_ended(bad))
            say(bad, "1");
        say(good, "1");
        for (int i = 0; i < 4; i++) {
            if (fake_store_take(&host))
                commit_unless(bad);
            else
                fake_host_advance(&host, 250);
        }
        assert_int_equal(good->durable, round);
    }
    assert_true(sgi_op_is_broken(bad));
    assert_false(sgi_op_has_ended(good));
    sgi_op_unref(bad);
    sgi_op_unref(good);
}

typedef struct listener {
    sgi_waiter waiter;
    int fired;
    segue_status status;
} listener;

static void fire(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    listener *l = SGI_OWNER(waiter, listener, waiter);
    (void)op;
    l->fired++;
    l->status = status;
}

static void a_creation_that_exists_fails_alone_and_is_forgotten(void **state)
{
    (void)state;
    listener l = {.waiter.fire = fire};
    sgi_op *lost = fake_task_new(server);
    sgi_op *made = fake_task_new(server);
    sgi_op_wait_until_visible(lost, &l.waiter, 0);
    assert_true(fake_store_take(&host));
    assert_int_equal(host.batch.op_count, 2);
    fake_store_done(&host, SEGUE_E_EXISTS);
    assert_int_equal(l.fired, 0);
    while (fake_store_take(&host))
        fake_store_done(&host, memcmp(host.batch.writes[0].id, lost->id, 16)
                                   ? SEGUE_OK
                                   : SEGUE_E_EXISTS);
    assert_int_equal(l.fired, 1);
    assert_int_equal(l.status, SEGUE_E_EXISTS);
    assert_false(sgi_op_is_known(lost));
    assert_null(sgi_map_find(&server->cluster.by_task, sgi_str_of(lost->task_id)));
    assert_true(sgi_op_is_created(made));
    assert_non_null(sgi_map_find(&server->cluster.by_task, sgi_str_of(made->task_id)));
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
    listener l = {.waiter.fire = fire};
    sgi_op *op = fake_task_new(server);
    server->committer.leased = true;
    sgi_op_wait_until_visible(op, &l.waiter, 0);
    for (int i = 0; i < 100; i++) {
        assert_true(fake_store_commit(&host, SEGUE_E_STORE));
        assert_false(fake_store_commit(&host, SEGUE_E_STORE));
        fake_host_advance(&host, 250);
    }
    assert_int_equal(l.fired, 0);
    assert_true(sgi_op_is_known(op));
    assert_true(fake_store_commit(&host, SEGUE_OK));
    assert_int_equal(l.fired, 1);
    assert_int_equal(l.status, SEGUE_OK);
    assert_true(sgi_op_is_created(op));
    assert_true(sgi_op_is_owned_here(op));
    sgi_op_unref(op);
}

/* Commits what waits. The store applies the commit, and the answer is lost. */
static void commit_without_answer(void)
{
    assert_true(fake_store_take(&host));
    fake_store_land(&host);
    fake_store_done(&host, SEGUE_E_STORE);
    fake_host_advance(&host, 250);
}

/* The store has the operation and its first entries, although this server does not know
 * it. A refusal of the second attempt ends the operation in memory, and the end reaches
 * the store later, behind the entries. So the store keeps no operation that nobody
 * runs. */
static void a_creation_whose_answer_was_lost_ends_when_the_store_is_full(void **state)
{
    (void)state;
    server->committer.leased = true;
    for (uint64_t entries = 0; entries < 3; entries++) {
        listener made = {.waiter.fire = fire};
        sgi_op *op = fake_task_new(server);
        sgi_op_wait_until_visible(op, &made.waiter, 0);
        for (uint64_t i = 0; i < entries; i++)
            say(op, "1");
        commit_without_answer();
        assert_int_equal(made.fired, 0);
        assert_true(fake_store_commit(&host, SEGUE_E_STORE_FULL));
        assert_int_equal(made.fired, 1);
        assert_int_equal(made.status, SEGUE_OK);
        assert_true(sgi_op_is_known(op));
        assert_int_equal(sgi_op_state(op), SGI_STATE_FAILED);
        assert_null(op->record);
        assert_true(fake_store_commit(&host, SEGUE_E_STORE_FULL));
        fake_host_advance(&host, 250);
        assert_true(fake_store_commit(&host, SEGUE_OK));
        assert_true(fake_store_find(&host, op->id)->record.ended);
        assert_int_equal(rows_of(op), entries + 1);
        assert_int_equal(fake_store_next(&host, op->id, entries)->entry.kind,
                         SGI_ENTRY_ERROR);
        sgi_op_unref(op);
    }
}

/* The store does not have the operation, so its end need not be written. */
static void a_creation_that_was_never_applied_needs_no_end(void **state)
{
    (void)state;
    sgi_op *op = fake_task_new(server);
    server->committer.leased = true;
    assert_true(fake_store_commit(&host, SEGUE_E_STORE));
    fake_host_advance(&host, 250);
    assert_true(fake_store_commit(&host, SEGUE_E_STORE_FULL));
    assert_int_equal(sgi_op_state(op), SGI_STATE_FAILED);
    assert_true(fake_store_commit(&host, SEGUE_E_NOT_FOUND));
    fake_host_advance(&host, 1000);
    assert_false(fake_store_take(&host));
    sgi_op_unref(op);
}

/* The creation failed with an unknown outcome in the commit of several operations. */
static void a_creation_in_a_common_commit_can_have_an_unknown_outcome(void **state)
{
    (void)state;
    sgi_op *ops[2] = {fake_task_new(server), fake_task_new(server)};
    server->committer.leased = true;
    commit_without_answer();
    for (int i = 0; i < 2; i++)
        assert_true(fake_store_commit(&host, SEGUE_E_STORE_FULL));
    fake_store_settle(&host);
    for (int i = 0; i < 2; i++) {
        assert_true(fake_store_find(&host, ops[i]->id)->record.ended);
        sgi_op_unref(ops[i]);
    }
}

/* The store has entries that this server takes back, so the end comes behind them. */
static void the_end_comes_behind_entries_whose_answer_was_lost(void **state)
{
    (void)state;
    sgi_op *op = fake_task_new(server);
    fake_store_settle(&host);
    server->committer.leased = true;
    say(op, "1");
    say(op, "2");
    commit_without_answer();
    say(op, "3");
    assert_true(fake_store_commit(&host, SEGUE_E_STORE_FULL));
    assert_int_equal(op->head.final_seq, 3);
    assert_true(fake_store_commit(&host, SEGUE_OK));
    assert_int_equal(rows_of(op), 3);
    assert_true(fake_store_find(&host, op->id)->record.ended);
    sgi_op_unref(op);
}

/* Another server that has claimed the operation meanwhile runs it. It counts as created
 * here and is followed. */
static void a_creation_whose_answer_was_lost_is_followed(void **state)
{
    (void)state;
    listener made = {.waiter.fire = fire};
    listener end = {.waiter.fire = fire};
    sgi_op *op = fake_task_new(server);
    server->committer.leased = true;
    sgi_op_wait_until_visible(op, &made.waiter, 0);
    sgi_op_wait_until_visible(op, &end.waiter, SGI_WAIT_FINAL);
    assert_true(fake_store_take(&host));
    fake_store_land(&host);
    fake_store_done(&host, SEGUE_E_STORE);
    say(op, "1");
    sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    fake_host_advance(&host, 250);
    assert_true(fake_store_commit(&host, SEGUE_E_FENCED));
    assert_int_equal(made.fired, 1);
    assert_int_equal(made.status, SEGUE_OK);
    assert_int_equal(end.fired, 0);
    assert_true(sgi_op_is_created(op) &&
                sgi_op_runs_elsewhere(op)); /* so the operation does not run here */
    assert_true(op->shared->state == SGI_CLUSTER_OP_FOLLOWED);
    assert_null(op->record);
    assert_int_equal(op->head.next_log, 1);
    fake_store_settle(&host);
    assert_false(op->shared->stale);
    assert_int_equal(sgi_op_state(op), SGI_STATE_WORKING);
    assert_int_equal(rows_of(op), 0);
    sgi_op_wait_cancel(&end.waiter);
    sgi_op_unref(op);
}

/* The store has lost the operation, which ends in memory. Nothing is written for it any
 * more, not even a creation (seed 99771). */
static void what_the_store_has_lost_is_not_written(void **state)
{
    (void)state;
    sgi_op *op = fake_task_new(server);
    fake_store_settle(&host);
    say(op, "1");
    assert_true(fake_store_commit(&host, SEGUE_E_FENCED));
    assert_true(fake_store_answer(&host, SEGUE_E_NOT_FOUND));
    assert_int_equal(op->head.final, SGI_FINAL_EXPIRED);
    op->deleting = true; /* a client has received the end */
    sgi_committer_mark_dirty(&server->committer, op);
    assert_false(fake_store_take(&host));
    sgi_op_unref(op);
}

/* The operation waits for another attempt to write it. Meanwhile another server takes the
 * operation over, ends it, and deletes it. */
static void what_another_server_owns_leaves_the_list(void **state)
{
    (void)state;
    for (int lost = 0; lost < 2; lost++) {
        sgi_op *op = fake_task_new(server);
        fake_store_settle(&host);
        server->committer.leased = true;
        say(op, "1");
        assert_true(fake_store_commit(&host, SEGUE_E_STORE));
        assert_int_equal(op->writing, SGI_WRITING_DIRTY);
        sgi_op_give_up_to_new_owner(op);
        assert_true(fake_store_answer(&host, lost ? SEGUE_E_NOT_FOUND : SEGUE_OK));
        assert_int_equal(sgi_op_has_ended(op), lost);
        fake_host_advance(&host, 250);
        assert_false(fake_store_take(&host));
        assert_int_equal(op->writing, SGI_WRITING_NOTHING);
        fake_store_settle(&host);
        sgi_op_unref(op);
    }
}

/* A failed forwarded command affects only its own waiter. */
static void who_waits_for_a_letter_waits_for_no_other(void **state)
{
    (void)state;
    listener l = {.waiter.fire = fire};
    sgi_op *op = fake_task_new(server);
    fake_store_settle(&host);
    say(op, "1");
    assert_true(fake_store_commit(&host, SEGUE_E_FENCED));
    fake_store_settle(&host);
    sgi_forward_presence(op, true, 1);
    assert_int_equal(sgi_forward_cancel(op), SEGUE_OK);
    sgi_op_wait_for_requested_changes(op, &l.waiter);
    assert_true(fake_store_answer(&host, SEGUE_E_LIMIT));
    assert_int_equal(l.fired, 0);
    sgi_forward_presence(op, false, 1);
    assert_true(fake_store_answer(&host, SEGUE_OK));
    /* the operation is not open any more */
    assert_true(fake_store_answer(&host, SEGUE_E_NOT_FOUND));
    assert_int_equal(l.fired, 0);
    fake_host_advance(&host, 20000);
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
        ops[i] = fake_task_new(server);
        say(ops[i], "1");
        say(ops[i], "2");
    }
    fake_host_advance(&host, 1); /* gives the timers their room */
    tm.fail_from = tm.calls + 1;
    assert_false(fake_store_take(&host));
    test_mem_rearm(&tm);
    fake_host_advance(&host, 250);
    size_t refused = 0;
    for (int round = 0; round < 50; round++) {
        test_mem_rearm(&tm);
        tm.fail_at = (size_t)round % 3 + 1;
        if (fake_store_take(&host)) {
            refused += tm.failed;
            fake_store_done(&host, SEGUE_OK);
        } else {
            refused += tm.failed;
            fake_host_advance(&host, 250);
        }
    }
    assert_true(refused > 0);
    test_mem_rearm(&tm);
    fake_store_settle(&host);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(ops[i]->durable, 2);
        assert_int_equal(rows_of(ops[i]), 2);
        sgi_op_unref(ops[i]);
    }
}

/* ---- the end of the runtime ---- */

static int done_count;
static segue_status done_status;

static void job_done(sgi_store_job *job)
{
    done_count++;
    done_status = job->status;
    sgi_store_job_free(job);
}

static void jobs_that_wait_are_dropped_with_the_committer(void **state)
{
    (void)state;
    sgi_committer committer;
    sgi_committer_init(&committer, &host.engine, &sgi_server_observer);
    done_count = 0;
    for (int i = 0; i < 3; i++)
        sgi_committer_add_job(
            &committer,
            sgi_store_job_new(&committer, SGI_STORE_JOB_PURGE, job_done, NULL));
    assert_int_equal(host.stores, 3);
    sgi_committer_free(&committer); /* the server is gone, so nothing waits for a
                                     * report */
    assert_int_equal(done_count, 0);
    assert_null(sgi_committer_take_job(&committer));
}

static void jobs_are_answered_in_their_order_also_at_the_end(void **state)
{
    (void)state;
    done_count = 0;
    for (int i = 0; i < 3; i++)
        sgi_committer_add_job(
            &server->committer,
            sgi_store_job_new(&server->committer, SGI_STORE_JOB_PURGE, job_done, NULL));
    assert_true(fake_store_answer(&host, SEGUE_OK));
    assert_int_equal(done_status, SEGUE_OK);
    sgi_server_shut_down(server);
    assert_true(fake_store_answer(&host, SEGUE_E_CLOSED));
    assert_int_equal(done_status, SEGUE_E_CLOSED);
    assert_true(fake_store_answer(&host, SEGUE_OK));
    assert_int_equal(done_count, 3);
    assert_false(fake_store_answer(&host, SEGUE_OK));
}

/* At the end all dirty writes are stored, and unfinished operations are released for the
 * next claim. */
static void at_the_end_all_is_written_and_released_once(void **state)
{
    (void)state;
    sgi_op *open = fake_task_new(server);
    sgi_op *ended = fake_task_new(server);
    say(open, "1");
    sgi_op_end(ended, SGI_ENTRY_RESULT, SGI_STR("{}"));
    sgi_server_shut_down(server);
    assert_int_equal(sgi_op_append(open, SGI_ENTRY_SEGMENT, SGI_STR("2")),
                     SEGUE_E_CLOSED);
    fake_store_settle(&host);
    assert_int_equal(rows_of(open), 1);
    assert_int_equal(fake_store_find(&host, open->id)->releases, 1);
    assert_int_equal(fake_store_find(&host, ended->id)->releases, 0);
    assert_true(fake_store_find(&host, ended->id)->record.ended);
    sgi_op_unref(open);
    sgi_op_unref(ended);
}

/* The last commit fails for all operations. Then each operation is committed alone, and
 * released if its commit succeeds. */
static void a_release_is_not_lost_with_a_failed_commit(void **state)
{
    (void)state;
    sgi_op *bad = fake_task_new(server);
    sgi_op *good = fake_task_new(server);
    fake_store_settle(&host);
    say(bad, "1");
    say(good, "1");
    sgi_server_shut_down(server);
    for (int i = 0; i < 3; i++) {
        assert_true(fake_store_take(&host));
        assert_int_equal(host.batch.op_count, i ? 1 : 2);
        commit_unless(bad);
    }
    assert_false(fake_store_take(&host));
    assert_int_equal(fake_store_find(&host, good->id)->releases, 1);
    assert_int_equal(fake_store_find(&host, bad->id)->releases, 0);
    assert_true(TAILQ_EMPTY(&server->committer.dirty));
    sgi_op_unref(bad);
    sgi_op_unref(good);
}

/* The server ends while a commit is under way that succeeds or fails: nothing is kept. */
static void a_commit_that_ends_late_leaves_nothing_behind(void **state)
{
    (void)state;
    static const segue_status ends[] = {SEGUE_OK, SEGUE_E_STORE_FULL, SEGUE_E_CLOSED};
    for (size_t i = 0; i < 3; i++) {
        for (int count = 1; count <= 2; count++) {
            sgi_op *one = fake_task_new(server);
            sgi_op *two = count == 2 ? fake_task_new(server) : NULL;
            fake_store_settle(&host);
            say(one, "1");
            if (two)
                say(two, "1");
            assert_true(fake_store_take(&host));
            sgi_server_shut_down(server);
            fake_store_done(&host, ends[i]);
            while (fake_store_commit(&host, ends[i]))
                ;
            assert_true(TAILQ_EMPTY(&server->committer.dirty));
            assert_int_equal(server->committer.retry.slot, 0);
            assert_int_equal(fake_store_find(&host, one->id)->releases, i == 0);
            sgi_op_unref(one);
            if (two)
                sgi_op_unref(two);
            fake_server_end(server);
            server = fake_server_new(&host);
        }
    }
}

static void a_broken_operation_is_given_up_at_the_end(void **state)
{
    (void)state;
    sgi_op *op = fake_task_new(server);
    fake_store_settle(&host);
    say(op, "1");
    fake_store_commit(&host, SEGUE_E_STORE_FULL);
    assert_true(fake_store_take(&host)); /* the end of the operation */
    sgi_server_shut_down(server);
    fake_store_done(&host, SEGUE_E_STORE_FULL);
    while (fake_store_commit(&host, SEGUE_E_STORE_FULL))
        ;
    assert_true(TAILQ_EMPTY(&server->committer.dirty));
    assert_int_equal(server->committer.retry.slot, 0);
    sgi_op_unref(op);
}

static void without_memory_at_the_end_all_are_given_up(void **state)
{
    (void)state;
    sgi_op *ops[3];
    for (int i = 0; i < 3; i++) {
        ops[i] = fake_task_new(server);
        say(ops[i], "1");
    }
    sgi_server_shut_down(server);
    tm.fail_from = tm.calls + 1;
    assert_false(fake_store_take(&host));
    assert_true(TAILQ_EMPTY(&server->committer.dirty));
    test_mem_rearm(&tm);
    for (int i = 0; i < 3; i++)
        sgi_op_unref(ops[i]);
}

/* ---- claims and forwarded commands ---- */

static int runs;

static void run_and_leave(void *user, segue_call *call)
{
    (void)user;
    runs++;
    host.locked++;
    sgi_call_free(call);
    host.locked--;
}

/* Claims a task that another server has left; stores its id. */
static void claim_left(uint8_t id[SEGUE_STORE_ID_SIZE])
{
    sgi_op *op = fake_task_new(server);
    memcpy(id, op->id, sizeof op->id);
    fake_store_settle(&host);
    sgi_op_unref(op);
    fake_server_end(server);
    server = fake_server_new(&host);
    sgi_item *item = sgi_item_find(server, SEGUE_ITEM_TOOL, SGI_STR("tool"));
    item->options.flags |= SEGUE_TOOL_RESTARTABLE;
    item->options.on_call = run_and_leave;
    runs = 0;
    sgi_recover_orphans(&server->cluster);
    assert_true(fake_store_answer(&host, SEGUE_OK)); /* answers the claim; the task is
                                                      * read next */
    assert_int_equal(server->cluster.recovering, 1);
}

static sgi_op *op_of(const uint8_t *id)
{
    sgi_str key = {(const char *)id, SEGUE_STORE_ID_SIZE};
    sgi_map_node *node = sgi_map_find(&server->cluster.by_id, key);
    return sgi_op_by_id(node);
}

static void pass_command(const uint8_t *id, uint64_t number, const char *text)
{
    sgi_change_feed feed;
    segue_store_news news = {
        .kind = SEGUE_STORE_LETTER, .number = number, .data_len = strlen(text)};
    memcpy(news.id, id, sizeof news.id);
    news.data = text;
    sgi_change_feed_reset(&feed, &server->committer);
    assert_int_equal(sgi_change_feed_add(&feed, &news), 0);
    sgi_change_feed_apply(&server->committer, &feed);
}

static void a_letter_waits_while_what_is_ours_cannot_be_read(void **state)
{
    (void)state;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    claim_left(id);
    assert_true(fake_store_answer(&host, SEGUE_E_STORE));
    assert_int_equal(server->cluster.recovering, 0);
    assert_null(op_of(id));
    pass_command(id, 1, "{\"cancel\":1}");
    fake_host_advance(&host, 1000); /* the log is read again */
    fake_store_settle(&host);
    assert_non_null(op_of(id));
    assert_int_equal(sgi_op_state(op_of(id)), SGI_STATE_CANCELLED);
    assert_true(TAILQ_EMPTY(&server->cluster.commands));
}

static void answer_all(void)
{
    while (fake_store_answer(&host, SEGUE_OK))
        ;
}

static void must_have_run_once(const uint8_t *id)
{
    fake_host_advance(&host, 1000); /* a log that could not be read is read again */
    answer_all();
    fake_host_deliver(&host);
    assert_int_equal(runs, 1);
    assert_int_equal(server->counts.taken_over, 1);
    assert_int_equal(server->cluster.recovering, 0);
    assert_int_equal(server->cluster.claims_by_id.count, 0);
    assert_true(TAILQ_EMPTY(&server->cluster.claims));
    assert_non_null(op_of(id));
    fake_store_settle(&host);
}

/* The server has received the claimed operation, and the store does not know this yet. */
static void a_claim_shown_again_while_it_is_read_runs_once(void **state)
{
    (void)state;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    claim_left(id);
    sgi_recover_orphans(&server->cluster);
    sgi_store_job *read = sgi_committer_take_job(&server->committer);
    assert_int_equal(read->kind, SGI_STORE_JOB_READ);
    assert_true(fake_store_answer(&host, SEGUE_OK)); /* the claim shows the operation */
    sgi_committer_add_job(&server->committer, read);
    answer_all();
    must_have_run_once(id);
}

static void a_claim_shown_again_while_it_waits_runs_once(void **state)
{
    (void)state;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    claim_left(id);
    sgi_recover_orphans(&server->cluster);
    assert_true(fake_store_answer(&host, SEGUE_E_STORE)); /* answers the read */
    answer_all();
    must_have_run_once(id);
}

/* Makes an operation that another server has taken over. */
static sgi_op *lose_one(void)
{
    sgi_op *op = fake_task_new(server);
    fake_store_settle(&host);
    say(op, "1");
    assert_true(fake_store_commit(&host, SEGUE_E_FENCED));
    fake_store_settle(&host);
    assert_true(sgi_op_runs_elsewhere(op));
    return op;
}

/* No client waits for these commands any more, and the store has not taken them yet. */
static void letters_that_the_store_has_not_taken_count(void **state)
{
    (void)state;
    sgi_op *op = lose_one();
    for (size_t i = 0; i < SGI_FORWARDS_MAX; i++) {
        if (i % SGI_FORWARDS_EACH == 0)
            fake_host_advance(&host, 10000);
        assert_int_equal(sgi_forward_cancel(op), SEGUE_OK);
    }
    fake_host_advance(&host, 10000);
    assert_true(LIST_EMPTY(&op->shared->forwards));
    assert_int_equal(server->cluster.forwards, SGI_FORWARDS_MAX);
    assert_int_equal(sgi_forward_cancel(op), SEGUE_E_LIMIT);
    fake_store_settle(&host);
    assert_int_equal(server->cluster.forwards, 0);
    assert_int_equal(server->cluster.forward_bytes, 0);
    assert_int_equal(sgi_forward_cancel(op), SEGUE_OK);
    fake_store_settle(&host);
    fake_host_advance(&host, 10000);
    sgi_op_unref(op);
}

/* The wait times out only when the forwarded cancel is durable: 2026-07-28 acknowledges
 * only durable cancels. */
static void a_wish_times_out_only_when_its_letter_is_durable(void **state)
{
    (void)state;
    enum { STORED, REFUSED, UNANSWERED, WAYS };
    for (int way = STORED; way < WAYS; way++) {
        listener l = {.waiter.fire = fire};
        sgi_op *op = lose_one();
        assert_int_equal(sgi_forward_cancel(op), SEGUE_OK);
        sgi_op_wait_for_requested_changes(op, &l.waiter);
        fake_host_advance(&host, 3000);
        assert_int_equal(l.fired, 0); /* the store has not answered */
        if (way == UNANSWERED) {
            fake_host_advance(&host, 7000);
        } else {
            assert_true(
                fake_store_answer(&host, way == STORED ? SEGUE_OK : SEGUE_E_STORE));
            assert_int_equal(l.fired, way == REFUSED);
            fake_host_advance(&host, 1000);
        }
        assert_int_equal(l.fired, 1);
        assert_int_equal(l.status, way == STORED ? SEGUE_E_TIMEOUT : SEGUE_E_STORE);
        fake_store_settle(&host); /* nobody waits for the late answer */
        assert_int_equal(l.fired, 1);
        sgi_op_unref(op);
    }
}

/* ---- what a store hands over ---- */

static void records_and_entries_are_copied_or_the_job_says_so(void **state)
{
    (void)state;
    segue_store_record record = {.task_id = "abc", .data = NULL, .data_len = 0};
    segue_store_entry entry = {.seq = 1, .kind = SGI_ENTRY_SEGMENT, .data = NULL};
    sgi_store_job *job =
        sgi_store_job_new(&server->committer, SGI_STORE_JOB_READ, job_done, NULL);
    job->max_bytes = 10;
    assert_int_equal(sgi_store_job_add_record(job, &record), 0);
    record.data = "xyz";
    record.data_len = 3;
    assert_int_equal(sgi_store_job_add_record(job, &record), 0);
    assert_string_equal(TAILQ_FIRST(&job->found)->record.data, "");
    assert_string_equal(TAILQ_NEXT(TAILQ_FIRST(&job->found), link)->record.data, "xyz");
    assert_int_equal(sgi_store_job_add_entry(job, &entry), 0);
    entry.data = "0123456789";
    entry.data_len = 10;
    /* two entries are enough */
    assert_int_equal(sgi_store_job_add_entry(job, &entry), 1);
    assert_int_equal(job->status, SEGUE_OK);
    tm.fail_from = tm.calls + 1;
    assert_int_equal(sgi_store_job_add_record(job, &record), 1);
    assert_int_equal(job->status, SEGUE_E_NOMEM);
    job->status = SEGUE_OK;
    assert_int_equal(sgi_store_job_add_entry(job, &entry), 1);
    assert_int_equal(job->status, SEGUE_E_NOMEM);
    test_mem_rearm(&tm);
    sgi_store_job_free(job);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(all_that_is_dirty_goes_into_one_commit),
        CASE(what_comes_during_a_commit_goes_into_the_next),
        CASE(the_end_is_written_behind_the_final_entry),
        CASE(a_very_long_log_is_written_in_several_commits),
        CASE(a_store_with_leases_is_waited_for),
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
        CASE(jobs_that_wait_are_dropped_with_the_committer),
        CASE(jobs_are_answered_in_their_order_also_at_the_end),
        CASE(at_the_end_all_is_written_and_released_once),
        CASE(a_release_is_not_lost_with_a_failed_commit),
        CASE(a_commit_that_ends_late_leaves_nothing_behind),
        CASE(a_broken_operation_is_given_up_at_the_end),
        CASE(without_memory_at_the_end_all_are_given_up),
        CASE(a_letter_waits_while_what_is_ours_cannot_be_read),
        CASE(a_claim_shown_again_while_it_is_read_runs_once),
        CASE(a_claim_shown_again_while_it_waits_runs_once),
        CASE(letters_that_the_store_has_not_taken_count),
        CASE(a_wish_times_out_only_when_its_letter_is_durable),
        CASE(records_and_entries_are_copied_or_the_job_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
