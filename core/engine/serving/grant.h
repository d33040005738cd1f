/* What a bearer token grants: who it stands for, his scopes, and until when. Made by the
 * transport that has checked the token, counted, and never changed: a request keeps the
 * one it came with, whatever its caller brings next. */
#ifndef SGI_GRANT_H
#define SGI_GRANT_H

#include "engine/serving/peer.h"

struct sgi_grant {
    int32_t refs;
    sgi_engine *engine;
    sgi_principal *who; /* counted; NULL = of an operation of an earlier process */
    int64_t expires_ms; /* wall clock; INT64_MAX = never */
    size_t len;
    char scopes[]; /* separated by blanks, NUL-terminated */
};

/* who: borrowed, may be NULL. NULL when out of memory. */
sgi_grant *sgi_grant_new(sgi_engine *engine, sgi_principal *who, sgi_str scopes,
                         int64_t expires_ms);

/* Has the caller the scopes that the item asks for? Over a byte stream there are no
 * tokens, and who runs the process may run its tools. item: NULL = nothing is asked. */
bool sgi_peer_may_use(const sgi_peer *peer, const sgi_item *item);
/* The same; else he was answered. */
bool sgi_item_is_open_to(const sgi_inbound *in, const sgi_item *item);

/* The peer's grant is this one from now on; NULL = none. */
void sgi_peer_set_grant(sgi_peer *peer, sgi_grant *grant);
/* The operation has what its request had. */
void sgi_op_take_grant(sgi_op *op, const sgi_peer *peer);
/* Byte streams have all. */
bool sgi_op_has_scope(const sgi_op *op, sgi_str scope);

#endif
