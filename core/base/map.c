#include "base/map.h"

/* maximum number of objects in a map without a table; their keys are compared one by
 * one */
#define FEW 8u

void sgi_map_init(sgi_map *map, const sgi_env *env)
{
    *map = (sgi_map){.mem = env->mem};
    sgi_random(env, map->seed, sizeof map->seed);
}

void sgi_map_free(sgi_map *map)
{
    sgi_free(map->mem, map->table, map->size * sizeof *map->table);
    map->table = NULL;
    map->size = 0;
}

#define ROTL(x, b) (((x) << (b)) | ((x) >> (64 - (b))))

static inline void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = ROTL(v[1], 13) ^ v[0];
    v[0] = ROTL(v[0], 32);
    v[2] += v[3];
    v[3] = ROTL(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = ROTL(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = ROTL(v[1], 17) ^ v[2];
    v[2] = ROTL(v[2], 32);
}

uint64_t sgi_siphash(const uint64_t seed[2], const void *bytes, size_t len)
{
    const unsigned char *in = bytes;
    uint64_t v[4] = {seed[0] ^ 0x736f6d6570736575u, seed[1] ^ 0x646f72616e646f6du,
                     seed[0] ^ 0x6c7967656e657261u, seed[1] ^ 0x7465646279746573u};
    size_t left = len;
    SGI_WORK(len);
    for (; left >= 8; left -= 8, in += 8) {
        uint64_t word;
        memcpy(&word, in, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    uint64_t last = (uint64_t)len << 56;
    for (size_t i = 0; i < left; i++)
        last |= (uint64_t)in[i] << (8 * i);
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    sip_round(v);
    sip_round(v);
    sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static sgi_map_node **bucket(const sgi_map *map, uint64_t hash)
{
    if (!map->size)
        return (sgi_map_node **)&map->lone;
    return &map->table[hash & (map->size - 1)];
}

static uint64_t hash_of(const sgi_map *map, sgi_str key)
{
    return sgi_siphash(map->seed, key.p, key.n);
}

/* Searches a map without a table. */
static sgi_map_node *find_among_few(const sgi_map *map, sgi_str key)
{
    sgi_map_node *node = map->lone;
    while (node && !sgi_str_eq(node->key, key)) {
        SGI_WORK(0);
        node = node->next;
    }
    return node;
}

sgi_map_node *sgi_map_find(const sgi_map *map, sgi_str key)
{
    if (!map->size)
        return find_among_few(map, key);
    uint64_t hash = hash_of(map, key);
    for (sgi_map_node *node = *bucket(map, hash); node; node = node->next) {
        SGI_WORK(0);
        if (node->hash == hash && sgi_str_eq(node->key, key))
            return node;
    }
    return NULL;
}

static void grow(sgi_map *map)
{
    size_t size = map->size ? map->size * 2 : FEW * 2;
    sgi_map_node **table = sgi_zalloc(map->mem, size * sizeof *table);
    if (!table)
        /* out of memory: the table stays small, and the map still works, with longer
         * chains */
        return;
    for (size_t i = 0; i < (map->size ? map->size : 1); i++) {
        sgi_map_node *node = map->size ? map->table[i] : map->lone;
        while (node) {
            sgi_map_node *next = node->next;
            if (!map->size)
                node->hash = hash_of(map, node->key);
            node->next = table[node->hash & (size - 1)];
            table[node->hash & (size - 1)] = node;
            node = next;
        }
    }
    sgi_map_free(map);
    map->lone = NULL;
    map->table = table;
    map->size = size;
}

void sgi_map_put(sgi_map *map, sgi_map_node *node, sgi_str key)
{
    if (map->count >= (map->size ? map->size : FEW))
        grow(map);
    node->key = key;
    node->hash = map->size ? hash_of(map, key) : 0;
    sgi_map_node **head = bucket(map, node->hash);
    node->next = *head;
    *head = node;
    map->count++;
}

void sgi_map_remove(sgi_map *map, sgi_map_node *node)
{
    for (sgi_map_node **at = bucket(map, node->hash); *at; at = &(*at)->next)
        if (*at == node) {
            *at = node->next;
            map->count--;
            return;
        }
}

void sgi_map_each(const sgi_map *map, void (*fn)(void *user, sgi_map_node *node),
                  void *user)
{
    for (size_t i = 0; i < (map->size ? map->size : 1); i++)
        for (sgi_map_node *node = map->size ? map->table[i] : map->lone; node;
             node = node->next)
            fn(user, node);
}

sgi_map_node *sgi_map_any_node(const sgi_map *map)
{
    if (map->lone || !map->count)
        return map->lone;
    for (size_t i = 0; i < map->size; i++)
        if (map->table[i])
            return map->table[i];
    return NULL;
}
