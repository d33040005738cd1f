/* Which items a caller sees. An application that hides items adds an item of
 * SEGUE_ITEM_LIST for a list. Before such a list is answered, and before a request names
 * an item of the list, the handler of that item runs as a call of its own
 * (sgi_call_list). The request waits for this call and is then handled again from its
 * beginning, with the answer of the application in sgi_inbound.shown. So nothing of a
 * request happens before the application has answered. */
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

typedef enum sgi_sight {
    SGI_SHOWN,
    SGI_HIDDEN,     /* there is no such item, or the caller does not see it */
    SGI_SIGHT_LATER /* the request was answered with an error, or is handled again */
} sgi_sight;

/* Says whether the caller of a request sees an item. again: handles the request again
 * when the application has answered. item: NULL = there is no such item. */
sgi_sight sgi_item_sight(const sgi_inbound *in, const sgi_item *item,
                         void (*again)(const sgi_inbound *in));
/* Says whether the list of this type can be answered now. If not, the application is
 * asked first, and the request is handled again. */
bool sgi_list_is_decided(const sgi_inbound *in, int32_t type,
                         void (*again)(const sgi_inbound *in));
/* True when what the caller sees of the list depends on the caller. */
bool sgi_list_is_private(segue_server *server, int32_t type);
/* True when the caller of the list sees the item. shown: NULL = all items. */
bool sgi_shown_has(const sgi_shown *shown, const sgi_item *item);
/* Copies the answer for a list that is sent later. Returns false when out of memory. The
 * copy of NULL is NULL. */
bool sgi_shown_copy(const sgi_mem *mem, const sgi_shown *shown, sgi_shown **copy);
void sgi_shown_free(const sgi_mem *mem, sgi_shown *shown);

/* Returns the type of the items (segue_item) in the list of this method; 0 = the method
 * is no list. */
int32_t sgi_listed_type(sgi_str method);
/* True when a handler may set this field of its answer. */
bool sgi_shown_is_field(const char *name, sgi_json value);

#endif
