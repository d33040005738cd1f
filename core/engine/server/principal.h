/* The person or program for which requests come and which owns operations. The
 * application gives each connection the name of a principal; the name is stored as a
 * digest. Limits are counted for each principal, so that one principal cannot use up the
 * share of other principals. */
#ifndef SGI_PRINCIPAL_H
#define SGI_PRINCIPAL_H

#include "engine/engine.h"
#include "engine/server/budget.h"

/* A token bucket: limits the number of events per second. All events of one second can
 * come at once. */
typedef struct sgi_rate_bucket {
    double tokens; /* number of tokens left; -1 = the bucket was never used */
    double full;
    int64_t refilled_ms; /* monotonic time of the last refill, in ms */
} sgi_rate_bucket;

struct sgi_wire_session;

typedef struct sgi_principal {
    sgi_map *map;
    sgi_engine *engine;
    sgi_map_node node;
    int32_t refs; /* number of counted references to this principal */
    uint8_t digest[SGI_DIGEST_SIZE];
    char *name; /* the name; NULL = the name is not known, or the principal has no name */
    int32_t live_tasks;
    sgi_usage use;
    /* the wire sessions of this principal; the least recently used session is first */
    TAILQ_HEAD(, sgi_wire_session) sessions;
    int32_t session_count;
    sgi_rate_bucket lookups; /* limits failed look-ups of tasks */
    sgi_rate_bucket fetches; /* limits requests for segments by number (lastSeqNr) */
    /* fires when both buckets are full again; a principal without references is then
     * freed */
    sgi_timer forgotten;
} sgi_principal;

/* Finds or makes the principal with this digest, and adds a reference for the caller.
 * Returns NULL when out of memory. */
sgi_principal *sgi_principal_find_or_new(sgi_map *map, sgi_engine *engine,
                                         const uint8_t digest[SGI_DIGEST_SIZE]);
/* Sets the name if the principal has no name yet. Returns false when out of memory. */
bool sgi_principal_set_name(sgi_principal *who, sgi_str name);
void sgi_principal_ref(sgi_principal *who);
void sgi_principal_unref(sgi_principal *who);

/* Counts a failed look-up of a task. Returns 0, or the time in ms after which the client
 * may try again (R-1905-55). */
int64_t sgi_principal_count_miss(sgi_principal *who, int32_t per_second);
/* Counts a request for segments by number (lastSeqNr). Returns 0, or the time in ms after
 * which the client may try again. */
int64_t sgi_principal_count_fetch(sgi_principal *who, int32_t per_second);

/* Frees all principals of the map. The caller ensures that no principal has
 * references. */
void sgi_principals_clear(sgi_map *map);

#endif
