/* Places stand in the order of a list, so a new one goes to the front: only a clock that
 * went back, or several operations of one millisecond, make it look further. */
#include "store/memory_owner.h"

struct sgi_memory_owner {
    sgi_map_node node;
    TAILQ_HEAD(place_list, sgi_memory_place) places;
    size_t count; /* of places that hold it */
    uint8_t principal[SEGUE_STORE_HASH_SIZE];
};

static sgi_memory_owner *find_owner(const sgi_map *owners, const uint8_t *principal)
{
    sgi_str key = {(const char *)principal, SEGUE_STORE_HASH_SIZE};
    sgi_map_node *node = sgi_map_find(owners, key);
    return node ? SGI_OWNER(node, sgi_memory_owner, node) : NULL;
}

bool sgi_memory_owner_hold(sgi_map *owners, const sgi_mem *mem, sgi_memory_place *place,
                           const uint8_t principal[SEGUE_STORE_HASH_SIZE])
{
    sgi_memory_owner *owner = find_owner(owners, principal);
    if (!owner) {
        owner = sgi_zalloc(mem, sizeof *owner);
        if (!owner)
            return false;
        TAILQ_INIT(&owner->places);
        memcpy(owner->principal, principal, sizeof owner->principal);
        sgi_map_put(owners, &owner->node,
                    (sgi_str){(const char *)owner->principal, sizeof owner->principal});
    }
    owner->count++;
    place->owner = owner;
    return true;
}

void sgi_memory_owner_drop(sgi_map *owners, const sgi_mem *mem, sgi_memory_place *place)
{
    sgi_memory_owner *owner = place->owner;
    if (--owner->count)
        return;
    sgi_map_remove(owners, &owner->node);
    sgi_release(mem, owner, sizeof *owner);
}

const uint8_t *sgi_memory_owner_principal(const sgi_memory_place *place)
{
    return place->owner->principal;
}

static bool is_behind(const sgi_memory_place *place, int64_t created_ms,
                      const char *task_id)
{
    if (place->created_ms != created_ms)
        return place->created_ms < created_ms;
    return strcmp(place->task_id, task_id) < 0;
}

void sgi_memory_owner_add(sgi_memory_place *place)
{
    struct place_list *places = &place->owner->places;
    sgi_memory_place *other = TAILQ_FIRST(places);
    while (other && !is_behind(other, place->created_ms, place->task_id))
        other = TAILQ_NEXT(other, link);
    if (other)
        TAILQ_INSERT_BEFORE(other, place, link);
    else
        TAILQ_INSERT_TAIL(places, place, link);
}

void sgi_memory_owner_remove(sgi_memory_place *place)
{
    TAILQ_REMOVE(&place->owner->places, place, link);
}

sgi_memory_place *sgi_memory_owner_first(const sgi_map *owners,
                                         const uint8_t principal[SEGUE_STORE_HASH_SIZE],
                                         int64_t created_ms, const char *task_id)
{
    const sgi_memory_owner *owner = find_owner(owners, principal);
    sgi_memory_place *place = owner ? TAILQ_FIRST(&owner->places) : NULL;
    while (place && task_id && !is_behind(place, created_ms, task_id))
        place = TAILQ_NEXT(place, link);
    return place;
}

sgi_memory_place *sgi_memory_owner_next(const sgi_memory_place *place)
{
    return TAILQ_NEXT(place, link);
}

sgi_memory_place *sgi_memory_owner_oldest(const sgi_memory_place *place)
{
    return TAILQ_LAST(&place->owner->places, place_list);
}

sgi_memory_place *sgi_memory_owner_newer(const sgi_memory_place *place)
{
    return TAILQ_PREV(place, place_list, link);
}
