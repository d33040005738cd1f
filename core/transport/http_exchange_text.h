/* The texts of an exchange by hand: the head of its request, the head of its answer, and
 * addresses. The code does no input and output. */
#ifndef SGI_HTTP_EXCHANGE_TEXT_H
#define SGI_HTTP_EXCHANGE_TEXT_H

#include <segue/segue_ext.h>

#include "transport/link.h"

/* Appends the head of the request as HTTP/1.1. Every length in `head` is set. Returns the
 * problem when a text is not allowed in HTTP, otherwise NULL. */
const char *sgi_http_write_request_head(sgi_buf *out, const segue_exchange_head *head);

/* The number of headers that http_answer.c writes at most into one head. */
#define SGI_HTTP_ANSWER_FIELDS 16
typedef struct sgi_http_read_head {
    int32_t status;
    size_t count;
    segue_http_field fields[SGI_HTTP_ANSWER_FIELDS]; /* views of the answer */
} sgi_http_read_head;

/* Reads the head at the beginning of an answer that http_answer.c has written. Changes
 * the bytes of the head: names become lower case, and texts end with a NUL. Returns the
 * rest of the answer. */
sgi_str sgi_http_read_answer_head(sgi_buf *answer, sgi_http_read_head *head);

/* Describes a peer by its address; NULL = not known. */
void sgi_http_read_peer(const char *address, sgi_link_peer *peer);
/* Returns the address or name without port and brackets. */
sgi_str sgi_http_address_in(const char *address);
/* True for an address that only this machine can reach. */
bool sgi_http_is_local_address(const char *address);

#endif
