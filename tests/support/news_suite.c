/* Tests of the changes that a store reports to several listeners of one handle.
 * news_suite_shared.c has the tests for two handles. */
#include "support/news_suite.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/news_kit.h"

typedef struct stage {
    segue_store *store;
    test_ear one;
    test_ear other;
} stage;

static void set_up(void **state, stage *s)
{
    const store_suite *suite = *state;
    suite->clear();
    assert_int_equal(suite->open(NULL, &s->store), SEGUE_OK);
    test_ear_open(&s->one, s->store);
    test_ear_open(&s->other, s->store);
    test_must_create(s->store, 1);
    test_must_create(s->store, 2);
}

static void tear_down(stage *s)
{
    test_ear_close(&s->one);
    test_ear_close(&s->other);
    sgi_store_unref(s->store);
}

static void assert_silence(test_ear *ear)
{
    test_ear_ask(ear);
    assert_int_equal(ear->count, 0);
}

/* ---- growth ---- */

static void growth_is_told_to_who_follows(void **state)
{
    stage s;
    set_up(state, &s);
    assert_int_equal(test_follow(&s.other, 1, true), SEGUE_OK);
    assert_int_equal(test_follow(&s.other, 1, true), SEGUE_OK);
    assert_silence(&s.other);
    test_append_by(&s.one, 2, 1);
    assert_silence(&s.other);
    int rings = s.other.rings;
    test_append_by(&s.one, 1, 1);
    test_append_by(&s.one, 1, 2);
    assert_int_equal(s.other.rings, rings + 1); /* the listener gets one wake-up call
                                                 * until it asks */
    test_ear_ask(&s.other);
    assert_int_equal(s.other.count, 1);
    assert_non_null(test_ear_find(&s.other, SEGUE_STORE_GREW, 1));
    assert_silence(&s.other);
    assert_silence(&s.one);
    test_append_by(&s.one, 1, 3);
    assert_int_equal(s.other.rings, rings + 2);
    assert_int_equal(test_follow(&s.other, 1, false), SEGUE_OK);
    assert_silence(&s.other); /* also drops earlier changes */
    tear_down(&s);
}

static void own_commits_are_no_news(void **state)
{
    stage s;
    set_up(state, &s);
    assert_int_equal(test_follow(&s.one, 1, true), SEGUE_OK);
    assert_int_equal(test_follow(&s.other, 1, true), SEGUE_OK);
    test_append_by(&s.one, 1, 1);
    assert_silence(&s.one);
    test_ear_ask(&s.other);
    assert_int_equal(s.other.count, 1);
    test_must_append(s.store, 1, 2); /* the owner of the operation is not a listener */
    test_ear_ask(&s.one);
    assert_int_equal(s.one.count, 1);
    test_ear_ask(&s.other);
    assert_int_equal(s.other.count, 1);
    tear_down(&s);
}

static void end_and_deletion_are_growth(void **state)
{
    stage s;
    set_up(state, &s);
    assert_int_equal(test_follow(&s.other, 1, true), SEGUE_OK);
    assert_int_equal(test_follow(&s.other, 2, true), SEGUE_OK);
    assert_int_equal(test_commit_by(&s.one, test_write_end(1, INT64_MAX)), SEGUE_OK);
    test_ear_ask(&s.other);
    assert_non_null(test_ear_find(&s.other, SEGUE_STORE_GREW, 1));
    assert_int_equal(test_commit_by(&s.one, test_write_simple(SEGUE_STORE_DELETE, 2)),
                     SEGUE_OK);
    test_ear_ask(&s.other);
    assert_non_null(test_ear_find(&s.other, SEGUE_STORE_GREW, 2));
    tear_down(&s);
}

static void refused_commits_are_no_news(void **state)
{
    stage s;
    set_up(state, &s);
    assert_int_equal(test_follow(&s.other, 1, true), SEGUE_OK);
    assert_int_equal(test_commit_by(&s.one, test_write_append(1, 7, "x", 1)),
                     SEGUE_E_STATE);
    assert_silence(&s.other);
    tear_down(&s);
}

