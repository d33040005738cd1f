#include "wire/json_shape.h"

/* the level of an object whose members are not recorded; otherwise 0 = the outermost
 * object, 1 and 2 = a part */
#define NO_LEVEL SIZE_MAX

typedef struct draft_hole {
    size_t at, len; /* of the value in the text */
    uint32_t depth;
} draft_hole;

/* A shape that is being made from an earlier shape and a new text. */
typedef struct draft {
    const sgi_json_shape *old; /* NULL = the text is compared with itself */
    sgi_str text;
    const sgi_json_part_names *trail;
    bool coarse; /* true = objects and arrays can be holes */
    size_t count;
    draft_hole holes[SGI_JSON_SHAPE_HOLES];
} draft;

void sgi_json_shapes_init(sgi_json_shapes *shapes)
{
    *shapes = (sgi_json_shapes){.credit = SGI_JSON_SHAPE_CREDIT};
    for (size_t i = 0; i < SGI_JSON_SHAPES; i++)
        shapes->order[i] = (uint8_t)i;
}

static void move_to_front(sgi_json_shapes *shapes, size_t number)
{
    uint8_t index = shapes->order[number];
    memmove(shapes->order + 1, shapes->order, number);
    shapes->order[0] = index;
}

void sgi_json_shapes_hit(sgi_json_shapes *shapes, size_t number)
{
    shapes->missed = 0;
    if (shapes->credit < SGI_JSON_SHAPE_CREDIT)
        shapes->credit++;
    if (number)
        move_to_front(shapes, number);
}

/* ---- the holes of a new text ---- */

static bool is_container(sgi_json value)
{
    sgi_json_kind kind = sgi_json_kind_of(value);
    return kind == SGI_JSON_OBJECT || kind == SGI_JSON_ARRAY;
}

static bool add_hole(draft *d, sgi_json value, uint32_t depth)
{
    if (d->count == SGI_JSON_SHAPE_HOLES)
        return false;
    d->holes[d->count++] = (draft_hole){(size_t)(value.p - d->text.p), value.n, depth};
    return true;
}

static bool is_old_hole(const draft *d, sgi_json value)
{
    for (size_t i = 0; d->old && i < d->old->hole_count; i++)
        if (value.p == d->old->bytes + d->old->holes[i].at)
            return true;
    return false;
}

static bool has_name_of_part(const draft *d, size_t level, sgi_str key)
{
    return level < d->trail->count && (sgi_str_eq(key, d->trail->names[level][0]) ||
                                       sgi_str_eq(key, d->trail->names[level][1]));
}

static bool compare_inside(draft *d, sgi_json was, sgi_json is, uint32_t depth,
                           size_t level);

/* Compares two values that stand at the same place. Returns false when they differ and
 * no hole can be made. */
static bool compare_values(draft *d, sgi_json was, sgi_json is, uint32_t depth)
{
    if (is_old_hole(d, was))
        return add_hole(d, is, depth);
    size_t mark = d->count;
    bool both = is_container(is) && sgi_json_kind_of(was) == sgi_json_kind_of(is);
    if (both && depth < SGI_JSON_SHAPE_DEPTH) {
        if (compare_inside(d, was, is, depth + 1, NO_LEVEL))
            return true;
    } else if (sgi_str_eq(was, is) &&
               (is_container(is) || is.n <= SGI_JSON_SHAPE_STRING)) {
        return true;
    }
    d->count = mark;
    if (!d->coarse && (is_container(is) || is_container(was)))
        return false;
    return add_hole(d, is, depth);
}

static bool compare_members(draft *d, const sgi_json_member *was,
                            const sgi_json_member *is, uint32_t depth, size_t level)
{
    if (!sgi_str_eq(was->key, is->key))
        return false;
    if (!has_name_of_part(d, level, is->key))
        return compare_values(d, was->value, is->value, depth);
    if (sgi_json_kind_of(was->value) == SGI_JSON_OBJECT &&
        sgi_json_kind_of(is->value) == SGI_JSON_OBJECT)
        return compare_inside(d, was->value, is->value, depth + 1, level + 1);
    return sgi_str_eq(was->value, is->value);
}

