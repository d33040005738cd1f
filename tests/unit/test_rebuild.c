/* A log that is read back in pieces. Between the first and the last piece the operation
 * is not usable: nothing of the operation is written, run, dropped or shown, whatever
 * happens in between. This file also tests readers of a log of which the store has more
 * entries than the operation's head knows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/dialect/rows.h"
#include "engine/server/dialects.h"
#include "engine/log/dropping.h"
#include "engine/log/reader.h"
#include "engine/cluster/recovery.h"
#include "engine/cluster/following.h"
#include "engine/server/call.h"
#include "engine/dialect/resumable/resumable_clock.h"
#include "engine/server/task.h"
#include "support/fake_host.h"
#include "support/test_mem.h"

#define AWAY SGI_ENTRY_PRESENCE, "{\"away\":1}"
#define HERE SGI_ENTRY_PRESENCE, "{\"away\":0}"
#define ASK "{\"key\":\"k\",\"method\":\"m\",\"params\":{}}"
#define PIECES_MAX 64 /* more than any log here has */

static const size_t sizes[] = {1, 30, 1 << 20}; /* size of a piece: one entry, some,
                                                 * all */

static test_mem tm;
static fake_host host;
static segue_server *server;
static char task_id[SGI_OPERATION_TEXT + 1];

static void begin_server(size_t read_bytes)
{
    server = fake_server_new(&host);
    server->committer.read_bytes = read_bytes;
    server->committer.retention = (sgi_retention_limits){.ttl_ms = 1000};
    sgi_item_find(server, SEGUE_ITEM_TOOL, SGI_STR("tool"))->options.flags =
        SEGUE_TOOL_RESTARTABLE;
}

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&tm);
    fake_host_init(&host, &tm.mem, 31);
    begin_server(1);
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

/* ---- operations ---- */

typedef struct line {
    sgi_entry_kind kind;
    const char *text;
} line;

static void append(sgi_op *op, sgi_entry_kind kind, const char *text)
{
    assert_int_equal(sgi_op_append(op, kind, sgi_str_of(text)), SEGUE_OK);
    fake_store_settle(&host);
}

static void append_all(sgi_op *op, const line *lines, size_t count)
{
    for (size_t i = 0; i < count; i++)
        append(op, lines[i].kind, lines[i].text);
}

static sgi_op *new_op(void)
{
    sgi_op *op = fake_op_new(server);
    assert_true(sgi_operation_text(&server->engine->env, task_id));
    assert_true(sgi_random(&server->engine->env, op->id, sizeof op->id));
    sgi_op_set_hold(op, SGI_HOLD_HERE);
    return op;
}

static void log_it(sgi_op *op)
{
    assert_int_equal(sgi_op_turn_into_stored(op, sgi_str_of(task_id)), SEGUE_OK);
    fake_store_settle(&host);
}

/* An operation of dialect Z (resumable calls), whose client comes and goes. Entries about
 * earlier connections have no meaning any more, and a store may still have them. */
static sgi_op *new_resumable(void)
{
    sgi_op *op = new_op();
    assert_true(sgi_lasting_call_read(
        op, SGI_STR("{\"resume\":{\"id\":1,\"token\":"
                    "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\","
                    "\"level\":-1,\"max\":60000}}")));
    op->ttl_ms = -1;
    log_it(op);
    return op;
}

/* Dialect X with a key; the store keeps its events for a second. */
static sgi_op *new_keyed(void)
{
    static uint8_t key[SGI_DIGEST_SIZE]; /* another key each time */
    static const uint8_t digest[SGI_DIGEST_SIZE] = {2};
    sgi_op *op = new_op();
    key[0]++;
    assert_true(sgi_op_set_idempotency_key(op, key, digest));
    op->head.tasking = SGI_TASKING_YES;
    op->served->dialect = &sgi_srv_tasks_ext;
    op->ttl_ms = 3600 * 1000;
    log_it(op);
    return op;
}