static void what_is_not_there_cannot_be_followed(void **state)
{
    stage s;
    set_up(state, &s);
    assert_int_equal(test_follow(&s.one, 9, true), SEGUE_E_NOT_FOUND);
    assert_int_equal(test_follow(&s.one, 9, false), SEGUE_OK);
    assert_int_equal(test_follow(&s.one, 1, false), SEGUE_OK);
    assert_int_equal(test_follow(&s.one, 1, true), SEGUE_OK);
    assert_int_equal(test_post(&s.one, 9, "x"), SEGUE_E_NOT_FOUND);
    tear_down(&s); /* the listener closes while it follows */
}

static void release_makes_orphans(void **state)
{
    stage s;
    set_up(state, &s);
    int rings = s.other.rings;
    assert_int_equal(test_commit_by(&s.one, test_write_simple(SEGUE_STORE_RELEASE, 1)),
                     SEGUE_OK);
    assert_int_equal(s.other.rings, rings + 1);
    test_ear_ask(&s.other);
    assert_int_equal(s.other.count, 1);
    assert_int_equal(s.other.heard[0].kind, SEGUE_STORE_ORPHANS);
    assert_int_equal(test_claim_count(s.store), 1);
    assert_silence(&s.other);
    tear_down(&s);
}

/* ---- forwarded commands ---- */

static void letters_come_in_order_and_once(void **state)
{
    stage s;
    set_up(state, &s);
    int rings = s.one.rings;
    assert_int_equal(test_post(&s.other, 1, "first"), SEGUE_OK);
    assert_int_equal(test_post(&s.other, 1, ""), SEGUE_OK);
    assert_int_equal(test_post(&s.other, 2, "of 2"), SEGUE_OK);
    assert_true(s.one.rings > rings);
    test_ear_ask(&s.one);
    assert_int_equal(s.one.count, 3);
    assert_int_equal(test_ear_letters(&s.one, 1), 2);
    const test_heard *first = test_ear_find(&s.one, SEGUE_STORE_LETTER, 1);
    assert_string_equal(first->text, "first");
    assert_int_equal(first[1].n, 1);
    assert_int_equal(first[1].len, 0);
    assert_true(first[1].number > first->number);
    assert_string_equal(test_ear_find(&s.one, SEGUE_STORE_LETTER, 2)->text, "of 2");
    assert_silence(&s.one);
    tear_down(&s);
}

static void letter_that_was_not_taken_waits_for_the_next_owner(void **state)
{
    stage s;
    set_up(state, &s);
    assert_int_equal(test_post(&s.other, 1, "taken"), SEGUE_OK);
    assert_int_equal(test_post(&s.other, 1, "not taken"), SEGUE_OK);
    test_ear_ask(&s.one);
    uint64_t number = test_ear_find(&s.one, SEGUE_STORE_LETTER, 1)->number;
    char data[TEST_ENTRY_MAX];
    segue_store_write writes[] = {
        test_write_append(1, 1, data, test_entry_fill(data, 1, 1)),
        test_write_taken(1, number)};
    assert_int_equal(sgi_store_commit_by(s.one.listener, writes, 2), SEGUE_OK);
    test_ear_ask(&s.other);
    assert_int_equal(test_commit_by(&s.one, test_write_simple(SEGUE_STORE_RELEASE, 1)),
                     SEGUE_OK);
    assert_int_equal(test_claim_count(s.store), 1);
    const test_heard *letter = test_ear_wait(&s.other, SEGUE_STORE_LETTER, 1);
    assert_string_equal(letter->text, "not taken");
    assert_int_equal(test_ear_letters(&s.other, 1), 1);
    assert_true(letter->number > number);
    number = letter->number;
    assert_int_equal(test_commit_by(&s.other, test_write_taken(1, number)), SEGUE_OK);
    /* A number of a forwarded command is never reused. */
    assert_int_equal(test_post(&s.one, 1, "later"), SEGUE_OK);
    assert_true(test_ear_wait(&s.other, SEGUE_STORE_LETTER, 1)->number > number);
    tear_down(&s);
}

