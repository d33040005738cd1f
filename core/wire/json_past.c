#include "wire/json_past.h"

static bool is_name_of_part(const sgi_json_part_names *trail, size_t level, sgi_str key)
{
    return level < trail->count && (sgi_str_eq(key, trail->names[level][0]) ||
                                    sgi_str_eq(key, trail->names[level][1]));
}

static void keep_level(sgi_json_past *past, size_t level, sgi_str text,
                       const sgi_json_member *members, size_t count,
                       const sgi_json_part_names *trail)
{
    past->count[level] = count < SGI_JSON_PAST_MEMBERS ? count : SGI_JSON_PAST_MEMBERS;
    for (size_t i = 0; i < past->count[level]; i++) {
        const sgi_json_member *member = &members[i];
        const char *start = member->key.p - 1;
        past->members[level][i] = (sgi_json_past_member){
            .at = (uint32_t)(start - text.p),
            .len = (uint32_t)(member->value.p + member->value.n - start),
            .key_len = (uint32_t)member->key.n,
            .value_at = (uint32_t)(member->value.p - start),
            .hash = sgi_json_key_hash_of(member->key),
            .escaped = member->escaped,
            .is_part = is_name_of_part(trail, level, member->key),
        };
    }
}

/* Notes the objects of the parts. An object that has too many members is not taken as a
 * whole, and the object around it neither. */
static void keep_objects(sgi_json_past *past, sgi_str text,
                         const sgi_json_part_names *trail)
{
    bool all_inside = true;
    for (size_t level = trail->count; level > 0; level--) {
        const sgi_json_part *part = &trail->parts[level - 1];
        all_inside &= !part->object.n || part->count <= SGI_JSON_PAST_MEMBERS;
        if (part->object.n && all_inside)
            past->objects[level] = (sgi_json_past_object){
                (uint32_t)(part->object.p - text.p), (uint32_t)part->object.n};
    }
}

void sgi_json_past_keep(sgi_json_past *past, sgi_str text, const sgi_json_member *members,
                        size_t count, const sgi_json_part_names *trail, uint32_t repeated,
                        uint32_t changed)
{
    past->poor = changed > repeated ? past->poor + 1 : 0;
    bool is_useful = past->count[0] && past->poor < SGI_JSON_PAST_POOR;
    if (is_useful || text.n > SGI_JSON_PAST_BYTES || trail->count >= SGI_JSON_PAST_LEVELS)
        return;
    past->poor = 0;
    memset(past->count, 0, sizeof past->count);
    memset(past->objects, 0, sizeof past->objects);
    memcpy(past->bytes, text.p, text.n);
    keep_level(past, 0, text, members, count, trail);
    for (size_t i = 0; i < trail->count; i++)
        if (trail->parts[i].object.n)
            keep_level(past, i + 1, text, trail->parts[i].members, trail->parts[i].count,
                       trail);
    keep_objects(past, text, trail);
}

void sgi_json_past_fill(const sgi_json_past *past, size_t level, const unsigned char *p,
                        const sgi_json_part_names *trail)
{
    const char *start = (const char *)p;
    uint32_t first = past->objects[level].at;
    for (; level < SGI_JSON_PAST_LEVELS && past->objects[level].len; level++) {
        const sgi_json_past_object *object = &past->objects[level];
        sgi_json_part *part = &trail->parts[level - 1];
        part->object = (sgi_str){start + (object->at - first), object->len};
        part->count = past->count[level];
        for (size_t i = 0; i < part->count; i++) {
            const sgi_json_past_member *old = &past->members[level][i];
            const char *key = start + (old->at - first) + 1;
            part->members[i] = (sgi_json_member){
                .key = {key, old->key_len},
                .escaped = old->escaped,
                .value = {key - 1 + old->value_at, (size_t)old->len - old->value_at}};
        }
    }
}
