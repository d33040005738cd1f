/* Who owns operations: a name that the application gives to connections, kept as a
 * digest. Limits are counted here, so that one caller cannot use up what is meant for
 * all. */
#ifndef SGI_PRINCIPAL_H
#define SGI_PRINCIPAL_H

#include "engine/engine.h"
#include "engine/serving/budget.h"

/* So many per second, and as many at once. */
typedef struct sgi_bucket {
    double tokens; /* -1 = not used yet */
    double full;
    int64_t refilled_ms; /* monotonic */
} sgi_bucket;

struct sgi_wire_session;

typedef struct sgi_principal {
    sgi_map *map;
    sgi_engine *engine;
    sgi_map_node node;
    int32_t refs; /* operations and connections */
    uint8_t digest[SGI_DIGEST_SIZE];
    char *name; /* NULL = not known, or nobody in particular */
    int32_t live_tasks;
    sgi_use use;
    int32_t streams;                         /* open event streams and subscriptions */
    TAILQ_HEAD(, sgi_wire_session) sessions; /* unused longest first */
    int32_t session_count;
    sgi_bucket lookups;  /* failed look-ups that are still allowed */
    sgi_bucket fetches;  /* ... and fetches by lastSeqNr */
    sgi_timer forgotten; /* without references: when the buckets are full again */
} sgi_principal;

/* Finds or makes; counted. NULL when out of memory. */
sgi_principal *sgi_principal_get(sgi_map *map, sgi_engine *engine,
                                 const uint8_t digest[SGI_DIGEST_SIZE]);
/* By name; false when out of memory. Set once, and the same ever after. */
bool sgi_principal_set_name(sgi_principal *who, sgi_str name);
void sgi_principal_ref(sgi_principal *who);
void sgi_principal_unref(sgi_principal *who);

/* A look-up failed: takes a token. 0, or after how many ms to come again (R-1905-55). */
int64_t sgi_principal_miss(sgi_principal *who, int32_t per_second);
/* The same for a fetch. */
int64_t sgi_principal_fetch(sgi_principal *who, int32_t per_second);

/* Frees those that nobody holds any more: all that are left. */
void sgi_principals_clear(sgi_map *map);

#endif
