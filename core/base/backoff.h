/* The wait before something is tried again. There is no wait before the first try. Each
 * failure doubles the wait, up to a maximum. The caller counts its failures in a row
 * and sets the count to 0 after a success. */
#ifndef SGI_BACKOFF_H
#define SGI_BACKOFF_H

#include "base/base.h"

typedef struct sgi_backoff {
    int64_t first_ms; /* the wait after the first failure */
    int64_t most_ms;  /* the longest wait */
    int32_t spread;   /* percent by which a wait is randomly shorter or longer */
} sgi_backoff;

/* Returns the wait before the next try after `failures` failures in a row. It is 0 when
 * there was no failure. */
int64_t sgi_backoff_ms(const sgi_backoff *backoff, int32_t failures);
/* Returns the same wait as sgi_backoff_ms with a random spread, so that clients that
 * failed together do not try again together. */
int64_t sgi_backoff_random_ms(const sgi_backoff *backoff, int32_t failures,
                              const sgi_env *env);
/* Spreads a wait of `ms` randomly by `percent`. */
int64_t sgi_backoff_randomize(int64_t ms, int32_t percent, const sgi_env *env);

#endif
