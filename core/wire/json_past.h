/* What the JSON reader remembers of an earlier text: its members, where they stood and
 * their bytes. A peer repeats most members of its messages, such as `jsonrpc`, `method`
 * and what _meta says of the client. A member whose bytes stood at the same place of an
 * earlier text is compared and not read. The result is the same.
 *
 * "Place" is the level (0 = the outermost object, 1 = the first part, 2 = the second
 * part, see sgi_json_part) and the number of the member in its object. Nothing else of
 * the earlier text matters: a member that was accepted at a level is acceptable at this
 * level in every text, except for a key that the object has already, which is checked.
 *
 * All texts of a memory are read with the same names of parts. Whether a member with the
 * name of a part is one depends on the members before it. So such a member is compared
 * only if the object has its part already.
 *
 * Only json_read.c and json_past.c look into the struct. */
#ifndef SGI_JSON_PAST_H
#define SGI_JSON_PAST_H

#include "wire/json_keys.h"

/* maximum number of bytes of a text that is remembered */
#define SGI_JSON_PAST_BYTES 1024
#define SGI_JSON_PAST_LEVELS 3
#define SGI_JSON_PAST_MEMBERS SGI_JSON_PART_MEMBERS

typedef struct sgi_json_past_member {
    uint32_t at;       /* offset of the key's opening quote in `bytes` */
    uint32_t len;      /* from this quote to the end of the value */
    uint32_t key_len;  /* between the quotes of the key */
    uint32_t value_at; /* from the opening quote of the key to the value */
    uint32_t hash;     /* of the key (sgi_json_key_hash) */
    bool escaped;      /* true = the key has escapes, so its decoded form is needed */
    bool
        is_part; /* true = the key has the name of a part, so that the value may be one */
} sgi_json_past_member;

/* The object of a part: its position in `bytes`. */
typedef struct sgi_json_past_object {
    uint32_t at;
    uint32_t len; /* 0 = there is none, or it has too many members */
} sgi_json_past_object;

struct sgi_json_past {
    uint32_t poor; /* number of texts in a row that repeated less than they changed */
    size_t count[SGI_JSON_PAST_LEVELS];
    sgi_json_past_object objects[SGI_JSON_PAST_LEVELS];
    sgi_json_past_member members[SGI_JSON_PAST_LEVELS][SGI_JSON_PAST_MEMBERS];
    char bytes[SGI_JSON_PAST_BYTES];
};

/* The number of texts in a row that must repeat little before one of them is remembered.
 * So a text of another kind now and then does not take the place of a useful one. */
#define SGI_JSON_PAST_POOR 4

/* Remembers an accepted text in place of the earlier one, if there is none or if this
 * text is one of several that repeat little of it. A text that is too long is not
 * remembered. members, count: of the outermost object, as they were recorded; trail: the
 * parts that were recorded; repeated, changed: number of members that repeat the earlier
 * text, and that do not. */
void sgi_json_past_keep(sgi_json_past *past, sgi_str text, const sgi_json_member *members,
                        size_t count, const sgi_json_part_names *trail, uint32_t repeated,
                        uint32_t changed);

/* Fills *member if the member at p repeats the member at the same place, and adds its key
 * to the innermost object. has_part: the object has no further part. Returns the end of
 * the value, or NULL when the member must be read. */
static inline const unsigned char *
sgi_json_past_repeat(const sgi_json_past *past, size_t level, size_t number,
                     bool has_part, sgi_json_reader *reader, sgi_str text,
                     const unsigned char *p, sgi_json_member *member)
{
    if (number >= past->count[level])
        return NULL;
    const sgi_json_past_member *old = &past->members[level][number];
    size_t at = (size_t)(p - (const unsigned char *)text.p);
    if (old->escaped || (old->is_part && !has_part) || text.n - at <= old->len ||
        memcmp(p, past->bytes + old->at, old->len) != 0)
        return NULL;
    /* after another byte, such as a digit, the value may be longer here */
    unsigned char next = p[old->len];
    if ((next != ',' && next != '}') ||
        !sgi_json_key_add_hashed(reader, (uint32_t)at + 1, old->hash))
        return NULL;
    *member = (sgi_json_member){
        .key = {(const char *)p + 1, old->key_len},
        .value = {(const char *)p + old->value_at, (size_t)old->len - old->value_at}};
    return p + old->len;
}

/* Fills the part, and the part inside it, for an object at p that repeats the part of
 * this level. */
void sgi_json_past_fill(const sgi_json_past *past, size_t level, const unsigned char *p,
                        const sgi_json_part_names *trail);

/* Fills the part if the object at p repeats the part of this level as a whole. Returns
 * the end of the object, or NULL when the object must be read. */
static inline const unsigned char *
sgi_json_past_repeat_part(const sgi_json_past *past, size_t level, sgi_str text,
                          const unsigned char *p, const sgi_json_part_names *trail)
{
    const sgi_json_past_object *old = &past->objects[level];
    size_t at = (size_t)(p - (const unsigned char *)text.p);
    if (!old->len || text.n - at < old->len ||
        memcmp(p, past->bytes + old->at, old->len) != 0)
        return NULL;
    sgi_json_past_fill(past, level, p, trail);
    return p + old->len;
}

#endif
