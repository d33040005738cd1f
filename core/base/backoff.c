/* The wait is doubled step by step and compared with the maximum before each step. So the
 * wait cannot overflow, however many failures there are. sgi_backoff_ms returns the
 * average wait, without a random spread. */
#include "base/backoff.h"

int64_t sgi_backoff_ms(const sgi_backoff *backoff, int32_t failures)
{
    int64_t ms = backoff->first_ms;
    if (failures <= 0)
        return 0;
    for (int32_t i = 1; i < failures && ms < backoff->most_ms; i++)
        ms = ms > backoff->most_ms / 2 ? backoff->most_ms : ms * 2;
    return ms < backoff->most_ms ? ms : backoff->most_ms;
}

int64_t sgi_backoff_randomize(int64_t ms, int32_t percent, const sgi_env *env)
{
    uint8_t chance = 128;
    if (ms <= 0 || percent <= 0 || !sgi_random(env, &chance, 1))
        return ms > 0 ? ms : 0;
    int64_t most = ms / 100 * percent + ms % 100 * percent / 100;
    return ms - most + (most * 2 / 256) * chance + most * 2 % 256 * chance / 256;
}

int64_t sgi_backoff_random_ms(const sgi_backoff *backoff, int32_t failures,
                              const sgi_env *env)
{
    return sgi_backoff_randomize(sgi_backoff_ms(backoff, failures), backoff->spread, env);
}
