/* The change feed: changes of other servers that the store reports. The host reads the
 * feed without the lock and applies the changes with the lock held. */
#ifndef SGI_CHANGE_FEED_H
#define SGI_CHANGE_FEED_H

#include "base/thresholds.h"
#include "engine/log/committer.h"

struct sgi_cluster;

/* One change that another server made, copied from the store. */
typedef struct sgi_feed_change {
    TAILQ_ENTRY(sgi_feed_change) link;
    const sgi_mem *mem;
    /* the change as the store reports it; the pointers in it point into `data` */
    segue_store_news what;
    char data[];
} sgi_feed_change;

TAILQ_HEAD(sgi_feed_change_list, sgi_feed_change);

/* Limits of the forwarded commands that this server has read and cannot run yet: the
 * maximum number, and the maximum number of bytes. At a limit, the server reads no more
 * commands from the store. */
#define SGI_COMMANDS_WAITING_MAX SGI_THRESHOLD(commands_max)
#define SGI_COMMANDS_WAITING_BYTES SGI_THRESHOLD(commands_bytes)

/* The changes that the store reported in one reading of the change feed. */
typedef struct sgi_change_feed {
    const sgi_mem *mem;
    struct sgi_feed_change_list list;
    size_t count;
    /* number and bytes of the commands in this feed and of the commands that wait in the
     * cluster */
    size_t commands, command_bytes;
    segue_status status; /* the outcome of the reading; the host sets it */
} sgi_change_feed;

/* ---- functions for the host ---- */

/* Empties the feed before the store is read again. The caller holds the lock. */
void sgi_change_feed_reset(sgi_change_feed *feed, const sgi_committer *committer);
/* Copies one change into the feed. The store calls this function while its change feed is
 * read, without the lock. user: an sgi_change_feed. Returns 1 when the feed has no room
 * or no memory; the store then reports the change again later. */
int32_t sgi_change_feed_add(void *user, const segue_store_news *news);
/* Applies the changes of the feed and frees them. The caller holds the lock. */
void sgi_change_feed_apply(sgi_committer *committer, sgi_change_feed *feed);
void sgi_feed_change_list_free(struct sgi_feed_change_list *list);
/* Runs the forwarded commands that had to wait. Called with the lock held, for example
 * when operations have been taken over. */
void sgi_forwarded_commands_run_waiting(struct sgi_cluster *cluster);

#endif
