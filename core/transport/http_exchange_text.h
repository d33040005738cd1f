/* The texts of an exchange by hand: the head of its request, the head of its answer, and
 * addresses. The code does no input and output. */
#ifndef SGI_HTTP_EXCHANGE_TEXT_H
#define SGI_HTTP_EXCHANGE_TEXT_H

#include <segue/segue_ext.h>

#include "transport/http_answer.h"
#include "transport/link.h"

/* Fills the head of a request, which is empty. Every length in `given` is set. Returns
 * the problem when a text is not allowed in HTTP, otherwise NULL. A head that is refused
 * for another reason, such as a limit, has that in head->fault. */
const char *sgi_http_fill_head(sgi_http1_head *head, const segue_exchange_head *given);

/* Writes views of the fields of an answer. */
void sgi_http_show_fields(const sgi_http_fields *fields,
                          segue_http_field shown[SGI_HTTP_FIELDS]);

/* Describes a peer by its address; NULL = not known. */
void sgi_http_read_peer(const char *address, sgi_link_peer *peer);
/* Returns the address or name without port and brackets. */
sgi_str sgi_http_address_in(const char *address);
/* True for an address that only this machine can reach. */
bool sgi_http_is_local_address(const char *address);

#endif
