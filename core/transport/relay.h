/* Lines of a child's standard error on their way to the application's callback. */
#ifndef SGI_RELAY_H
#define SGI_RELAY_H

#include "runtime/runtime.h"

typedef struct sgi_relay sgi_relay;

/* fn may be NULL: then only free_user is delivered. The relay frees itself: after `end`
 * and the last line it calls free_user, and is gone. NULL when out of memory. */
sgi_relay *sgi_relay_new(sgi_engine *engine, segue_stderr_fn fn, void *user,
                         segue_free_fn free_user);
/* Lock held, both. */
void sgi_relay_feed(sgi_relay *relay, const char *bytes, size_t len);
void sgi_relay_end(sgi_relay *relay);
/* Takes back a relay that was never used: neither callback runs. */
void sgi_relay_undo(sgi_relay *relay);

#endif
