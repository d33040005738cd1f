/* The listeners of a store handle, the operations that they follow, and the news
 * (changes that others made) that they have not received yet. Other folders call the
 * functions of store.c, which call the functions of this file. This file does not use
 * the store's vtable. */
#ifndef SGI_LISTENERS_H
#define SGI_LISTENERS_H

#include <pthread.h>

#include "base/map.h"
#include "store/commands.h"
#include "store/store.h"

typedef struct sgi_listeners {
    sgi_mem mem;
    pthread_mutex_t lock;
    pthread_cond_t quiet; /* signalled when a wake-up callback has returned */
    TAILQ_HEAD(sgi_listener_list, sgi_store_listener) all;
    /* maps an operation id to the listeners that follow the operation */
    sgi_map followed;
    sgi_store_commands commands;
    /* true = the vtable keeps forwarded commands, and `commands` only passes them on */
    bool lends;
} sgi_listeners;

segue_status sgi_listeners_init(sgi_listeners *listeners, const sgi_mem *mem, bool lends);
/* Frees the lists. The caller has removed all listeners. */
void sgi_listeners_free(sgi_listeners *listeners);

segue_status sgi_listeners_add(sgi_listeners *listeners, segue_store *store,
                               void (*wake)(void *user), void *user,
                               sgi_store_listener **out);
/* Removes a listener that follows no operation. While the listener's wake-up callback
 * runs, the function waits. */
void sgi_listeners_remove(sgi_listeners *listeners, sgi_store_listener *listener);
segue_store *sgi_listeners_store(const sgi_store_listener *listener);
/* Gives the id of one operation that the listener follows. Returns false when the
 * listener follows no operation. */
bool sgi_listeners_find_followed(sgi_listeners *listeners,
                                 const sgi_store_listener *listener,
                                 uint8_t id[SEGUE_STORE_ID_SIZE]);

/* Starts or stops following an operation. *changed becomes true when this listener is the
 * first that follows the operation, or was the last. */
segue_status sgi_listeners_follow(sgi_listeners *listeners, sgi_store_listener *listener,
                                  const uint8_t *id, bool on, bool *changed);

/* Reports committed writes to all listeners except `by`, the listener that committed
 * them. by: NULL = no listener of this handle committed them. */
void sgi_listeners_report_writes(sgi_listeners *listeners, const sgi_store_listener *by,
                                 const segue_store_write *writes, size_t count);
/* Forwards a command to the listener that runs the operation in this process. Returns
 * SEGUE_E_TERMINAL when the operation has ended, and SEGUE_E_LIMIT when too many commands
 * wait. */
segue_status sgi_listeners_post_command(sgi_listeners *listeners, const uint8_t *id,
                                        const char *data, size_t len);
/* Called when a listener of this handle has claimed the operation. The commands that wait
 * for the operation will be delivered again to all listeners. */
void sgi_listeners_report_claim(sgi_listeners *listeners, const uint8_t *id);
/* Records news (changes of other processes) that the store itself reports; wakes no
 * listener. The function is a segue_store_news_fn; its `user` is a sgi_listeners. */
int32_t sgi_listeners_take_change(void *user, const segue_store_news *news);
/* The wake-up callback that the store gets by set_wake. Wakes every listener, which
 * then asks for the changes that concern it. `user` is a sgi_listeners. */
void sgi_listeners_wake_all(void *user);
/* Calls the wake-up callback of each listener that has undelivered changes, except
 * listeners that were woken since they last asked for changes. */
void sgi_listeners_wake(sgi_listeners *listeners);

/* Called when the listener begins to ask for its changes. A change that arrives
 * afterwards wakes the listener again. */
void sgi_listeners_rearm(sgi_listeners *listeners, sgi_store_listener *listener);
/* Delivers the listener's changes to fn. Returns true when fn stopped before the end. */
bool sgi_listeners_deliver(sgi_listeners *listeners, sgi_store_listener *listener,
                           segue_store_news_fn fn, void *user);

#endif
