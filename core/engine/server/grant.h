/* The rights that a bearer token gives: its principal, its scopes and its end. The
 * transport that has checked the token makes the grant. A grant is reference-counted and
 * never changes. A request keeps its grant even when the caller sends another token
 * later. */
#ifndef SGI_GRANT_H
#define SGI_GRANT_H

#include "engine/server/peer.h"

struct sgi_grant {
    int32_t refs;
    sgi_engine *engine;
    /* a counted reference; NULL for the grant of an operation from an earlier process */
    sgi_principal *who;
    /* wall clock time at which the token expires; INT64_MAX = never */
    int64_t expires_ms;
    size_t len;
    char scopes[]; /* scopes separated by blanks, NUL-terminated */
};

/* Makes a grant. who: may be NULL; the grant takes its own reference. Returns NULL when
 * out of memory. */
sgi_grant *sgi_grant_new(sgi_engine *engine, sgi_principal *who, sgi_str scopes,
                         int64_t expires_ms);

/* True when the caller has the scopes that the item requires. Over a byte stream there
 * are no tokens: every caller may use all items. item NULL = true. */
bool sgi_peer_may_use(const sgi_peer *peer, const sgi_item *item);
/* Like sgi_peer_may_use, for the caller of a request. When the result is false, the
 * request is refused and the error has been sent. */
bool sgi_inbound_may_use(const sgi_inbound *in, const sgi_item *item);

/* Sets the peer's grant; NULL = none. */
void sgi_peer_set_grant(sgi_peer *peer, sgi_grant *grant);
/* Gives the operation the grant of its request. */
void sgi_op_set_grant_of(sgi_op *op, const sgi_peer *peer);
/* True when the caller who made the operation had this scope. A caller over a byte stream
 * has all scopes. */
bool sgi_op_has_scope(const sgi_op *op, sgi_str scope);

#endif
