/* The index: a hash map of objects that contain their own keys. One has texts, and is
 * tried against a naive list under random use. The other has digests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/index.h"
#include "support/test_mem.h"

#define ITEMS 400

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

/* ---- texts ---- */

typedef struct item {
    char key[16];
    sgi_index_node node;
    bool in;
} item;

static sgi_str text_of(const sgi_index_node *node)
{
    return sgi_str_of(SGI_OWNER((sgi_index_node *)node, item, node)->key);
}

static const sgi_index_keys texts = {.of = text_of};

static void see(void *user, sgi_index_node *node)
{
    assert_true(SGI_OWNER(node, item, node)->in);
    ++*(size_t *)user;
}

/* Notes in `in` that the node was passed. */
static void mark(void *user, sgi_index_node *node)
{
    SGI_OWNER(node, item, node)->in = true;
    ++*(size_t *)user;
}

static void check_against(const sgi_index *index, const item *items)
{
    size_t count = 0, seen = 0;
    for (int i = 0; i < ITEMS; i++) {
        const sgi_index_node *found = sgi_index_find(index, sgi_str_of(items[i].key));
        assert_ptr_equal(found, items[i].in ? &items[i].node : NULL);
        count += items[i].in;
    }
    assert_int_equal(index->count, count);
    sgi_index_each(index, see, &seen);
    assert_int_equal(seen, count);
    assert_int_equal(sgi_index_any_node(index) != NULL, count > 0);
}

/* Passes the chains one by one while the index grows: what stays in it is passed. */
static void passes_chains_while_it_grows(void **state)
{
    static item items[ITEMS];
    sgi_index index;
    uint64_t place = 0;
    size_t seen = 0;
    int next = 40;
    (void)state;
    sgi_index_init(&index, &env, &texts);
    for (int i = 0; i < ITEMS; i++) {
        snprintf(items[i].key, sizeof items[i].key, "key-%d", i);
        items[i].in = false;
    }
    for (int i = 0; i < next; i++)
        sgi_index_put(&index, &items[i].node);
    do {
        sgi_index_pass_chain(&index, &place, mark, &seen);
        for (int i = 0; i < 9 && next < ITEMS; i++)
            sgi_index_put(&index, &items[next++].node);
    } while (place);
    for (int i = 0; i < 40; i++)
        assert_true(items[i].in);
    assert_int_equal(next, ITEMS);
    sgi_index_free(&index);
}

/* Puts and removes at random, also what is not in, then empties the index. */
static void use_at_random(sgi_index *index, int steps)
{
    static item items[ITEMS];
    memset(items, 0, sizeof items);
    for (int i = 0; i < ITEMS; i++)
        snprintf(items[i].key, sizeof items[i].key, "key-%d", i);
    for (int step = 0; step < steps; step++) {
        item *it = &items[below(ITEMS)];
        if (it->in || below(9) == 0)
            sgi_index_remove(index, &it->node);
        else
            sgi_index_put(index, &it->node);
        it->in = !it->in && sgi_index_find(index, sgi_str_of(it->key));
        if (step % 97 == 0)
            check_against(index, items);
    }
    sgi_index_node *node;
    while ((node = sgi_index_any_node(index))) {
        sgi_index_remove(index, node);
        SGI_OWNER(node, item, node)->in = false;
    }
    check_against(index, items);
    sgi_index_free(index);
}

static void agrees_with_a_list_under_random_use(void **state)
{
    (void)state;
    sgi_index index;
    sgi_index_init(&index, &env, &texts);
    use_at_random(&index, 5000);
}

static void works_with_a_table_that_does_not_grow(void **state)
{
    (void)state;
    for (size_t at = 1; at < 6; at++) {
        sgi_index index;
        test_mem_rearm(&tm);
        sgi_index_init(&index, &env, &texts);
        tm.fail_from = at;
        use_at_random(&index, 2000);
        assert_true(tm.failed > 0);
    }
}

/* ---- digests ---- */

typedef struct digest_item {
    sgi_index_node node;
    uint64_t digest[4];
} digest_item;

static sgi_str digest_of(const sgi_index_node *node)
{
    const digest_item *it = SGI_OWNER((sgi_index_node *)node, digest_item, node);
    return (sgi_str){(const char *)it->digest, sizeof it->digest};
}

static const sgi_index_keys digests = {.of = digest_of, .are_random = true};

static void find_all(const sgi_index *index, const digest_item *items, int from)
{
    for (int i = 0; i < ITEMS; i++)
        assert_ptr_equal(sgi_index_find(index, digest_of(&items[i].node)),
                         i >= from ? &items[i].node : NULL);
}

/* Some digests differ only in their second half: they share a chain, and their keys tell
 * them apart. */
static void digests_are_found_by_all_their_bytes(void **state)
{
    (void)state;
    static digest_item items[ITEMS];
    sgi_index index;
    sgi_index_init(&index, &env, &digests);
    for (int i = 0; i < ITEMS; i++) {
        random_bytes(NULL, items[i].digest, sizeof items[i].digest);
        if (i % 4 == 3)
            memcpy(items[i].digest, items[i - 1].digest, 16);
        sgi_index_put(&index, &items[i].node);
    }
    assert_true(index.size >= ITEMS);
    find_all(&index, items, 0);
    for (int i = 0; i < ITEMS; i++) {
        sgi_index_remove(&index, &items[i].node);
        if (i % 50 == 0)
            find_all(&index, items, i + 1);
    }
    assert_int_equal(index.count, 0);
    sgi_index_free(&index);
}

/* Ids that begin with the time, as those of operations do, spread over the chains. */
static void ids_that_differ_little_spread(void **state)
{
    (void)state;
    static digest_item items[ITEMS];
    sgi_index index;
    size_t longest = 0;
    sgi_index_init(&index, &env, &digests);
    for (int i = 0; i < ITEMS; i++) {
        items[i].digest[1] = (uint64_t)i;
        sgi_index_put(&index, &items[i].node);
    }
    for (size_t chain = 0; chain < index.size; chain++) {
        size_t len = 0;
        for (const sgi_index_node *node = index.table[chain]; node; node = node->next)
            len++;
        longest = len > longest ? len : longest;
    }
    assert_true(longest <= 8);
    sgi_index_free(&index);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(agrees_with_a_list_under_random_use),
        CASE(works_with_a_table_that_does_not_grow),
        CASE(passes_chains_while_it_grows),
        CASE(digests_are_found_by_all_their_bytes),
        CASE(ids_that_differ_little_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
