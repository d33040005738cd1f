/* Counts what a server uses, in total and for each principal: open requests, and the
 * bytes that operations hold in memory. The limits are options of the server. The limits
 * ensure that one principal cannot use up the share of other principals, and that all
 * principals together cannot use up the memory of the process. */
#ifndef SGI_BUDGET_H
#define SGI_BUDGET_H

#include "engine/engine.h"
#include "engine/log/account.h"

typedef struct sgi_peer sgi_peer;
typedef struct sgi_op sgi_op;
struct sgi_principal;

typedef struct sgi_usage {
    int64_t requests;
    int32_t streams;          /* number of open event streams and subscriptions */
    sgi_byte_account account; /* counts the bytes */
} sgi_usage;

/* Returns the reason why a request must be refused now, and sets the exceeded limit and
 * the HTTP status. Returns NULL when the request can be accepted. begins = true: the
 * request begins an operation. The limits of bytes apply only to requests that begin an
 * operation, so a client can always ask about a running operation or cancel it. */
const char *sgi_budget_find_refusal(const sgi_peer *peer, bool begins,
                                    int32_t *http_status, sgi_limit *limit);
/* Counts requests. step: 1 when a request begins, -1 when a request ends. */
void sgi_budget_count_request(const sgi_peer *peer, int32_t step);
/* Counts streams. step: 1 when a stream begins, -1 when a stream ends. */
void sgi_budget_count_stream(const sgi_peer *peer, int32_t step);

/* Sets the principal that owns the operation, and counts the operation's bytes for this
 * principal. The caller's reference to `who` becomes a reference of the operation. */
void sgi_budget_set_owner(sgi_op *op, struct sgi_principal *who);

#endif
