/* Who listens at a store handle, to what, and what is new to them. store.c has the calls
 * that keepers use; this knows nothing of the vtable. */
#ifndef SGI_LISTENERS_H
#define SGI_LISTENERS_H

#include <pthread.h>

#include "base/map.h"
#include "store/letters.h"
#include "store/store.h"

typedef struct sgi_listeners {
    sgi_mem mem;
    pthread_mutex_t lock;
    pthread_cond_t quiet; /* a ring has returned */
    TAILQ_HEAD(sgi_listener_list, sgi_store_listener) all;
    sgi_map followed; /* id to those that follow it */
    sgi_letters letters;
    bool lends; /* the store has letters of its own: here they only pass through */
} sgi_listeners;

segue_status sgi_listeners_init(sgi_listeners *listeners, const sgi_mem *mem, bool lends);
/* All have been removed. */
void sgi_listeners_free(sgi_listeners *listeners);

segue_status sgi_listeners_add(sgi_listeners *listeners, segue_store *store,
                               void (*ring)(void *user), void *user,
                               sgi_store_listener **out);
/* It follows nothing any more. Waits while it is being rung. */
void sgi_listeners_remove(sgi_listeners *listeners, sgi_store_listener *listener);
segue_store *sgi_listeners_store(const sgi_store_listener *listener);
/* One that the listener follows; false when there is none. */
bool sgi_listeners_followed(sgi_listeners *listeners, const sgi_store_listener *listener,
                            uint8_t id[SEGUE_STORE_ID_SIZE]);

/* *changed: it is now followed by somebody for the first time, or by nobody any more. */
segue_status sgi_listeners_follow(sgi_listeners *listeners, sgi_store_listener *listener,
                                  const uint8_t *id, bool on, bool *changed);

/* by (may be NULL) has committed this. */
void sgi_listeners_wrote(sgi_listeners *listeners, const sgi_store_listener *by,
                         const segue_store_write *writes, size_t count);
/* A letter to whoever runs the operation here. */
segue_status sgi_listeners_post(sgi_listeners *listeners, const uint8_t *id,
                                const char *data, size_t len);
/* The operation has a new owner here. */
void sgi_listeners_claimed(sgi_listeners *listeners, const uint8_t *id);
/* News of the store itself; a segue_store_news_fn whose user is a sgi_listeners. Nobody
 * is rung by it. */
int32_t sgi_listeners_told(void *user, const segue_store_news *news);
/* Everybody should ask the store: a bell for set_bell; user is a sgi_listeners. */
void sgi_listeners_bell(void *user);
/* Rings whoever has something new and does not know yet. */
void sgi_listeners_ring(sgi_listeners *listeners);

/* From here on the listener is rung again. */
void sgi_listeners_answer(sgi_listeners *listeners, sgi_store_listener *listener);
/* Hands over what is new to it; true when fn stopped before the end. */
bool sgi_listeners_hand(sgi_listeners *listeners, sgi_store_listener *listener,
                        segue_store_news_fn fn, void *user);

#endif