/* A call of dialect X that was stored before it became a task. */
static sgi_op *new_stored_call(void)
{
    static const uint8_t digest[SGI_DIGEST_SIZE] = {3};
    sgi_op *op = new_op();
    assert_true(sgi_op_set_idempotency_key(op, digest, digest));
    op->head.tasking = SGI_TASKING_MAY;
    op->served->dialect = &sgi_srv_tasks_ext;
    op->ttl_ms = 3600 * 1000;
    log_it(op);
    return op;
}

static const line come_and_gone[] = {
    {SGI_ENTRY_SEGMENT, "\"1\""}, {AWAY}, {SGI_ENTRY_SEGMENT, "\"2\""}, {HERE},
    {SGI_ENTRY_SEGMENT, "\"3\""}, {AWAY}, {SGI_ENTRY_CHECKPOINT, "c"}};
static const line begun_anew[] = {{SGI_ENTRY_SEGMENT, "\"1\""},
                                  {SGI_ENTRY_SEGMENT, "\"2\""},
                                  {SGI_ENTRY_REPLACE, "{}"},
                                  {SGI_ENTRY_SEGMENT, "\"3\""},
                                  {SGI_ENTRY_CHECKPOINT, "c"}};
static const line turned[] = {{SGI_ENTRY_SEGMENT, "\"1\""},
                              {SGI_ENTRY_TASK, "{\"ttl\":60000}"},
                              {SGI_ENTRY_SEGMENT, "\"2\""},
                              {SGI_ENTRY_SEGMENT, "\"3\""},
                              {SGI_ENTRY_CHECKPOINT, "c"}};
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The server ends, and another one starts. */
static void leave(sgi_op *op, size_t read_bytes)
{
    sgi_op_unref(op);
    fake_server_end(server);
    fake_host_advance(&host, 5000);
    begin_server(read_bytes);
    server->stage = SGI_SERVER_NEW;
}

static sgi_op *known(void)
{
    return sgi_cluster_known_task(&server->cluster, sgi_str_of(task_id));
}

/* Claims, and reads the first piece. */
static void begin_to_read(void)
{
    sgi_server_start_recovery(server);
    assert_true(fake_store_answer(&host, SEGUE_OK));
    assert_true(fake_store_answer(&host, SEGUE_OK));
    assert_int_equal(server->stage, SGI_SERVER_RECOVERING);
}

static void must_go_on_from(uint64_t segment)
{
    sgi_op *op = known();
    assert_non_null(op);
    assert_int_equal(server->counts.calls, 1);
    assert_int_equal(server->counts.taken_over, 1);
    assert_true(op->served->call && op->served->call->earlier);
    assert_int_equal(op->served->call->earlier->segment, segment);
    assert_int_equal(op->served->call->earlier->len, 1);
    append(op, SGI_ENTRY_SEGMENT, "\"4\"");
    assert_int_equal(op->head.next_seg, 5);
    assert_int_equal(sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}")), SEGUE_OK);
    fake_store_settle(&host);
    sgi_op *copy = fake_op_replay(&host, op);
    const char *difference = fake_op_difference(op, copy);
    if (difference)
        print_error("%s\n", difference);
    assert_null(difference);
    sgi_op_unref(copy);
}

/* ---- outcomes ---- */

/* Until the whole log is read, the store is not asked to write, and no handler runs. */
static void nothing_is_written_or_run_before_all_is_read(sgi_op *(*make)(void),
                                                         const line *lines, size_t count)
{
    for (size_t i = 0; i < COUNT(sizes); i++) {
        sgi_op *op = make();
        append_all(op, lines, count);
        leave(op, sizes[i]);
        sgi_server_start_recovery(server);
        for (int n = 0; !known(); n++) {
            assert_true(n < PIECES_MAX);
            assert_false(fake_store_take(&host));
            assert_int_equal(server->counts.calls, 0);
            assert_true(fake_store_answer(&host, SEGUE_OK));
        }
        fake_store_settle(&host);
        must_go_on_from(3);
    }
}

static void a_resumable_one_goes_on_once(void **state)
{
    (void)state;
    nothing_is_written_or_run_before_all_is_read(new_resumable, come_and_gone,
                                                 COUNT(come_and_gone));
}

static void a_keyed_one_goes_on_once(void **state)
{
    (void)state;
    nothing_is_written_or_run_before_all_is_read(new_keyed, begun_anew,
                                                 COUNT(begun_anew));
}

