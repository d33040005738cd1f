/* The wait before something is tried again. There is no wait before the first try. Each
 * failure doubles the wait, up to a maximum. The caller counts its failures in a row
 * and sets the count to 0 after a success. */
#ifndef SGI_BACKOFF_H
#define SGI_BACKOFF_H

#include "base/base.h"

typedef struct sgi_backoff {
    int64_t first_ms; /* the wait in ms after the first failure */
    int64_t most_ms;  /* the longest wait in ms */
    int32_t spread;   /* the largest random change of a wait, in percent */
} sgi_backoff;

/* Returns the wait in ms before the next try after `failures` failures in a row; 0 when
 * there was no failure. */
int64_t sgi_backoff_ms(const sgi_backoff *backoff, int32_t failures);
/* Returns the wait of sgi_backoff_ms, changed at random. So clients that failed together
 * do not try again at the same time. */
int64_t sgi_backoff_random_ms(const sgi_backoff *backoff, int32_t failures,
                              const sgi_env *env);
/* Returns `ms`, changed at random by up to `percent`. */
int64_t sgi_backoff_randomize(int64_t ms, int32_t percent, const sgi_env *env);

#endif
