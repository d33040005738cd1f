/* The layer of store listeners alone: stores with and without a change feed of their own,
 * bounds, no memory. support/news_suite.c tests what a store reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "store/commands.h"
#include "support/news_kit.h"
#include "support/test_mem.h"

/* ---- a store that keeps nothing and reports a given script ---- */

typedef struct puppet {
    void (*wake)(void *user);
    void *wake_user;
    const segue_store_news *script;
    size_t told; /* changes of the script that were reported */
    size_t length;
    int follows; /* number of follows minus unfollows */
    int follow_calls;
    int posts;
    int32_t last_kind;
    int64_t within_ms;
    segue_status follow_status;
    segue_status leave_status;
} puppet;

static segue_status puppet_commit(void *self, const segue_store_write *writes,
                                  size_t count)
{
    ((puppet *)self)->last_kind = writes[count - 1].kind;
    return SEGUE_OK;
}

static segue_status puppet_find(void *self, const char *task_id, const uint8_t *key,
                                segue_store_record_fn fn, void *user)
{
    (void)self;
    (void)task_id;
    (void)key;
    (void)fn;
    (void)user;
    return SEGUE_E_NOT_FOUND;
}

static segue_status puppet_read(void *self, const uint8_t *id, uint64_t after,
                                segue_store_entry_fn fn, void *user)
{
    (void)self;
    (void)id;
    (void)after;
    (void)fn;
    (void)user;
    return SEGUE_OK;
}

static segue_status puppet_claim(void *self, segue_store_record_fn fn, void *user)
{
    (void)self;
    (void)fn;
    (void)user;
    return SEGUE_OK;
}

static void puppet_set_wake(void *self, void (*wake)(void *user), void *user)
{
    ((puppet *)self)->wake = wake;
    ((puppet *)self)->wake_user = user;
}

static segue_status puppet_follow(void *self, const uint8_t *id, int32_t on)
{
    puppet *p = self;
    (void)id;
    p->follow_calls++;
    if (on && p->follow_status)
        return p->follow_status;
    p->follows += on ? 1 : -1;
    return on ? SEGUE_OK : p->leave_status;
}

static segue_status puppet_post(void *self, const uint8_t *id, const char *data,
                                size_t len)
{
    (void)id;
    (void)data;
    (void)len;
    ((puppet *)self)->posts++;
    return SEGUE_OK;
}

static segue_status puppet_news(void *self, segue_store_news_fn fn, void *user,
                                int64_t *within_ms)
{
    puppet *p = self;
    *within_ms = p->within_ms;
    while (p->told < p->length && !fn(user, &p->script[p->told]))
        p->told++;
    return SEGUE_OK;
}

static const segue_store_vtable puppet_vtable = {.struct_size = sizeof puppet_vtable,
                                                 .commit = puppet_commit,
                                                 .find = puppet_find,
                                                 .read = puppet_read,
                                                 .claim = puppet_claim,
                                                 .set_wake = puppet_set_wake,
                                                 .follow = puppet_follow,
                                                 .post = puppet_post,
                                                 .news = puppet_news};

static segue_store *open_puppet(puppet *p)
{
    segue_store *store = NULL;
    assert_int_equal(sgi_store_new(&puppet_vtable, p, NULL, &store), SEGUE_OK);
    return store;
}

static segue_store_news news_of(int32_t kind, uint32_t n, uint64_t number)
{
    segue_store_news news = {.kind = kind, .number = number, .data = "", .data_len = 0};
    test_store_id(news.id, n);
    return news;
}

/* ---- cases ---- */

static void verbs_come_together_or_not_at_all(void **state)
{
    (void)state;
    puppet p = {0};
    segue_store *store = NULL;
    for (int missing = 0; missing < 4; missing++) {
        segue_store_vtable vtable = puppet_vtable;
        if (missing == 0)
            vtable.set_wake = NULL;
        if (missing == 1)
            vtable.follow = NULL;
        if (missing == 2)
            vtable.post = NULL;
        if (missing == 3)
            vtable.news = NULL;
        assert_int_equal(sgi_store_new(&vtable, &p, NULL, &store), SEGUE_E_INVALID);
    }
    assert_null(store);
}

