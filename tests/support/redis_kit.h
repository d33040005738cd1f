/* Redis stores for tests: servers, stores that are owners of their own, and the cutting
 * proxy between. */
#ifndef REDIS_KIT_H
#define REDIS_KIT_H

#include "support/cutting_proxy.h"
#include "support/redis_server.h"
#include "support/store_kit.h"

/* A short lease, so that what beats does so often, and tests need not wait long. A long
 * limit, for slow machines. */
#define REDIS_KIT_LEASE_MS 600
#define REDIS_KIT_TIMEOUT_MS 120000

/* Waits until it is so; fails when that takes too long even for a slow machine. */
#define redis_kit_until(condition)                                                       \
    do {                                                                                 \
        int64_t limit = redis_kit_now_us() + REDIS_KIT_TIMEOUT_MS * 1000LL;              \
        while (!(condition)) {                                                           \
            if (redis_kit_now_us() > limit)                                              \
                fail_msg("never: %s", #condition);                                       \
            redis_kit_sleep_ms(2);                                                       \
        }                                                                                \
    } while (0)

/* Opens with these times; message (may be NULL): 300 bytes. */
segue_status redis_kit_status(const char *url, int64_t timeout_ms, segue_store **out,
                              char *message);
/* The same with the times above; asserts that it works. On a slow machine its lease may
 * lapse at any moment: it is for one that nobody else claims from. */
segue_store *redis_kit_open(const char *url);
/* One whose lease outlasts the test, unless the test ends it. It beats only once. */
segue_store *redis_kit_open_lasting(const char *url);
/* One that gives up soon. What it is to do that works may need more than one try. */
segue_store *redis_kit_open_hurried(const char *url, int64_t timeout_ms);
/* Commits until it works. */
void redis_kit_commit(segue_store *store, segue_store_write write);
/* The lease of the owner with that number (from 1, as they opened) is over by now, as far
 * as the server's clock tells. It must be cut off, or prolongs it. */
void redis_kit_lapse(redis_server *server, int owner);
/* Through a proxy: its URL. The text of the last call stays. */
const char *redis_kit_through(const cutting_proxy *proxy);
/* Waits until a claim hands over so many altogether; asserts that it does. */
void redis_kit_claim(segue_store *store, size_t count);
int64_t redis_kit_now_us(void);
void redis_kit_sleep_ms(int64_t ms);

#endif
