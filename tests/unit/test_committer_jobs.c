/* The jobs of a committer, claims and forwarded commands, and the end of a runtime. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "engine/cluster/recovery.h"
#include "engine/server/call.h"
#include "engine/cluster/following.h"
#include "engine/cluster/forwarding.h"
#include "support/log_stage.h"

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
    sgi_committer_init(&committer, &log_host.engine, &sgi_server_observer);
    done_count = 0;
    for (int i = 0; i < 3; i++)
        sgi_committer_add_job(
            &committer,
            sgi_store_job_new(&committer, SGI_STORE_JOB_PURGE, job_done, NULL));
    assert_int_equal(log_host.stores, 3);
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
        sgi_committer_add_job(&log_server->committer,
                              sgi_store_job_new(&log_server->committer,
                                                SGI_STORE_JOB_PURGE, job_done, NULL));
    assert_true(fake_store_answer(&log_host, SEGUE_OK));
    assert_int_equal(done_status, SEGUE_OK);
    sgi_server_shut_down(log_server);
    assert_true(fake_store_answer(&log_host, SEGUE_E_CLOSED));
    assert_int_equal(done_status, SEGUE_E_CLOSED);
    assert_true(fake_store_answer(&log_host, SEGUE_OK));
    assert_int_equal(done_count, 3);
    assert_false(fake_store_answer(&log_host, SEGUE_OK));
}

/* At the end all dirty writes are stored, and unfinished operations are released for the
 * next claim. */
static void at_the_end_all_is_written_and_released_once(void **state)
{
    (void)state;
    sgi_op *open = fake_task_new(log_server);
    sgi_op *ended = fake_task_new(log_server);
    log_say(open, "1");
    sgi_op_end(ended, SGI_ENTRY_RESULT, SGI_STR("{}"));
    sgi_server_shut_down(log_server);
    assert_int_equal(sgi_op_append(open, SGI_ENTRY_SEGMENT, SGI_STR("2")),
                     SEGUE_E_CLOSED);
    fake_store_settle(&log_host);
    assert_int_equal(log_rows_of(open), 1);
    assert_int_equal(fake_store_find(&log_host, open->id)->releases, 1);
    assert_int_equal(fake_store_find(&log_host, ended->id)->releases, 0);
    assert_true(fake_store_find(&log_host, ended->id)->record.ended);
    sgi_op_unref(open);
    sgi_op_unref(ended);
}

/* The last commit fails for all operations. Then each operation is committed alone, and
 * released if its commit succeeds. */
static void a_release_is_not_lost_with_a_failed_commit(void **state)
{
    (void)state;
    sgi_op *bad = fake_task_new(log_server);
    sgi_op *good = fake_task_new(log_server);
    fake_store_settle(&log_host);
    log_say(bad, "1");
    log_say(good, "1");
    sgi_server_shut_down(log_server);
    for (int i = 0; i < 3; i++) {
        assert_true(fake_store_take(&log_host));
        assert_int_equal(log_host.batch.op_count, i ? 1 : 2);
        log_commit_unless(bad);
    }
    assert_false(fake_store_take(&log_host));
    assert_int_equal(fake_store_find(&log_host, good->id)->releases, 1);
    assert_int_equal(fake_store_find(&log_host, bad->id)->releases, 0);
    assert_true(TAILQ_EMPTY(&log_server->committer.dirty));
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
            sgi_op *one = fake_task_new(log_server);
            sgi_op *two = count == 2 ? fake_task_new(log_server) : NULL;
            fake_store_settle(&log_host);
            log_say(one, "1");
            if (two)
                log_say(two, "1");
            assert_true(fake_store_take(&log_host));
            sgi_server_shut_down(log_server);
            fake_store_done(&log_host, ends[i]);
            while (fake_store_commit(&log_host, ends[i]))
                ;
            assert_true(TAILQ_EMPTY(&log_server->committer.dirty));
            assert_int_equal(log_server->committer.retry.slot, 0);
            assert_int_equal(fake_store_find(&log_host, one->id)->releases, i == 0);
            sgi_op_unref(one);
            if (two)
                sgi_op_unref(two);
            fake_server_end(log_server);
            log_server = fake_server_new(&log_host);
        }
    }
}