static void taking_nothing_is_fine(void **state)
{
    stage s;
    set_up(state, &s);
    assert_int_equal(test_commit_by(&s.one, test_write_taken(1, 5)), SEGUE_OK);
    /* Only a store that can lose commits reports that it lacks the operation. */
    segue_status status = test_commit_by(&s.one, test_write_taken(9, 5));
    assert_true(status == SEGUE_OK || status == SEGUE_E_NOT_FOUND);
    tear_down(&s);
}

static void letters_to_one_operation_are_bounded(void **state)
{
    stage s;
    set_up(state, &s);
    for (int i = 0; i < 64; i++)
        assert_int_equal(test_post(&s.other, 1, "x"), SEGUE_OK);
    assert_int_equal(test_post(&s.other, 1, "x"), SEGUE_E_LIMIT);
    assert_int_equal(test_post(&s.other, 2, "x"), SEGUE_OK);
    test_ear_ask(&s.one);
    assert_int_equal(test_ear_letters(&s.one, 1), 64);
    assert_int_equal(test_commit_by(&s.one, test_write_taken(1, s.one.heard[0].number)),
                     SEGUE_OK);
    assert_int_equal(test_post(&s.other, 1, "x"), SEGUE_OK);
    assert_int_equal(test_post(&s.other, 1, "x"), SEGUE_E_LIMIT);
    tear_down(&s);
}

static void no_letters_to_what_has_ended(void **state)
{
    stage s;
    set_up(state, &s);
    assert_int_equal(test_follow(&s.other, 1, true), SEGUE_OK);
    assert_int_equal(test_post(&s.other, 1, "too late"), SEGUE_OK);
    assert_int_equal(test_commit_by(&s.one, test_write_end(1, INT64_MAX)), SEGUE_OK);
    assert_int_equal(test_post(&s.other, 1, "x"), SEGUE_E_TERMINAL);
    assert_int_equal(test_commit_by(&s.one, test_write_simple(SEGUE_STORE_DELETE, 1)),
                     SEGUE_OK);
    assert_int_equal(test_post(&s.other, 1, "x"), SEGUE_E_NOT_FOUND);
    tear_down(&s);
}

/* ---- handing over ---- */

static void what_was_refused_is_told_again(void **state)
{
    stage s;
    set_up(state, &s);
    assert_int_equal(test_follow(&s.one, 1, true), SEGUE_OK);
    test_append_by(&s.other, 1, 1);
    assert_int_equal(test_post(&s.other, 1, "a"), SEGUE_OK);
    assert_int_equal(test_commit_by(&s.other, test_write_simple(SEGUE_STORE_RELEASE, 2)),
                     SEGUE_OK);
    int32_t kinds[] = {SEGUE_STORE_GREW, SEGUE_STORE_LETTER, SEGUE_STORE_ORPHANS};
    s.one.stop_at = 0;
    assert_int_equal(test_ear_ask(&s.one), 0);
    assert_int_equal(s.one.count, 0);
    for (size_t i = 0; i < 3; i++) {
        s.one.stop_at = 1;
        assert_true((test_ear_ask(&s.one) == 0) == (i < 2));
        assert_int_equal(s.one.count, 1);
        assert_int_equal(s.one.heard[0].kind, kinds[i]);
    }
    assert_silence(&s.one);
    tear_down(&s);
}

/* ---- threads ---- */

enum { ROUNDS = 150 };

