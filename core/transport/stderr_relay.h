/* Passes lines of a child's standard error to the application's callback. */
#ifndef SGI_STDERR_RELAY_H
#define SGI_STDERR_RELAY_H

#include "runtime/runtime.h"

typedef struct sgi_stderr_relay sgi_stderr_relay;

/* Makes a relay, which calls fn for each line. sgi_stderr_relay_end stops the relay.
 * After its last line a stopped relay calls free_user and frees itself. fn: NULL = only
 * free_user is called. Returns NULL when out of memory. */
sgi_stderr_relay *sgi_stderr_relay_new(sgi_engine *engine, segue_stderr_fn fn, void *user,
                                       segue_free_fn free_user);
/* The callers of sgi_stderr_relay_add and sgi_stderr_relay_end hold the lock. */
void sgi_stderr_relay_add(sgi_stderr_relay *relay, const char *bytes, size_t len);
void sgi_stderr_relay_end(sgi_stderr_relay *relay);
/* Frees a relay that was never used, without calling fn or free_user. */
void sgi_stderr_relay_free(sgi_stderr_relay *relay);

#endif
