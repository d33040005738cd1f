#include "base/index.h"

/* maximum number of objects in an index without a table; their keys are compared one by
 * one */
#define FEW 8u
/* number of bytes of a random key that its hash depends on */
#define RANDOM_MIN (2 * sizeof(uint64_t))

void sgi_index_init(sgi_index *index, const sgi_env *env, const sgi_index_keys *keys)
{
    *index = (sgi_index){.mem = env->mem, .keys = keys};
    sgi_random(env, index->seed, sizeof index->seed);
}

void sgi_index_free(sgi_index *index)
{
    sgi_free(index->mem, index->table, index->size * sizeof *index->table);
    index->table = NULL;
    index->size = 0;
}

/* ---- hashes ---- */

/* The upper half of a sum of products depends on all lower bits of both words. */
static uint64_t hash_random(const uint64_t seed[2], const char *key)
{
    uint64_t words[RANDOM_MIN / sizeof(uint64_t)];
    memcpy(words, key, sizeof words);
    return (words[0] * (seed[0] | 1) + words[1] * (seed[1] | 1)) >> 32;
}

static sgi_index_node **chain_of(const sgi_index *index, sgi_str key)
{
    if (!index->size)
        return (sgi_index_node **)&index->lone;
    uint64_t hash = index->keys->are_random && key.n >= RANDOM_MIN
                        ? hash_random(index->seed, key.p)
                        : sgi_siphash(index->seed, key.p, key.n);
    return &index->table[hash & (index->size - 1)];
}

/* ---- objects ---- */

sgi_index_node *sgi_index_find(const sgi_index *index, sgi_str key)
{
    sgi_index_node *node = *chain_of(index, key);
    while (node && !sgi_str_eq(index->keys->of(node), key)) {
        SGI_WORK(0);
        node = node->next;
    }
    return node;
}

static void add(const sgi_index *index, sgi_index_node *node)
{
    sgi_index_node **chain =
        chain_of(index, index->size ? index->keys->of(node) : (sgi_str){0});
    node->next = *chain;
    *chain = node;
}

static void grow(sgi_index *index)
{
    sgi_index before = *index;
    size_t size = before.size ? before.size * 2 : FEW * 2;
    sgi_index_node **table = sgi_zalloc(index->mem, size * sizeof *table);
    if (!table)
        /* out of memory: the table stays small, and the index still works, with longer
         * chains */
        return;
    index->table = table;
    index->size = size;
    index->lone = NULL;
    for (size_t i = 0; i < (before.size ? before.size : 1); i++) {
        sgi_index_node *node = before.size ? before.table[i] : before.lone, *next;
        for (; node; node = next) {
            next = node->next;
            add(index, node);
        }
    }
    sgi_index_free(&before);
}

void sgi_index_put(sgi_index *index, sgi_index_node *node)
{
    if (index->count >= (index->size ? index->size : FEW))
        grow(index);
    add(index, node);
    index->count++;
}

void sgi_index_remove(sgi_index *index, sgi_index_node *node)
{
    sgi_index_node **at =
        chain_of(index, index->size ? index->keys->of(node) : (sgi_str){0});
    for (; *at; at = &(*at)->next)
        if (*at == node) {
            *at = node->next;
            index->count--;
            return;
        }
}

static void pass_chain(sgi_index_node *node, void (*fn)(void *user, sgi_index_node *node),
                       void *user)
{
    for (; node; node = node->next)
        fn(user, node);
}

void sgi_index_each(const sgi_index *index, void (*fn)(void *user, sgi_index_node *node),
                    void *user)
{
    for (size_t i = 0; i < (index->size ? index->size : 1); i++)
        pass_chain(index->size ? index->table[i] : index->lone, fn, user);
}

static uint64_t reverse_bits(uint64_t number)
{
    uint64_t reversed = 0;
    for (int i = 0; i < 64; i++)
        reversed |= (number >> i & 1) << (63 - i);
    return reversed;
}

/* Chains are passed in the order of their numbers with the bits reversed. When the index
 * doubles, the two chains that one becomes stand where this one stood, so those before it
 * are not passed again and none is left out. */
void sgi_index_pass_chain(const sgi_index *index, uint64_t *place,
                          void (*fn)(void *user, sgi_index_node *node), void *user)
{
    uint64_t mask = index->size ? index->size - 1 : 0;
    pass_chain(index->size ? index->table[*place & mask] : index->lone, fn, user);
    *place = reverse_bits(reverse_bits(*place | ~mask) + 1);
}

sgi_index_node *sgi_index_any_node(const sgi_index *index)
{
    if (index->lone || !index->count)
        return index->lone;
    for (size_t i = 0; i < index->size; i++)
        if (index->table[i])
            return index->table[i];
    return NULL;
}
