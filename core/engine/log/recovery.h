/* Operations that come back from the store: one that somebody asks for, or all that an
 * earlier process, or another server that has gone, left unfinished. */
#ifndef SGI_RECOVERY_H
#define SGI_RECOVERY_H

#include "engine/serving/server.h"

/* Makes the operation of a record and applies its log; it is then known to the server,
 * and followed while another server runs it. done runs once, perhaps before the call
 * returns. If the operation is known already, that one. */
void sgi_rebuild(segue_server *server, const segue_store_record *record,
                 sgi_found_fn done, void *user);
/* The same for a look: one that another server runs is not followed, nor known. */
void sgi_rebuild_once(segue_server *server, const segue_store_record *record,
                      sgi_found_fn done, void *user);
/* The same beside one that is known: nobody gets to know this one, but done. Growth from
 * here on is news. */
void sgi_rebuild_apart(segue_server *server, const segue_store_record *record,
                       sgi_found_fn done, void *user);
/* Is it being made? */
bool sgi_is_rebuilt(const segue_server *server, const uint8_t *id);
/* ... then what is made may lack something, and is looked at again; false: it is not. */
bool sgi_rebuild_grew(segue_server *server, const uint8_t *id);

/* Claims what an earlier process left; the server opens when all of it has been dealt
 * with. Restartable tools run again from their last segment, other operations fail,
 * once. */
void sgi_recover(segue_server *server);
/* The same while the server is open: owners have gone. */
void sgi_recover_orphans(segue_server *server);
/* Drops what was claimed and never came here. */
void sgi_claims_free(segue_server *server);
/* One that was claimed is here with all of its log: it goes on, or ends. Counted in
 * server->recovering before. */
void sgi_recover_one(segue_server *server, sgi_op *op);

#endif
