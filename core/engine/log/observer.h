/* The functions by which the log reports to the code above it, the cluster and the
 * server. The server sets the table once, before the first operation is made. No function
 * is NULL. Each is called under the lock. */
#ifndef SGI_LOG_OBSERVER_H
#define SGI_LOG_OBSERVER_H

#include "engine/log/op.h"

struct sgi_log_observer {
    /* number of zeroed bytes after each operation, for the data of cluster and server */
    size_t room;

    /* ---- changes of an operation ---- */

    /* Called when more of the operation's log has become visible, perhaps its end. Runs
     * before the readers are called. */
    void (*visible)(sgi_op *op);
    /* Called after the readers, and before the waiters that are due. */
    void (*readers_woken)(sgi_op *op);
    /* Called after the readers and the waiters that are due. */
    void (*waiters_fired)(sgi_op *op);
    /* Called when the store has refused to create the operation. The function cancels the
     * handler and removes the operation from the maps. */
    void (*lost)(sgi_op *op, segue_status status);
    /* Called when a commit was refused, because another server has taken the operation
     * over. */
    void (*fenced)(sgi_op *op);
    /* Called when the last reference to an operation is dropped. The function frees the
     * data that cluster and server keep with the operation. */
    void (*freed)(sgi_op *op);
    /* Called when the memory of an operation was freed. It may have been the last
     * operation of the committer. */
    void (*released)(sgi_committer *committer);

    /* ---- operations whose entries may leave the log before the end (op->drops) ---- */

    /* Called when an entry was appended to the log. */
    void (*joined)(sgi_op *op, const sgi_entry *entry);
    /* Called when more bytes are to be appended. The function drops entries that may be
     * dropped. */
    void (*make_room)(sgi_op *op, size_t bytes, size_t limit);

    /* ---- the cluster's and the server's data of an operation ---- */

    /* Returns the wall clock time at which the store may delete the operation. */
    int64_t (*purge_ms)(const sgi_op *op);
    /* Sets the members of the fold that decide how the operation's result is merged. */
    void (*set_form)(const sgi_op *op, sgi_fold *fold);
    /* Writes the part of the stored record that belongs to cluster and server: members of
     * an object, and the owner. */
    void (*write)(const sgi_op *op, segue_store_record *head, sgi_jw *w);
    /* Makes an operation from the part of a stored record that `write` has written. *out
     * is set only on SEGUE_OK. */
    segue_status (*made)(sgi_committer *committer, const segue_store_record *record,
                         sgi_json data, sgi_op **out);
};

#endif
