/* The change feed: changes that other servers made, as the store reports them. The host
 * reads the feed without the lock and applies the changes with the lock held. */
#ifndef SGI_CHANGE_FEED_H
#define SGI_CHANGE_FEED_H

#include "base/thresholds.h"
#include "engine/log/committer.h"

struct sgi_cluster;

/* One change made by another server, copied out of the store. */
typedef struct sgi_feed_change {
    TAILQ_ENTRY(sgi_feed_change) link;
    const sgi_mem *mem;
    /* the change as the store described it; its pointers point into `data` */
    segue_store_news what;
    char data[];
} sgi_feed_change;

TAILQ_HEAD(sgi_feed_change_list, sgi_feed_change);

/* Limits of the forwarded commands that this server has read and cannot run yet: their
 * number and their bytes. While a limit is reached, no more commands are read from the
 * store. */
#define SGI_COMMANDS_WAITING_MAX SGI_THRESHOLD(commands_max)
#define SGI_COMMANDS_WAITING_BYTES SGI_THRESHOLD(commands_bytes)

/* The changes that one reading of the store's change feed has brought. */
typedef struct sgi_feed {
    const sgi_mem *mem;
    struct sgi_feed_change_list list;
    size_t count;
    /* number and bytes of the forwarded commands, including those that wait in the
     * cluster */
    size_t commands, command_bytes;
} sgi_feed;

/* ---- functions for the host ---- */

/* Empties the feed before the next reading of the store. Called with the lock held. */
void sgi_feed_reset(sgi_feed *feed, const sgi_committer *committer);
/* The callback for the store's change feed. user: an sgi_feed. Copies one change into the
 * feed. Returns 1 when the feed has no room or no memory: the store then reports the
 * change again later. Called without the lock. */
int32_t sgi_feed_add(void *user, const segue_store_news *news);
/* Applies the changes and frees them. Called with the lock held. */
void sgi_feed_apply(sgi_committer *committer, sgi_feed *feed);
void sgi_feed_changes_free(struct sgi_feed_change_list *list);
/* Runs the forwarded commands that had to wait while operations were being taken over.
 * Called with the lock held. */
void sgi_commands_run_waiting(struct sgi_cluster *cluster);

#endif