static bool next(sgi_json container, size_t *at, sgi_json_member *member)
{
    *member = (sgi_json_member){0};
    return sgi_json_kind_of(container) == SGI_JSON_OBJECT
               ? sgi_json_next_member(container, at, member)
               : sgi_json_next_item(container, at, &member->value);
}

/* Compares two objects, or two arrays. depth: number of containers around their
 * values. */
static bool compare_inside(draft *d, sgi_json was, sgi_json is, uint32_t depth,
                           size_t level)
{
    sgi_json_member old, new;
    for (size_t at = 0, old_at = 0;;) {
        bool more = next(is, &at, &new);
        if (next(was, &old_at, &old) != more)
            return false;
        if (!more)
            return true;
        if (!compare_members(d, &old, &new, depth, level))
            return false;
    }
}

/* ---- the shape of the holes ---- */

static sgi_json_place place_of(const draft *d, const char *p)
{
    size_t at = (size_t)(p - d->text.p), shift = 0, k = 0;
    for (; k < d->count && d->holes[k].at < at; k++)
        shift += d->holes[k].len - 1;
    return (sgi_json_place){(uint16_t)(at - shift), (uint16_t)k};
}

static void keep_members(const draft *d, sgi_json_shape_member *kept,
                         const sgi_json_member *members, size_t count)
{
    for (size_t i = 0; i < count; i++)
        kept[i] = (sgi_json_shape_member){
            .key = place_of(d, members[i].key.p),
            .key_len = (uint16_t)members[i].key.n,
            .escaped = members[i].escaped,
            .value = place_of(d, members[i].value.p),
            .end = place_of(d, members[i].value.p + members[i].value.n)};
}

static void keep_part(const draft *d, sgi_json_shape_part *kept,
                      const sgi_json_part *part)
{
    kept->start = kept->end = (sgi_json_place){0};
    if (!part->object.n)
        return;
    kept->start = place_of(d, part->object.p);
    kept->end = place_of(d, part->object.p + part->object.n);
    kept->count = part->count;
    keep_members(d, kept->members, part->members, part->count);
}

/* Copies the text with 0 at each hole. */
static void keep_bytes(const draft *d, sgi_json_shape *shape)
{
    size_t from = 0;
    shape->len = 0;
    for (size_t k = 0; k <= d->count; k++) {
        size_t to = k < d->count ? d->holes[k].at : d->text.n;
        memcpy(shape->bytes + shape->len, d->text.p + from, to - from);
        shape->len += to - from;
        if (k == d->count)
            break;
        shape->holes[k] =
            (sgi_json_hole){(uint16_t)shape->len, (uint16_t)d->holes[k].depth};
        shape->bytes[shape->len++] = '0';
        from = to + d->holes[k].len;
    }
    shape->hole_count = d->count;
}

/* Makes the shape that both the old shape and the text have, in the place of `slot`.
 * Returns false, and changes nothing, when there is none. The old shape only suggests
 * where the holes are. All bytes of the new shape come from the text, which was
 * accepted, so a wrong suggestion cannot make the shape wrong. */
static bool learn(sgi_json_shape *slot, draft *d, const sgi_json_member *members,
                  size_t count)
{
    sgi_json is = sgi_json_trim(d->text);
    sgi_json was = is;
    if (d->old)
        was = sgi_json_trim((sgi_str){d->old->bytes, d->old->len});
    d->count = 0;
    if (!compare_inside(d, was, is, 1, 0) ||
        place_of(d, d->text.p + d->text.n).at > SGI_JSON_SHAPE_BYTES)
        return false;
    keep_bytes(d, slot);
    slot->count = count;
    keep_members(d, slot->members, members, count);
    for (size_t i = 0; i < SGI_JSON_SHAPE_PARTS; i++)
        keep_part(d, &slot->parts[i], &d->trail->parts[i]);
    return true;
}

