/* The change feed: changes that other servers made, as the store reports them. The host
 * reads the feed without the lock and applies the changes with the lock held. */
#ifndef SGI_CHANGE_FEED_H
#define SGI_CHANGE_FEED_H

#include "engine/log/committer.h"

struct sgi_cluster;

/* One change made by another server, copied out of the store. */
typedef struct sgi_feed_change {
    TAILQ_ENTRY(sgi_feed_change) link;
    const sgi_mem *mem;
    segue_store_news what; /* the change; its data follows this struct */
    char data[];
} sgi_feed_change;

TAILQ_HEAD(sgi_feed_change_list, sgi_feed_change);

/* Limits of the forwarded commands that cannot be run yet: their number and
 * their bytes. Above these limits no more commands are read from the store. */
#define SGI_COMMANDS_WAITING_MAX 1024
#define SGI_COMMANDS_WAITING_BYTES ((size_t)64 * 1024 * 1024)

/* The changes that one reading of the store's change feed has brought. */
typedef struct sgi_feed {
    const sgi_mem *mem;
    struct sgi_feed_change_list list;
    size_t count;
    /* number and bytes of the commands, including those that wait in the cluster */
    size_t commands, command_bytes;
} sgi_feed;

/* ---- functions for the host ---- */

/* Empties the feed for the next reading. Called with the lock held. */
void sgi_feed_reset(sgi_feed *feed, const sgi_committer *committer);
/* Callback for the store's change feed (user = an sgi_feed): copies a change. Returns 1
 * when the feed takes no more changes now. Called without the lock. */
int32_t sgi_feed_add(void *user, const segue_store_news *news);
/* Applies the changes and frees them. Called with the lock held. */
void sgi_feed_apply(sgi_committer *committer, sgi_feed *feed);
void sgi_feed_changes_free(struct sgi_feed_change_list *list);
/* Runs forwarded commands that waited for operations to be taken over. Called with the
 * lock held. */
void sgi_commands_run_waiting(struct sgi_cluster *cluster);

#endif
