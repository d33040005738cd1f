/* Which items a caller sees. An application that hides items adds an item of
 * SEGUE_ITEM_LIST for a list. Before such a list is answered, and before a request names
 * an item of the list, the handler of that item runs as a call of its own
 * (sgi_call_list). The request waits for this call and is then handled again from its
 * beginning, with the answer of the application in sgi_inbound.shown. So nothing of a
 * request happens before the application has answered. */
#ifndef SGI_SIGHT_H
#define SGI_SIGHT_H

#include "engine/server/shown.h"

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

#endif
