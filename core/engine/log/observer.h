/* The functions by which the log reports to the cluster and the server, which are above
 * the log. The server sets the table once, before the first operation is made. The
 * functions are called under the lock. */
#ifndef SGI_LOG_OBSERVER_H
#define SGI_LOG_OBSERVER_H

#include "engine/log/op.h"

struct sgi_log_observer {
    /* number of bytes after each operation for the data of cluster and server; the bytes
     * are zero at first */
    size_t room;

    /* ---- changes of an operation ---- */

    /* Called when further entries of the log have become visible; the final entry can be
     * among them. Called before the readers. */
    void (*visible)(sgi_op *op);
    /* Called after the readers were called, before the due waiters are called. */
    void (*readers_woken)(sgi_op *op);
    /* Called after the readers and the due waiters were called. */
    void (*waiters_fired)(sgi_op *op);
    /* Called before an error becomes the end of an operation. The function can make the
     * operation a task, so that the task fails. */
    void (*failing)(sgi_op *op);
    /* Called when the store could not create the operation. The function cancels the
     * handler and removes the operation from the maps. */
    void (*lost)(sgi_op *op, segue_status status);
    /* Called before entries become durable by a commit of this duration, if an observer
     * of the runtime wants the event entries_stored. */
    void (*stored)(sgi_op *op, uint64_t entries, uint64_t took_us);
    /* Called when a commit was refused, because another server has taken over the
     * operation. */
    void (*fenced)(sgi_op *op);
    /* Called when the store has refused entries because their numbers do not follow the
     * log. Returns true if another server may have written the missing entries. The
     * commit is then tried again later, when the server knows whether another server has
     * written them. */
    bool (*moved_on)(sgi_op *op);
    /* Called when the last reference to an operation is dropped. The function frees the
     * data that cluster and server keep with the operation. */
    void (*freed)(sgi_op *op);
    /* Called when the memory of an operation was freed. The operation can be the last
     * operation of the committer. */
    void (*released)(sgi_committer *committer);

    /* ---- operations whose entries may leave the log before the end (op->drops) ---- */

    /* Called when an entry was appended to the log of an operation whose op->drops is
     * true. */
    void (*joined)(sgi_op *op, const sgi_entry *entry);
    /* Called when `bytes` more bytes must be appended. The function drops entries that
     * are no longer needed. limit: the maximum size of the log. */
    void (*make_room)(sgi_op *op, size_t bytes, size_t limit);

    /* ---- the cluster's and the server's data of an operation ---- */

    /* Returns the wall clock time in ms from which the store can delete the operation. */
    int64_t (*purge_ms)(const sgi_op *op);
    /* Sets the members of the fold that decide how segments and fields of this operation
     * are merged. */
    void (*set_form)(const sgi_op *op, sgi_fold *fold);
    /* Returns the text that the server needs of the operation beside its record. */
    sgi_str (*name)(const sgi_op *op);
    /* Called when op->text was made. name, data: the name and the data of the record in
     * it, which live as long as the operation. Returns true if the server uses them from
     * now on, and not op->start->texts. */
    bool (*moves)(sgi_op *op, const char *name, const char *data);
    /* Writes the part of the stored record that belongs to cluster and server: JSON
     * members, and the owner in `head`. */
    void (*write)(const sgi_op *op, segue_store_record *head, sgi_jw *w);
    /* Makes an operation from the part of a stored record that `write` has written. Sets
     * *out only on SEGUE_OK. */
    segue_status (*made)(sgi_committer *committer, const segue_store_record *record,
                         sgi_json data, sgi_op **out);
};

#endif