static void store_is_told_what_its_listeners_follow(void **state)
{
    (void)state;
    puppet p = {.within_ms = -1};
    segue_store *store = open_puppet(&p);
    test_ear a, b;
    assert_non_null(p.wake);
    test_ear_open(&a, store);
    test_ear_open(&b, store);
    assert_int_equal(test_follow(&a, 1, true), SEGUE_OK);
    assert_int_equal(test_follow(&b, 1, true), SEGUE_OK);
    assert_int_equal(test_follow(&b, 2, true), SEGUE_OK);
    assert_int_equal(p.follow_calls, 2);
    assert_int_equal(test_follow(&a, 1, false), SEGUE_OK);
    assert_int_equal(p.follow_calls, 2);
    p.follow_status = SEGUE_E_NOT_FOUND;
    assert_int_equal(test_follow(&a, 3, true), SEGUE_E_NOT_FOUND);
    /* asks the store again */
    assert_int_equal(test_follow(&a, 3, true), SEGUE_E_NOT_FOUND);
    assert_int_equal(p.follow_calls, 4);
    test_ear_close(&b);
    assert_int_equal(p.follows, 0);
    test_ear_close(&a);
    sgi_store_unref(store);
    assert_null(p.wake);
}

static void one_asks_and_all_are_told(void **state)
{
    (void)state;
    const segue_store_news script[] = {
        news_of(SEGUE_STORE_GREW, 1, 0), news_of(SEGUE_STORE_GREW, 2, 0),
        news_of(SEGUE_STORE_LETTER, 3, 1), news_of(SEGUE_STORE_ORPHANS, 0, 0)};
    puppet p = {.script = script, .length = 4, .within_ms = 7};
    segue_store *store = open_puppet(&p);
    test_ear a, b;
    test_ear_open(&a, store);
    test_ear_open(&b, store);
    assert_int_equal(test_follow(&b, 1, true), SEGUE_OK);
    p.wake(p.wake_user);
    p.wake(p.wake_user);
    assert_int_equal(a.rings, 1);
    assert_int_equal(b.rings, 1);
    assert_int_equal(test_ear_ask(&a), 7);
    assert_int_equal(a.count, 2); /* the forwarded command and the orphans */
    test_ear_ask(&b);
    assert_int_equal(b.count, 3);
    assert_non_null(test_ear_find(&b, SEGUE_STORE_GREW, 1));
    assert_int_equal(test_ear_letters(&b, 3), 1);
    assert_int_equal(test_post(&a, 3, "x"), SEGUE_OK);
    assert_int_equal(p.posts, 1);
    assert_int_equal(test_commit_by(&a, test_write_taken(3, 1)), SEGUE_OK);
    assert_int_equal(p.last_kind, SEGUE_STORE_TAKEN);
    test_ear_close(&a);
    test_ear_close(&b);
    sgi_store_unref(store);
}

static void what_the_store_missed_all_have_missed(void **state)
{
    (void)state;
    const segue_store_news script[] = {news_of(SEGUE_STORE_MISSED, 0, 0),
                                       news_of(99, 0, 0)};
    puppet p = {.script = script, .length = 1, .within_ms = -1};
    segue_store *store = open_puppet(&p);
    test_ear a, b;
    test_ear_open(&a, store);
    test_ear_open(&b, store);
    test_ear_ask(&a);
    test_ear_ask(&b);
    assert_int_equal(a.heard[0].kind, SEGUE_STORE_MISSED);
    assert_int_equal(b.heard[0].kind, SEGUE_STORE_MISSED);
    p.length = 2; /* an unknown kind of change counts as the worst one */
    test_ear_ask(&a);
    assert_int_equal(a.heard[0].kind, SEGUE_STORE_MISSED);
    test_ear_close(&a);
    test_ear_close(&b);
    sgi_store_unref(store);
}

