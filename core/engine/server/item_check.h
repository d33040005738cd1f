/* Checks of the items of a server. `type` is a segue_item. */
#ifndef SGI_ITEM_CHECK_H
#define SGI_ITEM_CHECK_H

#include "engine/server/server.h"

/* Returns the word for a type of item in messages, such as "resource template". */
const char *sgi_item_word(int32_t type);

/* Reads the member that identifies an item; *key is a view of the JSON. */
segue_status sgi_item_read_key(const sgi_mem *mem, int32_t type, sgi_json json,
                               sgi_str *key, segue_error **error);

/* Checks an item and its options, and keeps what was read of them in the item. */
segue_status sgi_item_check(sgi_item *item, sgi_json json, segue_error **error);

/* Refuses a resource or template whose URI is not one of RFC 3986. A server serves such
 * an item, because it may have got the item from another server. */
segue_status sgi_item_check_uri(const sgi_item *item, segue_error **error);

/* Returns a static text when the specification advises against the item, else NULL. */
const char *sgi_item_advice(const sgi_item *item);

#endif
