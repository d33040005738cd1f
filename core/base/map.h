/* A hash map from bytes to objects. Each object contains its map node, so adding an
 * object never fails. When the table cannot grow because memory has run out, the map only
 * becomes slower. Keys are hashed with a secret seed (SipHash-1-3), so a peer cannot
 * choose keys that have the same hash. A map of few objects compares the keys
 * themselves. */
#ifndef SGI_MAP_H
#define SGI_MAP_H

#include "base/base.h"

typedef struct sgi_map_node {
    struct sgi_map_node *next;
    sgi_str key;   /* the key; its bytes belong to the object that contains this node */
    uint64_t hash; /* set while the map has a table */
} sgi_map_node;

typedef struct sgi_map {
    const sgi_mem *mem;
    sgi_map_node **table;
    /* number of chains in the table: a power of two; 0 = the table is not allocated */
    size_t size;
    size_t count;
    uint64_t seed[2];
    /* one chain of all nodes, without hashes; used while `table` is not allocated,
     * because there are few nodes or memory has run out */
    sgi_map_node *lone;
} sgi_map;

void sgi_map_init(sgi_map *map, const sgi_env *env);
void sgi_map_free(sgi_map *map); /* Frees the table. Does not free the objects. */
sgi_map_node *sgi_map_find(const sgi_map *map, sgi_str key);
/* Adds a node. Its key must stay valid while the node is in the map. The map must not
 * contain the key yet. */
void sgi_map_put(sgi_map *map, sgi_map_node *node, sgi_str key);
void sgi_map_remove(sgi_map *map, sgi_map_node *node);
/* Calls fn for each node once, in no particular order. fn must not change the map. */
void sgi_map_each(const sgi_map *map, void (*fn)(void *user, sgi_map_node *node),
                  void *user);
/* Returns any one node; NULL when the map is empty. Used by loops that empty the map. */
sgi_map_node *sgi_map_any_node(const sgi_map *map);

uint64_t sgi_siphash(const uint64_t seed[2], const void *bytes, size_t len);

#endif