static void what_the_store_doubts_all_are_told(void **state)
{
    (void)state;
    const segue_store_news script[] = {news_of(SEGUE_STORE_DOUBT, 0, 0)};
    puppet p = {.script = script, .length = 1, .within_ms = -1};
    segue_store *store = open_puppet(&p);
    test_ear a, b;
    test_ear_open(&a, store);
    test_ear_open(&b, store);
    test_ear_ask(&a);
    test_ear_ask(&b);
    assert_int_equal(a.count, 1);
    assert_int_equal(a.heard[0].kind, SEGUE_STORE_DOUBT);
    assert_int_equal(b.count, 1);
    assert_int_equal(b.heard[0].kind, SEGUE_STORE_DOUBT);
    test_ear_ask(&a);
    assert_int_equal(a.count, 0);
    test_ear_close(&a);
    test_ear_close(&b);
    sgi_store_unref(store);
}

/* A listener without room: forwarded commands wait in the store, and none is lost. */
static void letters_wait_in_the_store_when_there_is_no_room(void **state)
{
    (void)state;
    const size_t count = SGI_STORE_COMMANDS_MAX + 100;
    segue_store_news script[count];
    for (uint64_t i = 0; i < count; i++)
        script[i] = news_of(SEGUE_STORE_LETTER, (uint32_t)(i % 2), i + 1);
    puppet p = {.script = script, .length = count, .within_ms = -1};
    segue_store *store = open_puppet(&p);
    test_ear quick, slow;
    test_ear_open(&quick, store);
    test_ear_open(&slow, store);
    size_t heard = 0;
    while (heard < SGI_STORE_COMMANDS_MAX) {
        test_ear_ask(&quick);
        assert_true(quick.count > 0);
        heard += quick.count;
    }
    assert_int_equal(heard, SGI_STORE_COMMANDS_MAX);
    assert_int_equal(p.told, SGI_STORE_COMMANDS_MAX);
    int64_t within_ms = test_ear_ask(&quick);
    assert_int_equal(quick.count, 0);
    assert_true(within_ms > 0); /* it must ask again, but not at once */
    uint64_t last = 0;
    for (heard = 0; heard < count; heard += slow.count) {
        test_ear_ask(&slow);
        assert_true(slow.count > 0);
        for (size_t i = 0; i < slow.count; i++)
            assert_int_equal(slow.heard[i].number, ++last);
        test_ear_ask(&quick);
    }
    test_ear_close(&quick);
    test_ear_close(&slow);
    sgi_store_unref(store);
}

/* In a memory store, no owner collects the commands to operations that ended unseen.
 * These commands are dropped when other commands need the room. Commands that a listener
 * has not received stay. */
static void letters_in_memory_are_bounded(void **state)
{
    (void)state;
    segue_store *store = NULL;
    test_ear ear;
    assert_int_equal(sgi_store_memory_new(NULL, &store), SEGUE_OK);
    test_ear_open(&ear, store);
    uint32_t n = 0;
    for (size_t i = 0; i < SGI_STORE_COMMANDS_MAX; i++) {
        if (i % SGI_STORE_COMMANDS_EACH == 0)
            test_must_create(store, ++n);
        assert_int_equal(test_post(&ear, n, "x"), SEGUE_OK);
    }
    test_must_create(store, ++n);
    assert_int_equal(test_post(&ear, n, "x"), SEGUE_E_LIMIT);
    test_ear_ask(&ear);
    assert_int_equal(ear.count, TEST_HEARD_MAX);
    for (size_t i = 0; i < SGI_STORE_COMMANDS_EACH; i++)
        assert_int_equal(test_post(&ear, n, "x"), SEGUE_OK);
    size_t heard = TEST_HEARD_MAX;
    do {
        test_ear_ask(&ear);
        heard += ear.count;
    } while (ear.count);
    assert_int_equal(heard, SGI_STORE_COMMANDS_MAX + SGI_STORE_COMMANDS_EACH);
    test_ear_close(&ear);
    sgi_store_unref(store);
}

static segue_status commit_old_kinds(void *self, const segue_store_write *writes,
                                     size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (writes[i].kind > SEGUE_STORE_DROP)
            return SEGUE_E_INVALID;
    ((puppet *)self)->last_kind = writes[count - 1].kind;
    return SEGUE_OK;
}

