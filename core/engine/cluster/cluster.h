/* The cooperation of several servers on one store. Each server has one cluster object,
 * which holds the operations that clients can name, the operations of other servers that
 * this server follows, the operations that this server takes over, and the commands that
 * this server forwards. */
#ifndef SGI_CLUSTER_H
#define SGI_CLUSTER_H

#include "engine/cluster/change_feed.h"
#include "engine/cluster/shared.h"

typedef struct sgi_cluster sgi_cluster;

/* Size in bytes of the random bytes that identify a server. No two servers on a store
 * have the same bytes. */
#define SGI_SERVER_MARK 16

/* The callback of a search for an operation. op: the operation, without a reference of
 * its own; NULL = it was not found, and status says why. */
typedef void (*sgi_found_fn)(void *user, sgi_op *op, segue_status status);

/* Functions by which a cluster reports to its server. No function is NULL; each is called
 * under the lock. */
typedef struct sgi_cluster_observer {
    /* hold adds a reference to the server, let drops it. While its cluster has work, the
     * server stays in memory. */
    void (*hold)(sgi_cluster *cluster);
    void (*let)(sgi_cluster *cluster);
    /* Called when recovery has dealt with all operations that it claimed. Each recovery
     * ends with one call. */
    void (*recovered)(sgi_cluster *cluster);
    /* Called when the store may have lost the last writes of this server, or may have
     * given the server's operations to other servers. */
    void (*doubted)(sgi_cluster *cluster);

    /* known: called when clients can name the operation from now on. forget: clients can
     * no longer name the operation. release: this server gives the operation up, so that
     * other servers may claim it. */
    void (*known)(sgi_op *op);
    void (*forget)(sgi_op *op);
    void (*release)(sgi_op *op);
    /* Called when the operation was rebuilt: its whole log was read back from the
     * store. */
    void (*rebuilt)(sgi_op *op);
    /* Called when the operation has got a new head, which was rebuilt from the log.
     * fresh: the copy of the operation that the head was taken from; it is freed after
     * this call. */
    void (*adopted)(sgi_op *op, const sgi_op *fresh);
    /* Called when this server has become the owner of the operation and has read its
     * whole log. The function continues the operation's handler here, or ends the
     * operation. */
    void (*taken_over)(sgi_op *op);
    /* fenced: called when another server has taken the operation over and this server
     * must stop its handler. moved: called when this server begins to follow the
     * operation. */
    void (*fenced)(sgi_op *op);
    void (*moved)(sgi_op *op);
    /* True when a client of this server still uses the operation. Asked only for an
     * operation without readers, waiters and watches. */
    bool (*is_looked_at)(const sgi_op *op);

    /* Runs a command that another server has forwarded to this one. Returns SEGUE_E_NOMEM
     * when the cluster must run the command again later. */
    segue_status (*command)(sgi_op *op, sgi_str command);
    /* True when a client's request is answered as soon as its forwarded command is
     * durable, without waiting until the owner has run the command. */
    bool (*acknowledges)(const sgi_op *op);
    /* True for a mailbox. The cluster neither follows nor takes over mailboxes. */
    bool (*is_box)(const sgi_op *op);
    /* Called when another server has become the owner of this server's mailbox by writing
     * to it. The server makes a new mailbox. */
    void (*box_lost)(sgi_op *op);
} sgi_cluster_observer;

struct sgi_cluster {
    sgi_committer *committer;
    sgi_engine *engine;
    const sgi_cluster_observer *observer;
    uint8_t mark[SGI_SERVER_MARK]; /* the random bytes that identify this server */
    struct {
        /* number of forwarded commands that this server has run for other servers */
        uint64_t commands;
        /* number of operations that another server has taken over from this one */
        uint64_t fenced;
        /* number of commands that this server did not forward because of a limit */
        uint64_t refused;
    } counts;

    /* The following members are the operations that clients can name. */
    sgi_map by_task;
    sgi_map by_id;

    /* The following members are the operations of other servers. */
    size_t followed;
    /* the followed operations, the least recently used first */
    struct sgi_shared_list followed_ops;
    LIST_HEAD(, sgi_rebuilding) rebuilds;

    /* The following members are the commands that this server forwards or has
     * received. */
    uint64_t forward_number; /* number of the last command that this server forwarded */
    /* number of commands that this server forwarded and that are not done */
    size_t forwards;
    /* number of bytes of the commands that are not done (forwarding.h) */
    size_t forward_bytes;
    /* commands for this server that cannot be run yet (change_feed.c) */
    struct sgi_feed_change_list commands;
    size_t command_count;
    size_t command_bytes;
    sgi_timer commands_timer;

    /* The following members are used while operations are taken over. */
    /* this server claims the operations of servers that have gone */
    bool takes;
    /* number of unfinished steps of a recovery: claims under way, and operations being
     * rebuilt */
    int32_t recovering;
    /* the records of claimed operations that are not in memory yet */
    struct sgi_found_record_list claims;
    sgi_map claims_by_id; /* the same records, by the id of the operation */
    bool claiming;        /* a claim is under way */
    bool claim_again;     /* another claim starts when the claim under way has ended */
    sgi_timer claim_timer;
};

void sgi_cluster_init(sgi_cluster *cluster, sgi_committer *committer,
                      const sgi_cluster_observer *observer);
/* Stops the work of the cluster, because the runtime ends. */
void sgi_cluster_close(sgi_cluster *cluster);
void sgi_cluster_free(sgi_cluster *cluster);

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
