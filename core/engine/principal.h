/* Who owns operations: a name that the application gives to connections, kept as a
 * digest. Limits are counted here, so that one caller cannot use up what is meant for
 * all. */
#ifndef SGI_PRINCIPAL_H
#define SGI_PRINCIPAL_H

#include "engine/engine.h"

typedef struct sgi_principal {
    sgi_map *map;
    sgi_map_node node;
    int32_t refs; /* operations and connections */
    uint8_t digest[SGI_DIGEST_SIZE];
    int32_t live_tasks;
    int32_t streams;     /* open event streams and subscriptions */
    double lookups;      /* failed look-ups that are still allowed: a token bucket */
    int64_t refilled_ms; /* monotonic */
} sgi_principal;

/* Finds or makes; counted. NULL when out of memory. */
sgi_principal *sgi_principal_get(sgi_map *map, const sgi_env *env,
                                 const uint8_t digest[SGI_DIGEST_SIZE]);
void sgi_principal_ref(sgi_principal *who);
void sgi_principal_unref(sgi_principal *who);

/* A look-up failed: takes a token. 0, or after how many ms to come again (R-1905-55). */
int64_t sgi_principal_miss(sgi_principal *who, const sgi_env *env, int32_t per_second);

#endif
