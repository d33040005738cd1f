#include "wire/json_past.h"

/* Notes a member of the text. A key with escapes is not remembered, because its decoded
 * form is needed. A part is not remembered, because its members are recorded one by
 * one. */
static void keep_member(sgi_json_past_member *old, sgi_str text,
                        const sgi_json_member *member, const char *part)
{
    const char *start = member->key.p - 1;
    *old = (sgi_json_past_member){0};
    if (member->escaped || (part && member->value.p == part))
        return;
    *old = (sgi_json_past_member){
        .at = (uint32_t)(start - text.p),
        .len = (uint32_t)(member->value.p + member->value.n - start),
        .key_len = (uint32_t)member->key.n,
        .value_at = (uint32_t)(member->value.p - start),
        .hash = sgi_json_key_hash_of(member->key),
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
    memcpy(past->bytes, text.p, text.n);
    keep_level(past, 0, text, members, count, part_below(trail, 0));
    for (size_t i = 0; i < trail->count && i + 1 < SGI_JSON_PAST_LEVELS; i++) {
        const sgi_json_part *part = &trail->parts[i];
        if (part->object.n)
            keep_level(past, i + 1, text, part->members, part->count,
                       part_below(trail, i + 1));
    }
}
