/* Members of a result, gathered one after another: the last one of a name counts, and
 * stands where it came. Names are compared decoded and found by a map with a secret seed,
 * so the work is linear in what comes, whatever the names are. One object alone is kept
 * as its text; the table is made when a second one comes. */
#ifndef SGI_FIELDS_H
#define SGI_FIELDS_H

#include "engine/engine.h"

/* Names in one table; a peer that sends more is told of a limit. */
#define SGI_FIELDS_MAX 100000

typedef struct sgi_field {
    sgi_map_node node; /* its decoded name */
    TAILQ_ENTRY(sgi_field) link;
    struct sgi_fields *nested; /* an object that was merged; NULL = text */
    bool is_list;              /* text is an array that grows: its bracket is open */
    sgi_buf text;
    size_t name_len; /* of the name as it came, which name begins with */
    size_t size;
    char name[]; /* as it came, then decoded */
} sgi_field;

typedef struct sgi_fields {
    const sgi_env *env;
    sgi_buf text; /* one object; empty = there is none, or a table */
    sgi_map by_name;
    TAILQ_HEAD(, sgi_field) all; /* in the order of their last coming */
    size_t bytes;                /* of what would be written */
    size_t max;                  /* SGI_FIELDS_MAX; tests make it small */
    bool is_table;
    bool full;   /* there are more names than max: what came since is not in it */
    bool failed; /* out of memory, which stays */
} sgi_fields;

void sgi_fields_init(sgi_fields *fields, const sgi_env *env);
/* Empty again, and as good as new. */
void sgi_fields_clear(sgi_fields *fields);

static inline bool sgi_fields_is_empty(const sgi_fields *fields)
{
    return !fields->bytes;
}

/* An object whose members replace those of the same name; _meta that is an object is
 * merged key by key. */
void sgi_fields_take(sgi_fields *fields, sgi_json object);
/* One member. */
void sgi_fields_put(sgi_fields *fields, const sgi_json_member *member, sgi_json value);
/* One that goes on: an object as by sgi_fields_take, an array behind what there is;
 * anything else, or another kind, replaces. */
void sgi_fields_append(sgi_fields *fields, const sgi_json_member *member, sgi_json value);

/* Walks what there is: start with a zeroed walk. */
typedef struct sgi_fields_walk {
    size_t at; /* in the text */
    const sgi_field *field;
    bool begun;
    sgi_json_member member; /* of the text */
} sgi_fields_walk;

bool sgi_fields_next(const sgi_fields *fields, sgi_fields_walk *walk);
bool sgi_fields_has(const sgi_fields *fields, const char *name);
bool sgi_fields_walk_is(const sgi_fields_walk *walk, const char *name);
sgi_json_kind sgi_fields_walk_kind(const sgi_fields_walk *walk);
/* Its name and value; or the members of its value, which is an object, without braces. */
void sgi_fields_walk_write(const sgi_fields_walk *walk, sgi_jw *w);
void sgi_fields_walk_write_members(const sgi_fields_walk *walk, sgi_jw *w);

#endif
