#include "wire/json_past.h"

static void keep_member(sgi_json_past_member *old, sgi_str text,
                        const sgi_json_member *member, const char *part)
{
    const char *start = member->key.p - 1;
    *old = (sgi_json_past_member){
        .at = (uint32_t)(start - text.p),
        .len = (uint32_t)(member->value.p + member->value.n - start),
        .key_len = (uint32_t)member->key.n,
        .value_at = (uint32_t)(member->value.p - start),
        .hash = sgi_json_key_hash_of(member->key),
        .escaped = member->escaped,
        .is_part = part && member->value.p == part,
    };
}

static void keep_level(sgi_json_past *past, size_t level, sgi_str text,
                       const sgi_json_member *members, size_t count, const char *part)
{
    past->count[level] = count < SGI_JSON_PAST_MEMBERS ? count : SGI_JSON_PAST_MEMBERS;
    for (size_t i = 0; i < past->count[level]; i++)
        keep_member(&past->members[level][i], text, &members[i], part);
}

static const char *part_below(const sgi_json_part_names *trail, size_t level)
{
    return level < trail->count ? trail->parts[level].object.p : NULL;
}

void sgi_json_past_keep(sgi_json_past *past, sgi_str text, const sgi_json_member *members,
                        size_t count, const sgi_json_part_names *trail, uint32_t repeated,
                        uint32_t changed)
{
    past->poor = changed > repeated ? past->poor + 1 : 0;
    bool is_useful = past->count[0] && past->poor < SGI_JSON_PAST_POOR;
    if (is_useful || text.n > SGI_JSON_PAST_BYTES)
        return;
    past->poor = 0;
    memset(past->count, 0, sizeof past->count);
    memset(past->objects, 0, sizeof past->objects);
    memcpy(past->bytes, text.p, text.n);
    keep_level(past, 0, text, members, count, part_below(trail, 0));
    for (size_t i = 0; i < trail->count && i + 1 < SGI_JSON_PAST_LEVELS; i++) {
        const sgi_json_part *part = &trail->parts[i];
        if (!part->object.n)
            continue;
        keep_level(past, i + 1, text, part->members, part->count,
                   part_below(trail, i + 1));
        if (part->count <= SGI_JSON_PAST_MEMBERS)
            past->objects[i + 1] = (sgi_json_past_object){
                (uint32_t)(part->object.p - text.p), (uint32_t)part->object.n};
    }
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
