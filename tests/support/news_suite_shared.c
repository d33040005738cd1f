/* Tests of the changes that a store reports to two handles. Each handle is an owner, as
 * in two processes. */
#include "support/news_suite.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/news_kit.h"

typedef struct stage {
    segue_store *mine;
    segue_store *theirs;
    test_ear me;
    test_ear them;
} stage;

/* Operations 1 and 2 belong to `me`. */
static void set_up(void **state, stage *s)
{
    const store_suite *suite = *state;
    suite->clear();
    assert_int_equal(suite->open(NULL, &s->mine), SEGUE_OK);
    assert_int_equal(suite->open(NULL, &s->theirs), SEGUE_OK);
    test_ear_open(&s->me, s->mine);
    test_ear_open(&s->them, s->theirs);
    test_must_create(s->mine, 1);
    test_must_create(s->mine, 2);
}

static void close_mine(stage *s)
{
    test_ear_close(&s->me);
    sgi_store_unref(s->mine);
}

static void close_theirs(stage *s)
{
    test_ear_close(&s->them);
    sgi_store_unref(s->theirs);
}

static void tear_down(stage *s)
{
    close_mine(s);
    close_theirs(s);
}

static void growth_crosses(void **state)
{
    stage s;
    set_up(state, &s);
    test_append_by(&s.me, 1, 1);
    assert_int_equal(test_follow(&s.them, 1, true), SEGUE_OK);
    assert_int_equal(test_follow(&s.them, 9, true), SEGUE_E_NOT_FOUND);
    test_assert_log(s.theirs, 1, 1);
    test_append_by(&s.me, 2, 1);
    for (uint64_t seq = 2; seq < 8; seq++) {
        test_append_by(&s.me, 1, seq);
        test_ear_wait(&s.them, SEGUE_STORE_GREW, 1);
        assert_null(test_ear_find(&s.them, SEGUE_STORE_GREW, 2));
        test_assert_log(s.theirs, 1, seq);
    }
    assert_int_equal(test_commit_by(&s.me, test_write_end(1, INT64_MAX)), SEGUE_OK);
    test_ear_wait(&s.them, SEGUE_STORE_GREW, 1);
    assert_int_equal(test_must_find(s.theirs, 1).ended, 1);
    assert_int_equal(test_commit_by(&s.me, test_write_simple(SEGUE_STORE_DELETE, 1)),
                     SEGUE_OK);
    test_ear_wait(&s.them, SEGUE_STORE_GREW, 1);
    assert_int_equal(test_find(s.theirs, 1), SEGUE_E_NOT_FOUND);
    tear_down(&s);
}

static void letters_go_to_the_owner_alone(void **state)
{
    stage s;
    set_up(state, &s);
    assert_int_equal(test_follow(&s.them, 1, true), SEGUE_OK);
    assert_int_equal(test_post(&s.them, 1, "first"), SEGUE_OK);
    assert_int_equal(test_post(&s.them, 1, "second"), SEGUE_OK);
    assert_int_equal(test_post(&s.them, 9, "x"), SEGUE_E_NOT_FOUND);
    assert_string_equal(test_ear_wait(&s.me, SEGUE_STORE_LETTER, 1)->text, "first");
    if (test_ear_letters(&s.me, 1) < 2) /* the forwarded commands may come one by one */
        test_ear_wait(&s.me, SEGUE_STORE_LETTER, 1);
    const test_heard *second = &s.me.heard[s.me.count - 1];
    assert_string_equal(second->text, "second");
    uint64_t last = second->number;
    char data[TEST_ENTRY_MAX];
    segue_store_write writes[] = {
        test_write_append(1, 1, data, test_entry_fill(data, 1, 1)),
        test_write_taken(1, last)};
    assert_int_equal(sgi_store_commit_by(s.me.listener, writes, 2), SEGUE_OK);
    test_ear_wait(&s.them, SEGUE_STORE_GREW, 1);
    assert_int_equal(test_ear_letters(&s.them, 1), 0);
    test_ear_ask(&s.me);
    assert_int_equal(test_ear_letters(&s.me, 1), 0);
    assert_int_equal(test_commit_by(&s.me, test_write_end(1, INT64_MAX)), SEGUE_OK);
    assert_int_equal(test_post(&s.them, 1, "x"), SEGUE_E_TERMINAL);
    tear_down(&s);
}

static void who_lost_an_operation_is_fenced(void **state)
{
    stage s;
    set_up(state, &s);
    test_append_by(&s.me, 1, 1);
    assert_int_equal(test_post(&s.me, 1, "for the next"), SEGUE_OK);
    assert_int_equal(test_commit_by(&s.me, test_write_simple(SEGUE_STORE_RELEASE, 1)),
                     SEGUE_OK);
    test_ear_wait(&s.them, SEGUE_STORE_ORPHANS, 0);
    assert_int_equal(test_claim_count(s.theirs), 1);
    const test_heard *letter = test_ear_wait(&s.them, SEGUE_STORE_LETTER, 1);
    assert_string_equal(letter->text, "for the next");
    char data[TEST_ENTRY_MAX];
    size_t len = test_entry_fill(data, 1, 2);
    segue_store_write bad[] = {test_write_append(1, 2, data, len),
                               test_write_end(1, INT64_MAX), test_write_taken(1, 99),
                               test_write_simple(SEGUE_STORE_DROP, 1)};
    bad[3].entry.seq = 1;
    for (size_t i = 0; i < 4; i++) {
        char other[TEST_ENTRY_MAX];
        segue_store_write writes[] = {
            test_write_append(2, 1, other, test_entry_fill(other, 2, 1)), bad[i]};
        assert_int_equal(sgi_store_commit_by(s.me.listener, writes, 2), SEGUE_E_FENCED);
        test_assert_log(s.mine, 2, 0);
    }
    test_assert_log(s.mine, 1, 1);
    test_append_by(&s.them, 1, 2);
    assert_int_equal(test_commit_by(&s.me, bad[0]), SEGUE_E_FENCED);
    /* Releasing an operation of another owner succeeds and changes nothing. */
    assert_int_equal(test_commit_by(&s.me, test_write_simple(SEGUE_STORE_RELEASE, 1)),
                     SEGUE_OK);
    test_append_by(&s.them, 1, 3);
    assert_int_equal(test_follow(&s.me, 1, true), SEGUE_OK);
    test_append_by(&s.them, 1, 4);
    test_ear_wait(&s.me, SEGUE_STORE_GREW, 1);
    test_append_by(&s.me, 2, 1);
    test_assert_log(s.mine, 1, 4);
    tear_down(&s);
}

