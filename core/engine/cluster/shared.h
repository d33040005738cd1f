/* The data that the cluster keeps with each operation: the map nodes by which the
 * operation is found, and, while another server runs it, how much of its log has been
 * read. The data is allocated in one block with the operation (sgi_log_observer.room). */
#ifndef SGI_SHARED_H
#define SGI_SHARED_H

#include "engine/log/op.h"

/* Whether an operation is in the maps of its server. */
typedef enum sgi_shared_state {
    SGI_SHARED_UNKNOWN = 0, /* the operation is in no map: clients cannot name it */
    SGI_SHARED_KNOWN,       /* the operation is in the maps */
    /* in the maps; another server runs the operation, and the store reports its growth */
    SGI_SHARED_FOLLOWED,
    /* the operation is in the maps and has ended; its copy in memory is freed after a
     * while */
    SGI_SHARED_LINGERS
} sgi_shared_state;

/* How far the log of an operation that another server runs has been read. */
typedef enum sgi_growth {
    SGI_GROWTH_READ = 0, /* all known growth was read */
    SGI_GROWTH_DUE,      /* the log has more entries to be read */
    SGI_GROWTH_READING,  /* a read of the log is under way */
    /* a read of the log is under way, and another read must follow it */
    SGI_GROWTH_READING_ON
} sgi_growth;

typedef struct sgi_shared {
    sgi_op *op; /* the operation to which this data belongs */
    sgi_map_node by_task;
    sgi_map_node by_id;
    /* bit fields, because malloc is slower for blocks of more than 1,008 bytes, and the
     * block of an operation that a server serves has 1,000 */
    sgi_shared_state state : 8;
    sgi_growth growth : 8;
    /* another server has taken the operation over, so the head must be rebuilt before
     * more entries are read */
    bool stale;
    /* The store has given the operation to this server. This server becomes the owner
     * when it has read the whole log. */
    bool claimed;
    /* The timer of an operation that this server owns ends its time to live, and later
     * removes the ended operation from memory. The timer of a followed operation starts
     * the next check of its log. */
    sgi_timer timer;
    /* the commands that were forwarded to the owner and are not done */
    LIST_HEAD(, sgi_forward) forwards;
    /* link in the list of ended operations, or in the list of followed operations */
    TAILQ_ENTRY(sgi_shared) link;
} sgi_shared;

TAILQ_HEAD(sgi_shared_list, sgi_shared);

/* True when clients can name the operation. */
static inline bool sgi_op_is_known(const sgi_op *op)
{
    return op->shared->state != SGI_SHARED_UNKNOWN;
}

/* Returns the operation that contains this map node. NULL gives NULL. */
static inline sgi_op *sgi_op_by_task(sgi_map_node *node)
{
    return node ? SGI_OWNER(node, sgi_shared, by_task)->op : NULL;
}

static inline sgi_op *sgi_op_by_id(sgi_map_node *node)
{
    return node ? SGI_OWNER(node, sgi_shared, by_id)->op : NULL;
}

#endif
