/* The person or program for which requests come and which owns operations. A principal is
 * a name that the application gives to connections; it is stored as a digest. Limits are
 * counted for each principal, so that one principal cannot use up the resources of the
 * others. */
#ifndef SGI_PRINCIPAL_H
#define SGI_PRINCIPAL_H

#include "engine/engine.h"
#include "engine/server/budget.h"

/* A token bucket limits the rate of events per second. Events of one second may come at
 * once. */
typedef struct sgi_bucket {
    double tokens; /* number of tokens left; -1 = the bucket was never used */
    double full;
    int64_t refilled_ms; /* monotonic time of the last refill */
} sgi_bucket;

struct sgi_wire_session;

typedef struct sgi_principal {
    sgi_map *map;
    sgi_engine *engine;
    sgi_map_node node;
    int32_t refs; /* number of references that operations and connections have */
    uint8_t digest[SGI_DIGEST_SIZE];
    char *name; /* the name; NULL = not known, or a principal without a name */
    int32_t live_tasks;
    sgi_usage use;
    /* number of open event streams and subscriptions */
    int32_t streams;
    /* the wire sessions, the least recently used first */
    TAILQ_HEAD(, sgi_wire_session) sessions;
    int32_t session_count;
    sgi_bucket lookups; /* limits failed look-ups of tasks */
    sgi_bucket fetches; /* limits fetches by lastSeqNr */
    /* fires when the buckets are full again; then a principal without references is
     * freed */
    sgi_timer forgotten;
} sgi_principal;

/* Finds or makes the principal with this digest and takes a reference. NULL when out of
 * memory. */
sgi_principal *sgi_principal_get(sgi_map *map, sgi_engine *engine,
                                 const uint8_t digest[SGI_DIGEST_SIZE]);
/* Sets the name of a principal that has none. Returns false when out of memory. */
bool sgi_principal_set_name(sgi_principal *who, sgi_str name);
void sgi_principal_ref(sgi_principal *who);
void sgi_principal_unref(sgi_principal *who);

/* Counts a failed look-up. Returns 0, or the time in ms after which the client may try
 * again (R-1905-55). */
int64_t sgi_principal_count_miss(sgi_principal *who, int32_t per_second);
/* Counts a fetch by lastSeqNr. Returns 0, or the time in ms after which the client may
 * try again. */
int64_t sgi_principal_count_fetch(sgi_principal *who, int32_t per_second);

/* Frees all principals of the map. No principal may have references. */
void sgi_principals_clear(sgi_map *map);

#endif
