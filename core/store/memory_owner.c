/* The sorted list of each principal's operations. Each operation contains its own entry
 * of the list (`place`).
 *
 * The entries with the newest creation time are in the list `fresh`, unsorted. They are
 * sorted and merged into `places` when an entry with a later creation time is added, or
 * when the list is read. A busy server creates hundreds of operations in one millisecond;
 * without `fresh`, each of them would need a search for its position. Only after the
 * clock went back, the position of a single entry is searched. */
#include "store/memory_owner.h"

TAILQ_HEAD(place_list, sgi_memory_principal_entry);

struct sgi_memory_principal {
    sgi_index_node node;
    struct place_list places; /* the entries, sorted by creation time, newest first */
    /* entries with one common creation time, which is not older than any entry in
     * `places` */
    struct place_list fresh;
    size_t count; /* number of operations that have a reference to this list */
    uint8_t principal[SEGUE_STORE_HASH_SIZE];
};

static sgi_memory_principal *owner_of_node(const sgi_index_node *node)
{
    return SGI_OWNER((sgi_index_node *)node, sgi_memory_principal, node);
}

static sgi_str principal_of_node(const sgi_index_node *node)
{
    return (sgi_str){(const char *)owner_of_node(node)->principal, SEGUE_STORE_HASH_SIZE};
}

void sgi_memory_principals_init(sgi_index *owners, const sgi_env *env)
{
    static const sgi_index_keys principals = {.of = principal_of_node,
                                              .are_random = true};
    sgi_index_init(owners, env, &principals);
}

static sgi_memory_principal *find_owner(const sgi_index *owners, const uint8_t *principal)
{
    sgi_str key = {(const char *)principal, SEGUE_STORE_HASH_SIZE};
    const sgi_index_node *node = sgi_index_find(owners, key);
    return node ? owner_of_node(node) : NULL;
}

bool sgi_memory_principal_set(sgi_index *owners, const sgi_mem *mem,
                              sgi_memory_principal_entry *place,
                              const uint8_t principal[SEGUE_STORE_HASH_SIZE])
{
    sgi_memory_principal *owner = find_owner(owners, principal);
    if (!owner) {
        owner = sgi_zalloc(mem, sizeof *owner);
        if (!owner)
            return false;
        TAILQ_INIT(&owner->places);
        TAILQ_INIT(&owner->fresh);
        memcpy(owner->principal, principal, sizeof owner->principal);
        sgi_index_put(owners, &owner->node);
    }
    owner->count++;
    place->owner = owner;
    return true;
}

void sgi_memory_principal_release(sgi_index *owners, const sgi_mem *mem,
                                  sgi_memory_principal_entry *place)
{
    sgi_memory_principal *owner = place->owner;
    if (--owner->count)
        return;
    sgi_index_remove(owners, &owner->node);
    sgi_free(mem, owner, sizeof *owner);
}

const uint8_t *sgi_memory_principal_of_entry(const sgi_memory_principal_entry *place)
{
    return place->owner->principal;
}

static bool is_behind(const sgi_memory_principal_entry *place, int64_t created_ms,
                      const char *task_id)
{
    if (place->created_ms != created_ms)
        return place->created_ms < created_ms;
    return strcmp(place->task_id, task_id) < 0;
}

/* Moves the entries of the sorted list `from` into the sorted list `into`. */
static void merge(struct place_list *into, struct place_list *from)
{
    sgi_memory_principal_entry *at = TAILQ_FIRST(into), *place;
    while ((place = TAILQ_FIRST(from))) {
        while (at && !is_behind(at, place->created_ms, place->task_id))
            at = TAILQ_NEXT(at, link);
        TAILQ_REMOVE(from, place, link);
        place->is_fresh = false;
        if (at)
            TAILQ_INSERT_BEFORE(at, place, link);
        else
            TAILQ_INSERT_TAIL(into, place, link);
    }
}

/* Sorts `fresh` by merge sort and merges the result into `places`. heaps[i] is empty or
 * has 2^i entries. */
static void settle(sgi_memory_principal *owner)
{
    struct place_list heaps[64], one = TAILQ_HEAD_INITIALIZER(one);
    sgi_memory_principal_entry *place;
    size_t used = 0;
    while ((place = TAILQ_FIRST(&owner->fresh))) {
        size_t i = 0;
        TAILQ_REMOVE(&owner->fresh, place, link);
        TAILQ_INSERT_HEAD(&one, place, link);
        for (; i < used && !TAILQ_EMPTY(&heaps[i]); i++)
            merge(&one, &heaps[i]);
        if (i == used) {
            TAILQ_INIT(&heaps[i]);
            used++;
        }
        TAILQ_CONCAT(&heaps[i], &one, link);
    }
    for (size_t i = 0; i < used; i++)
        merge(&one, &heaps[i]);
    merge(&owner->places, &one);
}

void sgi_memory_principal_add(sgi_memory_principal_entry *place)
{
    sgi_memory_principal *owner = place->owner;
    const sgi_memory_principal_entry *other = TAILQ_FIRST(&owner->fresh);
    if (other && other->created_ms != place->created_ms)
        settle(owner);
    other = TAILQ_FIRST(&owner->places);
    place->is_fresh = !other || other->created_ms <= place->created_ms;
    if (place->is_fresh) {
        TAILQ_INSERT_HEAD(&owner->fresh, place, link);
    } else {
        struct place_list one = TAILQ_HEAD_INITIALIZER(one);
        TAILQ_INSERT_HEAD(&one, place, link);
        merge(&owner->places, &one);
    }
}

void sgi_memory_principal_remove(sgi_memory_principal_entry *place)
{
    sgi_memory_principal *owner = place->owner;
    TAILQ_REMOVE(place->is_fresh ? &owner->fresh : &owner->places, place, link);
}

sgi_memory_principal_entry *
sgi_memory_principal_first_after(const sgi_index *owners,
                                 const uint8_t principal[SEGUE_STORE_HASH_SIZE],
                                 int64_t created_ms, const char *task_id)
{
    sgi_memory_principal *owner = find_owner(owners, principal);
    if (!owner)
        return NULL;
    settle(owner);
    sgi_memory_principal_entry *place = TAILQ_FIRST(&owner->places);
    while (place && task_id && !is_behind(place, created_ms, task_id))
        place = TAILQ_NEXT(place, link);
    return place;
}

sgi_memory_principal_entry *
sgi_memory_principal_next(const sgi_memory_principal_entry *place)
{
    return TAILQ_NEXT(place, link);
}

sgi_memory_principal_entry *
sgi_memory_principal_oldest(const sgi_memory_principal_entry *place)
{
    settle(place->owner);
    return TAILQ_LAST(&place->owner->places, place_list);
}

sgi_memory_principal_entry *
sgi_memory_principal_newer(const sgi_memory_principal_entry *place)
{
    return TAILQ_PREV(place, place_list, link);
}
