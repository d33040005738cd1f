/* What a handler can learn of the HTTP request that made its call (sgi_origin): the
 * headers, and the context that the application gave with an exchange by hand. An origin
 * is reference-counted and is not stored, because headers hold secrets such as tokens and
 * cookies. So a call that an earlier process began has none. */
#ifndef SGI_ORIGIN_H
#define SGI_ORIGIN_H

#include "engine/server/peer.h"
#include "wire/http1_copy.h"

struct sgi_origin {
    int32_t refs;
    sgi_engine *engine;
    /* the context of the application, a counted reference; NULL = there is none */
    sgi_app_context *context;
    sgi_http1_copy *headers; /* stands behind the struct */
    size_t cap;              /* number of bytes for `headers` */
};

/* Makes the request the origin of the calls that the peer makes from now on. Returns
 * false when out of memory. */
bool sgi_peer_set_origin(sgi_peer *peer, const sgi_http_request_head *head);
/* Moves the origin of another peer, which has read the request, to the peer. */
void sgi_peer_take_origin(sgi_peer *peer, sgi_peer *from);
/* Gives the operation the origin of the peer that made the request. The bytes of the
 * headers count as bytes of the operation until its call is freed. */
void sgi_op_set_origin_of(sgi_op *op, const sgi_peer *peer);
/* Drops a reference to an origin. origin can be NULL. */
void sgi_origin_unref(sgi_origin *origin);
/* Drops the context of the application, because its handlers are over. */
void sgi_origin_drop_context(sgi_origin *origin);
/* Returns the pointer that the application gave with the context. */
void *sgi_app_context_user(const sgi_app_context *context);
/* Returns the number of bytes that the origin has; 0 for NULL. */
size_t sgi_origin_size(const sgi_origin *origin);
/* Gives header number i, counted from 0. Returns false when the origin, which can be
 * NULL, has fewer headers. Both texts end with a NUL. The caller of this function and of
 * the next one holds the runtime's lock. */
bool sgi_origin_header_at(sgi_origin *origin, size_t i, sgi_str *name, sgi_str *value);
/* Gives value number i, counted from 0, of the headers with this name. Upper and lower
 * case do not matter. */
bool sgi_origin_header(sgi_origin *origin, sgi_str name, size_t i, sgi_str *value);

#endif