static void who_goes_leaves_orphans_and_letters(void **state)
{
    stage s;
    set_up(state, &s);
    assert_int_equal(test_commit_by(&s.me, test_write_end(2, INT64_MAX)), SEGUE_OK);
    assert_int_equal(test_claim_count(s.theirs), 0);
    assert_int_equal(test_post(&s.them, 1, "answer"), SEGUE_OK);
    close_mine(&s);
    test_ear_wait(&s.them, SEGUE_STORE_ORPHANS, 0);
    assert_int_equal(test_ear_letters(&s.them, 1), 0);
    assert_int_equal(test_claim_count(s.theirs), 1);
    const test_heard *letter = test_ear_wait(&s.them, SEGUE_STORE_LETTER, 1);
    assert_string_equal(letter->text, "answer");
    uint64_t number = letter->number;
    assert_int_equal(test_commit_by(&s.them, test_write_taken(1, number)), SEGUE_OK);
    test_append_by(&s.them, 1, 1);
    close_theirs(&s);
}

static void owner_may_take_back_what_it_released(void **state)
{
    stage s;
    set_up(state, &s);
    assert_int_equal(test_commit_by(&s.me, test_write_simple(SEGUE_STORE_RELEASE, 1)),
                     SEGUE_OK);
    assert_int_equal(test_claim_count(s.mine), 1);
    assert_int_equal(test_claim_count(s.theirs), 0);
    test_append_by(&s.me, 1, 1);
    tear_down(&s);
}

/* ---- threads ---- */

enum { ROUNDS = 100 };

typedef struct player {
    pthread_t thread;
    test_ear *ear;
    uint32_t own;
    uint32_t other;
    uint64_t seen;
    segue_status status;
} player;

static int32_t see(void *user, const segue_store_entry *entry)
{
    player *p = user;
    if (entry->seq != p->seen + 1)
        p->status = SEGUE_E_FATAL;
    p->seen = entry->seq;
    return 0;
}

static int32_t note(void *user, const segue_store_news *news)
{
    *(bool *)user |= news->kind == SEGUE_STORE_GREW || news->kind == SEGUE_STORE_MISSED;
    return 0;
}

/* Appends an entry only when the other handle has appended as many entries, so the two
 * take turns. */
static void *play(void *arg)
{
    player *p = arg;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    char data[TEST_ENTRY_MAX];
    test_store_id(id, p->other);
    p->status = sgi_store_follow(p->ear->listener, id, true);
    if (!p->status) /* changes from before the follow are not reported */
        p->status = sgi_store_read(p->ear->store, id, 0, see, p);
    for (uint64_t seq = 1; !p->status && seq <= ROUNDS; seq++) {
        uint64_t awaited = p->own < p->other ? seq - 1 : seq;
        while (!p->status && p->seen < awaited) {
            bool grew = false;
            int64_t within_ms = 0;
            p->status = sgi_store_deliver_news(p->ear->listener, note, &grew, &within_ms);
            if (!p->status && grew)
                p->status = sgi_store_read(p->ear->store, id, p->seen, see, p);
            if (!grew)
                test_ear_rest(p->ear, within_ms);
        }
        if (!p->status)
            p->status = test_commit_by(
                p->ear,
                test_write_append(p->own, seq, data, test_entry_fill(data, p->own, seq)));
    }
    return NULL;
}

static void ball_is_played_between_two(void **state)
{
    stage s;
    set_up(state, &s);
    test_must_create(s.theirs, 3);
    player players[2] = {{.ear = &s.me, .own = 1, .other = 3},
                         {.ear = &s.them, .own = 3, .other = 1}};
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&players[i].thread, NULL, play, &players[i]), 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(players[i].thread, NULL);
        assert_int_equal(players[i].status, SEGUE_OK);
    }
    test_assert_log(s.mine, 3, ROUNDS);
    tear_down(&s);
}

int news_suite_run_shared(const store_suite *suite)
{
    struct CMUnitTest cases[] = {
        cmocka_unit_test(growth_crosses),
        cmocka_unit_test(letters_go_to_the_owner_alone),
        cmocka_unit_test(who_lost_an_operation_is_fenced),
        cmocka_unit_test(who_goes_leaves_orphans_and_letters),
        cmocka_unit_test(owner_may_take_back_what_it_released),
        cmocka_unit_test(ball_is_played_between_two),
    };
    char name[64];
    snprintf(name, sizeof name, "%s: news between two", suite->name);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cases[i].initial_state = (void *)(uintptr_t)suite;
    return cmocka_run_group_tests_name(name, cases, NULL, NULL);
}
