/* Rebuilds operations from the store: one operation that a client asks for, or all
 * operations that an earlier process or a server that has gone left unfinished. */
#ifndef SGI_RECOVERY_H
#define SGI_RECOVERY_H

#include "engine/cluster/cluster.h"

/* Makes the operation of a record and applies its log. The operation is then in the
 * server's maps, and followed while another server runs it. If it was in the maps
 * already, the operation of the maps is returned. done runs once, perhaps before
 * sgi_rebuild returns. */
void sgi_rebuild(sgi_cluster *cluster, const segue_store_record *record,
                 sgi_found_fn done, void *user);
/* Rebuilds an operation for a single use. If another server runs the operation, it is
 * neither put into the maps nor followed. */
void sgi_rebuild_once(sgi_cluster *cluster, const segue_store_record *record,
                      sgi_found_fn done, void *user);
/* Rebuilds a second copy of an operation that is in the maps already. Only `done` gets
 * the copy. From now on the change feed reports growth of the operation. */
void sgi_rebuild_copy(sgi_cluster *cluster, const segue_store_record *record,
                      sgi_found_fn done, void *user);
/* True while this operation is being rebuilt. */
bool sgi_rebuild_is_running(const sgi_cluster *cluster, const uint8_t *id);
/* Reports that an operation's log in the store has grown. Returns true when the operation
 * is being rebuilt: its log is then read once more. */
bool sgi_rebuild_note_growth(sgi_cluster *cluster, const uint8_t *id);

/* Claims the operations that an earlier process left. The server opens when all of them
 * have been handled: restartable tools run again from their last segment, and other
 * operations fail, once. */
void sgi_recover(sgi_cluster *cluster);
/* Claims operations whose owners have gone, while this server is open. */
void sgi_recover_orphans(sgi_cluster *cluster);
/* Frees the records of claimed operations that were not rebuilt yet. */
void sgi_claims_free(sgi_cluster *cluster);
/* Continues or ends a claimed operation. Called when the operation was rebuilt with its
 * whole log. Until this call the operation counts in cluster->recovering. */
void sgi_recover_claimed_op(sgi_cluster *cluster, sgi_op *op);

#endif
