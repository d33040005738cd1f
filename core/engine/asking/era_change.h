/* The server of a session is replaced, perhaps by one of another era. */
#ifndef SGI_ERA_CHANGE_H
#define SGI_ERA_CHANGE_H

#include "engine/asking/emitter.h"
#include "engine/negotiate.h"

/* A request of this version was refused with a status of HTTP. error: the error object of
 * its body, or empty; id: what that says it answers. When they say that the server is
 * another than it was, what it speaks is found out anew, and the request goes again once
 * that is known: true, and the emitter is gone. A request has this done for it once. */
bool sgi_era_changed(sgi_emitter *emitter, sgi_version version, int32_t status,
                     sgi_json error, sgi_json id);

#endif
