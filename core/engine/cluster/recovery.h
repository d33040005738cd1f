/* Rebuilds operations from the store: one operation that a client asks for, or all
 * unfinished operations of an earlier process or of a server that has gone. */
#ifndef SGI_RECOVERY_H
#define SGI_RECOVERY_H

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
/* True while this operation is being rebuilt. */
bool sgi_rebuild_is_running(const sgi_cluster *cluster, const uint8_t *id);
/* Reports that an operation's log in the store has grown. Returns true when the operation
 * is being rebuilt; its log is then read once more. */
bool sgi_rebuild_note_growth(sgi_cluster *cluster, const uint8_t *id);

/* Claims the operations that an earlier process left unfinished. Tools that are marked as
 * restartable run again from their last segment; every other operation ends with an
 * error. When all claimed operations are handled, the server opens. */
void sgi_recover_ops(sgi_cluster *cluster);
/* Claims the operations of servers that have gone. Called while this server is open. */
void sgi_recover_orphans(sgi_cluster *cluster);
/* Frees the records of claimed operations that were not rebuilt yet. */
void sgi_claims_free(sgi_cluster *cluster);
/* Continues or ends a claimed operation. Called when the whole log of the operation was
 * read. Until this call cluster->recovering counts the operation. */
void sgi_recover_claimed_op(sgi_cluster *cluster, sgi_op *op);

/* Called when the store has refused entries of an operation because their numbers do not
 * follow the log. Either the store has lost entries, or another server has owned the
 * operation meanwhile and has written to it. Returns true while the log is being read to
 * find out; the caller must then try the write again later. */
bool sgi_op_may_have_moved_on(sgi_op *op);

#endif
