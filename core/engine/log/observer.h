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

    /* Called when more of the operation's log has become visible, perhaps its end. Called
     * before the readers. */
    void (*visible)(sgi_op *op);
    /* Called after the readers and before the waiters that are due. */
    void (*readers_woken)(sgi_op *op);
    /* Called after the readers and the waiters that are due. */
    void (*waiters_fired)(sgi_op *op);
    /* Reports that the store refused to create the operation. Cancels the handler and
     * removes the operation from the maps. */
    void (*lost)(sgi_op *op, segue_status status);
    /* Reports that another server has taken the operation over: a commit of this server
     * was refused. */
    void (*fenced)(sgi_op *op);
    /* Called when the last reference to an operation is dropped. Frees the data that
     * cluster and server keep with it. */
    void (*freed)(sgi_op *op);
    /* Called when the memory of an operation has been freed. That operation may have been
     * the last one of the committer. */
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
    /* Writes the part of the stored record that cluster and server own: members of an
     * object, and the owner. */
    void (*write)(const sgi_op *op, segue_store_record *head, sgi_jw *w);
    /* Makes an operation from the part of a stored record that `write` has written. *out
     * is set only when SEGUE_OK. */
    segue_status (*made)(sgi_committer *committer, const segue_store_record *record,
                         sgi_json data, sgi_op **out);
};

#endif
