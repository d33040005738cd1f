/* What is in use of a server, in all and by each principal: requests that are not
 * answered yet, and bytes that operations hold in memory. Its options say how much may
 * be. One caller cannot use up what is meant for all, and all together not what the
 * process has. */
#ifndef SGI_BUDGET_H
#define SGI_BUDGET_H

#include "engine/engine.h"
#include "engine/limit.h"

typedef struct sgi_peer sgi_peer;
typedef struct sgi_op sgi_op;
struct sgi_principal;

typedef struct sgi_use {
    int64_t requests;
    size_t bytes;
} sgi_use;

/* Why a request cannot be taken now, with the limit and the HTTP status that says so;
 * NULL = it can. Bytes keep out only what begins an operation: who looks after one that
 * runs, or cancels it, is let in. */
const char *sgi_budget_refuses(const sgi_peer *peer, bool begins, int32_t *http_status,
                               sgi_limit *limit);
/* A request is open (1) or over (-1). */
void sgi_budget_request(const sgi_peer *peer, int32_t step);

/* Whose the operation is; counted. What it holds is theirs from now on. */
void sgi_budget_own(sgi_op *op, struct sgi_principal *who);
/* May the operation hold so much more? False: which limit is in its way. */
bool sgi_budget_allows(const sgi_op *op, size_t bytes, sgi_limit *limit);
/* Is so much in use that a producer should wait for its store? */
bool sgi_budget_slows(const sgi_op *op);
/* It holds so much more. */
void sgi_budget_hold(sgi_op *op, size_t bytes);
/* ... and lets go of it. */
void sgi_budget_let(sgi_op *op, size_t bytes);

#endif
