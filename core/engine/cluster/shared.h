/* The data that the cluster keeps with each operation: the map nodes by which the
 * operation is found, and, while another server runs the operation, how much of the log
 * was read. The data is in the same memory block as the operation
 * (sgi_log_observer.room). */
#ifndef SGI_SHARED_H
#define SGI_SHARED_H

#include "engine/log/op.h"

/* Says whether an operation is in the maps of its server. */
typedef enum sgi_cluster_op_state {
    /* the operation is in no map, so clients cannot name it */
    SGI_CLUSTER_OP_UNKNOWN = 0,
    SGI_CLUSTER_OP_KNOWN, /* the operation is in the maps */
    /* the operation is in the maps; another server runs it, and the store reports its
     * growth */
    SGI_CLUSTER_OP_FOLLOWED,
    /* the operation is in the maps and has ended; it leaves the maps after a while */
    SGI_CLUSTER_OP_LINGERS
} sgi_cluster_op_state;

/* Says how much was read of the log of an operation that another server runs. */
typedef enum sgi_growth {
    SGI_GROWTH_READ = 0, /* all entries that the store has reported were read */
    SGI_GROWTH_DUE,      /* the log in the store has more entries to read */
    SGI_GROWTH_READING,  /* a read of the log is running */
    /* a read of the log is running, and another read must follow */
    SGI_GROWTH_READING_ON
} sgi_growth;

/* Says whether an operation of this server was compared with its log in the store, to
 * find entries of another server. */
typedef enum sgi_compare {
    SGI_COMPARE_NOT = 0,
    SGI_COMPARE_READING,
    SGI_COMPARE_WHOLE /* compared: no other server has written to the operation */
} sgi_compare;

typedef struct sgi_cluster_op_data {
    sgi_op *op; /* the operation to which this data belongs */
    sgi_index_node by_task;
    sgi_index_node by_id;
    /* Bit fields keep the block small: malloc is slower for blocks of more than 1,008
     * bytes, and the block of an operation that a server serves has 1,000 bytes. */
    sgi_cluster_op_state state : 8;
    sgi_growth growth : 8;
    /* another server has taken over the operation, so the head of the operation must be
     * rebuilt before more entries are read */
    bool stale;
    /* The store has given the operation to this server. This server becomes the owner as
     * soon as it has read the whole log. */
    bool claimed;
    sgi_compare compare : 8;
    /* While this server owns the operation, the timer ends the operation when its time to
     * live is over, and later removes the ended operation from memory. While this server
     * follows the operation, the timer starts the next check of the log. */
    sgi_timer timer;
    /* the commands for this operation that were forwarded to its owner and are not
     * done */
    LIST_HEAD(, sgi_forward) forwards;
    /* link in the list of ended operations (LINGERS), or of operations that other servers
     * run (FOLLOWED) */
    TAILQ_ENTRY(sgi_cluster_op_data) link;
} sgi_cluster_op_data;

TAILQ_HEAD(sgi_cluster_op_list, sgi_cluster_op_data);

/* True when clients can name the operation. */
static inline bool sgi_op_is_known(const sgi_op *op)
{
    return op->shared->state != SGI_CLUSTER_OP_UNKNOWN;
}

/* Return the operation that contains this node. NULL gives NULL. */
static inline sgi_op *sgi_op_of_task_node(const sgi_index_node *node)
{
    return node ? SGI_OWNER((sgi_index_node *)node, sgi_cluster_op_data, by_task)->op
                : NULL;
}

static inline sgi_op *sgi_op_of_id_node(const sgi_index_node *node)
{
    return node ? SGI_OWNER((sgi_index_node *)node, sgi_cluster_op_data, by_id)->op
                : NULL;
}

#endif
