/* Claims the operations of an earlier process, or of servers that have gone, and
 * continues or ends them. */
#ifndef SGI_RECOVERY_H
#define SGI_RECOVERY_H

#include "engine/cluster/cluster.h"

/* Claims the operations that an earlier process left unfinished. Tools that are marked as
 * restartable run again from their last segment; every other operation ends with an
 * error. When all claimed operations are handled, the server opens. */
void sgi_recover_ops(sgi_cluster *cluster);
/* Claims the operations of servers that have gone. Called while this server is open. */
void sgi_recover_orphans(sgi_cluster *cluster);
/* Ends cluster->abstains: the server claims operations from now on. */
void sgi_recover_begin_claims(sgi_cluster *cluster);
/* Frees the records of claimed operations that were not rebuilt yet. */
void sgi_claims_free(sgi_cluster *cluster);
/* Continues or ends a claimed operation. Called when the whole log of the operation was
 * read. Until this call cluster->recovering counts the operation. */
void sgi_recover_claimed_op(sgi_cluster *cluster, sgi_op *op);
/* Ends the take-over of an operation that this server forgets before it has read the
 * log. The store gives the operation to another server. */
void sgi_recover_leave_op(sgi_op *op);

/* Called when the store has refused entries of an operation because their numbers do not
 * follow the log. Either the store has lost entries, or another server has owned the
 * operation meanwhile and has written to it. Returns true while the log is being read to
 * find out; the caller must then try the write again later. */
bool sgi_op_may_have_moved_on(sgi_op *op);

#endif
