/* A hash map for very many objects that contain their own keys. The node of an object is
 * one pointer, where that of a map (map.h) is four: a function of the index gives the
 * key, and no hash is stored. As in a map, adding an object never fails: when the table
 * cannot grow because memory has run out, the index only becomes slower. An index of few
 * objects compares the keys themselves.
 *
 * Hashes have a secret seed, so a peer cannot choose keys that have the same hash. Keys
 * that a peer chooses are hashed with SipHash-1-3. For digests and random ids a sum of
 * two products is enough: two keys that differ in their first 16 bytes share a chain with
 * a probability of 2 / chains, whatever the keys are. Two digests that agree in these
 * bytes are the same key (fingerprint.h). */
#ifndef SGI_INDEX_H
#define SGI_INDEX_H

#include "base/map.h"

typedef struct sgi_index_node {
    struct sgi_index_node *next;
} sgi_index_node;

/* The keys of the objects of an index. */
typedef struct sgi_index_keys {
    /* Returns the key of the object that contains this node. The key must not change
     * while the object is in the index. */
    sgi_str (*of)(const sgi_index_node *node);
    /* each key is a digest or a random id; keys of less than 16 bytes are hashed as
     * texts */
    bool are_random;
} sgi_index_keys;

typedef struct sgi_index {
    const sgi_mem *mem;
    const sgi_index_keys *keys;
    sgi_index_node **table;
    /* number of chains in the table: a power of two; 0 = the table is not allocated */
    size_t size;
    size_t count;
    uint64_t seed[2];
    /* one chain of all nodes, without hashes; used while `table` is not allocated,
     * because there are few nodes or memory has run out */
    sgi_index_node *lone;
} sgi_index;

/* keys: must outlive the index. */
void sgi_index_init(sgi_index *index, const sgi_env *env, const sgi_index_keys *keys);
void sgi_index_free(sgi_index *index); /* Frees the table. Does not free the objects. */
sgi_index_node *sgi_index_find(const sgi_index *index, sgi_str key);
/* Adds an object. The index must not contain its key yet. */
void sgi_index_put(sgi_index *index, sgi_index_node *node);
/* Removes an object. Does nothing when the index does not contain it. */
void sgi_index_remove(sgi_index *index, sgi_index_node *node);
/* Calls fn for each node once, in no particular order. fn must not change the index. */
void sgi_index_each(const sgi_index *index, void (*fn)(void *user, sgi_index_node *node),
                    void *user);
/* Calls fn for the nodes of one chain. *place: 0 = the first chain; receives the place of
 * the next chain, and 0 after the last one. The index may change between two calls, and
 * even grow: a node that stays in it is passed, perhaps twice. */
void sgi_index_pass_chain(const sgi_index *index, uint64_t *place,
                          void (*fn)(void *user, sgi_index_node *node), void *user);
/* Returns any one node; NULL when the index is empty. Used by loops that empty it. */
sgi_index_node *sgi_index_any_node(const sgi_index *index);

#endif
