/* The answer of the application about what one caller sees (sight.h asks it). */
#ifndef SGI_SHOWN_H
#define SGI_SHOWN_H

#include "engine/server/peer.h"

/* The answer of the application to one request. */
typedef struct sgi_shown {
    int32_t type; /* the type of the items, a segue_item */
    /* the item that the request names; "" = the request is a list */
    sgi_str key;
    bool is_all; /* the caller sees all items, or the item that the request names */
    /* the order numbers of the items that the caller sees, ascending; unless is_all */
    const uint64_t *orders;
    size_t count;
} sgi_shown;

/* True when the caller of the list sees the item. shown: NULL = all items. */
bool sgi_shown_has(const sgi_shown *shown, const sgi_item *item);
/* Copies the answer for a list that is sent later. Returns false when out of memory. The
 * copy of NULL is NULL. */
bool sgi_shown_copy(const sgi_mem *mem, const sgi_shown *shown, sgi_shown **copy);
void sgi_shown_free(const sgi_mem *mem, sgi_shown *shown);

/* Returns the type of the items (segue_item) in the list of this method; 0 = the method
 * is no list. */
int32_t sgi_listed_type(sgi_str method);
/* Returns the method of the list of these items; "" = they have none. */
const char *sgi_list_method(int32_t type);
/* True when a handler may set this field of its answer. */
bool sgi_shown_is_field(const char *name, sgi_json value);

#endif
