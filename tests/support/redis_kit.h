/* Redis stores for tests: servers, stores that are owners of their own, and the cutting
 * proxy between. */
#ifndef REDIS_KIT_H
#define REDIS_KIT_H

#include "support/cutting_proxy.h"
#include "support/redis_server.h"
#include "support/store_kit.h"

/* A short lease, so that tests need not wait long; patience, for slow machines. */
#define REDIS_KIT_LEASE_MS 600
#define REDIS_KIT_TIMEOUT_MS 20000

/* Opens with these times; message (may be NULL): 300 bytes. */
segue_status redis_kit_status(const char *url, int64_t timeout_ms, segue_store **out,
                              char *message);
/* The same with the times above; asserts that it works. */
segue_store *redis_kit_open(const char *url);
/* One whose lease outlasts the test. */
segue_store *redis_kit_open_lasting(const char *url);
/* Through a proxy: its URL. The text of the last call stays. */
const char *redis_kit_through(const cutting_proxy *proxy);
/* Waits until a claim hands over so many altogether; asserts that it does in seconds. */
void redis_kit_claim(segue_store *store, size_t count);
int64_t redis_kit_now_us(void);
void redis_kit_sleep_ms(int64_t ms);

#endif
