/* Rebuilds operations from the store: one operation that a client asks for, or all
 * operations that were left unfinished by an earlier process or by a server that has
 * gone. */
#ifndef SGI_RECOVERY_H
#define SGI_RECOVERY_H

#include "engine/cluster/cluster.h"

/* Makes the operation of a record and applies its log. The operation is then known to the
 * server, and followed while another server runs it. If the operation is known already,
 * the known one is returned. done runs once, perhaps before sgi_rebuild returns. */
void sgi_rebuild(sgi_cluster *cluster, const segue_store_record *record,
                 sgi_found_fn done, void *user);
/* Rebuilds an operation for a single use. If another server runs it, it does not become
 * known and is not followed. */
void sgi_rebuild_once(sgi_cluster *cluster, const segue_store_record *record,
                      sgi_found_fn done, void *user);
/* Rebuilds a second copy of an operation that is known already. Only `done` gets the
 * copy. From now on the change feed reports growth of the operation. */
void sgi_rebuild_copy(sgi_cluster *cluster, const segue_store_record *record,
                      sgi_found_fn done, void *user);
/* True while this operation is being rebuilt. */
bool sgi_rebuild_is_running(const sgi_cluster *cluster, const uint8_t *id);
/* Handles growth of an operation's log in the store. When the operation is being rebuilt,
 * its log is read once more, and the function returns true. */
bool sgi_rebuild_note_growth(sgi_cluster *cluster, const uint8_t *id);

/* Claims the operations that an earlier process left. The server opens when all of them
 * have been handled: restartable tools run again from their last segment, other
 * operations fail, once. */
void sgi_recover(sgi_cluster *cluster);
/* Claims operations of other servers while this server is open, because their owners have
 * gone. */
void sgi_recover_orphans(sgi_cluster *cluster);
/* Frees the records of claimed operations that were not rebuilt. */
void sgi_claims_free(sgi_cluster *cluster);
/* Continues or ends a claimed operation when it was rebuilt with all of its log. The
 * operation was counted in cluster->recovering before. */
void sgi_recover_claimed_op(sgi_cluster *cluster, sgi_op *op);

#endif
