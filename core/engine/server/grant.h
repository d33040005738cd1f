/* The rights that a bearer token gives: the principal, the scopes and the time limit. The
 * transport that has checked the token makes the grant. A grant is reference-counted and
 * never changes. A request keeps its grant even when the caller later sends another
 * token. */
#ifndef SGI_GRANT_H
#define SGI_GRANT_H

#include "engine/server/peer.h"

struct sgi_grant {
    int32_t refs;
    sgi_engine *engine;
    /* a counted reference to the principal; NULL = the grant belongs to an operation that
     * an earlier process made */
    sgi_principal *who;
    /* wall clock time in ms at which the token expires; INT64_MAX = the token never
     * expires */
    int64_t expires_ms;
    size_t len;
    char scopes[]; /* the scopes, separated by blanks and terminated by NUL */
};

/* Makes a grant, the rights that an access token gives. who: the principal, or NULL; the
 * grant adds its own reference. Returns NULL when out of memory. */
sgi_grant *sgi_grant_new(sgi_engine *engine, sgi_principal *who, sgi_str scopes,
                         int64_t expires_ms);

/* True when the caller has the scopes that the item requires, or when item is NULL. Over
 * a byte stream there are no tokens, so every caller can use all items. */
bool sgi_peer_may_use_item(const sgi_peer *peer, const sgi_item *item);
/* Like sgi_peer_may_use_item, for the caller of a request. On false, the request is
 * refused: the error has been sent. */
bool sgi_inbound_may_use_item(const sgi_inbound *in, const sgi_item *item);

/* Sets the grant of the peer (the rights of its access token). grant = NULL removes the
 * grant. */
void sgi_peer_set_grant(sgi_peer *peer, sgi_grant *grant);
/* Gives the operation the grant (rights) of the peer that made the request. */
void sgi_op_set_grant_of(sgi_op *op, const sgi_peer *peer);
/* True when the caller that made the operation had this scope. A caller over a byte
 * stream has all scopes. */
bool sgi_op_has_scope(const sgi_op *op, sgi_str scope);

#endif
