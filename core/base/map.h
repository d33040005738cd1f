/* A hash map from bytes to objects. Intrusive: the node lives in the object, so putting
 * one in cannot fail for lack of memory (a table that cannot grow only gets slower). Keys
 * are hashed with a secret seed (SipHash-1-3): a peer that chooses keys cannot choose
 * buckets. */
#ifndef SGI_MAP_H
#define SGI_MAP_H

#include "base/base.h"

typedef struct sgi_map_node {
    struct sgi_map_node *next;
    sgi_str key; /* owned by the object */
    uint64_t hash;
} sgi_map_node;

typedef struct sgi_map {
    const sgi_mem *mem;
    sgi_map_node **table;
    size_t size; /* a power of two, or 0 */
    size_t count;
    uint64_t seed[2];
    sgi_map_node *lone; /* chain in use while there is no table */
} sgi_map;

void sgi_map_init(sgi_map *map, const sgi_env *env);
void sgi_map_free(sgi_map *map); /* the table only */
sgi_map_node *sgi_map_find(const sgi_map *map, sgi_str key);
/* key must stay valid while the node is in the map; the caller made sure it is new. */
void sgi_map_put(sgi_map *map, sgi_map_node *node, sgi_str key);
void sgi_map_remove(sgi_map *map, sgi_map_node *node);
/* Each node once, in no order; fn must not change the map. */
void sgi_map_each(const sgi_map *map, void (*fn)(void *user, sgi_map_node *node),
                  void *user);
/* Any node, or NULL when empty: for taking a map down. */
sgi_map_node *sgi_map_any(const sgi_map *map);

uint64_t sgi_siphash(const uint64_t seed[2], const void *bytes, size_t len);

#endif