static bool is_too_large(sgi_str text, size_t count, const sgi_json_part_names *trail)
{
    bool too_large = text.n > SGI_JSON_SHAPE_TEXT || count > SGI_JSON_SHAPE_MEMBERS ||
                     trail->count != SGI_JSON_SHAPE_PARTS;
    for (size_t i = 0; !too_large && i < trail->count; i++)
        too_large =
            trail->parts[i].object.n && trail->parts[i].count > SGI_JSON_PART_MEMBERS;
    return too_large;
}

/* Widens the first shape that the text can have. Returns its number in `order`, or
 * SGI_JSON_SHAPES when there is none. */
static size_t widen(sgi_json_shapes *shapes, draft *d, const sgi_json_member *members,
                    size_t count)
{
    for (size_t i = 0; i < SGI_JSON_SHAPES; i++) {
        sgi_json_shape *shape = &shapes->list[shapes->order[i]];
        d->old = shape;
        if (shape->len && learn(shape, d, members, count))
            return i;
    }
    return SGI_JSON_SHAPES;
}

void sgi_json_shapes_learn(sgi_json_shapes *shapes, sgi_str text,
                           const sgi_json_member *members, size_t count,
                           const sgi_json_part_names *trail)
{
    shapes->missed++;
    if (sgi_json_kind_of(sgi_json_trim(text)) != SGI_JSON_OBJECT ||
        is_too_large(text, count, trail))
        return;
    if (shapes->credit < SGI_JSON_SHAPE_PRICE) {
        shapes->credit++;
        return;
    }
    shapes->credit -= SGI_JSON_SHAPE_PRICE;
    draft d = {.text = text, .trail = trail};
    size_t number = widen(shapes, &d, members, count);
    d.coarse = shapes->missed > SGI_JSON_SHAPE_MISSED;
    if (number == SGI_JSON_SHAPES && d.coarse)
        number = widen(shapes, &d, members, count);
    if (number == SGI_JSON_SHAPES) {
        number = SGI_JSON_SHAPES - 1;
        d.old = NULL;
        if (!learn(&shapes->list[shapes->order[number]], &d, members, count))
            return;
    }
    move_to_front(shapes, number);
}

/* ---- a text with a shape ---- */

static const char *at_place(sgi_str text, const size_t *shifts, sgi_json_place place)
{
    return text.p + place.at + shifts[place.holes];
}

static void fill_members(const sgi_json_shape_member *kept, size_t count, sgi_str text,
                         const size_t *shifts, sgi_json_member *members)
{
    for (size_t i = 0; i < count; i++) {
        const char *value = at_place(text, shifts, kept[i].value);
        members[i] = (sgi_json_member){
            .key = {at_place(text, shifts, kept[i].key), kept[i].key_len},
            .escaped = kept[i].escaped,
            .value = {value, (size_t)(at_place(text, shifts, kept[i].end) - value)}};
    }
}

void sgi_json_shape_fill(const sgi_json_shape *shape, sgi_str text,
                         const size_t shifts[SGI_JSON_SHAPE_HOLES + 1],
                         sgi_json_member *members, size_t max,
                         const sgi_json_part_names *trail)
{
    fill_members(shape->members, shape->count < max ? shape->count : max, text, shifts,
                 members);
    for (size_t i = 0; i < SGI_JSON_SHAPE_PARTS; i++) {
        const sgi_json_shape_part *kept = &shape->parts[i];
        if (kept->start.at == kept->end.at)
            continue;
        sgi_json_part *part = &trail->parts[i];
        const char *start = at_place(text, shifts, kept->start);
        part->object =
            (sgi_json){start, (size_t)(at_place(text, shifts, kept->end) - start)};
        part->count = kept->count;
        fill_members(kept->members, kept->count, text, shifts, part->members);
    }
}