static void store_of_before_is_spared_what_it_does_not_know(void **state)
{
    (void)state;
    puppet p = {0};
    segue_store *store = NULL;
    test_ear ear;
    segue_store_vtable vtable = puppet_vtable;
    vtable.commit = commit_old_kinds;
    vtable.struct_size = offsetof(segue_store_vtable, set_wake);
    assert_int_equal(sgi_store_new(&vtable, &p, NULL, &store), SEGUE_OK);
    test_ear_open(&ear, store);
    assert_int_equal(test_commit_by(&ear, test_write_taken(1, 1)), SEGUE_OK);
    assert_int_equal(p.last_kind, 0);
    segue_store_write writes[] = {test_write_end(1, 5), test_write_taken(1, 1)};
    assert_int_equal(sgi_store_commit_by(ear.listener, writes, 2), SEGUE_OK);
    assert_int_equal(p.last_kind, SEGUE_STORE_END);
    assert_null(p.wake);
    test_ear_close(&ear);
    sgi_store_unref(store);
}

/* Each call may have waited for a long time. A missing operation is not a failure. */
static void store_that_fails_is_not_asked_for_the_rest(void **state)
{
    (void)state;
    static const segue_status statuses[] = {SEGUE_OK, SEGUE_E_NOT_FOUND, SEGUE_E_STORE};
    for (size_t i = 0; i < 3; i++) {
        puppet p = {.leave_status = statuses[i]};
        segue_store *store = NULL;
        test_ear ear;
        assert_int_equal(sgi_store_new(&puppet_vtable, &p, NULL, &store), SEGUE_OK);
        test_ear_open(&ear, store);
        for (uint32_t n = 0; n < 3; n++)
            assert_int_equal(test_follow(&ear, n, true), SEGUE_OK);
        test_ear_close(&ear);
        assert_int_equal(p.follow_calls, statuses[i] == SEGUE_E_STORE ? 4 : 6);
        sgi_store_unref(store);
    }
}

static void wake_nobody(void *user)
{
    (void)user;
}

static bool play_without_memory(size_t at)
{
    test_mem tm;
    test_mem_init(&tm);
    segue_store_options options = {.struct_size = sizeof options, .allocator = &tm.mem};
    segue_store *store = NULL;
    sgi_store_listener *listener = NULL;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    segue_store_write taken = test_write_taken(1, 1);
    segue_store_write both[] = {test_write_simple(SEGUE_STORE_RELEASE, 1), taken};
    test_store_id(id, 1);
    assert_int_equal(sgi_store_memory_new(&options, &store), SEGUE_OK);
    test_must_create(store, 1);
    test_mem_rearm(&tm);
    tm.fail_at = at;
    segue_status statuses[] = {sgi_store_listen(store, wake_nobody, NULL, &listener),
                               SEGUE_OK, SEGUE_OK, SEGUE_OK};
    if (listener) {
        statuses[1] = sgi_store_follow(listener, id, true);
        statuses[2] = sgi_store_post_command(listener, id, "x", 1);
        statuses[3] = sgi_store_commit_by(listener, both, 2);
    }
    for (size_t i = 0; i < 4; i++)
        assert_true(statuses[i] == SEGUE_OK || statuses[i] == SEGUE_E_NOMEM);
    bool reached = tm.failed > 0;
    if (listener)
        sgi_store_unlisten(listener);
    sgi_store_unref(store);
    assert_int_equal(tm.live, 0);
    return reached;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    size_t at = 1;
    while (play_without_memory(at))
        at++;
    assert_true(at > 4);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(verbs_come_together_or_not_at_all),
        cmocka_unit_test(store_is_told_what_its_listeners_follow),
        cmocka_unit_test(one_asks_and_all_are_told),
        cmocka_unit_test(what_the_store_missed_all_have_missed),
        cmocka_unit_test(what_the_store_doubts_all_are_told),
        cmocka_unit_test(letters_wait_in_the_store_when_there_is_no_room),
        cmocka_unit_test(letters_in_memory_are_bounded),
        cmocka_unit_test(store_of_before_is_spared_what_it_does_not_know),
        cmocka_unit_test(store_that_fails_is_not_asked_for_the_rest),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
