/* Logs that are read: entries that come from a store, readers that follow a log and do
 * not delay it, and the fold of a whole log. */
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

/* ---- entries that come from a store ---- */

static segue_status apply(uint64_t seq, int32_t kind, const char *payload, size_t len)
{
    sgi_entry *entry = sgi_entry_new(&log_mem.mem, kind, payload, len);
    entry->seq = seq;
    entry->segment = kind == SGI_ENTRY_SEGMENT ? log_op->head.next_seg : 0;
    entry->event = kind <= SGI_ENTRY_STATUS ? log_op->head.next_evt : 0;
    segue_status status = sgi_op_apply_stored_entry(log_op, entry);
    sgi_entry_free(&log_mem.mem, entry);
    return status;
}

static void a_log_with_a_hole_or_behind_its_end_is_corrupt(void **state)
{
    (void)state;
    log_op = fake_op_new(log_server);
    assert_int_equal(apply(2, SGI_ENTRY_SEGMENT, "1", 1), SEGUE_E_STORE_CORRUPT);
    assert_int_equal(apply(1, SGI_ENTRY_SEGMENT, "1", 1), SEGUE_OK);
    assert_int_equal(apply(1, SGI_ENTRY_SEGMENT, "1", 1), SEGUE_E_STORE_CORRUPT);
    assert_int_equal(apply(2, SGI_ENTRY_RESULT, "{}", 2), SEGUE_OK);
    assert_int_equal(apply(3, SGI_ENTRY_SEGMENT, "1", 1), SEGUE_E_STORE_CORRUPT);
    assert_int_equal(log_op->head.final, SGI_FINAL_RESULT);
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
    log_op = fake_op_new(log_server);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sgi_entry *entry = sgi_entry_new(&log_mem.mem, rows[i].kind, "{}", 2);
        entry->seq = 1;
        entry->segment = rows[i].segment;
        entry->event = rows[i].event;
        assert_int_equal(sgi_op_apply_stored_entry(log_op, entry), SEGUE_E_STORE_CORRUPT);
        assert_int_equal(log_op->head.next_log, 1);
        assert_int_equal(log_op->head.final, SGI_FINAL_NONE);
        sgi_entry_free(&log_mem.mem, entry);
    }
}

#define TEXT "{\"type\":\"text\",\"text\":\"x\"}"
#define IMAGE "{\"type\":\"image\"}"

static segue_status apply_segment(const char *payload)
{
    return apply(log_op->head.next_log, SGI_ENTRY_SEGMENT, payload, strlen(payload));
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
    log_op = fake_op_new(log_server);
    assert_int_equal(apply_segment(TEXT), SEGUE_OK);
    assert_int_equal(apply_segment(IMAGE), SEGUE_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t live = log_mem.live;
        log_mem.peak = live;
        assert_int_equal(apply_segment(bad[i]), SEGUE_E_STORE_CORRUPT);
        assert_int_equal(log_op->head.next_log, 3);
        assert_true(log_mem.peak - live < 4096);
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
    log_op = fake_op_new(log_server);
    log_op->retention = sgi_zalloc(&log_mem.mem, sizeof *log_op->retention);
    log_op->retention->earliest = 1;
    size_t live = log_mem.live;
    log_mem.peak = live;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *text = rows[i].payload;
        sgi_entry *entry =
            sgi_entry_new(&log_mem.mem, SGI_ENTRY_SEGMENT, text, strlen(text));
        entry->seq = entry->segment = entry->event = rows[i].segment;
        assert_int_equal(sgi_op_apply_stored_entry(log_op, entry), rows[i].status);
        sgi_entry_free(&log_mem.mem, entry);
        assert_true(log_mem.peak - live < 4096);
    }
    assert_true(log_op->head.result->blocks == UINT64_MAX - 1);
}

