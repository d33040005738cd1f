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

    /* Called when more of the operation's log is visible, perhaps its end. Readers have
     * not been called yet. */
    void (*visible)(sgi_op *op);
    /* Called after the readers, before the code that waits for a position of the log. */
    void (*read)(sgi_op *op);
    /* Called after the readers and all code that waits. */
    void (*all_called)(sgi_op *op);
    /* Cancels the handler of an operation that could not be created in the store, and
     * removes the operation from the maps. */
    void (*lost)(sgi_op *op, segue_status status);
    /* Called when another server has taken the operation over: a commit of this server
     * was refused. */
    void (*fenced)(sgi_op *op);
    /* Called when the last reference is gone. Frees the data that cluster and server have
     * with the operation. */
    void (*freed)(sgi_op *op);
    /* Called when the memory of an operation has been freed. It may have been the last
     * operation of the committer. */
    void (*released)(sgi_committer *committer);

    /* ---- operations whose entries may leave the log before the end (op->drops) ---- */

    /* Called when an entry was appended to the log. */
    void (*joined)(sgi_op *op, const sgi_entry *entry);
    /* Drops entries that may be dropped, because more bytes are to be appended. */
    void (*make_room)(sgi_op *op, size_t bytes, size_t limit);

    /* ---- the cluster's and the server's data of an operation ---- */

    /* Returns the wall clock time at which the store may delete the operation. */
    int64_t (*purge_ms)(const sgi_op *op);
    /* Sets the members of the fold that decide how the operation's result is merged. */
    void (*set_form)(const sgi_op *op, sgi_fold *fold);
    /* Writes the cluster's and server's part of the stored record: members of an object,
     * and the owner. */
    void (*write)(const sgi_op *op, segue_store_record *head, sgi_jw *w);
    /* Makes an operation from this part of a stored record. *out is set only when
     * SEGUE_OK. */
    segue_status (*made)(sgi_committer *committer, const segue_store_record *record,
                         sgi_json data, sgi_op **out);
};

#endif
