/* Detects that a session's server was replaced, perhaps by a server of another era. */
#ifndef SGI_ERA_CHANGE_H
#define SGI_ERA_CHANGE_H

#include "engine/client/emitter.h"
#include "engine/negotiate.h"

/* Handles an HTTP error status for a request of this version. error: the error object of
 * the response body, or empty. id: the id in the body. If status and error show that
 * another server has replaced the first one, the session finds out the era again and
 * sends the request once more. The function then frees the emitter and returns true. It
 * does so at most once for each request. */
bool sgi_era_change_handle(sgi_emitter *emitter, sgi_version version, int32_t status,
                           sgi_json error, sgi_json id);

#endif