/* A NUL inside a text does no harm, whoever wrote it to the store. */
static void texts_with_a_nul_do_no_harm(void **state)
{
    (void)state;
    static const char ask[] =
        "{\"key\":\"a\\u0000b\",\"method\":\"m\\u0000\",\"params\":{}}";
    static const char status[] = "{\"statusMessage\":\"x\\u0000y\"}";
    static const char zeros[] = "{\"a\":\0\0\0}";
    log_op = fake_op_new(log_server);
    apply(log_op->head.next_log, SGI_ENTRY_INPUT_ASK, ask, sizeof ask - 1);
    apply(log_op->head.next_log, SGI_ENTRY_STATUS, status, sizeof status - 1);
    apply(log_op->head.next_log, SGI_ENTRY_INPUT_ASK, zeros, sizeof zeros - 1);
    apply(log_op->head.next_log, SGI_ENTRY_ERROR, zeros, sizeof zeros - 1);
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
        assert_true(entry->seq <= sgi_op_horizon(log_op));
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
            sgi_op_append(log_op, SGI_ENTRY_SEGMENT, (sgi_str){payload, sizeof payload}),
            SEGUE_OK);
}

static void a_reader_follows_what_becomes_durable(void **state)
{
    (void)state;
    follower f = {.at_once = true};
    log_op = fake_task_new(log_server);
    sgi_reader_init(&f.reader, log_op, 0, more);
    for (uint64_t i = 1; i <= 20; i++) {
        log_append(SGI_ENTRY_SEGMENT, "1");
        follow_more(&f, UINT64_MAX);
        assert_int_equal(f.last, i - 1);
        fake_store_settle(&log_host);
        assert_int_equal(f.last, i);
    }
    assert_false(sgi_reader_at_end(&f.reader));
    sgi_op_end(log_op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    fake_store_settle(&log_host);
    assert_true(sgi_reader_at_end(&f.reader));
    sgi_reader_end(&f.reader);
    sgi_reader_end(&f.reader);
}

static void a_slow_reader_costs_a_bounded_tail_and_misses_nothing(void **state)
{
    (void)state;
    follower fast = {.at_once = true};
    follower slow = {.at_once = false};
    log_op = fake_task_new(log_server);
    sgi_reader_init(&fast.reader, log_op, 0, more);
    sgi_reader_init(&slow.reader, log_op, 0, more);
    for (int i = 0; i < 200; i++) {
        append_large(1);
        fake_store_settle(&log_host);
        assert_true(log_op->tail_bytes <= 256 * 1024 + 10000);
        if (i % 10 == 0)
            follow_more(&slow, 1);
    }
    assert_int_equal(fast.last, 200);
    sgi_op_end(log_op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    fake_store_settle(&log_host);
    assert_true(sgi_reader_at_end(&fast.reader));
    for (int rounds = 0; !sgi_reader_at_end(&slow.reader); rounds++) {
        assert_true(rounds < 400);
        follow_more(&slow, 3);
        fake_store_settle(&log_host);
    }
    assert_int_equal(slow.last, 201);
    assert_int_equal(slow.reader.failure, SEGUE_OK);
    sgi_reader_end(&fast.reader);
    sgi_reader_end(&slow.reader);
}

static void one_that_comes_late_reads_from_the_store_and_then_the_tail(void **state)
{
    (void)state;
    log_op = fake_task_new(log_server);
    append_large(100);
    fake_store_settle(&log_host);
    assert_int_equal(log_op->tail_bytes, 0); /* there was no reader */
    for (uint64_t after = 0; after <= 100; after += 25) {
        follower f = {.last = after, .at_once = true};
        sgi_reader_init(&f.reader, log_op, after, more);
        follow_more(&f, UINT64_MAX);
        fake_store_settle(&log_host);
        assert_int_equal(f.last, 100);
        sgi_reader_end(&f.reader);
    }
}

static void a_reader_may_end_while_the_store_is_asked(void **state)
{
    (void)state;
    follower f = {.at_once = false};
    log_op = fake_task_new(log_server);
    append_large(3);
    fake_store_settle(&log_host);
    sgi_reader_init(&f.reader, log_op, 0, more);
    f.rung = 0;
    assert_null(sgi_reader_next(&f.reader));
    assert_non_null(f.reader.job);
    assert_null(sgi_reader_next(&f.reader)); /* the reader asks the store only once */
    sgi_reader_end(&f.reader);
    assert_true(fake_store_answer(&log_host, SEGUE_OK));
    assert_false(fake_store_answer(&log_host, SEGUE_OK));
    assert_int_equal(f.rung, 0);
}

static void a_store_that_cannot_answer_fails_the_reader(void **state)
{
    (void)state;
    log_op = fake_task_new(log_server);
    append_large(3);
    fake_store_settle(&log_host);
    for (int how = 0; how < 2; how++) {
        follower f = {.at_once = false};
        sgi_reader_init(&f.reader, log_op, 0, more);
        f.rung = 0;
        if (how)
            log_mem.fail_at = log_mem.calls + 1;
        assert_null(sgi_reader_next(&f.reader));
        if (!how) {
            assert_true(fake_store_answer(&log_host, SEGUE_E_IO));
            assert_int_equal(f.rung, 1);
        }
        assert_int_not_equal(f.reader.failure, SEGUE_OK);
        assert_null(sgi_reader_next(&f.reader));
        assert_false(sgi_reader_at_end(&f.reader));
        sgi_reader_end(&f.reader);
        test_mem_rearm(&log_mem);
    }
}

/* Adds a row with another position behind all rows. */
static void add_row(uint64_t like, uint64_t seq)
{
    const fake_row *row = fake_store_next(&log_host, log_op->id, like - 1);
    size_t size = sizeof *row + row->entry.data_len;
    fake_row *copy = malloc(size);
    memcpy(copy, row, size);
    copy->entry.seq = seq;
    copy->entry.data = copy->data;
    TAILQ_INSERT_TAIL(&log_host.rows, copy, link);
}

static void lose_rows(uint64_t from, uint64_t upto)
{
    fake_row *row, *next;
    for (row = TAILQ_FIRST(&log_host.rows); row; row = next) {
        next = TAILQ_NEXT(row, link);
        if (row->entry.seq < from || row->entry.seq > upto)
            continue;
        TAILQ_REMOVE(&log_host.rows, row, link);
        free(row);
    }
}

static void a_reader_of_a_log_that_the_store_has_lost_fails(void **state)
{
    (void)state;
    log_op = fake_task_new(log_server);
    append_large(10);
    sgi_op_end(log_op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    fake_store_settle(&log_host);
    add_row(11, 1000); /* another server wrote an end behind the hole */
    lose_rows(4, 11);
    for (int hole = 1; hole >= 0; hole--) {
        follower f = {.at_once = true};
        if (!hole)
            lose_rows(1000, 1000);
        sgi_reader_init(&f.reader, log_op, 0, more);
        follow_more(&f, 1);
        fake_store_settle(&log_host);
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
    log_op = fake_task_new(log_server);
    append_large(10);
    sgi_op_end(log_op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    fake_store_settle(&log_host);
    add_row(11, 12);
    sgi_reader_init(&f.reader, log_op, 0, more);
    follow_more(&f, UINT64_MAX);
    fake_store_settle(&log_host);
    assert_int_equal(f.last, 11);
    assert_true(sgi_reader_at_end(&f.reader));
    sgi_reader_end(&f.reader);
}

/* ---- the whole log, folded ---- */

static int folded_count;

static uint64_t folded_segments;

static bool folded_ok;

static segue_status folded_status;

static void folded(void *user, sgi_op *of, const sgi_fold *fold, segue_status status)
{
    folded_status = status;
    assert_ptr_equal(user, &folded_count);
    assert_ptr_equal(of, log_op);
    folded_count++;
    folded_ok = fold != NULL;
    folded_segments = fold ? fold->count : 0;
}

static void a_fold_reads_the_log_back_and_waits_for_its_end(void **state)
{
    (void)state;
    log_op = fake_task_new(log_server);
    folded_count = 0;
    append_large(100);
    fake_store_settle(&log_host);
    sgi_op_fold(log_op, folded, &folded_count);
    fake_store_settle(&log_host);
    assert_int_equal(folded_count, 0);
    append_large(5);
    log_append(SGI_ENTRY_FIELDS, "{\"a\":1}");
    sgi_op_end(log_op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    fake_store_settle(&log_host);
    assert_int_equal(folded_count, 1);
    assert_true(folded_ok);
    assert_int_equal(folded_segments, 105);
}

static void a_fold_without_memory_or_store_says_so_once(void **state)
{
    (void)state;
    log_op = fake_task_new(log_server);
    append_large(60);
    sgi_op_end(log_op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    fake_store_settle(&log_host);
    size_t refused = 1;
    for (size_t at = 1; refused; at++) {
        folded_count = 0;
        test_mem_rearm(&log_mem);
        log_mem.fail_at = at;
        sgi_op_fold(log_op, folded, &folded_count);
        while (fake_store_answer(&log_host, SEGUE_OK))
            ;
        refused = log_mem.failed;
        assert_int_equal(folded_count, 1);
        assert_int_equal(folded_ok, !refused);
    }
    test_mem_rearm(&log_mem);
    folded_count = 0;
    sgi_op_fold(log_op, folded, &folded_count);
    assert_true(fake_store_answer(&log_host, SEGUE_E_IO));
    assert_int_equal(folded_count, 1);
    assert_false(folded_ok);
}

/* Changes the index of the segment at this position in the store. */
static void damage_index(uint64_t seq)
{
    fake_row *row;
    TAILQ_FOREACH(row, &log_host.rows, link)
        if (row->entry.seq == seq)
            row->data[1] = '7';
}

static void fold_damaged_log(bool is_replaced)
{
    log_op = fake_task_new(log_server);
    log_append(SGI_ENTRY_SEGMENT, "[0," TEXT "]");
    append_large(60);
    if (is_replaced)
        log_append(SGI_ENTRY_REPLACE, "{}");
    sgi_op_end(log_op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    fake_store_settle(&log_host);
    damage_index(1);
    folded_count = 0;
    sgi_op_fold(log_op, folded, &folded_count);
    fake_store_settle(&log_host);
    assert_int_equal(folded_count, 1);
}

static void a_fold_of_a_damaged_log_names_the_damage(void **state)
{
    (void)state;
    fold_damaged_log(false);
    assert_int_equal(folded_status, SEGUE_E_STORE_CORRUPT);
}

static void a_replacement_discards_damaged_segments(void **state)
{
    (void)state;
    fold_damaged_log(true);
    assert_int_equal(folded_status, SEGUE_OK);
}

static void a_fold_with_too_many_fields_is_too_large(void **state)
{
    (void)state;
    char field[32];
    log_op = fake_task_new(log_server);
    for (int i = 0; i <= SGI_FIELDS_MAX; i++) {
        snprintf(field, sizeof field, "{\"%d\":1}", i);
        log_append(SGI_ENTRY_FIELDS, field);
        if (i % 1000 == 0)
            fake_store_settle(&log_host);
    }
    sgi_op_end(log_op, SGI_ENTRY_RESULT, SGI_STR("{}"));
    fake_store_settle(&log_host);
    folded_count = 0;
    sgi_op_fold(log_op, folded, &folded_count);
    fake_store_settle(&log_host);
    assert_int_equal(folded_count, 1);
    assert_int_equal(folded_status, SEGUE_E_TOO_LARGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
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
        CASE(a_fold_of_a_damaged_log_names_the_damage),
        CASE(a_replacement_discards_damaged_segments),
        CASE(a_fold_with_too_many_fields_is_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