static void a_stored_call_goes_on_as_the_task_that_it_became(void **state)
{
    (void)state;
    sgi_op *op = new_stored_call();
    append_all(op, turned, COUNT(turned));
    leave(op, 1);
    sgi_server_start_recovery(server);
    fake_store_settle(&host);
    op = known();
    assert_true(sgi_op_is_task(op));
    assert_int_equal(op->head.task_seq, 2);
    assert_int_equal(op->ttl_ms, 60000);
    assert_int_equal(op->served->who->live_tasks, 1);
    must_go_on_from(3);
}

/* ---- meanwhile ---- */

typedef struct finder {
    sgi_op *op;
    segue_status status;
    int fired;
} finder;

static void found(void *user, sgi_op *op, segue_status status)
{
    finder *f = user;
    f->op = op;
    f->status = status;
    f->fired++;
}

static void look_for(sgi_op *like, finder *f)
{
    sgi_server_find_task(server, like ? like->served->who : NULL, sgi_str_of(task_id),
                         found, f);
}

/* A request for the operation reads the log separately and gets the operation that
 * runs. */
static void who_asks_meanwhile_gets_the_same(void **state)
{
    (void)state;
    finder first = {0}, second = {0};
    sgi_op *op = new_resumable();
    append_all(op, come_and_gone, COUNT(come_and_gone));
    leave(op, 1);
    begin_to_read();
    look_for(NULL, &first);
    for (int i = 0; i < 3; i++)
        fake_store_answer(&host, SEGUE_OK);
    look_for(NULL, &second);
    assert_int_equal(first.fired + second.fired, 0);
    fake_store_settle(&host);
    assert_int_equal(first.fired, 1);
    assert_int_equal(second.fired, 1);
    assert_ptr_equal(first.op, known());
    assert_ptr_equal(second.op, known());
    must_go_on_from(3);
}

/* A server follows the operation when its owner ends: after the claim nothing is read
 * twice. */
static void one_that_was_asked_for_first_is_taken_over(void **state)
{
    (void)state;
    finder f = {0};
    sgi_op *op = new_resumable();
    append_all(op, come_and_gone, COUNT(come_and_gone));
    leave(op, 1);
    server->stage = SGI_SERVER_OPEN;
    look_for(NULL, &f);
    for (int i = 0; i < 3; i++)
        fake_store_answer(&host, SEGUE_OK);
    sgi_recover_orphans(&server->cluster);
    fake_store_settle(&host);
    assert_int_equal(f.fired, 1);
    assert_ptr_equal(f.op, known());
    assert_true(sgi_op_is_owned_here(known()));
    must_go_on_from(3);
}

/* R-1905-26: the store has lost the end of the log, so the operation ends and does not
 * run again, whatever began to read it first. */
static void must_end_with_what_is_left(void)
{
    sgi_op *op = known();
    assert_non_null(op);
    assert_int_equal(server->counts.calls, 0);
    assert_int_equal(server->counts.taken_over, 1);
    assert_true(sgi_op_has_ended(op));
}

static void a_torn_one_that_was_asked_for_first_ends(void **state)
{
    (void)state;
    /* the look-up has asked for the record; has begun to read; has read some; and all */
    for (int answers = 1; answers < 12; answers++) {
        finder f = {0};
        sgi_op *op = new_resumable();
        append_all(op, come_and_gone, COUNT(come_and_gone));
        leave(op, 1);
        server->stage = SGI_SERVER_OPEN;
        look_for(NULL, &f);
        for (int i = 1; i < answers; i++)
            fake_store_answer(&host, SEGUE_OK);
        host.torn = true;
        sgi_recover_orphans(&server->cluster);
        fake_store_settle(&host);
        assert_int_equal(f.fired, 1);
        must_end_with_what_is_left();
        host.torn = false;
    }
}

/* The claim is given twice. The second time says that the end is lost. */
static void one_whose_second_claim_is_torn_ends(void **state)
{
    (void)state;
    sgi_op *op = new_resumable();
    append_all(op, come_and_gone, COUNT(come_and_gone));
    leave(op, 1);
    begin_to_read();
    host.torn = true;
    sgi_recover_orphans(&server->cluster);
    fake_store_settle(&host);
    must_end_with_what_is_left();
}

