/* The members of a result, which are added one after another. A member replaces an
 * earlier member of the same name and moves to the end. Names are decoded before they are
 * compared. They are found by a map with a secret seed, so that the work is linear in the
 * size of the input for any names. A single object is stored as text. The table of
 * members is made when a second object is added. */
#ifndef SGI_FIELDS_H
#define SGI_FIELDS_H

#include "engine/engine.h"

/* The largest number of names in one table. A peer that sends more gets an error that
 * names the limit. */
#define SGI_FIELDS_MAX 100000

typedef struct sgi_field {
    sgi_map_node node; /* node of by_name; the key is the decoded name */
    TAILQ_ENTRY(sgi_field) link;
    /* the members of a merged object; NULL = the value is a text */
    struct sgi_fields *nested;
    /* `text` is an array that may still grow, so its closing bracket is missing */
    bool is_list;
    sgi_buf text;
    /* length of the name as received, which is the first part of `name` */
    size_t name_len;
    size_t size;
    char name[]; /* the name as received, followed by the decoded name */
} sgi_field;

typedef struct sgi_fields {
    const sgi_env *env;
    /* the text of the only object that was added so far; empty = no object was added, or
     * by_name has the members (is_table) */
    sgi_buf text;
    sgi_map by_name;
    /* the fields, in the order in which their last values came */
    TAILQ_HEAD(, sgi_field) all;
    size_t bytes; /* size of the text that all fields together would have */
    /* the largest number of names: SGI_FIELDS_MAX; tests make it small */
    size_t max;
    bool is_table;
    bool full;   /* there were more than max names, and the later ones are missing */
    bool failed; /* memory ran out; sgi_fields_clear resets this */
} sgi_fields;

void sgi_fields_init(sgi_fields *fields, const sgi_env *env);
/* Removes all fields and failures. */
void sgi_fields_clear(sgi_fields *fields);

static inline bool sgi_fields_is_empty(const sgi_fields *fields)
{
    return !fields->bytes;
}

/* Adds the members of an object. They replace earlier members of the same name, except
 * that _meta objects are merged key by key. */
void sgi_fields_add_object(sgi_fields *fields, sgi_json object);
/* Adds one member. */
void sgi_fields_add_member(sgi_fields *fields, const sgi_json_member *member,
                           sgi_json value);
/* Adds a member that continues an earlier member of the same name. An object is merged as
 * by sgi_fields_add_object, and an array is appended. If the values have other kinds, or
 * different kinds, the new value replaces the earlier one. */
void sgi_fields_continue_member(sgi_fields *fields, const sgi_json_member *member,
                                sgi_json value);

/* A position in the fields. A walk over all fields starts with a zeroed struct. */
typedef struct sgi_fields_walk {
    size_t at; /* position in `text` of the fields */
    const sgi_field *field;
    bool begun;
    /* the current member, while the fields are stored as one text */
    sgi_json_member member;
} sgi_fields_walk;

bool sgi_fields_next(const sgi_fields *fields, sgi_fields_walk *walk);
bool sgi_fields_has(const sgi_fields *fields, const char *name);
bool sgi_fields_current_is(const sgi_fields_walk *walk, const char *name);
sgi_json_kind sgi_fields_current_kind(const sgi_fields_walk *walk);
/* Write the current field. sgi_fields_current_write writes its name and value.
 * sgi_fields_current_write_members writes the members of its value, which must be an
 * object, without braces. */
void sgi_fields_current_write(const sgi_fields_walk *walk, sgi_jw *w);
void sgi_fields_current_write_members(const sgi_fields_walk *walk, sgi_jw *w);

#endif
