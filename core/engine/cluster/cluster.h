/* The cooperation of several servers on one store. Each server has one cluster, with the
 * operations that clients can name, the operations of other servers that it follows, the
 * operations that it takes over, and the commands that it forwards. */
#ifndef SGI_CLUSTER_H
#define SGI_CLUSTER_H

#include "engine/cluster/change_feed.h"
#include "engine/cluster/shared.h"

typedef struct sgi_cluster sgi_cluster;

/* Size in bytes of the random mark that distinguishes a server from the others on its
 * store. */
#define SGI_SERVER_MARK 16

/* Receives an operation that was searched for. If it was not found, op is NULL and status
 * says why. op is not a counted reference. */
typedef void (*sgi_found_fn)(void *user, sgi_op *op, segue_status status);

/* Functions by which a cluster reports to its server. No function is NULL; each is called
 * under the lock. */
typedef struct sgi_cluster_observer {
    /* Take and give up a reference to the server, which lives as long as its cluster is
     * needed. */
    void (*hold)(sgi_cluster *cluster);
    void (*let)(sgi_cluster *cluster);
    /* Called each time when all operations that other servers left have been handled. */
    void (*recovered)(sgi_cluster *cluster);
    /* Called when the store may have lost the last writes of this server. */
    void (*doubted)(sgi_cluster *cluster);

    /* known: called when clients can name the operation from now on. forget: called when
     * they cannot name it any more. release: called when other servers may claim it. */
    void (*known)(sgi_op *op);
    void (*forget)(sgi_op *op);
    void (*release)(sgi_op *op);
    /* Called when the operation's log was read back from the store. */
    void (*rebuilt)(sgi_op *op);
    /* Called when the operation has got the head of `fresh`. `fresh` has the same log and
     * is freed next. */
    void (*adopted)(sgi_op *op, const sgi_op *fresh);
    /* Called when this server has taken the operation over and has read all of its log:
     * the operation continues here, or ends. */
    void (*taken_over)(sgi_op *op);
    /* fenced: called when another server has taken the operation over. moved: called when
     * this server follows the operation from then on. */
    void (*fenced)(sgi_op *op);
    void (*moved)(sgi_op *op);
    /* True when a client of this server uses the operation in another way than by
     * readers, waiters and watches. */
    bool (*is_looked_at)(const sgi_op *op);

    /* Runs a command that another server has forwarded. SEGUE_E_NOMEM: the command has to
     * be run again later. */
    segue_status (*command)(sgi_op *op, sgi_str command);
    /* True when the client's request for a command gets its answer as soon as the command
     * is durable. */
    bool (*acknowledges)(const sgi_op *op);
    /* True when the operation is a mailbox, which is not followed and not taken over. */
    bool (*is_box)(const sgi_op *op);
    /* Called when another server has written to this server's mailbox. The mailbox then
     * belongs to that server. */
    void (*box_lost)(sgi_op *op);
} sgi_cluster_observer;

struct sgi_cluster {
    sgi_committer *committer;
    sgi_engine *engine;
    const sgi_cluster_observer *observer;
    uint8_t mark[SGI_SERVER_MARK]; /* the random mark of this server */
    struct {
        uint64_t commands; /* number of commands of other servers that were run here */
        /* number of operations that another server had taken over from this one */
        uint64_t fenced;
        /* number of commands that were not forwarded because of a limit */
        uint64_t refused;
    } counts;

    /* The following members have the operations that clients can name. */
    sgi_map by_task;
    sgi_map by_id;

    /* The following members have the operations of other servers. */
    size_t followed;
    /* the followed operations, the least recently used first */
    struct sgi_shared_list followed_ops;
    LIST_HEAD(, sgi_rebuilding) rebuilds;

    /* The following members have the forwarded commands. */
    uint64_t forward_number; /* number of the last command that was forwarded */
    size_t forwards;         /* number of forwarded commands that are not done */
    /* number of bytes that these commands hold (forwarding.h) */
    size_t forward_bytes;
    /* commands to this server that cannot be run yet (change_feed.c) */
    struct sgi_feed_change_list commands;
    size_t command_count;
    size_t command_bytes;
    sgi_timer commands_timer;

    /* The following members are used to take over operations. */
    /* this server takes over operations of servers that have gone */
    bool takes;
    /* number of claims under way and of operations that are being rebuilt */
    int32_t recovering;
    /* the records of claimed operations that are not in memory yet */
    struct sgi_found_list claims;
    sgi_map claims_by_id; /* the same records, by the id of the operation */
    bool claiming;        /* a claim is under way */
    bool claim_again;     /* another claim has to follow the claim under way */
    sgi_timer claim_timer;
};

void sgi_cluster_init(sgi_cluster *cluster, sgi_committer *committer,
                      const sgi_cluster_observer *observer);
/* Stops all work, because the runtime ends. */
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