static void a_broken_operation_is_given_up_at_the_end(void **state)
{
    (void)state;
    sgi_op *op = fake_task_new(log_server);
    fake_store_settle(&log_host);
    log_say(op, "1");
    fake_store_commit(&log_host, SEGUE_E_STORE_FULL);
    assert_true(fake_store_take(&log_host)); /* the end of the operation */
    sgi_server_shut_down(log_server);
    fake_store_done(&log_host, SEGUE_E_STORE_FULL);
    while (fake_store_commit(&log_host, SEGUE_E_STORE_FULL))
        ;
    assert_true(TAILQ_EMPTY(&log_server->committer.dirty));
    assert_int_equal(log_server->committer.retry.slot, 0);
    sgi_op_unref(op);
}

static void without_memory_at_the_end_all_are_given_up(void **state)
{
    (void)state;
    sgi_op *ops[3];
    for (int i = 0; i < 3; i++) {
        ops[i] = fake_task_new(log_server);
        log_say(ops[i], "1");
    }
    sgi_server_shut_down(log_server);
    log_mem.fail_from = log_mem.calls + 1;
    assert_false(fake_store_take(&log_host));
    assert_true(TAILQ_EMPTY(&log_server->committer.dirty));
    test_mem_rearm(&log_mem);
    for (int i = 0; i < 3; i++)
        sgi_op_unref(ops[i]);
}

/* ---- claims and forwarded commands ---- */

static int runs;

static void run_and_leave(void *user, segue_call *call)
{
    (void)user;
    runs++;
    log_host.locked++;
    sgi_call_free(call);
    log_host.locked--;
}

/* Claims a task that another server has left; stores its id. */
static void claim_left(uint8_t id[SEGUE_STORE_ID_SIZE])
{
    sgi_op *op = fake_task_new(log_server);
    memcpy(id, op->id, sizeof op->id);
    fake_store_settle(&log_host);
    sgi_op_unref(op);
    fake_server_end(log_server);
    log_server = fake_server_new(&log_host);
    sgi_item *item = sgi_item_find(log_server, SEGUE_ITEM_TOOL, SGI_STR("tool"));
    item->options.flags |= SEGUE_TOOL_RESTARTABLE;
    item->options.on_call = run_and_leave;
    runs = 0;
    sgi_recover_orphans(&log_server->cluster);
    assert_true(fake_store_answer(&log_host, SEGUE_OK)); /* answers the claim; the task is
                                                      * read next */
    assert_int_equal(log_server->cluster.recovering, 1);
}

static sgi_op *op_of(const uint8_t *id)
{
    return sgi_cluster_known_op(&log_server->cluster, id);
}

static void pass_command(const uint8_t *id, uint64_t number, const char *text)
{
    sgi_change_feed feed;
    segue_store_news news = {
        .kind = SEGUE_STORE_LETTER, .number = number, .data_len = strlen(text)};
    memcpy(news.id, id, sizeof news.id);
    news.data = text;
    sgi_change_feed_reset(&feed, &log_server->committer);
    assert_int_equal(sgi_change_feed_add(&feed, &news), 0);
    sgi_change_feed_apply(&log_server->committer, &feed);
}

static void a_letter_waits_while_what_is_ours_cannot_be_read(void **state)
{
    (void)state;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    claim_left(id);
    assert_true(fake_store_answer(&log_host, SEGUE_E_STORE));
    assert_int_equal(log_server->cluster.recovering, 0);
    assert_null(op_of(id));
    pass_command(id, 1, "{\"cancel\":1}");
    fake_host_advance(&log_host, 1000); /* the log is read again */
    fake_store_settle(&log_host);
    assert_non_null(op_of(id));
    assert_int_equal(sgi_op_state(op_of(id)), SGI_STATE_CANCELLED);
    assert_true(TAILQ_EMPTY(&log_server->cluster.commands));
}

static void answer_all(void)
{
    while (fake_store_answer(&log_host, SEGUE_OK))
        ;
}

static void must_have_run_once(const uint8_t *id)
{
    fake_host_advance(&log_host, 1000); /* a log that could not be read is read again */
    answer_all();
    fake_host_deliver(&log_host);
    assert_int_equal(runs, 1);
    assert_int_equal(log_server->counts.taken_over, 1);
    assert_int_equal(log_server->cluster.recovering, 0);
    assert_int_equal(log_server->cluster.claims_by_id.count, 0);
    assert_true(TAILQ_EMPTY(&log_server->cluster.claims));
    assert_non_null(op_of(id));
    fake_store_settle(&log_host);
}