static void a_store_that_fails_is_asked_again(void **state)
{
    (void)state;
    sgi_op *op = new_resumable();
    append_all(op, come_and_gone, COUNT(come_and_gone));
    leave(op, 1);
    begin_to_read();
    assert_true(fake_store_answer(&host, SEGUE_E_STORE));
    fake_store_settle(&host);
    assert_null(known());
    assert_int_equal(server->counts.calls, 0);
    fake_host_advance(&host, 1000);
    fake_store_settle(&host);
    must_go_on_from(3);
}

/* The operation is released, and none of it ran. */
static void a_server_that_dies_lets_it_go(void **state)
{
    (void)state;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    sgi_op *op = new_resumable();
    memcpy(id, op->id, sizeof id);
    append_all(op, come_and_gone, COUNT(come_and_gone));
    uint64_t last = fake_store_find(&host, id)->last_seq;
    leave(op, 1);
    begin_to_read();
    sgi_server_shut_down(server);
    fake_store_settle(&host);
    assert_int_equal(server->counts.calls, 0);
    assert_int_equal(fake_store_find(&host, id)->last_seq, last);
    assert_int_equal(fake_store_find(&host, id)->releases, 1);
}

/* A forwarded command of another server asks for the end. */
static void a_letter_waits_for_all_of_it(void **state)
{
    (void)state;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    sgi_change_feed feed;
    segue_store_news cancel = {.kind = SEGUE_STORE_LETTER, .number = 1};
    sgi_op *op = new_resumable();
    memcpy(id, op->id, sizeof id);
    append_all(op, come_and_gone, COUNT(come_and_gone));
    leave(op, 1);
    begin_to_read();
    memcpy(cancel.id, id, sizeof id);
    cancel.data = "{\"cancel\":1}";
    cancel.data_len = strlen(cancel.data);
    sgi_change_feed_reset(&feed, &server->committer);
    assert_int_equal(sgi_change_feed_add(&feed, &cancel), 0);
    cancel.kind = SEGUE_STORE_DOUBT;
    assert_int_equal(sgi_change_feed_add(&feed, &cancel), 0);
    sgi_change_feed_apply(&server->committer, &feed);
    assert_int_equal(server->cluster.command_count, 1);
    assert_false(fake_store_take(&host));
    while (!known())
        assert_true(fake_store_answer(&host, SEGUE_OK));
    assert_int_equal(known()->head.final, SGI_FINAL_CANCELLED);
}

/* ---- code that holds it all the same ---- */

/* Every function refuses the operation because of its state. */
static void an_unread_one_takes_nothing(void **state)
{
    (void)state;
    sgi_op *op = new_resumable();
    append_all(op, come_and_gone, COUNT(come_and_gone));
    sgi_op *half = fake_op_replay(&host, op);
    assert_int_equal(half->hold, SGI_HOLD_UNREAD);
    size_t timers = server->engine->timers.count;
    assert_int_equal(sgi_op_append(half, SGI_ENTRY_SEGMENT, SGI_STR("\"x\"")),
                     SEGUE_E_TERMINAL);
    assert_int_equal(sgi_call_start(half, false), SEGUE_E_STATE);
    sgi_op_drop_entries(half, SGI_DROP_SEGMENTS, half->durable);
    sgi_task_cancel(half);
    sgi_task_expire(half);
    sgi_resumable_restart_clock(sgi_resumable_of(half));
    sgi_resumable_begin_clock_at_restart(half->served->lasting);
    assert_int_equal(server->engine->timers.count, timers);
    assert_int_equal(half->head.final, SGI_FINAL_NONE);
    assert_null(half->served->call);
    assert_false(fake_store_take(&host));
    sgi_op_unref(half);
    sgi_op_unref(op);
}

/* ---- the store knows more ---- */

static void ready(sgi_reader *reader)
{
    (void)reader;
}

/* The text of an ASK's question is in the head: the entry is shown only when the head has
 * it. */
