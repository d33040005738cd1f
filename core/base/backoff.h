/* How long to wait before something is tried again: not at all the first time, then ever
 * longer, up to a bound. Whoever tries counts what failed in a row and sets that back
 * when it succeeds; the rest is the same for all. */
#ifndef SGI_BACKOFF_H
#define SGI_BACKOFF_H

#include "base/base.h"

typedef struct sgi_backoff {
    int64_t first_ms; /* after the first failure */
    int64_t most_ms;  /* it doubles up to here */
    int32_t spread;   /* percent by which it is shorter or longer, by chance */
} sgi_backoff;

/* Before the next try, after so many failures in a row; 0 when there were none. */
int64_t sgi_backoff_ms(const sgi_backoff *backoff, int32_t failures);
/* The same, so that many who failed together do not come again together. */
int64_t sgi_backoff_wait(const sgi_backoff *backoff, int32_t failures,
                         const sgi_env *env);
/* A wait of this length, spread. */
int64_t sgi_backoff_spread(int64_t ms, int32_t percent, const sgi_env *env);

#endif
