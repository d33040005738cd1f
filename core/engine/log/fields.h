/* The members of a result, which are added one after another. A new member replaces an
 * earlier member of the same name and moves to the end. Names are decoded before they are
 * compared. A map with a secret seed finds the names, so the work is linear in the size
 * of the input whatever the names are. While only one object was added, the object is
 * stored as text. The table of members is made when a second object is added. */
#ifndef SGI_FIELDS_H
#define SGI_FIELDS_H

#include "engine/engine.h"

/* The maximum number of names in one table. If a peer sends more names, the error names
 * this limit. */
#define SGI_FIELDS_MAX 100000

typedef struct sgi_field {
    sgi_map_node node; /* node of by_name; the key is the decoded name */
    TAILQ_ENTRY(sgi_field) link;
    /* the members of a JSON object that was merged; NULL = the value is in `text` */
    struct sgi_fields *nested;
    /* `text` is a JSON array that can still grow, so its closing bracket is missing */
    bool is_list;
    sgi_buf text;
    /* number of bytes of the name as received, which is the first part of `name` */
    size_t name_len;
    size_t size;
    char name[]; /* the name as received, followed by the decoded name */
} sgi_field;

typedef struct sgi_fields {
    const sgi_env *env;
    /* the text of the only object that was added so far; empty = no object was added, or
     * is_table is true and by_name has the members */
    sgi_buf text;
    sgi_map by_name;
    /* the fields, in the order in which their last values were added */
    TAILQ_HEAD(, sgi_field) all;
    /* number of bytes of the JSON text that all fields together would have */
    size_t bytes;
    /* the maximum number of names: SGI_FIELDS_MAX, except in tests */
    size_t max;
    bool is_table;
    bool full; /* there were more names than `max`, and later fields are missing */
    /* memory ran out, and fields are missing; only sgi_fields_clear resets this */
    bool failed;
} sgi_fields;

void sgi_fields_init(sgi_fields *fields, const sgi_env *env);
/* Removes all fields, and resets `full` and `failed`. */
void sgi_fields_clear(sgi_fields *fields);

static inline bool sgi_fields_is_empty(const sgi_fields *fields)
{
    return !fields->bytes;
}

/* Adds the members of an object. A new member replaces an earlier member of the same
 * name. Only _meta objects are merged key by key. */
void sgi_fields_add_object(sgi_fields *fields, sgi_json object);
/* Adds one member. */
void sgi_fields_add_member(sgi_fields *fields, const sgi_json_member *member,
                           sgi_json value);
/* Adds a member whose value continues an earlier value of the same name. Objects are
 * merged, and the items of an array are appended. If the two values have different kinds,
 * or are neither objects nor arrays, the new value replaces the earlier value. */
void sgi_fields_continue_member(sgi_fields *fields, const sgi_json_member *member,
                                sgi_json value);

/* A position in the fields. A walk over all fields begins with a struct of zeros. */
typedef struct sgi_fields_walk {
    /* position in the text of the fields; used while the fields are stored as one text */
    size_t at;
    const sgi_field *field;
    bool begun;
    /* the current member; used while the fields are stored as one text */
    sgi_json_member member;
} sgi_fields_walk;

bool sgi_fields_next(const sgi_fields *fields, sgi_fields_walk *walk);
bool sgi_fields_has(const sgi_fields *fields, const char *name);
bool sgi_fields_current_is(const sgi_fields_walk *walk, const char *name);
sgi_json_kind sgi_fields_current_kind(const sgi_fields_walk *walk);
/* sgi_fields_current_write writes the name and the value of the current field.
 * sgi_fields_current_write_members writes only the members of the value, which must be an
 * object, without braces. */
void sgi_fields_current_write(const sgi_fields_walk *walk, sgi_jw *w);
void sgi_fields_current_write_members(const sgi_fields_walk *walk, sgi_jw *w);

#endif