typedef struct player {
    pthread_t thread;
    test_ear ear;
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

/* Appends to the thread's own operation, and reads the other operation only after the
 * store has reported that it grew. cmocka's asserts belong to the main thread, so this
 * function only reports. */
static void *play(void *arg)
{
    player *p = arg;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    char data[TEST_ENTRY_MAX];
    test_store_id(id, p->other);
    p->status = sgi_store_follow(p->ear.listener, id, true);
    if (!p->status)
        p->status = sgi_store_read(p->ear.store, id, 0, see, p);
    for (uint64_t seq = 1; !p->status && (seq <= ROUNDS || p->seen < ROUNDS); seq++) {
        bool grew = false;
        int64_t within_ms;
        if (seq <= ROUNDS)
            p->status = test_commit_by(
                &p->ear,
                test_write_append(p->own, seq, data, test_entry_fill(data, p->own, seq)));
        else
            sem_wait(&p->ear.bell);
        if (!p->status)
            p->status = sgi_store_deliver_news(p->ear.listener, note, &grew, &within_ms);
        if (!p->status && grew)
            p->status = sgi_store_read(p->ear.store, id, p->seen, see, p);
    }
    return NULL;
}

static void no_growth_is_lost_between_threads(void **state)
{
    stage s;
    player players[2] = {{.own = 1, .other = 2}, {.own = 2, .other = 1}};
    set_up(state, &s);
    for (int i = 0; i < 2; i++) {
        test_ear_open(&players[i].ear, s.store);
        assert_int_equal(pthread_create(&players[i].thread, NULL, play, &players[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(players[i].thread, NULL);
        assert_int_equal(players[i].status, SEGUE_OK);
        assert_true(players[i].seen == ROUNDS);
    }
    for (int i = 0; i < 2; i++)
        test_ear_close(&players[i].ear);
    tear_down(&s);
}

static void count_up(void *user)
{
    ++*(int *)user;
}

static void *come_and_go(void *arg)
{
    uint8_t id[SEGUE_STORE_ID_SIZE];
    test_store_id(id, 1);
    for (int i = 0; i < 300; i++) {
        int rings = 0; /* a late wake-up call would write to freed memory */
        sgi_store_listener *listener;
        if (sgi_store_listen(arg, count_up, &rings, &listener))
            return arg;
        if (sgi_store_follow(listener, id, true))
            return arg;
        sgi_store_unlisten(listener);
    }
    return NULL;
}

static void listeners_go_while_they_are_rung(void **state)
{
    stage s;
    pthread_t thread;
    void *failed;
    set_up(state, &s);
    assert_int_equal(pthread_create(&thread, NULL, come_and_go, s.store), 0);
    for (uint64_t seq = 1; seq <= 300; seq++)
        test_append_by(&s.one, 1, seq);
    pthread_join(thread, &failed);
    assert_null(failed);
    tear_down(&s);
}

int news_suite_run(const store_suite *suite)
{
    struct CMUnitTest cases[] = {
        cmocka_unit_test(growth_is_told_to_who_follows),
        cmocka_unit_test(own_commits_are_no_news),
        cmocka_unit_test(end_and_deletion_are_growth),
        cmocka_unit_test(refused_commits_are_no_news),
        cmocka_unit_test(what_is_not_there_cannot_be_followed),
        cmocka_unit_test(release_makes_orphans),
        cmocka_unit_test(letters_come_in_order_and_once),
        cmocka_unit_test(letter_that_was_not_taken_waits_for_the_next_owner),
        cmocka_unit_test(taking_nothing_is_fine),
        cmocka_unit_test(letters_to_one_operation_are_bounded),
        cmocka_unit_test(no_letters_to_what_has_ended),
        cmocka_unit_test(what_was_refused_is_told_again),
        cmocka_unit_test(no_growth_is_lost_between_threads),
        cmocka_unit_test(listeners_go_while_they_are_rung),
    };
    char name[64];
    snprintf(name, sizeof name, "%s: news", suite->name);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cases[i].initial_state = (void *)(uintptr_t)suite;
    return cmocka_run_group_tests_name(name, cases, NULL, NULL);
}
