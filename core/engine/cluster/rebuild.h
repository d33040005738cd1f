/* Rebuilds: an operation in memory, made from its record and its log in the store. Either
 * a client asks for an operation that another server runs, and the other server stays the
 * owner (following.h). Or the store has given the operation to this server (recovery.h).
 */
#ifndef SGI_REBUILD_H
#define SGI_REBUILD_H

#include "engine/cluster/cluster.h"

/* Makes an operation from its record and its log. The operation enters the server's maps,
 * and is followed while another server runs it. If the maps already have the operation,
 * `done` gets the operation of the maps. `done` runs once, perhaps before sgi_rebuild_op
 * returns. */
void sgi_rebuild_op(sgi_cluster *cluster, const segue_store_record *record,
                    sgi_found_fn done, void *user);
/* Rebuilds an operation that is used once, in `done`. If another server runs the
 * operation, it leaves the maps after `done` and is not followed. */
void sgi_rebuild_op_once(sgi_cluster *cluster, const segue_store_record *record,
                         sgi_found_fn done, void *user);
/* Rebuilds a second copy of an operation that is in the maps. Only `done` gets the copy.
 * From then on, the change feed reports growth of the operation. */
void sgi_rebuild_op_copy(sgi_cluster *cluster, const segue_store_record *record,
                         sgi_found_fn done, void *user);
/* Rebuilds an operation that the store has given to this server. `done` gets the claim as
 * its user data, and the claim must live until then. */
void sgi_rebuild_claimed_op(sgi_cluster *cluster, sgi_found_record *claim,
                            sgi_found_fn done);
/* True while this operation is being rebuilt. */
bool sgi_rebuild_is_running(const sgi_cluster *cluster, const uint8_t *id);
/* Reports that an operation's log in the store has grown. The log is read once more after
 * each running rebuild of the operation. Returns false when no rebuild of the operation
 * is running. */
bool sgi_rebuild_note_growth(sgi_cluster *cluster, const uint8_t *id);

/* True when the record of the claim says that the store may have lost the end of the
 * operation's log. */
bool sgi_claim_is_torn(const sgi_found_record *claim);
/* Returns the operation in memory with this task id, or NULL when there is no such
 * operation. torn = true: the store has lost the end of the log. An ended operation in
 * memory is then forgotten, because only the log in the store counts. */
sgi_op *sgi_cluster_find_op(sgi_cluster *cluster, const char *task_id, bool torn);

#endif