/* The server has received the claimed operation, and the store does not know this yet. */
static void a_claim_shown_again_while_it_is_read_runs_once(void **state)
{
    (void)state;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    claim_left(id);
    sgi_recover_orphans(&log_server->cluster);
    sgi_store_job *read = sgi_committer_take_job(&log_server->committer);
    assert_int_equal(read->kind, SGI_STORE_JOB_READ);
    assert_true(
        fake_store_answer(&log_host, SEGUE_OK)); /* the claim shows the operation */
    sgi_committer_add_job(&log_server->committer, read);
    answer_all();
    must_have_run_once(id);
}

static void a_claim_shown_again_while_it_waits_runs_once(void **state)
{
    (void)state;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    claim_left(id);
    sgi_recover_orphans(&log_server->cluster);
    assert_true(fake_store_answer(&log_host, SEGUE_E_STORE)); /* answers the read */
    answer_all();
    must_have_run_once(id);
}

/* Makes an operation that another server has taken over. */
static sgi_op *lose_one(void)
{
    sgi_op *op = fake_task_new(log_server);
    fake_store_settle(&log_host);
    log_say(op, "1");
    assert_true(fake_store_commit(&log_host, SEGUE_E_FENCED));
    fake_store_settle(&log_host);
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
            fake_host_advance(&log_host, 10000);
        sgi_followed_note_use(op); /* the server does not let go of it */
        assert_int_equal(sgi_forward_cancel(op), SEGUE_OK);
    }
    fake_host_advance(&log_host, 10000);
    sgi_followed_note_use(op);
    assert_true(LIST_EMPTY(&op->shared->forwards));
    assert_int_equal(log_server->cluster.forwards, SGI_FORWARDS_MAX);
    assert_int_equal(sgi_forward_cancel(op), SEGUE_E_LIMIT);
    fake_store_settle(&log_host);
    assert_int_equal(log_server->cluster.forwards, 0);
    assert_int_equal(log_server->cluster.forward_bytes, 0);
    assert_int_equal(sgi_forward_cancel(op), SEGUE_OK);
    fake_store_settle(&log_host);
    fake_host_advance(&log_host, 10000);
    sgi_op_unref(op);
}

/* The wait times out only when the forwarded cancel is durable: 2026-07-28 acknowledges
 * only durable cancels. */
static void a_wish_times_out_only_when_its_letter_is_durable(void **state)
{
    (void)state;
    enum { STORED, REFUSED, UNANSWERED, WAYS };
    for (int way = STORED; way < WAYS; way++) {
        log_listener l = {.waiter.fire = log_fire};
        sgi_op *op = lose_one();
        assert_int_equal(sgi_forward_cancel(op), SEGUE_OK);
        sgi_op_wait_for_requested_changes(op, &l.waiter);
        fake_host_advance(&log_host, 3000);
        assert_int_equal(l.fired, 0); /* the store has not answered */
        if (way == UNANSWERED) {
            fake_host_advance(&log_host, 7000);
        } else {
            assert_true(
                fake_store_answer(&log_host, way == STORED ? SEGUE_OK : SEGUE_E_STORE));
            assert_int_equal(l.fired, way == REFUSED);
            fake_host_advance(&log_host, 1000);
        }
        assert_int_equal(l.fired, 1);
        assert_int_equal(l.status, way == STORED ? SEGUE_E_TIMEOUT : SEGUE_E_STORE);
        fake_store_settle(&log_host); /* nobody waits for the late answer */
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
        sgi_store_job_new(&log_server->committer, SGI_STORE_JOB_READ, job_done, NULL);
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
    log_mem.fail_from = log_mem.calls + 1;
    assert_int_equal(sgi_store_job_add_record(job, &record), 1);
    assert_int_equal(job->status, SEGUE_E_NOMEM);
    job->status = SEGUE_OK;
    assert_int_equal(sgi_store_job_add_entry(job, &entry), 1);
    assert_int_equal(job->status, SEGUE_E_NOMEM);
    test_mem_rearm(&log_mem);
    sgi_store_job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
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
