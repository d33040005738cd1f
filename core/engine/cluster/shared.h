/* The data that the cluster has for each operation: the map nodes by which it is found,
 * and how it is followed while another server runs it. This data is allocated together
 * with the operation (sgi_log_observer.room). */
#ifndef SGI_SHARED_H
#define SGI_SHARED_H

#include "engine/log/op.h"

/* Whether an operation is in the maps of its server. */
typedef enum sgi_shared_place {
    SGI_SHARED_APART = 0, /* the operation is in no map, so clients cannot name it */
    SGI_SHARED_KNOWN,     /* the operation is in the maps */
    /* in the maps; another server runs the operation, and the store reports its growth */
    SGI_SHARED_FOLLOWED,
    /* in the maps; the operation has ended, and stays in memory and in the store */
    SGI_SHARED_LINGERS
} sgi_shared_place;

/* How far the log of an operation that another server runs has been read. */
typedef enum sgi_growth {
    SGI_GROWTH_READ = 0,  /* all known growth was read */
    SGI_GROWTH_DUE,       /* the log has more entries to be read */
    SGI_GROWTH_READING,   /* a read is under way */
    SGI_GROWTH_READING_ON /* a read is under way, and after it there is more to read */
} sgi_growth;

typedef struct sgi_shared {
    sgi_op *op; /* the operation to which this data belongs */
    sgi_map_node by_task;
    sgi_map_node by_id;
    sgi_shared_place place;
    sgi_growth growth;
    /* another server has taken the operation over, so the head is rebuilt before more is
     * read */
    bool stale;
    /* This server has claimed the operation. It owns the operation as soon as it has read
     * the whole log. */
    bool claimed;
    /* For an own operation: fires when its time to live is over, and then when it leaves
     * memory. For a followed operation: fires at the next check of its log. */
    sgi_timer timer;
    /* commands under way to the owner of the operation */
    LIST_HEAD(, sgi_forward) forwards;
    /* link in the list of ended, or of followed, operations */
    TAILQ_ENTRY(sgi_shared) link;
} sgi_shared;

TAILQ_HEAD(sgi_shared_list, sgi_shared);

/* True when clients can name the operation. */
static inline bool sgi_op_is_known(const sgi_op *op)
{
    return op->shared->place != SGI_SHARED_APART;
}

/* Returns the operation of a map node; NULL for NULL. */
static inline sgi_op *sgi_op_by_task(sgi_map_node *node)
{
    return node ? SGI_OWNER(node, sgi_shared, by_task)->op : NULL;
}

static inline sgi_op *sgi_op_by_id(sgi_map_node *node)
{
    return node ? SGI_OWNER(node, sgi_shared, by_id)->op : NULL;
}

#endif
