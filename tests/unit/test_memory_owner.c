/* The order of a principal's operations against a naive sort, under random use: many in
 * one millisecond, clocks that go back, and reads at any moment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "store/memory_owner.h"
#include "support/test_mem.h"

#define ITEMS 600
#define STEPS 4000

typedef struct item {
    sgi_memory_principal_entry place;
    char task_id[16];
    bool in;
} item;

static const uint8_t principal[SEGUE_STORE_HASH_SIZE] = {7};
static item items[ITEMS];
static test_mem tm;
static uint64_t chance;
static segue_hooks hooks;
static sgi_env env;
static sgi_index owners;

static uint32_t below(uint32_t n)
{
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(chance >> 33) % n;
}

static int32_t random_bytes(void *user, void *bytes, size_t len)
{
    (void)user;
    for (size_t i = 0; i < len; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)below(256);
    return 0;
}

/* Sorts newest first. Operations of one moment are sorted by the bytes of the task id,
 * falling. */
static int compare(const void *a, const void *b)
{
    const item *left = *(item *const *)a, *right = *(item *const *)b;
    if (left->place.created_ms != right->place.created_ms)
        return left->place.created_ms < right->place.created_ms ? 1 : -1;
    return strcmp(right->task_id, left->task_id);
}

static size_t sort(item *sorted[ITEMS])
{
    size_t count = 0;
    for (size_t i = 0; i < ITEMS; i++)
        if (items[i].in)
            sorted[count++] = &items[i];
    qsort(sorted, count, sizeof *sorted, compare);
    return count;
}

/* Checks the whole list, and the list behind a position that may not exist. */
static void check_list(void)
{
    item *sorted[ITEMS];
    size_t count = sort(sorted);
    const sgi_memory_principal_entry *place =
        sgi_memory_principal_first_after(&owners, principal, 0, NULL);
    for (size_t i = 0; i < count; i++, place = sgi_memory_principal_next(place))
        assert_ptr_equal(place, &sorted[i]->place);
    assert_null(place);
    if (!count)
        return;
    size_t at = below((uint32_t)count);
    place = sgi_memory_principal_first_after(
        &owners, principal, sorted[at]->place.created_ms, sorted[at]->task_id);
    assert_ptr_equal(place, at + 1 < count ? &sorted[at + 1]->place : NULL);
}

static void check_from_the_oldest(void)
{
    item *sorted[ITEMS];
    size_t count = sort(sorted);
    if (!count)
        return;
    sgi_memory_principal_entry *place =
        sgi_memory_principal_oldest(&sorted[below((uint32_t)count)]->place);
    for (size_t i = count; i-- > 0; place = sgi_memory_principal_newer(place))
        assert_ptr_equal(place, &sorted[i]->place);
    assert_null(place);
}

static void put(item *one, int64_t now_ms)
{
    one->place.created_ms = now_ms;
    one->place.task_id = one->task_id;
    snprintf(one->task_id, sizeof one->task_id, "%08x", (unsigned)below(UINT32_MAX));
    assert_true(sgi_memory_principal_set(&owners, &tm.mem, &one->place, principal));
    sgi_memory_principal_add(&one->place);
    one->in = true;
}

static void take(item *one)
{
    sgi_memory_principal_remove(&one->place);
    sgi_memory_principal_release(&owners, &tm.mem, &one->place);
    one->in = false;
}

/* ticks: the clock moves about once in this many steps. */
static void use_at_random(uint32_t ticks, uint32_t looks)
{
    int64_t now_ms = 1000;
    test_mem_init(&tm);
    hooks = (segue_hooks){.struct_size = sizeof hooks, .random = random_bytes};
    env = (sgi_env){&tm.mem, &hooks};
    sgi_memory_principals_init(&owners, &env);
    for (int step = 0; step < STEPS; step++) {
        item *one = &items[below(ITEMS)];
        if (!below(ticks))
            now_ms += below(8) ? 4 : -8;
        if (one->in)
            take(one);
        else
            put(one, now_ms);
        if (!below(looks))
            check_list();
        if (!below(looks))
            check_from_the_oldest();
    }
    check_list();
    for (size_t i = 0; i < ITEMS; i++)
        if (items[i].in)
            take(&items[i]);
    assert_null(sgi_memory_principal_first_after(&owners, principal, 0, NULL));
    sgi_index_free(&owners);
    assert_int_equal(tm.live, 0);
}

static void the_order_is_that_of_a_sort(void **state)
{
    (void)state;
    for (uint32_t ticks = 1; ticks <= 4096; ticks *= 8)
        for (uint32_t looks = 8; looks <= 2048; looks *= 16)
            use_at_random(ticks, looks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_is_that_of_a_sort),
    };
    return cmocka_run_group_tests_name("memory_owner", tests, NULL, NULL);
}