static void a_reader_stays_behind_the_head(void **state)
{
    (void)state;
    finder f = {0};
    sgi_reader reader;
    sgi_op *owner = new_resumable(); /* stands for the operation at another server */
    append_all(owner, come_and_gone, 2);
    look_for(owner, &f);
    fake_store_settle(&host);
    sgi_op *op = f.op;
    assert_true(op && op != owner && sgi_op_runs_elsewhere(op));
    server->committer.read_bytes = 1 << 20;
    sgi_reader_init(&reader, op, 0, ready);
    assert_null(sgi_reader_next(&reader));
    assert_int_equal(sgi_op_append(owner, SGI_ENTRY_INPUT_ASK, SGI_STR(ASK)), SEGUE_OK);
    assert_true(fake_store_commit(&host, SEGUE_OK));
    assert_true(fake_store_answer(&host, SEGUE_OK));
    for (uint64_t seq = 1; seq <= 2; seq++) {
        const sgi_entry *entry = sgi_reader_next(&reader);
        assert_true(entry && entry->seq == seq);
        sgi_reader_advance(&reader);
    }
    assert_null(sgi_reader_next(&reader));
    assert_null(TAILQ_FIRST(&op->head.inputs));
    sgi_followed_read_more(op); /* reports that there is more */
    fake_store_settle(&host);
    assert_non_null(TAILQ_FIRST(&op->head.inputs));
    const sgi_entry *entry = sgi_reader_next(&reader);
    assert_true(entry && entry->seq == 3 && entry->kind == SGI_ENTRY_INPUT_ASK);
    sgi_reader_end(&reader);
    sgi_op_unref(owner);
}

/* A server takes over an operation whose time to live is over, and has no memory for its
 * end. It tries again when it has memory. */
static void one_that_is_over_ends_when_there_is_memory(void **state)
{
    (void)state;
    for (int resumes = 0; resumes < 2; resumes++) {
        sgi_op *op = resumes ? new_resumable() : new_keyed();
        if (!sgi_op_is_known(op))
            sgi_server_put_in_maps(op);
        if (resumes)
            sgi_resumable_begin_clock(sgi_resumable_of(op));
        else
            op->ttl_ms = 1000;
        tm.fail_from = 1;
        fake_host_advance(&host, 3600 * 1000);
        if (!resumes)
            sgi_server_on_op_taken_over(op);
        assert_true(tm.failed > 0);
        assert_false(sgi_op_has_ended(op));
        test_mem_rearm(&tm);
        fake_host_advance(&host, 1000);
        assert_true(sgi_op_has_ended(op));
        fake_store_settle(&host);
        sgi_op_unref(op);
    }
}

/* A client that has received more entries at another server waits until this server has
 * as many, however long this takes. */
static void who_looks_again_sees_all_there_is(void **state)
{
    (void)state;
    finder f = {0};
    sgi_op *owner = new_resumable();
    append_all(owner, come_and_gone, 2);
    look_for(owner, &f);
    fake_store_settle(&host);
    assert_int_equal(f.op->durable, 2);
    append_all(owner, come_and_gone + 2, 4);
    f.fired = 0;
    look_for(owner, &f);
    while (!f.fired)
        assert_true(fake_store_answer(&host, SEGUE_OK));
    assert_int_equal(f.op->durable, 6);
    sgi_op_unref(owner);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_resumable_one_goes_on_once),
        CASE(a_keyed_one_goes_on_once),
        CASE(a_stored_call_goes_on_as_the_task_that_it_became),
        CASE(who_asks_meanwhile_gets_the_same),
        CASE(one_that_was_asked_for_first_is_taken_over),
        CASE(a_torn_one_that_was_asked_for_first_ends),
        CASE(one_whose_second_claim_is_torn_ends),
        CASE(a_store_that_fails_is_asked_again),
        CASE(a_server_that_dies_lets_it_go),
        CASE(a_letter_waits_for_all_of_it),
        CASE(an_unread_one_takes_nothing),
        CASE(a_reader_stays_behind_the_head),
        CASE(one_that_is_over_ends_when_there_is_memory),
        CASE(who_looks_again_sees_all_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
