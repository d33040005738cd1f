/* Redis for tests: servers, stores that are owners of their own, and the cutting proxy
 * between them. */
#ifndef REDIS_KIT_H
#define REDIS_KIT_H

#include "support/cutting_proxy.h"
#include "support/redis_server.h"
#include "support/store_kit.h"

/* The lease is short, so that stores renew it often and tests need not wait long. The
 * time limit is long, for slow machines. */
#define REDIS_KIT_LEASE_MS 600
#define REDIS_KIT_TIMEOUT_MS 120000

/* Waits until the condition holds; fails when that takes too long even for a slow
 * machine. */
#define redis_kit_until(condition)                                                       \
    do {                                                                                 \
        int64_t limit = redis_kit_now_us() + REDIS_KIT_TIMEOUT_MS * 1000LL;              \
        while (!(condition)) {                                                           \
            if (redis_kit_now_us() > limit)                                              \
                fail_msg("never: %s", #condition);                                       \
            redis_kit_sleep_ms(2);                                                       \
        }                                                                                \
    } while (0)

/* Opens a store with these times; message (may be NULL) has 300 bytes. */
segue_status redis_kit_status(const char *url, int64_t timeout_ms, segue_store **out,
                              char *message);
/* Opens a store with REDIS_KIT_LEASE_MS and REDIS_KIT_TIMEOUT_MS; asserts success. On a
 * slow machine the lease may lapse at any moment, so no other store may claim its
 * operations. */
segue_store *redis_kit_open(const char *url);
/* Opens a store whose lease outlasts the test, unless the test ends the lease. The store
 * renews this lease only once. */
segue_store *redis_kit_open_lasting(const char *url);
/* Opens a store with short time limits. A commit to this store may need more than one
 * try. */
segue_store *redis_kit_open_hurried(const char *url, int64_t timeout_ms);
/* Repeats the commit until it succeeds. */
void redis_kit_commit(segue_store *store, segue_store_write write);
/* Makes the lease of the owner with this number (from 1, in opening order) lapse on the
 * server's clock. The owner must be cut off, otherwise it renews the lease. */
void redis_kit_lapse(redis_server *server, int owner);
/* Returns the URL that leads through the proxy. The text lives until the next call. */
const char *redis_kit_through(const cutting_proxy *proxy);
/* Repeats claims until this many operations were handed over; asserts that this
 * happens. */
void redis_kit_claim(segue_store *store, size_t count);
int64_t redis_kit_now_us(void);
void redis_kit_sleep_ms(int64_t ms);

#endif
