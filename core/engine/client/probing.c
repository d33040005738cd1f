#include "engine/client/probing.h"

#include "base/thresholds.h"

#define FIRST_MS SGI_THRESHOLD(probe_first_ms)
#define SHARE SGI_THRESHOLD(probe_share)
#define EACH_MS SGI_THRESHOLD(probe_each_ms)
#define EVEN_MS SGI_THRESHOLD(probe_even_ms)

int64_t sgi_probing_ms(int64_t pause_ms, int64_t gone_ms, int32_t clients)
{
    int64_t ms = gone_ms < EVEN_MS ? FIRST_MS : gone_ms / SHARE;
    int64_t least = (int64_t)clients * EACH_MS;
    if (ms < least)
        ms = least;
    return ms < pause_ms ? ms : pause_ms;
}
