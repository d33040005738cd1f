/* Operations that come back from the store: one that somebody asks for, or all that an
 * earlier process left unfinished. */
#ifndef SGI_RECOVERY_H
#define SGI_RECOVERY_H

#include "engine/serving/server.h"

/* Makes the operation of a record and applies its log; it is then known to the server.
 * done runs once, perhaps before the call returns. If the operation is known already,
 * that one. */
void sgi_rebuild(segue_server *server, const segue_store_record *record,
                 sgi_found_fn done, void *user);

/* Claims what an earlier process left; the server opens when all of it has been dealt
 * with. Restartable tools run again from their last segment, other operations fail,
 * once. */
void sgi_recover(segue_server *server);

#endif
