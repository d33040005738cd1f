/* The hash map against a naive list, under random use. Collisions and tables that cannot
 * grow only make the map slower. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/map.h"
#include "support/test_mem.h"

#define ITEMS 400

typedef struct item {
    sgi_map_node node;
    char key[16];
    bool in;
} item;

static test_mem tm;
static uint64_t chance;
static segue_hooks hooks;
static sgi_env env;

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

static int set_up(void **state)
{
    (void)state;
    chance = 7;
    test_mem_init(&tm);
    hooks = (segue_hooks){.struct_size = sizeof hooks, .random = random_bytes};
    env = (sgi_env){&tm.mem, &hooks};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_int_equal(tm.live, 0);
    return 0;
}

static void name_items(item *items)
{
    memset(items, 0, ITEMS * sizeof *items);
    for (int i = 0; i < ITEMS; i++)
        snprintf(items[i].key, sizeof items[i].key, "key-%d", i);
}

static void see(void *user, sgi_map_node *node)
{
    assert_true(SGI_OWNER(node, item, node)->in);
    ++*(size_t *)user;
}

static void check_against(const sgi_map *map, const item *items)
{
    size_t count = 0;
    for (int i = 0; i < ITEMS; i++) {
        const sgi_map_node *found = sgi_map_find(map, sgi_str_of(items[i].key));
        assert_ptr_equal(found, items[i].in ? &items[i].node : NULL);
        count += items[i].in;
    }
    assert_int_equal(map->count, count);
    size_t seen = 0;
    sgi_map_each(map, see, &seen);
    assert_int_equal(seen, count);
    assert_int_equal(sgi_map_any_node(map) != NULL, count > 0);
}

/* Puts and takes at random, then empties the map with `any`. */
static void use_at_random(sgi_map *map, int steps)
{
    static item items[ITEMS];
    name_items(items);
    for (int step = 0; step < steps; step++) {
        item *it = &items[below(ITEMS)];
        if (it->in)
            sgi_map_remove(map, &it->node);
        else
            sgi_map_put(map, &it->node, sgi_str_of(it->key));
        it->in = !it->in;
        if (step % 97 == 0)
            check_against(map, items);
    }
    check_against(map, items);
    sgi_map_node *node;
    while ((node = sgi_map_any_node(map))) {
        sgi_map_remove(map, node);
        SGI_OWNER(node, item, node)->in = false;
    }
    check_against(map, items);
    sgi_map_free(map);
}

static void agrees_with_a_list_under_random_use(void **state)
{
    (void)state;
    sgi_map map;
    sgi_map_init(&map, &env);
    use_at_random(&map, 5000);
}

static void works_without_any_table(void **state)
{
    (void)state;
    sgi_map map;
    sgi_map_init(&map, &env);
    tm.fail_from = 1;
    use_at_random(&map, 3000);
    assert_true(tm.failed > 0);
    assert_null(map.table);
}

static void works_with_a_table_that_stopped_growing(void **state)
{
    (void)state;
    for (size_t at = 2; at < 6; at++) {
        sgi_map map;
        test_mem_rearm(&tm);
        sgi_map_init(&map, &env);
        tm.fail_from = at;
        use_at_random(&map, 1000);
        assert_true(tm.failed > 0);
    }
}

static void a_table_that_comes_late_takes_the_chain_in(void **state)
{
    (void)state;
    static item items[ITEMS];
    sgi_map map;
    sgi_map_init(&map, &env);
    name_items(items);
    tm.fail_from = 1;
    for (int i = 0; i < ITEMS; i++) {
        if (i == ITEMS / 2)
            test_mem_rearm(&tm);
        sgi_map_put(&map, &items[i].node, sgi_str_of(items[i].key));
        items[i].in = true;
    }
    assert_non_null(map.table);
    check_against(&map, items);
    sgi_map_free(&map);
}

/* The items share a bucket and even a hash: only the key tells them apart. */
static void equal_hashes_are_told_apart_by_key(void **state)
{
    (void)state;
    static item items[ITEMS];
    sgi_map map;
    sgi_map_init(&map, &env);
    name_items(items);
    /* a map of twelve items has a table */
    for (int i = 0; i < 12; i++) {
        sgi_map_put(&map, &items[i].node, sgi_str_of(items[i].key));
        items[i].in = true;
    }
    uint64_t hash = items[1].node.hash;
    sgi_map_remove(&map, &items[0].node);
    sgi_map_put(&map, &items[0].node, sgi_str_of(items[0].key));
    sgi_map_remove(&map, &items[0].node);
    items[0].node.hash = hash; /* a forged chain of two with one hash */
    items[0].node.next = map.table[hash & (map.size - 1)];
    map.table[hash & (map.size - 1)] = &items[0].node;
    map.count++;
    assert_ptr_equal(sgi_map_find(&map, sgi_str_of(items[1].key)), &items[1].node);
    sgi_map_remove(&map, &items[0].node);
    items[0].in = false;
    check_against(&map, items);
    sgi_map_free(&map);
}

static void keys_are_bytes_and_may_be_empty(void **state)
{
    (void)state;
    static const char zeros[3] = {0, 0, 0};
    item items[4] = {{.in = true}};
    sgi_map map;
    sgi_map_init(&map, &env);
    assert_null(sgi_map_find(&map, (sgi_str){0}));
    for (size_t len = 0; len < 4; len++)
        sgi_map_put(&map, &items[len].node, (sgi_str){zeros, len});
    for (size_t len = 0; len < 4; len++)
        assert_ptr_equal(sgi_map_find(&map, (sgi_str){zeros, len}), &items[len].node);
    assert_ptr_equal(sgi_map_find(&map, (sgi_str){0}), &items[0].node);
    sgi_map_free(&map);
}

static void removing_what_is_not_in_changes_nothing(void **state)
{
    (void)state;
    static item items[ITEMS];
    sgi_map map;
    sgi_map_init(&map, &env);
    name_items(items);
    sgi_map_put(&map, &items[0].node, sgi_str_of(items[0].key));
    items[0].in = true;
    sgi_map_remove(&map, &items[1].node);
    check_against(&map, items);
    sgi_map_free(&map);
}

/* Values of another implementation (CPython's, with its key set to zero), and the
 * published value for no bytes under the key 00 01 ... 0f. */
static void hash_is_siphash_1_3(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t hash;
    } rows[] = {
        {"a", 0x407448d2b89b1813u},
        {"abcdefg", 0x6db12aae9070f506u},
        {"abcdefgh", 0x3f7b849c0b8e35eau},
        {"abcdefghijklmnopq", 0x61c47e6da27eacccu},
    };
    const uint64_t zero[2] = {0, 0};
    const uint64_t counting[2] = {0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_true(sgi_siphash(zero, rows[i].text, strlen(rows[i].text)) ==
                    rows[i].hash);
    assert_true(sgi_siphash(counting, NULL, 0) == 0xabac0158050fc4dcu);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(agrees_with_a_list_under_random_use),
        CASE(works_without_any_table),
        CASE(works_with_a_table_that_stopped_growing),
        CASE(a_table_that_comes_late_takes_the_chain_in),
        CASE(equal_hashes_are_told_apart_by_key),
        CASE(keys_are_bytes_and_may_be_empty),
        CASE(removing_what_is_not_in_changes_nothing),
        CASE(hash_is_siphash_1_3),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
