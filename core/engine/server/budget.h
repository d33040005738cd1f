/* Counts the resources that a server uses, in total and for each principal: open
 * requests, and bytes that operations hold in memory. The server's options set the
 * limits. So a single principal cannot use up the resources for all others, and all
 * principals together cannot use up those of the process. */
#ifndef SGI_BUDGET_H
#define SGI_BUDGET_H

#include "engine/engine.h"
#include "engine/log/account.h"

typedef struct sgi_peer sgi_peer;
typedef struct sgi_op sgi_op;
struct sgi_principal;

typedef struct sgi_usage {
    int64_t requests;
    sgi_account account; /* counts the bytes */
} sgi_usage;

/* Returns why a request cannot be accepted now, with the limit and the HTTP status; NULL
 * = it can be accepted. begins: the request begins an operation; only then the limits of
 * bytes apply. So a client can always ask about a running operation, or cancel it. */
const char *sgi_budget_find_refusal(const sgi_peer *peer, bool begins,
                                    int32_t *http_status, sgi_limit *limit);
/* Counts a request that begins (1) or ends (-1). */
void sgi_budget_count_request(const sgi_peer *peer, int32_t step);

/* Sets the owner of the operation and takes over the caller's reference to this
 * principal. The bytes that the operation holds are counted for this principal. */
void sgi_budget_set_owner(sgi_op *op, struct sgi_principal *who);

#endif
