/* The cooperation of several servers on one store. Each server has one cluster object. It
 * holds the operations that clients can name, the operations that other servers run and
 * this server follows, the operations that this server takes over, and the commands that
 * this server forwards. */
#ifndef SGI_CLUSTER_H
#define SGI_CLUSTER_H

#include "engine/cluster/change_feed.h"
#include "engine/cluster/shared.h"

typedef struct sgi_cluster sgi_cluster;

/* Number of random bytes that identify a server. No two servers on a store have the same
 * bytes. */
#define SGI_SERVER_MARK 16

/* The callback of a search for an operation. op: the operation, a borrowed pointer; NULL
 * = the operation was not found, and status gives the reason. */
typedef void (*sgi_found_fn)(void *user, sgi_op *op, segue_status status);

/* Functions by which a cluster reports to its server. Every function is set and is called
 * under the lock. */
typedef struct sgi_cluster_observer {
    /* `hold` adds a reference to the server; `let` drops this reference. The cluster
     * keeps the server in memory while the cluster has work. */
    void (*hold)(sgi_cluster *cluster);
    void (*let)(sgi_cluster *cluster);
    /* Called when recovery has continued or ended all operations that it claimed. Each
     * recovery ends with one such call. */
    void (*recovered)(sgi_cluster *cluster);
    /* Called when the store may have lost the last writes of this server, or may have
     * given the server's operations to other servers. */
    void (*doubted)(sgi_cluster *cluster);

    /* `known` is called when clients can name the operation from now on. `forget` is
     * called when clients can no longer find the operation in memory. `release` is called
     * when this server gives up the operation, so that other servers can claim it. */
    void (*known)(sgi_op *op);
    void (*forget)(sgi_op *op);
    void (*release)(sgi_op *op);
    /* Called when the operation was rebuilt from its whole log in the store. */
    void (*rebuilt)(sgi_op *op);
    /* Called when the operation has got a new head (its state, which follows from its
     * log). fresh: the copy of the operation from which the head came; the copy is freed
     * after this call. */
    void (*adopted)(sgi_op *op, const sgi_op *fresh);
    /* Called when this server has become the owner of the operation and has read its
     * whole log. The function continues the operation's handler on this server, or ends
     * the operation. */
    void (*taken_over)(sgi_op *op);
    /* `fenced` is called when another server has taken over the operation; this server
     * must then stop its handler. `moved` is called when this server then begins to read
     * the operation's log from the store. */
    void (*fenced)(sgi_op *op);
    void (*moved)(sgi_op *op);
    /* True when a client of this server still uses the operation. Called only for an
     * operation without readers, waiters and watches. */
    bool (*is_looked_at)(const sgi_op *op);

    /* Runs a command that another server has forwarded to this server. Returns
     * SEGUE_E_NOMEM when the cluster must run the command again later. */
    segue_status (*command)(sgi_op *op, sgi_str command);
    /* True when a client's request is answered as soon as its forwarded command is
     * durable, without waiting until the owner has run the command. */
    bool (*acknowledges)(const sgi_op *op);
    /* True when the operation is a mailbox, to which other servers send answers. The
     * cluster neither follows nor takes over mailboxes. */
    bool (*is_box)(const sgi_op *op);
    /* Called when another server has become the owner of this server's mailbox (the
     * operation to which other servers send answers). The server makes a new mailbox. */
    void (*box_lost)(sgi_op *op);
} sgi_cluster_observer;

struct sgi_cluster {
    sgi_committer *committer;
    sgi_engine *engine;
    const sgi_cluster_observer *observer;
    uint8_t mark[SGI_SERVER_MARK]; /* the random bytes that identify this server */
    struct {
        /* number of forwarded commands of other servers that this server has run */
        uint64_t commands;
        /* number of operations that another server has taken over from this server */
        uint64_t fenced;
        /* number of commands that this server did not forward because of a limit */
        uint64_t refused;
    } counts;

    /* The operations that clients can name: an index by task id, and one by
     * operation id. */
    sgi_index by_task;
    sgi_index by_id;

    /* number of operations that other servers run and this server follows */
    size_t followed;
    /* the operations that other servers run and this server follows; the least recently
     * used operation is first */
    struct sgi_cluster_op_list followed_ops;
    LIST_HEAD(, sgi_rebuilding) rebuilds;

    /* The members below hold the commands that this server forwards or has received. */
    uint64_t forward_number; /* number of the command that this server forwarded last */
    /* number of commands that this server has forwarded and whose effect is not in the
     * log yet */
    size_t forwards;
    /* number of bytes of the commands that `forwards` counts (forwarding.h) */
    size_t forward_bytes;
    /* received commands that this server cannot run yet (change_feed.c) */
    struct sgi_feed_change_list commands;
    size_t command_count;
    size_t command_bytes;
    sgi_timer commands_timer;
    /* true while the store does not tell its changes: other servers may own operations of
     * this server, and this server would not know */
    bool cut_off;

    /* The members below are used while this server takes over operations. */
    /* the server may claim operations of servers that have gone; true from the start of
     * recovery until the server closes */
    bool takes;
    /* the server claims nothing yet, although it may */
    bool abstains;
    /* number of unfinished steps of recovery: running claims, and operations that are
     * being taken over */
    int32_t recovering;
    /* the records of claimed operations that are not in memory yet */
    struct sgi_found_record_list claims;
    /* the records of `claims`; the key is the id of the operation */
    sgi_map claims_by_id;
    bool claiming; /* a claim is running: the store has not answered yet */
    /* another claim starts when the running claim has ended and most of its operations
     * are taken over */
    bool claim_again;
    sgi_timer claim_timer;
};

void sgi_cluster_init(sgi_cluster *cluster, sgi_committer *committer,
                      const sgi_cluster_observer *observer);
/* Stops the timers and claims of the cluster, because the runtime ends. */
void sgi_cluster_close(sgi_cluster *cluster);
void sgi_cluster_free(sgi_cluster *cluster);
/* Return the operation that clients can name and that has this task id, or this operation
 * id; NULL = there is none. */
sgi_op *sgi_cluster_known_task(const sgi_cluster *cluster, sgi_str task_id);
sgi_op *sgi_cluster_known_op(const sgi_cluster *cluster, const uint8_t *id);

static inline sgi_cluster *sgi_op_cluster(const sgi_op *op)
{
    return op->committer->cluster;
}

static inline void sgi_cluster_ref(sgi_cluster *cluster)
{
    cluster->observer->hold(cluster);
}

static inline void sgi_cluster_unref(sgi_cluster *cluster)
{
    cluster->observer->let(cluster);
}

#endif
